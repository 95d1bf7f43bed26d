# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""README.md tells the truth: its commands run, its table says what the tools do."""

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

import gdn

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
PRESET = "qwen3.5-4b"


@pytest.fixture(scope="module")
def first_use(build_dir, tmp_path_factory) -> tuple[Path, list[subprocess.CompletedProcess]]:
    """The folder in which the commands after `$` have run, and what came of each."""
    folder = tmp_path_factory.mktemp("first-use")
    env = os.environ | {"PATH": f"{build_dir / 'bin'}:{os.environ['PATH']}"}
    commands = re.findall(r"^    \$ (.+)$", README, re.MULTILINE)
    return folder, [
        subprocess.run(shlex.split(c), cwd=folder, env=env, text=True, capture_output=True)
        for c in commands
    ]


def test_commands_run(first_use):
    _, results = first_use
    assert len(results) >= 3
    for done in results:
        assert done.returncode == 0, f"{done.args}\n{done.stderr}"


def test_python_example_runs(first_use, build_dir, monkeypatch):
    folder, _ = first_use
    monkeypatch.chdir(folder)
    (example,) = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    exec(example.replace("build/release", str(build_dir)), {})


def test_links_lead_somewhere():
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "docs/spec/README.md"]:
        links = re.findall(r"\]\(([^)#:]+)\)", page.read_text())
        assert [link for link in links if not (page.parent / link).exists()] == []


def table() -> list:
    """(entry, input type, target, claim) for every cell of the support table."""
    lines = [line.strip("| ") for line in README.splitlines() if line.startswith("|")]
    head, _, *body = [[c.strip() for c in line.split("|")] for line in lines]
    targets = [name.strip("`") for name in head[2:]]
    claims = []
    for row in body:
        entry = re.match(r"`(\w+)`", row[0])[1]
        for io in row[1].split(", "):
            claims += [(entry, io, t, c) for t, c in zip(targets, row[2:], strict=True)]
    return claims


TARGETS = sorted({target for _, _, target, _ in table()})


@pytest.fixture(scope="module")
def compiled(tool, build_dir, tmp_path_factory):
    """Entry names that an image for a target has, by target; empty if refused."""
    runtime = gdn.Runtime(build_dir / "lib/libgdnrt.so")
    folder = tmp_path_factory.mktemp("images")

    def entries(target: str) -> set[str]:
        image = folder / f"{target}.gdnk"
        types = [f"--io={t}" for t in ("bf16", "f16", "f32")] + ["--state=f32"]
        if target != "x86-64-v3":
            # Whether there is a program; that code comes of it is for other tests.
            stage = "gpu" if target.startswith("sm_") else "tile"
            options = [f"--target={target}", f"--emit={stage}"]
            done = tool("gdn-compile", "--preset", PRESET, *types, *options)
            assert done.returncode == 0, done.stderr
            names = r"gdn_tile.stage_of = \"(\w+)\"", r"func\.func @(\w+)"
            return {name for pattern in names for name in re.findall(pattern, done.stdout)}
        options = [f"--target={target}", "-o", image]
        done = tool("gdn-compile", "--preset", PRESET, *types, *options)
        if done.returncode:
            assert "target" in done.stderr
            return set()
        return set(runtime.image(image).entries)

    return {target: entries(target) for target in TARGETS}


@pytest.mark.parametrize("entry, io, target, claim", table())
def test_support_table(compiled, entry, io, target, claim):
    assert claim in {"yes", "planned", "no"}
    assert (f"{entry}_{io}_f32" in compiled[target]) == (claim == "yes")


def test_presets_are_those_of_the_tool(tool):
    (claimed,) = re.findall(r"^Presets: (.*?)\. ", README, re.MULTILINE | re.DOTALL)
    (known,) = re.findall(r"--preset=<name> .*?: (.*)$", tool("gdn-compile", "--help").stdout, re.M)
    assert re.findall(r"`([^`]+)`", claimed) == known.split(", ")
