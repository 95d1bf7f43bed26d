# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which image has the kernels of a whole layer: convolution, gates, rule and norm behind one
call."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from .find_or_compile import find_or_compile
from .kernel_calls import SHORT_TYPES
from .model_config import OLMO_NORM_EPS
from .runtime import Device

#: What entries take of a layer's projections, in order, by the layout.
PROJECTIONS = {
    "interleaved": ("qkvz", "ba"),
    "split": ("qkv", "z", "b", "a"),
    "separate": ("q", "k", "v", "z", "b", "a"),
}


class LayerKind(NamedTuple):
    """What an image of layers is for. Its entries give what is behind the norm."""

    layout: str
    key_dim: int
    value_dim: int
    conv_width: int
    norm_eps: float
    gate: str
    io: str
    state: str = "float32"
    per_channel: bool = False
    doubled_beta: bool = False
    decay_bound: float | None = None
    conv: str | None = None  # type of the convolution's weights, if it is not that of `io`

    @property
    def types(self) -> tuple[str, ...]:
        return self.io, self.state

    def image_path(self, device: Device) -> Path:
        is_own = self.conv not in (None, self.io)
        return find_or_compile(
            self.config(),
            device,
            engine="c",
            io=SHORT_TYPES[self.io],
            state=SHORT_TYPES[self.state],
            layout=self.layout,
            outputs="norm",
            conv_weight=SHORT_TYPES[self.conv] if is_own else None,
        )

    def config(self) -> dict[str, object]:
        """A configuration of layers of this kind. Numbers of heads are symbols of an image. Raises
        ValueError for a kind that no model has."""
        common = {"num_hidden_layers": 1, "hidden_size": 1024, "rms_norm_eps": self.norm_eps}
        if self.per_channel:
            self._expect("layout", "separate", self.layout)
            self._expect("gate", "sigmoid", self.gate)
            self._expect("doubled_beta", False, self.doubled_beta)
            self._expect("value_dim", self.key_dim, self.value_dim)
            heads = {
                "num_heads": 2,
                "head_dim": self.key_dim,
                "short_conv_kernel_size": self.conv_width,
                "gate_lower_bound": self.decay_bound,
            }
            return common | {"model_type": "kimi_linear", "linear_attn_config": heads}
        self._expect("decay_bound", None, self.decay_bound)
        sizes = {
            "linear_num_key_heads": 2,
            "linear_num_value_heads": 2,
            "linear_key_head_dim": self.key_dim,
            "linear_value_head_dim": self.value_dim,
            "linear_conv_kernel_dim": self.conv_width,
            "hidden_act": "silu",
        }
        if self.layout == "separate":
            self._expect("norm_eps", OLMO_NORM_EPS, self.norm_eps)
            self._expect("gate", "silu", self.gate)
            doubled = {"linear_allow_neg_eigval": self.doubled_beta}
            return common | sizes | {"model_type": "olmo_hybrid"} | doubled
        self._expect("doubled_beta", False, self.doubled_beta)
        model_type = "qwen3_next" if self.layout == "interleaved" else "qwen3_5_text"
        return common | sizes | {"model_type": model_type, "output_gate_type": self.gate}

    def _expect(self, name: str, expected: object, found: object) -> None:
        if found != expected:
            decay = "a decay of each channel" if self.per_channel else "a decay of each head"
            raise ValueError(
                f"{name}: expected {expected!r} for layers with {decay} and the layout"
                f" {self.layout}, got {found!r}"
            )
