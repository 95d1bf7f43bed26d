# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prefill over ranks for batches whose sizes are known: on the device alone, with one exchange.

    plan = ContextParallel(group).plan(v, states, slots, cu_seqlens)   # once for all layers
    x = plan.causal_conv1d(x, weight, windows)                         # in each
    out = plan.delta_prefill(q, k, v, log_decay, beta, states)

docs/design/20261129-context-entries.md has the algebra, costs and the layout of what travels."""

from __future__ import annotations

from collections import Counter

import numpy as np

from .array_library import array_of, library_of
from .context_windows import PlanConvolution
from .exchange import Exchange, gather_or_fail
from .kernel_calls import call_of
from .map_products import MapProducts, has_products
from .rule_kernels import kind_of, unit_of
from .runtime import Runtime
from .segment_maps import check_tokens, maps_of
from .sequence_parts import Places, SequenceParts

# What segments are multiples of: a chunk.
_CHUNK = 64


class ContextPlan:
    """The sequences of a batch over ranks, and the segments that this rank cuts its tokens into.
    Used by one thread at a time."""

    def __init__(
        self,
        exchange: Exchange,
        v,
        states,
        cu_seqlens,
        places: Places,
        segments: int,
        runtime: Runtime | None,
    ):
        if segments < 1:
            raise ValueError(f"segments: expected at least 1, got {segments}")
        if not hasattr(exchange, "gather_arrays"):
            raise TypeError(
                "group: expected an exchange with gather_arrays, as plans need it, got"
                f" {type(exchange).__name__}"
            )
        self._exchange, self._runtime = exchange, runtime
        self._rows, self._pool = int(v.shape[0]), int(states.shape[0])
        arrays = library_of(v, runtime)
        parts = None

        def sizes() -> bytes:
            nonlocal parts
            agreed = {"shape": [int(size) for size in states.shape[1:]]}
            parts = SequenceParts(exchange, self._rows, self._pool, cu_seqlens, places, agreed)
            return parts.to_bytes()

        known = gather_or_fail(exchange, sizes)
        parts.take(known)
        live = [n for n in range(parts.count) if parts.is_live(n)]
        self._count = len(live)
        self._has_tokens = [any(lengths[n] > 0 for n in live) for lengths in parts.lengths]
        self._cut(arrays, parts, live, segments)
        self._keep_for(parts, live, self._numbers(arrays))
        dk = int(states.shape[3])
        self._identity = array_of(arrays, np.eye(dk), "float32")
        number = self._numbers(arrays)
        self._products_of(parts, live, number)
        self._slots = number([parts.slots[n] for n in live], "int64")
        flags = [float(parts.has_initial[n]) for n in live]
        self._initial = None
        if not all(flags):
            self._initial = array_of(arrays, flags, "float32").reshape(-1, 1, 1, 1)
        written = [i for i, n in enumerate(live) if parts.is_written(n)]
        self._written = number(written, "int64")
        self._targets = number([parts.targets[live[i]] for i in written], "int64")
        sizes_here = self._rows, self._pool
        self._convolution = PlanConvolution(exchange, parts, live, *sizes_here, runtime)

    def _keep_for(self, parts: SequenceParts, live: list[int], number) -> None:
        """Checkpoints: each rank gives as many states as the one that has the most of them."""
        slots = [
            [slot for n in live for _, slot in _kept_of(parts, n, rank)]
            for rank in range(self._exchange.size)
        ]
        written = [parts.targets[n] for n in live if parts.is_written(n)]
        _check_once(written, "write_slots: expected each slot once")
        begins = {(parts.slots[n], n) for n in live if parts.has_initial[n]}
        ends = {(parts.targets[n], n) for n in live if parts.is_written(n)}
        of_others = {slot for slot, n in begins - ends} & {slot for slot, _ in ends}
        if of_others:
            raise ValueError(
                "write_slots: expected slots that no other sequence begins with, got"
                f" {min(of_others)}"
            )
        kept = [slot for own in slots for slot in own]
        _check_once(written + kept, "checkpoint_slots: expected slots that nothing else writes")
        self._most_kept = most = max(map(len, slots))
        self._kept = number(self._stops + [0] * (most - len(self._stops)), "int64")
        places = [rank * most + i for rank, own in enumerate(slots) for i in range(len(own))]
        self._kept_places = number(places, "int64")
        self._kept_slots = number(kept, "int64")

    def _products_of(self, parts: SequenceParts, live: list[int], number) -> None:
        """What entries of an image read of the sequences: their segments here, and slots of the
        pool, with -1 for none."""
        first, counts = [0] * len(live), [0] * len(live)
        for i, owner in reversed(list(enumerate(self._owners))):
            if owner >= 0:
                first[owner] = i
                counts[owner] += 1
        self._runs = number(first, "int32"), number(counts, "int32")
        self._own_rank = number([self._exchange.rank], "int32")
        begins = [parts.slots[n] if parts.has_initial[n] else -1 for n in live]
        ends = [parts.targets[n] if parts.is_written(n) else -1 for n in live]
        self._pool_slots = number(begins, "int32"), number(ends, "int32")

    def _numbers(self, arrays):
        return lambda values, dtype: array_of(arrays, values, dtype)

    def _cut(self, arrays, parts: SequenceParts, live: list[int], segments: int) -> None:
        """Segments of the sequences here, of equal lengths but the last of each. Rows of others are
        segments without a state."""
        total = sum(parts.local[n][1] - parts.local[n][0] for n in live)
        tokens = max(-(-total // (_CHUNK * segments)), 1) * _CHUNK
        starts, slots = [parts.local[0][0] if parts.local else 0], []
        self._rounds: list[list[tuple[int, int]]] = []
        # The segments that end where a state is asked for.
        self._stops: list[int] = []
        place_of = {n: i for i, n in enumerate(live)}
        for n, (begin, end) in enumerate(parts.local):
            if begin == end:
                continue
            if n not in place_of:
                starts.append(end)
                slots.append(-1)
                continue
            shift = begin - parts.ahead(n, parts.rank)
            stops = iter([shift + tokens for tokens, _ in _kept_of(parts, n, parts.rank)])
            at, depth, stop = begin, 0, next(stops, None)
            while at < end:
                at = min(at + tokens, end)
                if stop is not None and stop <= at:
                    at, stop = stop, next(stops, None)
                    self._stops.append(len(slots))
                if depth == len(self._rounds):
                    self._rounds.append([])
                self._rounds[depth].append((place_of[n], len(slots)))
                slots.append(len(slots))
                starts.append(at)
                depth += 1
        number = self._numbers(arrays)
        self._segments = len(slots)
        self._starts, self._places = number(starts, "int32"), number(slots, "int32")
        self._owners = [-1] * len(slots)
        for depth in self._rounds:
            for owner, segment in depth:
                self._owners[segment] = owner
        self._owner = number([max(owner, 0) for owner in self._owners], "int64")
        self._indices = [
            (number([a for a, _ in depth], "int64"), number([b for _, b in depth], "int64"))
            for depth in self._rounds
        ]

    def causal_conv1d(self, x, weight, states, *, bias=None, activation: str = "silu"):
        """As ContextParallel.causal_conv1d of the sequences and checkpoints that the plan is of:
        x [T, D], weight [D, K], and windows states [P, D, K - 1] with as many slots as the plan's.
        Returns y [T, D], and y and windows have the bits of one call without ranks. Nothing waits
        for the device, and a graph can capture it, but for the first call with arrays of some
        shapes and types, which ranks compare on the host.

        That call raises ValueError or CompileError as gdn.conv1d.causal_conv1d does, with an
        ExchangeError on all other ranks. In later calls the others wait for a rank that raises."""
        return self._convolution(x, weight, states, bias, activation)

    def delta_prefill(
        self,
        q,
        k,
        v,
        log_decay,
        beta,
        states,
        *,
        scale: float | None = None,
        l2norm: bool = False,
        allow_neg_eigval: bool = False,
    ):
        """As ContextParallel.delta_prefill of the sequences and checkpoints that the plan is of,
        with states [dv, dk]. Returns out [T, Hv, dv]. Nothing waits for the device, and a graph can
        capture it. With checkpoints there is a second exchange behind the outputs.

        All ranks find the same final states. Raises ValueError for arrays of another batch,
        LookupError where no image has the maps, as for inputs of f32 on a GPU; ExchangeError only
        where the exchange itself fails."""
        arrays = library_of(v, self._runtime)
        check_tokens(arrays, q, k, v, log_decay, beta)
        arrays.check("states", states)
        if int(v.shape[0]) != self._rows or int(states.shape[0]) != self._pool:
            raise ValueError(
                f"v, states: expected {self._rows} rows and {self._pool} slots, those of the plan,"
                f" got {int(v.shape[0])} and {int(states.shape[0])}"
            )
        dk, dv = int(q.shape[2]), int(v.shape[2])
        kind = kind_of(
            dk,
            dv,
            unit=unit_of("prefill", arrays.device),
            io=arrays.dtype_of(v),
            per_channel=len(log_decay.shape) == 3,
            doubled_beta=allow_neg_eigval,
            l2norm=l2norm,
        )
        maps = maps_of(kind, arrays.device, self._runtime)
        if maps is None or (kind.key_dim, kind.value_dim) != (dk, dv):
            raise LookupError(
                f"segment-maps: expected an image with this variant of prefill for {kind.io} and"
                f" heads of {dk} x {dv}, found none"
            )
        gates = (arrays.rows_apart(arrays.cast(x, "float32")) for x in (log_decay, beta))
        tokens = (*(arrays.rows_apart(x) for x in (q, k, v)), *gates)
        out = arrays.empty(tuple(map(int, v.shape)), arrays.dtype_of(v))
        if self._count == 0:
            out[...] = 0
            return out
        kind = kind._replace(maps=True)
        fits = arrays.dtype_of(states) == kind.state and arrays.has_unit_stride(states)
        if fits and has_products(kind, arrays.device, self._runtime):
            pool = self._states(arrays, maps, kind, tokens, states, out)
            self._outputs(arrays, kind, tokens, pool, scale, out)
            self._keep(arrays, pool, states)
            return out
        own, before = self._own_maps(arrays, maps, tokens, out)
        gathered = self._exchange.gather_arrays(own, arrays)
        first, last = self._fold(arrays, gathered, states, dv)
        pool = None
        if self._segments:
            pool = arrays.xp.matmul(first[self._owner], before[:, :, dv:]) + before[:, :, :dv]
        self._outputs(arrays, kind, tokens, pool, scale, out)
        if len(self._targets):
            states[self._targets] = arrays.cast(last[self._written], arrays.dtype_of(states))
        self._keep(arrays, pool, states)
        return out

    def _keep(self, arrays, after, states) -> None:
        """States at checkpoints, to the pools of all ranks; `after` are those behind segments."""
        if self._most_kept == 0:
            return
        if self._segments:
            own = after[self._kept]
        else:
            own = arrays.zeros((self._most_kept, *map(int, states.shape[1:])), "float32")
        gathered = self._exchange.gather_arrays(own, arrays)
        found = gathered.reshape(-1, *map(int, own.shape[1:]))[self._kept_places]
        states[self._kept_slots] = arrays.cast(found, arrays.dtype_of(states))

    def _states(self, arrays, maps, kind, tokens, states, out):
        """The state before each segment, [M, Hv, dv, dk]; the last ones are in the pool then. By
        entries of the image alone."""
        q, _, v, *_ = tokens
        heads, dv, dk = int(v.shape[1]), int(v.shape[2]), int(q.shape[2])
        if self._segments:
            segments = maps(arrays, tokens, self._starts, self._places, out)
        else:
            segments = (arrays.zeros((1, heads, rows, dk), "float32") for rows in (dv, dk))
        products = MapProducts(kind, self._runtime, *self._runs, self._own_rank)
        constant, linear = segments
        own = products.combine(arrays, constant, linear)
        gathered = self._exchange.gather_arrays(own, arrays)
        return products.apply(arrays, gathered, constant, linear, states, *self._pool_slots)

    def _own_maps(self, arrays, maps, tokens, out):
        """H and P of this rank's tokens, [N, Hv, dv + dk, dk], and of those ahead of each of its
        segments, [M, Hv, dv + dk, dk]."""
        q, _, v, *_ = tokens
        heads, dv, dk = int(v.shape[1]), int(v.shape[2]), int(q.shape[2])
        if self._segments == 0:
            return self._unchanged(arrays, self._count, heads, dv), None
        constant, linear = maps(arrays, tokens, self._starts, self._places, out)
        if self._count == 1 and len(self._indices) == self._segments:
            # One sequence and nothing else: no places to look up.
            all_of = arrays.empty((self._segments + 1, heads, dv + dk, dk), "float32")
            all_of[0, :, :dv] = 0
            all_of[0, :, dv:] = self._identity
            all_of[1, :, :dv] = constant[0]
            all_of[1, :, dv:] = linear[0]
            for i in range(1, self._segments):
                arrays.xp.matmul(all_of[i], linear[i], out=all_of[i + 1])
                all_of[i + 1, :, :dv] += constant[i]
            return all_of[self._segments :], all_of[: self._segments]
        own = self._unchanged(arrays, self._count, heads, dv)
        before = self._unchanged(arrays, self._segments, heads, dv)
        for owners, segments in self._indices:
            current = own[owners]
            before[segments] = current
            current = arrays.xp.matmul(current, linear[segments])
            current[:, :, :dv] += constant[segments]
            own[owners] = current
        return own, before

    def _unchanged(self, arrays, count: int, heads: int, dv: int):
        """Maps of no tokens."""
        dk = int(self._identity.shape[0])
        made = arrays.zeros((count, heads, dv + dk, dk), "float32")
        made[:, :, dv:] = self._identity
        return made

    def _fold(self, arrays, gathered, states, dv: int):
        """The states before this rank's tokens and behind all, [N, Hv, dv, dk]."""
        state = arrays.cast(states[self._slots], "float32")
        if self._initial is not None:
            state = arrays.xp.where(self._initial > 0, state, 0 * self._initial)
        first = state
        for rank in range(self._exchange.size):
            if rank == self._exchange.rank:
                first = state
            if self._has_tokens[rank]:
                part = gathered[rank]
                state = arrays.xp.matmul(state, part[:, :, dv:]) + part[:, :, :dv]
        return first, state

    def _outputs(self, arrays, kind, tokens, pool, scale, out) -> None:
        """Outputs from the states before segments, which become those behind them."""
        q = tokens[0]
        dk = int(q.shape[2])
        if self._segments == 0:
            out[...] = 0
            return
        call = call_of(
            kind,
            "prefill",
            arrays.device,
            arrays.stream,
            self._runtime,
            capturing=arrays.capturing,
        )
        factor = 1.0 if scale is None else scale * dk**0.5
        names = ("q", "k", "v", "log_decay", "beta")
        given = dict(zip(names, tokens, strict=True))
        is_scaled = abs(factor - 1) > 1e-9
        if is_scaled and not kind.l2norm:
            given["q"] = arrays.cast(q * factor, kind.io)
        given |= {
            "cu_seqlens": self._starts,
            "slots": self._places,
            "write_slots": self._places,
            "has_initial": arrays.flags(self._segments, True),
            "state_pool": pool,
            "core": out,
        }
        call(**{name: given[name] for name in call.names if name in given})
        if is_scaled and kind.l2norm:
            arrays.fill(out, arrays.cast(out * factor, kind.io))


def _check_once(slots: list[int], expected: str) -> None:
    """ValueError if a slot occurs twice."""
    for slot, count in sorted(Counter(slots).items()):
        if count > 1:
            raise ValueError(f"{expected}, got {slot} {count} times")


def _kept_of(parts: SequenceParts, n: int, rank: int) -> list[tuple[int, int]]:
    """The checkpoints of a sequence in the part of a rank."""
    before = parts.ahead(n, rank)
    behind = before + parts.lengths[rank][n]
    return [one for one in parts.checkpoints(n) if before < one[0] <= behind]
