# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps of SGLang's layer of Kimi Delta Attention for gdn.bench.sglang_layer: inputs, calls of the
layer and of its kernel alone, and errors to float64."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch

from .sglang_files import Server
from .sglang_setup import (
    CHANNELS,
    DIM,
    HEADS,
    TAPS,
    Pool,
    make_backend,
    make_layer,
    prefill_batch,
    verify_batch,
)

#: Of states in SGLang's layer and of outputs: behind a convolution whose result is bf16.
LIMIT = 1.5e-2


class Step(NamedTuple):
    """Tokens of sequences. `drafts` are verified, else it is a prefill that keeps the state after
    `kept` tokens of each sequence, if this is not None."""

    lengths: tuple[int, ...]
    kept: int | None = None
    drafts: int = 0


class Call(NamedTuple):
    """Of the layer, or of its kernel with what the layer has handed to it."""

    run: Callable[[], torch.Tensor]
    pool: Pool
    dispatcher: object
    #: Before calls.
    states: torch.Tensor
    windows: torch.Tensor
    #: Where the kernel alone puts the states that are kept.
    kept: torch.Tensor | None = None

    def restore(self) -> None:
        self.pool.cache.temporal.copy_(self.states)
        self.pool.cache.conv[0].copy_(self.windows)
        self.pool.poison()
        if self.kept is not None:
            self.kept.fill_(torch.nan)


