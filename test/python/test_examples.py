# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The programs of python/examples run, small, with the package as pip installs it."""

import os
import re
import subprocess
import sys

import pytest
from conftest import ROOT

EXAMPLES = ROOT / "python/examples"
SERVE = ["--check", "--requests=4", "--new-tokens=30", "--running=3"]


@pytest.fixture
def run(package, compiler_on_path, unsanitized):
    """Runs a command of Python with the examples and the package; the result."""

    def run(*command: object) -> subprocess.CompletedProcess[str]:
        env = os.environ | {"PYTHONPATH": f"{package}:{EXAMPLES}"}
        command = [sys.executable, *map(str, command)]
        return subprocess.run(command, env=env, text=True, capture_output=True)

    return run


def rows(text: str) -> list[list[str]]:
    """The cells of lines of a table, which begin with a number."""
    return [line.split() for line in text.splitlines() if re.match(r" +\d+  ", line)]


def test_serve(run):
    done = run(EXAMPLES / "serve.py", *SERVE)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 of 4 requests have the tokens of one that is served alone" in done.stdout
    found = rows(done.stdout)
    assert [row[3] for row in found] == ["30/30"] * 4
    # States of beginnings were used, and drafts that were right.
    assert {row[2] for row in found} >= {"0", "128"}
    assert sum(int(row[4]) for row in found) > 0
    assert len((EXAMPLES / "serve.py").read_text().splitlines()) <= 300


@pytest.mark.parametrize(
    "options",
    [
        ("--defer-writes=8",),
        ("--defer-writes=16", "--state=i8x2"),
        ("--defer-writes=16", "--state=i8x2_upper"),
        ("--drafts=0", "--defer-writes=16", "--state=i8x2"),
    ],
    ids=" ".join,
)
def test_serve_with_deferred_writes(run, options):
    """The tokens are those of states of f32 that are written at each token."""
    done = run(EXAMPLES / "serve.py", *SERVE, *options)
    assert done.returncode == 0, done.stdout + done.stderr
    assert {row[2] for row in rows(done.stdout)} >= {"0", "128"}


@pytest.mark.parametrize(
    "fault",
    [
        "def start(self, request):\n"
        "    request.done = 128 if self.pool.shape.num_track else 0\n"
        "serve.Prefixes.start = start",
        "take = serve.Server.take\n"
        "def wrong(self, request, *rest):\n"
        "    take(self, request, *rest)\n"
        "    request.accepted = 1\n"
        "serve.Server.take = wrong",
    ],
    ids=["no state of the beginning", "count of accepted tokens"],
)
def test_the_check_of_serve_finds_faults(run, fault):
    done = run("-c", f"import serve\n{fault}\nraise SystemExit(serve.main({SERVE}))")
    assert done.returncode == 1, done.stderr
    assert "expected [" in done.stdout


def test_drafts_are_what_followed_before(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    from serve import lookup

    assert lookup([1, 2, 3, 9, 1, 2, 3], 2) == [9, 1]
    assert lookup([1, 5, 1, 6, 1], 1) == [6]  # the last time counts
    assert lookup([4, 1, 7, 2, 1], 3) == [7, 2, 1]  # one token, if no more is known
    assert lookup([1, 2, 3], 2) == []


def test_bench_model(run):
    options = ["--decode", 1, 2, "--prefill", "33", "2x16", "--layers=1", "--repeats=1"]
    done = run(EXAMPLES / "bench_model.py", "qwen3.5-0.8b", *options)
    assert done.returncode == 0, done.stdout + done.stderr
    head, _, *lines = done.stdout.splitlines()
    assert head.startswith("qwen3.5-0.8b: 18 layers, 16 and 16 heads, ")
    cells = [line.split() for line in lines]
    steps = [["decode", "1", "1"], ["decode", "2", "2"]]
    steps += [["prefill", "1", "33"], ["prefill", "2", "32"]]
    assert [row[:3] for row in cells] == steps
    for row in cells:
        us, ms = map(float, row[3:5])
        assert us > 0 and ms == pytest.approx(us * 18 / 1e3, abs=0.01)


def test_sizes_of_presets_are_those_of_the_compiler(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    from bench_model import PRESETS

    text = " ".join((ROOT / "lib/Model/Presets.cpp").read_text().split())
    kind = r'"([\w.-]+)", "\w+", [\w:]+, \d+, (\d+),'
    found = {}
    for name, layers, keys, values in re.findall(rf"qwen\({kind} (\d+), (\d+)", text):
        found[name] = (int(keys), int(values), int(layers) - int(layers) // 4)
    for name, _, *numbers in re.findall(rf"\{{{kind} (\d+), (\d+), (\d+),", text):
        layers, keys, values = map(int, numbers)
        found[name] = (keys, values, layers)
    for name, *numbers in re.findall(r'kda\("([\w.-]+)", "\w+", \d+, \d+, (\d+), (\d+),', text):
        layers, heads = map(int, numbers)
        found[name] = (heads, heads, layers)
    assert found == PRESETS


def test_generate(run):
    pytest.importorskip("torch")
    pytest.importorskip("transformers.models.qwen3_5")
    done = run(EXAMPLES / "generate.py", "--new-tokens=4", "--prompt-tokens=70", "--device=cpu")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^stock  +\d+  +[\d.]+\ngdn  +\d+  +[\d.]+$", done.stdout, re.MULTILINE)
    assert "3 layers of linear attention\n4 of 4 tokens are equal" in done.stdout


def test_examples_need_no_pytorch_but_for_transformers():
    for path in EXAMPLES.glob("*.py"):
        assert ("torch" in path.read_text()) == (path.name == "generate.py"), path


def test_readme_names_each():
    readme = (ROOT / "README.md").read_text()
    programs = {path.name for path in EXAMPLES.glob("*.py")} - {"small_model.py"}
    assert all(f"python/examples/{name}" in readme for name in programs)
