# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The convolution and the gated norm alone, beside FLA's Triton kernels where FLA is installed:
times, shares of the memory's bandwidth, and errors against float64.

    python3 -m gdn.bench.single_ops --output single-ops.json

Channels are those of Qwen3.5-4B: 8,192 for the convolution, 32 heads of 128 for the norm.
"""

import argparse
import datetime
import importlib.util
import json
from functools import partial
from pathlib import Path

import torch

from ..conv1d import causal_conv1d
from ..gated_norm import gated_rms_norm
from .timing import number_of_sets, time_calls

CHANNELS, WIDTH, HEADS, SIZE = 8192, 4, 32, 128
# Sequences and tokens of each.
PREFILLS = ((1, 4096), (8, 1024), (32, 100))
DECODES = (1, 64, 256)
TOKENS = (64, 4096, 8192)
DEVICE, IO = "cuda", torch.bfloat16


def copy_rate() -> float:
    """Bytes a second that a copy of much memory reads and writes."""
    source = torch.empty(1 << 30, dtype=torch.uint8, device=DEVICE)
    target = torch.empty_like(source)
    return 2 * source.numel() / (time_calls([lambda: target.copy_(source)])["us"] * 1e-6)


def error_of(got: torch.Tensor, want: torch.Tensor) -> float:
    """The root of the mean square of the error over that of what is expected."""
    error = got.double() - want
    return float((error.square().mean() / want.square().mean()).sqrt())


def measure(name: str, bytes_moved: int, rate: float, ours: list, theirs: list) -> dict:
    row = {"suite": "single-ops", "impl": "gdn", "config": {"case": name}}
    row |= {"bytes": bytes_moved, **time_calls(ours)}
    row["share"] = bytes_moved / (row["us"] * 1e-6) / rate
    if theirs:
        row["fla_us"] = time_calls(theirs)["us"]
        row["ratio"] = row["fla_us"] / row["us"]
    return row


def show(row: dict) -> dict:
    fla = f", FLA {row['fla_us']:.1f} us ({row['ratio']:.2f})" if "ratio" in row else ""
    print(
        f"{row['config']['case']}: {row['us']:.1f} us, {row['share']:.2f} of the copy rate, error"
        f" {row['error']:.1e}{fla}",
        flush=True,
    )
    return row


def convolved(x, window, weight):
    """In float64: outputs [T, D] of one sequence with the window [D, K - 1]."""
    row = torch.cat([window.double().T, x.double()])
    y = sum(row[j : j + len(x)] * weight[:, j].double() for j in range(weight.shape[1]))
    return y * torch.sigmoid(y)


def conv_row(count: int, tokens: int, rate: float, fla) -> dict:
    total, is_decode = count * tokens, tokens == 1
    moved = 2 * (2 * total + 2 * count * (WIDTH - 1)) * CHANNELS
    weight = torch.randn(CHANNELS, WIDTH, device=DEVICE, dtype=IO) / 2
    starts = torch.arange(0, total + 1, tokens, device=DEVICE, dtype=torch.int32)
    slots = torch.randperm(count, device=DEVICE).to(torch.int32)
    ours, theirs, checked = [], [], None
    for _ in range(number_of_sets(moved)):
        x = torch.randn(total, CHANNELS, device=DEVICE, dtype=IO)
        # Channels innermost, as engines keep them.
        states = torch.randn(count, WIDTH - 1, CHANNELS, device=DEVICE, dtype=IO).transpose(1, 2)
        out = torch.full_like(x, torch.nan)
        options = {} if is_decode else {"cu_seqlens": starts}
        ours.append(partial(causal_conv1d, x, weight, states, slots, out=out, **options))
        if checked is None:
            before = states[slots[-1].long()].clone()
            ours[0]()
            last = x[-tokens:]
            checked = error_of(out[-tokens:], convolved(last, before, weight))
        if fla and is_decode:
            cache = torch.randn(count, CHANNELS, WIDTH, device=DEVICE, dtype=IO)
            theirs.append(partial(fla[1], x[:, None], cache, weight=weight, activation="silu"))
        elif fla:
            theirs.append(
                partial(fla[0], x[None], weight, activation="silu", cu_seqlens=starts.long())
            )
    name = f"conv1d, {count} x {tokens}"
    return measure(name, moved, rate, ours, theirs) | {"error": checked}


def norm_row(tokens: int, rate: float, fla) -> dict:
    moved = 3 * 2 * tokens * HEADS * SIZE
    weight = torch.randn(SIZE, device=DEVICE)
    ours, theirs, checked = [], [], None
    for _ in range(number_of_sets(moved)):
        x, gate = torch.randn(2, tokens, HEADS, SIZE, device=DEVICE, dtype=IO)
        out = torch.full_like(x, torch.nan)
        ours.append(partial(gated_rms_norm, x, gate, weight, out=out))
        if checked is None:
            ours[0]()
            wide, z = x.double(), gate.double()
            want = wide * (wide.square().mean(-1, keepdim=True) + 1e-6).rsqrt()
            checked = error_of(out, want * weight.double() * z * torch.sigmoid(z))
        if fla:
            options = {"activation": "swish", "eps": 1e-6}
            theirs.append(partial(fla, x, gate, weight.to(IO), None, **options))
    name = f"gated_rms_norm, {tokens} tokens"
    return measure(name, moved, rate, ours, theirs) | {"error": checked}


def main() -> int:
    parser = argparse.ArgumentParser(prog="single_ops", description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    output = parser.parse_args().output
    convs = norm = None
    if importlib.util.find_spec("fla"):
        from fla.modules.causal_conv1d import causal_conv1d as fla_conv
        from fla.modules.causal_conv1d import causal_conv1d_update
        from fla.modules.norm.fused_norm_gate import rms_norm_gated as norm

        convs = fla_conv, causal_conv1d_update
    torch.manual_seed(0)
    rate = copy_rate()
    print(f"{torch.cuda.get_device_name()}: copies at {rate / 1e12:.2f} TB/s", flush=True)
    with torch.no_grad():
        rows = [show(conv_row(count, 1, rate, convs)) for count in DECODES]
        rows += [show(conv_row(count, tokens, rate, convs)) for count, tokens in PREFILLS]
        rows += [show(norm_row(tokens, rate, norm)) for tokens in TOKENS]
    record = {
        "device": torch.cuda.get_device_name(),
        "date": str(datetime.date.today()),
        "versions": {"torch": torch.__version__},
        "copy_tb_per_s": rate / 1e12,
        "rows": rows,
    }
    output.write_text(json.dumps(record, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
