# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes docs/generated, and the table of README.md, from the .td files and the files of
recorded measurements; --check fails if something is stale.

What CMake turns into C++ gets a page: each dialect that a CMakeLists.txt below
include/gdn generates, and each Passes.td. So does each report of gdn.bench in
runtime/bench/results that has rows of decode, verify, prefill, packed or of the host, with a
plot for each of its heads and types with several numbers of rows, but for prefill.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

import gpu_support
import presets

ROOT = Path(__file__).resolve().parents[2]
LLVM = Path(f"/usr/lib/llvm-{(ROOT / 'LLVM_VERSION').read_text().strip()}")
OUT = ROOT / "docs/generated"


def tblgen(td: Path, *arguments: str) -> str:
    command = [LLVM / "bin/mlir-tblgen", *arguments, "-I", ROOT / "include"]
    command += ["-I", LLVM / "include", td]
    done = subprocess.run([str(c) for c in command], text=True, capture_output=True)
    if done.returncode:
        sys.exit(f"docs: {td.relative_to(ROOT)}: {done.stderr}")
    # A table of contents for one particular site generator.
    return done.stdout.replace("[TOC]\n\n", "").rstrip() + "\n"


def dialects() -> dict[str, Path]:
    """Dialect name to the .td that defines its ops."""
    found = {}
    for file in sorted((ROOT / "include/gdn").rglob("CMakeLists.txt")):
        td = None
        for line in file.read_text().splitlines():
            if match := re.match(r"set\(LLVM_TARGET_DEFINITIONS (\S+)\)", line):
                td = file.parent / match[1]
            elif match := re.search(r"-gen-dialect-decls -dialect=(\w+)", line):
                assert td, f"{file}: a dialect before any LLVM_TARGET_DEFINITIONS"
                found[match[1]] = td
    return found


def pass_files() -> dict[str, Path]:
    """Page name to Passes.td, named after the folders below include/gdn."""
    base = ROOT / "include/gdn"
    return {
        "-".join(["passes", *td.relative_to(base).parent.parts]).lower(): td
        for td in sorted(base.rglob("*Passes.td"))
    }


def measurements() -> dict[Path, tuple[str, dict[str, str]]]:
    """Reports of decode to the text of their page and to their plots by file name."""
    sys.path.insert(0, str(ROOT / "python"))
    from gdn.bench import packed_tables, prefill_tables, prologue_tables, tables

    found = {}
    for path in sorted((ROOT / "runtime/bench/results").glob("*.json")):
        report = json.loads(path.read_text())
        text, plots = [], {}
        for suite in tables.SUITES:
            keys = tables.groups(report, suite)
            if keys:
                text += [f"# {suite.capitalize()}: {report['device']}", ""]
                text += [tables.markdown(report, suite).rstrip(), ""]
            # A plot of one number of rows shows nothing.
            for key in (key for key, by_rows in keys.items() if len(by_rows) > 1):
                name = f"{path.stem}_{'_'.join(map(str, key))}.svg"
                plots[name] = tables.svg(report, key, suite)
                text.append(f"![{tables.heading(key)}]({name})")
        if table := prefill_tables.markdown(report):
            text += [f"# Prefill: {report['device']}", "", table.rstrip()]
        if table := packed_tables.markdown(report):
            text += [f"# Prefill of projections: {report['device']}", "", table.rstrip()]
        if table := prologue_tables.markdown(report):
            text += [f"# Stages of a prefill: {report['device']}", "", table.rstrip()]
        if table := tables.host(report):
            text += [f"# Host: {report['device']}", "", table]
        if text:
            found[path] = ("\n".join(text) + "\n", plots)
    return found


def numerics() -> dict[Path, str]:
    """Records of gdn.numerics_check to the text of their page."""
    sys.path.insert(0, str(ROOT / "python"))
    from gdn import numerics_tables

    records = sorted(OUT.glob("numerics-*.json"))
    return {path: numerics_tables.markdown(json.loads(path.read_text())) for path in records}


def sanitizers() -> dict[Path, str]:
    """Records of gdn.sanitizer_tables to the text of their page."""
    from gdn import sanitizer_tables

    records = sorted(OUT.glob("sanitizers-*.json"))
    return {path: sanitizer_tables.markdown(json.loads(path.read_text())) for path in records}


def pages() -> dict[Path, str]:
    made = {}
    index = ["# Generated reference", "", "Made by `tools/scripts/docs.py`; do not edit.", ""]
    for name, td in dialects().items():
        made[OUT / f"{name}.md"] = tblgen(td, "-gen-dialect-doc", f"-dialect={name}")
        index.append(f"- [the `{name}` dialect]({name}.md), from `{td.relative_to(ROOT)}`")
    for name, td in pass_files().items():
        made[OUT / f"{name}.md"] = tblgen(td, "-gen-pass-doc")
        index.append(f"- [{name}]({name}.md), from `{td.relative_to(ROOT)}`")
    for path, (text, plots) in measurements().items():
        made[OUT / f"{path.stem}.md"] = text
        made |= {OUT / name: plot for name, plot in plots.items()}
        index.append(f"- [{path.stem}]({path.stem}.md), from `{path.relative_to(ROOT)}`")
    made[OUT / "gpu-support.md"] = gpu_support.markdown(json.loads(gpu_support.RECORD.read_text()))
    index.append("- [heads that GPUs have kernels for](gpu-support.md), from `gpu-support.json`")
    rows = json.loads(presets.RECORD.read_text())
    made[OUT / "presets.md"] = presets.markdown(rows)
    made[ROOT / "README.md"] = presets.readme((ROOT / "README.md").read_text(), rows)
    index.append("- [what presets have on which target](presets.md), from `presets.json`")
    for path, text in numerics().items():
        made[path.with_suffix(".md")] = text
        index.append(f"- [errors of prefill]({path.stem}.md), from `{path.name}`")
    for path, text in sanitizers().items():
        made[path.with_suffix(".md")] = text
        index.append(f"- [what compute-sanitizer found]({path.stem}.md), from `{path.name}`")
    made[OUT / "README.md"] = "\n".join(index) + "\n"
    return made


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail on a difference")
    check = parser.parse_args().check

    made = pages()
    old = {*OUT.glob("*.md"), *OUT.glob("*.svg")}
    stale = sorted(p for p in made if not p.exists() or p.read_text() != made[p])
    gone = sorted(old - set(made))
    if check:
        for path in [*stale, *gone]:
            print(f"{path.relative_to(ROOT)} is stale; run tools/scripts/docs.py")
        print(f"docs: {len(made)} pages, {len(stale) + len(gone)} stale")
        return 1 if stale or gone else 0
    OUT.mkdir(parents=True, exist_ok=True)
    for path in stale:
        path.write_text(made[path])
        print(f"wrote {path.relative_to(ROOT)}")
    for path in gone:
        path.unlink()
        print(f"removed {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
