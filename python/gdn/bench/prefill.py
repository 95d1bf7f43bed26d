# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prefill of one pair of heads, ours and the peers', in this process: what
gdn.bench.prefill_run starts for each pair. Writes a part of the report."""

import argparse
import faulthandler
import fcntl
import importlib
import json
import time
import traceback
from pathlib import Path

import torch

from ..runtime import Device, GdnError, Image, Kernel, Pool, Runtime
from . import grid
from .grid import Case
from .peers.prefill import PEERS, PrefillPeer, forget_choices
from .prefill_inputs import Problem, exact, make_problem, relative_error
from .timing import first_call_ms, host_times, time_calls

_HOST_LAUNCHES = 10
# Peers that have not compiled what they need by then are taken to hang.
_MOST_SECONDS_TO_PREPARE = 200


def impl_of(target: str) -> str:
    """What rows of our code are called: that of the chip's own family is `gdn`, that of an
    older one `gdn-sm80` and the like."""
    return "gdn" if target.endswith("a") else "gdn-" + target.replace("_", "")


def kernels_of(device: Device, image: Image, layout: str = "ready") -> list[tuple[str, Kernel]]:
    """Kernels of each entry of prefill of a layout, for each code that the device takes."""
    found = []
    for entry in image.entries:
        if image.attributes(entry).get("layout") != layout or not entry.startswith("prefill"):
            continue
        for index, code in enumerate(image.codes(entry)):
            if any(impl == impl_of(code.target) for impl, _ in found):
                continue  # its machine code came first
            try:
                found.append((impl_of(code.target), device.kernel(image, entry, code=index)))
            except GdnError as error:
                if error.status != "UNSUPPORTED":
                    raise
    return found


def dims_of(kernel: Kernel) -> tuple[int, int]:
    """Of keys and values, for which the kernel was made."""
    last = {param.name: int(param.dims[-1]) for param in kernel.params if param.name in ("q", "v")}
    return last["q"], last["v"]


def bind_each(kernel: Kernel, sets, variant: str | None, device="cuda") -> list:
    """Bindings to each of `sets` of arguments, of the variant that suits them where None is
    named. They share a workspace, which is NaN before."""
    workspace, bound = None, []
    for arguments in sets:
        binding = kernel.bind(**arguments)
        if variant is not None:
            binding.force_variant(variant)
        if binding.workspace_bytes:
            if workspace is None:
                count = binding.workspace_bytes
                workspace = torch.full((count,), 255, dtype=torch.uint8, device=device)
            binding.set_workspace(workspace, stream=torch.cuda.current_stream())
        bound.append(binding)
    return bound


def ready_gates(x) -> dict:
    """Arguments of a kernel for gates of a set."""
    return {"log_decay": x.g, "beta": x.beta}


def bind(
    kernel: Kernel, problem: Problem, variant: str | None = None, gates_of=ready_gates
) -> tuple[PrefillPeer, str]:
    """Our kernel bound to each set, and the variant that it takes. Row i has slot i + 1 of a
    pool, which is updated in place. Output and workspace, which sets share, are NaN before."""
    first, rows = problem.sets[0], len(problem.case.lengths)
    device = first.q.device
    slots = torch.arange(1, rows + 1, dtype=torch.int32, device=device)
    core = torch.full_like(first.v, float("nan"))
    pools = [torch.cat([torch.full_like(x.state[:1], float("nan")), x.state]) for x in problem.sets]
    sets = (
        {
            "q": x.q,
            "k": x.k,
            "v": x.v,
            **gates_of(x),
            "cu_seqlens": problem.bounds,
            "slots": slots,
            "state_pool": Pool(pool),
            "core": core,
        }
        for x, pool in zip(problem.sets, pools, strict=True)
    )
    bound = bind_each(kernel, sets, variant, device)
    calls = [lambda b=b: b.launch(torch.cuda.current_stream()) for b in bound]
    return PrefillPeer(calls, lambda: core, lambda: pools[0][1:]), bound[0].variant


class Measurement:
    """Rows of the report and what is not in it."""

    def __init__(self, options, end: float, suite: str = "prefill", compiled: bool = False):
        self.options, self.end, self.suite = options, end, suite
        self.compiled = compiled  # before: what first calls take says nothing
        self.rows: list[dict] = []
        self.not_measured: list[dict] = []

    def leave_out(self, impl: str, where: str, reason: str) -> None:
        self.not_measured.append({"impl": impl, "where": where, "reason": reason[:300]})
        print(f"not measured: {impl} {where}: {reason[:300]}", flush=True)

    def measure(self, problem: Problem, config: dict, impl: str, variant: str, peer, want) -> None:
        """Times of one implementation, and its errors where `want` has the exact results."""
        row = {"suite": self.suite, "impl": impl, "config": config | {"variant": variant}}
        first = first_call_ms(peer.calls[0])
        if not self.compiled:
            row["first_call_ms"] = first  # with what it compiles
        errors = ""
        if want is not None:
            row["error_o"] = relative_error(peer.output(), want[0])
            row["error_state"] = relative_error(peer.states(), want[1])
            errors = f"{row['error_o']:.1e} {row['error_state']:.1e}"
        row |= time_calls(peer.calls, self.options.repeats)
        row["host_us"] = host_times(peer.calls, _HOST_LAUNCHES)["us"]
        self.rows.append(row)
        print(
            f"{self.suite} {config['Hk']:2},{config['Hv']:2} {config['set']:12} {impl:13}"
            f" {variant:20} {row['us']:9.2f} us {errors}",
            flush=True,
        )

    def attempt(self, case: Case, impl: str, work) -> bool:
        """Runs `work`; what it throws is a line of the report, not the end."""
        try:
            work()
            return True
        except Exception as error:
            self.leave_out(impl, f"{case.heads} {case.name}", f"{type(error).__name__}: {error}")
            traceback.print_exc()
            torch.cuda.synchronize()
            return False

    def measure_ours(
        self, impl: str, kernel: Kernel, problem: Problem, config: dict, want, bind=bind
    ) -> None:
        """Rows of the variant that the sizes call for, of what is taken instead where a row
        has to have the same bits in any batch, and of each variant, if that is wanted. Rows that
        are there for their errors alone are called nothing else."""
        peer, chosen = bind(kernel, problem)
        self.measure(problem, config, impl, chosen, peer, want)
        kernel.batch_invariant = True
        peer, variant = bind(kernel, problem)
        kernel.batch_invariant = False
        if variant != chosen:
            own = {"part": "batch-invariant"} | config
            self.measure(problem, own, impl, variant, peer, want)
        for name in (variant.name for variant in kernel.variants if self.options.variants):
            peer, variant = bind(kernel, problem, name)
            self.measure(problem, {"part": "forced"} | config, impl, variant, peer, want)

    def measure_case(self, case: Case, kernels: list[tuple[str, Kernel]], peers: list) -> None:
        params = {param.name: param for param in kernels[0][1].params}
        io, state = params["q"].dtype, params["state_pool"].dtype
        problem = make_problem(case, io, state)
        config = case.config(io, state)
        # Before anything runs, as ours work in place on copies of the states.
        want = exact(case, problem.sets[0]) if case.name in self.options.checked else None
        for impl, kernel in kernels:

            def ours(impl=impl, kernel=kernel):
                self.measure_ours(impl, kernel, problem, config, want)

            self.attempt(case, impl, ours)
        for impl, variant, _, prepare in peers:

            def theirs(impl=impl, variant=variant, prepare=prepare):
                self.measure(problem, config, impl, variant, prepare(problem), want)

            self.attempt(case, impl, theirs)

    def importable(self, peers: list = PEERS) -> list:
        """Those of `peers` that are wanted and there; the others are named."""
        wanted, found = self.options.peers, []
        for peer in peers:
            impl, module = peer[0], peer[2]
            if self.options.no_peers or (wanted and impl not in wanted):
                continue
            try:
                importlib.import_module(module)
                found.append(peer)
            except Exception as error:  # some fail in their own way where they do not fit
                self.leave_out(impl, "everywhere", f"{type(error).__name__}: {error}")
        return found

    def prepare(self, cases: list[Case], types: tuple[str, str], peers: list) -> None:
        """Calls the peers once for each row, so that all is compiled, and waits for the turn
        of this process to use the GPU alone."""
        faulthandler.dump_traceback_later(_MOST_SECONDS_TO_PREPARE, exit=True)
        for case in cases:
            problem = make_problem(case, *types, sets=1)
            for impl, _, _, prepare in peers:
                start = time.monotonic()
                try:
                    prepare(problem).calls[0]()
                    torch.cuda.synchronize()
                except Exception as error:  # it is a line of the report when it is measured
                    print(f"{impl}: {type(error).__name__}: {str(error)[:200]}", flush=True)
                seconds = time.monotonic() - start
                if seconds > 1:
                    print(f"prepared: {impl} {case.heads} {case.name} {seconds:.1f} s", flush=True)
            del problem
            torch.cuda.empty_cache()
        faulthandler.cancel_dump_traceback_later()
        fcntl.flock(self.options.turn, fcntl.LOCK_EX)
        forget_choices()

    def write(self) -> None:
        """What is measured so far."""
        part = {"rows": self.rows, "not_measured": self.not_measured}
        self.options.part.write_text(json.dumps(part))

    def run(self, cases: list[Case], kernels: list[tuple[str, Kernel]]) -> None:
        peers = self.importable()
        if self.options.turn is not None:
            params = {param.name: param for param in kernels[0][1].params}
            self.prepare(cases, (params["q"].dtype, params["state_pool"].dtype), peers)
        for case in cases:
            if time.monotonic() > self.end:
                self.leave_out("all", f"{case.heads} {case.name}", "no time was left")
                continue
            self.measure_case(case, kernels, peers)
            self.write()
            torch.cuda.empty_cache()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser("gdn.bench.prefill")
    parser.add_argument("image", type=Path)
    parser.add_argument("--part", type=Path, required=True, help="where rows are written")
    parser.add_argument("--heads", required=True)
    parser.add_argument("--sets", nargs="+", required=True)
    parser.add_argument("--checked", nargs="*", default=list(grid.CHECKED))
    parser.add_argument("--library", type=Path)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--peers", nargs="*", default=[])
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--variants", action="store_true")
    parser.add_argument(
        "--turn", type=int, help="descriptor with a shared lock, which is made exclusive to measure"
    )
    options = parser.parse_args(arguments)
    end = time.monotonic() + options.seconds
    keys, values = options.heads.split(",")
    torch.cuda.init()
    torch.zeros(1, device="cuda")
    runtime = Runtime(options.library)
    device = runtime.cuda()
    kernels = kernels_of(device, runtime.image(options.image))
    if not kernels:
        print(f"{options.image}: no prefill from ready queries that this device takes")
        return 1
    measurement = Measurement(options, end, compiled=options.turn is not None)
    try:
        pair = (int(keys), int(values))
        dims = dims_of(kernels[0][1])
        measurement.run([Case(pair, name, dims) for name in options.sets], kernels)
    finally:
        measurement.write()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
