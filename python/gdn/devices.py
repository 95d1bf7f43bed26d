# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Devices of the installed runtime, made once: what callers of PyTorch's libraries run on."""

from __future__ import annotations

import threading

from .runtime import Device, Runtime

_runtime: list[Runtime] = []
_devices: dict[tuple, Device] = {}
_lock = threading.Lock()


def device_of(device: tuple[str, int], runtime: Runtime | None = None) -> Device:
    """("cpu" or "cuda", ordinal), of the installed library unless a runtime is given."""
    with _lock:
        if runtime is None:
            if not _runtime:
                _runtime.append(Runtime())
            runtime = _runtime[0]
        key = (runtime, device)
        if key not in _devices:
            (kind, ordinal), checks = device, runtime.debug_checks
            is_cpu = kind == "cpu"
            _devices[key] = (
                runtime.device(0, debug_checks=checks)
                if is_cpu
                else runtime.cuda(ordinal, debug_checks=checks)
            )
        return _devices[key]
