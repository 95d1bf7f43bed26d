# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What people wrote down about faults: some that every run has, and drawn ones that are none."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fixed:
    """A fault that somebody wrote: `original`, an expression that stands once in `within`,
    which stands once in the file, becomes `mutated`."""

    name: str
    kind: str
    file: str
    within: str
    original: str
    mutated: str


FIXED = [
    Fixed(
        "a cache of modules that forgets the blob",
        "key",
        "runtime/src/cuda/cuda_device.cpp",
        "modules_[{image.id(), code.blob}]",
        "code.blob",
        "0",
    ),
    Fixed(
        "a counter of arrivals that takes the one before the last for the last",
        "bound",
        "lib/Conversion/GPUToNVVM/Sync/LaunchOrder.cpp",
        "limit = arith::SubIOp::create(b, loc, limit, a.i32(1));\n  return a.isEqual",
        "a.i32(1)",
        "a.i32(2)",
    ),
    Fixed(
        "a counter of arrivals that begins again one too late",
        "bound",
        "lib/Conversion/GPUToNVVM/Sync/LaunchOrder.cpp",
        "limit = arith::SubIOp::create(b, loc, limit, a.i32(1));\n  Value bound",
        "a.i32(1)",
        "a.i32(0)",
    ),
    Fixed(
        "a copy whose tail is not cut off",
        "bound",
        "lib/Conversion/GPUToNVVM/Copies/TileCopy.cpp",
        "bytes = arith::MaxSIOp::create(b, loc, bytes, a.i32(0));",
        "arith::MaxSIOp::create(b, loc, bytes, a.i32(0))",
        "bytes",
    ),
    Fixed(
        "a tail of tokens that is not cut off",
        "bound",
        "lib/Schedule/Tokens/TokenProgram.h",
        "value = mlir::arith::MinSIOp::create(b, loc, value, index(most));",
        "mlir::arith::MinSIOp::create(b, loc, value, index(most))",
        "value",
    ),
]


@dataclass(frozen=True)
class Equivalent:
    """A drawn fault that changes nothing that anybody could see, and why. Text is that of
    --list, with one space where there is space."""

    file: str
    original: str
    mutated: str
    why: str


EQUIVALENT: list[Equivalent] = [
    Equivalent(
        "runtime/src/serving/align_states.cpp",
        "if (int64_t last = std::max(source, target);",
        "if (int64_t last = source;",
        "the target is the column of a token of the step or one ahead of it, which checkStep has "
        "found in the table by then; only the source can be behind it",
    ),
    Equivalent(
        "lib/Conversion/GPUToNVVM/Kernel/RoleEntry.cpp",
        "wanted > atLaunch",
        "wanted >= atLaunch",
        "setRegisters has returned by then where both are equal",
    ),
]
