# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""SGLang's layer of Kimi Delta Attention, between its projections and its norm, with SGLang's
kernels and with gdn's: times and errors to float64. One rank of Kimi-Linear with 32 heads of 128,
in bf16, states in f32: prompts with and without states that the prefix cache keeps, and drafts.

    python3 -m gdn.bench.sglang_layer --sglang FOLDER --output sglang-kda-layer.json

FOLDER is one that gdn.bench.sglang_files makes, or that of an unpacked wheel: SGLang need not be
installed. Prefill is called from Python, as SGLang does with classes that it does not know; verify
is a replayed graph. Calls of all implementations take turns. Rows of level "layer" are of SGLang's
RadixLinearAttention with its backend, which has the convolution and copies kept states to their
slots; those of level "kernel" are of the method that the layer calls, with what the layer hands
over. SGLang's Triton kernels choose their configurations at the first prompt.
"""

import argparse
import datetime
import json
import traceback
from pathlib import Path
from statistics import median

import torch

from . import sglang_files
from .sglang_case import LIMIT, Call, Case, Step
from .sglang_setup import DIM, HEADS
from .timing import graph_of, host_times

BOUND = -5.0
DRAFTS = 4
PROMPTS = {"8 x 1024": (1024,) * 8, "1 x 8192": (8192,)}
_ROUNDS, _REPEATS = 9, 8


def steps_of(prompts: dict[str, tuple[int, ...]], counts: tuple[int, ...]) -> dict[str, Step]:
    """By names. SGLang keeps a state at the last border of chunks of a prompt, or at an earlier one
    where its cache branches."""
    found = {}
    for name, lengths in prompts.items():
        found[f"prefill {name}"] = Step(lengths)
        found[f"prefill {name}, kept at the end"] = Step(lengths, (lengths[0] - 1) // 64 * 64)
        found[f"prefill {name}, kept in the middle"] = Step(lengths, lengths[0] // 128 * 64)
    return found | {f"verify {n}": Step((DRAFTS,) * n, drafts=DRAFTS) for n in counts}


def times_in_turns(runs: dict, rounds: int = _ROUNDS, repeats: int = _REPEATS) -> dict[str, dict]:
    """Microseconds of a call of each, one behind the other, in turns."""
    for run in runs.values():
        for _ in range(3):
            run()
    found = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            for _ in range(repeats):
                run()
            end.record()
            end.synchronize()
            found[name].append(start.elapsed_time(end) * 1e3 / repeats)
    return {n: {"us": median(x), "us_min": min(x), "us_max": max(x)} for n, x in found.items()}


def replayed(call: Call):
    """A graph of the call. It keeps the call, whose memory the graph reads."""
    graph = graph_of([call.run])
    return lambda: (graph.replay(), call)[0]


def kernels_of(run, calls: int = 3) -> dict[str, float]:
    """Microseconds of each kernel on the device in one call."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        for _ in range(calls):
            run()
        torch.cuda.synchronize()
    return {x.key[:100]: x.device_time_total / calls for x in seen.key_averages()}


def said(row: dict, error: Exception) -> None:
    """Puts what has failed into its row."""
    row |= {"error": f"{type(error).__name__}: {error}".splitlines()[0], "correct": False}
    traceback.print_exc()


def check(case: Case, impl: str, config: dict):
    """A row and a call for the layer, and for its kernel where that is alone."""
    layer = None
    for level in ("layer", "kernel"):
        row = {"suite": "sglang-kda-layer", "impl": impl, "config": config | {"level": level}}
        try:
            call = case.call(impl) if layer is None else case.kernel_call(layer)
            if call is None:
                return
            layer = call
            found = case.errors(call)
            row |= {f"error_{name}": found[name] for name in found if name != "changed"}
            row["correct"] = all(x < LIMIT for x in found.values())
        except Exception as error:
            said(row, error)
            yield row, None
            return
        yield row, call


