# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What pages and comments name is there: passes, ops and attributes; and tables of ops have all
of them. CHANGELOG.md, which is history, and generated pages are left out."""

import re
import subprocess
from pathlib import Path

import pytest

import docs

ROOT = Path(__file__).resolve().parents[2]
# What is no pass, pipeline or tool: packages, a program that pip installs, the example of "Add a
# pass", a column of measurements.
OTHERS = {
    "gdn-compiler",
    "gdn-images",
    "gdn-images-f16",
    "gdn-images-kda",
    "gdn-images-kda-f16",
    "gdn-images-deferred",
    "gdn-bench",
}
OTHERS |= {"gdn-merge-gates", "gdn-sm80"}


def tracked(*patterns: str) -> list[Path]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns]
    names = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=True).stdout
    return [ROOT / name for name in names.splitlines()]


CODE = [p for p in tracked("include", "lib", "tools") if p.suffix in (".h", ".cpp", ".td")]
PAGES = [
    path
    for path in tracked("docs/*.md", "README.md", "CONTRIBUTING.md")
    if path.exists() and path.parent.name != "generated"
]


def passes() -> set[str]:
    """Passes and pipelines of the code."""
    found: set[str] = set()
    for path in CODE:
        text = path.read_text()
        found |= set(re.findall(r': Pass<"([\w-]+)"', text))
        found |= set(re.findall(r'PassPipelineRegistration<[^>]*>\s*\w*\(\s*"([\w-]+)"', text))
    return found


def ops(dialect: str) -> list[str]:
    page = (docs.OUT / f"{dialect}.md").read_text()
    return re.findall(rf"^### `{dialect}\.(\w+)`", page, re.MULTILINE)


def test_passes_that_are_named_exist():
    known = passes() | OTHERS | {path.name for path in (ROOT / "tools").iterdir()}
    assert {"gdn-fuse", "gdn-gpu-to-llvm", "gdn-compile"} <= known
    name = re.compile(r"(?<![\w/.@-])-?((?:gdn|convert)-[a-z][a-z0-9-]*[a-z0-9])")
    wrong = [
        f"{path.relative_to(ROOT)}: {found}"
        for path in [*PAGES, *CODE]
        for found in name.findall(path.read_text())
        # Folders of headers and libraries are names as well: gdn-c/runtime.h.
        if found not in known and found != "gdn-c" and "tools/scripts" not in str(path)
    ]
    assert wrong == []


def test_ops_and_attributes_that_are_named_exist():
    known = {f"{dialect}.{op}" for dialect in docs.dialects() for op in ops(dialect)}
    quoted = re.compile(r'"(gdn(?:_tile|_gpu)?\.\w+)"')
    for path in CODE:
        known |= set(quoted.findall(path.read_text()))
    # Modules of the Python package, and what one writes without a dialect.
    name = re.compile(r"`(gdn_tile\.\w+|gdn_gpu\.\w+)(?=[ `=])")
    wrong = [
        f"{path.relative_to(ROOT)}: {found}"
        for path in PAGES
        for found in name.findall(path.read_text())
        if found not in known
    ]
    assert wrong == []


@pytest.mark.parametrize(
    "dialect, page", [("gdn", "README.md"), ("gdn_tile", "tile.md"), ("gdn_gpu", "gpu.md")]
)
def test_tables_have_every_op(dialect, page):
    rows = re.findall(r"^\| (`[^|]+) \|", (ROOT / "docs/spec" / page).read_text(), re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    terminators = {"yield"}
    assert sorted(set(ops(dialect)) - named - terminators) == []
