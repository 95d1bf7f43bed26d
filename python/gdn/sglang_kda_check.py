# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks the kernels of gdn.integrations.sglang for Kimi Delta Attention with PyTorch, on a GPU or
on the CPU: decode, packed decode and extend on pools as SGLang has them, with both forms of gates,
against float64 and, on a GPU, beside SGLang's own Triton kernels, with times.

    python3 -m gdn.sglang_kda_check --device cuda --json times.json

SGLang is the installed one, or the folder of its wheel on PYTHONPATH.
"""

import argparse
import functools
import json
import sys
from itertools import accumulate
from pathlib import Path

import torch

from .bench.peers.sglang import make_importable, triton_kda_kernel
from .ops_check import Check, milliseconds
from .sglang_check import HV, Batch, D, check_graph, check_steps, graph_of, make_states

BOUND = -5.0


class KdaBatch(Batch):
    """As many key heads as value heads, and gates of channels. A slot below 0 is padding."""

    def __init__(
        self, device: str, lengths: list[int], slots: list[int], bound: float | None = None
    ):
        generator = torch.Generator().manual_seed(0)

        def normal(*sizes):
            return torch.randn(*sizes, generator=generator).to(device, torch.bfloat16)

        tokens = sum(lengths)
        self.starts, self.slots = [0, *accumulate(lengths)], slots
        self.mixed = normal(tokens, 3 * HV * D)
        self.q, self.k, self.v = (x.unflatten(1, (-1, D))[None] for x in self.mixed.chunk(3, 1))
        # In the shapes of its model, whose layers hand decode the raw gates flat.
        self.a, self.b = normal(tokens, HV * D), normal(1, tokens, HV)
        self.A_log = torch.rand(1, 1, HV, 1, generator=generator).to(device)
        self.dt_bias = torch.randn(HV * D, generator=generator).to(device)
        rate = self.A_log.exp().view(HV, 1)
        raw = (self.a.float() + self.dt_bias).view(tokens, HV, D)
        softened = -rate * torch.nn.functional.softplus(raw)
        self.g = softened if bound is None else bound * (rate * raw).sigmoid()
        self.beta = self.b[0].float().sigmoid()
        self.places = {
            "cache_indices": torch.tensor(slots, dtype=torch.int32, device=device),
            "query_start_loc": torch.tensor(self.starts, dtype=torch.int32, device=device),
        }
        self.gates = {"A_log": self.A_log, "dt_bias": self.dt_bias, "lower_bound": bound}
        self.packed = {"scale": D**-0.5, "num_v_heads": HV, "head_v_dim": D}

    def extend(self, kernel, states, **more):
        rows = self.q, self.k, self.v, self.a.view(1, -1, HV, D), self.b
        given = self.gates | self.places | {"beta_is_raw": True, "is_spec_decode": False}
        return kernel.extend(*rows, ssm_states=states, **given, **more)

    def extend_tracked(self, kernel, states):
        chunks = (self.places["query_start_loc"].diff() - 1) // 64
        track = torch.empty(len(self.slots), HV, D, D, device=states.device)
        more = {"track_state": track, "track_chunk_idx": chunks.to(torch.int32)}
        return self.extend(kernel, states, return_intermediate_states=True, **more)[0]


def compare_times(kernels: dict, bound: float | None) -> list[dict]:
    """Milliseconds of a call on the device, from graphs, and of prefill from Python."""
    rows = []
    cases = [(KdaBatch.packed_decode, [1] * count) for count in (1, 64, 256)]
    for lengths in ([1024] * 8, [8192], [1] * 32 + [2048]):
        cases += [(KdaBatch.extend, lengths), (KdaBatch.extend_tracked, lengths)]
    for method, lengths in cases:
        batch = KdaBatch("cuda", lengths, list(range(len(lengths))), bound)
        row = {"call": method.__name__, "sequences": len(lengths), "tokens": sum(lengths)}
        for name, kernel in kernels.items():
            call = functools.partial(method, batch, kernel, make_states("cuda"))
            is_decode = method is KdaBatch.packed_decode
            made = graph_of(call) if is_decode else None  # which keeps what it returns
            row[name] = milliseconds(made[0].replay if made else call)
        rows.append(row | {"bound": bound})
        print(rows[-1], flush=True)
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(prog="sglang_kda_check", description=__doc__)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--json", type=Path, help="a file for checks and times")
    arguments = parser.parse_args()
    make_importable()
    from .integrations.sglang.kda_kernel import KdaKernel

    is_gpu = arguments.device == "cuda"
    theirs = triton_kda_kernel() if is_gpu else None
    ours = KdaKernel(theirs)
    kernels = {"gdn": ours} | ({"sglang": theirs} if is_gpu else {})
    check, times = Check(), []
    with torch.no_grad():
        for bound in (None, BOUND):
            batch_of = functools.partial(KdaBatch, bound=bound)
            for dtype in (torch.float32, torch.bfloat16):
                check_steps(check, arguments.device, kernels, dtype, batch_of)
            if is_gpu:
                check_graph(check, ours, batch_of)
                times += compare_times(kernels, bound)
    # Nothing went to SGLang's kernels instead of ours.
    check.that("no fallback", not ours.reasons, ", ".join(ours.reasons))
    if arguments.json:
        device = torch.cuda.get_device_name() if is_gpu else "cpu"
        record = {"device": device, "failed": check.failed, "milliseconds": times}
        arguments.json.write_text(json.dumps(record, indent=1) + "\n")
    print(f"{check.failed} failed")
    return 1 if check.failed else 0


if __name__ == "__main__":
    sys.exit(main())
