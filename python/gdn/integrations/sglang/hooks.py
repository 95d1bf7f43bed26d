# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Hooks in SGLang for slots that keep more than its MambaPool puts there. The pool knows that as
states that go with its slots (register_slot_state), so it zeroes, copies and moves them. Where
SGLang copies its array of states past the pool, for the prefix cache, what is pending is committed
first.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import replace

from ..slot_arrays import SlotForm, SlotSizes, slot_bytes
from .backends import check_options, chosen_name, form_of

logger = logging.getLogger("gdn")

#: The form of slots of the pool that is being made.
_form: ContextVar[SlotForm | None] = ContextVar("gdn_slot_form", default=None)


def count_slot_bytes(_result: None, configurator) -> None:
    """After KVCacheConfigurator.__post_init__: slots of a model with gated delta rules take what
    they have beside SGLang's states. Raises ValueError for options that do not go together."""
    name = _name_in_use(configurator)
    if name is None:
        return
    check_options(name, _options())
    params = configurator.mambaish_config.mamba2_cache_params
    form = form_of(name, _type_name(params.dtype.temporal), _exec().mamba)
    value_heads, value_dim, key_dim = params.shape.temporal
    sizes = SlotSizes(params.shape.num_k_heads_per_tp, value_heads, value_dim, key_dim)
    more = slot_bytes(form, sizes)
    if form.in_planes:
        more -= (params.dtype.temporal.itemsize - 1) * value_heads * value_dim * key_dim
    configurator.extra_mamba_cache_bytes_per_req += more * len(params.layers)


def make_request_pool(original: Callable, configurator, **given):
    """Around KVCacheConfigurator._build_hybrid_req_pool: the pool of states that it makes gets this
    form."""
    name = _name_in_use(configurator)
    if name is None:
        return original(configurator, **given)
    params = configurator.mambaish_config.mamba2_cache_params
    token = _form.set(form_of(name, _type_name(params.dtype.temporal), _exec().mamba))
    try:
        return original(configurator, **given)
    finally:
        _form.reset(token)


def make_state_pool(original: Callable, pool, **given) -> None:
    """Around MambaPool.__init__. Of states in planes SGLang's array is the upper plane."""
    from .slots import SlotStates, plane_type

    form, params = _form.get(), given["cache_params"]
    if form is not None and form.in_planes:
        dtype = replace(params.dtype, temporal=plane_type)
        given["cache_params"] = replace(params, dtype=dtype)
    original(pool, **given)
    if form is None or not given["mamba_layer_ids"]:
        return
    with pool.memory_saver_adapter.region(_memory_tag()):
        states = SlotStates(
            form,
            pool.mamba_cache.temporal,
            params.shape.num_k_heads_per_tp,
            min(given["mamba_layer_ids"]),
        )
    pool.register_slot_state(states)
    gigabytes = states.held.num_bytes / (1 << 30)
    pool.mem_usage += gigabytes
    logger.info("Slots keep states as %s, with %.2f GB beside SGLang's", form, gigabytes)


def commit_tracked(
    backend, forward_batch, conv_states, ssm_states, cache_indices, layer_id=None
) -> None:
    """Before MambaAttnBackendBase._track_mamba_state_decode, which copies states of sequences that
    a mask names to other slots."""
    from .slots import find_layer

    if forward_batch.mamba_track_mask is None or (layer := find_layer(ssm_states)) is None:
        return
    count = forward_batch.batch_size
    mask = forward_batch.mamba_track_mask[:count]
    layer.commit(cache_indices[:count].where(mask, -1))
    # Slot 0 is one that SGLang gives to nobody.
    targets = backend.forward_metadata.mamba_track_indices[:count]
    layer.forget(targets.where(mask, 0).clamp(min=0))


def forget_tracked(
    backend, forward_batch, h, ssm_states, forward_metadata, *others, **more
) -> None:
    """Before MambaAttnBackendBase._track_mamba_state_extend, which writes states inside of prompts
    to other slots."""
    from .slots import find_layer

    if not forward_metadata.has_mamba_track_mask or (layer := find_layer(ssm_states)) is None:
        return
    for name in ("track_ssm_h_dst", "track_ssm_final_dst"):
        if (slots := getattr(forward_metadata, name)) is not None and slots.numel():
            layer.forget(slots)


def _name_in_use(configurator) -> str | None:
    """The backend that keeps more in a slot, for a model whose layers are gated delta rules."""
    if configurator.hybrid_gdn_config is None or configurator.is_draft_worker:
        return None
    return chosen_name(_exec().mamba)


def _exec():
    from sglang.srt.runtime_context import get_exec

    return get_exec()


def _options() -> dict[str, object]:
    """SGLang's options that check_options looks at."""
    from sglang.srt.runtime_context import get_disagg, get_exec, get_memory, get_spec

    memory = (
        "enable_unified_memory",
        "enable_page_major_kv_layout",
        "enable_unified_cache_external_linker",
        "enable_lmcache",
    )
    groups = (
        (get_spec(), ("speculative_algorithm",)),
        (get_disagg(), ("disaggregation_mode",)),
        (get_memory(), memory),
        (get_exec().mamba, ("enable_int8_mamba_checkpoint", "enable_mamba_extra_buffer")),
        (get_exec().features, ("enable_mis",)),
    )
    return {name: getattr(group, name) for group, names in groups for name in names}


def _memory_tag() -> str:
    from sglang.srt.constants import GPU_MEMORY_TYPE_KV_CACHE

    return GPU_MEMORY_TYPE_KV_CACHE


def _type_name(dtype) -> str:
    return str(dtype).removeprefix("torch.")
