# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decode and prefill of the gated delta rule on states that lie as [dv, dk] ("vk") and as [dk, dv]
("kv"), which take turns: times, shares of the memory's bandwidth, and errors against float64.

    python3 -m gdn.bench.state_order --output state-order.json

Heads are 16 of keys and 32 of values, of 128 elements; inputs are bf16. Without a kernel for an
order the functions would copy states, so a row says which kernel there was.
"""

from __future__ import annotations

import argparse
import datetime
import json
from functools import partial
from pathlib import Path

import torch

from ..kernel_calls import find_refusal
from ..rule_kernels import kind_of
from ..rule_pool import delta_prefill
from ..rule_step import delta_step
from .single_ops import copy_rate, error_of
from .timing import number_of_sets, time_calls

KEY_HEADS, VALUE_HEADS, SIZE = 16, 32, 128
DECODES = (1, 64, 256)
# Sequences and tokens of each.
PREFILLS = ((1, 4096), (8, 1024))
ORDERS = ("vk", "kv")
STATES = ("float32", "bfloat16")
DEVICE, IO = "cuda", torch.bfloat16
_ROUNDS = 3


def draw(total: int) -> dict[str, torch.Tensor]:
    """Inputs of `total` tokens."""
    q, k = torch.randn(2, total, KEY_HEADS, SIZE, device=DEVICE)
    v = torch.randn(total, VALUE_HEADS, SIZE, device=DEVICE)
    gates = torch.rand(2, total, VALUE_HEADS, device=DEVICE)
    return {
        "q": torch.nn.functional.normalize(q, dim=-1).to(IO),
        "k": torch.nn.functional.normalize(k, dim=-1).to(IO),
        "v": v.to(IO),
        "log_decay": -0.1 * gates[0],
        "beta": gates[1],
    }


def draw_states(count: int, dtype: str, order: str) -> torch.Tensor:
    """States [count, Hv, dv, dk] in that order in memory."""
    states = torch.randn(count, VALUE_HEADS, SIZE, SIZE, device=DEVICE).to(getattr(torch, dtype))
    return states if order == "vk" else states.mT


def last_output(given: dict[str, torch.Tensor], state: torch.Tensor) -> torch.Tensor:
    """The output of the last token of one sequence in float64, from its first state."""
    x = {name: array.double() for name, array in given.items()}
    ratio = VALUE_HEADS // KEY_HEADS
    q, k = (x[name].repeat_interleave(ratio, 1) for name in ("q", "k"))
    state = state.double()
    out = None
    for t in range(len(x["v"])):
        state = state * x["log_decay"][t].exp()[:, None, None]
        known = torch.einsum("hvk,hk->hv", state, k[t])
        delta = x["beta"][t][:, None] * (x["v"][t] - known)
        state = state + torch.einsum("hv,hk->hvk", delta, k[t])
        out = SIZE**-0.5 * torch.einsum("hvk,hk->hv", state, q[t])
    return out


def calls_of(count: int, tokens: int, dtype: str, order: str) -> tuple[list, float]:
    """Calls on states that no cache holds, and the error of the first one."""
    total, error = count * tokens, None
    slots = torch.randperm(count, device=DEVICE).to(torch.int32)
    starts = torch.arange(0, total + 1, tokens, device=DEVICE, dtype=torch.int32)
    state_bytes = count * VALUE_HEADS * SIZE * SIZE * getattr(torch, dtype).itemsize
    calls = []
    for _ in range(number_of_sets(state_bytes)):
        given, states = draw(total), draw_states(count, dtype, order)
        out = torch.empty_like(given["v"])
        if tokens == 1:
            calls.append(partial(delta_step, **given, states=states, slots=slots, out=out))
        else:
            arrays = {"states": states, "slots": slots, "cu_seqlens": starts, "out": out}
            calls.append(partial(delta_prefill, **given, **arrays))
        if error is None:
            before = states[slots[-1].long()].clone()
            calls[0]()
            own = {name: array[-tokens:] for name, array in given.items()}
            error = error_of(out[-1], last_output(own, before))
    return calls, error


def has_kernel(tokens: int, dtype: str, order: str) -> bool:
    kind = kind_of(SIZE, SIZE, io="bfloat16", state=dtype, state_order=order)
    return find_refusal(kind, (DEVICE, torch.cuda.current_device())) is None


def rows_of(count: int, tokens: int, dtype: str, rate: float) -> list[dict]:
    """A row for each order; the fastest of several rounds, in which both take turns."""
    made = {order: calls_of(count, tokens, dtype, order) for order in ORDERS}
    rounds: dict[str, list[dict]] = {order: [] for order in ORDERS}
    for _ in range(_ROUNDS):
        for order in ORDERS:
            rounds[order].append(time_calls(made[order][0]))
    total = count * tokens
    inputs = 2 * total * SIZE * (2 * KEY_HEADS + 2 * VALUE_HEADS) + 8 * total * VALUE_HEADS
    states = 2 * count * VALUE_HEADS * SIZE * SIZE * getattr(torch, dtype).itemsize
    rows = []
    for order in ORDERS:
        times = min(rounds[order], key=lambda found: found["us"])
        what = "decode" if tokens == 1 else "prefill"
        config = {"case": f"{what}, {count} x {tokens}", "state": dtype, "order": order}
        row = {"suite": "state-order", "impl": "gdn", "config": config} | times
        row["share"] = (inputs + states) / (times["us"] * 1e-6) / rate
        row["medians"] = [found["us"] for found in rounds[order]]
        row["own_kernel"] = has_kernel(tokens, dtype, order)
        rows.append(row | {"error": made[order][1]})
    rows[1]["ratio"] = rows[1]["us"] / rows[0]["us"]
    return rows


def show(row: dict) -> None:
    config = row["config"]
    ratio = f", {row['ratio']:.3f} of vk" if "ratio" in row else ""
    own = "" if row["own_kernel"] else ", WITHOUT a kernel of this order"
    print(
        f"{config['case']}, {config['state']} {config['order']}: {row['us']:.2f} us"
        f" ({row['us_min']:.2f} to {row['us_max']:.2f}), {row['share']:.2f} of the copy rate,"
        f" error {row['error']:.1e}{ratio}{own}",
        flush=True,
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="state_order", description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--decode", type=int, nargs="*", default=DECODES, help="sequences")
    parser.add_argument("--no-prefill", action="store_true")
    options = parser.parse_args()
    torch.manual_seed(0)
    rate = copy_rate()
    print(f"{torch.cuda.get_device_name()}: copies at {rate / 1e12:.2f} TB/s", flush=True)
    cases = [(count, 1) for count in options.decode]
    cases += [] if options.no_prefill else PREFILLS
    rows = []
    with torch.no_grad():
        for count, tokens in cases:
            for dtype in STATES:
                rows += rows_of(count, tokens, dtype, rate)
                for row in rows[-len(ORDERS) :]:
                    show(row)
                torch.cuda.empty_cache()
    record = {
        "device": torch.cuda.get_device_name(),
        "date": str(datetime.date.today()),
        "versions": {"torch": torch.__version__},
        "copy_tb_per_s": rate / 1e12,
        "rows": rows,
    }
    options.output.write_text(json.dumps(record, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
