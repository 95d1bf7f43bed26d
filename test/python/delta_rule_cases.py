# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random calls of gdn.delta_rule: what may vary, the arrays, the judgement.

A Case is small and prints as JSON; its arrays follow from it, by its seed.
Hypothesis draws cases, and makes a failing one smaller.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import ml_dtypes
import numpy as np
from delta_rule_images import Variant
from hypothesis import strategies as st

GATES = ("none", "near_one", "realistic", "strong", "very_strong", "forgets_then_keeps")
MEAN_DECAY = {"none": 0, "near_one": 1e-4, "realistic": 0.2, "strong": 2.5, "very_strong": 25}
BETAS = ("random", "one", "zero", "doubled")
SLOTS = ("own", "negative", "null", "past_end")
LENGTHS = (0, 1, 15, 16, 17, 63, 64, 65, 127, 128, 129, 192)


@dataclass(frozen=True)
class Row:
    """One sequence. `slot` and `into` say what kind of slot it reads and writes."""

    tokens: int
    slot: str = "own"
    into: str = "own"
    initial: bool = True


@dataclass(frozen=True)
class Case:
    """One call. `variant` and `chunk` say which code runs, the rest is its input."""

    variant: Variant
    chunk: int
    rows: tuple[Row, ...]
    precision: str = "f32"
    key_heads: int = 1
    ratio: int = 1
    leading: int = 0
    padding: int = 0
    null_slot: int = 0
    gates: str = "none"
    betas: str = "random"
    correlation: float = 0.0
    scale: float = 1.0
    seed: int = 0

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> "Case":
        fields = json.loads(text)
        fields["variant"] = Variant(**fields["variant"])
        fields["rows"] = tuple(Row(**row) for row in fields["rows"])
        return Case(**fields)

    def is_live(self, n: int) -> bool:
        return self.rows[n].tokens > 0 and self.rows[n].slot == "own"


@st.composite
def cases(
    draw, variants: Sequence[Variant], chunks: Sequence[int], precisions: Sequence[str]
) -> Case:
    """Calls over the given code; at most 600 tokens and 8 value heads."""
    variant = draw(st.sampled_from(variants))
    lengths = st.one_of(st.integers(0, 300), st.sampled_from(LENGTHS))
    mostly_own = st.sampled_from(("own", "own", "own", *SLOTS))
    rows = []
    for _ in range(draw(st.integers(0, 5))):
        tokens = min(draw(lengths), 600 - sum(row.tokens for row in rows))
        into = draw(st.sampled_from(("own", "other", *SLOTS))) if variant.write_slots else "own"
        initial = draw(st.booleans()) if variant.has_initial else True
        rows.append(Row(tokens, draw(mostly_own), into, initial))
    precision = draw(st.sampled_from(precisions))
    # Strengths above 1 are for ops that say so, and for code that rounds no keys.
    exact = precision == "f32" or variant.io == "float32"
    may_double = variant.double_beta or (exact and not variant.erase)
    betas = draw(st.sampled_from(BETAS if may_double else BETAS[:-1]))
    # f16 ends at 65504: states and outputs may be a few times larger than values.
    half = "float16" in (variant.io, variant.state) or precision != "f32"
    large = 100.0 if half and (betas == "doubled" or variant.state == "float16") else 1e4
    return Case(
        variant=variant,
        chunk=draw(st.sampled_from(chunks)),
        rows=tuple(rows),
        precision=precision,
        key_heads=draw(st.integers(1, 2)),
        ratio=draw(st.integers(1, 4)),
        leading=draw(st.sampled_from((0, 0, 5))),
        padding=draw(st.sampled_from((0, 0, 3, 70))),
        null_slot=draw(st.sampled_from((0, -1, 2))),
        gates=draw(st.sampled_from(GATES)),
        betas=betas,
        correlation=draw(st.sampled_from((0.0, 0.5, 0.99, 1.0))),
        scale=draw(st.sampled_from((1.0, 1e-2 if half else 1e-4, large))),
        seed=draw(st.integers(0, 2**32 - 1)),
    )


def _dtype(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name, name))


class Call:
    """The arrays of a case. What must not be read is NaN."""

    def __init__(self, case: Case):
        self.case = case
        variant = case.variant
        self.io, self.state = _dtype(variant.io), _dtype(variant.state)
        rng = np.random.default_rng(case.seed)
        lengths = [row.tokens for row in case.rows]
        self.bounds = case.leading + np.concatenate([[0], np.cumsum(lengths, dtype=int)])
        tokens = int(self.bounds[-1]) + case.padding
        heads = case.key_heads * case.ratio

        def unit(x: np.ndarray) -> np.ndarray:
            return x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), 1e-6)

        shape = (tokens, case.key_heads, variant.dk)
        common = rng.standard_normal((1, *shape[1:]))
        noise = rng.standard_normal(shape)
        keys = np.sqrt(1 - case.correlation) * noise + np.sqrt(case.correlation) * common
        self.arguments = {
            "q": unit(rng.standard_normal(shape)).astype(self.io),
            "k": unit(keys).astype(self.io),
            "v": (case.scale * rng.standard_normal((tokens, heads, variant.dv))).astype(self.io),
            "log_decay": self._log_decays(rng, tokens, heads),
            "beta": self._betas(rng, tokens, heads),
            "cu_seqlens": self.bounds.astype(np.int32),
        }
        if variant.erase:  # the keys with a gate from 0 to 1 for each channel
            erase = self.arguments["k"].astype(np.float64) * rng.random(shape)
            self.arguments["erase"] = erase.astype(self.io)
        self._fill_pool(rng, heads)
        for t in np.flatnonzero(~self.live_tokens()):
            for name in {"q", "k", "v", "log_decay", "beta", "erase"} & set(self.arguments):
                self.arguments[name][t] = np.nan

    def _log_decays(self, rng, tokens: int, heads: int) -> np.ndarray:
        variant, gates = self.case.variant, self.case.gates
        shape = (tokens, heads, variant.dk) if variant.per_channel else (tokens, heads)
        spread = 0.5 + rng.random(shape)
        if gates == "forgets_then_keeps":
            mean = np.where(rng.random(shape) < 0.3, 50, 1e-3)
        else:
            mean = MEAN_DECAY[gates]
        return (-mean * spread).astype(np.float32)

    def _betas(self, rng, tokens: int, heads: int) -> np.ndarray:
        random = 1 / (1 + np.exp(-rng.standard_normal((tokens, heads))))
        values = {"random": random, "one": 1, "zero": 0, "doubled": 2 * random}
        return np.broadcast_to(values[self.case.betas], random.shape).astype(np.float32)

    def _fill_pool(self, rng, heads: int) -> None:
        case, variant, count = self.case, self.case.variant, len(self.case.rows)
        size = 2 * count + 3
        free = [slot for slot in rng.permutation(size) if slot != case.null_slot]

        def ids(kinds: list[str]) -> np.ndarray:
            past = {"negative": -7, "null": case.null_slot, "past_end": size + 1}
            own = {"own": free[:count], "other": free[count:]}
            chosen = [own[k][n] if k in own else past[k] for n, k in enumerate(kinds)]
            return np.array(chosen, np.int32)

        self.arguments["slots"] = ids([row.slot for row in case.rows])
        if variant.write_slots:
            self.arguments["write_slots"] = ids([row.into for row in case.rows])
        if variant.has_initial:
            self.arguments["has_initial"] = np.array([r.initial for r in case.rows], bool)
        self.pool = np.full((size, heads, variant.dv, variant.dk), np.nan, self.state)
        for n, row in enumerate(case.rows):
            if case.is_live(n) and row.initial:
                values = rng.standard_normal(self.pool.shape[1:]) / np.sqrt(variant.dk)
                self.pool[self.arguments["slots"][n]] = (case.scale * values).astype(self.state)

    def live_tokens(self) -> np.ndarray:
        live = np.zeros(int(self.bounds[-1]) + self.case.padding, bool)
        for n in range(len(self.case.rows)):
            if self.case.is_live(n):
                live[self.bounds[n] : self.bounds[n + 1]] = True
        return live

    def written_slot(self, n: int) -> int | None:
        """Where row `n` writes its state, if it does."""
        name = "write_slots" if self.case.variant.write_slots else "slots"
        slot = int(self.arguments[name][n])
        valid = 0 <= slot < len(self.pool) and slot != self.case.null_slot
        return slot if self.case.is_live(n) and valid else None

    def outputs(self) -> dict[str, np.ndarray]:
        """A fresh output and a fresh copy of the pool."""
        return {"core": np.full_like(self.arguments["v"], np.nan), "pool": self.pool.copy()}


def in_float64(call: Call, n: int, head: int) -> tuple[np.ndarray, np.ndarray]:
    """Output and final state of one head of row `n`, token by token."""
    case, a = call.case, call.arguments
    tokens = slice(call.bounds[n], call.bounds[n + 1])
    q, k = (a[x][tokens, head // case.ratio].astype(np.float64) for x in "qk")
    e = a.get("erase", a["k"])[tokens, head // case.ratio].astype(np.float64)
    v, g, beta = (a[x][tokens, head].astype(np.float64) for x in ("v", "log_decay", "beta"))
    state = np.zeros(call.pool.shape[2:])
    if case.rows[n].initial:
        state = call.pool[a["slots"][n], head].astype(np.float64)
    output = np.empty(v.shape)
    for t in range(len(q)):
        state = state * np.exp(g[t])
        state = state + np.outer(beta[t] * (v[t] - state @ e[t]), k[t])
        output[t] = state @ q[t] / np.sqrt(case.variant.dk)
    return output, state


def all_in_float64(call: Call) -> dict[str, np.ndarray]:
    """Output and pool of a call, rounded once."""
    outputs = call.outputs()
    outputs["core"][:] = 0
    for n in filter(call.case.is_live, range(len(call.case.rows))):
        slot, tokens = call.written_slot(n), slice(call.bounds[n], call.bounds[n + 1])
        for head in range(call.pool.shape[1]):
            outputs["core"][tokens, head], state = in_float64(call, n, head)
            if slot is not None:
                outputs["pool"][slot, head] = state
    return outputs


def relative_error(
    got: np.ndarray, want: np.ndarray, scale: float = 1, smallest: float = 0
) -> float:
    """Norm of the difference by the norm, or by that of values of 1e-6 of `scale`,
    or of values of `smallest`.

    Smaller ones are what a state has left after decays of e^-14 and more, whose
    relative error is that of the sum in the exponent, times the exponent.
    """
    smallest = max(smallest, 1e-6 * scale, 1e-4 if got.dtype == np.float16 else 1e-30)
    got, want = got.astype(np.float64), want.astype(np.float64)
    difference = np.where(got == want, 0, got - want)
    size = max(float(np.linalg.norm(want)), smallest * np.sqrt(want.size))
    return float(np.linalg.norm(difference)) / size