def rows_of(case: Case, config: dict, impls: tuple[str, ...]) -> list[dict]:
    """Of a step; what fails is said in its row."""
    rows, runs = [], {}
    for impl in impls:
        for row, call in check(case, impl, config):
            rows.append(row)
            if call is None or case.device != "cuda":
                continue
            key = impl, row["config"]["level"]
            try:
                if case.step.drafts:
                    runs[key] = replayed(call)
                else:
                    row["host_us"] = host_times([call.run], 20)["us"]
                    runs[key] = call.run
            except Exception as error:
                said(row, error)
    times = times_in_turns(runs) if runs else {}
    for row in rows:
        row |= times.get((row["impl"], row["config"]["level"]), {})
    return rows


def add_kernels(case: Case, rows: list[dict]) -> None:
    """Behind all times: a profiler stays in the way of launches."""
    for row in rows:
        if row["config"]["level"] == "layer" and "us" in row:
            try:
                row["kernels"] = kernels_of(case.call(row["impl"]).run)
            except Exception as error:
                said(row, error)


def show(row: dict) -> None:
    errors = " ".join(f"{name[6:]} {row[name]:.1e}" for name in row if name.startswith("error_"))
    time = f"{row['us']:9.1f} us" if "us" in row else "-"
    text = (
        f"{row['config']['step']:38} {row['config']['level']:7} {row['impl']:13} {time}  {errors}"
    )
    print(text, "" if row["correct"] else "FAILED", row.get("error", ""), flush=True)


def config_of(name: str, step: Step, bound: float | None) -> dict[str, object]:
    config = {"step": name, "N": len(step.lengths), "T": sum(step.lengths)}
    config |= {"kept": step.kept, "drafts": step.drafts, "decay": "channel"}
    config |= {"decay_bound": bound, "Hk": HEADS, "Hv": HEADS, "dk": DIM, "dv": DIM}
    return config | {"io": "bf16", "state": "f32", "from": "graph" if step.drafts else "python"}


def write(record: dict, path: Path | None) -> None:
    if path is not None:
        path.write_text(json.dumps(record, indent=1) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.sglang_layer", description=__doc__)
    parser.add_argument("--sglang", type=Path, required=True, help="of gdn.bench.sglang_files")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--only", nargs="*", default=[""], help="steps whose names begin so")
    parser.add_argument("--gates", nargs="*", default=["softplus", "bounded"])
    parser.add_argument("--kernels", action="store_true", help="times of each kernel, too")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    server = sglang_files.install(arguments.sglang)
    on_gpu = arguments.device == "cuda"
    record = {
        "device": torch.cuda.get_device_name() if on_gpu else "cpu",
        "date": datetime.date.today().isoformat(),
        "versions": {"sglang": sglang_files.VERSION, "torch": torch.__version__},
        "seed": arguments.seed,
        "rows": [],
    }
    steps = steps_of(PROMPTS, (1, 16, 64)) if on_gpu else steps_of({"2 x 130": (130,) * 2}, (3,))
    with torch.no_grad():
        cases = []
        for bound in [{"softplus": None, "bounded": BOUND}[name] for name in arguments.gates]:
            for name, step in steps.items():
                if not name.startswith(tuple(arguments.only)):
                    continue
                given = server, step, bound, arguments.device, arguments.seed
                impls = ("gdn",) + ("sglang",) * on_gpu
                impls += ("sglang fused",) * (on_gpu and step.drafts > 0)
                rows = rows_of(Case(*given), config_of(name, step, bound), impls)
                cases.append((given, rows))
                record["rows"] += rows
                for row in rows:
                    show(row)
                write(record, arguments.output)
                if on_gpu:
                    torch.cuda.empty_cache()
        for given, rows in cases if arguments.kernels else []:
            add_kernels(Case(*given), rows)
            write(record, arguments.output)
    return 0 if all(row["correct"] for row in record["rows"]) else 1


if __name__ == "__main__":
    raise SystemExit(main())
