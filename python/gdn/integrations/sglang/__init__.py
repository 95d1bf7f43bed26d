# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""gdn as a kernel backend of SGLang's linear attention (sglang 0.5.23), for gated delta networks:

    python -m sglang.launch_server --model-path MODEL --linear-attn-backend gdn

SGLang finds `register` by the entry point of the installed package, in each of its processes.
SGLANG_PLUGINS, which SGLang reads, leaves plugins out.
"""

from __future__ import annotations

NAME = "gdn"
_DISPATCHER = "sglang.srt.layers.attention.linear.gdn_backend.GDNKernelDispatcher.__init__"


def register() -> None:
    """Makes "gdn" a value of --linear-attn-backend and of its siblings for decode and prefill.
    SGLang calls this before it parses options and before it makes a model."""
    from sglang.srt.arg_groups import choices
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    from .dispatcher import make_dispatcher

    if NAME not in choices.LINEAR_ATTN_KERNEL_BACKEND_CHOICES:
        choices.add_linear_attn_kernel_backend_choices([NAME])
    HookRegistry.register(_DISPATCHER, make_dispatcher, HookType.AROUND)
