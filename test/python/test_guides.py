# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Guides do what they say: their commands run as they are printed, their programs after
them."""

from pathlib import Path

import guides
import pytest

# The loops have tests of their own; gdn.transformers_check and gdn.ops_check have PyTorch.
ELSEWHERE = ("loop", "transformers")
PAGES = sorted(
    page for page in guides.FOLDER.glob("*.md") if not any(word in page.stem for word in ELSEWHERE)
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_guide_runs_as_printed(page: Path, build_dir, gdn_compile, tmp_path, monkeypatch, capsys):
    sources = guides.Sources(tmp_path, build_dir, gdn_compile)
    monkeypatch.chdir(tmp_path)
    sources.run_all(page)
    for number, program in enumerate(guides.programs(page, "python")):
        exec(compile(program, f"{page.name}, program {number + 1}", "exec"), {})


def test_what_is_run_is_found():
    """A page whose commands or programs are not seen would pass."""
    counts = {page.stem: len(guides.commands(page)) for page in PAGES}
    assert counts["speculative-decoding"] == 5 and counts["debug-a-wrong-number"] == 5
    programs = [page.stem for page in PAGES if guides.programs(page, "python")]
    assert programs == [
        "block-tables",
        "compile-for-an-engine",
        "mixed-batches",
        "prebuilt-images",
        "speculative-decoding",
        "state-pools",
    ]
