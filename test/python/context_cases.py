# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random calls whose sequences are spread over ranks: how they are cut, and what they give in
float64."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from gdn.context_parallel import ContextParallel
from gdn.exchange import ThreadExchange

LENGTHS = (0, 1, 2, 3, 17, 63, 64, 65, 70, 128, 131)
TOKENS = ("q", "k", "v", "log_decay", "beta")
SLOTS = 32
# Head sizes [dk, dv] and whether each channel has a decay; those of one kernel of each kind.
KINDS = ((16, 16, False), (16, 24, False), (24, 16, False), (16, 16, True))


@dataclass
class Case:
    """A whole call: `lengths[r][n]` are the tokens of sequence n on rank r."""

    given: dict[str, np.ndarray]
    lengths: np.ndarray
    states: np.ndarray
    slots: np.ndarray
    options: dict[str, object] = field(default_factory=dict)

    @property
    def starts(self) -> np.ndarray:
        return np.cumsum([0, *self.lengths.sum(0)]).astype(np.int32)

    def rows(self, rank: int) -> np.ndarray:
        """Which tokens of the whole call a rank has."""
        before = self.starts[:-1] + self.lengths[:rank].sum(0)
        parts = [np.arange(a, a + b) for a, b in zip(before, self.lengths[rank], strict=True)]
        return np.concatenate([np.zeros(0, int), *parts])

    def is_live(self, n: int) -> bool:
        return 0 <= self.slots[n] < SLOTS and self.slots[n] != self.options["null_slot"]

    def per_rank(self, work, timeout=30.0):
        """What `work(rank, ContextParallel)` gives on each rank, each a thread, or its error."""
        group = ThreadExchange.group(len(self.lengths), timeout)

        def run(rank: int):
            try:
                return work(rank, ContextParallel(group[rank]))
            except Exception as error:
                return error

        with ThreadPoolExecutor(len(group)) as threads:
            return list(threads.map(run, range(len(group))))

    def run(self, runtime, timeout=30.0):
        """Outputs of the whole call, and the pool of each rank. An error of a rank is raised."""
        pools = [self.states.copy() for _ in self.lengths]

        def work(rank, ranks):
            return ranks.delta_prefill(
                *(self.given[name][self.rows(rank)] for name in TOKENS),
                pools[rank],
                self.slots,
                np.cumsum([0, *self.lengths[rank]]),
                runtime=runtime,
                **self.options,
            )

        out = np.full_like(self.given["v"], np.nan)
        for rank, result in enumerate(self.per_rank(work, timeout)):
            if isinstance(result, Exception):
                raise result
            out[self.rows(rank)] = result
        return out, pools

    def expected(self):
        """Outputs and pool, token by token in float64."""
        x = {name: np.asarray(array, np.float64) for name, array in self.given.items()}
        ratio = x["v"].shape[1] // x["q"].shape[1]
        q, k = (np.repeat(x[name], ratio, axis=1) for name in ("q", "k"))
        decay = np.exp(x["log_decay"])
        decay = decay[:, :, None] if decay.ndim == 3 else decay[:, :, None, None]
        out, after = np.zeros(x["v"].shape), self.states.astype(np.float64)
        targets = self.options["write_slots"]
        cu, counts, places = self.options["checkpoints"]
        for n, (first, behind) in enumerate(pairwise(self.starts)):
            if not self.is_live(n) or first == behind:
                continue
            state = np.zeros(self.states.shape[1:])
            if self.options["has_initial"][n]:
                state = self.states[self.slots[n]].astype(np.float64)
            kept = dict(zip(counts[cu[n] : cu[n + 1]], places[cu[n] : cu[n + 1]], strict=True))
            for t in range(first, behind):
                state = state * decay[t]
                error = x["v"][t] - np.einsum("hvk,hk->hv", state, k[t])
                state = state + (x["beta"][t][:, None] * error)[:, :, None] * k[t][:, None]
                out[t] = np.einsum("hvk,hk->hv", state, q[t]) * q.shape[2] ** -0.5
                count = t + 1 - first
                if count % 64 == 0 and (place := kept.get(count, -1)) >= 0:
                    after[place] = state
            if 0 <= targets[n] < SLOTS and targets[n] != self.options["null_slot"]:
                after[targets[n]] = state
        return out, after


def cut(rng, total: int, ranks: int) -> np.ndarray:
    """Parts of a length, of which some are empty."""
    few = rng.integers(0, total + 1, rng.integers(0, ranks))
    ends = np.sort(rng.choice([0, total, *few], ranks - 1))
    return np.diff([0, *ends, total])


def draw_places(rng, totals) -> tuple[np.ndarray, dict]:
    """Slots of sequences of these lengths, some of them none, and the other options of a Case."""
    count = len(totals)
    null_slot = int(rng.choice([-1, 0]))
    free = rng.permutation(np.arange(1, SLOTS)).tolist()
    slots = np.array([free.pop() for _ in range(count)], np.int32)
    targets = np.where(rng.random(count) < 0.5, slots, [free.pop() for _ in range(count)])
    skipped = rng.random((2, count)) < 0.15
    slots[skipped[0]] = rng.choice([-3, null_slot, SLOTS + 2])
    targets[skipped[1]] = rng.choice([-3, null_slot, SLOTS + 2])
    has_initial = rng.random(count) < 0.7
    checkpoints: list[list[int]] = [[0], [], []]
    for total in map(int, totals):
        # The last is behind the end, and the first at no multiple of 64: neither is written.
        for tokens in (40, *range(64, total + 65, 64)):
            checkpoints[1].append(tokens)
            checkpoints[2].append(free.pop() if rng.random() < 0.8 else -1)
        checkpoints[0].append(len(checkpoints[1]))
    return slots, {
        "null_slot": null_slot,
        "write_slots": targets.astype(np.int32),
        "has_initial": has_initial,
        "checkpoints": tuple(np.array(x, np.int64) for x in checkpoints),
    }


def draw(seed: int, io=np.float32, kinds=KINDS) -> Case:
    """A case of at most 4 sequences on 2 to 8 ranks."""
    rng = np.random.default_rng(seed)
    dk, dv, per_channel = kinds[rng.integers(len(kinds))]
    ranks, count, heads = rng.integers(2, 9), rng.integers(0, 5), rng.integers(1, 3)
    value_heads = heads * rng.integers(1, 3)
    totals = rng.choice(LENGTHS, count)
    lengths = np.array([cut(rng, total, ranks) for total in totals], int).reshape(count, ranks).T
    rows = int(totals.sum())
    q, k = rng.standard_normal((2, rows, heads, dk))
    q, k = (x / np.linalg.norm(x, axis=-1, keepdims=True) for x in (q, k))
    rate = rng.choice([1e-3, 0.1, 3])
    gates = (rows, value_heads, dk) if per_channel else (rows, value_heads)
    given = {
        "q": q.astype(io),
        "k": k.astype(io),
        "v": rng.standard_normal((rows, value_heads, dv)).astype(io),
        "log_decay": (-rate * rng.uniform(0, 1, gates)).astype(np.float32),
        "beta": rng.uniform(0, 1, (rows, value_heads)).astype(np.float32),
    }
    slots, options = draw_places(rng, totals)
    states = rng.standard_normal((SLOTS, value_heads, dv, dk)).astype(np.float32)
    case = Case(given, lengths, states, slots, options)
    for n, (first, behind) in enumerate(pairwise(case.starts)):
        if not case.is_live(n):
            for array in given.values():
                array[first:behind] = np.nan
    return case
