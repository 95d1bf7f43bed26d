# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests with the mark `once`: what is not repeated, and what is."""

import passed_before
import pytest

import run_once

CONFTEST = """
from passed_before import pytest_pyfunc_call, pytest_runtest_makereport
import pathlib

def pytest_addoption(parser):
    parser.addoption("--build-dir", type=pathlib.Path)
    parser.addoption("--sanitized", action="store_true")
    for name in ("--long", "--examples", "--case"):
        parser.addoption(name)

def pytest_configure(config):
    config.addinivalue_line("markers", "once: see above")
"""
TESTS = """
import test_imported
import os, pathlib, pytest

def note(name):
    with open("ran", "a") as ran:
        ran.write(name + " ")

@pytest.fixture
def ptx_driver():
    pass

@pytest.mark.once
def test_alone():
    note("alone")

@pytest.mark.once("README.md")
def test_reads():
    note("reads")

@pytest.mark.once(compiler="cpu")
def test_cpu():
    note("cpu")

@pytest.mark.once(compiler="cpu")
def test_gpu(ptx_driver):
    note("gpu")

@pytest.mark.once
def test_fails():
    note("fails")
    assert "PASS" in os.environ

def test_each():
    note("each")
"""


@pytest.fixture
def run(tmp_path, pytester, monkeypatch):
    """Runs those tests on a tree made up here; the names of what has run, and how many passed."""
    tree, build = tmp_path / "tree", tmp_path / "build"
    files = ["README.md", "lib/Schedule/A.cpp", "lib/Model/B.cpp", "python/c.py"]
    files += ["LLVM_VERSION", "CMakeLists.txt", "CMakePresets.json", "test/python/test_other.py"]
    for name in files:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(name)
    (build / "lib").mkdir(parents=True)
    (build / "lib/libgdnrt.so").write_text("library")
    (build / "CMakeCache.txt").write_text(f"GDN_IMAGE_CACHE:PATH={tmp_path}/cache\n")
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(test_it=TESTS, test_imported="")
    monkeypatch.setattr(passed_before, "ROOT", tree)
    ran = pytester.path / "ran"

    def forget_files() -> None:
        for name in ("sources_of_python", "sources_for_cpus", "tests_in", "hash_of"):
            getattr(passed_before, name).cache_clear()

    def run(*options: str) -> tuple[list[str], dict[str, int]]:
        ran.write_text("")
        forget_files()
        done = pytester.runpytest_inprocess(
            "-q", "-p", "no:cacheprovider", f"--build-dir={build}", *options
        )
        return ran.read_text().split(), done.parseoutcomes()

    run.tree, run.build, run.work = tree, build, pytester.path
    yield run
    forget_files()


def test_what_has_passed_is_not_repeated(run):
    ran, said = run()
    assert ran == ["alone", "reads", "cpu", "gpu", "fails", "each"]
    assert said == {"failed": 1, "passed": 5}
    ran, said = run()
    # A kernel of a GPU may be another, and what has failed has not passed.
    assert ran == ["gpu", "fails", "each"]
    assert said == {"failed": 1, "passed": 5}
    assert run("--sanitized")[0] == ["alone", "reads", "cpu", "gpu", "fails", "each"]
    run_once.forget(run.build)
    assert run()[0] == ["alone", "reads", "cpu", "gpu", "fails", "each"]


def test_what_changes_repeats_what_it_may_change(run):
    run()
    changes = {
        ("README.md", "lib/Schedule/A.cpp"): ["reads"],
        ("lib/Model/B.cpp", "test/python/test_other.py"): ["cpu"],
        ("python/c.py",): ["alone", "reads", "cpu"],
        (run.work / "test_imported.py",): ["alone", "reads", "cpu"],
        ("../build/lib/libgdnrt.so",): ["alone", "reads", "cpu"],
    }
    for names, again in changes.items():
        for name in names:
            (run.tree / name).write_text("# changed")
        assert run()[0] == [*again, "gpu", "fails", "each"], names
    # What changes a test by options is another test.
    assert run("--long=yes")[0] == ["alone", "reads", "cpu", "gpu", "fails", "each"]
