# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of kernels for functions of arrays: made once for each thread and stream, since a call
holds the memory that its kernel works in. What a kernel is for is a kind: a tuple of facts that
finds its image.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Protocol

from .call import Call
from .devices import device_of
from .runtime import Device, Image, Kernel, Runtime

# Types as options of gdn-compile name them.
SHORT_TYPES = {"float32": "f32", "bfloat16": "bf16", "float16": "f16"}
#: For those who have states of bytes.
WHERE_PLANES_ARE = "states in planes are for layers on a gdn.StatePool, and its layer_states"


class KernelKind(Protocol):
    """What an image is for. Equal kinds have one image on a device."""

    @property
    def types(self) -> tuple[str, ...]:
        """Element types of its arrays, as NumPy names them."""

    def image_path(self, device: Device) -> Path:
        """An image, prebuilt or compiled. Raises LookupError where there is none and none can be
        compiled."""


def has_kernels(kind: KernelKind) -> bool:
    """Whether types are ones that kernels have."""
    return all(name in SHORT_TYPES for name in kind.types)


def find_refusal(
    kind: KernelKind, device: tuple[str, int], runtime: Runtime | None = None
) -> str | None:
    """Why there is no image of that kind for a device, or None if there is one. It is found or
    compiled, and loaded, the first time."""
    if not has_kernels(kind):
        return _wrong_types(kind)
    key = (runtime, device, kind)
    if key not in _refusals:
        try:
            with _lock:
                _image(device_of(device, runtime), kind)
            _refusals[key] = None
        except (ValueError, LookupError, RuntimeError, OSError, ImportError) as error:
            _refusals[key] = f"{type(error).__name__}: {error}"
    return _refusals[key]


def _wrong_types(kind: KernelKind) -> str:
    text = f"types: expected {', '.join(SHORT_TYPES)}, got {' and '.join(kind.types)}"
    return f"{text}; {WHERE_PLANES_ARE}" if "uint8" in kind.types else text


_lock = threading.Lock()
_images: dict[tuple, Image] = {}
_refusals: dict[tuple, str | None] = {}
_calls = threading.local()


def call_of(
    kind: KernelKind,
    entry: str,
    device: tuple[str, int],
    stream: object,
    runtime: Runtime | None,
    null_slot: int = -1,
    capturing: bool = False,
) -> Call:
    """The call of an entry on a device ("cpu" or "cuda", ordinal). On a stream that is `capturing`
    it is the thread's last one, whatever the stream: the memory to work in cannot be taken
    there."""
    made = _calls.__dict__.setdefault("made", {})
    if not has_kernels(kind):
        raise ValueError(_wrong_types(kind))
    last = last_of(kind, entry, device, runtime, null_slot)
    key = (*last, stream)
    if key not in made and capturing and last in made:
        key = last
    if key not in made:
        with _lock:
            place = device_of(device, runtime)
            image = _image(place, kind)
        made[key] = Call(place.kernel(image, entry), null_slot=null_slot)
    if not capturing:
        made[last] = made[key]
    return made[key]


def kernel_of(
    kind: KernelKind, entry: str, device: tuple[str, int], runtime: Runtime | None
) -> Kernel:
    """The kernel of an entry on a device, for callers that choose its variant."""
    with _lock:
        place = device_of(device, runtime)
        return place.kernel(_image(place, kind), entry)


def has_entry(
    kind: KernelKind, entry: str, device: tuple[str, int], runtime: Runtime | None
) -> bool:
    """Whether the image of a kind has an entry."""
    with _lock:
        return entry in _image(device_of(device, runtime), kind).entries


def last_of(
    kind: KernelKind,
    entry: str,
    device: tuple[str, int],
    runtime: Runtime | None,
    null_slot: int = -1,
) -> tuple:
    """What a thread's last call of an entry is known by, whatever the stream."""
    return (runtime, device, kind, entry, null_slot)


def remember(last: tuple, call: Call) -> None:
    """`call` is this thread's last one."""
    _calls.made[last] = call


def _image(device: Device, kind: KernelKind) -> Image:
    key = (device, kind)
    if key not in _images:
        _images[key] = device._runtime.image(kind.image_path(device))
    return _images[key]
