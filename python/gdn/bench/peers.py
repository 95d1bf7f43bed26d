# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Other implementations of a decode step, where they can be imported. They get
queries, keys and values of the same sizes and the states of the same sets."""

from collections.abc import Callable

import torch

from .decode import Step

Calls = list[Callable[[], object]]


def _inputs(step: Step, key_dim: int, value_dim: int, io: torch.dtype) -> dict[str, torch.Tensor]:
    sizes = step.sizes
    generator = torch.Generator("cuda").manual_seed(5)

    def normal(*shape: int, dtype: torch.dtype = io) -> torch.Tensor:
        return torch.randn(shape, generator=generator, device="cuda").to(dtype)

    rows, keys, values = sizes.rows, sizes.key_heads, sizes.value_heads
    return {
        "q": normal(rows, 1, keys, key_dim),
        "k": normal(rows, 1, keys, key_dim),
        "v": normal(rows, 1, values, value_dim),
        "a": normal(rows, 1, values),
        "b": normal(rows, 1, values),
        "A_log": step.shared["A_log"].float(),
        "dt_bias": step.shared["dt_bias"].float(),
    }


def fla(step: Step, key_dim: int, value_dim: int, io: torch.dtype) -> Calls:
    """FLA's fused recurrence: the rule alone, from ready gates, f32 states. Its states
    are key-major, and it writes new ones: what rows hold is beside the point of time."""
    from fla.ops.gated_delta_rule import fused_recurrent_gated_delta_rule

    x = _inputs(step, key_dim, value_dim, io)
    g = -torch.exp(x["A_log"]) * torch.nn.functional.softplus(x["a"].float() + x["dt_bias"])
    beta = torch.sigmoid(x["b"].float())

    def call(pool: torch.Tensor) -> Callable[[], object]:
        state = pool[1:].transpose(-1, -2) if key_dim != value_dim else pool[1:]
        state = state.contiguous()
        return lambda: fused_recurrent_gated_delta_rule(
            x["q"],
            x["k"],
            x["v"],
            g=g,
            beta=beta,
            initial_state=state,
            output_final_state=True,
            use_qk_l2norm_in_kernel=True,
        )

    return [call(pools["state_pool"]) for pools in step.sets]


def flashinfer(step: Step, key_dim: int, value_dim: int, io: torch.dtype) -> Calls:
    """FlashInfer's decode: gates and rule, in place, V-major states."""
    from flashinfer.gdn_decode import gated_delta_rule_decode_pretranspose

    x = _inputs(step, key_dim, value_dim, io)
    output = torch.empty_like(x["v"])

    def call(pool: torch.Tensor) -> Callable[[], object]:
        return lambda: gated_delta_rule_decode_pretranspose(
            x["q"],
            x["k"],
            x["v"],
            pool[1:],
            x["A_log"],
            x["a"],
            x["dt_bias"],
            x["b"],
            output=output,
            use_qk_l2norm=True,
        )

    return [call(pools["state_pool"]) for pools in step.sets]


PEERS = {"fla": fla, "flashinfer": flashinfer}
