# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks docs/spec/requirements.md: every row has a test that exists.

Rows are R1 to R54, D1 to D15, those of what must not go wrong silently (N), and those of what
engines ask for (P), and the C interface (C). The last cell of a row is one of
  `File.cpp::Suite.Case`, `test_x.py::test_y`, `file.mlir`, ...  tests that show it,
  out of scope: why                                              or a reason,
  open                                                           or nothing yet.
A file is named by its path, or by its name alone where that is unique below test/ and
runtime/. Open rows are counted; --strict fails on them.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/spec/requirements.md"
ROWS = [f"R{n}" for n in range(1, 55)] + [f"D{n}" for n in range(1, 16)]
# The numbers are those of a list of faults; the others of it are not mended yet.
ROWS += [f"N{n}" for n in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19)]
# What engines and contributors ask for, by the same list.
ROWS += [f"P{n}" for n in (1, 2, 3, 4, 5, 6, 7)]
# What the C interface needs to grow.
ROWS += [f"C{n}" for n in (1, 2, 3, 4, 5, 6)]


def tracked(root: Path) -> list[str]:
    """Files that may hold tests, and guides that are run."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    command += ["test", "runtime", "docs/guides", "tools/scripts"]
    return subprocess.run(
        command, cwd=root, text=True, capture_output=True, check=True
    ).stdout.splitlines()


def find(name: str, files: list[str]) -> str:
    """The file that `name` means; ValueError if there is none, or more than one."""
    found = [f for f in files if f == name or f.endswith("/" + name)]
    if len(found) != 1:
        raise ValueError(f"{name}: expected one file of that name, found {len(found)}")
    return found[0]


def has_test(text: str, test: str, suffix: str) -> bool:
    """Whether a source has a test of that name."""
    if suffix == ".py":
        return re.search(rf"^def {re.escape(test)}\(", text, re.MULTILINE) is not None
    suite, _, case = test.partition(".")
    pattern = rf"^TEST(_F|_P)?\(\s*{re.escape(suite)},\s*{re.escape(case)}\)"
    return re.search(pattern, text, re.MULTILINE) is not None


def check_test(reference: str, files: list[str], root: Path) -> str | None:
    """What is wrong with a reference, or None."""
    name, separator, test = reference.partition("::")
    try:
        path = find(name, files)
    except ValueError as error:
        return str(error)
    suffix = Path(path).suffix
    if not separator:
        # A .cpp or .py is a folder of tests; which of them?
        return f"{name}: expected ::test behind it" if suffix in (".cpp", ".py") else None
    if not has_test((root / path).read_text(), test, suffix):
        return f"{path} has no test {test}"
    return None


def rows_of(page: str) -> list[tuple[str, str]]:
    """Name and last cell of each row of the page's tables."""
    rows = []
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("|") and re.fullmatch(r"[RDNPC]\d+", cells[0]):
            rows.append((cells[0], cells[-1]))
    return rows


def judge(page: str, files: list[str], root: Path) -> tuple[list[str], list[str]]:
    """Complaints, and the rows that are open."""
    rows = rows_of(page)
    names = [name for name, _ in rows]
    complaints = [f"{row}: no row" for row in ROWS if row not in names]
    complaints += [f"{name}: not a known row" for name in names if name not in ROWS]
    complaints += [f"{row}: more than one row" for row in ROWS if names.count(row) > 1]
    still_open = []
    for name, cell in rows:
        references = re.findall(r"`([^`]+)`", cell)
        if cell == "open":
            still_open.append(name)
        elif cell.startswith("out of scope:"):
            if len(cell.split()) < 5:
                complaints.append(f"{name}: expected a reason for being out of scope")
        elif not references:
            complaints.append(f"{name}: expected tests, 'open' or 'out of scope: why'")
        for reference in references:
            if wrong := check_test(reference, files, root):
                complaints.append(f"{name}: {wrong}")
    return complaints, still_open


def main() -> int:
    parser = argparse.ArgumentParser(prog="requirements", description=__doc__)
    parser.add_argument("--strict", action="store_true", help="fail if a row is open")
    strict = parser.parse_args().strict
    complaints, still_open = judge(PAGE.read_text(), tracked(ROOT), ROOT)
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    print(f"{len(ROWS)} requirements, {len(still_open)} open: {', '.join(still_open) or 'none'}")
    return 1 if complaints or (strict and still_open) else 0


if __name__ == "__main__":
    sys.exit(main())
