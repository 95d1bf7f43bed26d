# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""kernels.lock: what counts as stale, how kernels change state, with a compiler that pretends."""

import json
import subprocess
from types import SimpleNamespace

import pytest

import kernels_lock

BEFORE, AFTER = "a" * 64, "b" * 64


@pytest.fixture
def sets(monkeypatch):
    monkeypatch.setattr(kernels_lock, "KERNEL_SETS", {"qwen": ["--preset=qwen"]})
    monkeypatch.setattr(kernels_lock, "TARGETS", ["sm_80", "sm_90a"])


class Compiler:
    """Gives the digests it is told to give."""

    def __init__(self, **digests):
        self.digests = digests  # entry -> digest, for both targets
        self.calls = []

    def __call__(self, arguments):
        self.calls.append(arguments)
        assert arguments[:2] == ["--preset=qwen", "--target=sm_80,sm_90a"]
        if arguments[2] == "--emit=report":
            return "a table"
        assert arguments[2] == "--emit=digest"
        return "".join(
            f"{entry} {target} {digest}\n"
            for target in ("sm_80", "sm_90a")
            for entry, digest in self.digests.items()
        )


@pytest.fixture
def lock(tmp_path):
    path = tmp_path / "kernels.lock"
    path.write_text("[]\n")
    return path


def run(lock, compiler, update=False, record=None, only=None):
    arguments = SimpleNamespace(lock=lock, update=update, record=record, set=only, targets="all")
    return kernels_lock.run(arguments, compiler)


def states(lock):
    return {(k["name"], k["target"]): k["state"] for k in json.loads(lock.read_text())}


def measurement(tmp_path, digest, **row):
    row = {"name": "qwen/decode", "target": "sm_90a", "digest": digest} | row
    row = {"error_o": 1e-3, "error_state": 1e-7, "us": 76.5} | row
    path = tmp_path / "device.json"
    facts = {"device": "H200", "driver": "580.1", "date": "2026-11-21"}
    path.write_text(json.dumps(facts | {"kernels": [row, row | {"error_o": 5e-4, "us": 5.4}]}))
    return path


def test_no_kernels(monkeypatch, lock, capsys):
    monkeypatch.setattr(kernels_lock, "KERNEL_SETS", {})
    assert run(lock, None) == 0
    assert capsys.readouterr().out.startswith("kernels.lock: 0 kernels")
    assert run(lock, None, update=True) == 0
    assert lock.read_text() == "[]\n"


def test_new_kernels_are_assembled(sets, lock, capsys):
    compiler = Compiler(decode=BEFORE)
    assert run(lock, compiler) == 1
    assert "qwen/decode sm_80: is not in the lock" in capsys.readouterr().err
    assert [call[2] for call in compiler.calls] == ["--emit=digest"]
    assert run(lock, compiler, update=True) == 0
    assert compiler.calls[1][2] == "--emit=report"  # ptxas has the say
    assert states(lock) == {
        ("qwen/decode", "sm_80"): "assembled",
        ("qwen/decode", "sm_90a"): "assembled",
    }
    assert run(lock, compiler) == 0
    assert "2 kernels: 0 verified, 2 assembled, 0 unverified" in capsys.readouterr().out


def test_a_measured_kernel_is_verified_until_it_changes(sets, lock, tmp_path, capsys):
    run(lock, Compiler(decode=BEFORE), update=True)
    assert run(lock, None, record=[measurement(tmp_path, BEFORE)]) == 0
    kernel = json.loads(lock.read_text())[1]
    assert kernel["state"] == "verified" and kernel["device"] == "H200"
    assert (kernel["error_o"], kernel["us"]) == (1e-3, 76.5)  # the worst error
    assert run(lock, Compiler(decode=BEFORE), update=True) == 0
    assert json.loads(lock.read_text())[1] == kernel

    assert run(lock, Compiler(decode=AFTER)) == 1
    error = capsys.readouterr().err
    assert "qwen/decode sm_90a: expected aaaaaaaaaaaa.., got bbbbbbbbbbbb.." in error
    assert run(lock, Compiler(decode=AFTER), update=True) == 0
    assert states(lock)["qwen/decode", "sm_90a"] == "unverified"
    assert "us" not in json.loads(lock.read_text())[1]
    assert states(lock)["qwen/decode", "sm_80"] == "assembled"


def test_a_kernel_that_is_gone_leaves_the_lock(sets, lock, capsys):
    run(lock, Compiler(decode=BEFORE, verify=BEFORE), update=True)
    assert run(lock, Compiler(decode=BEFORE)) == 1
    assert "qwen/verify sm_80: is not generated any more" in capsys.readouterr().err
    run(lock, Compiler(decode=BEFORE), update=True)
    assert len(states(lock)) == 2


