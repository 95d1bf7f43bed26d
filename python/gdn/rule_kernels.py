# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which image has the kernels of a bare rule."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from .find_or_compile import find_or_compile
from .kernel_calls import SHORT_TYPES
from .runtime import Device

# Formats of states in planes, as gdn-compile --state names them.
PLANES = ("i8x2", "i8")


class RuleKind(NamedTuple):
    """What an image of the rule is for."""

    key_dim: int
    value_dim: int
    per_channel: bool
    doubled_beta: bool
    l2norm: bool
    io: str
    state: str  # or the format of states in planes
    layout: str  # "ready", or "gated": decays and strengths are made by the kernel
    verify: str  # "none", or what its verify keeps: "slots" or "buffer"
    checkpoints: bool  # prefill keeps states inside sequences
    state_order: str = "vk"  # states lie as [dv, dk], or as [dk, dv] with "kv"
    maps: bool = False  # prefill also makes maps of sequences
    deferred_writes: int = 0  # tokens that the pool keeps pending in a slot
    pending: str = "float32"  # the type of their keys and deltas
    decay_bound: float | None = None  # of "gated" decays of channels

    @property
    def types(self) -> tuple[str, ...]:
        return (self.io,) if self.state in PLANES else (self.io, self.state)

    def image_path(self, device: Device) -> Path:
        # Prebuilt images for sglang have checkpoints.
        engine, options = "c", []
        if self.verify != "none":
            options = ["--only=verify"]
        elif self.checkpoints:
            engine, options = "sglang", ["--only=prefill", "--checkpoints"]
        elif any(size % unit_of("prefill", (device.kind, 0)) for size in self[:2]):
            options = ["--only=decode,commit" if self.deferred_writes else "--only=decode"]
        if self.maps:
            options = ["--combine-maps", "--only=prefill,combine_maps,apply_maps"]
        return find_or_compile(
            self.config(),
            device,
            state_layout=self.state_order,
            segment_maps=self.maps,
            engine=engine,
            io=SHORT_TYPES[self.io],
            state=SHORT_TYPES.get(self.state, self.state),
            layout=self.layout,
            outputs="core",
            l2norm=self.l2norm,
            verify=self.verify,
            deferred_writes=self.deferred_writes,
            pending=SHORT_TYPES[self.pending] if self.deferred_writes else None,
            compiled_for="c",
            options=options,
        )

    def config(self) -> dict[str, object]:
        """A configuration of layers with this rule. Numbers of heads are symbols of an image, and
        nothing else is looked at where q, k and v are ready. Raises ValueError for a rule that no
        layer has."""
        common = {"num_hidden_layers": 1, "hidden_size": 1024, "rms_norm_eps": 1e-6}
        if self.per_channel:
            if self.key_dim != self.value_dim:
                raise ValueError(
                    f"v: expected heads of {self.key_dim}, those of q, with a decay of each"
                    f" channel, got {self.value_dim}"
                )
            heads = {"num_heads": 2, "head_dim": self.key_dim, "short_conv_kernel_size": 4}
            heads["allow_neg_eigval"] = self.doubled_beta
            heads["gate_lower_bound"] = self.decay_bound
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


# Head sizes of kernels are multiples of it, up to the largest.
UNIT, _LARGEST_HEAD = 8, 256


def check_head_sizes(key_dim: int, value_dim: int) -> None:
    """ValueError for heads that no kernel has."""
    for name, size in (("q", key_dim), ("v", value_dim)):
        if not 1 <= size <= _LARGEST_HEAD:
            raise ValueError(f"{name}: expected heads of 1 to {_LARGEST_HEAD} numbers, got {size}")


def unit_of(entry: str, device: tuple[str, int]) -> int:
    """What head sizes of an entry are multiples of on a device: products on tensor cores, which
    prefill has, take 16 rows."""
    return 16 if entry == "prefill" and device[0] == "cuda" else UNIT


def kind_of(
    key_dim: int,
    value_dim: int,
    *,
    unit: int = UNIT,
    io: str,
    state: str = "float32",
    per_channel: bool = False,
    doubled_beta: bool = False,
    l2norm: bool = False,
    layout: str = "ready",
    verify: str = "none",
    checkpoints: bool = False,
    state_order: str = "vk",
    deferred_writes: int = 0,
    pending: str = "float32",
    decay_bound: float | None = None,
) -> RuleKind:
    """The kind that serves heads of these sizes, in multiples of `unit`."""
    sizes = (-(-size // unit) * unit for size in (key_dim, value_dim))
    return RuleKind(
        *sizes,
        per_channel,
        doubled_beta,
        l2norm,
        io,
        state,
        layout,
        verify,
        checkpoints,
        state_order,
        False,
        deferred_writes,
        pending,
        decay_bound,
    )
