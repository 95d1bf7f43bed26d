# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks the kernels of gdn.integrations.sglang with PyTorch, on a GPU or on the CPU: decode,
packed decode, extend and verify on pools as SGLang has them, against float64 and, on a GPU, beside
SGLang's own Triton kernels, with times.

    python3 -m gdn.sglang_check --device cuda --json times.json

With `--slots` pools of gdn_deferred and of the other forms are checked, too. SGLang is the
installed one, or the folder of its wheel on PYTHONPATH.
"""

import argparse
import copy
import functools
import json
import sys
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path

import torch

from .bench.peers.sglang import make_importable, triton_kernel
from .ops_check import Check, milliseconds, recurrence

H, HV, D = 16, 32, 128
SLOTS, STEPS = 300, 4
LIMIT = 8e-3  # of float64, with inputs of bf16


class Batch:
    """Tokens of sequences of these lengths, on slots of a pool. A slot below 0 is padding."""

    def __init__(self, device: str, lengths: list[int], slots: list[int], seed: int = 0):
        generator = torch.Generator().manual_seed(seed)

        def normal(*sizes):
            return torch.randn(*sizes, generator=generator).to(device, torch.bfloat16)

        tokens = sum(lengths)
        self.starts = [0, *accumulate(lengths)]
        self.slots = slots
        self.mixed = normal(tokens, 2 * H * D + HV * D)
        parts = self.mixed.split([H * D, H * D, HV * D], 1)
        # As SGLang hands them over: views of one row.
        self.q, self.k, self.v = (x.unflatten(1, (-1, D))[None] for x in parts)
        self.a, self.b = normal(tokens, HV), normal(tokens, HV)
        self.A_log = torch.rand(HV, generator=generator).to(device)
        self.dt_bias = torch.randn(HV, generator=generator).to(device)
        self.g = -self.A_log.exp() * torch.nn.functional.softplus(self.a.float() + self.dt_bias)
        self.beta = self.b.float().sigmoid()
        self.places = {
            "cache_indices": torch.tensor(slots, dtype=torch.int32, device=device),
            "query_start_loc": torch.tensor(self.starts, dtype=torch.int32, device=device),
        }
        self.gates = {"A_log": self.A_log, "dt_bias": self.dt_bias}
        self.packed = {"scale": D**-0.5, "num_v_heads": HV, "head_v_dim": D}

    def expected(self, states: torch.Tensor):
        """Outputs [T, HV, V], and states after the last tokens [N, HV, V, K], in float64."""

        def unit(x):
            x = x.double()
            return x / (x.square().sum(-1, keepdim=True) + 1e-6).sqrt()

        given = {"q": unit(self.q), "k": unit(self.k), "v": self.v}
        given |= {"g": self.g[None], "beta": self.beta[None]}
        before = states[self.slots].mT
        out, after = recurrence(given, self.starts, before, D**-0.5)
        return out[0], after.mT

    def state_after(self, states: torch.Tensor, sequence: int, tokens: int) -> torch.Tensor:
        """Of a sequence after so many of its tokens, in float64."""
        part, first = copy.copy(self), self.starts[sequence]
        part.starts, part.slots = [first, first + tokens], self.slots[sequence : sequence + 1]
        return part.expected(states)[1][0]

    def inputs(self) -> tuple[torch.Tensor, ...]:
        """What a graph of a step reads."""
        return self.mixed, self.a, self.b, self.A_log, self.dt_bias

    # Calls, as SGLang's dispatcher makes them.

    def decode(self, kernel, states):
        rows = self.q, self.k, self.v, self.a, self.b
        return kernel.decode(*rows, ssm_states=states, **self.gates, **self.places)

    def packed_decode(self, kernel, states):
        places = {"ssm_states": states, "cache_indices": self.places["cache_indices"]}
        given = self.gates | places | self.packed
        return kernel.packed_decode(self.mixed, self.a, self.b, **given)

    def extend(self, kernel, states):
        rows = self.q, self.k, self.v, self.g[None], self.beta[None]
        return kernel.extend(*rows, ssm_states=states, **self.places)[0]

    def tracked(self) -> dict[str, torch.Tensor]:
        """Arguments that ask for the state of each sequence before its last chunk."""
        shape, lengths = (len(self.slots), HV, D, D), self.places["query_start_loc"].diff()
        self.track_state = torch.full(shape, torch.nan, device=lengths.device)
        chunks = ((lengths - 1) // 64).to(torch.int32)
        return {"track_state": self.track_state, "track_chunk_idx": chunks}

    def extend_tracked(self, kernel, states):
        """With states for the prefix cache."""
        rows = self.q, self.k, self.v, self.g[None], self.beta[None]
        return kernel.extend(*rows, ssm_states=states, **self.places, **self.tracked())[0]

    def target_verify(self, kernel, states, buffer, rows):
        return kernel.target_verify(
            **self.gates,
            q=self.q,
            k=self.k,
            v=self.v,
            a=self.a,
            b=self.b,
            ssm_states=states,
            intermediate_states_buffer=buffer,
            intermediate_state_indices=rows,
            cache_steps=STEPS,
            retrieve_parent_token=None,
            **self.places,
        )


@functools.cache
def _drawn_states(device: str) -> torch.Tensor:
    generator = torch.Generator().manual_seed(9)
    return torch.randn(SLOTS, HV, D, D, generator=generator).to(device)


def make_states(device: str, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """New ones with the same numbers, which take seconds to draw."""
    return _drawn_states(device).to(dtype, copy=True)


def check_steps(
    check: Check, device: str, kernels: dict, dtype: torch.dtype, batch_of: Callable = Batch
) -> None:
    """Steps in place: outputs, states of the batch, and all other slots. SGLang's kernels get no
    sequence without tokens: those of prefill leave it out, and mix up the ones behind it."""
    cases = {
        "decode": ([1] * 5, [7, -1, 0, 250, 3]),
        "packed_decode": ([1] * 5, [7, -1, 0, 250, 3]),
        "extend": ([130, 0, 64, 7], [2, 9, 11, 40]),
        "extend_tracked": ([130, 0, 65, 7], [2, 9, 11, 40]),
    }
    for (method, rows), (name, kernel) in product(cases, kernels):
        if name != "gdn":
            rows = zip(*(row for row in zip(*rows, strict=True) if row[0]), strict=True)
        lengths, slots = map(list, rows)
        batch = batch_of(device, lengths, slots)
        states = make_states(device, dtype)
        before = states.clone()
        want, after = batch.expected(before)
        out = getattr(batch, method)(kernel, states)[0]
        live = [n for n, slot in enumerate(batch.slots) if slot >= 0]
        tokens = [t for n in live for t in range(batch.starts[n], batch.starts[n + 1])]
        own = [batch.slots[n] for n in live]
        # Kernels of SGLang round between stages, so they are shown, and ours have a limit.
        limit = LIMIT if name == "gdn" else None
        pairs = [(out[tokens], want[tokens]), (states[own], after[live])]
        keeps = name == "gdn" or getattr(kernel, "supports_track_state_snapshot", False)
        if method == "extend_tracked" and keeps:
            cuts = [(n, (length - 1) // 64 * 64) for n, length in enumerate(lengths)]
            kept = [batch.state_after(before, *cut) for cut in cuts if cut[1] >= 0]
            found = batch.track_state[[n for n, tokens in cuts if tokens >= 0]]
            pairs.append((found, torch.stack(kept)))
        check.close(f"{method}, {name}, states of {dtype}", limit, *pairs)
        if name == "gdn":
            rest = [slot for slot in range(SLOTS) if slot not in own]
            check.that("other slots", torch.equal(states[rest], before[rest]))
            padding = [t for t in range(len(want)) if t not in tokens]
            check.that("padding is zero", not out[padding].any())


def product(cases: dict, kernels: dict):
    return [(case, kernel) for case in cases.items() for kernel in kernels.items()]


def check_verify(check: Check, device: str, kernels: dict, batch_of: Callable = Batch) -> None:
    """Drafts: the state after each token in the buffer, the pool as it was."""
    batch = batch_of(device, [STEPS] * 3, [7, -1, 250])
    rows = torch.tensor([1, 0, 3], dtype=torch.int32, device=device)
    for name, kernel in kernels.items():
        states = make_states(device)
        before = states.clone()
        want, _ = batch.expected(before)
        buffer = torch.full((4, STEPS, HV, D, D), -7.0, device=device)
        out = batch.target_verify(kernel, states, buffer, rows)[0]
        kept = [batch.state_after(before, n, t + 1) for n in (0, 2) for t in range(STEPS)]
        tokens = [*range(STEPS), *range(2 * STEPS, 3 * STEPS)]
        found = buffer[[1, 3]].flatten(0, 1)
        limit = LIMIT if name == "gdn" else None
        pairs = (out[tokens], want[tokens]), (found, torch.stack(kept))
        check.close(f"target_verify, {name}", limit, *pairs)
        check.that("states are only read", torch.equal(states, before))


def graph_of(run, warm: bool = True):
    """A CUDA graph of a call that has run before, here if `warm`."""
    if warm:
        run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = run()
    return graph, out


def check_graph(check: Check, kernel, batch_of: Callable = Batch) -> None:
    """A graph of decode, replayed for other slots."""
    batch, states = batch_of("cuda", [1] * 5, [7, 1, 0, 250, 3]), make_states("cuda")
    graph, found = graph_of(lambda: batch.packed_decode(kernel, states))
    batch.places["cache_indices"].copy_(torch.tensor([9, -1, 4, 2, 5]))
    before = states.clone()
    want = batch.packed_decode(kernel, states).clone()
    after = states.clone()
    states.copy_(before)
    graph.replay()
    torch.cuda.synchronize()
    check.that("CUDA graph", torch.equal(found, want) and torch.equal(states, after))


def compare_times(kernels: dict, batch_of: Callable = Batch, **facts) -> list[dict]:
    """Milliseconds of a call on the device, from graphs, and of prefill from Python. Rows have
    these facts, too."""
    cases = [("packed_decode", [1] * count) for count in (1, 64, 256)]
    for lengths in ([1024] * 8, [8192], [1] * 32 + [2048]):
        cases += [("extend", lengths), ("extend_tracked", lengths)]
    cases += [("target_verify", [STEPS] * count) for count in (1, 16, 64)]
    rows = []
    for method, lengths in cases:
        count = len(lengths)
        batch, more = batch_of("cuda", lengths, list(range(count))), ()
        if method == "target_verify":
            buffer = torch.empty(count, STEPS, HV, D, D, device="cuda")
            more = buffer, torch.arange(count, dtype=torch.int32, device="cuda")
        row = {"call": method, "sequences": count, "tokens": sum(lengths)}
        for name, kernel in kernels.items():
            call = functools.partial(getattr(batch, method), kernel, make_states("cuda"), *more)
            # Which keeps what it returns.
            made = None if method.startswith("extend") else graph_of(call)
            row[name] = milliseconds(made[0].replay if made else call)
        rows.append(row | facts)
        print(rows[-1], flush=True)
    return rows


def run_checks(
    parser: argparse.ArgumentParser, make_theirs: Callable, make_ours: Callable, run: Callable
) -> int:
    """Main of checks: run(check, device, kernels, arguments) gives times. `make_ours` takes
    SGLang's own kernel, which a GPU alone has."""
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--json", type=Path, help="a file for checks and times")
    arguments = parser.parse_args()
    make_importable()
    is_gpu = arguments.device == "cuda"
    theirs = make_theirs() if is_gpu else None
    ours = make_ours(theirs)
    kernels = {"gdn": ours} | ({"sglang": theirs} if is_gpu else {})
    check = Check()
    with torch.no_grad():
        times = run(check, arguments.device, kernels, arguments)
    # Nothing went to SGLang's kernels instead of ours.
    check.that("no fallback", not ours.reasons, ", ".join(ours.reasons))
    if arguments.json:
        device = torch.cuda.get_device_name() if is_gpu else "cpu"
        record = {"device": device, "failed": check.failed, "milliseconds": times}
        arguments.json.write_text(json.dumps(record, indent=1) + "\n")
    print(f"{check.failed} failed")
    return 1 if check.failed else 0


def _make_kernel(theirs):
    from .integrations.sglang.kernel import GdnKernel

    return GdnKernel(theirs)


def _run(check: Check, device: str, kernels: dict, arguments: argparse.Namespace) -> list[dict]:
    from .sglang_slots_check import check_slots, time_slots

    times = []
    for dtype in (torch.float32, torch.bfloat16):
        check_steps(check, device, kernels, dtype)
    check_verify(check, device, kernels)
    if device == "cuda":
        check_graph(check, kernels["gdn"])
        times = compare_times(kernels)
    if arguments.slots:
        tools = {"sizes": (H, HV, D), "graph_of": graph_of}
        tools["batch_of"] = functools.partial(Batch, device)
        check_slots(check, device, **tools)
        times += time_slots(**tools) if device == "cuda" else []
    return times


def main() -> int:
    parser = argparse.ArgumentParser(prog="sglang_check", description=__doc__)
    parser.add_argument(
        "--slots", action="store_true", help="also gdn_deferred and the other forms, with decode"
    )
    return run_checks(parser, triton_kernel, _make_kernel, _run)


if __name__ == "__main__":
    sys.exit(main())
