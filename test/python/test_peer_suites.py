# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The runner of other libraries' suites, on a suite made up here."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import peer_suites
import peer_table
from peers.sources import SOURCES, FetchError, take
from peers.suites import SUITES, Suite

SCRIPTS = Path(peer_suites.__file__).parent

TESTS = """
import pytest
from library import double

@pytest.mark.parametrize("x", range(6))
def test_double(x):
    assert double(x) == 2 * x

@pytest.mark.parametrize("x", [1, 2])
def test_backward(x):
    assert False

def test_device():
    assert "DEVICE" == "cuda"

def test_kernel():
    pytest.skip("kernel is not available")

def test_hardware():
    pytest.skip("needs eight of them")

def test_wrong():
    assert double(1) == 3
"""

# Stands for the modules of the package that need PyTorch.
PROGRAM = """
import contextlib, sys, types
import peers.suites
from peers.suites import Suite
peers.suites.SUITES["made up"] = Suite("x", "names", (), (("backward", "no backward"),),
                                       (("not available", "its own kernel"),),
                                       on_gpus=(("device", "no such GPU"),))
library = types.ModuleType("library")
names, forward = types.ModuleType("peers.names"), types.ModuleType("peers.forward")
def install(device):
    library.double = lambda x: 2 * x
    sys.modules["library"] = library
names.install = install
class ForwardOnly(contextlib.nullcontext):
    asked = True
forward.ForwardOnly = ForwardOnly
sys.modules |= {"peers.names": names, "peers.forward": forward}
import pytest
sys.exit(pytest.main(sys.argv[1:]))
"""


def counts_of(tmp_path, *options):
    (tmp_path / "test_made_up.py").write_text(TESTS.replace("DEVICE", "cuda"))
    output = tmp_path / "counts.json"
    command = [sys.executable, "-c", PROGRAM, "-q", "-p", "peers.plugin", f"--rootdir={tmp_path}"]
    command += ["--peer-suite=made up", "--peer-device=cpu", f"--peer-output={output}"]
    command += options
    command += ["-p", "no:cacheprovider", str(tmp_path / "test_made_up.py")]
    done = subprocess.run(command, cwd=SCRIPTS, text=True, capture_output=True)
    assert output.exists(), done.stdout + done.stderr
    return json.loads(output.read_text())


def test_counts(tmp_path):
    found = counts_of(tmp_path)
    assert (found["passed"], found["failed"], found["skipped"]) == (7, 1, 1)
    assert [name.rpartition("::")[2] for name in found["failures"]] == ["test_wrong"]
    rows = [(row["test"], row["cases"], row["why"]) for row in found["not_expressible"]]
    # Each test that ran asked for gradients.
    assert rows == [
        ("test_backward", 2, "no backward"),
        ("test_kernel", 1, "its own kernel"),
        ("gradients", 10, "backward"),
    ]


def test_each_nth_case_runs(tmp_path):
    found = counts_of(tmp_path, "--peer-every=4")
    assert (found["passed"], found["failed"]) == (3, 1)  # double(0), double(4), the device
    assert found["not_expressible"][0]["cases"] == 2


def test_shares_have_all_cases(tmp_path):
    whole = counts_of(tmp_path)
    shares = [counts_of(tmp_path, f"--peer-share={k}/3") for k in range(3)]
    total = peer_suites.sum_of(shares)
    for key in ("passed", "failed", "skipped", "not_expressible", "failures"):
        assert total[key] == whole[key]


def test_what_only_gpus_do_not_run(tmp_path):
    found = counts_of(tmp_path, "--peer-device=cuda")
    assert (found["passed"], found["failed"], found["skipped"]) == (6, 1, 1)
    row = {"test": "test_device", "cases": 1, "why": "no such GPU"}
    assert row in found["not_expressible"]


