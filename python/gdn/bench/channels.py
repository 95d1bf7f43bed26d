# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prefill with a decay per channel (KDA) from ready inputs, ours and the peers', with three
kinds of gates. `python -m gdn.bench.channels IMAGE` writes one report."""

import argparse
import time
from pathlib import Path

import torch

from ..runtime import Runtime
from . import limits
from .channel_inputs import GATES, make_channel_problem
from .channel_tables import GATES_INSIDE
from .grid import Case
from .measure import describe, parse
from .peers.channels import PEERS
from .prefill import Measurement, bind, dims_of, kernels_of
from .prefill_inputs import exact
from .report import save

# By heads; those of one layer on one to eight GPUs.
SETS = {
    12: ("1x2048",),
    32: ("1x8192", "1024x8", "8192x4", "1x32768"),
    64: ("1x8192", "1024x8", "8192x4", "1x32768"),
}


def raw_gates(x) -> dict:
    """Arguments of a kernel for what gates of a set are made of."""
    return {"b": x.logits, "a": x.gates.raw, "A_log": x.gates.A_log, "dt_bias": x.gates.dt_bias}


class ChannelMeasurement(Measurement):
    """Rows of one pair of heads after the other."""

    def measure_gates(self, case: Case, gates: str, kernels, raw, peers) -> None:
        """Of `kernels` from ready inputs, and of `raw` with gates and norms inside."""
        params = {param.name: param for param in kernels[0][1].params}
        io, state = params["q"].dtype, params["state_pool"].dtype
        problem = make_channel_problem(case, io, state, gates)
        config = case.config(io, state) | {"gates": gates, "decay": "channel"}
        want = exact(case, problem.sets[0]) if case.name in self.options.checked else None
        for impl, kernel in kernels:
            self.attempt(
                case,
                impl,
                lambda impl=impl, kernel=kernel: self.measure_ours(
                    impl, kernel, problem, config, want
                ),
            )
        for impl, kernel in raw:

            def ours(impl=impl, kernel=kernel):
                peer, variant = bind(kernel, problem, gates_of=raw_gates)
                self.measure(problem, config | {"part": GATES_INSIDE}, impl, variant, peer, want)

            self.attempt(case, impl, ours)
        for impl, variant, _, prepare in peers:
            self.attempt(
                case,
                impl,
                lambda impl=impl, variant=variant, prepare=prepare: self.measure(
                    problem, config, impl, variant, prepare(problem), want
                ),
            )


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("gdn.bench.channels", description=__doc__)
    parser.add_argument("image", type=Path)
    parser.add_argument(
        "--gated",
        type=Path,
        help="an image of the layout gated with a decay bound of -5 and norms of queries and keys",
    )
    parser.add_argument("--heads", nargs="+", type=int, default=list(SETS))
    parser.add_argument("--sets", nargs="*", default=[], help="default: those of the heads")
    parser.add_argument("--gates", nargs="+", choices=list(GATES), default=list(GATES))
    parser.add_argument("--checked", nargs="*", default=["1x8192", "1024x8", "1x2048"])
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--peers", nargs="*", default=[])
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--variants", action="store_true")
    return parse(parser)


def main() -> int:
    options = parse_arguments()
    if options.output is None:
        raise SystemExit("--output: expected a file")
    end = time.monotonic() + options.seconds
    report = describe(options.commit) | {"rows": [], "not_measured": []}
    library = Runtime(options.library)
    kernels = kernels_of(library.cuda(), library.image(options.image))
    if not kernels:
        print(f"{options.image}: no prefill from ready inputs that this device takes")
        return 1
    raw = []
    if options.gated:
        raw = kernels_of(library.cuda(), library.image(options.gated), "gated")
    measurement = ChannelMeasurement(options, end, "prefill-channels")
    report["rows"], report["not_measured"] = measurement.rows, measurement.not_measured
    peers = measurement.importable(PEERS)
    for heads in options.heads:
        for name in options.sets or SETS[heads]:
            for gates in options.gates:
                case = Case((heads, heads), name, dims_of(kernels[0][1]))
                if time.monotonic() > end:
                    measurement.leave_out("all", f"{heads} {name} {gates}", "no time was left")
                    continue
                measurement.measure_gates(case, gates, kernels, raw, peers)
                torch.cuda.empty_cache()
                limits.add_channel_limits(report["rows"], report["ceilings"])
                save(options.output, report)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
