# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The core of vLLM's layer, between its projections, with vLLM's kernels and with gdn's: times and
errors to float64. One rank of Qwen3.5 with heads 16/32 of 128, in bf16.

    python3 -m gdn.bench.vllm_layer --vllm FOLDER --image layer.gdnk --output vllm-layer.json

FOLDER is one that gdn.bench.vllm_files makes: vLLM need not be installed. The image is of
`gdn-compile --preset qwen3.5-4b --for=vllm`, or with another --state and --defer-writes; there may
be several, and their rows say which form they are of. Of states in planes and of deferred writes
there are gdn's times alone, for steps without drafts; with deferred writes a decode is checked over
so many steps that each sequence puts what is pending into its state. vLLM's prompts go through its
Triton kernels: FlashInfer's are measured by gdn.bench.prefill.
"""

import argparse
import datetime
import json
import traceback
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from .. import image_facts, reference
from ..checks import relative_error
from ..integrations.slot_arrays import SlotSizes
from ..integrations.vllm.block_arrays import BlockArrays
from ..kernel_calls import SHORT_TYPES
from ..runtime import Runtime
from . import vllm_files
from .timing import graph_of, host_times, number_of_sets, time_calls
from .vllm_setup import PREFIX, Sizes, make_layer, make_metadata, make_pools, make_weights

DRAFTS = 3
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
_MOST_BYTES = 30 << 30
LONG_TYPES = {short: name for name, short in SHORT_TYPES.items()}
LIMITS = {"out": 1.5e-2, "state": 1.5e-2}
#: Of states in one plane, or of which decode reads one.
COARSE = {"out": 6e-2, "state": 3e-2}


class Form(NamedTuple):
    """What an image is for: the type of states, and tokens that stay pending."""

    state: str
    deferred_writes: int = 0
    pending: str = "f32"

    @classmethod
    def of(cls, image) -> "Form":
        facts = image_facts.facts_of(image)["facts"]
        return cls(facts["state"], facts["deferred_writes"], facts["pending"] or "f32")

    @property
    def limits(self) -> dict[str, float]:
        return COARSE if self.state in ("i8", "i8x2_upper") else LIMITS

    def arrays(self, sizes: Sizes) -> BlockArrays | None:
        """Of slots, unless these have a window and a state of numbers."""
        if self.state in image_facts.TYPES and not self.deferred_writes:
            return None
        heads = SlotSizes(sizes.key_heads, sizes.value_heads, sizes.value_dim, sizes.key_dim)
        state = LONG_TYPES.get(self.state, self.state)
        return BlockArrays(heads, state, self.deferred_writes, LONG_TYPES[self.pending])


class Case:
    """A step: what the projections gave, and sets of layers with states of their own, whose states
    are then not in a cache."""

    def __init__(self, rows, form: Form, device):
        has_drafts = any(drafts >= 0 for _, _, drafts in rows)
        self.sizes = Sizes(drafts=DRAFTS if has_drafts else 0)
        self.rows, self.device, self.form = rows, device, form
        self.arrays = form.arrays(self.sizes)
        name = LONG_TYPES.get(form.state, "float32")
        self.state_dtype = getattr(torch, name)
        self.decodes = all(tokens <= 1 + DRAFTS for _, tokens, _ in rows)
        self.slots = 1 + len(rows) * (1 + self.sizes.drafts)
        self.tokens = sum(tokens for _, tokens, _ in rows)
        window, state = self.sizes.shapes()
        rest = int(np.prod(state)) * self.state_dtype.itemsize
        rest = rest if self.arrays is None else 4 * self.arrays.words
        size = 2 * int(np.prod(window)) + rest
        # With deferred writes most steps write no state.
        self.moved = len(rows) * (2 * size - (rest if form.deferred_writes else 0))
        sets = min(number_of_sets(len(rows) * size), _MOST_BYTES // (2 * self.slots * size))
        self.sets = max(1, sets)
        self.weights = make_weights(self.sizes, device)
        generator = torch.Generator().manual_seed(3)

        def normal(width):
            return torch.randn(self.tokens, width, generator=generator).bfloat16().to(device)

        self.qkvz, self.ba = normal(self.sizes.packed), normal(2 * self.sizes.value_heads)
        self.builder, self.metadata = make_metadata(rows, self.sizes, device, graphs=self.decodes)

    def pools(self):
        types = torch.bfloat16, self.state_dtype
        return make_pools(self.sizes, self.slots, self.device, *types, self.arrays)

    def out(self) -> torch.Tensor:
        shape = self.tokens, self.sizes.value_heads, self.sizes.value_dim
        return torch.zeros(shape, dtype=torch.bfloat16, device=self.device)


def gdn_call(case: Case, kernels, pools, out):
    """A step of gdn's layer."""
    from ..integrations.vllm.layer import GdnQwenGatedDeltaNetAttention

    given = case.sizes, case.weights, pools, kernels, case.arrays
    layer = make_layer(GdnQwenGatedDeltaNetAttention, *given)
    return partial(layer._forward_core_fused_norm_packed, case.qkvz, case.ba, out)


