# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs suites on faults, up to the first that notices each. First, suite after suite, all faults
run a few tests that execute their sites; then, fault after fault, the rest runs whole suites."""

from __future__ import annotations

import contextlib
import json
import re
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from mutation import reach
from mutation.draw import Mutant, MutationError
from mutation.judged import EQUIVALENT
from mutation.rewrite import Tree, run

COMPILER = ("passes", "emitters")
ALL = (*COMPILER, "runtime")
IMAGES = "build of images"
# As many tests that execute the site run before a whole suite does, for so many seconds.
FIRST, FIRST_S = 40, 900
# First failing tests, as lit, ctest and pytest name them.
LIT = r"^(?:FAIL|TIMEOUT|UNRESOLVED|XPASS): \S+ :: (\S+)"
CTEST = r"^ *\d+/\d+ Test +#\d+: (\S+) .*\*\*\*(?!Skipped)"
PYTEST = r"^(?:FAILED|ERROR) (\S+)"


@dataclass(frozen=True)
class Program:
    """What runs tests: how it is told which ones, and where it says how long each took; ctest
    says no test its name, so that each runs by itself."""

    choose: Callable[[list[str], list[str]], list[str]]
    seconds: Callable[[Path, Path], dict[str, float]] | None = None


PROGRAMS = {
    "lit": Program(reach.lit_tests, reach.lit_seconds),
    "ctest": Program(reach.ctest_tests),
    "pytest": Program(reach.pytest_tests, reach.pytest_seconds),
}


@dataclass(frozen=True)
class Suite:
    """A command that fails when a test does. It runs in the clone; {build}, {python}, {lit}
    and {jobs} stand for what they say. `images`: it reads images that the build makes, which
    faults of the compiler change. `old`: it runs only on what survives all others, and what
    it alone catches counts as not caught. `program`: what runs its tests, if it can be told
    which ones (lit, ctest or pytest). `brief`: arguments that leave out long tests, which are
    none of the first."""

    name: str
    areas: tuple[str, ...]
    command: tuple[str, ...]
    test: str = ""
    program: str = ""
    limit_s: float = 3600
    images: bool = False
    old: bool = False
    brief: tuple[str, ...] = ()


_CTEST = ("ctest", "--test-dir", "{build}", "--stop-on-failure", "--timeout", "900", "-j", "{jobs}")
# Files of pytest that take longest, most of it in the compiler.
_LONG = (
    "chunk_property demo gated_delta_net gdn_compile gdn_run gdn_shapes gpu_prefill gpu_verify "
    "guides image_cache layer_problem numerics_check readme reference remove_edges removed_ops "
    "state_order"
)
# In the order in which they run.
SUITES = [
    Suite(
        "lit",
        COMPILER,
        ("{lit}", "-v", "-j", "{jobs}", "--max-failures=1", "{build}/test"),
        LIT,
        "lit",
        brief=("--filter-out=Pipeline/|NVPTX/s",),
    ),
    Suite("kernels.lock", COMPILER, (*_CTEST, "-L", "^lock$"), CTEST, "ctest"),
    Suite(
        "unit",
        ALL,
        (*_CTEST, "-L", "^(unit|integration)$"),
        CTEST,
        "ctest",
        images=True,
        brief=("-E", "^(traces|integration|host|OpSweep)\\."),
    ),
    Suite("conformance", ALL, (*_CTEST, "-L", "^cts$"), CTEST, "ctest", images=True),
    Suite(
        "pytest",
        ALL,
        (
            "{python}",
            "-m",
            "pytest",
            "-x",
            "-q",
            "--durations=0",
            "--build-dir={build}",
            "-mnot long",
            "--ignore-glob=test/python/test_mutate*.py",
            "test/python",
        ),
        PYTEST,
        "pytest",
        images=True,
        brief=tuple(f"--ignore=test/python/test_{name}.py" for name in _LONG.split()),
    ),
]


@dataclass
class Outcome:
    failed: bool
    seconds: float
    timed_out: bool = False
    test: str = ""


class Runner:
    """The suites on the clone, and a record of what they say, written after every fault."""

    def __init__(
        self,
        tree: Tree,
        suites: list[Suite],
        facts: dict,
        record: Path,
        say: Callable[[str], None] = print,
    ):
        self.tree, self.suites, self.record, self.say = tree, suites, record, say
        self.facts = facts | {"base": {}, "mutants": []}
        # By suite and number, tests that execute the site.
        self.reached: dict[str, dict[str, list[str]]] = {}
        self.made: int | None = None  # the fault that images have

    def resume(self) -> None:
        """Takes over what is known of the same sources: who was caught, and of others what
        has passed at this commit."""
        try:
            known = json.loads(self.record.read_text())
        except (OSError, ValueError):
            return
        same = ("seed", "drawn", "sources")
        if any(known.get(fact) != self.facts[fact] for fact in same):
            return
        is_here = known.get("commit") == self.facts["commit"]
        if is_here:
            self.facts["base"] = known.get("base", {})
        for entry in known.get("mutants", []):
            if not is_here and not self.is_caught(entry):
                entry |= {"caught_by": None, "test": "", "first": [], "passed": []}
            self.facts["mutants"].append(entry)

    # Suites.

    def command(self, suite: Suite) -> list[str]:
        words = {
            "build": self.tree.build,
            "python": sys.executable,
            "jobs": self.tree.jobs,
            "lit": lit_program(self.tree.root),
        }
        return [part.format(**words) for part in suite.command]

    def execute(
        self,
        suite: Suite,
        mutant: int | None,
        limit_s: float,
        tests: list[str] | None = None,
        more: dict[str, str] | None = None,
        log: Path | None = None,
        brief: tuple[str, ...] = (),
    ) -> Outcome:
        """Runs a suite, or only some of its tests."""
        command = [*self.command(suite), *brief]
        if tests:
            command = PROGRAMS[suite.program].choose(command, tests)
        log = log or self.log(mutant, suite.name)
        start = time.monotonic()
        code = run(command, self.tree.path, log, limit_s, mutant, more)
        outcome = Outcome(code != 0, time.monotonic() - start, timed_out=code is None)
        if outcome.failed and suite.test:
            found = re.search(suite.test, log.read_text(errors="replace"), re.MULTILINE)
            outcome.test = found[1] if found else ""
        return outcome

    def log(self, mutant: int | None, name: str) -> Path:
        of = "base" if mutant is None else str(mutant)
        return self.tree.work / "logs" / f"{of}-{name.replace(' ', '-')}.log"

    def limit_s(self, suite: Suite) -> float:
        """What takes much longer than without a fault does not end."""
        usual = self.facts["base"].get(suite.name)
        return suite.limit_s if usual is None else min(suite.limit_s, 3 * usual + 120)

    def check_base(self, suite: Suite) -> None:
        """A suite passes without a fault; how long it takes is the measure of others."""
        if suite.name not in self.facts["base"]:
            outcome = self.execute(suite, None, suite.limit_s)
            self.expect_green(suite, outcome)
            self.facts["base"][suite.name] = round(outcome.seconds, 1)
            self.write()

    def check_first(self, suite: Suite) -> None:
        """The tests of a suite that may be first pass without a fault; which of them execute
        which sites is noted meanwhile."""
        known = self.tree.work / "reached.json"
        with contextlib.suppress(OSError, ValueError):
            facts = json.loads(known.read_text())
            if facts["of"] == self.numbering():
                self.reached = facts["reached"] | self.reached
        if not suite.program or suite.name in self.reached:
            return
        if not suite.images:  # what was compiled before executes no site
            self.tree.forget()
        program = PROGRAMS[suite.program]
        folder = self.tree.work / "reached" / suite.name
        more = reach.environment(folder)
        if program.seconds is None:
            outcome, seconds = self.execute_each(suite, more)
        else:
            outcome = self.execute(suite, None, suite.limit_s, more=more, brief=suite.brief)
            seconds = program.seconds(self.tree.build, self.log(None, suite.name))
        self.expect_green(suite, outcome)
        self.reached[suite.name] = reach.read(folder, seconds)
        facts = {"of": self.numbering(), "reached": self.reached}
        known.write_text(json.dumps(facts) + "\n")

    def expect_green(self, suite: Suite, outcome: Outcome) -> None:
        self.say(f"without a fault: {suite.name}: {outcome.seconds:.0f} s")
        if outcome.failed:
            log = self.log(None, suite.name)
            raise MutationError(f"{suite.name} fails without a fault: {outcome.test} ({log})")

    def numbering(self) -> list:
        """What the numbers of faults follow from."""
        return [self.facts[fact] for fact in ("commit", "seed", "drawn", "sources")]

    def execute_each(self, suite: Suite, more: dict[str, str]) -> tuple[Outcome, dict[str, float]]:
        """Runs every test by itself, since ctest tells none its name; how long each took."""
        command = [*self.command(suite), *suite.brief]
        failed: list[str] = []

        def one(test: reach.Test) -> float:
            start = time.monotonic()
            name = re.sub("[^A-Za-z0-9_.-]", "-", test.name)[:200]
            log = self.tree.work / "logs/each" / f"{name}.log"
            variables = more | {reach.TEST: test.name}
            folder, own = Path(test.folder), variables | test.environment
            has_passed = bool(test.command) and folder.is_dir()
            if has_passed:
                has_passed = run(test.command, folder, log, suite.limit_s, more=own) == 0
            took = time.monotonic() - start
            if not has_passed:  # ctest knows whether it should
                chosen = PROGRAMS[suite.program].choose(command, [test.name])
                if run(chosen, self.tree.path, log, suite.limit_s, more=variables) != 0:
                    failed.append(test.name)
            return took

        start = time.monotonic()
        tests = reach.ctest_tests_of(command, self.tree.path)
        pool = ThreadPoolExecutor(self.tree.jobs)
        try:
            each = pool.map(one, tests)
            seconds = {test.name: took for test, took in zip(tests, each, strict=True)}
        finally:
            pool.shutdown(cancel_futures=True)
        took = time.monotonic() - start
        return Outcome(bool(failed), took, test="".join(failed[:1])), seconds

    # Faults.

    def run(self, mutants: list[Mutant], quick: bool = False) -> None:
        """Runs the faults that nobody has caught; with `quick`, no whole suites."""
        self.tree.forget()
        known = [(mutant, self.entry(mutant)) for mutant in mutants]
        for suite in sorted(self.suites, key=lambda suite: suite.old):
            for mutant, entry in self.left(known, suite, "first"):
                self.check_first(suite)
                self.run_first(suite, mutant, entry)
                self.write()
        for mutant, entry in known if not quick else []:
            suites = [s for s in self.suites if self.left([(mutant, entry)], s, "passed")]
            if suites and not why_equivalent(entry):
                for suite in suites:
                    self.check_base(suite)
                self.run_one(mutant, entry, suites)
                self.write()

    @staticmethod
    def left(known: list[tuple[Mutant, dict]], suite: Suite, passed: str) -> list:
        """The faults that nobody has caught and that have not passed a suite, or its first
        tests."""
        return [
            (mutant, entry)
            for mutant, entry in known
            if mutant.area in suite.areas
            and not entry["caught_by"]
            and suite.name not in [*entry[passed], *entry["passed"]]
        ]

    def run_first(self, suite: Suite, mutant: Mutant, entry: dict) -> None:
        """The shortest tests of a suite that execute the site. Images stay as they are: what
        a fault of the compiler does to them is seen later."""
        tests = self.reached.get(suite.name, {}).get(str(mutant.number), [])
        if tests and self.has_noticed(suite, mutant, entry, tests[:FIRST]):
            self.sign(entry)
        else:
            entry["first"].append(suite.name)

    def run_chosen(self, mutants: list[Mutant], tests: list[str], commit: str) -> None:
        """Runs tests of a commit, by their names, on faults that nobody has caught."""
        for mutant in mutants:
            entry = self.entry(mutant)
            for suite in self.suites:
                of = [test for test in tests if reach.program_of(test) == suite.program]
                is_open = mutant.area in suite.areas and not entry["caught_by"]
                if of and is_open and self.has_noticed(suite, mutant, entry, of):
                    self.sign(entry)
                    entry["commit"] = commit
            self.write()

    def entry(self, mutant: Mutant) -> dict:
        """What is known of a fault, new or from a run before."""
        site = mutant.site
        start = {
            "number": mutant.number,
            "kind": site.kind,
            "area": mutant.area,
            "site": f"{site.file}:{site.line}",
            "original": " ".join(site.original.split()),
            "mutated": " ".join(site.mutated.split()),
        }
        if mutant.name:
            start["name"] = mutant.name
        for entry in self.facts["mutants"]:
            if all(entry.get(field) == value for field, value in start.items()):
                return entry
        numbers = [entry["number"] for entry in self.facts["mutants"]]
        if mutant.number in numbers:  # of a site that has left its number
            del self.facts["mutants"][numbers.index(mutant.number)]
        start |= {"caught_by": None, "test": "", "first": [], "passed": [], "seconds": 0.0}
        self.facts["mutants"].append(start)
        return start

    def run_one(self, mutant: Mutant, entry: dict, suites: list[Suite]) -> None:
        self.tree.forget()
        has_images = mutant.area == "runtime"
        try:
            for suite in sorted(suites, key=lambda suite: suite.old):
                if suite.images and not has_images:
                    outcome = self.make_images(mutant)
                    has_images = True
                    if self.note(entry, IMAGES, outcome):
                        break
                if self.has_noticed(suite, mutant, entry):
                    break
                entry["passed"].append(suite.name)
        finally:
            if mutant.area != "runtime" and has_images:
                self.tree.restore_images()
                self.made = None
        self.sign(entry)

    def sign(self, entry: dict) -> None:
        """Enters when and with which tests a fault has run."""
        entry["commit"] = self.facts["commit"]
        entry["date"] = datetime.now(UTC).strftime("%Y-%m-%dT%H:%MZ")
        by = entry["caught_by"]
        how = f"caught by {by} {entry['test']}".rstrip() if by else "SURVIVES"
        self.say(
            f"{entry['number']:3} {entry['kind']:5} {entry['site']}: {how}, "
            f"{entry['seconds']:.0f} s"
        )

    def has_noticed(
        self, suite: Suite, mutant: Mutant, entry: dict, tests: list[str] | None = None
    ) -> bool:
        """Runs a suite, or some of its tests, on a fault; whether one fails that fails once
        more, and passes without the fault. So nothing is caught by other work in the way."""
        limit_s = self.limit_s(suite) if tests is None else min(FIRST_S, suite.limit_s)
        for _ in range(3):
            if tests == []:
                return False
            self.tree.forget()
            outcome = self.execute(suite, mutant.number, limit_s, tests)
            has_name = suite.program and outcome.test in (tests or [outcome.test])
            again = [outcome.test] if has_name and outcome.test else tests
            if not outcome.failed or self.is_confirmed(suite, mutant, outcome, again):
                return self.note(entry, suite.name, outcome)
            self.say(f"{mutant.number:3} {suite.name}: fails by chance: {outcome.test}")
            if tests and again:
                tests = [test for test in tests if test not in again]
        raise MutationError(f"{suite.name} fails by chance: {self.log(mutant.number, suite.name)}")

    def is_confirmed(
        self, suite: Suite, mutant: Mutant, outcome: Outcome, tests: list[str] | None
    ) -> bool:
        """Whether what has failed with a fault fails again, and passes without it."""
        has_images = suite.images and mutant.number == self.made
        limit_s = min(suite.limit_s, max(FIRST_S, self.limit_s(suite)))
        log = self.log(mutant.number, f"{suite.name} confirmed")

        def fails(number: int | None) -> bool:
            self.tree.forget()
            return self.execute(suite, number, limit_s, tests, log=log).failed

        # What does not end would take as long once more.
        if not outcome.timed_out and not fails(mutant.number):
            return False
        if has_images:
            self.tree.restore_images()
        if not fails(None):
            return True
        if has_images:
            self.make_images(mutant)
        return False

    def make_images(self, mutant: Mutant) -> Outcome:
        self.made = mutant.number
        start = time.monotonic()
        log = self.log(mutant.number, IMAGES)
        code = self.tree.make_images(mutant.number, log, 1800)
        outcome = Outcome(code != 0, time.monotonic() - start, timed_out=code is None)
        if outcome.failed:
            found = re.search(r"^FAILED: (?:\[.*?\] )?(\S+)", log.read_text(), re.MULTILINE)
            outcome.test = found[1] if found else ""
        return outcome

    def note(self, entry: dict, name: str, outcome: Outcome) -> bool:
        """Enters what a suite said; whether it has noticed the fault."""
        entry["seconds"] = round(entry["seconds"] + outcome.seconds, 1)
        if outcome.failed:
            entry["caught_by"] = name
            entry["test"] = "no end" if outcome.timed_out and not outcome.test else outcome.test
        return outcome.failed

    # The record.

    def is_caught(self, entry: dict) -> bool:
        """By a suite that is not an old one."""
        old = [suite.name for suite in self.suites if suite.old]
        return bool(entry["caught_by"]) and entry["caught_by"] not in old

    def has_run(self, entry: dict) -> bool:
        """Whether a fault was caught, is none, or has passed all there is."""
        suites = [suite.name for suite in self.suites if entry["area"] in suite.areas]
        has_passed = set(suites) <= set(entry["passed"])
        return bool(entry["caught_by"] or why_equivalent(entry)) or has_passed

    def totals(self) -> dict:
        entries = [entry for entry in self.facts["mutants"] if self.has_run(entry)]
        caught = [entry for entry in entries if self.is_caught(entry)]
        rest = [e for e in entries if e not in caught]
        equivalent = [e for e in rest if why_equivalent(e)]
        for entry in equivalent:
            entry["equivalent"] = why_equivalent(entry)
        real = len(entries) - len(equivalent)
        return {
            "run": len(entries),
            "caught": len(caught),
            "equivalent": len(equivalent),
            "survived": real - len(caught),
            "caught_of_100": round(100 * len(caught) / real, 1) if real else 100.0,
        }

    def write(self) -> None:
        self.facts["mutants"].sort(key=lambda entry: entry["number"])
        totals = self.totals()
        mutants = self.facts.pop("mutants")
        self.facts |= totals
        self.facts["mutants"] = mutants
        self.record.parent.mkdir(parents=True, exist_ok=True)
        new = self.record.with_suffix(".new")
        new.write_text(json.dumps(self.facts, indent=2) + "\n")
        new.replace(self.record)


def why_equivalent(entry: dict) -> str:
    file = entry["site"].rpartition(":")[0]
    for each in EQUIVALENT:
        if (each.file, each.original, each.mutated) == (file, entry["original"], entry["mutated"]):
            return each.why
    return ""


def lit_program(root: Path) -> str:
    return f"/usr/lib/llvm-{(root / 'LLVM_VERSION').read_text().strip()}/bin/lit"
