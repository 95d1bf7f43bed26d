# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Puts faults into gdn, one at a time, and looks whether its tests notice.

A seed draws the faults from passes, emitters and runtime: a mask, bound, wait, scale, index,
key or check that is not there. mutation/judged.py adds some that are always there. One build
in a clone has all of them. Of each suite, listed in mutation/runner.py, a few tests that execute
the site run on every fault; what is left after that runs whole suites, one fault after the other.

  mutate.py --list            what is drawn, like a diff
  mutate.py --build           builds the clone and drops what does not compile
  mutate.py                   runs all, or goes on where it stopped
  mutate.py --only 3,17       runs some
  mutate.py --record          the same, into docs/generated/mutations.json
  mutate.py --record --quick  no whole suites
  mutate.py --record --only 17 --take test/python/test_a.py --tests test/python/test_a.py::test_b
                              a test of HEAD on a survivor

A record says which commit its faults are of, and a run goes on with the sources and tests of that
commit, on any machine; --again begins anew at HEAD, and --commit HEAD runs survivors again where
HEAD differs in tests alone. Ends with 0 if all have run and at least 95 of 100 are caught; a fault
that is none, by judged.py, does not count.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from mutation.draw import Mutant, MutationError, all_sites, draw, fixed, sources
from mutation.rewrite import Tree, prepare, shown
from mutation.runner import SUITES, Runner

ROOT = Path(__file__).resolve().parents[2]
RECORD = ROOT / "docs/generated/mutations.json"
WANTED = 95.0  # of 100 are caught


def names(text: str) -> list[str]:
    return text.split(",")


def numbers(text: str) -> set[int]:
    return {int(part) for part in text.split(",")}


def resolved(commit: str) -> str:
    command = ["git", "-C", str(ROOT), "rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}"]
    done = subprocess.run(command, text=True, capture_output=True)
    if done.returncode:
        raise MutationError(f"expected a commit, got {commit}")
    return done.stdout.strip()


def digest_of(texts: dict[str, str]) -> str:
    return hashlib.sha256(json.dumps(texts, sort_keys=True).encode()).hexdigest()


def commit_of(options: argparse.Namespace, record: Path) -> str:
    """The commit whose sources have the faults: the one of the record, if it is there and has
    been drawn in the same way."""
    if options.commit or options.again:
        return resolved(options.commit or "HEAD")
    try:
        known = json.loads(record.read_text())
        texts = sources(ROOT, known["commit"])
    except (OSError, ValueError, KeyError, MutationError):
        return resolved("HEAD")
    is_same = known.get("seed") == options.seed and known.get("sources") == digest_of(texts)
    return known["commit"] if is_same else resolved("HEAD")


def show(mutants: list[Mutant], texts: dict[str, str]) -> None:
    for mutant in mutants:
        site = mutant.site
        name = f"  {mutant.name}" if mutant.name else ""
        print(f"\n{mutant.number:3}  {site.kind}  {mutant.area}  {site.file}:{site.line}{name}")
        for line in shown(site, texts[site.file]):
            print(f"     {line}")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="mutate.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seed", type=int, default=1, help="of what is drawn (default: 1)")
    parser.add_argument("--count", type=int, default=60, help="how many are drawn (default: 60)")
    parser.add_argument("--at-least", type=int, default=8, help="of each kind (default: 8)")
    parser.add_argument("--list", action="store_true", help="print the faults and run nothing")
    parser.add_argument("--build", action="store_true", help="build the clone and run nothing")
    parser.add_argument("--only", type=numbers, metavar="N,N..", help="the faults to run")
    parser.add_argument("--suites", help="the suites to run, by name, with commas")
    parser.add_argument("--record", action="store_true", help=f"write {RECORD.relative_to(ROOT)}")
    parser.add_argument("--quick", action="store_true", help="run no whole suites")
    parser.add_argument("--again", action="store_true", help="forget what ran before")
    parser.add_argument(
        "--commit", help="of the sources and tests (default: the record's, or HEAD)"
    )
    parser.add_argument("--take", type=names, default=[], help="files of HEAD's tests to take over")
    parser.add_argument("--tests", type=names, default=[], help="names of the tests to run alone")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--work",
        type=Path,
        default=ROOT / "build/mutants",
        help="folder of the clone, its build and logs (default: build/mutants)",
    )
    return parser.parse_args()


def main_of(options: argparse.Namespace) -> int:
    record = RECORD if options.record else options.work / "mutations.json"
    commit = commit_of(options, record)
    texts = sources(ROOT, commit)
    digest = digest_of(texts)
    by_hand = fixed(texts, options.count + 1)
    sites = all_sites(texts)
    # What does not compile is known by the sources that it was found in.
    known = options.work / "rejected.json"
    try:
        facts = json.loads(known.read_text())
    except (OSError, ValueError):
        facts = {}
    rejected = facts.get("rejected", {}) if facts.get("sources") == digest else {}

    def drawn(rejected: set[str]) -> list[Mutant]:
        taken = [mutant.site for mutant in by_hand]
        found = draw(sites, options.seed, options.count, options.at_least, rejected, taken)
        return [*found, *by_hand]

    if options.list:
        show(drawn(set(rejected)), texts)
        return 0
    tree = Tree(ROOT, options.work.resolve(), commit, options.jobs)
    tree.check_out()
    tree.take(options.take, resolved("HEAD"))
    try:
        mutants = prepare(tree, texts, drawn, rejected, say)
    finally:
        options.work.mkdir(parents=True, exist_ok=True)
        known.write_text(json.dumps({"sources": digest, "rejected": rejected}, indent=2) + "\n")
    if options.build:
        return 0
    suites = [s for s in SUITES if not options.suites or s.name in options.suites.split(",")]
    facts = {"seed": options.seed, "commit": commit, "sources": digest, "drawn": len(mutants)}
    runner = Runner(tree, suites, facts, record, say)
    if not options.again:
        runner.resume()
    chosen = [m for m in mutants if not options.only or m.number in options.only]
    if options.tests:
        runner.run_chosen(chosen, options.tests, resolved("HEAD"))
    else:
        runner.run(chosen, options.quick)
    totals = runner.totals()
    say(
        f"{totals['run']} of {len(mutants)} ran: {totals['caught']} caught, "
        f"{totals['survived']} survive, {totals['equivalent']} are no faults: "
        f"{totals['caught_of_100']} of 100"
    )
    has_all = totals["run"] == len(mutants)
    return 0 if has_all and totals["caught_of_100"] >= WANTED else 1


def say(text: str) -> None:
    print(text, flush=True)


def main() -> int:
    # What runs is stopped too, and images are put back.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        return main_of(parse())
    except MutationError as error:
        print(f"mutate.py: error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
