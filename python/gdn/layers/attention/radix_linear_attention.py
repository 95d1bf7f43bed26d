# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a backend has to know of a layer of linear attention."""


class RadixLinearAttention:
    """Sizes of one rank and references to weights: conv_weight [D, K], A_log and dt_bias
    [num_v_heads]. `gdn_layer_idx` counts the linear layers alone and is that of the pool."""

    def __init__(
        self,
        layer_id: int,
        gdn_layer_idx: int,
        num_k_heads: int,
        num_v_heads: int,
        head_k_dim: int,
        head_v_dim: int,
        conv_weight,
        A_log,  # noqa: N803, the name of the weight
        dt_bias,
    ):
        self.layer_id = layer_id
        self.gdn_layer_idx = gdn_layer_idx
        self.num_k_heads = num_k_heads
        self.num_v_heads = num_v_heads
        self.head_k_dim = head_k_dim
        self.head_v_dim = head_v_dim
        self.key_dim = num_k_heads * head_k_dim
        self.value_dim = num_v_heads * head_v_dim
        self.conv_weight = conv_weight
        self.A_log = A_log
        self.dt_bias = dt_bias

    def forward(self, forward_batch, mixed_qkv, a, b):
        """[T, value_dim], by the batch's backend."""
        return forward_batch.attn_backend.forward_gdn(
            layer=self, forward_batch=forward_batch, mixed_qkv=mixed_qkv, a=a, b=b
        )

    __call__ = forward
