# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every requirement has a test that exists, and the script that says so can fail."""

import subprocess
import sys
from pathlib import Path

import pytest

import requirements

ROOT = Path(__file__).resolve().parents[2]


def test_every_row_has_a_test():
    complaints, _ = requirements.judge(
        requirements.PAGE.read_text(), requirements.tracked(ROOT), ROOT
    )
    assert complaints == []


def test_as_a_program():
    script = ROOT / "tools/scripts/requirements.py"
    done = subprocess.run([sys.executable, script], text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{len(requirements.ROWS)} requirements, ")


@pytest.fixture
def tree(tmp_path):
    """Two test files of which rows may speak."""
    (tmp_path / "test/a").mkdir(parents=True)
    (tmp_path / "test/a/PoolTest.cpp").write_text("TEST_F(Pool, Frees) {\n}\n")
    (tmp_path / "test/a/test_pool.py").write_text("def test_frees(device):\n    pass\n")
    (tmp_path / "test/a/same.mlir").write_text("")
    return tmp_path


FILES = ["test/a/PoolTest.cpp", "test/a/test_pool.py", "test/a/same.mlir", "test/b/same.mlir"]


def judge(tree: Path, cell: str) -> tuple[list[str], list[str]]:
    """The judgement of row R5 alone."""
    page = "\n".join(f"| {row} | text | out of scope: for this test |" for row in requirements.ROWS)
    page = page.replace("| R5 | text | out of scope: for this test |", f"| R5 | text | {cell} |")
    return requirements.judge(page, FILES, tree)


@pytest.mark.parametrize(
    "cell",
    [
        "`PoolTest.cpp::Pool.Frees`",
        "`test/a/PoolTest.cpp::Pool.Frees`, `test_pool.py::test_frees`",
        "`test/a/same.mlir`",
        "out of scope: another platform's kernels",
    ],
)
def test_accepts(tree, cell):
    assert judge(tree, cell) == ([], [])


def test_counts_open_rows(tree):
    assert judge(tree, "open") == ([], ["R5"])


@pytest.mark.parametrize(
    "cell, complaint",
    [
        ("", "R5: expected tests, 'open' or 'out of scope: why'"),
        ("soon", "R5: expected tests, 'open' or 'out of scope: why'"),
        ("out of scope: no", "R5: expected a reason for being out of scope"),
        ("`PoolTest.cpp::Pool.Free`", "R5: test/a/PoolTest.cpp has no test Pool.Free"),
        ("`test_pool.py::test_free`", "R5: test/a/test_pool.py has no test test_free"),
        ("`Pool2Test.cpp::Pool.A`", "R5: Pool2Test.cpp: expected one file of that name, found 0"),
        ("`same.mlir`", "R5: same.mlir: expected one file of that name, found 2"),
        ("`PoolTest.cpp`", "R5: PoolTest.cpp: expected ::test behind it"),
    ],
)
def test_complains(tree, cell, complaint):
    assert judge(tree, cell) == ([complaint], [])


def test_complains_of_missing_and_strange_rows(tree):
    assert "R5: no row" in requirements.judge("| R4 | a | open |", FILES, tree)[0]
    assert "R55: not a known row" in requirements.judge("| R55 | a | open |", FILES, tree)[0]
    twice = requirements.judge("| R4 | a | open |\n| R4 | a | open |", FILES, tree)[0]
    assert "R4: more than one row" in twice
