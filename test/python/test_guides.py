# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Guides do what they say, with what they show alone: their commands run as they are printed, their
programs after them. A program whose packages are not installed is left out."""

import os
import subprocess
from pathlib import Path

import guides
import pytest

# The loops have tests of their own.
PAGES = sorted(page for page in guides.FOLDER.glob("*.md") if "loop" not in page.stem)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_guide_runs_as_printed(page, build_dir, gdn_compile, package, tmp_path, unsanitized):
    reader = guides.Reader(tmp_path, build_dir, gdn_compile, package)
    reader.run_commands(page)
    programs = guides.programs(page, "python")
    lacks = {name for program in programs for name in guides.missing(program)}
    for program in programs:
        if not guides.missing(program):
            reader.python(program)
    if lacks:
        pytest.skip(f"some programs need {', '.join(sorted(lacks))}")


def test_shell_blocks_run_as_printed(build_dir, ptx_driver, tmp_path):
    """Those of the page on wrong numbers that need the compiler's programs alone, in its order and
    in one folder: later ones read files of those ahead."""
    page = guides.FOLDER / "debug-a-wrong-number.md"
    text = "".join(guides.programs(page, "sh")).replace("\\\n", " ")
    commands = [line for line in text.splitlines() if line.startswith(("gdn-", "export "))]
    assert len(commands) >= 12
    (tmp_path / "build").mkdir()
    (tmp_path / "build/release").symlink_to(build_dir)
    path = f"{build_dir}/bin:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-exc", "\n".join(commands)],
        cwd=tmp_path,
        env=os.environ | {"PATH": path},
        text=True,
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "st.global" in (tmp_path / "kernels.ptx").read_text()


def test_what_is_run_is_found():
    """A page whose commands or programs are not seen would pass."""
    counts = {page.stem: len(guides.commands(page)) for page in PAGES}
    assert counts["speculative-decoding"] == 5 and counts["debug-a-wrong-number"] == 5
    programs = {page.stem for page in PAGES if guides.programs(page, "python")}
    assert programs >= {
        "block-tables",
        "compile-for-an-engine",
        "context-parallel",
        "host-tier",
        "mixed-batches",
        "prebuilt-images",
        "prefix-cache",
        "speculative-decoding",
        "state-pools",
    }


def test_packages_that_are_missing_are_seen():
    program = "import gdn.integrations.nowhere\nfrom gdn import Runtime\nimport numpy as np\n"
    assert guides.missing(program) == ["nowhere"]


@pytest.mark.parametrize("page", sorted(guides.FOLDER.glob("*.md")), ids=lambda page: page.stem)
def test_programs_use_what_is_installed(page: Path):
    """No program or command reads a file of the sources; what is done in them says so."""
    if page.stem in ("architecture", "debug-a-wrong-number"):
        pytest.skip("for people who work on the sources")
    shown = "\n".join([*guides.commands(page), *guides.programs(page, "python")])
    assert "build/" not in shown and "runtime/" not in shown
