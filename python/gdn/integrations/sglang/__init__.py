# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""gdn as a kernel backend of SGLang's linear attention (sglang 0.5.23), for gated delta networks
and Kimi Delta Attention:

    python -m sglang.launch_server --model-path MODEL --linear-attn-backend gdn

SGLang finds `register` by the entry point of the installed package, in each of its processes.
SGLANG_PLUGINS, which SGLang reads, leaves plugins out.
"""

from __future__ import annotations

import sys
from typing import get_type_hints

from .backends import BACKENDS

_LAYERS = "sglang.srt.layers.attention."
_DISPATCHER = _LAYERS + "linear.gdn_backend.GDNKernelDispatcher.__init__"
_KDA_DISPATCHER = _LAYERS + "linear.kda_backend.KDAKernelDispatcher.__init__"
_TRACK = _LAYERS + "hybrid_linear_attn_backend.MambaAttnBackendBase._track_mamba_state_"
_MEMORY = "sglang.srt.mem_cache."
_SIZES = _MEMORY + "kv_cache_configurator.KVCacheConfigurator."


def register() -> None:
    """Makes "gdn" and its forms values of --linear-attn-backend and of its siblings. SGLang calls
    this before it parses options and before it makes a model."""
    from sglang.srt.arg_groups import choices
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    from . import hooks
    from .dispatcher import make_dispatcher, make_kda_dispatcher

    known = choices.LINEAR_ATTN_KERNEL_BACKEND_CHOICES
    if new := [name for name in BACKENDS if name not in known]:
        choices.add_linear_attn_kernel_backend_choices(new)
    _add_to_verify()
    HookRegistry.register(_DISPATCHER, make_dispatcher, HookType.AROUND)
    HookRegistry.register(_KDA_DISPATCHER, make_kda_dispatcher, HookType.AROUND)
    HookRegistry.register(_SIZES + "__post_init__", hooks.count_slot_bytes, HookType.AFTER)
    HookRegistry.register(
        _SIZES + "_build_hybrid_req_pool", hooks.make_request_pool, HookType.AROUND
    )
    HookRegistry.register(
        _MEMORY + "memory_pool.MambaPool.__init__", hooks.make_state_pool, HookType.AROUND
    )
    HookRegistry.register(_TRACK + "decode", hooks.commit_tracked, HookType.BEFORE)
    HookRegistry.register(_TRACK + "extend", hooks.forget_tracked, HookType.BEFORE)


def _add_to_verify() -> None:
    """Options that SGLang has read by now have a list of their own for verify."""
    if (read := sys.modules.get("sglang.srt.server_args")) is None:
        return
    hint = get_type_hints(read.ServerArgs, include_extras=True)["linear_attn_verify_backend"]
    for option in hint.__metadata__:
        if names := getattr(option, "choices", None):
            names.extend(name for name in BACKENDS if name not in names)
