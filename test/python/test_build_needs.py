# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where things are missing that the runtime is built with, CMake names all of them at once, with
Debian's packages, which README.md lists and setup.sh installs."""

import re
import shutil
import subprocess

import pytest
from conftest import ROOT

PACKAGES = ["lld", "libtbb-dev", "flatbuffers-compiler", "libflatbuffers-dev", "libxxhash-dev"]
LLVM = f"/usr/lib/llvm-{(ROOT / 'LLVM_VERSION').read_text().strip()}/bin"


@pytest.fixture
def configure(tmp_path):
    """Configures what `pip install .` builds, in one folder."""

    def run(*options: str) -> subprocess.CompletedProcess[str]:
        command = ["cmake", "-S", ROOT, "-B", tmp_path, "-G", "Ninja"]
        command += [f"-DCMAKE_MAKE_PROGRAM={shutil.which('ninja')}"]
        command += [f"-DCMAKE_C_COMPILER={LLVM}/clang", f"-DCMAKE_CXX_COMPILER={LLVM}/clang++"]
        command += [f"-DGDN_BUILD_{what}=OFF" for what in ("COMPILER", "TESTS", "BENCHMARKS")]
        return subprocess.run([*command, *options], text=True, capture_output=True)

    return run


def test_all_that_is_missing_is_named(configure):
    hidden = "-DCMAKE_IGNORE_PATH=/usr/bin;/bin;/usr/include"
    without = ["-DGDN_LINKER=nowhere", "-DCMAKE_DISABLE_FIND_PACKAGE_TBB=ON", hidden]
    done = configure(*without)
    assert done.returncode == 1
    said = " ".join(done.stderr.split())
    assert f"On Debian: apt install {' '.join(PACKAGES)}" in said
    assert "the linker of -fuse-ld=nowhere" in said and "TBBConfig.cmake" in said
    # The same folder, once everything is there.
    found = ["-DGDN_LINKER=lld", "-DCMAKE_DISABLE_FIND_PACKAGE_TBB=OFF", "-DCMAKE_IGNORE_PATH="]
    done = configure(*found)
    assert done.returncode == 0, done.stderr


def test_one_that_is_missing_is_named_alone(configure):
    done = configure("-DCMAKE_DISABLE_FIND_PACKAGE_TBB=ON")
    assert "On Debian: apt install libtbb-dev\n" in done.stderr
    assert "linker" not in done.stderr


def test_readme_and_setup_have_the_packages():
    for path in ("README.md", "tools/scripts/setup.sh"):
        words = re.findall(r"[\w-]+", (ROOT / path).read_text())
        assert set(PACKAGES) <= set(words), path
