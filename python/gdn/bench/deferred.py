# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures decode steps that write states every W tokens beside those in place.

  python -m gdn.bench.deferred IMAGE.. [--library FILE] [--output FILE]

An image with pools of pending tokens is of the deferred form. Its rows are in three kinds of
phases: *apart*, so that each launch puts the tokens of 1 in W rows into their states;
*staggered*, where the key heads of a row are apart, too; and, where all blocks of a launch run at
the same time, *together*: 1 in W launches does so for all its rows. Entries `verify` are measured
with each number of --tokens that their rows may have, of which 1 to all are accepted, as rows
go."""

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import torch

from .. import reference
from ..checks import relative_error
from ..problems import PENDING, PENDING_SCALES
from ..runtime import Runtime
from . import decode, deferred_stream, measure, stream, verify, verify_ours, vllm_files
from .deferred_prototype import prototype_rows
from .inputs import Step, make_step, to_host


def fill_pending(step: Step, phases: str) -> None:
    """Keys of norm 1, deltas and decays as a model has them, and counts of the steady state."""
    generator = torch.Generator("cuda").manual_seed(7)
    keys, deltas, decays = (step.pools[name] for name in PENDING)
    room = keys.shape[2]
    norm = torch.nn.functional.normalize(
        torch.randn(keys.shape, generator=generator, device="cuda"), dim=-1
    )
    keys.copy_(norm)
    deltas.normal_(0, 0.5, generator=generator)
    if PENDING_SCALES in step.pools:
        step.pools[PENDING_SCALES].fill_(1)
    decays.uniform_(-0.3, 0, generator=generator)
    counts = step.pools["pending_counts"]
    heads = torch.arange(counts.shape[1], device="cuda")[None]
    for number, slots in enumerate(step.slots):
        rows = torch.arange(len(slots), device="cuda")[:, None]
        # Sets are in different phases, so that each replay has the same share of rows that fold.
        phase = (
            number
            + {
                "apart": rows + 0 * heads,
                "staggered": rows + heads * room // counts.shape[1],
                "together": 0 * (rows + heads),
            }[phases]
        )
        # A count of 0 comes behind a commit alone: behind a fold the step's token is pending.
        counts[slots.long()] = (1 + phase % room).to(counts.dtype)


def picked_pools(step: Step) -> dict[str, np.ndarray]:
    """The slots of the picked rows, behind one that is null and has nothing pending."""
    rows = step.slots_of(True)[step.picked]
    chosen = torch.cat([torch.zeros(1).long().to("cuda"), rows])
    return {name: to_host(pool[chosen]) for name, pool in step.pools.items()}


def errors(step: Step, run) -> dict[str, float]:
    """Of the picked rows after `run` has made a step on the first set, with what is pending
    put into the states."""
    rows = step.picked
    weights = ("A_log", "dt_bias", "conv_weight", "norm_weight")
    before = {
        name: to_host(value if name in weights else value[rows])
        for name, value in step.shared.items()
    }
    before |= picked_pools(step)
    before["slots"] = np.arange(1, len(rows) + 1)
    want = reference.evaluate(step.layer, before)
    run()
    torch.cuda.synchronize()
    after = picked_pools(step)
    states = reference.with_pending(after)[1:]
    name = "out" if "out" in step.shared else "core"
    return {
        "error_o": relative_error(to_host(step.shared[name][rows]), want[name]),
        "error_state": relative_error(states, want["state_pool"][1:]),
    }


def kinds_of_phases(heads: tuple[int, int], rows: int) -> list[str]:
    processors = torch.cuda.get_device_properties(0).multi_processor_count
    is_one_wave = rows * heads[1] <= 2 * processors
    return ["apart", "together"] if is_one_wave else ["apart", "staggered"]


def in_place_errors(step: Step, run) -> dict[str, float]:
    output = decode.output_of(step)
    found = decode.step_errors(step, run, lambda: output, step.states_in_slots)
    return dict(zip(("error_o", "error_state"), found, strict=True))


def measure_one(kernel, layer, heads, rows: int, options, refused: list[str]) -> list[dict]:
    params = {param.name: param for param in kernel.params}
    state = verify_ours.state_format(params)
    if layer.reads_upper:
        state += "-upper"
    is_deferred = "pending_counts" in params
    step = make_step(kernel, layer, heads, rows)
    config = {"Hk": heads[0], "Hv": heads[1], "dk": layer.key_dim, "dv": layer.value_dim}
    config |= {"N": rows, "T": 1, "io": measure.io_of(kernel), "state": state}
    config |= {"form": "deferred" if is_deferred else "in place"}
    if is_deferred:
        config |= {"W": step.pools["pending_keys"].shape[2]}
        if PENDING_SCALES in params:
            config |= {"pending": params["pending_keys"].dtype}
    report = measure.Report(config, 2 * step.state_bytes, options.repeats)
    for phases in kinds_of_phases(heads, rows) if is_deferred else ("",):
        place = "" if phases in ("", "apart") else f" {phases}"
        for dependent in (False, True):
            if is_deferred:
                fill_pending(step, phases)
            bound = decode.bindings(kernel, step, dependent)
            calls = decode.calls(bound)
            if is_deferred:
                found = errors(step, calls[0])
                # So long that each phase comes as often.
                calls = calls * max(1, -(-config["W"] // len(calls)))
            else:
                found = in_place_errors(step, calls[0])
            variant = bound[0].variant + place + (" pdl" if dependent else "")
            report.measure("gdn", "step", variant, calls, **found)
    if is_deferred and deferred_stream.moves(step):
        fill_pending(step, "apart")
        policy, times = deferred_stream.fastest(step, not layer.reads_upper, 5)
        report.add("stream deferred", "", policy, times)
    elif not is_deferred:
        if options.peers:
            refused += measure.measure_peers(report, step, set(options.peers))
        pool = step.pools["state_pool"]
        policy, times = stream.fastest([(pool, slots) for slots in step.slots], 9)
        report.add("stream", "", policy, times)
    return report.rows


def heads_of(text: str) -> tuple[int, int]:
    keys, values = text.split(",")
    return int(keys), int(values)


def main() -> int:
    parser = argparse.ArgumentParser(prog="gdn.bench.deferred", description=__doc__)
    parser.add_argument("images", nargs="+", type=Path)
    parser.add_argument("--heads", type=heads_of, nargs="+", default=[(16, 32)])
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 8, 64, 256, 512])
    parser.add_argument("--tokens", type=int, nargs="+", default=[], help="of a verify")
    parser.add_argument("--repeats", type=int, default=11)
    parser.add_argument("--peers", nargs="+", default=[], help="beside steps in place")
    parser.add_argument("--prototype", type=Path, help="times of the hand-written kernels, as CSV")
    parser.add_argument("--prototype-checks", nargs="+", type=Path, default=[], help="their errors")
    parser.add_argument("--vllm", type=Path, help="folder of vLLM's files, of gdn.bench.vllm_files")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no configuration after")
    options = measure.parse(parser)
    if options.vllm:
        vllm_files.install(options.vllm)
    begin = time.monotonic()
    runtime = Runtime(options.library)
    device = runtime.cuda()
    rows, refused = [], []
    for path in options.images:
        image, known = runtime.image(path), {}
        for entry in image.entries:
            if not entry.startswith(("decode", "verify")):
                continue
            kernel = device.kernel(image, entry)
            layer = reference.Layer.of(image.attributes(entry))
            most = int(image.attributes(entry).get("gdn.max_tokens", 0)) or max(
                options.tokens or [0]
            )
            for heads in options.heads:
                for count in options.rows:
                    if time.monotonic() - begin > options.seconds:
                        refused.append(f"{entry} N={count}: no time left")
                    elif entry.startswith("decode"):
                        rows += measure_one(kernel, layer, heads, count, options, refused)
                    else:
                        for tokens in (n for n in options.tokens if n <= most):
                            given = (device, kernel, layer, heads, count, tokens, options.repeats)
                            rows += verify_ours.measure(*given, known)
                            if options.peers:
                                types = measure.io_of(kernel), "float32"
                                found, why = verify.measure(
                                    layer, heads, count, tokens, *types, options.repeats
                                )
                                rows, refused = rows + found, refused + why
                    torch.cuda.empty_cache()
    if options.prototype:
        rows += prototype_rows(options.prototype, options.prototype_checks, rows)
    measure.write(options, rows, refused)
    return 0


if __name__ == "__main__":
    sys.exit(main())