@pytest.mark.parametrize(
    "digest, row, message",
    [
        (AFTER, {}, "qwen/decode sm_90a: another kernel of that name was measured"),
        (BEFORE, {"name": "qwen/none"}, "qwen/none sm_90a: is not in the lock"),
        (BEFORE, {"error_state": float("nan")}, "qwen/decode sm_90a: its errors are not finite"),
    ],
)
def test_measurements_that_do_not_count(sets, lock, tmp_path, capsys, digest, row, message):
    run(lock, Compiler(decode=BEFORE), update=True)
    before = lock.read_text()
    assert run(lock, None, record=[measurement(tmp_path, digest, **row)]) == 0
    assert message in capsys.readouterr().err
    assert lock.read_text() == before


def test_sanitizers_that_found_nothing_are_kept_until_a_kernel_changes(
    sets, lock, tmp_path, capsys
):
    run(lock, Compiler(decode=BEFORE), update=True)
    row = {"name": "qwen/decode", "target": "sm_80", "digest": BEFORE, "failures": []}
    rows = [row | {"tool": tool, "errors": 0} for tool in ("synccheck", "memcheck", "memcheck")]
    rows += [
        row | {"tool": "racecheck", "errors": 2},
        row | {"tool": "initcheck", "errors": None},
        row | {"tool": "initcheck", "errors": 0, "failures": ["a NaN"]},
        row | {"tool": "initcheck", "errors": 0, "digest": AFTER},
        row | {"tool": "initcheck", "errors": 0, "name": "qwen/none"},
    ]
    path = tmp_path / "sanitizers.json"
    path.write_text(json.dumps({"device": "H200", "sanitizers": rows}))
    assert run(lock, None, record=[path]) == 0
    said = capsys.readouterr().err
    assert "qwen/decode sm_80: racecheck: has errors, or did not end" in said
    assert said.count("qwen/decode sm_80: initcheck: has errors, or did not end") == 2
    assert "qwen/decode sm_80: initcheck: another kernel of that name was checked" in said
    assert "qwen/none sm_80: initcheck: is not in the lock" in said
    kernel = json.loads(lock.read_text())[0]
    assert kernel["sanitizers"] == ["memcheck", "synccheck"]
    assert kernel["state"] == "assembled"  # numbers are another matter
    run(lock, Compiler(decode=AFTER), update=True)
    assert "sanitizers" not in json.loads(lock.read_text())[0]


@pytest.mark.parametrize("text", ["", "{}x", '[{"name": 1}]'])
def test_an_unreadable_lock(lock, text):
    lock.write_text(text)
    with pytest.raises(kernels_lock.LockError, match="expects a list of kernels"):
        run(lock, None)


def test_a_compiler_that_fails_is_an_error(tmp_path):
    build = tmp_path / "bin"
    build.mkdir()
    script = build / "gdn-compile"
    script.write_text("#!/bin/sh\necho 'error: no' >&2\nexit 1\n")
    script.chmod(0o755)
    with pytest.raises(kernels_lock.LockError, match="gdn-compile --x failed:\nerror: no"):
        kernels_lock.compiler(tmp_path)(["--x"])


def test_the_lock_of_this_tree_has_no_other_sets():
    """CTest compares set by set, so that nothing else would find a set that is gone."""
    sets = {kernels_lock.set_of(key) for key in kernels_lock.read(kernels_lock.LOCK)}
    assert sets == set(kernels_lock.KERNEL_SETS)


@pytest.mark.parametrize("name", kernels_lock.KERNEL_SETS)
def test_siblings_have_the_programs_of_their_family(gdn_compile, name):
    """What lets ./check generate the code of one chip of each family."""

    def programs(target: str) -> str:
        command = [*gdn_compile, *kernels_lock.KERNEL_SETS[name], f"--target={target}"]
        done = subprocess.run([*command, "--emit=gpu"], text=True, capture_output=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    for chip, other in kernels_lock.SIBLINGS.items():
        assert programs(chip) == programs(other)


def test_one_set_alone(monkeypatch, lock, capsys):
    monkeypatch.setattr(kernels_lock, "KERNEL_SETS", {"qwen": ["--preset=qwen"], "x": ["--x"]})
    monkeypatch.setattr(kernels_lock, "TARGETS", ["sm_80", "sm_90a"])
    compiler = Compiler(decode=BEFORE)
    kernels_lock.write(lock, kernels_lock.updated({}, {("x/decode", "sm_80"): BEFORE}))
    assert run(lock, compiler, only="qwen") == 1
    said = capsys.readouterr().err
    assert "qwen/decode sm_80: is not in the lock" in said and "x/decode" not in said


def test_each_run_and_the_rest_are_all_kernels():
    """What ./check compares and what --full adds have no target twice and leave none out."""
    for name in kernels_lock.KERNEL_SETS:
        each_run = kernels_lock.chosen("families", name)
        rest = kernels_lock.chosen("siblings", name)
        assert each_run and sorted(each_run + rest) == sorted(kernels_lock.TARGETS)
    assert not set(kernels_lock.SIBLINGS) & set(kernels_lock.FAMILIES)
