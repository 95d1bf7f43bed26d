# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A layer on the tokens of a rank, with sequences that are spread over ranks:

    prefill_over_ranks(layer, ContextParallel(group), hidden_states, output, slots, cu_seqlens)

It goes together with tensor parallelism: the ranks of `group` have the same heads."""

from __future__ import annotations

from ...array_library import library_of
from ...context_parallel import ContextParallel
from .gated_delta_net import GatedDeltaNetAttention, fact_of


def prefill_over_ranks(
    layer: GatedDeltaNetAttention,
    ranks: ContextParallel,
    hidden_states,
    output,
    slots,
    cu_seqlens,
    *,
    has_initial=None,
    write_slots=None,
    checkpoints: tuple | None = None,
    null_slot: int = 0,
) -> None:
    """hidden_states [T, hidden], the tokens of this rank, to output[:T]. States are those of
    `layer.bind_kv_cache`, the same on all ranks before and after. The other arguments are those of
    gdn.context_parallel.ContextParallel.delta_prefill. Projections and the norm are the layer's;
    the convolution and the rule are functions of arrays, with kernels of their own.

    Raises ValueError for a layer without states, and as the functions of `ranks` do."""
    if layer.kv_cache is None:
        raise ValueError("kv_cache: expected bind_kv_cache before a step")
    conv_state, ssm_state = layer.kv_cache
    runtime = layer._runtime
    arrays, (qkv, z, b, a) = library_of(hidden_states, runtime), _projected(layer, hidden_states)
    if layer.conv_state_layout != "DS":
        conv_state = conv_state.swapaxes(1, 2)
    places = {
        "has_initial": has_initial,
        "write_slots": write_slots,
        "checkpoints": checkpoints,
        "null_slot": null_slot,
        "runtime": runtime,
    }
    mixed = ranks.causal_conv1d(
        qkv,
        layer.conv_weight,
        # Behind the window are positions for tokens of a verify.
        conv_state[:, :, : layer.conv_kernel_size - 1],
        slots,
        cu_seqlens,
        **places,
    )
    tokens, keys = int(mixed.shape[0]), layer.key_dim // layer.tp_size
    query, key = (
        part.reshape(tokens, layer.num_k_heads // layer.tp_size, layer.head_k_dim)
        for part in (mixed[:, :keys], mixed[:, keys : 2 * keys])
    )
    values = layer.num_v_heads // layer.tp_size
    value = mixed[:, 2 * keys :].reshape(tokens, values, layer.head_v_dim)
    log_decay, beta = arrays.ready_gates(a, b, layer.A_log, layer.dt_bias)
    doubled = bool(fact_of(layer.kernels, "doubled_beta", 0))
    core = ranks.delta_prefill(
        query,
        key,
        value,
        log_decay,
        beta * 2 if doubled else beta,
        ssm_state,
        slots,
        cu_seqlens,
        l2norm=True,
        allow_neg_eigval=doubled,
        **places,
    )
    layer._project_out(layer.norm(core, z), output, tokens)


def _projected(layer: GatedDeltaNetAttention, hidden_states) -> tuple:
    """qkv [T, D], z, b and a, whatever the kernels of the layer take."""
    arrays, z = layer.project(hidden_states)
    if "qkvz" not in arrays:
        return arrays["qkv"], z, arrays["b"], arrays["a"]
    query, key, value, z, b, a = layer.fix_query_key_value_ordering(arrays["qkvz"], arrays["ba"])
    return layer._concatenate([query, key, value]), z, b, a
