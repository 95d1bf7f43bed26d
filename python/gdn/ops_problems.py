# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Inputs of checks of gdn.ops, the recurrence in float64, and a count of what holds."""

from itertools import pairwise

import torch

# Of float64, by the type of inputs.
LIMITS = {torch.float32: 2e-5, torch.bfloat16: 8e-3, torch.float16: 2e-3}


class Check:
    """Counts what holds."""

    def __init__(self):
        self.failed = 0

    def that(self, name: str, holds: bool, detail: str = "") -> None:
        self.failed += not holds
        print(f"{'ok' if holds else 'FAILED':7} {name} {detail}", flush=True)

    def close(self, name: str, limit: float | None, *pairs, detail: str = "") -> None:
        """What is got and what is wanted, in pairs. Without a limit errors are shown alone."""
        errors = [error_of(got, want) for got, want in pairs]
        text = " ".join(f"{error:.1e}" for error in errors)
        # Each by itself: max() may pass over what is not a number.
        holds = limit is None or all(error < limit for error in errors)
        self.that(name, holds, f"errors {text}{detail}")


def draw(shape, device, dtype=torch.bfloat16, *, per_channel=False, seed=0) -> dict:
    """q, k of unit length, v, g and beta; `shape` is B, T, H, HV, K, V."""
    batch, tokens, heads, value_heads, key_dim, value_dim = shape
    generator = torch.Generator().manual_seed(seed)

    def normal(*sizes):
        return torch.randn(*sizes, generator=generator)

    q, k = (
        torch.nn.functional.normalize(normal(batch, tokens, heads, key_dim), dim=-1)
        for _ in range(2)
    )
    decays = (batch, tokens, value_heads) + ((key_dim,) if per_channel else ())
    given = {
        "q": q.to(dtype),
        "k": k.to(dtype),
        "v": normal(batch, tokens, value_heads, value_dim).to(dtype),
        "g": -0.1 * normal(*decays).abs(),
        "beta": normal(batch, tokens, value_heads).sigmoid().to(dtype),
    }
    return {name: x.to(device) for name, x in given.items()}


def recurrence(given: dict, starts, states: torch.Tensor | None, scale: float):
    """Outputs and last states [N, HV, K, V] in float64, sequence by sequence."""
    flat = {name: x.double().cpu().flatten(0, 1) for name, x in given.items()}
    repeat = flat["v"].shape[1] // flat["q"].shape[1]
    q, k = (flat[name].repeat_interleave(repeat, 1) for name in ("q", "k"))
    decay = flat["g"].exp()
    out, last = torch.zeros_like(flat["v"]), []
    for n, (first, behind) in enumerate(pairwise(starts)):
        state = torch.zeros(q.shape[1], q.shape[2], out.shape[2], dtype=torch.float64)
        if states is not None:
            state = states[n].double().cpu()
        for t in range(first, behind):
            state = state * (decay[t][..., None] if decay.dim() == 3 else decay[t][:, None, None])
            error = flat["v"][t] - torch.einsum("hkv,hk->hv", state, k[t])
            state = state + torch.einsum("hk,hv->hkv", k[t], flat["beta"][t][:, None] * error)
            out[t] = scale * torch.einsum("hkv,hk->hv", state, q[t])
        last.append(state)
    return out.reshape(given["v"].shape), torch.stack(last)


def error_of(got: torch.Tensor, want: torch.Tensor) -> float:
    got = got.double().cpu()
    return float(((got - want).square().sum() / want.square().sum().clamp_min(1e-30)).sqrt())
