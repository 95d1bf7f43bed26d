# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What guides print, as a reader would use it: files, commands and programs, in a folder that has
nothing else, with the tools on the path and the package installed."""

import importlib.util
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs/guides"
CLANG = f"clang-{(ROOT / 'LLVM_VERSION').read_text().strip()}"
# Commands that are run; others, such as those for after a crash, are prose.
_COMMAND = re.compile(r"^ {4,}((?:gdn-compile|gdn-run|cc|export|\./\w+) .*)$", re.MULTILINE)
_IMPORT = re.compile(r"^(?:import|from) +(?:gdn\.integrations\.)?(\w+)", re.MULTILINE)


def programs(page: Path, language: str) -> list[str]:
    """The blocks of that language."""
    pattern = rf"^```{language}\n(.*?)^```"
    return re.findall(pattern, page.read_text(), re.MULTILINE | re.DOTALL)


def commands(page: Path) -> list[str]:
    """The commands of a page, in its order."""
    prose = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    return _COMMAND.findall(prose)


def missing(program: str) -> list[str]:
    """Packages that a program imports and that are not installed; gdn.integrations.NAME needs
    NAME."""
    names = set(_IMPORT.findall(program)) - {"gdn"}
    return sorted(name for name in names if importlib.util.find_spec(name) is None)


class Reader:
    """A reader's folder, in which nothing is but what a page shows."""

    def __init__(self, folder: Path, build_dir: Path, gdn_compile: list[str], package: Path):
        self.folder, tools = folder / "page", folder / "tools"
        self.folder.mkdir()
        tools.mkdir()
        # What is compiled comes through the cache of all tests.
        for name, command in (("gdn-compile", gdn_compile), ("python", [sys.executable])):
            (tools / name).write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
            (tools / name).chmod(0o755)
        (tools / "gdn-run").symlink_to(build_dir / "bin/gdn-run")
        (tools / "cc").symlink_to(f"/usr/bin/{CLANG}")
        path = f"{tools}:{os.environ['PATH']}"
        self.env = os.environ | {"PATH": path, "PYTHONPATH": str(package)}

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        """A command as it is printed, in a shell; what it exports holds for those after it."""
        done = subprocess.run(
            ["bash", "-c", command], cwd=self.folder, env=self.env, text=True, capture_output=True
        )
        if exported := re.fullmatch(r"export (\w+)=(.*)", command):
            self.env[exported[1]] = self.run(f"echo {exported[2]}").stdout.strip()
        return done

    def python(self, program: str) -> str:
        """What a program prints."""
        command = [sys.executable, "-c", program]
        done = subprocess.run(
            command, cwd=self.folder, env=self.env, text=True, capture_output=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def write_files(self, page: Path) -> None:
        """The configuration and the program in C of a page, under the names that its commands
        have for them."""
        for language, pattern in (("json", r"--config (\S+\.json)"), ("c", r"\w+\.c\b")):
            for text in programs(page, language):
                (name,) = {n for c in commands(page) for n in re.findall(pattern, c)}
                (self.folder / name).write_text(text)

    def run_commands(self, page: Path) -> None:
        """All commands of a page, with its files; the first that fails is an error."""
        self.write_files(page)
        for command in commands(page):
            done = self.run(command)
            assert done.returncode == 0, f"{page.name}: {command}\n{done.stdout}{done.stderr}"
