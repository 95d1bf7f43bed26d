# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prefill whose sequences are spread over ranks: each rank has consecutive tokens of each sequence.

    ranks = ContextParallel(group)
    x = ranks.causal_conv1d(x, weight, windows, slots, cu_seqlens)
    out = ranks.delta_prefill(q, k, v, log_decay, beta, states, slots, cu_seqlens)

Ranks exchange the maps of their tokens, and each starts from the true state before its own.
docs/design/20261128-context-parallel.md has the algebra and the costs."""

from __future__ import annotations

from .context_plan import ContextPlan
from .context_steps import ConvStep, RuleStep
from .exchange import exchange_of, gather_or_fail
from .runtime import Runtime
from .sequence_parts import Places


class ContextParallel:
    """The ranks over which sequences are spread. `group` is a gdn.exchange.Exchange, or a process
    group of torch.distributed, by default that of all processes.

    Every rank makes the same calls, with the same slots and flags, and with pools of its own that
    hold the same states in the slots of the call; afterwards they hold the same ones again. Rank r
    has the tokens of each sequence that follow those of rank r - 1, and may have none.

    A call raises gdn.exchange.ExchangeError where another rank failed or did not come in time, or
    was given other arguments. The pools of a rank on which a call raises are unchanged. Slots and
    starts are read on the host, and maps go through its memory: a call waits for the device, and
    cannot be captured in a graph.
    """

    def __init__(self, group=None):
        self.exchange = exchange_of(group)

    def delta_prefill(
        self,
        q,
        k,
        v,
        log_decay,
        beta,
        states,
        slots,
        cu_seqlens,
        *,
        has_initial=None,
        write_slots=None,
        checkpoints: tuple | None = None,
        scale: float | None = None,
        l2norm: bool = False,
        allow_neg_eigval: bool = False,
        null_slot: int = -1,
        runtime: Runtime | None = None,
    ):
        """As gdn.rule_pool.delta_prefill, of the tokens of this rank: q and k [T, Hk, dk], v
        [T, Hv, dv], log_decay [T, Hv] or [T, Hv, dk], and beta [T, Hv]. Sequence n has the tokens
        from cu_seqlens[n] to cu_seqlens[n + 1] here; the host reads cu_seqlens, wherever they are,
        and starts that are out of order or behind T are a ValueError. Tokens of
        `checkpoints` are counted from the first token of the sequence, on whichever rank that is.

        Returns out [T, Hv, dv] of this rank's tokens. Raises as gdn.rule.gated_delta_rule does, and
        ExchangeError."""
        places = Places(slots, write_slots, has_initial, checkpoints, null_slot)
        rule = {
            "scale": None if scale is None else float(scale),
            "l2norm": bool(l2norm),
            "allow_neg_eigval": bool(allow_neg_eigval),
        }

        def begin() -> RuleStep:
            tokens = q, k, v, log_decay, beta
            return RuleStep(self.exchange, tokens, states, cu_seqlens, places, rule, runtime)

        return self._run(begin)

    def plan(
        self,
        v,
        states,
        slots,
        cu_seqlens,
        *,
        has_initial=None,
        write_slots=None,
        checkpoints: tuple | None = None,
        null_slot: int = -1,
        segments: int = 4,
        runtime: Runtime | None = None,
    ) -> ContextPlan:
        """What calls of causal_conv1d and delta_prefill with these sequences and checkpoints have
        in common, those of all layers of a step: v [T, Hv, dv] and states say how many rows and
        slots there are, and where. Slots of checkpoints are written by nothing else. Each rank cuts
        its tokens into about `segments`; as many as, times Hv, fill a device. Ranks exchange sizes
        here, on the host, and calls of the plan do not wait for the device.

        Raises as delta_prefill does."""
        places = Places(slots, write_slots, has_initial, checkpoints, null_slot)
        return ContextPlan(self.exchange, v, states, cu_seqlens, places, segments, runtime)

    def causal_conv1d(
        self,
        x,
        weight,
        states,
        slots,
        cu_seqlens,
        *,
        bias=None,
        has_initial=None,
        write_slots=None,
        checkpoints: tuple | None = None,
        activation: str = "silu",
        null_slot: int = -1,
        runtime: Runtime | None = None,
    ):
        """As gdn.conv1d.causal_conv1d, of the tokens of this rank. The K - 1 inputs before them
        come from the ranks ahead, and from `states` where those have fewer. `checkpoints` are those
        of delta_prefill, and get the windows after their tokens.

        Returns y [T, D]. Raises as gdn.conv1d.causal_conv1d does, and ExchangeError."""
        places = Places(slots, write_slots, has_initial, checkpoints, null_slot)

        def begin() -> ConvStep:
            options = {"bias": bias, "activation": activation, "runtime": runtime}
            return ConvStep(self.exchange, x, weight, states, cu_seqlens, places, options)

        return self._run(begin)

    def _run(self, begin):
        """The rounds of a call: the sizes of parts, what is known of them alone, and the states
        that pools get. Each rank writes its pool after all have computed."""
        step = None

        def sizes() -> bytes:
            nonlocal step
            step = begin()
            return step.parts.to_bytes()

        known = gather_or_fail(self.exchange, sizes)
        known = gather_or_fail(self.exchange, lambda: step.of_own_tokens(known))
        known = gather_or_fail(self.exchange, lambda: step.states_inside(known))
        step.write(known)
        return step.out
