# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which code a processor runs: names of targets, best first."""

from __future__ import annotations

import re
from pathlib import Path

# What gdn-compile makes code for.
CPUS = ("x86-64-v4", "x86-64-v3")
GPUS = ("sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_103a", "sm_120a")
# Flags of /proc/cpuinfo beyond the level before.
_LEVELS = {
    "x86-64-v3": "cx16 lahf_lm popcnt pni ssse3 sse4_1 sse4_2"
    " avx avx2 bmi1 bmi2 f16c fma abm movbe",
    "x86-64-v4": "avx512f avx512bw avx512cd avx512dq avx512vl",
}
# Whose code a GPU runs beside its own. Not sm_80's on sm_86 and sm_89, which have less shared
# memory for a block.
_ALSO = {"sm_89": "sm_86"}
_CPUINFO = Path("/proc/cpuinfo")
_GPU = re.compile(r"sm_(\d{1,2})(\d)(a?)")


def run_by(target: object) -> tuple[str, ...]:
    """The targets whose code `target` runs, best first.

    `target` is a name as gdn-compile takes it, "native" for this CPU, a compute capability such
    as (9, 0), or a Device. The code of "sm_90a" runs on capability 9.0 alone, that of "sm_86" on
    8.6 and 8.9, that of "x86-64-v3" on every x86-64-v4 as well. Raises ValueError for what is
    none of these.
    """
    if isinstance(target, tuple):
        return _gpu(*_capability(target))
    if isinstance(target, str):
        if target == "native":
            return native()
        if target in CPUS:
            return CPUS[CPUS.index(target) :]
        if found := _GPU.fullmatch(target):
            return _gpu(int(found[1]), int(found[2]))
    elif hasattr(target, "kind") and hasattr(target, "name"):
        return _device(target)
    raise ValueError(
        f"target: expected native, {', '.join(CPUS)}, {', '.join(GPUS)}, a compute capability such"
        f" as (9, 0), or a Device, got {target!r}"
    )


def native() -> tuple[str, ...]:
    """Those of this CPU; none where it is older than x86-64-v3, or not x86-64."""
    try:
        lines = _CPUINFO.read_text().splitlines()
    except OSError:
        return ()
    flags = next((set(line.split()) for line in lines if line.startswith("flags")), set())
    found: list[str] = []
    for level, needed in _LEVELS.items():
        if not flags.issuperset(needed.split()):
            break
        found.insert(0, level)
    return tuple(found)


def _capability(target: tuple) -> tuple[int, int]:
    if len(target) != 2 or not all(isinstance(part, int) for part in target):
        raise ValueError(f"target: expected a compute capability such as (9, 0), got {target!r}")
    return target


def _gpu(major: int, minor: int) -> tuple[str, ...]:
    chip = f"sm_{major}{minor}"
    return tuple(name for name in (f"{chip}a", chip, _ALSO.get(chip)) if name in GPUS)


def _device(device: object) -> tuple[str, ...]:
    if device.kind == "cuda":
        # "NVIDIA H200, sm_90, 132 multiprocessors"
        found = re.fullmatch(r".*, sm_(\d{1,2})(\d), \d+ multiprocessors", device.name)
        if found:
            return _gpu(int(found[1]), int(found[2]))
    elif device.kind == "cpu":
        features = set(getattr(device, "features", ()))
        return tuple(level for level in CPUS if level in features)
    raise ValueError(f"target: expected a CPU or a CUDA GPU, got {device.kind} {device.name}")
