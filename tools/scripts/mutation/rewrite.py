# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One build that has all faults: a clone of the tree whose sites ask which fault is on.

The product knows nothing of it. A rewritten file includes a header of the clone, in place
of the comment that is its first line, and no line moves. Only rewritten files are compiled
again: ccache has the others. Which fault is on says the environment variable GDN_MUTANT;
without it, the clone does what the tree does.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from mutation import reach
from mutation.draw import Mutant, MutationError
from mutation.sites import Site

VARIABLE = "GDN_MUTANT"
HEADER_PATH = "include/gdn_mutant.h"
HEADER = f"""// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which fault is on. Written by tools/scripts/mutate.py.
#ifndef GDN_MUTANT_H
#define GDN_MUTANT_H

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
{reach.SOURCE}
inline bool gdn_mutant(int number) {{
  static const int on = [] {{
    const char *text = std::getenv("{VARIABLE}");
    return text ? std::atoi(text) : 0;
  }}();
  static const char *const folder = std::getenv("{reach.FOLDER}");
  if (folder)
    gdn_mutant_reached(folder, number);
  return on == number;
}}

#endif
"""
# lit hands only some variables on to its tests.
LIT_CONFIG = "test/lit.cfg.py"
LIT_LINES = f"""
if "{VARIABLE}" in os.environ:
    config.environment["{VARIABLE}"] = os.environ["{VARIABLE}"]
{reach.LIT_LINES}"""
ERROR = re.compile(r"^(\S[^:\n]*):(\d+):\d+: (?:fatal )?(error|note|warning): (.*)$")
INCLUDED = re.compile(r"^(?:In file included from|\s+from) ([^:\n]+):(\d+)")


def rewritten(path: str, text: str, mutants: Iterable[Mutant]) -> str:
    """`text` with the sites of `mutants`; as many lines as before."""
    inside = sorted(
        (m for m in mutants if m.site.file == path), key=lambda m: m.site.start, reverse=True
    )
    if not inside:
        return text
    lines = text.count("\n")
    for mutant in inside:
        site = mutant.site
        text = text[: site.start] + site.text(mutant.number) + text[site.end :]
    if not text.startswith("//"):
        raise MutationError(f"{path}: expected a comment as the first line")
    header = os.path.relpath(HEADER_PATH, Path(path).parent)
    text = f'#include "{header}" {text}'
    if text.count("\n") != lines:
        raise MutationError(f"{path}: a fault moves lines")
    return text


def shown(site: Site, text: str) -> list[str]:
    """The lines of a site as they are and as they are with the fault, like diff's."""
    start = text.rfind("\n", 0, site.start) + 1
    end = text.find("\n", site.end)
    before, after = text[start : site.start], text[site.end : end]
    mutated = before + (site.mutated or "/* skipped */") + after
    return [*(f"- {line}" for line in text[start:end].split("\n")), f"+ {mutated}"]


