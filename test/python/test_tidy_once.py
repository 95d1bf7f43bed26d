# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""When clang-tidy looks at a file again."""

import json

import pytest

import tidy
from tidy_once import CleanFiles


def tree(root, defines=""):
    """A file that includes another, and the command that compiles it."""
    (root / "include").mkdir(parents=True)
    (root / "include/a.h").write_text("int a();\n")
    (root / "a.cpp").write_text('#include "a.h"\nint a() { return 1; }\n')
    (root / ".clang-tidy").write_text("Checks: '-*,bugprone-*'\n")
    command = f"{tidy.LLVM_BIN}/clang++ {defines} -I{root}/include -c {root}/a.cpp"
    entry = {"directory": str(root), "file": str(root / "a.cpp"), "command": command}
    (root / "compile_commands.json").write_text(json.dumps([entry]))
    return root


def clean(root, marks):
    return CleanFiles(marks, root, tidy.LLVM_BIN, root=root)


@pytest.fixture
def kept(tmp_path):
    root = tree(tmp_path / "one")
    found = clean(root, tmp_path / "marks")
    assert not found.are_clean(root / "a.cpp")
    found.keep([root / "a.cpp"])
    return root


def test_the_same_contents_elsewhere(kept, tmp_path):
    assert clean(kept, tmp_path / "marks").are_clean(kept / "a.cpp")
    other = tree(tmp_path / "two")
    assert clean(other, tmp_path / "marks").are_clean(other / "a.cpp")


@pytest.mark.parametrize("changed", ["a.cpp", "include/a.h", ".clang-tidy", "command"])
def test_what_is_looked_at_again(kept, tmp_path, changed):
    other = tree(tmp_path / "two", "-DX" if changed == "command" else "")
    if changed != "command":
        (other / changed).write_text((other / changed).read_text() + "\n")
    assert not clean(other, tmp_path / "marks").are_clean(other / "a.cpp")


def test_a_file_that_the_database_lacks(kept, tmp_path):
    assert not clean(kept, tmp_path / "marks").are_clean(kept / "b.cpp")
