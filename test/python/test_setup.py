# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""setup.sh on a machine that lacks everything and whose servers of packages fail once: with
programs that pretend, so that nothing is installed."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Fails the first time that it is called with such arguments; writes down each call.
PROGRAM = """#!/bin/bash
echo "{name} $*" >> "{log}"
key="{log}.$(echo "{name} $*" | md5sum | cut -c1-8)"
if [[ -e $key ]]; then exit 0; fi
touch "$key"
exit {code}
"""


@pytest.fixture
def machine(tmp_path):
    """A tree with setup.sh, and a folder of programs for PATH; calls are in `log`."""
    tree, programs = tmp_path / "tree", tmp_path / "bin"
    (tree / "tools/scripts").mkdir(parents=True)
    programs.mkdir()
    for name in ("setup.sh", "requirements.txt", "requirements-cuda.txt"):
        shutil.copy(ROOT / "tools/scripts" / name, tree / "tools/scripts")
    shutil.copy(ROOT / "LLVM_VERSION", tree)
    log = tmp_path / "log"

    def add(path: Path, name: str, code: int) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(PROGRAM.format(name=name, log=log, code=code))
        path.chmod(0o755)

    def run(failing: int) -> tuple[subprocess.CompletedProcess, list[str]]:
        add(programs / "dpkg-query", "dpkg-query", 0)
        add(programs / "apt-get", "apt-get", failing)
        add(programs / "apt-cache", "apt-cache", 0)
        add(programs / "sudo", "sudo", 0)
        add(programs / "sleep", "sleep", 0)
        add(tree / ".venv/bin/python", "python", failing)
        if os.geteuid() != 0:
            (programs / "sudo").write_text('#!/bin/bash\nexec "$@"\n')
        env = os.environ | {"PATH": f"{programs}:{os.environ['PATH']}"}
        script = tree / "tools/scripts/setup.sh"
        done = subprocess.run([script], text=True, capture_output=True, env=env)
        return done, log.read_text().splitlines()

    return run


def calls(lines: list[str], start: str) -> int:
    return sum(line.startswith(start) for line in lines)


def test_a_server_that_fails_once_is_asked_again(machine):
    done, lines = machine(failing=100)
    assert done.returncode == 0, done.stderr
    assert calls(lines, "apt-get update") == 2
    assert calls(lines, "apt-get install") == 2
    assert calls(lines, "python -m pip install") == 4
    assert "setup: failed (try 1 of 5), again in 5 s: " in done.stderr


def test_nothing_is_asked_twice_without_need(machine):
    done, lines = machine(failing=0)
    assert done.returncode == 0, done.stderr
    assert (calls(lines, "apt-get update"), calls(lines, "apt-get install")) == (1, 1)
    assert calls(lines, "python -m pip install") == 2
    assert calls(lines, "sleep") == 0
    done, lines = machine(failing=0)
    assert calls(lines, "python -m pip install") == 2  # the same requirements as before
