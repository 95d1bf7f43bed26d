# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The arguments of a prefill from ready queries and keys, and what it gives in float64."""

from dataclasses import dataclass

import torch

from .grid import Case
from .inputs import TORCH
from .timing import number_of_sets

_MOST_BYTES = 48 << 30


@dataclass
class Tokens:
    """One set: every launch of a set finds its inputs out of the cache."""

    q: torch.Tensor  # [T, Hk, dk], of unit length
    k: torch.Tensor
    v: torch.Tensor  # [T, Hv, dv]
    g: torch.Tensor  # [T, Hv], or by channel [T, Hv, dk]: log decay, f32
    beta: torch.Tensor
    state: torch.Tensor  # [N, Hv, dv, dk], values by keys, as it was before


@dataclass
class Problem:
    """The sets of one row of the grid, and the bounds of its rows [N + 1]."""

    case: Case
    bounds: torch.Tensor
    sets: list[Tokens]


def make_tokens(case: Case, io: str, state: str, device: str, generator) -> Tokens:
    """As the grid's authors make them: random directions, gates of log sigmoid / 16 and
    none for a quarter of the heads, states of a normal distribution."""
    (keys, values), (dk, dv), tokens = case.heads, case.dims, sum(case.lengths)

    def normal(*shape: int, dtype: str = "float32") -> torch.Tensor:
        return torch.randn(shape, generator=generator, device=device, dtype=TORCH[dtype])

    def unit(*shape: int) -> torch.Tensor:
        return torch.nn.functional.normalize(normal(*shape), dim=-1).to(TORCH[io])

    g = torch.nn.functional.logsigmoid(normal(tokens, values)) / 16
    g[:, torch.randperm(values, generator=generator, device=device)[: values // 4]] = 0
    return Tokens(
        unit(tokens, keys, dk),
        unit(tokens, keys, dk),
        normal(tokens, values, dv, dtype=io),
        g,
        torch.sigmoid(normal(tokens, values)),
        normal(len(case.lengths), values, dv, dk, dtype=state),
    )


def set_bytes(case: Case) -> int:
    """About the bytes of a set: what 16 bits per element of q, k, v and o and f32 states
    take."""
    (keys, values), (dk, dv) = case.heads, case.dims
    tokens = sum(case.lengths) * (2 * keys * dk + 2 * values * dv) * 2
    return tokens + len(case.lengths) * values * dv * dk * 4


def make_problem(case: Case, io: str, state: str, device: str = "cuda", sets: int = 0) -> Problem:
    """Fresh inputs; `sets` 0 means as many as no cache holds."""
    generator = torch.Generator(device).manual_seed(1)
    size = set_bytes(case)
    count = sets or max(1, min(number_of_sets(size), _MOST_BYTES // size))
    ends = torch.cumsum(torch.tensor([0, *case.lengths]), 0)
    bounds = ends.to(device=device, dtype=torch.int32)
    made = [make_tokens(case, io, state, device, generator) for _ in range(count)]
    return Problem(case, bounds, made)


def exact(case: Case, x: Tokens) -> tuple[torch.Tensor, torch.Tensor]:
    """Outputs [T, Hv, dv] and states after the last token [N, Hv, dv, dk] of the recurrence in
    float64, token after token, all rows at the same time."""
    each = case.heads[1] // case.heads[0]
    q, k, v, beta = (value.double() for value in (x.q, x.k, x.v, x.beta))
    decay, state = x.g.double().exp(), x.state.double()
    output, device = torch.empty_like(v), v.device
    starts = torch.cumsum(torch.tensor([0, *case.lengths[:-1]]), 0).to(device)
    lengths = torch.tensor(case.lengths, device=device)
    done = 0
    for end in sorted(set(case.lengths)):
        live = (lengths >= end).nonzero()[:, 0]  # all rows that have these tokens
        now, at = state[live], starts[live] + done
        for _ in range(done, end):
            key = k[at].repeat_interleave(each, 1)[..., None]
            query = q[at].repeat_interleave(each, 1)[..., None]
            faded = decay[at][..., None]
            now = now * (faded.transpose(2, 3) if faded.dim() == 4 else faded[..., None])
            wrong = v[at][..., None] - now @ key
            now = now + (beta[at][:, :, None, None] * wrong) @ key.transpose(2, 3)
            output[at] = (now @ query)[..., 0] * case.dims[0] ** -0.5
            at = at + 1
        state[live], done = now, end
    return output, state


def relative_error(got: torch.Tensor, want: torch.Tensor) -> float:
    """Relative RMSE; infinite where a result is not finite."""
    got = got.double().view_as(want)
    if not torch.isfinite(got).all():
        return float("inf")
    return float((got - want).norm() / want.norm())
