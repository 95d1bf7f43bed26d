# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prefill of packed projections beside the peers' own chains of kernels for the same work,
all in this process, in turn on the same inputs. What peers compile, others compile before, in
processes beside each other; Triton then chooses here, alone, among what is compiled."""

import time
import traceback

import torch

from ..runtime import Pool, Runtime
from . import limits, packed_compile, prologue
from .grid import Case
from .measure import describe, io_of
from .packed_inputs import Problem, exact, make_problem
from .peers.packed import PEERS, flashinfer_ready
from .peers.prefill import PrefillPeer
from .prefill import Measurement, bind_each
from .report import save

# The set whose results are compared with float64, with the fewest heads. Its times are not
# those of sets that no cache holds.
CHECKED = "200+312"
_MOST_ERROR = 0.05
_MOST_TO_COMPILE = 0.7  # of the time that a run has


def bind(kernel, problem: Problem) -> tuple[PrefillPeer, str]:
    """Our kernel bound to each set, in place, and the variant that it takes."""
    sets = (problem.arguments(index) for index in range(len(problem.ours)))
    bound = bind_each(kernel, map(pools_of, sets), None)
    calls = [lambda b=b: b.launch(torch.cuda.current_stream()) for b in bound]
    pool = problem.ours[0]["state_pool"]
    return PrefillPeer(calls, lambda: problem.weights["out"], lambda: pool[1:]), bound[0].variant


def pools_of(arguments: dict[str, torch.Tensor]) -> dict:
    """The arguments as an entry takes them."""
    return {
        name: Pool(value) if name.endswith("_pool") else value for name, value in arguments.items()
    }


class Run:
    """A report that grows."""

    def __init__(self, options, kernel, impl: str, layer, end: float):
        self.options, self.kernel, self.impl, self.layer = options, kernel, impl, layer
        self.end = end
        self.measurement = Measurement(options, end, "packed", compiled=True)
        self.report: dict = {}
        self.want: dict[Case, tuple] = {}

    def cases(self) -> list[Case]:
        """First the one that is checked, so that a run which is cut short has it."""
        fewest = min(self.options.heads, key=lambda pair: pair[1])
        cases = [Case(pair, name) for pair in self.options.heads for name in self.options.sets]
        return [Case(fewest, CHECKED), *cases]

    def measure_case(self, case: Case, peers: list, ours: bool) -> None:
        problem = make_problem(self.kernel, self.layer, case, sets=2 if case.name == CHECKED else 0)
        params = {param.name: param for param in self.kernel.params}
        config = case.config(io_of(self.kernel), params["state_pool"].dtype)
        config |= {"gates": "of projections"}
        want = None
        if case.name == CHECKED:
            config["part"] = "checked"
            if case not in self.want:
                self.want[case] = exact(problem)
            want = self.want[case]

        def run_ours() -> None:
            peer, variant = bind(self.kernel, problem)
            self.measurement.measure(problem, config, self.impl, variant, peer, want)

        if ours:
            self.measurement.attempt(case, self.impl, run_ours)
        for impl, variant, _, prepare in peers:

            def theirs(impl=impl, variant=variant, prepare=prepare) -> None:
                peer = prepare(problem)
                self.measurement.measure(problem, config, impl, variant, peer, want)

            self.measurement.attempt(case, impl, theirs)

    def is_right(self, impl: str) -> bool:
        """Whether it gave what was to be given of the set that is checked."""
        rows = [row for row in self.measurement.rows if row["impl"] == impl]
        return any(row.get("error_o", 1.0) < _MOST_ERROR for row in rows)

    def measure_pass(self, peers: list, ours: bool) -> None:
        for case in self.cases():
            # Where FlashInfer's own l2norm does, FLA's before its rule is the same once more.
            if case.name != CHECKED and self.is_right("flashinfer") and not self.options.peers:
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
    compiling = packed_compile.start(packed_compile.jobs(options.heads, options.sets, names))
    try:
        torch.cuda.init()
        torch.zeros(1, device="cuda")
        runtime = Runtime(options.library)
        kernels = prologue.kernels_of(runtime.cuda(), runtime.image(options.image))
        if not kernels:
            raise ValueError(f"{options.image}: no prefill of projections that this device takes")
        impl, kernel, layer = kernels[0]
        run = Run(options, kernel, impl, layer, began + options.seconds)
        peers = run.measurement.importable(PEERS)
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
        run.write()
        said("done")
        return run.report
    finally:
        for processes in compiling.values():
            packed_compile.stop(processes)
