# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which sites a seed takes: as many of each kind, of each area and of many files.

Every kind and area has an order of its sites, which follows from the seed and the tree
alone. A fault that does not compile leaves its number to the next in that order; all others
keep theirs.
"""

from __future__ import annotations

import fnmatch
import random
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from mutation.cpp import Source
from mutation.judged import FIXED, Fixed
from mutation.sites import AREAS, KINDS, Finder, Site, find


class MutationError(Exception):
    """Something that the user has to know; its text is the whole message."""


@dataclass(frozen=True)
class Mutant:
    """A fault with its number, which the environment variable GDN_MUTANT turns on."""

    number: int
    area: str
    site: Site
    name: str = ""


def area_of(path: str) -> str | None:
    folder = str(Path(path).parent)
    for area, folders in AREAS.items():
        if any(fnmatch.fnmatchcase(folder, each) for each in folders):
            return area
    return None


def sources(root: Path, commit: str) -> dict[str, str]:
    """The C++ files of all areas as they are in a commit."""

    def git(*arguments: str, stdin: str = "") -> bytes:
        command = ["git", "-C", str(root), *arguments]
        done = subprocess.run(command, input=stdin.encode(), capture_output=True)
        if done.returncode:
            raise MutationError(f"{' '.join(command)} failed:\n{done.stderr.decode().rstrip()}")
        return done.stdout

    names = git("ls-tree", "-r", "-z", "--name-only", commit).decode().split("\0")
    names = [name for name in names if name.endswith((".cpp", ".h")) and area_of(name)]
    objects = "".join(f"{commit}:{name}\n" for name in names)
    rest, texts = git("cat-file", "--batch", stdin=objects), {}
    for name in names:
        head, _, rest = rest.partition(b"\n")
        size = int(head.split()[-1])
        texts[name], rest = rest[:size].decode(), rest[size + 1 :]
    return texts


def all_sites(texts: dict[str, str]) -> list[Site]:
    return [site for name in sorted(texts) for site in find(name, texts[name])]


def order(sites: Iterable[Site], seed: str) -> list[Site]:
    """Every site once: patterns take turns, and so do the files of each."""
    chance = random.Random(seed)
    by_pattern: dict[str, dict[str, list[Site]]] = {}
    for site in sites:
        by_pattern.setdefault(site.pattern, {}).setdefault(site.file, []).append(site)
    turns = []
    for pattern in shuffled(by_pattern, chance):
        files = by_pattern[pattern]
        turns.append(by_turns([shuffled(files[file], chance) for file in shuffled(files, chance)]))
    # Files that have had no turn come first.
    found, later, files = [], [], set()
    for site in by_turns(turns):
        (later if site.file in files else found).append(site)
        files.add(site.file)
    return found + later


def shuffled(items: Iterable, chance: random.Random) -> list:
    """In an order that does not depend on the one they come in."""
    items = sorted(items, key=lambda item: item.key if isinstance(item, Site) else item)
    chance.shuffle(items)
    return items


def by_turns(lists: list[list[Site]]) -> list[Site]:
    return [site for turn in zip_longest(*lists) for site in turn if site is not None]


def counts(count: int, at_least: int) -> dict[tuple[str, str], int]:
    """How many of each kind and area make `count`."""
    if count < at_least * len(KINDS):
        raise MutationError(
            f"expected a count of at least {at_least * len(KINDS)}, {at_least} of each kind, "
            f"got {count}"
        )
    areas = list(AREAS)
    found = {(kind, area): 0 for kind in KINDS for area in areas}
    # From kind to kind another area is the first, so that all have as many.
    for number in range(count):
        kind, turn = number % len(KINDS), number // len(KINDS)
        found[KINDS[kind], areas[(kind + turn) % len(areas)]] += 1
    return found


def draw(
    sites: Iterable[Site],
    seed: int,
    count: int,
    at_least: int,
    rejected: Iterable[str] = (),
    taken: Iterable[Site] = (),
) -> list[Mutant]:
    """`count` sites that overlap neither each other nor what is taken, and none that is in
    `rejected` by its key."""
    by_kind: dict[tuple[str, str], list[Site]] = {}
    for site in sites:
        by_kind.setdefault((site.kind, area_of(site.file) or ""), []).append(site)
    rejected, taken = set(rejected), list(taken)
    mutants, number = [], 0
    for (kind, area), most in counts(count, at_least).items():
        # Where an area has too few of a kind, the others help out.
        areas = [area, *(each for each in AREAS if each != area)]
        found = []
        for each in areas:
            found += order(by_kind.get((kind, each), []), f"{seed}/{kind}/{each}")
        slots, later = found[:most], found[most:]
        for site in slots:
            number += 1
            while site and (site.key in rejected or overlaps(site, taken)):
                site = later.pop(0) if later else None
            if site is None:
                raise MutationError(f"expected {most} sites of {kind} in {area}, found fewer")
            taken.append(site)
            mutants.append(Mutant(number, area_of(site.file) or "", site))
    return mutants


def overlaps(site: Site, others: Iterable[Site]) -> bool:
    return any(
        site.file == other.file and site.start < other.end and other.start < site.end
        for other in others
    )


def fixed(texts: dict[str, str], first: int, table: Iterable[Fixed] = FIXED) -> list[Mutant]:
    """The faults of the table, numbered from `first` on."""
    return [
        Mutant(number, area_of(each.file) or "", fixed_site(each, texts.get(each.file)), each.name)
        for number, each in enumerate(table, first)
    ]


def fixed_site(fault: Fixed, text: str | None) -> Site:
    if text is None:
        raise MutationError(f"{fault.name}: there is no {fault.file}")
    if text.count(fault.within) != 1 or fault.within.count(fault.original) != 1:
        raise MutationError(f"{fault.name}: expected the text once in {fault.file}: {fault.within}")
    start = text.index(fault.within) + fault.within.index(fault.original)
    source = Source(fault.file, text)
    numbers = [
        number
        for number, token in enumerate(source.tokens)
        if start <= token.start and token.end <= start + len(fault.original)
    ]
    span = (numbers[0], numbers[-1])
    type_ = "mlir::Value" if area_of(fault.file) != "runtime" else ""
    return Finder(source).choice(fault.kind, "fixed", span, fault.mutated, type_)
