# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What guides print, as a reader would use it: commands, and programs in C and Python, in a
folder that looks like that of the sources after a build."""

import os
import re
import shlex
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs/guides"
CLANG = f"clang-{(ROOT / 'LLVM_VERSION').read_text().strip()}"
# Commands that are run; others, such as those for after a crash, are prose.
_COMMAND = re.compile(r"^ {4,}((?:gdn-compile|gdn-run|cc|\./\w+) .*)$", re.MULTILINE)


def programs(page: Path, language: str) -> list[str]:
    """The blocks of that language."""
    pattern = rf"^```{language}\n(.*?)^```"
    return re.findall(pattern, page.read_text(), re.MULTILINE | re.DOTALL)


def commands(page: Path) -> list[str]:
    """The commands of a page, in its order."""
    prose = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    return _COMMAND.findall(prose)


class Sources:
    """A folder with links to the sources and to a build, where nothing else is."""

    def __init__(self, folder: Path, build_dir: Path, gdn_compile: list[str]):
        self.folder = folder
        for name in ("include", "runtime", "python"):
            (folder / name).symlink_to(ROOT / name)
        (folder / "build").mkdir()
        (folder / "build/release").symlink_to(build_dir)
        tools = folder / "bin"
        tools.mkdir()
        # What is compiled comes through the cache of all tests.
        script = f'#!/bin/sh\nexec {shlex.join(gdn_compile)} "$@"\n'
        (tools / "gdn-compile").write_text(script)
        (tools / "gdn-compile").chmod(0o755)
        (tools / "gdn-run").symlink_to(build_dir / "bin/gdn-run")
        (tools / "cc").symlink_to(f"/usr/bin/{CLANG}")
        self.env = os.environ | {"PATH": f"{tools}:{os.environ['PATH']}"}

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        """A command as it is printed."""
        return subprocess.run(
            shlex.split(command), cwd=self.folder, env=self.env, text=True, capture_output=True
        )

    def run_all(self, page: Path) -> None:
        """All commands of a page; the first that fails is an error. Its program in C is
        there before them, under the name that they have for it."""
        for text in programs(page, "c"):
            (name,) = {n for c in commands(page) for n in re.findall(r"\w+\.c\b", c)}
            (self.folder / name).write_text(text)
        for command in commands(page):
            done = self.run(command)
            assert done.returncode == 0, f"{page.name}: {command}\n{done.stdout}{done.stderr}"
