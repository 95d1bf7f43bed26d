# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The same decode step through GDNLayer, as engines launch it, beside the bare kernel: both in
a graph of launches back to back, in turns; and in the same turns the peers' rule alone, without
convolution and norm, where they can be imported. `python -m gdn.bench.layer IMAGE` writes the
rows."""

from __future__ import annotations

import argparse
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from .. import reference
from ..layers.attention import CommonAttentionMetadata, GDNAttentionMetadataBuilder, GDNLayer
from ..runtime import Kernel, Pool, Runtime
from . import decode, measure
from .inputs import Inputs, Step, make_step, to_host
from .peers import fla, vllm
from .timing import host_times, time_calls

# Arrays with a row for each sequence of the step; the rest of what is shared are weights.
_TOKENS = ("qkvz", "ba", "qkv", "q", "k", "v", "z", "b", "a", "core", "out")
_TURNS = 3
# Implementation, variant, and what prepares its calls.
_PEERS = [
    ("vLLM rule alone", "packed decode", vllm.rule),
    ("vLLM rule alone", "gates in kernel", vllm.rule_of_gates),
    ("FLA rule alone", "ready gates", fla.rule),
]


def metadata_of(kernel: Kernel, slots: torch.Tensor):
    """Of a step of decode on these slots, in memory of its own."""
    rows = len(slots)
    builder = GDNAttentionMetadataBuilder.from_options(
        kernel._runtime, kernel._device, max_num_seqs=rows, max_num_tokens=rows
    )
    return builder.build(
        0,
        CommonAttentionMetadata(
            query_start_loc=np.arange(rows + 1, dtype=np.int32),
            seq_lens=np.full(rows, 9, np.int32),
            num_reqs=rows,
            num_actual_tokens=rows,
            block_table_tensor=to_host(slots).astype(np.int32)[:, None],
        ),
    )


def calls(kernel: Kernel, step: Step, dependent: bool) -> list[Callable[[], object]]:
    """A layer for each set of slots, launched on the stream that is current."""
    tokens = {name: array for name, array in step.shared.items() if name in _TOKENS}
    weights = {name: array for name, array in step.shared.items() if name not in _TOKENS}
    pools = {name: Pool(pool) for name, pool in step.pools.items()}
    made = []
    for slots in step.slots:
        layer = GDNLayer({"decode": kernel}, **weights, **pools)
        layer.allow_dependent_launch(dependent)
        metadata = metadata_of(kernel, slots)

        def call(layer=layer, metadata=metadata):
            layer.forward(metadata, stream=torch.cuda.current_stream(), **tokens)

        made.append(call)
    torch.cuda.synchronize()
    return made


@dataclass
class Measured:
    """One implementation's calls, of a step or of the rule alone."""

    impl: str
    variant: str
    calls: list[Callable[[], object]]
    errors: tuple[float, float]


def ours(kernel: Kernel, step: Step) -> list[Measured]:
    """The kernel and the layer, with dependent launches and without."""
    output, found = decode.output_of(step), []
    for impl in ("gdn kernel", "gdn layer"):
        for dependent in (True, False):
            if impl == "gdn kernel":
                made = decode.calls(decode.bindings(kernel, step, dependent))
            else:
                made = calls(kernel, step, dependent)
            errors = decode.step_errors(step, made[0], lambda: output, step.states_in_slots)
            found.append(Measured(impl, "dependent" if dependent else "waits", made, errors))
    return found


def others(step: Step) -> list[Measured]:
    """The peers that can be imported and take the configuration, on the same states."""
    if step.layer.layout not in ("interleaved", "flat"):
        print(f"skipped: peers, for which the layout {step.layer.layout} is not unpacked")
        return []
    x, found = Inputs.of(step), []
    for impl, variant, prepare in _PEERS:
        try:
            peer = prepare(step, x)
            check = (x, peer.calls[0], peer.output, peer.states, peer.in_slots)
            found.append(Measured(impl, variant, peer.calls, decode.rule_errors(*check)))
        except Exception as error:
            # A peer that is missing or refuses a type is a line, not the end.
            print(f"skipped: {impl} {variant}: {type(error).__name__}: {str(error)[:200]}")
            if not isinstance(error, ImportError):
                traceback.print_exc()
            torch.cuda.synchronize()
    return found


def measure_rows(kernel: Kernel, layer: reference.Layer, heads, rows: int, options) -> list[dict]:
    """Rows of the report for one number of sequences."""
    step = make_step(kernel, layer, heads, rows)
    state = next(p.dtype for p in kernel.params if p.name == "state_pool")
    config = {"Hk": heads[0], "Hv": heads[1], "dk": layer.key_dim, "dv": layer.value_dim}
    config |= {"N": rows, "io": measure.io_of(kernel), "state": state, "step": "decode"}
    found = ours(kernel, step) + ([] if options.no_peers else others(step))
    times = [[time_calls(each.calls, options.repeats) for each in found] for _ in range(_TURNS)]
    report = []
    for index, each in enumerate(found):
        best = sorted((turn[index] for turn in times), key=lambda t: t["us"])[_TURNS // 2]
        row = {"suite": "step", "impl": each.impl, "config": config | {"variant": each.variant}}
        row |= best | {"host_us": host_times(each.calls)["us"]}
        row |= dict(zip(("error_o", "error_state"), each.errors, strict=True))
        row["state_TBps"] = 2 * step.state_bytes / row["us"] * 1e-6
        report.append(row)
        print(
            f"step {heads} N={rows:4} {state:8} {each.impl:15} {each.variant:16}"
            f" {row['us']:9.2f} us {row['state_TBps']:5.2f} TB/s, host {row['host_us']:6.2f} us,"
            f" errors {row['error_o']:.1e} {row['error_state']:.1e}",
            flush=True,
        )
    return report


def main() -> int:
    parser = argparse.ArgumentParser("layer", description=__doc__)
    parser.add_argument("image", type=Path)
    parser.add_argument("--heads", type=int, nargs=2, default=[16, 32])
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 4, 16, 64, 256, 512])
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no size after")
    parser.add_argument("--no-peers", action="store_true")
    options = measure.parse(parser)
    runtime = Runtime(options.library)
    device, image = runtime.cuda(), runtime.image(options.image)
    end, rows = time.monotonic() + options.seconds, []
    for entry in image.entries:
        if not entry.startswith("decode"):
            continue
        kernel = device.kernel(image, entry)
        layer = reference.Layer.of(image.attributes(entry))
        for count in options.rows:
            if time.monotonic() < end:
                rows += measure_rows(kernel, layer, tuple(options.heads), count, options)
                torch.cuda.empty_cache()
    measure.write(options, rows)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