def test_reasons():
    """A case is not expressible for one of four reasons alone."""
    suites = [*SUITES.values()]
    tables = [table for suite in suites for table in (suite.inexpressible, suite.reasons)]
    found = {why for table in (*tables, *(s.on_gpus for s in suites)) for _, why in table}
    assert all(
        re.match("(backward|fp8 states|framework internals: .+|hardware: .+)$", why)
        for why in found
    )
    record = json.loads(peer_table.RECORD.read_text())
    of_cpu = [suite for suite in record.values() if suite["device"] == "CPU"]
    rows = {row["why"] for suite in of_cpu for row in suite["not_expressible"]}
    assert rows <= {*found, "backward"}


def test_files_of_a_source(tmp_path):
    root = tmp_path / "root"
    with pytest.raises(FetchError, match="causal-conv1d: expected tests in"):
        take("causal-conv1d", root, tmp_path / "suites")
    for name in ("tests/test_causal_conv1d.py", "csrc/big.cu", "causal_conv1d/a.py"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("pass\n")
    take("causal-conv1d", root, tmp_path / "suites")
    found = sorted((tmp_path / "suites/causal-conv1d").rglob("*.*"))
    assert [path.name for path in found] == ["a.py", "test_causal_conv1d.py"]


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_only_the_device_is_edited(tmp_path, device):
    source = tmp_path / "source/tests"
    source.mkdir(parents=True)
    text = "x = y.to('cuda')\nz = torch.device(\"cuda\")\nw = 'cuda:0 cuda'\n"
    (source / "test_a.py").write_text(text)
    (source / "helper.py").write_text("import b\n")
    suite = Suite("s", "names", ("tests/test_a.py",))
    (test,) = peer_suites.prepare(suite, source.parent, tmp_path, device)
    wanted = text
    if device == "cpu":
        wanted = text.replace("'cuda')", "'cpu')").replace('"cuda"', '"cpu"')
    assert test.read_text() == wanted
    assert {path.name for path in test.parent.iterdir()} == {
        "__init__.py",
        "test_a.py",
        "helper.py",
    }


def test_suites_have_sources_and_names():
    for suite in SUITES.values():
        assert suite.source in SOURCES
        assert (SCRIPTS / f"peers/{suite.names}.py").exists()
        keep = SOURCES[suite.source].keep
        assert all(any(Path(test).match(pattern) for pattern in keep) for test in suite.tests)


def test_table():
    row = {"version": "1.0", "device": "CPU", "date": "2026-01-02", "commit": "abc", "every": 3}
    row |= {"passed": 1200, "failed": 0, "skipped": 4}
    refused = [
        {"test": "test_x", "cases": 5, "why": "backward"},
        {"test": "gradients", "cases": 7, "why": "backward"},
    ]
    text = peer_table.markdown({"FLA": row | {"not_expressible": refused}})
    assert "| FLA | 1.0 | CPU, 2026-01-02, abc, one of 3 cases | 1,200 | 0 | 4 | 5 |" in text
    assert "| FLA | `test_x` | 5 | backward |" in text
    assert "| FLA | `gradients` | 7 | backward |" in text
    card = row | {"device": "NVIDIA H200", "not_expressible": refused[:1]}
    both = {"FLA": row | {"not_expressible": refused}, "FLA, NVIDIA H200": card}
    text = peer_table.markdown(both)
    assert "| FLA, NVIDIA H200 | 1.0 | NVIDIA H200, 2026-01-02" in text
    assert text.count("`test_x`") == 1


def test_record_has_each_device(tmp_path, monkeypatch):
    monkeypatch.setattr(peer_suites, "RECORD", tmp_path / "record.json")
    first, second = list(SUITES)[:2]
    for key, passed in ((second, 1), (f"{first}, GPU", 2), (first, 3), (f"{first}, GPU", 4)):
        peer_suites.record(key, {"passed": passed})
    found = json.loads((tmp_path / "record.json").read_text())
    assert [(key, row["passed"]) for key, row in found.items()] == [
        (first, 3),
        (f"{first}, GPU", 4),
        (second, 1),
    ]
