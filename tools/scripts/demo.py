# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles the layers of the recorded models for this machine and replays them: on its GPU
what there is GPU code for, on its CPU the rest. Each row says where it ran.

The recordings are activations of transformers' own models in float32. With io
f32 each result is held against the recording and against float64; with io bf16
the inputs are rounded first and results are held against float64 of the same
rounded inputs. Decode steps are shown as one row with the worst of them unless
--all is given. Exits with 1 if an error is out of bounds.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BIN = ROOT / "build/release/bin"
OUT = ROOT / "build/demo"
GPU_TARGETS = ("sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_103a", "sm_120a")
# Relative RMSE allowed by io type and tensor; 0 is bit equality. Stated here
# once more, so that the demo's verdict does not rest on gdn-run's own. One
# thing is taken from gdn-run: where float64's result, merely rounded to bf16,
# already misses a limit (it may, in a step of few values), no kernel can meet
# it, and gdn-run gives a limit just above that rounding.
LIMITS = {
    "f32": {"conv_pool": 0, "state_pool": 1e-5, "core": 1e-5, "out": 1e-5},
    "bf16": {"conv_pool": 0, "state_pool": 1e-5, "core": 2e-3, "out": 5e-3},
    # On a GPU prefill goes in chunks through tensor cores, and decode on from its states.
    "gpu": {"conv_pool": 0, "state_pool": 2e-3, "core": 5e-3, "out": 5e-3},
}
NAMES = {
    "conv_pool": "conv state",
    "state_pool": "recurrent state",
    "core": "core output",
    "out": "post-norm",
}


@dataclass
class Row:
    """One tensor of one layer, after prefill or after one or more decode steps."""

    model: str
    phase: str
    layer: str
    tensor: str
    device: str  # of the f32 and the bf16 run, once if it is the same
    # Errors by column, None where nothing was recorded.
    f32_model: float | None
    f32_float64: float | None
    bf16_float64: float | None
    f32_us: float
    bf16_us: float
    ok: bool
    # The bf16 limit is above the stated one; see LIMITS.
    raised: bool


def holds(error: float | None, limit: float) -> bool:
    """True if nothing was recorded; False for a NaN."""
    return error is None or error <= limit


def run(command: list, ok_codes: Iterable[int] = (0,)) -> str:
    done = subprocess.run([str(c) for c in command], text=True, capture_output=True)
    if done.returncode not in ok_codes:
        sys.exit(f"demo: {' '.join(map(str, command))}\n{done.stderr}")
    return done.stdout


def gpu_of() -> tuple[str, str] | None:
    """The name of this machine's GPU and the target of gdn-compile for it."""
    sys.path.insert(0, str(ROOT / "python"))
    from gdn import GdnError, Runtime

    try:
        name = Runtime().cuda().name
    except GdnError:
        return None
    found = re.search(r"\bsm_(\d+)", name)
    targets = {t.rstrip("a"): t for t in GPU_TARGETS}
    if not found or f"sm_{found[1]}" not in targets:
        print(f"no target of gdn-compile is for {name}: the CPU runs everything")
        return None
    return name, targets[f"sm_{found[1]}"]


def replay(recording: Path, io: str, targets: str, options: list[str]) -> dict:
    """Compiles for io type `io`, replays, and returns gdn-run's rows by their names."""
    image = OUT / f"{recording.stem}.{io}.gdnk"
    start = time.monotonic()
    options = [*options, f"--io={io}", "--state=f32", "--outputs=both", f"--target={targets}"]
    run([BIN / "gdn-compile", "--config", recording, *options, "-o", image])
    print(f"compiled {image.name} in {time.monotonic() - start:.1f} s", flush=True)
    # gdn-run exits with 2 when it finds an error out of bounds; the table shows it.
    command = [BIN / "gdn-run", image, "--replay", recording, "--device=any", "--json"]
    text = run(command, ok_codes=(0, 2))
    return {(r["layer"], r["phase"], r["tensor"]): r for r in json.loads(text)["rows"]}


def error(row: dict, against: str) -> float | None:
    """The relative RMSE; for a tensor that must be bit-equal the largest error."""
    if against not in row:
        return None
    found = row[against]
    return found["max_abs"] if LIMITS["f32"][row["tensor"]] == 0 else found["relative_rmse"]


def bf16_limit(row: dict, limits: dict) -> float:
    """The limit of a bf16 row: `limits`, or a little more where rounding needs it."""
    stated, given = limits[row["tensor"]], row["float64"]["limit"]
    # Rounding to bf16 is off by at most 2^-8 of a value, so 1.05 times that bounds it.
    return max(stated, given) if stated and given <= 1.05 * 2**-8 else stated


def device_of(*rows: dict) -> str:
    """ "cpu" or "gpu" of rows; both where they differ."""
    names = [
        "cpu" if "CPU," in row["device"] and "sm_" not in row["device"] else "gpu" for row in rows
    ]
    return names[0] if len(set(names)) == 1 else " / ".join(names)


