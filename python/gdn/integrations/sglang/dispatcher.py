# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Puts gdn's kernels into SGLang's GDNKernelDispatcher and KDAKernelDispatcher, for the phases
whose backend is gdn's."""

from __future__ import annotations

import logging
from collections.abc import Callable

from .backends import BACKENDS, chosen_name, chosen_phases, names_of

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
    """The same around KDAKernelDispatcher.__init__. Raises ValueError for slots that keep more than
    SGLang's."""
    options = _options().mamba
    phases = chosen_phases(options)
    backends = {"decode": decode_backend, "prefill": prefill_backend, "verify": verify_backend}
    if not phases:
        return original(dispatcher, *backends.values())
    for phase, name in names_of(options)._asdict().items():
        if name in BACKENDS and name != "gdn":
            raise ValueError(
                f"--linear-attn-backend, for {phase}: expected gdn with Kimi Delta Attention, got"
                f" {name}: writes are not deferred and states not in planes with a decay of each"
                " channel"
            )
    _refuse_determinism()
    from .kda_kernel import KdaKernel

    triton = type(decode_backend).TRITON
    original(dispatcher, *(triton if p in phases else b for p, b in backends.items()))
    kernel = KdaKernel(dispatcher.triton_kernel)
    if "decode" in phases:
        dispatcher.decode_kernel = kernel
        dispatcher.supports_packed_decode = kernel.supports_packed_decode
        dispatcher.supports_packed_decode_safe_gate = kernel.supports_packed_decode
    if "prefill" in phases:
        dispatcher.extend_kernel = kernel
    if "verify" in phases:
        dispatcher.verify_kernel = kernel
    logger.info(
        "Kimi Delta Attention of SGLang runs gdn's kernels for %s", ", ".join(sorted(phases))
    )


def _options():
    from sglang.srt.runtime_context import get_exec

    return get_exec()


def _refuse_determinism() -> None:
    if _options().deterministic.enable_deterministic_inference:
        raise ValueError(
            "--linear-attn-backend: expected triton with --enable-deterministic-inference, got gdn"
        )
