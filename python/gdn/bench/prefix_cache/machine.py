# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How long one step of a model takes on one GPU: measured times of the gated delta networks, and a
roofline of everything else.

The network layers are measured (`runtime/bench/results`, prefill and decode on an H200). Products
with weights, attention and copies are bounds of arithmetic and memory, at a part of what the same
records measured for a product and for a copy on that device.
"""

from __future__ import annotations

import bisect
import json
from dataclasses import dataclass
from pathlib import Path

#: Parts of the measured ceilings that products with weights, attention, and passes over memory get.
PRODUCTS, ATTENTION, MEMORY = 0.7, 0.5, 0.8
#: Bytes a second between the GPU and pinned host memory, in each direction: PCIe 5 x16, 80 % of 64.
HOST_BYTES_PER_SECOND = 51e9
#: Bytes of an H200 for states and for keys and values: 141 GB less weights and work space.
GPU_BYTES = 100e9
#: Host work and launches of a step, seconds.
STEP_OVERHEAD = 1e-3


@dataclass(frozen=True)
class Model:
    """Sizes of a model of the preset `qwen3.5-9b`; those of attention and of the MLP are from its
    published configuration."""

    name: str = "qwen3.5-9b"
    hidden: int = 4096
    layers: int = 32
    gdn_layers: int = 24
    key_heads: int = 16
    value_heads: int = 32
    head_dim: int = 128
    conv_width: int = 4
    attention_heads: int = 16
    kv_heads: int = 4
    attention_dim: int = 256
    intermediate: int = 12288
    vocabulary: int = 248320

    @property
    def attention_layers(self) -> int:
        return self.layers - self.gdn_layers

    @property
    def weights(self) -> int:
        """Of all layers, without the embedding and the head."""
        keys, values = self.key_heads * self.head_dim, self.value_heads * self.head_dim
        gdn = self.hidden * (2 * keys + 2 * values + 2 * self.value_heads) + values * self.hidden
        heads = self.attention_heads * self.attention_dim  # with as many for the gate
        kv = 2 * self.kv_heads * self.attention_dim
        attention = self.hidden * (2 * heads + kv) + heads * self.hidden
        mlp = 3 * self.hidden * self.intermediate
        return self.layers * mlp + self.gdn_layers * gdn + self.attention_layers * attention

    @property
    def state_bytes(self) -> int:
        """Of one checkpoint: f32 states and bf16 windows of all layers."""
        state = self.value_heads * self.head_dim * self.head_dim * 4
        channels = (2 * self.key_heads + self.value_heads) * self.head_dim
        return self.gdn_layers * (state + channels * (self.conv_width - 1) * 2)

    @property
    def kv_bytes(self) -> int:
        """Of one token: bf16 keys and values of all attention layers."""
        return self.attention_layers * 2 * self.kv_heads * self.attention_dim * 2


class Curve:
    """Measured microseconds over a size: linear between sizes, in proportion above the largest.
    Below the smallest, the line through the two smallest, not under half the smallest's time."""

    def __init__(self, points: dict[int, float]):
        if len(points) < 2:
            raise ValueError(f"curve: expected two or more points, got {len(points)}")
        self.sizes = sorted(points)
        self.times = [points[size] for size in self.sizes]

    def __call__(self, size: float) -> float:
        sizes, times = self.sizes, self.times
        if size >= sizes[-1]:
            return times[-1] * size / sizes[-1]
        upper = max(1, bisect.bisect_right(sizes, size))
        slope = (times[upper] - times[upper - 1]) / (sizes[upper] - sizes[upper - 1])
        return max(times[upper - 1] + slope * (size - sizes[upper - 1]), times[0] / 2)


def _curve(rows: list[dict], suite: str, size: str, model: Model, fits) -> Curve:
    points = {
        row["config"][size]: row["us"]
        for row in rows
        if row["suite"] == suite
        and row["impl"] == "gdn"
        and (row["config"]["Hk"], row["config"]["Hv"]) == (model.key_heads, model.value_heads)
        and row["config"]["state"] == "float32"
        and fits(row["config"])
    }
    return Curve(points)


class Machine:
    """Times of steps, seconds, of a model on the device of the records."""

    def __init__(self, results: Path, model: Model | None = None):
        self.model = model or Model()
        prefill = json.loads((results / "prefill-h200.json").read_text())
        decode = json.loads((results / "decode-h200.json").read_text())
        self.device = prefill["device"]
        self.sources = ["prefill-h200.json", "decode-h200.json"]
        self.flops = prefill["ceilings"]["matmul_TFLOPs"] * 1e12
        self.bandwidth = prefill["ceilings"]["copy_TBps"] * 1e12
        self.prefill_us = _curve(
            prefill["rows"],
            "prefill",
            "T",
            self.model,
            lambda c: c.get("set", "").startswith("1x") and "part" not in c,
        )
        self.decode_us = _curve(
            decode["rows"],
            "decode",
            "N",
            self.model,
            lambda c: c["T"] == 1 and c["part"] == "step" and c["variant"] == "aligned pdl",
        )
        m = self.model
        self._weight_seconds = 2 * m.weights / (MEMORY * self.bandwidth)
        self._token_seconds = 2 * m.weights / (PRODUCTS * self.flops)
        self._head_seconds = 2 * m.hidden * m.vocabulary / (MEMORY * self.bandwidth)
        pairs = 4 * m.attention_heads * m.attention_dim * m.attention_layers
        self._pair_seconds = pairs / (ATTENTION * self.flops)
        self._kv_seconds = m.kv_bytes / (MEMORY * self.bandwidth)
        self._decode = [0.0] + [
            m.gdn_layers * self.decode_us(rows) * 1e-6 for rows in range(1, 1025)
        ]

    def step(self, pieces: list[tuple[int, int]], rows: int, context: float) -> float:
        """Seconds of a step with pieces of prompts (first token, tokens) and `rows` sequences that
        decode one token each, behind `context` tokens together."""
        tokens = rows
        seconds = STEP_OVERHEAD + self._head_seconds + self._kv_seconds * context
        if rows:
            seconds += self._decode[rows]
        if pieces:
            together = 0
            for first, count in pieces:
                together += count
                seconds += self._pair_seconds * count * (first + count / 2)
            tokens += together
            seconds += self.model.gdn_layers * self.prefill_us(together) * 1e-6
        return seconds + max(self._weight_seconds, self._token_seconds * tokens)

    def moved(self, passes: int) -> float:
        """Seconds of so many passes over a state: a copy within the GPU reads it and writes it. The
        bandwidth of a copy counts both."""
        return passes * self.model.state_bytes / self.bandwidth

    def from_host(self, bytes_moved: float) -> float:
        return bytes_moved / HOST_BYTES_PER_SECOND
