# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shared fixtures: where the sources and the built tools are, and the driver that runs PTX on
the CPU. With --sanitized, what would load the library into Python is skipped."""

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from passed_before import (  # hooks of pytest
    pytest_pyfunc_call,
    pytest_runtest_makereport,
    sources_of_python,
)

import run_once

__all__ = ["pytest_pyfunc_call", "pytest_runtest_makereport"]

ROOT = Path(__file__).resolve().parents[2]

# All that these have needs PyTorch, or FLA as well. A module that skips itself is a case of every
# shard, which tools/scripts/one_run.py refuses.
collect_ignore = []
if importlib.util.find_spec("torch") is None:
    collect_ignore += ["test_channel_inputs.py", "test_sglang_layer.py"]
    collect_ignore += ["test_known_calls.py", "test_known_pool_calls.py", "test_ops.py"]
    collect_ignore += ["test_torch_layers.py"]
    collect_ignore += ["test_vllm_files.py", "test_vllm_kda_plugin.py", "test_vllm_plugin.py"]
if any(importlib.util.find_spec(name) is None for name in ("torch", "fla")):
    collect_ignore += ["test_fla_backend.py"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--build-dir",
        type=Path,
        default=ROOT / "build/release",
        help="build tree whose tools are tested (default: build/release)",
    )
    parser.addoption(
        "--sanitized",
        action="store_true",
        help="the build tree has sanitizers: its library cannot be loaded into Python",
    )
    parser.addoption(
        "--long",
        action="store_true",
        help="all chunk lengths in random calls, not a sample of them",
    )
    group = parser.getgroup("chunk form", "random calls in test_chunk_property.py")
    group.addoption("--examples", type=int, default=250, help="how many (default: 250)")
    group.addoption("--case", default="", help="a call that it printed, to run it again")


@pytest.fixture(scope="session", autouse=True)
def sanitized(pytestconfig: pytest.Config) -> Iterator[bool]:
    """Whether the build tree has sanitizers, whose library has to be loaded before all
    others."""
    if not pytestconfig.getoption("--sanitized"):
        yield False
        return

    def skip(_path: object) -> None:
        pytest.skip("Python cannot load a library with sanitizers")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gdn._abi.load", skip)
        yield True


@pytest.fixture(scope="session")
def unsanitized(sanitized: bool) -> None:
    """For tests whose programs or processes of Python take the library without a sanitizer."""
    if sanitized:
        pytest.skip("a program without sanitizers cannot take a library with them")


@pytest.fixture(scope="session")
def ptx_driver(build_dir: Path, sanitized: bool) -> Path:
    """The folder of the driver that runs PTX on the CPU, for programs that load the library."""
    folder = build_dir / "test/PTX"
    if sanitized:
        pytest.skip("Python cannot load a library with sanitizers")
    if not (folder / "libcuda.so.1").exists():
        pytest.skip("the target gdn-ptx-driver is not built")
    return folder


@pytest.fixture(scope="session")
def python_sources() -> list[Path]:
    """What a program of Python that tests start may import of this tree: no test."""
    return sources_of_python()


@pytest.fixture
def on_ptx_driver(
    build_dir: Path, ptx_driver: Path, python_sources: list[Path]
) -> Callable[..., str]:
    """Runs a program of Python whose library finds that driver; what it prints. Arguments that
    are a Path are files that it reads, or writes if they are not there; those by name are
    variables of the environment. A run that has passed is not repeated while the words, these
    files, the libraries and the sources are the same."""
    cache = run_once.image_cache(build_dir)
    libraries = [ptx_driver / "libcuda.so.1", build_dir / "lib/libgdnrt.so"]

    def run(*arguments: object, **variables: str) -> str:
        folders = [ROOT / folder for folder in ("python", "test/python", "tools/scripts")]
        paths = {"PYTHONPATH": ":".join(map(str, folders)), "LD_LIBRARY_PATH": str(ptx_driver)}
        paths |= variables

        def start() -> str:
            command = [sys.executable, *map(str, arguments)]
            done = subprocess.run(command, env=os.environ | paths, text=True, capture_output=True)
            assert done.returncode == 0, done.stdout + done.stderr
            return done.stdout

        if not cache:
            return start()
        read = [path for path in arguments if isinstance(path, Path) and path.is_file()]
        written = [path for path in arguments if isinstance(path, Path) and not path.exists()]
        words = [path.name if isinstance(path, Path) else str(path) for path in arguments]
        words += [f"{name}={value}" for name, value in sorted(variables.items())]
        key = run_once.key_of(words, [*libraries, *read, *python_sources])
        return run_once.remembered(cache / f"{run_once.PREFIX}{key}", start, written)

    return run


@pytest.fixture(scope="session")
def build_dir(pytestconfig: pytest.Config) -> Path:
    return pytestconfig.getoption("--build-dir").resolve()


@pytest.fixture(scope="session")
def package(build_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package gdn as pip installs it. Nothing knows where it was built."""
    folder = tmp_path_factory.mktemp("package")
    before = folder / "before"
    command = ["cmake", "--install", build_dir, "--component", "python", "--prefix", before]
    subprocess.run(command, check=True, capture_output=True)
    shutil.move(before / "gdn", folder / "gdn")
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "python/gdn", folder / "gdn", dirs_exist_ok=True, ignore=ignored)
    return folder


