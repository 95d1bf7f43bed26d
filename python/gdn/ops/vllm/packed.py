# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""vLLM's decode of projections that are packed."""

from torch import Tensor

from ...call_options import finite
from ...pool_states import refuse_pool
from ..arguments import check, refuse_gradients
from ..step import gated_delta_step


def fused_recurrent_gated_delta_rule_packed_decode(
    mixed_qkv: Tensor,
    a: Tensor,
    b: Tensor,
    A_log: Tensor,
    dt_bias: Tensor,
    scale: float,
    initial_state: Tensor,
    out: Tensor,
    ssm_state_indices: Tensor,
    use_qk_l2norm_in_kernel: bool = False,
) -> tuple[Tensor, Tensor]:
    """A token of each of N sequences: mixed_qkv [N, 2 * H * K + HV * V] has q, k and v behind each
    other, and may be a view of a larger array; a and b [N, HV]. States `initial_state`
    [slots, HV, V, K] are changed in place at `ssm_state_indices` [N]; `out` [N, 1, HV, V] gets the
    results. Sequences of slot 0, vLLM's null slot, or of a negative one give zeros.

    Returns `out` and the states."""
    name = "fused_recurrent_gated_delta_rule_packed_decode"
    refuse_pool(name, initial_state=initial_state)
    refuse_gradients(name, mixed_qkv=mixed_qkv, a=a, b=b)
    check(name, "initial_state", initial_state, (None, None, None, None))
    check(name, "mixed_qkv", mixed_qkv, (None, None))
    value_heads, value_dim, key_dim = initial_state.shape[1:]
    count, channels = mixed_qkv.shape
    keys = channels - value_heads * value_dim
    if keys <= 0 or key_dim == 0 or keys % (2 * key_dim):
        raise ValueError(
            f"{name}: mixed_qkv: expected q and k of heads of {key_dim}, and {value_heads} heads of"
            f" v of {value_dim}, got {channels} channels"
        )
    check(name, "out", out, (count, 1, value_heads, value_dim))
    heads = keys // (2 * key_dim)
    q, k, v = mixed_qkv.split([keys // 2, keys // 2, value_heads * value_dim], dim=1)
    gated_delta_step(
        q.unflatten(1, (heads, key_dim)),
        k.unflatten(1, (heads, key_dim)),
        v.unflatten(1, (value_heads, value_dim)),
        a,
        b,
        A_log,
        dt_bias,
        initial_state,
        ssm_state_indices,
        None,
        out[:, 0],
        finite(f"{name}: scale", scale),
        use_qk_l2norm_in_kernel,
        0,
    )
    return out, initial_state
