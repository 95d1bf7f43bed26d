# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The core of one layer on a device: kernels, weights and pools, and the launches of a
step. Arrays are NumPy's on a CPU, anything with DLPack on a GPU."""

import ctypes as c
from collections.abc import Mapping

from ... import _abi, _serving_abi
from ...runtime import Image, Kernel, _argument, _Handle, _stream
from .gdn_metadata import GDNAttentionMetadata

KINDS = ("decode", "prefill", "verify")


def layer_kernels(device, image: Image, suffix: str = "") -> dict[str, Kernel]:
    """The kernels of an image by kind, as far as it has them. `suffix` chooses among pairs
    of types: "_bf16_f32". A kernel without code for the device is left out, and why is in
    the error of the step that needs it."""
    entries = set(image.entries)
    return {kind: device.kernel(image, kind + suffix) for kind in KINDS if kind + suffix in entries}


def _named(arguments: Mapping[str, object], kind: str):
    named = (_abi.NamedArg * max(len(arguments), 1))()
    keep = []
    for slot, (name, value) in zip(named, arguments.items(), strict=False):
        slot.name = name.encode()
        slot.arg, alive = _argument(name, value, kind)
        keep.append(alive)
    return named, keep


class GDNLayer(_Handle):
    """See gdnrt_gdn_layer_create."""

    def __init__(self, kernels: Mapping[str, Kernel], **fixed: object):
        if not kernels:
            raise ValueError("kernels: expected at least one")
        unknown = set(kernels) - set(KINDS)
        if unknown:
            raise ValueError(f"kernels: expected {', '.join(KINDS)}, got {', '.join(unknown)}")
        first = next(iter(kernels.values()))
        runtime = first._runtime
        self.kernels = dict(kernels)
        self.device = first._device
        self._fixed = fixed
        named, self._keep = _named(fixed, self.device.kind)
        raw = _serving_abi.Kernels(**{kind: k._handle for kind, k in kernels.items()})
        handle = runtime.create("gdnrt_gdn_layer_create", c.byref(raw), named, len(fixed))
        super().__init__(runtime, handle, "gdnrt_gdn_layer_destroy")

    def forward(
        self,
        metadata: GDNAttentionMetadata | None,
        *,
        stream: object = None,
        device_arena: object = None,
        **tokens: object,
    ) -> None:
        """Runs a step into the outputs among `tokens`; see gdnrt_gdn_layer_forward."""
        named, keep = _named(tokens, self.device.kind)
        raw = None if metadata is None else c.byref(metadata.raw)
        arena = getattr(device_arena, "data", device_arena)
        self._runtime.call(
            "gdnrt_gdn_layer_forward",
            self._handle,
            raw,
            arena,
            named,
            len(tokens),
            _stream(stream),
        )
        self._last = keep
