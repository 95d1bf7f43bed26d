# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Inputs of a prefill with a decay per channel (KDA): log decays of three kinds of gates, and what
they are made of, for peers that compute gates themselves."""

from dataclasses import dataclass

import torch

from .grid import Case
from .prefill_inputs import Problem, Tokens, make_problem

LOWER_BOUND = -5.0
_SLOW = 1e-3  # of the bound, in a channel that hardly forgets


@dataclass
class RawGates:
    """What a bounded gate is made of: LOWER_BOUND * sigmoid(exp(A_log) * (raw + dt_bias))."""

    raw: torch.Tensor  # [T, H, dk], bf16
    A_log: torch.Tensor  # [H], f32
    dt_bias: torch.Tensor  # [H, dk], f32

    def log_decays(self) -> torch.Tensor:
        """[T, H, dk], f32."""
        rate = self.A_log.exp()[:, None]
        return LOWER_BOUND * torch.sigmoid(rate * (self.raw.float() + self.dt_bias))


@dataclass
class ChannelTokens(Tokens):
    """A set whose log decays and strengths come of raw ones."""

    gates: RawGates
    logits: torch.Tensor  # [T, H], bf16: strengths are sigmoids of these


def bench_gates(tokens: int, heads: int, channels: int, device, generator) -> RawGates:
    """As the peers' benchmarks make them."""

    def uniform(*shape: int) -> torch.Tensor:
        return torch.rand(shape, generator=generator, device=device)

    raw = torch.randn((tokens, heads, channels), generator=generator, device=device)
    return RawGates(raw.to(torch.bfloat16), uniform(heads), uniform(heads, channels))


def slow_channel(tokens: int, heads: int, channels: int, device, generator) -> RawGates:
    """The same, but for one channel of each head, which hardly forgets at any token."""
    found = bench_gates(tokens, heads, channels, device, generator)
    which = torch.randint(channels, (heads, 1), generator=generator, device=device)
    sigmoid = torch.full((heads, 1), _SLOW, device=device)
    bias = torch.logit(sigmoid) / found.A_log.exp()[:, None]
    raw = found.raw.scatter(2, which[None].expand(tokens, -1, 1), 0.0)
    return RawGates(raw, found.A_log, found.dt_bias.scatter(1, which, bias))


def resets(tokens: int, heads: int, channels: int, device, generator) -> RawGates:
    """Eight tokens wipe one half of the channels, the next eight the other: content that keys
    move between channels stays. Other decays are -1e-3."""
    number = torch.arange(tokens, device=device)[:, None] // 8 % 2
    half = torch.arange(channels, device=device)[None] // (channels // 2)
    raw = torch.where(number == half, 40.0, -8.5).to(torch.bfloat16)
    raw = raw[:, None].expand(-1, heads, -1).contiguous()
    nothing = torch.zeros(heads, channels, device=device)
    return RawGates(raw, torch.zeros(heads, device=device), nothing)


GATES = {"bench": bench_gates, "slow channel": slow_channel, "resets": resets}


def make_channel_problem(
    case: Case, io: str, state: str, gates: str, device: str = "cuda", sets: int = 0
) -> Problem:
    """Inputs of prefill_inputs with log decays [T, H, dk] of a kind."""
    problem = make_problem(case, io, state, device, sets)
    generator = torch.Generator(device).manual_seed(2)

    def own(x: Tokens) -> ChannelTokens:
        tokens, heads = x.g.shape
        raw = GATES[gates](tokens, heads, case.dims[0], device, generator)
        logits = torch.randn((tokens, heads), generator=generator, device=device)
        logits = logits.to(torch.bfloat16)
        beta = torch.sigmoid(logits.float())
        return ChannelTokens(x.q, x.k, x.v, raw.log_decays(), beta, x.state, raw, logits)

    problem.sets = [own(x) for x in problem.sets]
    return problem
