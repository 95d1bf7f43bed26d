# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a rank computes between the rounds of a call of gdn.context_parallel: a rule's and a
convolution's."""

from __future__ import annotations

import numpy as np

from .array_library import check_array, library_of
from .conv1d import causal_conv1d
from .exchange import Exchange
from .rule import gated_delta_rule
from .rule_maps import RuleMap, map_bytes, map_of_bytes, on_host, rule_maps
from .runtime import Runtime
from .sequence_parts import Places, Segment, SequenceParts

_FLOATS = ("float32", "bfloat16", "float16")


class _Step:
    """A pool whose slots get states that some rank finds, and that all ranks write."""

    def __init__(self, arrays, pool, parts: SequenceParts):
        self.arrays, self.pool, self.parts = arrays, pool, parts
        self._shape = tuple(int(size) for size in pool.shape[1:])
        self.segments: list[Segment] = []

    def _initial(self, n: int) -> np.ndarray:
        """What sequence n starts from, in f32."""
        if not self.parts.has_initial[n]:
            return np.zeros(self._shape, np.float32)
        return on_host(self.arrays.cast(self.pool[self.parts.slots[n]], "float32"))

    def _array(self, values: np.ndarray, dtype: str):
        """Values of the host in an array of the library."""
        made = self.arrays.empty(values.shape, dtype)
        # A copy: PyTorch warns of memory that cannot be written.
        self.arrays.fill(made, self.arrays.xp.asarray(np.array(values)))
        return made

    def _found(self, after: list[np.ndarray]) -> bytes:
        """The states after this rank's segments that pools get."""
        written = self.parts.written(self.parts.rank)
        return b"".join(np.ascontiguousarray(after[i], np.float32).tobytes() for i, _ in written)

    def write(self, found: list[bytes]) -> None:
        """Writes what each rank found."""
        states = []
        for rank, data in enumerate(found):
            slots = [slot for _, slot in self.parts.written(rank)]
            values = np.frombuffer(data, np.float32).reshape(len(slots), *self._shape)
            states += zip(slots, values, strict=True)
        for slot, state in states:
            made = self._array(state, "float32")
            self.arrays.fill(
                self.pool[slot], self.arrays.cast(made, self.arrays.dtype_of(self.pool))
            )


