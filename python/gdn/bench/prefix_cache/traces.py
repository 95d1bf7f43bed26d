# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Traces of requests that share prefixes, made from a seed: questions under system prompts, chats,
and agents that branch.

A trace is a tree of segments. A request's prompt is the path from the root to one segment, and
its answer is one segment more. Two requests share exactly the segments that their paths share,
so the tokens of a trace need not be in memory: `tokens` makes those of one path.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

NAMES = ("system-prompts", "chats", "agents")
SEEDS = range(1, 11)
REQUESTS_PER_MINUTE = 200
SECONDS = 7200.0

_BOOK_TOKENS = 1 << 20
_VOCABULARY = 150_000


@dataclass
class Trace:
    """Requests in the order of their arrivals. Segments are numbered; segment 0 is the root, which
    is empty."""

    name: str
    seed: int
    seconds: float  # how long requests arrive
    parent: list[int] = field(default_factory=lambda: [0])
    length: list[int] = field(default_factory=lambda: [0])  # tokens of the segment
    depth: list[int] = field(default_factory=lambda: [0])  # tokens from the root to its end
    arrival: list[float] = field(default_factory=list)  # seconds
    prompt: list[int] = field(default_factory=list)  # last segment of the prompt
    answer: list[int] = field(default_factory=list)  # segment of the answer, below the prompt's

    def add(self, parent: int, length: int) -> int:
        """A new segment of `length` tokens below another; returns its number."""
        self.parent.append(parent)
        self.length.append(length)
        self.depth.append(self.depth[parent] + length)
        return len(self.parent) - 1

    def path(self, segment: int) -> list[int]:
        """The segments from the root to this one, without the root."""
        found = []
        while segment:
            found.append(segment)
            segment = self.parent[segment]
        found.reverse()
        return found

    def tokens(self, segment: int) -> np.ndarray:
        """Token ids, int32, of the path to a segment. Each segment is a slice of one array of
        random numbers, at a position of its own, behind a first token that no other has: requests
        part where their paths do."""
        book = _book()
        found = np.empty(self.depth[segment], np.int32)
        for each in self.path(segment):
            first = (each * 2_654_435_761 + self.seed * 40_503) % (_BOOK_TOKENS - 1)
            end, length = self.depth[each], self.length[each]
            found[end - length : end] = book[first : first + length]
            found[end - length] = _VOCABULARY + each
        return found

    def distinct_states(self) -> int:
        """Ends of prompts and of answers: the positions at which some request begins or ends to
        write tokens of its own, each counted once."""
        return len(set(self.prompt)) + len(set(self.answer))

    def prompt_tokens(self) -> int:
        return sum(self.depth[segment] for segment in self.prompt)


_made: list[np.ndarray] = []


def _book() -> np.ndarray:
    """Random tokens, enough for the longest segment at the last position."""
    if not _made:
        count = _BOOK_TOKENS + (1 << 16)
        _made.append(np.random.default_rng(0).integers(0, _VOCABULARY, count, dtype=np.int32))
    return _made[0]


def make(name: str, seed: int, seconds: float = SECONDS) -> Trace:
    """The trace of this name and seed, whose requests arrive for `seconds`."""
    makers = {"system-prompts": _system_prompts, "chats": _chats, "agents": _agents}
    if name not in makers:
        raise ValueError(f"trace: expected one of {', '.join(NAMES)}, got {name}")
    if seconds <= 0:
        raise ValueError(f"seconds: expected a positive number, got {seconds}")
    trace = Trace(name, seed, seconds)
    requests = makers[name](trace, np.random.default_rng([NAMES.index(name), seed]))
    requests.sort()
    for arrival, prompt, answer in requests:
        trace.arrival.append(arrival)
        trace.prompt.append(prompt)
        trace.answer.append(answer)
    return trace


def _between(rng: np.random.Generator, least: int, most: int) -> int:
    return int(rng.integers(least, most + 1))


def _turn(trace: Trace, rng: np.random.Generator, below: int) -> tuple[int, int]:
    """A question and its answer: 100 to 800 tokens, of which 30 to 70 % are asked."""
    tokens = _between(rng, 100, 800)
    asked = round(tokens * rng.uniform(0.3, 0.7))
    question = trace.add(below, asked)
    return question, trace.add(question, tokens - asked)


def _system_prompts(trace: Trace, rng: np.random.Generator) -> list[tuple[float, int, int]]:
    """64 system prompts of 1,000 to 4,000 tokens, chosen by Zipf 1.1; questions and answers of 50
    to 500 tokens."""
    prompts = [trace.add(0, _between(rng, 1000, 4000)) for _ in range(64)]
    weights = np.arange(1, 65) ** -1.1
    count = round(REQUESTS_PER_MINUTE * trace.seconds / 60)
    chosen = rng.choice(prompts, count, p=weights / weights.sum())
    made = []
    for arrival, below in zip(rng.uniform(0, trace.seconds, count), chosen, strict=True):
        question = trace.add(int(below), _between(rng, 50, 500))
        made.append((float(arrival), question, trace.add(question, _between(rng, 50, 500))))
    return made


def _chats(trace: Trace, rng: np.random.Generator) -> list[tuple[float, int, int]]:
    """Chats of 2 to 20 turns, 30 s to 10 min apart. Chats also began before the trace does, as
    many as needed for the same number of requests at all times."""
    before = 19 * 600.0
    chats = round(REQUESTS_PER_MINUTE / 60 * (trace.seconds + before) / 11)
    made = []
    for begin in rng.uniform(-before, trace.seconds, chats):
        below, now = 0, float(begin)
        for _ in range(_between(rng, 2, 20)):
            question, below = _turn(trace, rng, below)
            if 0 <= now < trace.seconds:
                made.append((now, question, below))
            now += rng.uniform(30, 600)
    return made


def _agents(trace: Trace, rng: np.random.Generator) -> list[tuple[float, int, int]]:
    """Agents that branch 2 to 8 ways at 2,000 to 30,000 tokens.

    Half of them branch where a request of their own has ended: its prompt and answer are the
    tokens before. The others never ask for what their branches share. A branch begins within a
    minute, and has 1 to 6 turns, 2 to 60 s apart."""
    before = 500.0
    agents = round(REQUESTS_PER_MINUTE / 60 * (trace.seconds + before) / (0.5 + 5 * 3.5))
    made = []
    for begin in rng.uniform(-before, trace.seconds, agents):
        tokens, now = _between(rng, 2000, 30000), float(begin)
        if rng.random() < 0.5:
            answered = _between(rng, 100, 800)
            asked = trace.add(0, tokens - answered)
            shared = trace.add(asked, answered)
            made.append((now, asked, shared))
            now += rng.uniform(10, 30)
        else:
            shared = trace.add(0, tokens)
        for _ in range(_between(rng, 2, 8)):
            below, then = shared, now + rng.uniform(0, 60)
            for _ in range(_between(rng, 1, 6)):
                question, below = _turn(trace, rng, below)
                made.append((then, question, below))
                then += rng.uniform(2, 60)
    return [each for each in made if 0 <= each[0] < trace.seconds]
