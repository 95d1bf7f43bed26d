# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A small model with random weights for serve.py: an embedding, layers of linear attention, and a
head. Projections are products of NumPy, linear attention is gdn's, on a CPU or a GPU."""

import numpy as np

import gdn
from gdn.layers.attention import GDNAttentionMetadataBuilder, GDNLayer, layer_kernels

HK, HV, D, WIDTH, HIDDEN, LAYERS, VOCABULARY = 2, 4, 64, 4, 256, 4, 64
CHANNELS = 2 * HK * D + HV * D
CONFIG = {
    "model_type": "qwen3_5_text",
    "hidden_size": HIDDEN,
    "hidden_act": "silu",
    "num_hidden_layers": LAYERS,
    "linear_num_key_heads": HK,
    "linear_num_value_heads": HV,
    "linear_key_head_dim": D,
    "linear_value_head_dim": D,
    "linear_conv_kernel_dim": WIDTH,
    "rms_norm_eps": 1e-6,
}


def kernels_for(drafts: int, writes: int) -> list[str]:
    """Options of gdn-compile: drafts and steps of any mixture, and states that are written when so
    many tokens are pending."""
    verify = "lazy" if writes else "slots"
    options = [f"--verify={verify}", "--mixed-batch"] if drafts else []
    return options + [f"--defer-writes={writes}"] * (writes > 0)


class Model:
    """Weights on a device, and kernels that `options` of gdn-compile make for states of a type. The
    states are the server's."""

    def __init__(self, runtime: gdn.Runtime, device: gdn.Device, seed: int, state: str, *options):
        target = gdn.targets.run_by(device)[0]
        path = gdn.compile(CONFIG, target, engine="c", io="f32", state=state, options=options)
        self.runtime, self.device = runtime, device
        self.kernels = layer_kernels(device, runtime.image(path))
        self.defers = "commit" in self.kernels  # writes of states
        rng = np.random.default_rng(seed)

        def weight(*shape):
            return (rng.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32)

        # Large beside what layers add: then the model repeats itself, and drafts are right.
        self.embedding = 100 * weight(VOCABULARY, HIDDEN)
        self.head = weight(VOCABULARY, HIDDEN)
        self.inputs = [
            {"qkvz": weight(CHANNELS + HV * D, HIDDEN), "ba": weight(2 * HV, HIDDEN)}
            for _ in range(LAYERS)
        ]
        self.outputs = [weight(HIDDEN, HV * D) for _ in range(LAYERS)]
        self.fixed = {
            "conv_weight": self.put(weight(CHANNELS, WIDTH)),
            # Slow decays: a state remembers a hundred tokens.
            "A_log": self.put(np.full(HV, -4, np.float32)),
            "dt_bias": self.put(np.zeros(HV, np.float32)),
            "norm_weight": self.put(np.ones(D, np.float32)),
        }

    def put(self, array: np.ndarray):
        """An array where the kernels read it."""
        return array if self.device.kind == "cpu" else self.device.array(array)

    def slots_each(self, drafts: int) -> int:
        """Slots of a request: one where drafts stay pending, else one for each token."""
        return 1 if self.defers else 1 + drafts

    def make_pool(self, requests: int, kept: int, drafts: int) -> gdn.StatePool:
        """Slots for the states of requests, and track slots for kept ones, as the kernels take
        them."""
        shape = gdn.StatePoolShape.for_kernels(
            self.kernels,
            num_layers=LAYERS,
            num_requests=requests * self.slots_each(drafts),
            num_key_heads=HK,
            num_value_heads=HV,
            num_track=kept,
            verify_tokens=1 + drafts,
        )
        return gdn.StatePool(self.device, shape)

    def layers(self, pool: gdn.StatePool, builder: GDNAttentionMetadataBuilder) -> list[GDNLayer]:
        """The layers on the states of a pool. GdnError unless they serve the builder's steps."""
        return [
            GDNLayer(self.kernels, builder=builder, pool=pool, layer_idx=index, **self.fixed)
            for index in range(LAYERS)
        ]

    def logits(self, layers: list[GDNLayer], tokens: list[int], metadata) -> np.ndarray:
        """Of a step, [tokens, VOCABULARY]."""
        x = self.embedding[tokens]
        for layer, inputs, output in zip(layers, self.inputs, self.outputs, strict=True):
            normed = x / np.sqrt((x * x).mean(axis=1, keepdims=True) + 1e-6)
            arrays = {name: self.put(normed @ weight.T) for name, weight in inputs.items()}
            core = self.put(np.empty((len(tokens), HV, D), np.float32))
            layer.forward(metadata, **arrays, out=core)
            core = core if self.device.kind == "cpu" else core.numpy()
            x = x + core.reshape(len(tokens), -1) @ output.T
        return x @ self.head.T