def vllm_call(case: Case, pools, out):
    """A step of vLLM's layer, with what its forward does between projections and core: views of q,
    k, v and z, copies of b and a; and the norm behind."""
    from vllm.model_executor.layers.mamba.gdn import qwen_gdn_linear_attn as module

    layer = make_layer(module.QwenGatedDeltaNetAttention, case.sizes, case.weights, pools)
    object.__setattr__(layer, "chunk_gated_delta_rule", partial(_chunk, module))
    heads = case.sizes.value_heads

    def run():
        mixed, z = case.qkvz.split([case.sizes.channels, out[0].numel()], dim=-1)
        b, a = case.ba.split(heads, dim=-1)
        layer._forward_core(mixed, b.contiguous(), a.contiguous(), out)
        layer._rms_norm_gated_cuda(out, z.reshape(out.shape), out)

    return run


def _chunk(module, *, core_attn_out=None, aiter_prefill_metadata=None, **options):
    return module.fla_chunk_gated_delta_rule(**options)


def vllm_fused_call(case: Case, pools, out):
    """The same for drafts alone, with the step behind the convolution in one kernel, its Triton
    form: the CUDA form needs vLLM's library."""
    from vllm.model_executor.layers.mamba.gdn import qwen_gdn_linear_attn as module

    module.fused_mtp_decode_impl = lambda: module.fused_gdn_decode_post_conv_mtp_triton
    layer = make_layer(module.QwenGatedDeltaNetAttention, case.sizes, case.weights, pools)

    def run():
        mixed, z = case.qkvz.split([case.sizes.channels, out[0].numel()], dim=-1)
        b, a = case.ba.split(case.sizes.value_heads, dim=-1)
        gate = z.reshape(out.shape)
        layer._forward_core_decode_spec_fused_norm(mixed, b, a, gate, out, case.metadata)

    return run


