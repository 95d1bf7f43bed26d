# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""gdn.compile: what is asked of gdn-compile, what is kept, and many processes at once."""

import json
import multiprocessing
import os
import stat
import sys

import pytest

from gdn import Runtime, compiler

CONFIG = {
    "model_type": "qwen3_5_text",
    "hidden_size": 128,
    "hidden_act": "silu",
    "num_hidden_layers": 4,
    "linear_num_key_heads": 1,
    "linear_num_value_heads": 2,
    "linear_key_head_dim": 32,
    "linear_value_head_dim": 32,
    "linear_conv_kernel_dim": 4,
    "rms_norm_eps": 1e-6,
}


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    """A gdn-compile that writes its arguments to the image, and counts how often it ran."""
    folder = tmp_path / "bin"
    folder.mkdir()
    tool = folder / "gdn-compile"
    tool.write_text(
        f"""#!{sys.executable}
import pathlib, sys, time
arguments = sys.argv[1:]
runs = pathlib.Path({str(tmp_path / "runs")!r})
with runs.open("a") as file:
    file.write(" ".join(arguments) + "\\n")
time.sleep(0.2)
if "--fail" in arguments:
    sys.exit("gdn-compile: expected, got")
pathlib.Path(arguments[arguments.index("-o") + 1]).write_text("image")
"""
    )
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(compiler.importlib.util, "find_spec", lambda name: None)
    return tmp_path / "runs"


def runs_of(stand_in) -> list[str]:
    return stand_in.read_text().splitlines() if stand_in.exists() else []


def test_an_image_is_made_once(stand_in, tmp_path):
    first = compiler.compile(CONFIG, ["sm_90a", "x86-64-v3"], io="bf16", engine="vllm")
    assert first.parent == tmp_path / "cache/gdn/images"
    assert first.read_text() == "image"
    assert (
        compiler.compile(dict(CONFIG), ["sm_90a", "x86-64-v3"], io="bf16", engine="vllm") == first
    )
    (run,) = runs_of(stand_in)
    for option in ("--target=sm_90a,x86-64-v3", "--for=vllm", "--io=bf16", "--config"):
        assert option in run
    other = compiler.compile(CONFIG | {"rms_norm_eps": 1e-5}, ["sm_90a", "x86-64-v3"], io="bf16")
    assert other != first
    assert len(runs_of(stand_in)) == 2


@pytest.mark.parametrize("program", ["gdn-compile", "ptxas"])
def test_another_version_at_the_same_path(stand_in, tmp_path, program):
    path = tmp_path / "bin" / program
    if program == "ptxas":
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
    first = compiler.compile(CONFIG, "sm_90a")
    path.write_text(path.read_text() + "\n# another\n")
    assert compiler.compile(CONFIG, "sm_90a") != first
    assert len(runs_of(stand_in)) == 2


def test_configurations_of_every_kind(stand_in, tmp_path):
    compiler.compile("qwen3.5-0.8b")
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    paths = {compiler.compile(x) for x in (tmp_path, tmp_path / "config.json")}
    assert len(paths) == 1
    runs = runs_of(stand_in)
    assert "--preset=qwen3.5-0.8b" in runs[0]
    assert len(runs) == 2


@pytest.mark.parametrize("config", [None, 3, [CONFIG]])
def test_what_is_no_configuration(stand_in, config):
    found = type(config).__name__
    with pytest.raises(TypeError, match=f"config: expected a mapping, a path, .*, got {found}"):
        compiler.compile(config)
    assert not runs_of(stand_in)


def test_one_option_is_a_text(stand_in):
    """It was taken for the options of its letters."""
    assert compiler.compile(CONFIG, options="--l2norm") == compiler.compile(
        CONFIG, options=["--l2norm"]
    )
    assert len(runs_of(stand_in)) == 1 and " --l2norm " in runs_of(stand_in)[0]


def test_a_file_that_is_not_there_is_no_preset(stand_in, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("config.json", "layer.mlir"):
        with pytest.raises(FileNotFoundError, match=name):
            compiler.compile(name, cache=tmp_path)


def test_what_fails_leaves_nothing(stand_in, tmp_path):
    with pytest.raises(compiler.CompileError, match="expected, got"):
        compiler.compile(CONFIG, options=["--fail"])
    left = [p.name for p in (tmp_path / "cache/gdn/images").iterdir() if p.suffix != ".lock"]
    assert left == []
    with pytest.raises(ValueError, match="targets: expected at least one"):
        compiler.compile(CONFIG, [])


def _compile(config, results):
    results.put(str(compiler.compile(config, "sm_90a")))


def test_many_processes_ask_at_once(stand_in):
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    processes = [context.Process(target=_compile, args=(CONFIG, results)) for _ in range(6)]
    for process in processes:
        process.start()
    assert len({results.get(timeout=60) for _ in processes}) == 1
    for process in processes:
        process.join()
    assert len(runs_of(stand_in)) == 1


def test_progress_is_for_terminals(stand_in, capfd):
    compiler.compile(CONFIG, "sm_90a", progress=True)
    assert "gdn: compiling for sm_90a" in capfd.readouterr().err
    compiler.compile(CONFIG, "sm_80")
    assert capfd.readouterr().err == ""


def test_without_a_compiler(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(compiler.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(compiler.CompileError, match="pip install gdn-compiler"):
        compiler.compile(CONFIG)


def test_with_the_compiler(build_dir, monkeypatch, tmp_path):
    """The tool of this build: a small layer for this processor."""
    monkeypatch.setenv("PATH", f"{build_dir / 'bin'}{os.pathsep}{os.environ['PATH']}")
    path = compiler.compile(CONFIG, io="f32", options=["--only=decode"], cache=tmp_path)
    runtime = Runtime(build_dir / "lib/libgdnrt.so")
    assert runtime.image(path).entries == ["decode"]
    with pytest.raises(compiler.CompileError, match="sm_9000"):
        compiler.compile(CONFIG, "sm_9000", cache=tmp_path)