class RuleStep(_Step):
    """The rule on this rank's tokens: q, k, v, log_decay and beta, [T, H, ..]."""

    def __init__(
        self,
        exchange: Exchange,
        tokens: tuple,
        states,
        cu_seqlens,
        places: Places,
        rule: dict[str, object],
        runtime: Runtime | None,
    ):
        q, _, v, *_ = tokens
        arrays = library_of(q, runtime)
        for name, array, rank in zip(("q", "k", "v"), tokens, (3, 3, 3), strict=False):
            if len(array.shape) != rank:
                raise ValueError(f"{name}: expected the shape [T, H, d], got {list(array.shape)}")
        self._tokens, self._rule, self._runtime = tokens, rule, runtime
        self._check(arrays, states)
        agreed = dict(rule)
        agreed["types"] = [arrays.dtype_of(v), arrays.dtype_of(states)]
        agreed["shapes"] = [list(map(int, x.shape[1:])) for x in (*tokens, states)]
        pool = int(states.shape[0])
        parts = SequenceParts(exchange, int(v.shape[0]), pool, cu_seqlens, places, agreed)
        super().__init__(arrays, states, parts)
        self.out = arrays.zeros(tuple(map(int, v.shape)), arrays.dtype_of(v))
        self._maps: dict[int, RuleMap] = {}
        self._after: dict[int, np.ndarray] = {}

    def _check(self, arrays, states) -> None:
        q, k, v, log_decay, beta = self._tokens
        rows, heads = list(map(int, v.shape[:2]))
        key_heads, key_dim = map(int, q.shape[1:])
        check_array(arrays, "v", v, list(v.shape), _FLOATS)
        for name, array in (("q", q), ("k", k)):
            check_array(arrays, name, array, [rows, key_heads, key_dim], (arrays.dtype_of(v),))
        if key_heads == 0 or heads % key_heads != 0:
            raise ValueError(f"v: expected a multiple of the {key_heads} heads of q, got {heads}")
        decays = [rows, heads, key_dim] if len(log_decay.shape) == 3 else [rows, heads]
        check_array(arrays, "log_decay", log_decay, decays)
        check_array(arrays, "beta", beta, [rows, heads])
        shape = [*states.shape[:1], heads, int(v.shape[2]), key_dim]
        check_array(arrays, "states", states, shape, _FLOATS)

    def of_own_tokens(self, sizes: list[bytes]) -> bytes:
        """The maps of this rank's parts of sequences that go on behind it."""
        self.parts.take(sizes)
        self.segments = self.parts.segments(self.parts.rank)
        first = [i for i, segment in enumerate(self.segments) if segment.is_first]
        self._run(first, [self._initial(self.segments[i].sequence) for i in first])
        for i in first:
            self._maps[i] = RuleMap(None, self._after[i])
        middle = [i for i, p in enumerate(self.segments) if not (p.is_first or p.is_last)]
        if middle:
            options = {name: x for name, x in self._rule.items() if name != "scale"}
            found = rule_maps(*self._rows(middle), runtime=self._runtime, **options)
            self._maps.update(zip(middle, found, strict=True))
        pieces: dict[int, list[int]] = {}
        for i, segment in enumerate(self.segments):
            pieces.setdefault(segment.sequence, []).append(i)
        sent = []
        for n in range(self.parts.count):
            if self.parts.has_map(n, self.parts.rank):
                whole, *later = [self._maps[i] for i in pieces[n]]
                for one in later:
                    whole = whole.then(one)
                sent.append(whole.to_bytes())
        return b"".join(sent)

    def states_inside(self, maps: list[bytes]) -> bytes:
        """Outputs, from the states that the ranks ahead lead to; states that pools get."""
        ahead = [self._read(rank, maps[rank]) for rank in range(self.parts.rank)]
        later, initial = [], []
        state: np.ndarray | None = None
        for i, segment in enumerate(self.segments):
            if i == 0 or segment.sequence != self.segments[i - 1].sequence:
                state = self._initial(segment.sequence)
                for of_rank in ahead:
                    if segment.sequence in of_rank:
                        state = of_rank[segment.sequence].apply(state)
            if not segment.is_first:
                later.append(i)
                initial.append(state)
            if i in self._maps:
                state = self._maps[i].apply(state)
        self._run(later, initial)
        return self._found([self._after[i] for i in range(len(self.segments))])

    def _read(self, rank: int, data: bytes) -> dict[int, RuleMap]:
        """The maps that a rank sent, by sequence."""
        found, start = {}, 0
        for n in range(self.parts.count):
            if self.parts.has_map(n, rank):
                linear = self.parts.ahead(n, rank) > 0
                end = start + map_bytes(*self._shape, linear=linear)
                found[n] = map_of_bytes(data[start:end], *self._shape, linear=linear)
                start = end
        if start != len(data):
            raise ValueError(f"maps of rank {rank}: expected {start} bytes, got {len(data)}")
        return found

    def _rows(self, chosen: list[int]) -> tuple:
        """The tokens of some segments, one behind the other, and where each starts."""
        rows = [slice(self.segments[i].start, self.segments[i].stop) for i in chosen]
        starts = np.cumsum([0, *(one.stop - one.start for one in rows)]).astype(np.int32)
        joined = (self.arrays.xp.concatenate([x[one] for one in rows]) for x in self._tokens)
        return (*joined, self._array(starts, "int32"))

    def _run(self, chosen: list[int], initial: list[np.ndarray]) -> None:
        """Outputs of some segments, and the states after them."""
        if not chosen:
            return
        *tokens, starts = self._rows(chosen)
        out, states = gated_delta_rule(
            *(x[None] for x in tokens),
            initial_state=self._array(np.stack(initial), "float32"),
            cu_seqlens=starts,
            runtime=self._runtime,
            **self._rule,
        )
        start = 0
        for i, state in zip(chosen, on_host(states), strict=True):
            segment = self.segments[i]
            stop = start + segment.stop - segment.start
            self.arrays.fill(self.out[segment.start : segment.stop], out[0, start:stop])
            self._after[i], start = state, stop


