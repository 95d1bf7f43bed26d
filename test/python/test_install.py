# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What cmake --install gives, and what the Python package has of it: programs in C are built with
find_package and with pkg-config, in a folder that was moved, and run."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "test/CAPI/load_bind_run.c"
VERSION = re.search(r"project\(gdn VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
MINOR = VERSION.rpartition(".")[0]
PROJECT = """cmake_minimum_required(VERSION 3.25)
project(user C)
find_package(gdn {version} REQUIRED)
add_executable(user {source})
target_link_libraries(user PRIVATE gdn::gdnrt)
"""


def run(*command: object, **options) -> str:
    done = subprocess.run(
        [str(c) for c in command], text=True, capture_output=True, check=False, **options
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def installed(request, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("installed")
    build = Path(request.config.getoption("--build-dir"))
    run("cmake", "--install", build, "--prefix", folder / "before")
    # Nothing knows where it was.
    return Path(shutil.move(folder / "before", folder / "after"))


@pytest.fixture(scope="module")
def image(request, unsanitized) -> Path:
    """For a program that is linked with the installed library."""
    found = Path(request.config.getoption("--build-dir")) / "test/Unit/runtime/test.gdnk"
    return found.resolve()


def test_what_is_installed(installed):
    files = {str(p.relative_to(installed)) for p in installed.rglob("*") if not p.is_dir()}
    headers = {f"include/gdn-c/{h.name}" for h in (ROOT / "include/gdn-c").glob("*.h")}
    assert headers <= files
    rest = {
        "lib/libgdnrt.so",
        "lib/libgdnrt.so.0",
        f"lib/libgdnrt.so.{VERSION}",
        "lib/cmake/gdn/gdnConfig.cmake",
        "lib/cmake/gdn/gdnConfigVersion.cmake",
        "lib/pkgconfig/gdn.pc",
    }
    assert files == headers | rest
    for name in rest:
        if name.endswith((".cmake", ".pc")):
            assert str(ROOT) not in (installed / name).read_text()


def configure(
    installed: Path, folder: Path, version: str, where: str = "CMAKE_PREFIX_PATH"
) -> subprocess.CompletedProcess:
    (folder / "CMakeLists.txt").write_text(PROJECT.format(version=version, source=PROGRAM))
    command = ["cmake", "-S", folder, "-B", folder / "build", f"-D{where}={installed}"]
    return subprocess.run(command, text=True, capture_output=True)


def test_find_package(installed, image, tmp_path):
    done = configure(installed, tmp_path, MINOR)
    assert done.returncode == 0, done.stderr
    run("cmake", "--build", tmp_path / "build")
    assert "ok" in run(tmp_path / "build/user", image)


def test_find_package_of_another_version(installed, tmp_path):
    done = configure(installed, tmp_path, "0.1")
    assert done.returncode != 0
    assert 'compatible with requested version "0.1"' in " ".join(done.stderr.split())


def test_pkg_config(installed, image, tmp_path):
    env = os.environ | {"PKG_CONFIG_PATH": str(installed / "lib/pkgconfig")}
    flags = run("pkg-config", "--cflags", "--libs", "gdn", env=env).split()
    assert run("pkg-config", "--modversion", "gdn", env=env).strip() == VERSION
    program = tmp_path / "user"
    run("cc", "-std=c11", PROGRAM, "-o", program, *flags, f"-Wl,-rpath,{installed / 'lib'}")
    assert "ok" in run(program, image)


def ask(package: Path, option: str) -> str:
    """What the installed package prints, in a process that has not seen the sources."""
    command = [sys.executable, "-m", "gdn", option]
    return run(*command, cwd=package, env={"PYTHONPATH": str(package)}).strip()


@pytest.mark.parametrize("where", ["gdn_DIR", "CMAKE_PREFIX_PATH", "gdn_ROOT"])
def test_find_package_in_the_python_package(package, image, tmp_path, where):
    """The last is what scikit-build-core sets, by the entry point cmake.root."""
    found = package / "gdn" if where == "gdn_ROOT" else ask(package, "--cmake-dir")
    done = configure(found, tmp_path, MINOR, where)
    assert done.returncode == 0, done.stderr
    run("cmake", "--build", tmp_path / "build")
    assert "ok" in run(tmp_path / "build/user", image)


def test_pkg_config_in_the_python_package(package, image, tmp_path):
    env = os.environ | {"PKG_CONFIG_PATH": ask(package, "--pkgconfig-dir")}
    flags = run("pkg-config", "--cflags", "--libs", "gdn", env=env).split()
    library, program = Path(ask(package, "--library")), tmp_path / "user"
    run("cc", "-std=c11", PROGRAM, "-o", program, *flags, f"-Wl,-rpath,{library.parent}")
    assert "ok" in run(program, image)


def test_sources_have_no_folders_for_c():
    command = [sys.executable, "-m", "gdn", "--cmake-dir"]
    env = {"PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run(command, env=env, text=True, capture_output=True)
    assert done.returncode == 1
    assert "gdn is not installed" in done.stderr and "Traceback" not in done.stderr
