# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The documentation is true: its IR parses, and every op and pass says what it must."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import docs

ROOT = Path(__file__).resolve().parents[2]
PASS_HEADINGS = ["Runs after", "Needs", "Leaves", "Numerics", "Fails"]
OP_HEADINGS = ["**Preconditions**", "```mlir"]


def mlir_blocks() -> list:
    """Every fenced mlir block of the documentation, with file:line as its id."""
    blocks = []
    for page in sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")]):
        text = page.read_text()
        for match in re.finditer(r"^ *```mlir\n(.*?)^ *```", text, re.MULTILINE | re.DOTALL):
            line = text.count("\n", 0, match.start()) + 2
            # `...` stands for what a reader need not see; such a block is prose.
            if "..." not in match[1]:
                where = f"{page.relative_to(ROOT)}:{line}"
                blocks.append(pytest.param(page, match[1], id=where))
    return blocks


@pytest.mark.parametrize("page, text", mlir_blocks())
def test_example_parses(tool, page, text):
    opt = {"gdn_tile": "gdn-tile-opt", "gdn_gpu": "gdn-gpu-opt"}.get(page.stem, "gdn-opt")
    done = tool(opt, "-", stdin=text)
    assert done.returncode == 0, done.stderr


def sections(page: str, kind: str) -> list:
    """(heading, text) of each op (`### `gdn.x``) or pass (`### `-flag``) of a page."""
    parts = re.split(rf"^### `({kind}[\w.-]+)`.*$", page, flags=re.MULTILINE)
    return list(zip(parts[1::2], parts[2::2], strict=True))


def all_sections(pages: dict[str, Path], kind: Callable[[str], str]) -> list:
    return [
        pytest.param(text, id=name)
        for page in pages
        for name, text in sections((docs.OUT / f"{page}.md").read_text(), kind(page))
        # A terminator only ends the example of the op around it.
        if "`Terminator`" not in text
    ]


@pytest.mark.parametrize("text", all_sections(docs.dialects(), lambda page: rf"{page}\."))
def test_op_is_documented(text):
    operations = [h for h in OP_HEADINGS if h not in text]
    assert not operations, f"lacks {operations}"


@pytest.mark.parametrize("text", all_sections(docs.pass_files(), lambda page: "-"))
def test_pass_is_documented(text):
    missing = [h for h in PASS_HEADINGS if f"**{h}" not in text]
    assert not missing, f"lacks {missing}"


def test_every_page_lists_something():
    for name in docs.dialects():
        assert sections((docs.OUT / f"{name}.md").read_text(), rf"{name}\.")
