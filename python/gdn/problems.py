# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arguments for a layer's entries, made up from a seed: what device checks and
benchmarks run on. Numbers have the size that a layer sees."""

from dataclasses import dataclass, field

import numpy as np

from .runtime import Param


@dataclass(frozen=True)
class Sizes:
    """Sizes of a call. `lengths` are the tokens of each row; decode has one each."""

    key_heads: int
    value_heads: int
    lengths: tuple[int, ...]
    slots: int = 0  # of the pools; 0 means the rows and three more
    seed: int = 0
    decay: str = "realistic"  # or "strong"
    skipped: dict[int, int] = field(default_factory=dict)  # row: id that is skipped

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
    return all(param.access != "write" for param in params)


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


def make(params: list[Param], sizes: Sizes) -> dict[str, np.ndarray]:
    """Arguments for every parameter, in its type. Row i uses slot i + 1 unless it is
    skipped; an entry that only moves slots writes to the slots behind those. Slots that
    no row reads hold NaN, outputs hold NaN."""
    rng = np.random.default_rng(sizes.seed)
    ragged = any(param.name == "cu_seqlens" for param in params)
    lengths = sizes.lengths if ragged else (1,) * sizes.rows
    moves = moves_slots(params)
    symbols = {
        "Hk": sizes.key_heads,
        "Hv": sizes.value_heads,
        "N": sizes.rows,
        "T": sum(lengths),
        "P": sizes.slots or sizes.rows * (2 if moves else 1) + 3,
        "C": 0,
    }
    slots = np.arange(1, sizes.rows + 1)
    for row, slot in sizes.skipped.items():
        slots[row] = slot
    fixed = {
        "slots": slots,
        "write_slots": np.arange(1, sizes.rows + 1) + sizes.rows if moves else slots,
        "cu_seqlens": np.concatenate([[0], np.cumsum(lengths)]),
        "has_initial": np.ones(sizes.rows),
        "cu_checkpoints": np.zeros(sizes.rows + 1),
    }
    arguments = {}
    for param in params:
        shape = shape_of(param.dims, symbols)
        if param.name in fixed:
            values = fixed[param.name]
        elif param.access == "write":
            values = np.full(shape, np.nan, np.float32)
        else:
            values = _numbers(rng, param, shape, sizes)
        arguments[param.name] = np.asarray(values).astype(numpy_dtype(param.dtype))
        if param.kind == "pool":
            used = [s for s in slots if 0 <= s < shape[0]]
            unused = np.setdiff1d(np.arange(shape[0]), used)
            arguments[param.name][unused] = np.nan
    return arguments


def _numbers(rng, param: Param, shape: tuple[int, ...], sizes: Sizes) -> np.ndarray:
    """Random values, by the parameter's name."""
    if param.name == "A_log":
        return np.log(rng.uniform(1, 16, shape))
    if param.name == "dt_bias":
        step = np.exp(rng.uniform(np.log(1e-3), np.log(0.1), shape))
        return step + np.log(-np.expm1(-step)) + (3 if sizes.decay == "strong" else 0)
    scale = {"conv_weight": 0.5, "norm_weight": 0.2, "a": 0.5, "state_pool": 0.1}
    values = rng.standard_normal(shape, np.float32) * scale.get(param.name, 1)
    return values + 1 if param.name == "norm_weight" else values
