# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rows of the hand-written kernels of decode with deferred writes, from what their own programs
wrote in the same run: times as CSV, of states in one array or also of states in planes, and what
their checks printed."""

import csv
import re
from pathlib import Path

_TYPES = {"fp32": "float32", "bf16": "bfloat16", "A": "i8x2-upper", "B": "i8x2", "i8": "i8"}
_PLANES = ("A", "B", "i8")
_REPLAY_CHECK = re.compile(
    r"check (fp32|bf16) +ring k32 d32 W(\d+) +(.*?) +ok .*o\(all steps\) (\S+) .*state (\S+)"
)
_PLANE_CHECK = re.compile(
    r"check (A|B|i8) +W(\d+) (.*?) +ok +o f32 .*o bf16 (\S+) +state hi\+lo (\S+)"
)


def errors_of(checks: list[Path]) -> dict[tuple, dict[str, float]]:
    """The largest errors that were printed, by state and W, 0 for steps in place."""
    found: dict[tuple, dict[str, float]] = {}
    for path in checks:
        for line in path.read_text().splitlines():
            match = _REPLAY_CHECK.match(line) or _PLANE_CHECK.match(line)
            if not match:
                continue
            state, window, kernel, output, after = match.groups()
            key = (_TYPES[state], 0 if "IN-PLACE" in kernel else int(window))
            known = found.setdefault(key, {"error_o": 0.0, "error_state": 0.0})
            known["error_o"] = max(known["error_o"], float(output))
            known["error_state"] = max(known["error_state"], float(after))
    return found


def _read(line: dict[str, str]) -> tuple[str, int, str, str] | None:
    """State, W (0 in place), phases and kernel of a line; none of what is not wanted: controls
    without arithmetic or without a part of it, pending tokens in other types."""
    kernel = line["kernel"]
    if kernel.startswith("ctl") or "DIAG" in kernel:
        return None
    if "format" not in line:
        if line["ring"] == "-":
            return line["state"], 0, "", kernel
        if line["ring"] in ("k32 d32", "r0 stag"):
            phases = "staggered" if "stag" in line["ring"] else ""
            return line["state"], int(line["W"]), phases, kernel
        return None
    state, *phases = line["format"].split()
    if state in _PLANES:
        place = {"stag": "staggered", "aligned": "together"}[phases[0]] if phases else ""
        return state, int(line["W"]), place, kernel
    if "in place" in kernel:
        return state, 0, "", kernel
    return (state, int(line["W"]), "", kernel) if kernel.endswith("k32d32") else None


def prototype_rows(path: Path, checks: list[Path], measured: list[dict]) -> list[dict]:
    """The fastest kernel of each size, state, W and kind of phases, without and with dependent
    launches, for the sizes and W that were measured. Pending tokens are f32, of planes f16."""
    sizes = {tuple(row["config"][name] for name in ("Hk", "Hv", "N")) for row in measured}
    windows = {row["config"].get("W", 0) for row in measured}
    best: dict[tuple, dict] = {}
    with path.open() as file:
        for line in csv.DictReader(file):
            size = tuple(int(line[name]) for name in ("Hk", "Hv", "N"))
            found = _read(line)
            if size not in sizes or found is None or found[1] not in windows:
                continue
            key = (*found[:3], *size, line["pdl"])
            if key not in best or float(line["us"]) < float(best[key]["us"]):
                best[key] = line
    errors, rows = errors_of(checks), []
    for (state, window, phases, hk, hv, count, pdl), line in best.items():
        config = {"Hk": hk, "Hv": hv, "dk": 128, "dv": 128, "N": count, "T": 1}
        config |= {"io": "bfloat16", "state": _TYPES[state]}
        config |= {"form": "deferred" if window else "in place"}
        config |= {"W": window} if window else {}
        config |= {"pending": "float16"} if state in _PLANES else {}
        config |= {"variant": " ".join(filter(None, (line["kernel"], phases)))}
        impl = "prototype pdl" if pdl == "1" else "prototype"
        times = {"us": float(line["us"])}
        times |= {name: float(line.get(name, line["us"])) for name in ("us_min", "us_max")}
        found = errors.get((_TYPES[state], window), {})
        rows.append({"suite": "decode", "impl": impl, "config": config} | times | found)
    return rows
