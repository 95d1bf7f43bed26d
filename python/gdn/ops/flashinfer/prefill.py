# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""FlashInfer's prefill."""

import torch
from torch import Tensor

from ...call_options import finite
from ...pool_states import refuse_pool
from ..arguments import check, check_ids, check_starts, refuse_gradients
from ..prefill import delta_prefill
from .states import check_checkpoints, check_states, checkpoints_of, states_of


def chunk_gated_delta_rule(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    g: Tensor | None = None,
    beta: Tensor | None = None,
    scale: float | None = None,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    cu_seqlens: Tensor | None = None,
    use_qk_l2norm_in_kernel: bool = False,
    output: Tensor | None = None,
    output_state: Tensor | None = None,
    state_checkpoints: Tensor | None = None,
    checkpoint_cu_starts: Tensor | None = None,
    checkpoint_every_n_tokens: int = 0,
    use_cp: str | bool = "auto",
    state_indices: Tensor | None = None,
    _cp_chunk_len: int | None = None,
    backend: str = "auto",
    max_seqlen: int | None = None,
    allow_neg_eigval: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """q [T, HQ, K], k [T, HK, K] and v [T, HV, V] of the sequences cu_seqlens [N + 1] to the output
    [T, HO, V], HO = max(HQ, HV), in `output` if it is given. Heads of k (and of v, where q has
    more) are shared. g [T, HO] are decays, not their logarithms, and beta [T, HO] strengths; both
    are 1 if None, and `allow_neg_eigval` says that strengths reach 2.

    States [N, HO, V, K] of f32, bf16 or f16 start with `initial_state`, or with zeros, and end in
    `output_state`. With `state_indices` [N] both are pools [P, HO, V, K], and may be the same one.
    A sequence without tokens leaves its state. What chooses between FlashInfer's kernels is not
    looked at: use_cp, backend, max_seqlen.

    Returns the output, and the states with output_final_state."""
    name = "chunk_gated_delta_rule"
    refuse_pool(name, initial_state=initial_state, output_state=output_state)
    checkpoints = checkpoints_of(
        name, checkpoint_every_n_tokens, state_checkpoints, checkpoint_cu_starts
    )
    refuse_gradients(name, q=q, k=k, v=v)
    check(name, "q", q, (None, None, None))
    for which, tensor in (("k", k), ("v", v)):
        check(name, which, tensor, (q.shape[0], None, None))
    for which, tensor in (("q", q), ("k", k), ("v", v)):
        if tensor.shape[1] < 1:
            raise ValueError(f"{name}: {which}: expected heads, got {list(tensor.shape)}")
    if cu_seqlens is None:
        raise ValueError(f"{name}: cu_seqlens: expected starts of sequences, got None")
    heads, count = max(q.shape[1], v.shape[1]), check_starts(name, "cu_seqlens", cu_seqlens)
    if q.shape[1] % k.shape[1] or heads % q.shape[1] or heads % v.shape[1]:
        raise ValueError(
            f"{name}: k: expected heads that divide those of q, and both those of the output, got"
            f" {q.shape[1]}, {k.shape[1]} and {v.shape[1]} of q, k and v"
        )
    for which, gate in (("g", g), ("beta", beta)):
        check(name, which, gate, (q.shape[0], heads))
    check(name, "output", output, (q.shape[0], heads, v.shape[2]))
    check_ids(name, "state_indices", state_indices, (count,))
    sizes = (heads, v.shape[2], q.shape[2])
    rows = count if state_indices is None else None
    check_states(name, "initial_state", initial_state, (rows, *sizes))
    check_states(name, "output_state", output_state, (rows, *sizes))
    check_checkpoints(name, checkpoints, count, (None, *sizes))
    if output_final_state and output_state is None and state_indices is not None:
        raise ValueError(
            f"{name}: output_state: state_indices need an explicit output_state pool, got None"
        )
    states = states_of(
        (count, *sizes), cu_seqlens, initial_state, output_state, state_indices, output_final_state
    )
    places = (None, None, None)
    kept = states
    if checkpoints is not None:
        states, places = checkpoints.beside(kept)
    out = output
    if out is None or out.dtype != v.dtype:
        out = v.new_empty((q.shape[0], heads, v.shape[2]))
    ones = v.new_ones((q.shape[0], heads), dtype=torch.float32)
    # The smallest number that has a logarithm.
    decay = (ones if g is None else g.float()).clamp_min(torch.finfo(torch.float32).tiny)
    delta_prefill(
        q,
        k.repeat_interleave(q.shape[1] // k.shape[1], 1),
        v.repeat_interleave(heads // v.shape[1], 1),
        decay.log(),
        ones if beta is None else beta,
        states.pool,
        states.slots,
        cu_seqlens,
        states.has_initial,
        *places,
        out,
        finite(f"{name}: scale", scale),
        use_qk_l2norm_in_kernel,
        allow_neg_eigval,
    )
    if checkpoints is not None:
        checkpoints.store(states, kept)
    if output is not None and output is not out:
        out = output.copy_(out)
    return (out, kept.pool) if output_final_state else out
