# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernels of the bare rule: which image has them, and calls that are made once for each
thread and stream, since a call holds the memory that its kernel works in."""

from __future__ import annotations

import threading
from typing import NamedTuple

from . import compiler, images, targets
from .call import Call
from .runtime import Device, Image, Runtime

# Types as options of gdn-compile name them.
_SHORT = {"float32": "f32", "bfloat16": "bf16", "float16": "f16"}


class RuleKind(NamedTuple):
    """What an image of the rule is for."""

    key_dim: int
    value_dim: int
    per_channel: bool
    doubled_beta: bool
    l2norm: bool
    io: str
    state: str
    layout: str  # "ready", or "gated": decays and strengths are made by the kernel
    verify: str  # "none", or where its verify keeps states: "slots" or "buffer"
    checkpoints: bool  # prefill keeps states inside of sequences

    def config(self) -> dict[str, object]:
        """A configuration of layers with this rule. Numbers of heads are symbols of an image, and
        nothing else is looked at where q, k and v are ready. Raises ValueError for a rule that no
        layer has."""
        common = {"num_hidden_layers": 1, "hidden_size": 1024, "rms_norm_eps": 1e-6}
        if self.per_channel:
            if self.doubled_beta:
                raise ValueError(
                    "allow_neg_eigval: expected false with a decay of each channel, got true"
                )
            if self.key_dim != self.value_dim:
                raise ValueError(
                    f"v: expected heads of {self.key_dim}, those of q, with a decay of each"
                    f" channel, got {self.value_dim}"
                )
            heads = {"num_heads": 2, "head_dim": self.key_dim, "short_conv_kernel_size": 4}
            return common | {"model_type": "kimi_linear", "linear_attn_config": heads}
        sizes = {
            "linear_num_key_heads": 2,
            "linear_num_value_heads": 2,
            "linear_key_head_dim": self.key_dim,
            "linear_value_head_dim": self.value_dim,
            "linear_conv_kernel_dim": 4,
            "hidden_act": "silu",
        }
        if self.doubled_beta:
            family = {"model_type": "olmo_hybrid", "linear_allow_neg_eigval": True}
        else:
            family = {"model_type": "qwen3_5_text"}
        return common | sizes | family


# Head sizes of kernels are multiples of it.
UNIT = 8


def kind_of(
    key_dim: int,
    value_dim: int,
    *,
    io: str,
    state: str = "float32",
    per_channel: bool = False,
    doubled_beta: bool = False,
    l2norm: bool = False,
    layout: str = "ready",
    verify: str = "none",
    checkpoints: bool = False,
) -> RuleKind:
    """The kind that serves heads of these sizes."""
    sizes = (-(-size // UNIT) * UNIT for size in (key_dim, value_dim))
    return RuleKind(
        *sizes, per_channel, doubled_beta, l2norm, io, state, layout, verify, checkpoints
    )


def has_kernels(kind: RuleKind) -> bool:
    """Whether types are ones that kernels have."""
    return kind.io in _SHORT and kind.state in _SHORT


def find_refusal(
    kind: RuleKind, device: tuple[str, int], runtime: Runtime | None = None
) -> str | None:
    """Why there is no image of that kind for a device, or None if there is one. It is found or
    compiled, and loaded, the first time."""
    if not has_kernels(kind):
        return f"types: expected {', '.join(_SHORT)}, got {kind.io} and {kind.state}"
    key = (runtime, device, kind)
    if key not in _refusals:
        try:
            with _lock:
                _image(_device(runtime, device), kind)
            _refusals[key] = None
        except (ValueError, LookupError, RuntimeError, OSError, ImportError) as error:
            _refusals[key] = f"{type(error).__name__}: {error}"
    return _refusals[key]


_lock = threading.Lock()
_runtime: list[Runtime] = []
_devices: dict[tuple, Device] = {}
_images: dict[tuple, Image] = {}
_refusals: dict[tuple, str | None] = {}
_calls = threading.local()


def call_of(
    kind: RuleKind,
    entry: str,
    device: tuple[str, int],
    stream: object,
    runtime: Runtime | None,
    null_slot: int = -1,
    capturing: bool = False,
) -> Call:
    """The call of an entry ("prefill", "decode" or "verify") on a device ("cpu" or "cuda",
    ordinal). On a stream that is `capturing` it is the thread's last one, whatever the stream: the
    memory to work in cannot be taken there."""
    made = _calls.__dict__.setdefault("made", {})
    if kind.io not in _SHORT or kind.state not in _SHORT:
        raise ValueError(f"types: expected {', '.join(_SHORT)}, got {kind.io} and {kind.state}")
    last = (runtime, device, kind, entry, null_slot)
    key = (*last, stream)
    if key not in made and capturing and last in made:
        key = last
    if key not in made:
        with _lock:
            place = _device(runtime, device)
            image = _image(place, kind)
        made[key] = Call(place.kernel(image, entry), null_slot=null_slot)
    if not capturing:
        made[last] = made[key]
    return made[key]


def _device(runtime: Runtime | None, device: tuple[str, int]) -> Device:
    if runtime is None:
        if not _runtime:
            _runtime.append(Runtime())
        runtime = _runtime[0]
    key = (runtime, device)
    if key not in _devices:
        kind, ordinal = device
        _devices[key] = runtime.device(num_workers=0) if kind == "cpu" else runtime.cuda(ordinal)
    return _devices[key]


def _image(device: Device, kind: RuleKind) -> Image:
    key = (device, kind)
    if key not in _images:
        _images[key] = device._runtime.image(_path(device, kind))
    return _images[key]


def _path(device: Device, kind: RuleKind):
    """A prebuilt image, or else one that is compiled, or is in the cache."""
    config = kind.config()
    form = ["--outputs=core", *["--l2norm"] * kind.l2norm]
    wanted = {"io": _SHORT[kind.io], "state": _SHORT[kind.state]}
    # Those with checkpoints are found as SGLang's, whose verify is not needed.
    engine = "sglang" if kind.checkpoints else "c"
    if kind.verify != "none" or kind.checkpoints:
        wanted["verify"] = kind.verify
    try:
        return images.find(
            config,
            device,
            engine=engine,
            layout=kind.layout,
            outputs="core",
            l2norm=kind.l2norm,
            **wanted,
        )
    except images.ImageNotFoundError:
        try:
            compiler.find_tool()
        except compiler.CompileError:
            pass
        else:
            if kind.checkpoints:
                form += ["--checkpoints", "--only=prefill"]
            elif kind.verify != "none":
                form += ["--only=verify"]
            options = [f"--layout={kind.layout}", *form]
            return compiler.compile(
                config, targets.run_by(device)[0], engine="c", options=options, **wanted
            )
        raise
