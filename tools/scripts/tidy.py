# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs clang-tidy on the C++ files that a change touches, or with --all on all.

A change is what differs from the default branch of origin; on that branch
itself, the last commit. A changed header has its own .cpp checked, which sees
it through the header filter. With --all, files that were clean before with the same contents are
not looked at again, on this machine.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import run_once
from tidy_once import CleanFiles

ROOT = Path(__file__).resolve().parents[2]
LLVM_BIN = Path(f"/usr/lib/llvm-{(ROOT / 'LLVM_VERSION').read_text().strip()}/bin")
# What ./check spends on clang-tidy at most, eight seconds of a core a file; --all has no
# bound.
MOST_FILES = 4
# So many files are looked at before what was clean is kept.
BATCH = 24


def git(*arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=ROOT, text=True, capture_output=True)
    return done.stdout.splitlines()


def changed() -> set[Path]:
    """Files that differ from the default branch, or else from the last commit."""
    head = git("rev-parse", "HEAD")
    for branch in ("origin/HEAD", "origin/main", "main"):
        base = git("merge-base", "HEAD", branch)
        if base and base != head:
            break
    else:
        base = git("rev-parse", "HEAD~1")
    names = git("diff", "--name-only", *base) if base else []
    names += git("ls-files", "--others", "--exclude-standard")
    return {ROOT / name for name in names}


def commands(build_dir: Path) -> Path:
    """A folder with the command of each file by itself, where the build compiles several as
    one."""
    entries = []
    for entry in json.loads((build_dir / "compile_commands.json").read_text()):
        several = Path(entry["directory"]) / entry["file"]
        if "/Unity/" not in entry["file"]:
            entries.append(entry)
            continue
        for file in re.findall(r'^#include "(.*)"$', several.read_text(), re.MULTILINE):
            command = entry["command"].replace(f"-c {entry['file']}", f"-c {file}")
            entries.append({**entry, "file": file, "command": command})
    folder = build_dir / "tidy"
    folder.mkdir(exist_ok=True)
    (folder / "compile_commands.json").write_text(json.dumps(entries, indent=1))
    return folder


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="every file of the build")
    parser.add_argument("--build-dir", type=Path, default=ROOT / "build/release")
    options = parser.parse_args()

    database = commands(options.build_dir)
    entries = json.loads((database / "compile_commands.json").read_text())
    built = {Path(entry["file"]) for entry in entries}
    own = {f for f in built if f.is_relative_to(ROOT) and not f.is_relative_to(ROOT / "build")}
    files = sorted(own)
    if not options.all:
        touched = changed()
        headers = {f.stem for f in touched if f.suffix == ".h"}
        files = [f for f in files if f in touched or f.stem in headers]
        # The largest say most; the rest is for --all.
        files.sort(key=lambda f: f.stat().st_size, reverse=True)
        if len(files) > MOST_FILES:
            print(
                f"clang-tidy: {MOST_FILES} of {len(files)} changed files; ./check --tidy checks all"
            )
            files = files[:MOST_FILES]
    if not files:
        print("clang-tidy: no C++ file changed")
        return 0
    clean = None
    if options.all and (images := run_once.image_cache(options.build_dir)):
        clean = CleanFiles(images / "tidy", database, LLVM_BIN)
        count = len(files)
        files = [f for f in files if not clean.are_clean(f)]
        print(f"clang-tidy: {count - len(files)} files of {count} were clean before")
        if not files:
            return 0
    print(f"clang-tidy: {len(files)} files", flush=True)
    # What was clean is kept on the way: a run may be stopped.
    worst = 0
    for start in range(0, len(files), BATCH):
        batch = files[start : start + BATCH]
        code, unclear = look_at(batch, database)
        worst = max(worst, code)
        if clean:
            clean.keep([f for f in batch if f not in unclear])
    return worst


def look_at(files: list[Path], database: Path) -> tuple[int, set[Path]]:
    """Runs clang-tidy and prints what it finds. Its code, and the files that may not be clean."""
    command = [
        str(LLVM_BIN / "run-clang-tidy"),
        f"-clang-tidy-binary={LLVM_BIN / 'clang-tidy'}",
        f"-p={database}",
        f"-j={os.cpu_count() or 1}",
        "-quiet",
        *[f"^{f}$" for f in files],
    ]
    done = subprocess.run(command, cwd=ROOT, text=True, capture_output=True)
    if not done.returncode:
        return 0, set()
    # A header's finding comes with every file that includes it: once is enough.
    found = re.findall(r"^(.*:\d+:\d+: (?:error|warning): .*)$", done.stdout, re.MULTILINE)
    findings = sorted({line.removeprefix(f"{ROOT}/") for line in found})
    print("\n".join(findings) or done.stdout[-4000:] + done.stderr[-4000:])
    print(f"clang-tidy: {len(findings)} findings", flush=True)
    named = {ROOT / line.partition(":")[0] for line in findings}
    # A finding in a header may be of any file.
    is_known = bool(findings) and named <= set(files)
    return done.returncode, named if is_known else set(files)


if __name__ == "__main__":
    sys.exit(main())
