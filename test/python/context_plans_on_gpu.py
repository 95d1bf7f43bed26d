# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans of sequences over ranks, threads with tensors of one GPU, against float64, by hand where
there are a GPU and PyTorch: `context_plans_on_gpu.py [CASES]` prints the largest errors of each
kind of heads, of outputs of a call and of states of a head."""

import json
import sys

import context_cases
import ml_dtypes
import numpy as np
import torch

# Head sizes [dk, dv] and whether each channel has a decay.
KINDS = ((128, 128, False), (64, 64, True), (128, 128, True))


def on_gpu(array: np.ndarray) -> torch.Tensor:
    if array.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(array.view(np.int16)).cuda().view(torch.bfloat16)
    return torch.from_numpy(array).cuda()


def planned(case: context_cases.Case, segments: int):
    """Outputs of the whole call and the pool of each rank; a second call has the same bits."""
    pools = [on_gpu(case.states) for _ in case.lengths]
    names = ("has_initial", "write_slots", "null_slot", "checkpoints")
    places = {name: case.options[name] for name in names}

    def work(rank, ranks):
        own = {name: on_gpu(case.given[name][case.rows(rank)]) for name in context_cases.TOKENS}
        starts = np.cumsum([0, *case.lengths[rank]])
        plan = ranks.plan(own["v"], pools[rank], case.slots, starts, segments=segments, **places)
        first = plan.delta_prefill(**own, states=pools[rank])
        after = pools[rank].clone()
        pools[rank].copy_(on_gpu(case.states))
        out = plan.delta_prefill(**own, states=pools[rank])
        assert torch.equal(out, first) and torch.equal(pools[rank], after), "other bits"
        return out.float().cpu().numpy()

    out = np.full(case.given["v"].shape, np.nan, np.float32)
    for rank, result in enumerate(case.per_rank(work, 120.0)):
        if isinstance(result, Exception):
            raise result
        out[case.rows(rank)] = result
    return out, [pool.cpu().numpy() for pool in pools]


def error_of(got: np.ndarray, want: np.ndarray) -> float:
    return float(np.linalg.norm(got - want) / max(np.linalg.norm(want), 1e-6))


def check(kind: tuple[int, int, bool], cases: int) -> dict:
    worst = {"outputs": 0.0, "states": 0.0, "ranks": 0}
    for seed in range(cases):
        case = context_cases.draw(seed, ml_dtypes.bfloat16, [kind])
        want, after = case.expected()
        out, pools = planned(case, 1 + seed % 4)
        errors = [error_of(out, want)]
        written = np.any(after != case.states, axis=(1, 2, 3))
        assert (pools[0][~written] == case.states[~written]).all(), f"other slots, seed {seed}"
        for pool in pools[1:]:
            assert (pool == pools[0]).all(), f"pools, seed {seed}"
        for slot in np.flatnonzero(written):
            errors += [error_of(*pair) for pair in zip(pools[0][slot], after[slot], strict=True)]
        # A NaN stays: no comparison with it is true.
        for name, error in (("outputs", errors[0]), ("states", max([0.0, *errors[1:]]))):
            worst[name] = error if not error <= worst[name] else worst[name]
        worst["ranks"] += len(case.lengths)
        assert worst["outputs"] < 6e-3 and worst["states"] < 2e-3, (seed, errors)
    return worst


if __name__ == "__main__":
    torch.zeros(1, device="cuda")
    for kind in KINDS:
        print(kind, json.dumps(check(kind, int(sys.argv[1]) if len(sys.argv) > 1 else 25)))
