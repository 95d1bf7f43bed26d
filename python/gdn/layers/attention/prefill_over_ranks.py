# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A layer on the tokens of a rank, with sequences that are spread over ranks:

    prefill_over_ranks(layer, ContextParallel(group), hidden_states, output, slots, cu_seqlens)

or on the device alone, with what all layers have in common made once:

    plan = plan_over_ranks(layers[0], ContextParallel(group), hidden_states, slots, cu_seqlens)
    for layer in layers:
        prefill_over_ranks(layer, None, hidden_states, output, plan=plan)

It goes together with tensor parallelism: the ranks of `group` have the same heads."""

from __future__ import annotations

from ...array_library import library_of
from ...context_parallel import ContextParallel
from ...context_plan import ContextPlan
from .gated_delta_net import GatedDeltaNetAttention, fact_of


def plan_over_ranks(
    layer: GatedDeltaNetAttention,
    ranks: ContextParallel,
    hidden_states,
    slots,
    cu_seqlens,
    *,
    has_initial=None,
    write_slots=None,
    checkpoints: tuple | None = None,
    null_slot: int = 0,
    segments: int = 4,
) -> ContextPlan:
    """The plan of a batch for prefill_over_ranks, of `layer` and of others with as many rows and
    slots. Arguments are those of prefill_over_ranks and of ContextParallel.plan.

    Raises ValueError for a layer without states, and as ContextParallel.plan does."""
    _, ssm_state = _states_of(layer)
    return ranks.plan(
        hidden_states,
        ssm_state,
        slots,
        cu_seqlens,
        has_initial=has_initial,
        write_slots=write_slots,
        checkpoints=checkpoints,
        null_slot=null_slot,
        segments=segments,
        runtime=layer._runtime,
    )


def prefill_over_ranks(
    layer: GatedDeltaNetAttention,
    ranks: ContextParallel | None,
    hidden_states,
    output,
    slots=None,
    cu_seqlens=None,
    *,
    has_initial=None,
    write_slots=None,
    checkpoints: tuple | None = None,
    null_slot: int = 0,
    plan: ContextPlan | None = None,
) -> None:
    """hidden_states [T, hidden], the tokens of this rank, to output[:T]. States are those of
    `layer.bind_kv_cache`, the same on all ranks before and after. The other arguments are those of
    gdn.context_parallel.ContextParallel.delta_prefill. Projections and the norm are the layer's;
    the convolution and the rule are functions of arrays, with kernels of their own.

    With a `plan`, that of plan_over_ranks, nothing waits for the device, and a graph can capture a
    later call. Slots, starts, checkpoints and ranks are the plan's then, and are not given.

    Raises ValueError for a layer without states, for both a plan and what it has, and as the
    functions of `ranks` or the plan do."""
    conv_state, ssm_state = _states_of(layer)
    runtime = layer._runtime
    places = {
        "slots": slots,
        "cu_seqlens": cu_seqlens,
        "has_initial": has_initial,
        "write_slots": write_slots,
        "checkpoints": checkpoints,
    }
    given = [name for name, value in places.items() if value is not None]
    if plan is not None:
        if given:
            raise ValueError(f"plan: expected no {given[0]} beside it, as it has its own")
        calls, places = plan, {}
    elif ranks is None or slots is None or cu_seqlens is None:
        raise ValueError("plan: expected one, or ranks, slots and cu_seqlens, got neither")
    else:
        calls, places = ranks, places | {"null_slot": null_slot, "runtime": runtime}
    arrays, (qkv, z, b, a) = library_of(hidden_states, runtime), _projected(layer, hidden_states)
    if layer.conv_state_layout != "DS":
        conv_state = conv_state.swapaxes(1, 2)
    # Behind the window are positions for tokens of a verify.
    windows = conv_state[:, :, : layer.conv_kernel_size - 1]
    mixed = calls.causal_conv1d(qkv, layer.conv_weight, windows, **places)
    tokens, keys = int(mixed.shape[0]), layer.key_dim // layer.tp_size
    query, key = (
        part.reshape(tokens, layer.num_k_heads // layer.tp_size, layer.head_k_dim)
        for part in (mixed[:, :keys], mixed[:, keys : 2 * keys])
    )
    values = layer.num_v_heads // layer.tp_size
    value = mixed[:, 2 * keys :].reshape(tokens, values, layer.head_v_dim)
    log_decay, beta = arrays.ready_gates(a, b, layer.A_log, layer.dt_bias)
    doubled = bool(fact_of(layer.kernels, "doubled_beta", 0))
    core = calls.delta_prefill(
        query,
        key,
        value,
        log_decay,
        beta * 2 if doubled else beta,
        ssm_state,
        l2norm=True,
        allow_neg_eigval=doubled,
        **places,
    )
    layer._project_out(layer.norm(core, z), output, tokens)


def _states_of(layer: GatedDeltaNetAttention) -> tuple:
    if layer.kv_cache is None:
        raise ValueError("kv_cache: expected bind_kv_cache before a step")
    return layer.kv_cache


def _projected(layer: GatedDeltaNetAttention, hidden_states) -> tuple:
    """qkv [T, D], z, b and a, whatever the kernels of the layer take."""
    arrays, z = layer.project(hidden_states)
    if "qkvz" not in arrays:
        return arrays["qkv"], z, arrays["b"], arrays["a"]
    query, key, value, z, b, a = layer.fix_query_key_value_ordering(arrays["qkvz"], arrays["ba"])
    return layer._concatenate([query, key, value]), z, b, a
