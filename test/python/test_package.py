# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the wheel holds, installed from the build tree: gdn with its libraries inside, away from the
sources. And the sources after a build, from which gdn runs without being installed."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from conftest import ROOT

from gdn import call

USE = """
import numpy as np, tvm_ffi, gdn

runtime = gdn.Runtime()
kernel = runtime.device().kernel(runtime.image(IMAGE), "count")
counts = np.arange(3)
gdn.Call(kernel)(tvm_ffi.from_dlpack(counts))
print(runtime.path.parent, runtime.version, counts.tolist())
"""


@pytest.fixture
def sources(tmp_path) -> Path:
    """The sources before a build; nothing is installed."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "python/gdn", tmp_path / "python/gdn", ignore=ignored)
    (tmp_path / "include").symlink_to(ROOT / "include")
    return tmp_path


def use(folder: Path, image: Path, program: str = USE) -> subprocess.CompletedProcess:
    """Runs a program with the package in a folder, in an empty environment."""
    start = f"import sys; sys.path.insert(0, '.'); IMAGE = {str(image)!r}\n"
    command = [sys.executable, "-c", start + program]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, env={})


@pytest.fixture
def image(build_dir) -> Path:
    return build_dir / "test/Unit/runtime/test.gdnk"


def test_the_package_runs_on_its_own(package, image):
    """Isolated from PYTHONPATH and the sources; the library finds its own oneTBB."""
    done = use(package, image)
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(rf"{package}/gdn/lib \d+\.\d+\.\d+ \[1, 2, 3\]\n", done.stdout)
    assert (package / "gdn/lib/libtbb.so.12").exists()


def test_the_sources_run_after_a_build(sources, build_dir, image):
    """Without installing: the library and that of gdn.Call are those of build/release."""
    (sources / "build").mkdir()
    (sources / "build/release").symlink_to(build_dir)
    done = use(sources / "python", image)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{build_dir}/lib ")
    done = use(sources / "python", image, "import gdn; print(gdn.include_dir())")
    assert done.stdout == f"{sources}/include\n"


def test_without_a_build_the_error_says_where_libraries_were_looked_for(sources, image):
    done = use(sources / "python", image)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    for place in ("python/gdn/lib", "build/release/lib"):
        assert f"{sources}/{place}/libgdnrt.so.0" in last
    assert "./demo" in last and "pip install" in last


def test_without_the_library_of_calls_the_error_names_it(tmp_path):
    message = f"{tmp_path}/libgdn_tvm_ffi.so is not there: gdn.Call needs it"
    with pytest.raises(FileNotFoundError, match=message):
        call._functions(tmp_path)


def test_the_demo_builds_all_that_the_package_has():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (built,) = re.findall(
        r"^tools/scripts/build.sh release (.*)$", (ROOT / "demo").read_text(), re.M
    )
    assert set(settings["tool"]["scikit-build"]["build"]["targets"]) <= set(built.split())


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
    assert "{run,host,prefill,prologue,packed,prefix-cache,join,table,plot}" in done.stdout


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
