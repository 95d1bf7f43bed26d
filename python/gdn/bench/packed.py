# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prefill of packed projections beside the peers' own chains of kernels for the same work,
all in this process, in turn on the same inputs. What peers compile, others compile before, in
processes beside each other; Triton then chooses here, alone, among what is compiled."""

import time
import traceback

import torch

from .. import reference
from ..runtime import Image, Pool, Runtime
from . import limits, packed_compile, packed_stages, prologue
from .grid import Case
from .measure import describe, io_of
from .packed_inputs import Problem, exact, make_problem
from .peers.packed import PEERS, flashinfer_ready
from .peers.prefill import PrefillPeer
from .prefill import Measurement, bind_each
from .report import save

# The sets whose results are compared with float64, with the fewest heads, one of them long
# enough for segments. Their times are not those of sets that no cache holds.
CHECKED = ("200+312", "1500+700")
_MOST_ERROR = 0.05
_MOST_TO_COMPILE = 0.7  # of the time that a run has


def bind(kernel, problem: Problem, variant: str | None = None) -> tuple[PrefillPeer, str]:
    """Our kernel bound to each set, in place on copies of the pools, and the variant that it
    takes, or is to take."""
    sets = [problem.arguments(index) for index in range(len(problem.ours))]
    for one in sets:
        one |= {name: one[name].clone() for name in ("conv_pool", "state_pool")}
    bound = bind_each(kernel, map(pools_of, sets), variant)
    calls = [lambda b=b: b.launch(torch.cuda.current_stream()) for b in bound]
    pool = sets[0]["state_pool"]
    return PrefillPeer(calls, lambda: problem.weights["out"], lambda: pool[1:]), bound[0].variant


def pools_of(arguments: dict[str, torch.Tensor]) -> dict:
    """The arguments as an entry takes them."""
    return {
        name: Pool(value) if name.endswith("_pool") else value for name, value in arguments.items()
    }


def dims_of(image: Image) -> tuple[int, int]:
    """Of keys and values of a head."""
    layer = reference.Layer.of(image.attributes(image.entries[0]))
    return layer.key_dim, layer.value_dim


class Run:
    """A report that grows."""

    def __init__(self, options, kernel, impl: str, layer, end: float):
        self.options, self.kernel, self.impl, self.layer = options, kernel, impl, layer
        self.end = end
        self.measurement = Measurement(options, end, "packed", compiled=True)
        self.report: dict = {}
        self.want: dict[Case, tuple] = {}

    def cases(self) -> list[Case]:
        """First those that are checked, so that a run which is cut short has them."""
        dims = (self.layer.key_dim, self.layer.value_dim)
        fewest = min(self.options.heads, key=lambda pair: pair[1])
        pairs = self.options.heads
        cases = [Case(pair, name, dims) for pair in pairs for name in self.options.sets]
        return [*(Case(fewest, name, dims) for name in CHECKED), *cases]

    def measure_case(self, case: Case, peers: list, ours: bool) -> None:
        problem = make_problem(self.kernel, self.layer, case, sets=2 * (case.name in CHECKED))
        config, want = self.config_of(case), None
        if case.name in CHECKED:
            config["part"] = "checked"
            if case not in self.want:
                self.want[case] = exact(problem)
            want = self.want[case]

        def run_ours() -> None:
            made = (self.impl, self.kernel, problem, config, want)
            self.measurement.measure_ours(*made, bind=bind)

        if ours:
            self.measurement.attempt(case, self.impl, run_ours)
        for impl, variant, _, prepare in peers:

            def theirs(impl=impl, variant=variant, prepare=prepare) -> None:
                peer = prepare(problem)
                self.measurement.measure(problem, config, impl, variant, peer, want)

            self.measurement.attempt(case, impl, theirs)

    def measure_stages(self) -> None:
        """Rows of each stage, behind all others, which a profiler might slow."""
        for case in self.cases():
            if case.name in CHECKED or time.monotonic() > self.end:
                continue
            problem = make_problem(self.kernel, self.layer, case)
            config = self.config_of(case)

            def stages(problem=problem, config=config) -> None:
                peer, variant = bind(self.kernel, problem)
                rows = packed_stages.measure(peer.calls, config, self.impl, variant)
                self.measurement.rows += rows

            self.measurement.attempt(case, self.impl, stages)
            torch.cuda.empty_cache()

    def config_of(self, case: Case) -> dict:
        params = {param.name: param for param in self.kernel.params}
        config = case.config(io_of(self.kernel), params["state_pool"].dtype)
        return config | {"gates": "of projections"}

    def is_right(self, impl: str) -> bool:
        """Whether it gave what was to be given of the sets that are checked."""
        rows = [row for row in self.measurement.rows if row["impl"] == impl and "error_o" in row]
        return bool(rows) and all(row["error_o"] < _MOST_ERROR for row in rows)

    def measure_pass(self, peers: list, ours: bool) -> None:
        for case in self.cases():
            # Where FlashInfer's own l2norm does, FLA's before its rule is the same once more.
            if case.name not in CHECKED and self.is_right("flashinfer") and not self.options.peers:
                peers = [peer for peer in peers if peer[0] != "flashinfer-fla-l2norm"]
            names = ([self.impl] if ours else []) + [peer[0] for peer in peers]
            if time.monotonic() > self.end:
                for name in names:
                    self.measurement.leave_out(name, f"{case.heads} {case.name}", "no time left")
                continue
            start = time.monotonic()
            self.measure_case(case, peers, ours)
            torch.cuda.empty_cache()
            self.write()
            print(f"# {case.heads} {case.name}: {time.monotonic() - start:.1f} s", flush=True)

    def write(self) -> None:
        rows = self.measurement.rows
        limits.add_packed_limits(rows, self.report["ceilings"])
        self.report |= {"not_measured": self.measurement.not_measured, "rows": rows}
        if self.options.output:
            save(self.options.output, self.report)


def compile_flashinfer(options) -> None:
    """It keeps what it compiles in the process."""
    for heads in options.heads:
        try:
            packed_compile.call_ready(flashinfer_ready, heads, options.sets)
        except Exception:  # said again when it is measured
            traceback.print_exc()
    torch.cuda.empty_cache()


def measure(options) -> dict:
    """The report, written as it grows."""
    began = time.monotonic()

    def said(what: str) -> None:
        print(f"# {time.monotonic() - began:.1f} s: {what}", flush=True)

    names = [] if options.no_peers else [peer[0] for peer in PEERS]
    names = [name for name in names if not options.peers or name in options.peers]
    runtime = Runtime(options.library)
    image = runtime.image(options.image)
    dims = dims_of(image)
    if dims != packed_compile.DIMS:
        names = [name for name in names if name == "fla"]  # the others have heads of 128 alone
    jobs = packed_compile.jobs(options.heads, options.sets, names, dims)
    compiling = packed_compile.start(jobs, dims)
    try:
        torch.cuda.init()
        torch.zeros(1, device="cuda")
        kernels = prologue.kernels_of(runtime.cuda(), image, variant=None)
        if not kernels:
            raise ValueError(f"{options.image}: no prefill of projections that this device takes")
        impl, kernel, layer = kernels[0]
        run = Run(options, kernel, impl, layer, began + options.seconds)
        peers = run.measurement.importable([peer for peer in PEERS if peer[0] in names])
        said("imported")
        if peers:
            packed_compile.choose_quickly()
        if any(peer[0] == "flashinfer" for peer in peers):
            compile_flashinfer(options)
            said("flashinfer compiled")
        # What is not compiled by then is compiled here, when it is called.
        latest = began + _MOST_TO_COMPILE * options.seconds
        all_done = packed_compile.wait(compiling.get("fla", []), latest)
        said(f"fla {'compiled' if all_done else 'not compiled'}")
        run.report = describe(options.commit)
        for index, wanted in enumerate(packed_compile.PASSES):
            chosen = [peer for peer in peers if peer[0] in wanted]
            for name in set(wanted) & set(compiling) - {"fla"}:
                if not packed_compile.wait(compiling[name], run.end):
                    run.measurement.leave_out(name, "everywhere", "no time was left to compile")
                    chosen = [peer for peer in chosen if peer[0] != name]
                else:
                    said(f"{name} compiled")
            if chosen or index == 0:
                run.measure_pass(chosen, ours=index == 0)
        if options.stages:
            run.measure_stages()
        run.write()
        said("done")
        return run.report
    finally:
        for processes in compiling.values():
            packed_compile.stop(processes)
