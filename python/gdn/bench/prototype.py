# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times of the hand-written schedules, from what their own programs write in the same run:
of decode a CSV file (variant, Hk, Hv, N, microseconds cold, and more columns), of verify
what the program prints."""

import csv
import re
from pathlib import Path

# Of a line of verify, in this order: Hk, Hv, N.
VERIFY_SIZES = (
    (16, 32, 1),
    (16, 32, 8),
    (16, 32, 64),
    (16, 32, 128),
    (2, 8, 64),
    (2, 8, 256),
    (16, 64, 64),
    (8, 24, 64),
)
_MODES = {"0": "slots", "1": "lazy"}  # 2 keeps no state to go back to
_TYPES = {"fp32": "float32", "bf16": "bfloat16"}
_ITEMSIZES = {"float32": 4, "bfloat16": 2}


def _row(suite: str, config: dict, dependent: bool, variant: str, us: float) -> dict:
    size = config["Hv"] * config["dk"] * config["dv"] * _ITEMSIZES[config["state"]]
    return {
        "suite": suite,
        "impl": "prototype pdl" if dependent else "prototype",
        "config": config | {"variant": variant},
        "us": us,
        "us_min": us,
        "us_max": us,
        "state_TBps": 2 * config["N"] * size / us * 1e-6,
    }


def _configs(measured: list[dict], suite: str) -> list[dict]:
    """What rows of ours are of, each once."""
    configs = []
    for row in measured:
        config = {k: v for k, v in row["config"].items() if k not in ("variant", "part")}
        if row["suite"] == suite and config["state"] in _ITEMSIZES and config not in configs:
            configs.append(config)
    return configs


def rows(path: Path, measured: list[dict]) -> list[dict]:
    """For each configuration of decode that was measured, the fastest hand-written variant
    with and without dependent launches."""
    with path.open() as file:
        lines = list(csv.reader(file))
    report = []
    for config in _configs(measured, "decode"):
        size = [str(config[name]) for name in ("Hk", "Hv", "N")]
        for dependent in (False, True):
            found = [
                (float(line[4]), line[0])
                for line in lines
                if line[1:4] == size
                and ("bf16" in line[0].split()) == (config["state"] == "bfloat16")
                and ("pdl0" not in line[0].split()) == dependent
            ]
            if found:
                us, variant = min(found)
                report.append(_row("decode", config, dependent, variant, us))
    return report


def verify_times(text: str) -> dict[tuple, float]:
    """Microseconds by mode, type of the state, whether launches overlap, T, Hk, Hv and N."""
    times = {}
    for line in text.splitlines():
        found = re.match(r"verify T(\d) mode(\d) (fp32|bf16)\s+(pdl )?(.*)", line)
        if not found or found[2] not in _MODES:
            continue
        columns = re.findall(r"(-|[\d.]+\([^)]*\))", found[5])
        for size, column in zip(VERIFY_SIZES, columns, strict=False):  # or stopped on the way
            if column != "-":
                key = (_MODES[found[2]], _TYPES[found[3]], bool(found[4]), int(found[1]), *size)
                times[key] = float(column.partition("(")[0])
    return times


def verify_sizes(times: dict[tuple, float], mode: str, state: str) -> list[tuple]:
    """Hk, Hv, N and T of what the hand-written code was measured at."""
    return sorted({(*key[4:], key[3]) for key in times if key[:2] == (mode, state)})


def verify_rows(times: dict[tuple, float], measured: list[dict]) -> list[dict]:
    """The rows of verify, for each configuration that was measured."""
    report = []
    for config in _configs(measured, "verify"):
        size = tuple(config[name] for name in ("T", "Hk", "Hv", "N"))
        for dependent in (False, True):
            us = times.get((config["mode"], config["state"], dependent, *size))
            if us:
                report.append(_row("verify", config, dependent, "", us))
    return report
