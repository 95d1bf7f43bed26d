# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a command unless it has passed before with the same files.

    run_once.py --cache=FOLDER --files FILE... -- COMMAND...

The key is the hash of the command's words and of what is in the files, which have to be
all that decides what the command does. Only an exit code of 0 is remembered. Without
--cache, or with an empty one, the command runs. `./check --fresh` removes the folder's
memory of commands, and `./check --full` begins with that.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from one_run import AGAIN

PREFIX = "llvmcache-passed-"  # as gdn-compile's files, so that its clearing finds them


def key_of(command: list[str], files: list[Path]) -> str:
    """The hash of the command and of the files' bytes."""
    hashed = hashlib.sha256()
    for part in [*(word.encode() for word in command), *(file.read_bytes() for file in files)]:
        hashed.update(f"{len(part)}:".encode())
        hashed.update(part)
    return hashed.hexdigest()


def keep(mark: Path, what: object) -> None:
    """Writes `mark` whole, whoever writes the same at that time."""
    mark.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=mark.parent, delete=False) as file:
        json.dump(what, file)
    Path(file.name).replace(mark)


def kept(mark: Path) -> object:
    """What `keep` wrote; None if there is no such mark."""
    if not mark.exists():
        return None
    mark.touch()
    return json.loads(mark.read_text())


def remembered(mark: Path, run: Callable[[], str], outputs: list[Path]) -> str:
    """What `run` prints, or printed when `mark` was made; then `outputs` are written again."""
    if found := kept(mark):
        for path, text in zip(outputs, found["outputs"], strict=True):
            path.write_text(text)
        return found["printed"]
    printed = run()
    keep(mark, {"printed": printed, "outputs": [path.read_text() for path in outputs]})
    return printed


def image_cache(build: Path) -> Path | None:
    """The folder that a build tree keeps compiled images in."""
    settings = build / "CMakeCache.txt"
    text = settings.read_text() if settings.exists() else ""
    found = re.search(r"^GDN_IMAGE_CACHE:PATH=(.+)$", text, re.MULTILINE)
    return Path(found[1]) if found else None


def forget(build: Path) -> None:
    """Removes what the cache of a build tree remembers of commands."""
    cache = image_cache(build)
    for file in cache.glob(f"{PREFIX}*") if cache else ():
        file.unlink(missing_ok=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="run_once.py", description=__doc__)
    parser.add_argument("--cache", default="", help="the folder; empty: none")
    parser.add_argument("--files", type=Path, nargs="+", required=True)
    words = sys.argv[1:]
    split = words.index("--")
    options, command = parser.parse_args(words[:split]), words[split + 1 :]
    mark = None
    if options.cache:
        mark = Path(options.cache) / f"{PREFIX}{key_of(command, options.files)}"
        if mark.exists():
            mark.touch()
            print(f"{AGAIN} with the same files: {' '.join(command)}")
            return 0
    code = subprocess.run(command).returncode
    if code == 0 and mark:
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
