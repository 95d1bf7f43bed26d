# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests with the mark `once` are not repeated while what decides them is what it was when they
passed: Python less other tests, the library of the runtime, files that the mark names by patterns,
and with `compiler="cpu"` what the compiler has for entries of CPUs. `./check --fresh` and
`--full` forget what has passed."""

import functools
import re
from collections.abc import Generator
from pathlib import Path

import pytest

import run_once

ROOT = Path(__file__).resolve().parents[2]
# What makes kernels of GPUs alone, of the compiler; test_source_hashes.py follows the includes.
OF_GPUS = ["lib/Schedule", "lib/Conversion/GPUToNVVM", "lib/Dialect/GPU", "include/gdn/Dialect/GPU"]
OF_GPUS += [
    f"lib/Pipelines/{name}"
    for name in ("CompileGpu", "DecodePolicy", "GpuPipeline", "GpuProgramsToLlvm", "GpuToLlvm")
]
OF_GPUS += ["lib/Pipelines/PrefillPolicy"]
COMPILER = ["lib", "include", "tools/gdn-compile", "tools/gdn-run", "tools/cmake"]
HAS_PASSED = pytest.StashKey[Path]()


@functools.cache
def sources_of_python() -> list[Path]:
    """What tests may import of this tree, but for each other."""
    folders = ("python", "test/python", "tools/scripts")
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    return sorted(path for path in paths if not path.name.startswith("test_"))


@functools.cache
def tests_in(path: Path) -> frozenset[Path]:
    """A file of tests, and those that it imports."""
    names = re.findall(r"^(?:from|import) (test_\w+)", path.read_text(), re.MULTILINE)
    return frozenset({path}).union(*(tests_in(path.parent / f"{name}.py") for name in names))


@functools.cache
def sources_for_cpus() -> list[Path]:
    """What may decide an image for CPUs."""
    paths = [path for folder in COMPILER for path in (ROOT / folder).rglob("*")]
    paths += [ROOT / "LLVM_VERSION", ROOT / "CMakeLists.txt", ROOT / "CMakePresets.json"]
    of_gpus = tuple(f"{ROOT}/{name}" for name in OF_GPUS)
    return sorted(path for path in paths if path.is_file() and not str(path).startswith(of_gpus))


@functools.cache
def hash_of(test: Path, patterns: tuple[str, ...], compiler: str) -> str:
    files = sorted(path for pattern in patterns for path in ROOT.glob(pattern))
    files += sorted(tests_in(test))
    assert compiler in ("none", "cpu"), compiler
    files += sources_for_cpus() if compiler == "cpu" else []
    return run_once.key_of([*patterns, compiler], [*files, *sources_of_python()])


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Says that a test has run which has passed before."""
    once = pyfuncitem.get_closest_marker("once")
    option = pyfuncitem.config.getoption
    build = option("--build-dir").resolve()
    cache = run_once.image_cache(build)
    # Kernels of GPUs are no part of the hash.
    on_gpu = "ptx_driver" in pyfuncitem.fixturenames
    if once is None or cache is None or on_gpu or option("--sanitized"):
        return None
    names = ("--long", "--examples", "--case", "hypothesis_seed")
    words = [pyfuncitem.nodeid, *(f"{name}={option(name, None)}" for name in names)]
    words += [hash_of(pyfuncitem.path, once.args, **{"compiler": "none", **once.kwargs})]
    key = run_once.key_of(words, [build / "lib/libgdnrt.so"])
    mark = pyfuncitem.stash[HAS_PASSED] = cache / f"{run_once.PREFIX}{key}"
    return True if run_once.kept(mark) else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if call.when == "call" and report.passed and HAS_PASSED in item.stash:
        run_once.keep(item.stash[HAS_PASSED], True)
    return report
