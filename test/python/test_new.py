# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What new.py starts fits the real tree: tablegen and FileCheck accept it."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import docs

ROOT = Path(__file__).resolve().parents[2]
MLIR_TBLGEN = docs.LLVM / "bin/mlir-tblgen"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the folders that new.py changes."""
    for folder in ["include", "lib"]:
        shutil.copytree(ROOT / folder, tmp_path / folder)
    return tmp_path


def new(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    script = ROOT / "tools/scripts/new.py"
    command = [sys.executable, str(script), "--root", str(tree), *arguments]
    return subprocess.run(command, text=True, capture_output=True)


def create(tree: Path, *arguments: str) -> None:
    done = new(tree, *arguments)
    assert done.returncode == 0, done.stderr
    made = re.findall(r"^(?:created|changed) (\S+)$", done.stdout, re.MULTILINE)
    assert made
    for path in made:
        left = re.findall(
            r"@(?:DIALECT|Camel|UPPER|name|mnemonic|opt|flag|test|passes)@",
            (tree / path).read_text(),
        )
        assert not left, f"{path}: {left}"


def tblgen(tree: Path, td: str, *arguments: str) -> str:
    includes = ["-I", str(tree / "include"), "-I", str(docs.LLVM / "include")]
    command = [str(MLIR_TBLGEN), *arguments, *includes, str(tree / td)]
    done = subprocess.run(command, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "arguments, td, header, name",
    [
        (["gdn.scratch_op", "--theme", "TokenOps"], "GDN/IR/GDNOps.td", "gdn", "ScratchOp"),
        (["gdn_tile.scratch_op"], "Tile/IR/TileOps.td", "gdn_tile", "ScratchOp"),
        (["gdn_gpu.scratch_op"], "GPU/IR/GPUOps.td", "gdn_gpu", "ScratchOp"),
    ],
    ids=["gdn", "gdn_tile", "gdn_gpu"],
)
def test_op(tree, arguments, td, header, name):
    create(tree, "op", *arguments)
    assert f"class {name}" in tblgen(tree, f"include/gdn/Dialect/{td}", "-gen-op-decls")
    page = tblgen(tree, f"include/gdn/Dialect/{td}", "-gen-dialect-doc", f"-dialect={header}")
    assert f"{header}.scratch_op" in page


def test_pass(tree):
    create(tree, "pass", "gdn-scratch-work")
    td = "include/gdn/Dialect/GDN/Transforms/Passes.td"
    assert "GEN_PASS_DEF_SCRATCHWORK" in tblgen(tree, td, "-gen-pass-decls", "-name=X")
    listing = (tree / "lib/Dialect/GDN/Transforms/CMakeLists.txt").read_text()
    assert listing.count("ScratchWork.cpp") == 1
    assert listing.count("(") == listing.count(")")


def test_conversion(tree):
    create(tree, "conversion", "Tile", "Scratch")
    decls = tblgen(tree, "include/gdn/Conversion/Passes.td", "-gen-pass-decls", "-name=X")
    assert "convert-tile-to-scratch" in decls
    assert "add_subdirectory(Conversion/TileToScratch)" in (tree / "lib/CMakeLists.txt").read_text()


@pytest.mark.parametrize(
    "arguments",
    [["op", "Nonsense"], ["op", "llvm.add"], ["pass", "Nonsense"]],
    ids=["no-dialect", "foreign-dialect", "pass-name"],
)
def test_refuses_bad_names(tree, arguments):
    done = new(tree, *arguments)
    assert done.returncode != 0
    assert "new: expects" in done.stderr


def test_refuses_to_overwrite(tree):
    create(tree, "conversion", "Tile", "Scratch")
    done = new(tree, "conversion", "Tile", "Scratch")
    assert done.returncode != 0
    assert "exists" in done.stderr
