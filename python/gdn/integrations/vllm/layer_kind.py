# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a layer of vLLM asks of kernels, and why there are none for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ... import layer_kernels
from ...kernel_calls import SHORT_TYPES
from ...rule_kernels import unit_of
from ..pool_options import PLANES, PoolOptions
from ..slot_arrays import SlotSizes
from .block_arrays import BlockArrays

#: The most tokens of a sequence with drafts.
MOST_VERIFIED = 8


def has_slot_arrays(state: str, deferred_writes: int) -> bool:
    """Whether a slot has more than a window and a state of numbers."""
    return deferred_writes > 0 or state in PLANES


def entries_of(state: str, deferred_writes: int) -> tuple[str, ...]:
    """The entries of kernels that steps have."""
    if not has_slot_arrays(state, deferred_writes):
        return ("decode", "prefill", "verify")
    return ("decode", "prefill", *(("commit",) if deferred_writes else ()))


class LayerKind(NamedTuple):
    """The layer, and how the engine runs it."""

    platform: str
    key_dim: int
    value_dim: int
    conv_width: int
    activation: str
    gate: str
    norm_eps: float
    layout: str
    """interleaved or flat, of the projections in one array each; split if they come apart;
    separate, with a decay per channel"""
    io: str
    conv_state: str
    state: str
    norm_weight: str
    num_speculative_tokens: int = 0
    cache_mode: str = "none"
    replays: bool = False
    """ReplaySSM, which keeps inputs in place of states"""
    rounds_at_random: bool = False
    deferred_writes: int = 0
    """The tokens that stay pending in a slot"""
    transfers: bool = False
    """Whether a connector sends blocks to other engines"""
    has_own_sizes: bool = False
    """Whether users ask for other states than the model's, whose blocks have several sizes"""
    per_channel: bool = False
    """A decay of each channel, as Kimi Delta Attention has"""
    decay_bound: float | None = None
    conv_weight: str | None = None
    """The type of the convolution's weights, if it is not that of `io`"""
    pool_options: PoolOptions = PoolOptions()
    """What users ask for, of a layer that has the engine's own blocks alone"""

    @property
    def has_norm(self) -> bool:
        return self.layout != "split"

    @property
    def has_slot_arrays(self) -> bool:
        """Whether a slot has more than a window and a state of numbers."""
        return has_slot_arrays(self.state, self.deferred_writes)

    @property
    def pending(self) -> str:
        """The type of keys and deltas of pending tokens: what is fastest on GPUs."""
        return "float16" if self.state in PLANES else "float32"

    @property
    def entries(self) -> tuple[str, ...]:
        """Those of kernels that steps have."""
        return entries_of(self.state, self.deferred_writes)

    def slot_arrays(self, key_heads: int, value_heads: int) -> BlockArrays:
        """What a slot has beside its window, with the heads of one rank."""
        sizes = SlotSizes(key_heads, value_heads, self.value_dim, self.key_dim)
        return BlockArrays(sizes, self.state, self.deferred_writes, self.pending)

    @property
    def copies_windows(self) -> bool:
        """Whether the engine copies windows of sequences with drafts to other blocks."""
        return self.num_speculative_tokens > 0 and self.cache_mode != "none"

    def find_refusal(self) -> str | None:
        """Why there is no kernel for the layer, or None."""
        drafts = self.num_speculative_tokens
        checks = [
            ("platform", "cuda", self.platform),
            ("activation", "silu", self.activation),
            ("conv_state", self.io, self.conv_state),
            ("use_replayssm", False, self.replays),
            ("enable_stochastic_rounding", False, self.rounds_at_random),
            ("sizes of the model's blocks", "one", "several" if self.has_own_sizes else "one"),
        ]
        if self.per_channel:
            found = self.pool_options
            checks.append(("gdn_state", None, found.state))
            checks.append(("gdn_deferred_writes", 0, found.deferred_writes))
            checks.append(("o_norm.activation", "sigmoid", self.gate))
        if self.has_norm:
            checks.append(("norm.weight", self.io, self.norm_weight))
        for name, wanted, found in checks:
            if wanted != found:
                return f"{name}: expected {wanted}, found {found}"
        for name, dtype in (("dtype", self.io), ("mamba_ssm_cache_dtype", self.state)):
            in_planes = name != "dtype" and dtype in PLANES
            if dtype not in SHORT_TYPES and not in_planes:
                return f"{name}: expected {', '.join(SHORT_TYPES)}, found {dtype}"
        # An image has all entries, and prefill takes the largest multiples.
        unit = unit_of("prefill", (self.platform, 0))
        for name, size in (("head_k_dim", self.key_dim), ("head_v_dim", self.value_dim)):
            if size % unit:
                return f"{name}: expected a multiple of {unit}, found {size}"
        if drafts + 1 > MOST_VERIFIED:
            return f"num_speculative_tokens: expected at most {MOST_VERIFIED - 1}, found {drafts}"
        if self.cache_mode not in ("none", "align"):
            return f"mamba_cache_mode: expected none or align, found {self.cache_mode}"
        return self._find_refusal_of_slots() if self.has_slot_arrays else None

    def _find_refusal_of_slots(self) -> str | None:
        """The same of slots of several arrays."""
        form = f"gdn_state {self.state}"
        if self.deferred_writes:
            form += f" and gdn_deferred_writes {self.deferred_writes}"
        checks = [
            ("num_speculative_tokens", 0, self.num_speculative_tokens),
            ("kv_transfer_config", "none", "one" if self.transfers else "none"),
        ]
        for name, wanted, found in checks:
            if wanted != found:
                return f"{name}: expected {wanted} with {form}, found {found}"
        return None

    def config(self) -> dict[str, object]:
        """A configuration of layers of this kind. Numbers of heads are symbols of an image."""
        sizes = (self.key_dim, self.value_dim, self.conv_width)
        kind = layer_kernels.LayerKind(
            self.layout,
            *sizes,
            self.norm_eps,
            self.gate,
            self.io,
            self.state,
            per_channel=self.per_channel,
            decay_bound=self.decay_bound,
        )
        return kind.config()

    @property
    def compile_options(self) -> tuple[str, ...]:
        """Further ones of gdn-compile: with a decay per channel eps of the norm is an argument, for
        models set it behind the layer's start."""
        return ("--norm-constants",) if self.per_channel else ()

    def options(self) -> Mapping[str, object]:
        """Of gdn.images.find, and as gdn-compile has them."""
        found: dict[str, object] = {
            "io": SHORT_TYPES[self.io],
            "state": SHORT_TYPES.get(self.state, self.state),
            "layout": self.layout,
            "outputs": "norm" if self.has_norm else "core",
        }
        if self.conv_weight not in (None, self.io):
            found["conv_weight"] = SHORT_TYPES[self.conv_weight]
        if self.has_slot_arrays:
            found["verify"] = "none"
        if self.deferred_writes:
            found["deferred_writes"] = self.deferred_writes
            found |= {"pending": "f16"} if self.pending == "float16" else {}
        return found
