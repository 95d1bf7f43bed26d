# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Puts gdn's kernels into SGLang's GDNKernelDispatcher and KDAKernelDispatcher, for the phases
whose backend is gdn's."""

from __future__ import annotations

import logging
from collections.abc import Callable

from .backends import BACKENDS, chosen_name, chosen_phases

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
    phases, name = chosen_phases(_options().mamba), chosen_name(_options().mamba)
    backends = {"decode": decode_backend, "prefill": prefill_backend, "verify": verify_backend}
    if not phases:
        return original(dispatcher, *backends.values())
    _refuse_determinism()
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


def make_kda_dispatcher(
    original: Callable,
    dispatcher,
    decode_backend,
    prefill_backend,
    verify_backend,
) -> None:
    """The same around KDAKernelDispatcher.__init__. Drafts stay with SGLang's kernels. Raises
    ValueError for slots that keep more than SGLang's, and where gdn is to verify."""
    options = _options().mamba
    phases = chosen_phases(options) - {"verify"}
    backends = {"decode": decode_backend, "prefill": prefill_backend}
    if options.linear_attn_verify_backend in BACKENDS:
        raise ValueError(
            "--linear-attn-verify-backend: expected one of SGLang's with Kimi Delta Attention, got"
            f" {options.linear_attn_verify_backend}"
        )
    if not phases:
        return original(dispatcher, *backends.values(), verify_backend)
    if (name := chosen_name(options)) is not None:
        raise ValueError(
            f"--linear-attn-backend: expected gdn with Kimi Delta Attention, got {name}: writes are"
            " not deferred and states not in planes with a decay of each channel"
        )
    _refuse_determinism()
    from .kda_kernel import KdaKernel

    triton = type(decode_backend).TRITON
    own = (triton if phase in phases else backend for phase, backend in backends.items())
    original(dispatcher, *own, verify_backend)
    kernel = KdaKernel(dispatcher.triton_kernel)
    if "decode" in phases:
        dispatcher.decode_kernel = kernel
        dispatcher.supports_packed_decode = kernel.supports_packed_decode
        dispatcher.supports_packed_decode_safe_gate = kernel.supports_packed_decode
    if "prefill" in phases:
        dispatcher.extend_kernel = kernel
    logger.info(
        "Kimi Delta Attention of SGLang runs gdn's kernels for %s, and SGLang's own for drafts",
        ", ".join(sorted(phases)),
    )


def _options():
    from sglang.srt.runtime_context import get_exec

    return get_exec()


def _refuse_determinism() -> None:
    if _options().deterministic.enable_deterministic_inference:
        raise ValueError(
            "--linear-attn-backend: expected triton with --enable-deterministic-inference, got gdn"
        )
