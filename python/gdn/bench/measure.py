# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures decode steps of an image's entries beside the yardstick and the peers.
All implementations of a configuration take turns on the same sets of states."""

import datetime
import json
import subprocess
from pathlib import Path

import torch

from .. import reference
from ..device_check import driver_version
from ..runtime import Runtime
from . import decode, peers, prototype, stream
from .timing import time_calls

ROOT = Path(__file__).resolve().parents[3]


def versions() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    found = {"torch": torch.__version__, "cuda": torch.version.cuda or ""}
    for package in ("triton", "flash-linear-attention", "flashinfer-python"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def commit() -> str:
    done = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True
    )
    return done.stdout.strip() or "unknown"


def measure_decode(
    kernel, layer: reference.Layer, heads, rows: int, repeats: int, conv_layout: str
) -> list[dict]:
    """Rows of the report for one configuration."""
    params = {param.name: param for param in kernel.params}
    state = params["state_pool"].dtype
    io = next(p.dtype for p in kernel.params if p.name in ("qkvz", "qkv", "q"))
    config = {"Hk": heads[0], "Hv": heads[1], "dk": layer.key_dim, "dv": layer.value_dim}
    config |= {"N": rows, "T": 1, "io": io, "state": state, "conv": conv_layout}
    step = decode.make_step(kernel, heads, rows, conv_layout)
    bytes_moved = 2 * step.state_bytes
    report = []

    def add(impl: str, variant: str, times: dict, **more) -> None:
        row = {"suite": "decode", "impl": impl, "config": config | {"variant": variant}}
        row |= times | more | {"state_TBps": bytes_moved / times["us"] * 1e-6}
        report.append(row)
        print(
            f"decode {heads[0]:3},{heads[1]:3} N={rows:4} {state:9} {impl:12} {variant:20}"
            f" {times['us']:9.2f} us {row['state_TBps']:6.2f} TB/s",
            flush=True,
        )

    ours = decode.bindings(kernel, step, dependent=False)
    error_o, error_state = decode.errors(kernel, layer, step, ours[0])
    found = {"error_o": error_o, "error_state": error_state}
    add("gdn", ours[0].variant, time_calls(decode.calls(ours), repeats), **found)
    dependent = decode.calls(decode.bindings(kernel, step, dependent=True))
    add("gdn", ours[0].variant + " pdl", time_calls(dependent, repeats), **found)
    for name, make in peers.PEERS.items():
        try:
            calls = make(step, layer.key_dim, layer.value_dim, decode._TORCH[io])
            add(name, "", time_calls(calls, repeats))
        except Exception as error:
            # A peer that is missing or refuses a type is a line, not the end.
            print(f"skipped: {name}: {type(error).__name__}: {str(error)[:200]}", flush=True)
            torch.cuda.synchronize()
    policy, times = stream.fastest(step.states(), repeats)
    add("stream", policy, times)
    return report


def measure(options) -> dict:
    """The report of decision 9, printed as it grows and written at the end."""
    torch.cuda.init()
    torch.zeros(1, device="cuda")
    runtime = Runtime(options.library)
    device = runtime.cuda()
    rows = []
    for path in options.images:
        image = runtime.image(path)
        for entry in image.entries:
            if not entry.startswith("decode"):
                continue
            kernel = device.kernel(image, entry)
            layer = reference.Layer.of(image.attributes(entry))
            for heads in options.heads:
                for count in options.rows:
                    rows += measure_decode(
                        kernel, layer, heads, count, options.repeats, options.conv_layout
                    )
    in_place = [row["state_TBps"] for row in rows if row["impl"] == "stream"]
    if options.prototype:
        rows += prototype.rows(options.prototype, rows)
    report = {
        "device": torch.cuda.get_device_name(),
        "driver": driver_version(None),
        "date": datetime.date.today().isoformat(),
        "commit": commit(),
        "versions": versions(),
        "ceilings": {
            "copy_TBps": stream.copy_tbps(),
            "inplace_TBps": max(in_place, default=None),
            "matmul_TFLOPs": stream.matmul_tflops(),
        },
        "rows": rows,
    }
    if options.output:
        options.output.write_text(json.dumps(report, indent=1) + "\n")
    return report