def run(
    command: list[str | Path],
    cwd: Path,
    log: Path,
    limit_s: float,
    mutant: int | None = None,
    more: dict[str, str] | None = None,
) -> int | None:
    """The exit code of a command whose output goes to a file, with a fault on; None if it
    was stopped after `limit_s`, with all that it had started."""
    environment = {**os.environ, **(more or {})}
    environment.pop(VARIABLE, None)
    if mutant is not None:
        environment[VARIABLE] = str(mutant)
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as output:
        process = subprocess.Popen(
            [str(part) for part in command],
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=first_to_go,
        )
        try:
            return process.wait(limit_s)
        except subprocess.TimeoutExpired:
            return None
        finally:
            # What it started, and left behind, too.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def first_to_go() -> None:
    """A fault may ask for all memory there is: the machine stops it ahead of others."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


@dataclass
class Tree:
    """The clone and its build. `work` holds both, logs, copies of images and a cache."""

    root: Path
    work: Path
    commit: str
    jobs: int = 1

    @property
    def path(self) -> Path:
        return self.work / "tree"

    @property
    def build(self) -> Path:
        return self.path / "build/release"

    @property
    def cache(self) -> Path:
        """What the build and its tests remember, of images and of tests that have passed."""
        return self.work / "cache"

    @property
    def images(self) -> Path:
        return self.work / "images"

    def git(self, *arguments: str, cwd: Path | None = None) -> str:
        command = ["git", *arguments]
        done = subprocess.run(command, cwd=cwd or self.path, text=True, capture_output=True)
        if done.returncode:
            raise MutationError(f"{' '.join(command)} failed:\n{done.stderr.rstrip()}")
        return done.stdout.strip()

    def check_out(self) -> None:
        """The clone at the commit, with the faults that it had, if it had it."""
        if not (self.path / ".git").exists():
            self.work.mkdir(parents=True, exist_ok=True)
            clone = ["clone", "--quiet", "--shared", "--no-checkout", str(self.root)]
            self.git(*clone, str(self.path), cwd=self.work)
        elif self.git("rev-parse", "HEAD") == self.commit and (self.path / HEADER_PATH).exists():
            return
        self.git("checkout", "--quiet", "--force", "--detach", self.commit)
        (self.path / HEADER_PATH).write_text(HEADER)
        with (self.path / LIT_CONFIG).open("a") as config:
            config.write(LIT_LINES)
        environment = Path(sys.prefix)
        if environment.name == ".venv" and not (self.path / ".venv").exists():
            (self.path / ".venv").symlink_to(environment)

    def take(self, files: list[str], commit: str) -> None:
        """Takes over files of tests as they are in another commit."""
        for name in files:
            if not name.startswith("test/") or name == LIT_CONFIG:
                raise MutationError(f"{name}: expected a test in test/")
        if files:
            self.git("checkout", "--quiet", commit, "--", *files)

    def write(self, texts: dict[str, str], mutants: list[Mutant]) -> None:
        """Writes the files whose text is another than the clone has."""
        for name, text in texts.items():
            path, new = self.path / name, rewritten(name, text, mutants)
            if path.read_text() != new:
                path.write_text(new)

    def make(self, log: Path, limit_s: float, *flags: str, mutant: int | None = None) -> int | None:
        command = ["cmake", "--build", "--preset", "release", "--parallel", str(self.jobs)]
        return run([*command, "--", *flags], self.path, log, limit_s, mutant)

    def compile(self) -> str:
        """Builds everything without a fault on; what the compiler says, if it fails."""
        log = self.work / "logs/build.log"
        # All faults are in one compiler, so what it has made before is of any of them.
        configure = ["cmake", "--preset", "release", f"-DGDN_IMAGE_CACHE:PATH={self.cache}"]
        if run(configure, self.path, log, 600) != 0:
            raise MutationError(f"cmake failed:\n{log.read_text()[-4000:]}")
        if self.make(log, 4 * 3600, "-k", "0") == 0:
            return ""
        return log.read_text(errors="replace")

    def forget(self) -> None:
        """What was made and what has passed with another fault on."""
        shutil.rmtree(self.cache, ignore_errors=True)

    def keep_images(self) -> None:
        """Copies of the images that the build made without a fault."""
        shutil.rmtree(self.images, ignore_errors=True)
        for image in self.find_images():
            copy = self.images / image.relative_to(self.build)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(image, copy)

    def find_images(self) -> list[Path]:
        """Those of the build; tests of lit leave some of their own behind."""
        return [path for path in self.build.rglob("*.gdnk") if "Output" not in path.parts]

    def make_images(self, mutant: int, log: Path, limit_s: float) -> int | None:
        """Has the compiler make all images once more, with a fault on."""
        for image in self.find_images():
            image.unlink()
        return self.make(log, limit_s, mutant=mutant)

    def restore_images(self) -> None:
        for copy in self.images.rglob("*.gdnk"):
            shutil.copy2(copy, self.build / copy.relative_to(self.images))


def blamed(log: str, tree: Path, build: Path, mutants: list[Mutant]) -> dict[str, str]:
    """The sites that do not compile, by their keys, and what the compiler says of them."""
    found: dict[str, str] = {}
    error, places = "", []

    def settle() -> None:
        """Blames the sites of what was read about one error, or else the nearest one: what
        does not compile may use what a site makes."""
        ranked = sorted(
            (distance(mutant.site, line), mutant.site.key)
            for file, line in places
            for mutant in mutants
            if mutant.site.file == file
        )
        for far, key in ranked:
            if far == ranked[0][0]:
                found.setdefault(key, error)

    above: list[tuple[str, int]] = []
    for text in log.splitlines():
        if included := INCLUDED.match(text):
            above.append((within(included[1], tree, build), int(included[2])))
            continue
        if not (said := ERROR.match(text)):
            continue
        if said[3] != "note":
            settle()
            error, places = "", []
        if said[3] == "error":
            error, places = said[4], above
        if error:
            places = [*places, (within(said[1], tree, build), int(said[2]))]
        above = []
    settle()
    return found


def distance(site: Site, line: int) -> int:
    """How many lines a line is away from a site."""
    last = site.line + site.original.count("\n")
    return max(site.line - line, line - last, 0)


def within(name: str, tree: Path, build: Path) -> str:
    """A file that the compiler names, as the tree knows it; as it is, if it is of no tree."""
    path = Path(os.path.normpath(build / name))
    return str(path.relative_to(tree)) if path.is_relative_to(tree) else name


def prepare(
    tree: Tree,
    texts: dict[str, str],
    drawn: Callable[[set[str]], list[Mutant]],
    rejected: dict[str, str],
    say: Callable[[str], None] = print,
) -> list[Mutant]:
    """Builds the clone with all faults. Sites that do not compile come into `rejected`, and
    others take their places."""
    tree.check_out()
    tree.restore_images()  # of a run that was stopped
    while True:
        mutants = drawn(set(rejected))
        tree.write(texts, mutants)
        say(f"building the clone with {len(mutants)} faults")
        log = tree.compile()
        if not log:
            tree.keep_images()
            return mutants
        new = blamed(log, tree.path, tree.build, mutants)
        new = {key: error for key, error in new.items() if key not in rejected}
        if not new:
            raise MutationError(f"the clone does not build:\n{log[-4000:]}")
        for mutant in mutants:
            if mutant.site.key in new and mutant.site.pattern == "fixed":
                raise MutationError(f"{mutant.name}: {new[mutant.site.key]}")
        for key, error in new.items():
            say(f"does not compile: {key}: {error}")
        rejected |= new
