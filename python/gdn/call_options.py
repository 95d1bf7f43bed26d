# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Options of functions of arrays, checked: what is no number, no id and no flag is refused ahead of
all else, and what compares unequal to everything is not taken for a default. Tensors without memory
are refused as well, by the names of arguments."""

from __future__ import annotations

import math
import operator

from .model_config import MOST_F32


def finite(name: str, value: object) -> float | None:
    """A number, or None."""
    if value is None or (type(value) is float and math.isfinite(value)):
        return value
    try:
        number = math.nan if isinstance(value, str | bytes) else float(value)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{name}: expected a finite number, got {_shown(value)}")
    return number


def below_zero(name: str, value: object) -> float | None:
    """A number below 0 of the range of f32, or None."""
    number = finite(name, value)
    if number is not None and not -MOST_F32 <= number < 0:
        expected = "a number below 0" if number >= 0 else "a number of f32"
        raise ValueError(f"{name}: expected {expected}, got {number}")
    return number


def integer(name: str, value: object) -> int:
    """An integer of 64 bits."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name}: expected an integer, got {_shown(value)}") from None
    if not -(2**63) <= number < 2**63:
        raise ValueError(f"{name}: expected an integer of 64 bits, got {number}")
    return number


def flag(name: str, value: object) -> bool:
    """True or False, or what stands for them: 1, 0 and None. No text, of which none is false but
    the empty one."""
    if value is True or value is False:
        return value
    is_scalar = value is None or getattr(value, "shape", ()) == ()
    if not is_scalar or isinstance(value, str | bytes) or value not in (True, False, None):
        raise TypeError(f"{name}: expected True or False, got {_shown(value)}")
    return bool(value)


def refuse_negating(name: str, array: object) -> None:
    """ValueError for a tensor of PyTorch that is a view whose numbers have the other sign in
    memory."""
    is_neg = getattr(array, "is_neg", None)
    if is_neg is not None and is_neg():  # as of the imaginary part of a conjugate
        raise ValueError(
            f"{name}: expected numbers as they are in memory, got a view that negates them"
            " (resolve_neg() copies)"
        )


def refuse_meta(name: str, array: object) -> None:
    """ValueError for a tensor of PyTorch on its device without memory."""
    if getattr(array, "is_meta", False):
        raise ValueError(f"{name}: expected a tensor of a CPU or of CUDA, got one on meta")


def _shown(value: object) -> str:
    shape = getattr(value, "shape", None)
    return repr(value)[:60] if not shape else f"an array of {list(shape)}"