class ConvStep(_Step):
    """The convolution of this rank's tokens x [T, D]; the pool has windows [P, D, K - 1]."""

    def __init__(
        self,
        exchange: Exchange,
        x,
        weight,
        states,
        cu_seqlens,
        places: Places,
        options: dict[str, object],
    ):
        arrays = library_of(x, options["runtime"])
        for name, array, rank in (("x", x, 2), ("weight", weight, 2), ("states", states, 3)):
            if len(array.shape) != rank:
                raise ValueError(f"{name}: expected {rank} dimensions, got {list(array.shape)}")
        channels = int(x.shape[1])
        self._width = int(weight.shape[1]) - 1
        check_array(arrays, "x", x, list(x.shape), _FLOATS)
        check_array(arrays, "weight", weight, [channels, self._width + 1], _FLOATS)
        check_array(arrays, "states", states, [*states.shape[:1], channels, self._width], _FLOATS)
        agreed = {
            "windows": [channels, self._width],
            "types": [arrays.dtype_of(x), arrays.dtype_of(states)],
        }
        pool, rows = int(states.shape[0]), int(x.shape[0])
        parts = SequenceParts(exchange, rows, pool, cu_seqlens, places, agreed)
        super().__init__(arrays, states, parts)
        self._x, self._weight, self._options = x, weight, options
        self._starts = cu_seqlens
        self.out = None

    def _inputs(self, start: int, stop: int) -> np.ndarray:
        """The last inputs of some rows, [up to K - 1, D] in f32, in which each is exact."""
        return on_host(self.arrays.cast(self._x[max(start, stop - self._width) : stop], "float32"))

    def of_own_tokens(self, sizes: list[bytes]) -> bytes:
        """The last inputs of this rank's parts of sequences that go on behind it."""
        parts = self.parts
        parts.take(sizes)
        self.segments = parts.segments(parts.rank)
        sent = [self._inputs(*parts.local[n]) for n in self._senders(parts.rank)]
        return b"".join(np.ascontiguousarray(one).tobytes() for one in sent)

    def _senders(self, rank: int) -> list[int]:
        return [n for n in range(self.parts.count) if self.parts.has_map(n, rank)]

    def states_inside(self, tails: list[bytes]) -> bytes:
        """Outputs, and the windows that pools get."""
        ahead = [self._read(rank, tails[rank]) for rank in range(self.parts.rank)]
        before = {}
        for n in {segment.sequence for segment in self.segments}:
            runs = [of_rank[n] for of_rank in ahead if n in of_rank]
            before[n] = np.concatenate([self._initial(n).T, *runs])
        count, channels = self.parts.count, self._shape[0]
        windows = np.zeros((max(count, 1), channels, self._width), np.float32)
        for n, inputs in before.items():
            windows[n] = inputs[len(inputs) - self._width :].T
        slots = np.array([n if n in before else -1 for n in range(count)], np.int32)
        io, pool = (self.arrays.dtype_of(x) for x in (self._x, self.pool))
        self.out = causal_conv1d(
            self._x,
            self._weight,
            # Inputs of other ranks are not rounded to the type of pools.
            self._array(windows, pool if pool == io else "float32"),
            self._array(slots, "int32"),
            cu_seqlens=self._starts,
            **self._options,
        )
        after = []
        for segment in self.segments:
            start = self.parts.local[segment.sequence][0]
            inputs = np.concatenate([before[segment.sequence], self._inputs(start, segment.stop)])
            after.append(inputs[len(inputs) - self._width :].T)
        return self._found(after)

    def _read(self, rank: int, data: bytes) -> dict[int, np.ndarray]:
        """The last inputs that a rank sent, by sequence."""
        found, start = {}, 0
        for n in self._senders(rank):
            rows = min(self.parts.lengths[rank][n], self._width)
            end = start + 4 * rows * self._shape[0]
            found[n] = np.frombuffer(data[start:end], np.float32).reshape(rows, self._shape[0])
            start = end
        if start != len(data):
            raise ValueError(f"inputs of rank {rank}: expected {start} bytes, got {len(data)}")
        return found
