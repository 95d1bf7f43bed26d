# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A layer's core over steps in float64, row by row and token by token, without any
metadata: what tests of serving compare with. And images of small layers for them."""

import subprocess
from pathlib import Path

import numpy as np

KEY_DIM = VALUE_DIM = 64
WIDTH = 4


def compile_image(tool, folder: Path, *options: str, extra: str = "") -> Path:
    """A layer with heads of 64, on this CPU, in f32; `extra` stands in its configuration."""
    config = folder / "config.json"
    config.write_text(
        '{"model_type": "qwen3_5_text", "hidden_size": 128, "hidden_act": "silu",'
        ' "num_hidden_layers": 4, "linear_num_key_heads": 1,'
        ' "linear_num_value_heads": 2, "linear_key_head_dim": 64,'
        ' "linear_value_head_dim": 64, "linear_conv_kernel_dim": 4,'
        ' "rms_norm_eps": 1e-6' + extra + "}"
    )
    path = folder / f"layer{abs(hash(options))}.gdnk"
    result: subprocess.CompletedProcess = tool(
        "gdn-compile",
        "--config",
        config,
        "--io=f32",
        *([] if any(option.startswith("--state=") for option in options) else ["--state=f32"]),
        *options,
        "--target=native",
        "-o",
        path,
    )
    assert result.returncode == 0, result.stderr
    return path


def make_weights(rng, key_heads: int, value_heads: int) -> dict[str, np.ndarray]:
    channels = 2 * key_heads * KEY_DIM + value_heads * VALUE_DIM
    return {
        "conv_weight": (0.5 * rng.standard_normal((channels, WIDTH))).astype(np.float32),
        "A_log": np.log(rng.uniform(1, 16, value_heads)).astype(np.float32),
        "dt_bias": rng.standard_normal(value_heads).astype(np.float32),
    }


def make_inputs(rng, tokens: int, key_heads: int, value_heads: int) -> dict[str, np.ndarray]:
    """qkv, b and a of a layer with the layout split."""
    channels = 2 * key_heads * KEY_DIM + value_heads * VALUE_DIM
    shapes = {"qkv": (tokens, channels), "b": (tokens, value_heads), "a": (tokens, value_heads)}
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


class CoreModel:
    """States of all slots, in float64."""

    def __init__(self, weights: dict[str, np.ndarray], slots: int):
        self.weights = {name: array.astype(np.float64) for name, array in weights.items()}
        channels, heads = len(weights["conv_weight"]), len(weights["A_log"])
        self.conv = np.zeros((slots, channels, WIDTH - 1))
        self.state = np.zeros((slots, heads, VALUE_DIM, KEY_DIM))

    def row(self, inputs, tokens: slice, start: int | None, slots: list[int]) -> np.ndarray:
        """Runs tokens of one row from slot `start` (None: from zero). With one slot the last
        state goes there, otherwise the state after token t to slots[t]."""
        conv, state = np.zeros_like(self.conv[0]), np.zeros_like(self.state[0])
        if start is not None:
            conv, state = self.conv[start].copy(), self.state[start].copy()
        outputs = []
        for t in range(tokens.start, tokens.stop):
            qkv, b, a = (inputs[n][t].astype(np.float64) for n in ("qkv", "b", "a"))
            window = np.concatenate([conv, qkv[:, None]], axis=1)
            conv = window[:, 1:]
            mixed = (window * self.weights["conv_weight"]).sum(axis=1)
            core, state = self.token(mixed * _sigmoid(mixed), state, a, b)
            outputs.append(core)
            if len(slots) > 1:
                self.conv[slots[t - tokens.start]] = conv
                self.state[slots[t - tokens.start]] = state
        if len(slots) == 1 and outputs:
            self.conv[slots[0]], self.state[slots[0]] = conv, state
        heads = self.state.shape[1]
        return np.array(outputs).reshape(-1, heads, VALUE_DIM)

    def token(self, mixed, state, a, b):
        """One step of the gated delta rule."""
        heads = len(a)
        keys = (len(mixed) - heads * VALUE_DIM) // 2
        q, k, v = np.split(mixed, [keys, 2 * keys])
        q, k = (
            np.repeat(_unit(x.reshape(-1, KEY_DIM)), heads // (keys // KEY_DIM), axis=0)
            for x in (q, k)
        )
        decay = np.exp(
            -np.exp(self.weights["A_log"]) * np.logaddexp(0, a + self.weights["dt_bias"])
        )
        state = state * decay[:, None, None]
        delta = _sigmoid(b)[:, None] * (
            v.reshape(heads, VALUE_DIM) - np.einsum("hvk,hk->hv", state, k)
        )
        state = state + delta[:, :, None] * k[:, None, :]
        return np.einsum("hvk,hk->hv", state, q) / np.sqrt(KEY_DIM), state


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return np.exp(-np.logaddexp(0, -x))


def _unit(x: np.ndarray) -> np.ndarray:
    return x / np.sqrt((x * x).sum(-1, keepdims=True) + 1e-6)


def relative_error(got: np.ndarray, want: np.ndarray) -> float:
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    return float(np.sqrt(((got - want) ** 2).sum() / max((want**2).sum(), 1e-30)))
