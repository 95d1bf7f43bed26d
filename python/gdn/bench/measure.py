# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures decode steps of an image's entries beside the yardstick and the peers.
All implementations of a configuration take turns on the same sets of states."""

import argparse
import datetime
import importlib
import subprocess
import time
import traceback
from importlib.metadata import PackageNotFoundError, version
from itertools import product
from pathlib import Path

import torch

from .. import reference
from ..call import Call
from ..device_check import driver_version
from ..runtime import Kernel, Runtime
from . import decode, host, limits, prototype, stream, verify, verify_ours
from .inputs import Inputs, make_step
from .peers import PEERS
from .report import save
from .timing import first_call_ms, host_times, time_calls

ROOT = Path(__file__).resolve().parents[3]
# Package, and the module that states a version where no package is installed.
_PACKAGES = {
    "triton": "triton",
    "flash-linear-attention": "fla",
    "nvidia-cudnn-frontend": "cudnn",
    "flashinfer-python": "flashinfer",
    "flash-qla": "flash_qla",
    "tilelang": "tilelang",
    "nvidia-cutlass-dsl": "cutlass",
    "vllm": "vllm",
}


def versions() -> dict[str, str]:
    found = {"torch": torch.__version__, "cuda": torch.version.cuda or ""}
    for package, module in _PACKAGES.items():
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            try:
                found[package] = importlib.import_module(module).__version__
            except (ImportError, AttributeError):
                continue
    return found


def commit() -> str:
    done = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True
    )
    return done.stdout.strip() or "unknown"


def describe(of: str | None = None) -> dict:
    """What a report says about the machine, with the rates that its memory and its matrix
    units reach; `of` is the commit of the image."""
    report = {
        "device": torch.cuda.get_device_name(),
        "driver": driver_version(None),
        "date": datetime.date.today().isoformat(),
        "commit": of or commit(),
        "versions": versions(),
        "ceilings": {"copy_TBps": stream.copy_tbps(), "matmul_TFLOPs": stream.matmul_tflops()},
    }
    torch.cuda.empty_cache()
    return report


def parse(parser: argparse.ArgumentParser):
    """The arguments of a program that measures and writes a report. The context is there then."""
    parser.add_argument("--library", type=Path, help="libgdnrt.so, else the installed one")
    parser.add_argument("--commit", help="that images are of; that of this tree by default")
    parser.add_argument("--output", type=Path, help="write the report as JSON")
    options = parser.parse_args()
    torch.zeros(1, device="cuda")
    return options


def write(options, rows: list[dict], refused: list[str] | None = None) -> None:
    """The rows as a report, to `options.output` if there is one, with what was refused."""
    if options.output:
        more = {"refused": sorted(set(refused))} if refused else {}
        save(options.output, describe(options.commit) | more | {"rows": rows})


class Report:
    """Rows of one configuration, printed as they come."""

    def __init__(self, config: dict, bytes_moved: int, repeats: int):
        self.config, self.bytes_moved, self.repeats = config, bytes_moved, repeats
        self.rows: list[dict] = []

    def add(self, impl: str, part: str, variant: str, times: dict, **more) -> None:
        config = self.config | ({"part": part} if part else {}) | {"variant": variant}
        row = {"suite": "decode", "impl": impl, "config": config} | times | more
        row["state_TBps"] = self.bytes_moved / times["us"] * 1e-6
        self.rows.append(row)
        errors = f"{more['error_o']:.1e} {more['error_state']:.1e}" if "error_o" in more else ""
        print(
            f"decode {config['Hk']:3},{config['Hv']:3} N={config['N']:4} {config['state']:9}"
            f" {impl:10} {part:4} {variant:22} {times['us']:9.2f} us"
            f" {row['state_TBps']:6.2f} TB/s {errors}",
            flush=True,
        )

    def measure(
        self, impl: str, part: str, variant: str, calls: list, host: list | None = None, **more
    ) -> None:
        """`host` are the calls whose time on the host counts, if they are others."""
        times = time_calls(calls, self.repeats)
        self.add(impl, part, variant, times, host_us=host_times(host or calls)["us"], **more)


def measure_peers(report: Report, step, wanted: set[str]) -> list[str]:
    """Rows of the peers that can be imported and take the configuration; why others do not."""
    x, refused = Inputs.of(step), []
    for impl, part, variant, prepare in PEERS:
        if wanted and impl not in wanted:
            continue
        try:
            peer = prepare(step, x)
            spent = {}

            def run(peer=peer, spent=spent):
                spent["first_call_ms"] = first_call_ms(peer.calls[0])

            left = (run, peer.output, peer.states, peer.in_slots)
            if part == "step":
                error_o, error_state = decode.step_errors(step, *left)
            else:
                error_o, error_state = decode.rule_errors(x, *left, peer.has_norm)
            found = {"error_o": error_o, "error_state": error_state} | spent
            report.measure(impl, part, variant, peer.calls, **found)
        except Exception as error:
            # A peer that is missing or refuses a type is a line, not the end.
            why = f"{impl} {part} {variant}: {type(error).__name__}: {str(error)[:200]}"
            print(f"skipped: {why}")
            refused.append(why)
            if not isinstance(error, ImportError):
                traceback.print_exc()
            torch.cuda.synchronize()
    return refused


def io_of(kernel: Kernel) -> str:
    """The type of the projections."""
    return next(p.dtype for p in kernel.params if p.name in ("qkvz", "qkv", "q"))


def measure_ours(report: Report, kernel: Kernel, step, place: str = "") -> None:
    """Rows of ours, without and with dependent launches. `place` says in their variant how the
    slots of `step` lie unless it is in random order."""
    # What is checked and what the host's time is of: calls with tensors, on the stream
    # that PyTorch has as its current one. What is timed on the GPU: the same launches.
    call = Call(kernel)
    sets = [host.tensors(kernel, step, index) for index in range(len(step.sets))]
    by_call = [lambda t=t: call(*t) for t in sets]
    output = decode.output_of(step)
    errors = decode.step_errors(step, by_call[0], lambda: output, step.states_in_slots)
    found = dict(zip(("error_o", "error_state"), errors, strict=True))
    ours = decode.bindings(kernel, step, dependent=False)
    report.measure("gdn", "step", ours[0].variant + place, decode.calls(ours), by_call, **found)
    dependent = decode.bindings(kernel, step, dependent=True)
    variant = dependent[0].variant + place + " pdl"
    report.measure("gdn", "step", variant, decode.calls(dependent), by_call, **found)


def measure_decode(kernel: Kernel, layer: reference.Layer, heads, rows: int, options) -> list[dict]:
    """Rows of the report for one configuration."""
    params = {param.name: param for param in kernel.params}
    state = params["state_pool"].dtype
    io = io_of(kernel)
    config = {"Hk": heads[0], "Hv": heads[1], "dk": layer.key_dim, "dv": layer.value_dim}
    config |= {"N": rows, "T": 1, "io": io, "state": state, "conv": options.conv_layout}
    step = make_step(kernel, layer, heads, rows, options.conv_layout)
    report = Report(config, 2 * step.state_bytes, options.repeats)
    measure_ours(report, kernel, step)
    measure_ours(report, kernel, step.in_order(), " in order")
    if options.host:
        report.rows += host.rows(kernel, step, config)
    if not options.no_peers:
        measure_peers(report, step, set(options.peers))
    pool = step.pools["state_pool"]
    policy, times = stream.fastest([(pool, slots) for slots in step.slots], options.repeats)
    report.add("stream", "", policy, times)
    side_by_side = [states.view(-1) for states in step.states]
    report.add("stream in order", "", "torch neg_", stream.in_order(side_by_side, options.repeats))
    return report.rows


def sizes_of(entry: str, mode: str, state: str, options, by_hand: dict) -> list[tuple]:
    """Heads, rows and, but for decode, tokens that an entry is measured at."""
    if entry.startswith("decode"):
        return list(product(options.heads, options.rows))
    heads = options.heads[:1] if by_hand else options.heads
    sizes = set(product(heads, options.verify_rows, options.verify_tokens))
    if entry.startswith("verify"):
        found = prototype.verify_sizes(by_hand, mode, state)
        sizes |= {((hk, hv), rows, tokens) for hk, hv, rows, tokens in found}
    return sorted(sizes)


def measure(options) -> dict:
    """The report of decision 9, printed as it grows and written at the end. A configuration
    that fails is named in it and does not end the others."""
    torch.cuda.init()
    torch.zeros(1, device="cuda")
    runtime = Runtime(options.library)
    device = runtime.cuda()
    end = time.monotonic() + options.seconds
    rows, refused, failed, known, options.host = [], [], [], {}, True  # of the first configuration
    by_hand = {}
    if options.prototype_verify:
        by_hand = prototype.verify_times(options.prototype_verify.read_text())
    layers = {}  # of what peers verify, by the types of projections and states
    for path in options.images:
        image = runtime.image(path)
        for entry in image.entries:
            is_decode = entry.startswith("decode")
            if not is_decode and not entry.startswith(verify_ours.ENTRIES):
                continue
            kernel = device.kernel(image, entry)
            layer = reference.Layer.of(image.attributes(entry))
            state = next(p.dtype for p in kernel.params if p.name == "state_pool")
            if is_decode:
                layers[io_of(kernel), state] = layer
            mode = verify_ours.mode_of(kernel)
            for heads, *size in sizes_of(entry, mode, state, options, by_hand):
                if time.monotonic() > end:
                    print(f"left out: {entry}, heads {heads}, {size}", flush=True)
                    continue
                if not is_decode and 0 < layer.max_tokens < size[1]:
                    print(f"{entry}: rows have up to {layer.max_tokens} tokens, not {size[1]}")
                    continue
                try:
                    if is_decode:
                        rows += measure_decode(kernel, layer, heads, *size, options)
                        options.host = False
                    else:
                        rows += verify_ours.measure(
                            device, kernel, layer, heads, *size, options.repeats, known
                        )
                except Exception as error:
                    traceback.print_exc()
                    failed.append(f"{entry}, heads {heads}, {size}: {error}")
    if not options.no_peers:
        for types, layer in layers.items():
            for size in product(options.verify_rows, options.verify_tokens):
                found, why = verify.measure(layer, options.heads[0], *size, *types, options.repeats)
                rows, refused = rows + found, refused + why
    in_place = [row["state_TBps"] for row in rows if row["impl"] == "stream"]
    if options.prototype:
        rows += prototype.rows(options.prototype, rows)
    rows += prototype.verify_rows(by_hand, rows)
    report = describe(options.commit)
    limits.add_limits(rows, limits.copy_tbps(report))
    report["ceilings"]["inplace_TBps"] = max(in_place, default=None)
    report |= {"failed": failed} if failed else {}
    report |= {"refused": sorted(set(refused))} if refused else {}
    report["rows"] = rows
    if options.output:
        save(options.output, report)
    return report
