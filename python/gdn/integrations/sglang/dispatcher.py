# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Puts gdn's kernels into SGLang's GDNKernelDispatcher, for the phases whose backend is "gdn"."""

from __future__ import annotations

import logging
from collections.abc import Callable

from . import NAME

logger = logging.getLogger("gdn")


def chosen_phases(options) -> set[str]:
    """Those of decode, prefill and verify whose backend is gdn by SGLang's options (`mamba` of
    get_exec()). Where none is named for verify, it is that of decode."""
    base = options.linear_attn_backend
    decode = options.linear_attn_decode_backend or base
    names = {
        "decode": decode,
        "prefill": options.linear_attn_prefill_backend or base,
        "verify": options.linear_attn_verify_backend or decode,
    }
    return {phase for phase, name in names.items() if name == NAME}


def make_dispatcher(
    original: Callable,
    dispatcher,
    decode_backend,
    prefill_backend,
    verify_backend=None,
) -> None:
    """Around GDNKernelDispatcher.__init__: makes SGLang's own with Triton's kernels in place of
    ours, which then take over. Drafts that are trees stay with Triton's."""
    from sglang.srt.runtime_context import get_exec

    phases = chosen_phases(get_exec().mamba)
    backends = {"decode": decode_backend, "prefill": prefill_backend, "verify": verify_backend}
    if not phases:
        return original(dispatcher, *backends.values())
    if get_exec().deterministic.enable_deterministic_inference:
        raise ValueError(
            "--linear-attn-backend: expected triton with --enable-deterministic-inference, got gdn"
        )
    from .kernel import GdnKernel

    triton = type(decode_backend).TRITON
    original(dispatcher, *(triton if p in phases else b for p, b in backends.items()))
    kernel = GdnKernel(dispatcher.tree_verify_kernel)
    if "decode" in phases:
        dispatcher.decode_kernel = kernel
        dispatcher.supports_packed_decode = kernel.supports_packed_decode
    if "prefill" in phases:
        dispatcher.extend_kernel = kernel
    if "verify" in phases:
        dispatcher.verify_kernel = kernel
        dispatcher.verify_kernel_is_flashinfer = False
    logger.info("SGLang's linear attention runs gdn's kernels for %s", ", ".join(sorted(phases)))
