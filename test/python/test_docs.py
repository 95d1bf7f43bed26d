# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The documentation is true: its IR parses, and every op and pass says what it must."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import docs
import measured_pages

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


def all_sections(pages: dict[str, str], kind: Callable[[str], str]) -> list:
    return [
        pytest.param(text, id=name)
        for page, whole in pages.items()
        for name, text in sections(whole, kind(page))
        # A terminator only ends the example of the op around it.
        if "`Terminator`" not in text
    ]


DIALECTS = {name: (docs.OUT / f"{name}.md").read_text() for name in docs.dialects()}


@pytest.mark.parametrize("text", all_sections(DIALECTS, lambda page: rf"{page}\."))
def test_op_is_documented(text):
    operations = [h for h in OP_HEADINGS if h not in text]
    assert not operations, f"lacks {operations}"


@pytest.mark.parametrize("text", all_sections(docs.of_passes(), lambda page: "-"))
def test_pass_is_documented(text):
    missing = [h for h in PASS_HEADINGS if f"**{h}" not in text]
    assert not missing, f"lacks {missing}"


def test_every_page_lists_something():
    for name, page in DIALECTS.items():
        assert sections(page, rf"{name}\.")
    for name, page in docs.of_passes().items():
        assert sections(page, "-"), name


def test_reports_that_belong_together_share_a_page():
    names = ("decode-h200", "verify-by-hand-h100", "packed-h200", "prefill-h200")
    assert [measured_pages.page_of(name) for name in names] == list(names)
    assert measured_pages.page_of("prefill-64x128-bf16-h200") == "prefill-h200"
    assert measured_pages.page_of("packed-64x128-bf16-h200") == "packed-h200"
    assert {measured_pages.page_of(f"{kind}-h200") for kind in ("host", "compile", "cpu")} == {
        "host"
    }


def test_every_report_with_a_table_is_on_a_page():
    shared = [page for page in measured_pages.pages() if len(page.reports) > 1]
    assert [page.name for page in shared] == ["host", "packed-h200", "prefill-h200"]
    for page in shared:
        # Design pages link to these.
        assert [f"## {path.stem}" for path in page.reports] == re.findall("^##.*", page.text, re.M)
    on_pages = {path.stem for page in measured_pages.pages() for path in page.reports}
    every = {path.stem for path in measured_pages.RESULTS.glob("*.json")}
    tables_elsewhere = {
        "many-gpus-h200",
        "packed-64x64-variants-h200",
        "prefill-in-parts-h100",
        "prefix-cache",
        "sglang-kda-h200",
        "sglang-kda-layer-h200",
        "sglang-kda-verify-h200",
        "sglang-slots-h200",
        "single-ops-h200",
        "state-moves-device-h200",
        "state-moves-h100",
        "state-moves-h200",
        "state-moves-joined-h200",
        "state-moves-shapes-h200",
        "state-order-h200",
        "vllm-layer-forms-h200",
        "vllm-layer-h200",
        "vllm-layer-kda-h200",
        "vllm-layer-kda-verify-h200",
    }
    assert every - on_pages == {"cpu-forms-xeon-2x2700", "first-call-h100"} | tables_elsewhere


def test_a_stale_picture_is_noticed(tmp_path):
    page = next(page for page in measured_pages.pages() if page.name == "packed-h200")
    kept, again = docs.OUT / "packed-h200.svg", tmp_path / "again.svg"
    assert page.is_drawn(kept) and not page.is_drawn(again)
    page.draw(again)
    assert again.read_text() == kept.read_text(), "drawing is not repeatable"
    page.picture.panels[0].curves["gdn"][0] = (0, 1.1)
    try:
        assert not page.is_drawn(kept)
    finally:
        measured_pages.pages.cache_clear()