@pytest.fixture(scope="session")
def gdn_compile(build_dir: Path) -> list[str]:
    """The command that compiles, through the cache of images that the build uses."""
    folder = run_once.image_cache(build_dir)
    cache = [f"--cache={folder}"] if folder else []
    return [str(build_dir / "bin/gdn-compile"), *cache]


@pytest.fixture(scope="session")
def tool(
    build_dir: Path, gdn_compile: list[str]
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a built tool: tool("gdn-opt", args..., stdin=text). A check by gdn-run that has passed
    is not repeated while gdn-run, the runtime and the files, each a Path, are the same."""
    cache = run_once.image_cache(build_dir)

    def start(command: list[str], stdin: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, input=stdin, text=True, capture_output=True, timeout=300)

    def run(name: str, *arguments: object, stdin: str = "") -> subprocess.CompletedProcess[str]:
        program = gdn_compile if name == "gdn-compile" else [str(build_dir / "bin" / name)]
        command = [*program, *map(str, arguments)]
        words = [word.name if isinstance(word, Path) else str(word) for word in arguments]
        paths = [word for word in arguments if isinstance(word, Path)]
        # Words with paths are files that it reads or writes; another driver may run kernels.
        plain = not any("/" in word or "cuda" in word for word in words)
        plain = plain and all(path.is_file() for path in paths)
        if not (cache and name == "gdn-run" and "--check" in words and plain and not stdin):
            return start(command, stdin)
        files = [build_dir / "bin/gdn-run", build_dir / "lib/libgdnrt.so", *paths]
        mark = cache / f"{run_once.PREFIX}{run_once.key_of(words, files)}"
        if said := run_once.kept(mark):
            return subprocess.CompletedProcess(command, 0, *said)
        done = start(command, stdin)
        if done.returncode == 0:
            run_once.keep(mark, [done.stdout, done.stderr])
        return done

    return run


# gdn-compile with the cache of the build in place of its caller's.
WITH_CACHE = """#!/bin/sh
for word; do
  shift
  case $word in --cache=*) ;; *) set -- "$@" "$word" ;; esac
done
exec '{program}' "$@" '--cache={cache}'
"""


@pytest.fixture(scope="module")
def runtime(build_dir):
    """The runtime of the build."""
    from gdn import Runtime

    return Runtime(build_dir / "lib/libgdnrt.so")


@pytest.fixture(scope="module")
def compiler_on_path(build_dir, tmp_path_factory):
    """gdn-compile on the PATH, and a cache of the module's own for images. What is compiled
    comes from the cache that the build uses."""
    tools = tmp_path_factory.mktemp("tools")
    if cache := run_once.image_cache(build_dir):
        program = tools / "gdn-compile"
        program.write_text(WITH_CACHE.format(program=build_dir / "bin/gdn-compile", cache=cache))
        program.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{tools}:{build_dir / 'bin'}:{os.environ['PATH']}")
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield
