# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arguments for a layer's entries, made up from a seed: what device checks and
benchmarks run on. Numbers have the size that a layer sees."""

from dataclasses import dataclass, field

import numpy as np

from .rows import Rows
from .runtime import Param

# What the decay of a token is in the mean, as its logarithm; and what that adds to dt_bias.
DECAYS = {
    "near_one": (-1e-3, -5.2),
    "realistic": (-0.2, 0),
    "strong": (-2.5, 3),
    "very_strong": (-25, 7.5),
}


# Pools of tokens that wait to be put into a state; scales are those of deltas in f16.
PENDING = ("pending_keys", "pending_deltas", "pending_decays")
PENDING_SCALES = "pending_scales"


@dataclass(frozen=True)
class Sizes:
    """Sizes of a call. `lengths` are the tokens of each sequence; decode has one each."""

    key_heads: int
    value_heads: int
    lengths: tuple[int, ...]
    slots: int = 0  # of the pools; 0 means the sequences and three more
    seed: int = 0
    decay: str = "realistic"  # or near_one, strong, very_strong
    skipped: dict[int, int] = field(default_factory=dict)  # sequence: id that is skipped
    # Of verify and commit: how many tokens of each sequence's step before are accepted, numbers
    # of all kinds where it is empty; and how many there can be, 0 for those of the longest
    # sequence, at most 8.
    accepted: tuple[int, ...] = ()
    steps: int = 0

    @property
    def rows(self) -> int:
        return len(self.lengths)


def numpy_dtype(name: str) -> np.dtype:
    """The NumPy type of a parameter; bfloat16 is that of ml_dtypes."""
    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)


def moves_slots(params: list[Param]) -> bool:
    """Whether an entry with these parameters only copies or zeroes slots."""
    counts = any(param.name in ("num_accepted", "pending_counts") for param in params)  # a commit
    return not counts and all(param.access != "write" for param in params)


def shape_of(dims: tuple[str, ...], symbols: dict[str, int]) -> tuple[int, ...]:
    """The value of forms such as "256*Hk + 256*Hv"."""
    shape = []
    for form in dims:
        total = 0
        for term in form.replace("- ", "+ -").split("+"):
            value = 1
            for factor in term.strip().split("*"):
                sign = -1 if factor.startswith("-") else 1
                factor = factor.lstrip("-").strip()
                value *= sign * (int(factor) if factor.isdigit() else symbols[factor])
            total += value
        shape.append(total)
    return tuple(shape)


def _rows(sizes: Sizes, entry: list[Param]) -> Rows:
    names = {param.name for param in entry}
    rows = Rows.make(names, sizes.lengths, sizes.skipped, sizes.accepted, sizes.steps)
    return rows.to_others() if moves_slots(entry) else rows


def shapes(
    params: list[Param], sizes: Sizes, entry: list[Param] | None = None
) -> dict[str, tuple[int, ...]]:
    """The shapes that `make` gives, by name."""
    rows = _rows(sizes, entry or params)
    symbols = {"Hk": sizes.key_heads, "Hv": sizes.value_heads, **rows.symbols(sizes.slots)}
    return {param.name: shape_of(param.dims, symbols) for param in params}


def make(
    params: list[Param], sizes: Sizes, entry: list[Param] | None = None
) -> dict[str, np.ndarray]:
    """Arguments for every parameter, in its type; sequences as those of gdn.rows. Elements of
    pools that no sequence looks at hold NaN, and so do outputs. `entry` are all parameters of the
    entry, where `params` are some of them."""
    rng = np.random.default_rng(sizes.seed)
    rows, found = _rows(sizes, entry or params), shapes(params, sizes, entry)
    integers = rows.integers()
    arguments = {}
    for param in params:
        shape = found[param.name]
        if param.name in integers:
            values = integers[param.name]
        elif param.access == "write":
            values = np.full(shape, np.nan, np.float32)
        else:
            values = _numbers(rng, param, shape, sizes)
        if param.name == "pending_counts":
            accepted = rows.steps if "num_accepted" in rows.names else 0
            values = rng.integers(0, found["pending_keys"][2] - accepted + 1, shape)
        elif param.kind == "pool" and param.dtype != "uint8":
            values[~rows.looked_at(param.name, shape)] = np.nan
        arguments[param.name] = np.asarray(values).astype(numpy_dtype(param.dtype))
    if "pending_counts" in arguments:
        _hide_what_is_not_pending(arguments)
    return arguments


def _hide_what_is_not_pending(arguments: dict[str, np.ndarray]) -> None:
    """Pending tokens behind the count of their key head, and what is accepted of a verify, become
    NaN."""
    counts = arguments["pending_counts"].copy()
    for slot, accepted in zip(arguments["slots"], arguments.get("num_accepted", ()), strict=False):
        if 0 <= slot < len(counts):
            counts[slot] += np.clip(accepted, 0, arguments["pending_keys"].shape[2])
    for name in (*PENDING, PENDING_SCALES):
        if name not in arguments:
            continue
        pool = arguments[name]
        own = np.repeat(counts, pool.shape[1] // counts.shape[1], axis=1)
        pool[np.arange(pool.shape[2]) >= own[:, :, None]] = np.nan


def _numbers(rng, param: Param, shape: tuple[int, ...], sizes: Sizes) -> np.ndarray:
    """Random values, by the parameter's name."""
    if param.name == "A_log":
        return np.log(rng.uniform(1, 16, shape))
    if param.name == "dt_bias":
        step = np.exp(rng.uniform(np.log(1e-3), np.log(0.1), shape))
        return step + np.log(-np.expm1(-step)) + DECAYS[sizes.decay][1]
    if param.name == "log_decay":
        return DECAYS[sizes.decay][0] * rng.exponential(size=shape)
    if param.name == "beta":
        return rng.uniform(0, 1, shape)
    if param.name == "norm_constants":  # eps, and one gate or the other
        return np.array([1e-5, rng.integers(2)])
    if param.dtype == "uint8":  # of a plane, whose zero is 128
        return rng.integers(1, 256, shape)
    if param.name == "state_scales":
        return rng.uniform(0.0005, 0.002, shape)
    if param.name == PENDING_SCALES:  # powers of two
        return np.exp2(rng.integers(-3, 2, shape))
    scale = {
        "conv_weight": 0.5,
        "norm_weight": 0.2,
        "a": 0.5,
        "state_pool": 0.1,
        "pending_deltas": 0.3,
    }
    if param.name == "pending_decays":
        return -rng.uniform(0, 2, shape)
    if param.name == "pending_keys":
        scale[param.name] = shape[-1] ** -0.5  # of unit length
    values = rng.standard_normal(shape, np.float32) * scale.get(param.name, 1)
    if param.name in ("q", "k", "erase") and len(shape) == 3:  # of unit length, as rules want them
        values /= np.linalg.norm(values, axis=-1, keepdims=True)
    return values + 1 if param.name == "norm_weight" else values
