# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""README.md tells the truth: its commands run. Its table is that of test_presets.py."""

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()


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


def test_presets_are_those_of_the_tool(tool):
    (claimed,) = re.findall(r"^Presets: (.*?)\. ", README, re.MULTILINE | re.DOTALL)
    (known,) = re.findall(r"--preset=<name> .*?: (.*)$", tool("gdn-compile", "--help").stdout, re.M)
    assert re.findall(r"`([^`]+)`", claimed) == known.split(", ")
