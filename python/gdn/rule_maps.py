# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The affine map of a run of tokens under the gated delta rule: S_out = S_in P + H.

Both parts come from prefill itself: the rule is linear in the state and the values together, so H
is the state after the tokens from a state of zeros, and P that from the identity with values of
zeros. Each row of a state goes its own way, so P is in further value heads of the same launch."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .array_library import check_starts, library_of
from .rule import gated_delta_rule
from .rule_kernels import kind_of, unit_of
from .segment_maps import check_tokens, maps_of


class RuleMap(NamedTuple):
    """Of one sequence, in f32: H [Hv, dv, dk], and P [Hv, dk, dk], or None for a map whose result
    does not depend on the state before it."""

    linear: np.ndarray | None
    constant: np.ndarray

    def apply(self, state: np.ndarray) -> np.ndarray:
        """The state after the tokens, [Hv, dv, dk] of f32. Products are summed in f64."""
        if self.linear is None:
            return self.constant
        product = np.matmul(state.astype(np.float64), self.linear.astype(np.float64))
        return (product + self.constant).astype(np.float32)

    def then(self, later: RuleMap) -> RuleMap:
        """The map of these tokens and those of `later` behind them."""
        if later.linear is None:
            return later
        if self.linear is None:
            return RuleMap(None, later.apply(self.constant))
        moved = np.matmul(self.linear.astype(np.float64), later.linear.astype(np.float64))
        return RuleMap(moved.astype(np.float32), later.apply(self.constant))

    def to_bytes(self) -> bytes:
        parts = [self.constant] if self.linear is None else [self.constant, self.linear]
        return b"".join(np.ascontiguousarray(part, np.float32).tobytes() for part in parts)


def map_bytes(heads: int, value_dim: int, key_dim: int, *, linear: bool) -> int:
    """Bytes of a map in to_bytes."""
    return 4 * heads * key_dim * (value_dim + (key_dim if linear else 0))


def map_of_bytes(data: bytes, heads: int, value_dim: int, key_dim: int, *, linear: bool) -> RuleMap:
    """The map that to_bytes wrote. Raises ValueError for another number of bytes."""
    if len(data) != (size := map_bytes(heads, value_dim, key_dim, linear=linear)):
        raise ValueError(f"map: expected {size} bytes, got {len(data)}")
    values = np.frombuffer(data, np.float32)
    split = heads * value_dim * key_dim
    constant = values[:split].reshape(heads, value_dim, key_dim)
    return RuleMap(values[split:].reshape(heads, key_dim, key_dim) if linear else None, constant)


def rule_maps(q, k, v, log_decay, beta, cu_seqlens, **options) -> list[RuleMap]:
    """The maps of N sequences. The arrays are those of gdn.rule.gated_delta_rule without the
    dimension B, [T, H, d] and [T, Hv, ..]; `options` are its own: `l2norm`, `allow_neg_eigval` and
    `runtime`. One launch: of the variant `segment-maps`, where an image has it, or of
    1 + ceil(dk / dv) times the value heads. Raises as it does."""
    arrays = library_of(q, options.get("runtime"))
    key_dim = int(q.shape[2])
    tokens, heads, value_dim = map(int, v.shape)
    count = int(cu_seqlens.shape[0]) - 1
    if (found := _by_variant(arrays, (q, k, v, log_decay, beta), cu_seqlens, options)) is not None:
        return found
    blocks = -(-key_dim // value_dim)
    copies = 1 + blocks
    wide = arrays.zeros((tokens, heads, copies, value_dim), arrays.dtype_of(v))
    arrays.fill(wide[:, :, 0], v)
    given = [_repeated(arrays, gate, copies) for gate in (log_decay, beta)]
    one = np.zeros((copies, value_dim, key_dim), np.float32)
    one[1:].reshape(blocks * value_dim, key_dim)[:key_dim] = np.eye(key_dim)
    initial = arrays.empty((count, heads, copies, value_dim, key_dim), "float32")
    arrays.fill(initial, arrays.xp.asarray(one))
    _, states = gated_delta_rule(
        q[None],
        k[None],
        wide.reshape(1, tokens, heads * copies, value_dim),
        *(gate[None] for gate in given),
        initial_state=initial.reshape(count, heads * copies, value_dim, key_dim),
        cu_seqlens=cu_seqlens,
        **options,
    )
    states = on_host(states).reshape(count, heads, copies, value_dim, key_dim)
    linear = states[:, :, 1:].reshape(count, heads, blocks * value_dim, key_dim)[:, :, :key_dim]
    return [RuleMap(p, h) for p, h in zip(linear, states[:, :, 0], strict=True)]


def _by_variant(arrays, tokens: tuple, cu_seqlens, options: dict) -> list[RuleMap] | None:
    """The maps by a variant of their own, or None where there is none for these arrays."""
    q, _, v, log_decay, beta = tokens
    kind = kind_of(
        int(q.shape[2]),
        int(v.shape[2]),
        unit=unit_of("prefill", arrays.device),
        io=arrays.dtype_of(v),
        per_channel=len(log_decay.shape) == 3,
        doubled_beta=bool(options.get("allow_neg_eigval")),
        l2norm=bool(options.get("l2norm")),
    )
    maps = maps_of(kind, arrays.device, options.get("runtime"))
    if maps is None or (kind.key_dim, kind.value_dim) != (int(q.shape[2]), int(v.shape[2])):
        return None
    check_tokens(arrays, *tokens)
    check_starts(arrays, cu_seqlens, int(v.shape[0]))
    gates = (arrays.cast(x, "float32") for x in (log_decay, beta))
    places = arrays.numbers(range(int(cu_seqlens.shape[0]) - 1), "int32")
    starts = arrays.ids(cu_seqlens)
    rows = tuple(arrays.rows_apart(x) for x in (*tokens[:3], *gates))
    out = arrays.empty(tuple(map(int, v.shape)), arrays.dtype_of(v))
    constant, linear = map(on_host, maps(arrays, rows, starts, places, out))
    return [RuleMap(p.copy(), h.copy()) for p, h in zip(linear, constant, strict=True)]


def on_host(array) -> np.ndarray:
    """An array of f32 or of integers, in memory of the host."""
    return array if isinstance(array, np.ndarray) else array.detach().cpu().numpy()


def _repeated(arrays, gate, copies: int):
    """[T, Hv, ..] with each head `copies` times."""
    shape = list(map(int, gate.shape))
    wide = arrays.empty([*shape[:2], copies, *shape[2:]], arrays.dtype_of(gate))
    arrays.fill(wide, gate[:, :, None])
    return wide.reshape(shape[0], shape[1] * copies, *shape[2:])
