# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A step of vLLM's layer of Kimi-Linear for gdn.bench.vllm_layer: 32 heads of 128 of one rank, with
the class's types. Its projections in bf16 give q, k, v and the strength in one row, and both gates
in rows of their own; weights of the convolution are f32.
"""

from functools import partial

import numpy as np
import torch

from .. import reference
from .vllm_case import Case, errors, float64_of, states
from .vllm_setup import Sizes, make_kda_layer, make_kda_weights

HEADS, DIM = 32, 128


class KdaCase(Case):
    #: Heads that are held against float64, which takes milliseconds for a token of few.
    heads = (0, HEADS - 1)

    def sizes_of(self, drafts: int) -> Sizes:
        return Sizes(HEADS, HEADS, DIM, DIM, drafts)

    def draw(self, normal) -> None:
        self.weights = make_kda_weights(self.sizes, self.device)
        width = self.sizes.channels
        # What makes the raw gates of the decay lies behind the strength.
        self.row = normal(width + HEADS + DIM)
        self.qkv, self.beta = self.row[:, :width], self.row[:, width : width + HEADS]
        self.decay, self.gate = (normal(HEADS * DIM).view(-1, HEADS, DIM) for _ in range(2))
        self.wanted: dict[int, dict[str, np.ndarray]] = {}

    @property
    def projected(self) -> torch.Tensor:
        return self.row

    def errors(self, before, pools, out) -> dict[str, float]:
        expected = KdaCase.expected
        return errors(self, before, pools, out, expected=expected, heads=list(self.heads))

    def expected(self, before, first: int, tokens: slice, known: int) -> dict[str, np.ndarray]:
        """Of some heads, in float64. Both implementations begin with the same numbers, so each
        sequence is evaluated once."""
        if first not in self.wanted:
            self.wanted[first] = self._evaluate(before, first, tokens, known)
        return self.wanted[first]

    def _evaluate(self, before, first: int, tokens: slice, known: int) -> dict[str, np.ndarray]:
        host = {name: float64_of(x) for name, x in self.weights.items()}
        heads, count = list(self.heads), tokens.stop - tokens.start
        parts = float64_of(self.qkv[tokens]).reshape(count, 3, HEADS, DIM)[:, :, heads]
        taps = host["conv"].reshape(3, HEADS, DIM, -1)[:, heads]
        window = float64_of(before[0][[0, first], :3].transpose(1, 2))
        window = window.reshape(2, 3, HEADS, DIM, -1)[:, :, heads]
        given = dict(zip("qkv", parts.swapaxes(0, 1), strict=True))
        given |= {
            "z": float64_of(self.gate[tokens])[:, heads],
            "b": float64_of(self.beta[tokens])[:, heads],
            "a": float64_of(self.decay[tokens])[:, heads],
            "conv_weight": taps.reshape(-1, taps.shape[-1]),
            "A_log": host["A_log"][heads],
            "dt_bias": host["dt_bias"].reshape(HEADS, DIM)[heads],
            "norm_weight": host["norm"],
            "conv_pool": window.reshape(2, -1, window.shape[-1]),
            "state_pool": states(self, before, [0, first])["state_pool"][:, heads],
            "slots": np.array([1]),
            "cu_seqlens": np.array([0, count]),
            "has_initial": np.array([known > 0]),
        }
        constants = {"norm_eps": 1e-5, "decay_bound": self.form.decay_bound}
        return reference.evaluate(
            reference.Layer("separate", DIM, DIM, "sigmoid", **constants), given
        )

    def makers(self, kernels):
        return {"gdn": partial(gdn_call, self, kernels), "vllm": partial(vllm_call, self)}


def _step_of(layer, case: KdaCase, out):
    """What the layer's forward hands to its core."""
    beta, gates = case.beta.unsqueeze(0), (case.decay.unsqueeze(0), case.gate)
    return partial(layer._forward, case.qkv, *gates, beta, out.unsqueeze(0))


def gdn_call(case: KdaCase, kernels, pools, out):
    """A step of gdn's layer."""
    from ..integrations.vllm.kda_layer import GdnKimiGatedDeltaNetAttention

    given = case.sizes, case.weights, pools, kernels, case.form.decay_bound
    return _step_of(make_kda_layer(GdnKimiGatedDeltaNetAttention, *given), case, out)


def vllm_call(case: KdaCase, pools, out):
    """The same of vLLM's, with the norm in its Triton kernel."""
    from vllm.model_executor.layers.mamba.gdn.kimi_gdn_linear_attn import (
        KimiGatedDeltaNetAttention,
    )

    given = case.sizes, case.weights, pools, None, case.form.decay_bound
    layer = make_kda_layer(KimiGatedDeltaNetAttention, *given)
    return _step_of(layer, case, out)
