# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The core of vLLM's layers, between their projections, with vLLM's kernels and with gdn's: times
and errors to float64. One rank of Qwen3.5 with heads 16/32 of 128, in bf16; or of Kimi-Linear with
32 heads (vllm_kda.py).

    python3 -m gdn.bench.vllm_layer --vllm FOLDER --image layer.gdnk --output vllm-layer.json

FOLDER is one that gdn.bench.vllm_files makes: vLLM need not be installed. The image is of
`gdn-compile --preset qwen3.5-4b --for=vllm`, or with another --state and --defer-writes; there may
be several, and their rows say which form they are of. One of Kimi Delta Attention is of
`gdn-compile --preset kimi-linear-48b-a3b --for=vllm --conv-weight=f32 --norm-constants`. Of states
in planes and of deferred writes there are gdn's times alone, for steps without drafts; with
deferred writes a decode is checked over so many steps that each sequence puts what is pending into
its state. vLLM's prompts go through its Triton kernels: FlashInfer's are measured by
gdn.bench.prefill.
"""

import argparse
import datetime
import json
import traceback
from pathlib import Path

import torch

from ..runtime import Runtime
from . import vllm_files
from .timing import graph_of, host_times, time_calls
from .vllm_case import DRAFTS, Case, Form
from .vllm_kda import KdaCase
from .vllm_setup import PREFIX

# Sequences: (tokens before, tokens, drafts).
DECODE, DRAFTED, PROMPT = (500, 1, -1), (500, 1 + DRAFTS, DRAFTS), (0, 1024, -1)
CASES = {
    "decode N=1": [DECODE],
    "decode N=64": [DECODE] * 64,
    "decode N=256": [DECODE] * 256,
    "verify N=1": [DRAFTED],
    "verify N=64": [DRAFTED] * 64,
    "verify N=256": [DRAFTED] * 256,
    "prefill 8 x 1024": [PROMPT] * 8,
    "prefill 1 x 8192": [(0, 8192, -1)],
    "mixed 64 + 2 x 1024": [DECODE] * 64 + [PROMPT] * 2,
    "verify and prefill 32 + 2 x 1024": [DRAFTED] * 32 + [PROMPT] * 2,
}


def errors_of_steps(case: Case, make, steps: int) -> dict[str, float]:
    """The largest errors of steps one behind the other, each beside float64 from what the one ahead
    has left. On a GPU all but the first are of a graph."""
    pools, out = case.pools(), case.out()
    run, worst = make(pools, out), {}
    generator = torch.Generator().manual_seed(4)
    first = case.projected.clone()
    for step in range(steps):
        if step:
            case.projected.copy_(torch.randn(first.shape, generator=generator))
        if step == 1 and case.device == "cuda":
            run = graph_of([run]).replay
        # vLLM's convolution of a step of decode writes over its inputs.
        given, before = case.projected.clone(), tuple(pool.clone() for pool in pools)
        run()
        if case.device == "cuda":
            torch.cuda.synchronize()
        case.projected.copy_(given)
        found = case.errors(before, pools, out)
        worst = {name: max(x, worst.get(name, 0.0)) for name, x in found.items()}
    case.projected.copy_(first)
    return worst


def eager_times(calls, repeats: int = 12) -> dict[str, float]:
    """Microseconds of one call, outside of a graph, one behind the other."""
    times = []
    for repeat in range(repeats + 2):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for call in calls:
            call()
        end.record()
        end.synchronize()
        if repeat >= 2:
            times.append(start.elapsed_time(end) * 1e3 / len(calls))
    times.sort()
    return {"us": times[len(times) // 2], "us_min": times[0], "us_max": times[-1]}


def measure(case: Case, make, config: dict, impl: str) -> dict:
    """A row of the report; what fails is said in it."""
    row = {"suite": "vllm-layer", "impl": impl, "config": config}
    # vLLM's convolution of a step of decode writes over its inputs.
    inputs = case.projected.clone()
    try:
        steps = 2 + case.form.deferred_writes if case.decodes and case.form.deferred_writes else 1
        found = errors_of_steps(case, make, steps)
        row |= {"error_o": found["out"], "error_state": found["state"]}
        row["correct"] = all(found[name] < case.form.limits[name] for name in found)
        if case.device != "cuda":
            return row
        out = case.out()
        calls = [make(case.pools(), out) for _ in range(case.sets)]
        row |= {f"eager_{key}": value for key, value in eager_times(calls).items()}
        row["host_us"] = host_times(calls)["us"]
        try:
            row |= time_calls(calls)
        except Exception as error:  # not all steps can be captured
            row["graph_error"] = f"{type(error).__name__}: {error}".splitlines()[0]
        if case.decodes and "us" in row:
            row["gb_per_s"] = case.moved / row["us"] / 1e3
    except Exception as error:
        row["error"] = f"{type(error).__name__}: {error}"
        traceback.print_exc()
    finally:
        case.projected.copy_(inputs)
    return row


def run_case(step, name: str, rows, kernels, form: Form, device: str):
    """Rows of both."""
    case = (KdaCase if form.per_channel else Case)(rows, form, device)
    step.attn_metadata = {PREFIX: case.metadata}
    config = {"step": name, "N": len(rows), "T": case.tokens, "drafts": case.sizes.drafts}
    config |= {"Hk": case.sizes.key_heads, "Hv": case.sizes.value_heads, "dk": 128, "dv": 128}
    config |= {"io": "bf16", "state": form.state, "decay": "head"}
    if form.per_channel:
        config |= {"decay": "channel", "decay_bound": form.decay_bound}
    config |= {"deferred_writes": form.deferred_writes, "pending": form.pending}
    config["sets"] = case.sets
    for impl, make in case.makers(kernels).items():
        yield measure(case, make, config, impl)
        if device == "cuda":
            torch.cuda.empty_cache()


def show(row: dict) -> None:
    def number(key: str) -> str:
        return f"{row[key]:9.1f}" if key in row else f"{'-':>9}"

    marks = f"errors {row['error_o']:.1e} {row['error_state']:.1e}" if "error_o" in row else ""
    marks += "" if row.get("correct", False) else " FAILED"
    marks += f" {row.get('error', '')} {row.get('graph_error', '')}"
    times = f"graph {number('us')} us, eager {number('eager_us')} us, host {number('host_us')} us"
    config = row["config"]
    form = config["state"]
    if config["deferred_writes"]:
        form += f", W = {config['deferred_writes']}"
    print(f"{config['step']:34} {row['impl']:10} {form:18} {times}, {marks}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.vllm_layer", description=__doc__)
    parser.add_argument("--vllm", type=Path, required=True, help="of gdn.bench.vllm_files")
    parser.add_argument("--image", type=Path, action="append", required=True)
    parser.add_argument("--library", type=Path, help="libgdnrt, by default the installed one")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--only", nargs="*", default=[""], help="cases whose names begin so")
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    step = vllm_files.install(arguments.vllm)
    from ..integrations.vllm.layer_core import LayerKernels
    from ..integrations.vllm.layer_kind import entries_of

    runtime = Runtime(arguments.library)
    on_gpu = arguments.device == "cuda"
    device = runtime.cuda() if on_gpu else runtime.device(num_workers=0)
    record = {
        "device": torch.cuda.get_device_name() if on_gpu else "cpu",
        "date": datetime.date.today().isoformat(),
        "versions": {"vllm": "0.33.0", "torch": torch.__version__},
        "rows": [],
    }
    for path in arguments.image:
        image = runtime.image(path)
        form = Form.of(image)
        kernels = LayerKernels(device, image, entries_of(form.state, form.deferred_writes))
        for name, rows in CASES.items():
            has_drafts = any(drafts >= 0 for _, _, drafts in rows)
            has_kernels = not has_drafts or "verify" in kernels.calls
            if not has_kernels or not name.startswith(tuple(arguments.only)):
                continue
            for row in run_case(step, name, rows, kernels, form, arguments.device):
                show(row)
                record["rows"].append(row)
                if arguments.output:
                    arguments.output.write_text(json.dumps(record, indent=1) + "\n")
    return 0 if all(row.get("correct") for row in record["rows"]) else 1


if __name__ == "__main__":
    raise SystemExit(main())
