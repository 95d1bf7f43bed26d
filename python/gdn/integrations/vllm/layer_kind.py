# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a layer of vLLM asks of kernels, and why there are none for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ... import layer_kernels
from ...kernel_calls import SHORT_TYPES
from ...rule_kernels import unit_of

#: The most tokens of a sequence with drafts.
MOST_VERIFIED = 8
#: What `--additional-config` would say about a pool that gdn makes.
POOL_OPTIONS = ("gdn_deferred_writes", "gdn_state")


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
    """interleaved or flat, of the projections in one array each; split if they come apart"""
    io: str
    conv_state: str
    state: str
    norm_weight: str
    num_speculative_tokens: int = 0
    cache_mode: str = "none"
    replays: bool = False
    """ReplaySSM, which keeps inputs in place of states"""
    rounds_at_random: bool = False
    pool_options: tuple[tuple[str, object], ...] = ()
    """Of POOL_OPTIONS, those that the user has set"""

    @property
    def has_norm(self) -> bool:
        return self.layout != "split"

    @property
    def copies_windows(self) -> bool:
        """Whether the engine copies windows of sequences with drafts to other blocks."""
        return self.num_speculative_tokens > 0 and self.cache_mode != "none"

    def find_refusal(self) -> str | None:
        """Why there is no kernel for the layer, or None."""
        drafts = self.num_speculative_tokens
        for name, value in self.pool_options:
            return (
                f"additional_config: {name}: expected none, for vLLM makes the pool of states,"
                f" which has no memory for pending tokens or planes, found {value!r}"
            )
        checks = [
            ("platform", "cuda", self.platform),
            ("activation", "silu", self.activation),
            ("conv_state", self.io, self.conv_state),
            ("use_replayssm", False, self.replays),
            ("enable_stochastic_rounding", False, self.rounds_at_random),
        ]
        if self.has_norm:
            checks.append(("norm.weight", self.io, self.norm_weight))
        for name, wanted, found in checks:
            if wanted != found:
                return f"{name}: expected {wanted}, found {found}"
        for name, dtype in (("dtype", self.io), ("mamba_ssm_cache_dtype", self.state)):
            if dtype not in SHORT_TYPES:
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
        return None

    def config(self) -> dict[str, object]:
        """A configuration of layers of this kind. Numbers of heads are symbols of an image."""
        sizes = (self.key_dim, self.value_dim, self.conv_width)
        kind = layer_kernels.LayerKind(
            self.layout, *sizes, self.norm_eps, self.gate, self.io, self.state
        )
        return kind.config()

    def options(self) -> Mapping[str, str]:
        """Of gdn-compile, and of gdn.images.find."""
        return {
            "io": SHORT_TYPES[self.io],
            "state": SHORT_TYPES[self.state],
            "layout": self.layout,
            "outputs": "norm" if self.has_norm else "core",
        }