def errors(case: Case, before, pools, out, slots=None) -> dict[str, float]:
    """Of some sequences: outputs, and the state after the last token. `slots` are those of their
    first tokens, by default make_metadata's."""
    starts = np.cumsum([0, *(tokens for _, tokens, _ in case.rows)])
    chosen = sorted({0, len(case.rows) // 2, len(case.rows) - 1})
    host = {name: _float(x) for name, x in case.weights.items()}
    weights = {
        "conv_weight": host["conv"][:, 0],
        "A_log": host["A_log"],
        "dt_bias": host["dt_bias"],
        "norm_weight": host["norm"],
    }
    layer = reference.Layer("flat", case.sizes.key_dim, case.sizes.value_dim)
    got, want = {"out": [], "state": []}, {"out": [], "state": []}
    for row in chosen:
        known, count, drafts = case.rows[row]
        first = 1 + row * (1 + case.sizes.drafts) if slots is None else slots[row]
        last = first + (count - 1 if drafts >= 0 else 0)
        tokens = slice(starts[row], starts[row + 1])
        given = {
            "qkvz": _float(case.qkvz[tokens]),
            "ba": _float(case.ba[tokens]),
            "conv_pool": _float(before[0][[0, first], :3].transpose(1, 2)),
            **states(case, before, [0, first]),
            "slots": np.array([1]),
            "cu_seqlens": np.array([0, count]),
            "has_initial": np.array([known > 0]),
        }
        result = reference.evaluate(layer, given | weights)
        want["out"].append(result["out"])
        want["state"].append(result["state_pool"][1])
        got["out"].append(_float(out[tokens]))
        got["state"].append(reference.whole_states(states(case, pools, [last]))[0])
    return {
        name: relative_error(np.concatenate(got[name]), np.concatenate(want[name])) for name in got
    }


def errors_of_steps(case: Case, make, steps: int) -> dict[str, float]:
    """The largest errors of steps one behind the other, each beside float64 from what the one ahead
    has left. On a GPU all but the first are of a graph."""
    pools, out = case.pools(), case.out()
    run, worst = make(pools, out), {}
    generator = torch.Generator().manual_seed(4)
    first = case.qkvz.clone()
    for step in range(steps):
        if step:
            case.qkvz.copy_(torch.randn(first.shape, generator=generator))
        if step == 1 and case.device == "cuda":
            run = graph_of([run]).replay
        # vLLM's convolution of a step of decode writes over its inputs.
        given, before = case.qkvz.clone(), tuple(pool.clone() for pool in pools)
        run()
        if case.device == "cuda":
            torch.cuda.synchronize()
        case.qkvz.copy_(given)
        found = errors(case, before, pools, out)
        worst = {name: max(x, worst.get(name, 0.0)) for name, x in found.items()}
    case.qkvz.copy_(first)
    return worst


def states(case: Case, pools, slots: list[int]) -> dict[str, np.ndarray]:
    """What chosen slots have beside their windows, as kernels name it."""
    found = {"state_pool": pools[1][slots]}
    if case.arrays is not None:
        found = case.arrays.split(pools[1][slots], lambda name: getattr(torch, name))
    numbers = {name: x.cpu() for name, x in found.items()}
    return {name: _float(x) if x.is_floating_point() else x.numpy() for name, x in numbers.items()}


def _float(x: torch.Tensor) -> np.ndarray:
    return x.detach().double().cpu().numpy()


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
    inputs = case.qkvz.clone()
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
        case.qkvz.copy_(inputs)
    return row


def run_case(step, name: str, rows, kernels, form: Form, device: str):
    """Rows of both."""
    case = Case(rows, form, device)
    step.attn_metadata = {PREFIX: case.metadata}
    config = {"step": name, "N": len(rows), "T": case.tokens, "drafts": case.sizes.drafts}
    config |= {"Hk": 16, "Hv": 32, "dk": 128, "dv": 128, "io": "bf16", "state": form.state}
    config |= {"deferred_writes": form.deferred_writes, "pending": form.pending}
    config["sets"] = case.sets
    makers = {"gdn": lambda pools, out: gdn_call(case, kernels, pools, out)}
    if case.arrays is None:
        makers["vllm"] = lambda pools, out: vllm_call(case, pools, out)
    if case.sizes.drafts and case.decodes:
        makers["vllm fused"] = lambda pools, out: vllm_fused_call(case, pools, out)
    for impl, make in makers.items():
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
    parser.add_argument("--only", default="", help="cases whose names begin so")
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
            if not has_kernels or not name.startswith(arguments.only):
                continue
            for row in run_case(step, name, rows, kernels, form, arguments.device):
                show(row)
                record["rows"].append(row)
                if arguments.output:
                    arguments.output.write_text(json.dumps(record, indent=1) + "\n")
    return 0 if all(row.get("correct") for row in record["rows"]) else 1


if __name__ == "__main__":
    raise SystemExit(main())
