# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""vLLM's preparation of the rule's inputs."""

from torch import Tensor

from ..arguments import check, refuse_gradients
from ..prep import post_conv_prep


def fused_post_conv_prep(
    conv_output: Tensor,
    a: Tensor,
    b: Tensor,
    A_log: Tensor,
    dt_bias: Tensor,
    num_k_heads: int,
    head_k_dim: int,
    head_v_dim: int,
    apply_l2norm: bool = True,
    output_g_exp: bool = False,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """vLLM's: conv_output [T, 2 * H * K + HV * V], a and b [T, HV], A_log and dt_bias [HV] to
    contiguous q and k [T, H, K] and v [T, HV, V] in its type, and g and beta [T, HV] in f32: the
    logarithm of the decay, or the decay with `output_g_exp`, and the strength. With `apply_l2norm`
    q and k get unit length."""
    name = "fused_post_conv_prep"
    refuse_gradients(name, conv_output=conv_output, a=a, b=b)
    check(name, "conv_output", conv_output, (None, None))
    check(name, "A_log", A_log, (None,))
    tokens, value_heads = conv_output.shape[0], A_log.shape[0]
    channels = 2 * num_k_heads * head_k_dim + value_heads * head_v_dim
    check(name, "conv_output", conv_output, (None, channels))
    check(name, "a", a, (tokens, value_heads))
    check(name, "b", b, (tokens, value_heads))
    check(name, "dt_bias", dt_bias, (value_heads,))
    return post_conv_prep(
        conv_output, a, b, A_log, dt_bias, num_k_heads, head_k_dim, apply_l2norm, output_g_exp
    )
