# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks the kernels of gdn.integrations.sglang for Kimi Delta Attention with PyTorch, on a GPU or
on the CPU: decode, packed decode, extend and verify on pools as SGLang has them, with both forms of
gates, against float64 and, on a GPU, beside SGLang's own Triton kernels, with times.

    python3 -m gdn.sglang_kda_check --device cuda --json times.json

SGLang is the installed one, or the folder of its wheel on PYTHONPATH.
"""

import argparse
import functools
import sys
from itertools import accumulate

import torch

from .bench.peers.sglang import triton_kda_kernel
from .ops_check import Check
from .sglang_check import (
    HV,
    Batch,
    D,
    check_graph,
    check_steps,
    check_verify,
    compare_times,
    run_checks,
)

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
        return self.extend(kernel, states, return_intermediate_states=True, **self.tracked())[0]


def _make_kernel(theirs):
    from .integrations.sglang.kda_kernel import KdaKernel

    return KdaKernel(theirs)


def _run(check: Check, device: str, kernels: dict, _arguments) -> list[dict]:
    times = []
    for bound in (None, BOUND):
        batch_of = functools.partial(KdaBatch, bound=bound)
        for dtype in (torch.float32, torch.bfloat16):
            check_steps(check, device, kernels, dtype, batch_of)
        check_verify(check, device, kernels, batch_of)
        if device == "cuda":
            check_graph(check, kernels["gdn"], batch_of)
            times += compare_times(kernels, batch_of, bound=bound)
    return times


def main() -> int:
    parser = argparse.ArgumentParser(prog="sglang_kda_check", description=__doc__)
    return run_checks(parser, triton_kda_kernel, _make_kernel, _run)


if __name__ == "__main__":
    sys.exit(main())