def rows_of(recording: Path, targets: str, options: list[str]) -> list[Row]:
    f32, bf16 = (replay(recording, io, targets, options) for io in ("f32", "bf16"))
    if not f32 or f32.keys() != bf16.keys():
        sys.exit(f"demo: {recording.name}: f32 and bf16 gave different steps")
    rows = []
    prefills = [row for (_, phase, _), row in bf16.items() if phase == "prefill"]
    limits = LIMITS["gpu" if device_of(*prefills) == "gpu" else "bf16"]
    for (layer, phase, tensor), wide in f32.items():
        narrow = bf16[layer, phase, tensor]
        limit = LIMITS["f32"][tensor]
        model, float64 = error(wide, "transformers"), error(wide, "float64")
        narrow_error = error(narrow, "float64")
        rows.append(
            Row(
                model=recording.stem.removesuffix("_tiny"),
                phase=phase,
                layer=layer,
                tensor=tensor,
                device=device_of(wide, narrow),
                f32_model=model,
                f32_float64=float64,
                bf16_float64=narrow_error,
                f32_us=wide["time_us"],
                bf16_us=narrow["time_us"],
                ok=None not in (float64, narrow_error)
                and holds(model, limit)
                and holds(float64, limit)
                and holds(narrow_error, bf16_limit(narrow, limits)),
                raised=not holds(narrow_error, limits[tensor]),
            )
        )
    return rows


def worst(errors: Iterable[float | None]) -> float | None:
    """The largest error; a NaN is worse than any number."""
    known = [e for e in errors if e is not None]
    return max(known, key=lambda e: (e != e, e), default=None)


def merge_decode(rows: list[Row]) -> list[Row]:
    """Replaces the decode steps of each tensor by one row: worst errors, median times."""
    merged, groups = [], {}
    for row in rows:
        key = (row.model, row.layer, row.tensor, row.phase == "prefill")
        if key not in groups:
            groups[key] = []
            merged.append(groups[key])
        groups[key].append(row)
    merged.sort(key=lambda g: (g[0].model, g[0].layer, g[0].phase != "prefill"))
    return [
        Row(
            model=group[0].model,
            phase=group[0].phase if len(group) == 1 else f"decode x {len(group)}",
            layer=group[0].layer,
            tensor=group[0].tensor,
            device=group[0].device,
            f32_model=worst(r.f32_model for r in group),
            f32_float64=worst(r.f32_float64 for r in group),
            bf16_float64=worst(r.bf16_float64 for r in group),
            f32_us=statistics.median(r.f32_us for r in group),
            bf16_us=statistics.median(r.bf16_us for r in group),
            ok=all(r.ok for r in group),
            raised=any(r.raised for r in group),
        )
        for group in merged
    ]


def cell(error: float | None, exact: bool) -> str:
    if error is None:
        return "-"
    return "equal" if exact and error == 0 else f"{error:.1e}"


def print_table(rows: list[Row]) -> None:
    table = [
        ["", "", "", "", "f32: error against", "", "bf16: against", "time", ""],
        ["model", "phase", "layer", "tensor", "transformers", "float64", "float64"],
    ]
    table[1] += ["f32 / bf16 us", "on", ""]
    for r in rows:
        exact = LIMITS["f32"][r.tensor] == 0
        errors = [cell(e, exact) for e in (r.f32_model, r.f32_float64, r.bf16_float64)]
        if r.raised:
            errors[2] += "*"
        timing = f"{r.f32_us:.0f} / {r.bf16_us:.0f}"
        verdict = "ok" if r.ok else "OUT OF BOUNDS"
        where = [timing, r.device, verdict]
        table.append([r.model, r.phase, r.layer, NAMES[r.tensor], *errors, *where])
    # The first line's group heading may run over the column after it.
    widths = [max(len(line[c]) for line in table[1:]) for c in range(len(table[1]))]
    group = widths[4] + 2 + widths[5]
    head = table.pop(0)
    left = sum(widths[:4]) + 2 * 4
    line = " " * left + head[4].ljust(group) + "  " + head[6].ljust(widths[6]) + "  " + head[7]
    print("\n" + line.rstrip())
    for line in table:
        print("  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip())


def main() -> int:
    parser = argparse.ArgumentParser(prog="demo", description=__doc__)
    parser.add_argument("--all", action="store_true", help="a row for every decode step")
    parser.add_argument("--recordings", type=Path, default=ROOT / "test/data")
    parser.add_argument("--ptxas", help="gdn-compile's option of that name")
    parser.add_argument("--cache", help="gdn-compile's option of that name")
    arguments = parser.parse_args()
    every_step = arguments.all
    given = {"ptxas": arguments.ptxas, "cache": arguments.cache}
    options = [f"--{name}={value}" for name, value in given.items() if value]

    OUT.mkdir(parents=True, exist_ok=True)
    gpu = gpu_of()
    targets = f"{gpu[1]},native" if gpu else "native"
    print(f"GPU: {gpu[0]}" if gpu else "no GPU: the CPU runs everything", flush=True)
    recordings = sorted(arguments.recordings.glob("*.safetensors"))
    rows = [row for recording in recordings for row in rows_of(recording, targets, options)]
    if not rows:
        sys.exit(f"demo: expects recordings in {arguments.recordings}, but found none")
    bad = [r for r in rows if not r.ok]
    # Every output of every step was recorded; without that nothing was compared.
    lost = [r for r in rows if r.tensor in ("core", "out") and r.f32_model is None]
    print_table(rows if every_step else merge_decode(rows))
    print(
        "\nErrors are relative RMSE. Limits: f32 1e-05; bf16 2e-03 for the core output, 5e-03\n"
        "after the norm, 1e-05 for the recurrent state (5e-03, 5e-03 and 2e-03 where prefill\n"
        "ran on a GPU, in chunks); conv states bit-equal."
    )
    if any(r.raised and r.ok for r in rows):
        print("* float64's own result, rounded to bf16, misses the limit; this is no further off.")
    if bad or lost:
        print(f"{len(bad)} of {len(rows)} results out of bounds, {len(lost)} not compared")
        return 1
    print(f"all {len(rows)} results within bounds")
    return 0


if __name__ == "__main__":
    sys.exit(main())
