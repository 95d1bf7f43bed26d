# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Puts gdn's kernels into SGLang's GDNKernelDispatcher, for the phases whose backend is gdn's."""

from __future__ import annotations

import logging
from collections.abc import Callable

from .backends import chosen_name, chosen_phases

logger = logging.getLogger("gdn")


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

    phases, name = chosen_phases(get_exec().mamba), chosen_name(get_exec().mamba)
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
    kernel = GdnKernel(dispatcher.tree_verify_kernel, name)
    if "decode" in phases:
        dispatcher.decode_kernel = kernel
        dispatcher.supports_packed_decode = kernel.supports_packed_decode
    if "prefill" in phases:
        dispatcher.extend_kernel = kernel
    if "verify" in phases:
        dispatcher.verify_kernel = kernel
        dispatcher.verify_kernel_is_flashinfer = False
    logger.info("SGLang's linear attention runs gdn's kernels for %s", ", ".join(sorted(phases)))