class Case:
    """Inputs of a step, new ones for each seed."""

    def __init__(self, server: Server, step: Step, bound: float | None, device: str, seed: int):
        self.server, self.step, self.bound, self.device = server, step, bound, device
        self.seed, self.generator = seed, torch.Generator(device).manual_seed(seed)
        self.tokens = sum(step.lengths)

        def normal(*sizes):
            return torch.randn(*sizes, generator=self.generator, device=device)

        self.mixed = normal(self.tokens, CHANNELS).bfloat16()
        self.a = normal(self.tokens, HEADS * DIM).bfloat16()
        self.b = normal(1, self.tokens, HEADS).bfloat16()
        self.weights = {
            "conv_weights": 0.5 * normal(CHANNELS, TAPS),
            "A_log": normal(1, 1, HEADS, 1).abs(),
            "dt_bias": normal(HEADS * DIM) - 2,
        }

    def call(self, impl: str) -> Call:
        """The layer with the kernels of `impl`: "gdn", "sglang" or "sglang fused"."""
        step, count = self.step, len(self.step.lengths)
        generator = torch.Generator(self.device).manual_seed(self.seed + 1)
        pool = Pool(count, step.drafts, self.device, generator)
        which = {"ours": impl == "gdn", "fused_verify": impl == "sglang fused"}
        backend = make_backend(self.server, pool, self.device, **which)
        if step.drafts:
            batch, a = verify_batch(count, step.drafts, self.device), self.a
        else:
            lengths = list(step.lengths)
            batch = prefill_batch(lengths, step.kept, pool, self.device)
            a = self.a.view(1, -1, HEADS, DIM)
        linear = backend.linear_attn_backend
        linear.init_forward_metadata(batch)
        layer = make_layer(self.weights, self.bound)

        def run():
            self.server.attention = backend
            return layer(batch, self.mixed, a, self.b)[0]

        before = pool.cache.temporal.clone(), pool.cache.conv[0].clone()
        return Call(run, pool, linear.kernel_dispatcher, *before)

    def kernel_call(self, call: Call) -> Call | None:
        """What the layer hands to its kernel, alone; None where its kernel has more."""
        dispatcher = call.dispatcher
        name = "target_verify" if self.step.drafts else "extend"
        method, taken = getattr(dispatcher, name), {}

        def note(**given):
            taken.update(given)
            return method(**given)

        call.restore()
        setattr(dispatcher, name, note)
        call.run()
        delattr(dispatcher, name)
        if not taken:
            return None

        def run():
            out = method(**taken)
            return (out[0] if isinstance(out, tuple) else out)[0]

        return call._replace(run=run, kept=taken.get("track_state"))

    def errors(self, call: Call) -> dict[str, float]:
        """Of outputs and of all states that are new, and how many other slots have changed."""
        call.restore()
        _poison_free_memory(self.tokens * HEADS * DIM, self.device)
        out, want, step = call.run(), self.expected(call), self.step
        states, own = call.pool.cache.temporal, call.pool.slots.long()
        found = {"out": error_of(out, want["out"])}
        if step.drafts:
            # Row n of the buffer is that of request n.
            got = call.pool.cache.intermediate_ssm[: len(own)]
            found["state"] = error_of(got, want["after"])
        else:
            found["state"] = error_of(states[own], want["last"])
        if step.kept is not None:
            kept = states[call.pool.kept_slots] if call.kept is None else call.kept
            found["kept"] = error_of(kept, want["kept"])
        rest = own if step.drafts else own[:0]
        rest = torch.cat([rest, torch.zeros_like(own[:1])])
        changed = (states[rest] != call.states[rest]).flatten(1).any(1)
        return found | {"changed": float(changed.sum())}

    def expected(self, call: Call) -> dict[str, torch.Tensor]:
        """In float64, of sequences of one length."""
        if not hasattr(self, "_wanted"):
            self._wanted = self._evaluate(call)
        return self._wanted

    def _evaluate(self, call: Call) -> dict[str, torch.Tensor]:
        step, count = self.step, len(self.step.lengths)
        length, own = step.lengths[0], call.pool.slots.long()
        assert set(step.lengths) == {length}
        rows = self.mixed.double().view(count, length, CHANNELS)
        rows = torch.cat([call.windows[own].double(), rows], 1)
        taps = self.weights["conv_weights"].double()
        mixed = sum(rows[:, n : n + length] * taps[:, n] for n in range(TAPS))
        mixed = torch.nn.functional.silu(mixed).view(count, length, 3, HEADS, DIM)
        q, k, v = mixed.unbind(2)
        q, k = (x / (x.square().sum(-1, keepdim=True) + 1e-6).sqrt() for x in (q, k))
        rate = self.weights["A_log"].double().exp().view(HEADS, 1)
        raw = (self.a.double() + self.weights["dt_bias"].double()).view(count, length, HEADS, DIM)
        if self.bound is None:
            decay = (-rate * torch.nn.functional.softplus(raw)).exp()
        else:
            decay = (self.bound * (rate * raw).sigmoid()).exp()
        strength = self.b.double().sigmoid().view(count, length, HEADS, 1)
        state = call.states[own].double()
        out, found = torch.empty_like(v), {}
        if step.drafts:
            found["after"] = state.new_empty(count, length, *state.shape[1:])
        for t in range(length):
            # States are [.., V, K].
            state = state * decay[:, t, :, None]
            delta = strength[:, t] * (v[:, t] - (state @ k[:, t, ..., None])[..., 0])
            state = torch.addcmul(state, delta[..., None], k[:, t, :, None])
            out[:, t] = (state @ q[:, t, ..., None])[..., 0]
            if step.drafts:
                found["after"][:, t] = state
            if t + 1 == step.kept:
                found["kept"] = state
        return found | {"out": out.flatten(0, 1) / math.sqrt(DIM), "last": state}


def error_of(got: torch.Tensor, want: torch.Tensor) -> float:
    got = got.double()
    return float(((got - want).square().sum() / want.square().sum().clamp_min(1e-30)).sqrt())


def _poison_free_memory(numbers: int, device: str) -> None:
    """What the allocator hands out next for outputs has no numbers."""
    held = [
        torch.full((size,), torch.nan, dtype=dtype, device=device)
        for dtype in (torch.bfloat16, torch.float32)
        for size in (numbers, numbers)
    ]
    del held
