# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What tools/packaging/trace_first_use.py finds in traces: a recorded one of strace 6.1, and that
of a launch from the installed package."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

import trace_first_use

# Of a program that did all that is forbidden, between the marks.
RECORDED = (ROOT / "test/data/first-use.strace").read_text()


def test_what_is_found_in_a_trace():
    trace = trace_first_use.parse(RECORDED.splitlines())
    assert trace.is_whole
    assert [call.partition("(")[0] for call in trace.spawned] == ["vfork", "execve"]
    outside = trace.outside(Path("/srv/u/.cache/gdn"))
    names = ["/srv/run/t.out", "/dev/shm/x", "/a.out", "/srv/run/t.out2"]
    assert [str(path) for path in outside] == names
    assert len(trace.written) == len(outside) + 1
    complaints = trace_first_use.complaints(trace, Path("/srv/u/.cache/gdn"))
    assert len(complaints) == 2 + len(names)
    assert complaints[2] == "expected no file to be written, got /srv/run/t.out"


@pytest.mark.parametrize("lost", [trace_first_use.BEGIN, trace_first_use.END])
def test_a_trace_without_its_marks_shows_nothing(lost):
    lines = [line for line in RECORDED.splitlines() if lost not in line]
    trace = trace_first_use.parse(lines)
    assert not trace.is_whole
    assert any("got a part" in line for line in trace_first_use.complaints(trace, Path("/x")))


def can_trace() -> bool:
    if shutil.which("strace") is None:
        return False
    return subprocess.run(["strace", "true"], capture_output=True).returncode == 0


@pytest.mark.skipif(not can_trace(), reason="needs strace, and the right to trace processes")
def test_the_first_launch_on_a_cpu(build_dir, gdn_compile, tmp_path, unsanitized):
    package = tmp_path / "package"
    command = ["cmake", "--install", build_dir, "--component", "python", "--prefix", package]
    subprocess.run([*map(str, command)], check=True, capture_output=True)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "python/gdn", package / "gdn", dirs_exist_ok=True, ignore=ignored)
    config = {
        "model_type": "qwen3_5_text",
        "hidden_size": 64,
        "hidden_act": "silu",
        "num_hidden_layers": 4,
        "linear_num_key_heads": 1,
        "linear_num_value_heads": 2,
        "linear_key_head_dim": 16,
        "linear_value_head_dim": 16,
        "linear_conv_kernel_dim": 4,
        "rms_norm_eps": 1e-6,
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    image = tmp_path / "layer.gdnk"
    options = [f"--config={tmp_path / 'config.json'}", "--io=f32", "--only=decode"]
    subprocess.run([*gdn_compile, *options, "-o", image], check=True)
    script = ROOT / "tools/packaging/trace_first_use.py"
    command = [sys.executable, script, f"--path={package}", f"--image={image}"]
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "from the file to the result: " in done.stdout
