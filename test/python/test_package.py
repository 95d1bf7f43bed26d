# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the wheel holds, installed from the build tree: gdn with its libraries inside,
away from the sources."""

import re
import shutil
import subprocess
import sys
import tomllib

import pytest
from conftest import ROOT

USE = """
import numpy as np, tvm_ffi, gdn
from pathlib import Path

runtime = gdn.Runtime()
assert runtime.path.is_relative_to(Path.cwd()), runtime.path
kernel = runtime.device().kernel(runtime.image("test.gdnk"), "count")
counts = np.arange(3)
gdn.Call(kernel)(tvm_ffi.from_dlpack(counts))
print(runtime.version, counts.tolist())
"""


@pytest.fixture(scope="module")
def package(build_dir, tmp_path_factory):
    folder = tmp_path_factory.mktemp("package")
    command = ["cmake", "--install", build_dir, "--component", "python", "--prefix", folder]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "python/gdn", folder / "gdn", dirs_exist_ok=True, ignore=ignored)
    shutil.copy(build_dir / "test/Unit/runtime/test.gdnk", folder)
    return folder


def test_the_package_runs_on_its_own(package):
    """Isolated from PYTHONPATH and the sources; the library finds its own oneTBB."""
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, '.')\n{USE}"]
    done = subprocess.run(command, cwd=package, capture_output=True, text=True, env={})
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"\d+\.\d+\.\d+ \[1, 2, 3\]\n", done.stdout)
    assert (package / "gdn/lib/libtbb.so.12").exists()


def test_importing_gdn_loads_neither_torch_nor_the_library(package):
    command = "import sys, gdn; print('torch' in sys.modules, 'tvm_ffi' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", command], cwd=package, capture_output=True, text=True, env={}
    )
    assert done.stdout == "False False\n", done.stderr


def test_the_benchmarks_are_a_program(package):
    """What pip makes of the entry point, with the package alone: its help names each way."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    module, function = settings["project"]["scripts"]["gdn-bench"].split(":")
    program = f"import sys; from {module} import {function}; sys.exit({function}())"
    command = [sys.executable, "-c", program, "--help"]
    done = subprocess.run(command, cwd=package, capture_output=True, text=True, env={})
    assert done.returncode == 0, done.stderr
    assert "gdn-bench" in done.stdout
    assert "{run,host,prefill,prologue,packed,join,table,plot}" in done.stdout


def test_the_version_is_that_of_the_build():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    pattern = settings["tool"]["scikit-build"]["metadata"]["version"]["regex"]
    version = re.search(pattern, (ROOT / "CMakeLists.txt").read_text())
    header = (ROOT / "include/gdn-c/status.h").read_text()
    numbers = [
        re.search(rf"#define GDNRT_VERSION_{part} (\d+)", header).group(1)
        for part in ("MAJOR", "MINOR", "PATCH")
    ]
    assert version["value"] == ".".join(numbers)
