# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which C++ files clang-tidy has found clean before: with the same command, the same checks, and
the same bytes in the file and in all that it includes."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class CleanFiles:
    """The marks in a folder, one for each file with its contents. `database` is the folder with
    compile_commands.json, `tools` that of clang's programs."""

    def __init__(self, marks: Path, database: Path, tools: Path, root: Path = ROOT):
        self._marks, self._root = marks, root
        entries = json.loads((database / "compile_commands.json").read_text())
        self._commands = {Path(entry["file"]): entry["command"] for entry in entries}
        self._included = included(database, tools, set(self._commands))
        version = subprocess.run(
            [tools / "clang-tidy", "--version"], text=True, capture_output=True, check=True
        )
        checks = sorted(root.rglob(".clang-tidy"))
        self._common = [version.stdout, *(_hash_of(f, root) for f in checks)]

    def mark(self, file: Path) -> Path | None:
        """The mark of a file as it is; None where nothing is known of what it includes."""
        if file not in self._included:
            return None
        hashed = hashlib.sha256()
        command = self._commands[file].replace(str(self._root), "")
        contents = (_hash_of(read, self._root) for read in self._included[file])
        for part in (*self._common, command, *contents):
            hashed.update(f"{len(part)}:{part}".encode())
        return self._marks / hashed.hexdigest()

    def are_clean(self, file: Path) -> bool:
        mark = self.mark(file)
        return mark is not None and mark.exists()

    def keep(self, files: list[Path]) -> None:
        self._marks.mkdir(parents=True, exist_ok=True)
        for mark in map(self.mark, files):
            if mark:
                mark.touch()


def included(database: Path, tools: Path, sources: set[Path]) -> dict[Path, list[Path]]:
    """The files that each of the sources of a database reads, those of a precompiled header too."""
    command = [tools / "clang-scan-deps", "-format=make"]
    command.append(f"-compilation-database={database / 'compile_commands.json'}")
    done = subprocess.run(command, text=True, capture_output=True)
    rules = re.split(r"^\S.*?:(?= )", done.stdout.replace("\\\n", " "), flags=re.MULTILINE)
    found = {}
    for rule in rules[1:]:
        files = [Path(name) for name in rule.split()]
        found |= {file: files for file in files if file in sources}
    return found


@cache
def _hash_of(file: Path, root: Path) -> str:
    """The hash of what is in a file, wherever the tree is."""
    if not file.exists():
        return "none"
    return hashlib.sha256(file.read_bytes().replace(bytes(root), b"")).hexdigest()
