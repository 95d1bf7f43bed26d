# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The convolution of a plan over ranks: which inputs travel, in one exchange on the device, and the
windows that follow of them, those before this rank's tokens and those that pools get.
docs/design/20261129-context-entries.md#the-convolution-of-a-plan has the layout."""

from __future__ import annotations

import json
from bisect import bisect_right
from itertools import accumulate

from .array_library import array_of, library_of
from .conv1d import causal_conv1d, conv_kind
from .exchange import Exchange, gather_or_fail
from .kernel_calls import call_of
from .op_kernels import ConvKind
from .runtime import Runtime
from .sequence_parts import SequenceParts, check_agreed


class WindowPlaces:
    """Windows of `width` = K - 1 inputs, known from the sizes of a batch. Each rank gives the
    inputs that some window has, as many as the rank with the most of them; a window is then rows of
    what all gave, of windows of the pool, and zeros."""

    def __init__(self, arrays, parts: SequenceParts, live: list[int], width: int):
        ranks, own = range(parts.size), parts.rank
        bounds = {n: [0, *accumulate(lengths[n] for lengths in parts.lengths)] for n in live}
        before = [[(n, bounds[n][r]) for n in live if parts.lengths[r][n] > 0] for r in ranks]
        kept, targets = [], []
        for n in live:
            written = parts.checkpoints(n)
            if parts.is_written(n):
                written.append((bounds[n][-1], parts.targets[n]))
            kept += [(n, end) for end, _ in written]
            targets += [slot for _, slot in written]
        # The place of an input in what its rank gives, by sequence and token.
        sent: list[dict[tuple[int, int], int]] = [{} for _ in ranks]

        def rank_of(n: int, token: int) -> int:
            return bisect_right(bounds[n], token) - 1

        for windows in (*before, kept):
            for n, end in windows:
                for token in range(max(end - width, 0), end):
                    of_rank = sent[rank_of(n, token)]
                    of_rank.setdefault((n, token), len(of_rank))
        self._most = most = max(map(len, sent))
        found = before[own] + kept
        short = {n for n, end in found if end < width}
        begins = [n for n in live if n in short and parts.has_initial[n]]
        first = {n: parts.size * most + i * width for i, n in enumerate(begins)}
        zeros = parts.size * most + len(begins) * width
        self._needs_zeros = len(begins) < len(short)

        def row(n: int, token: int) -> int:
            if token >= 0:
                rank = rank_of(n, token)
                return rank * most + sent[rank][n, token]
            return first[n] + width + token if n in first else zeros

        def number(values: list, dtype: str = "int64"):
            return array_of(arrays, values, dtype)

        rows = [parts.local[n][0] + token - bounds[n][own] for n, token in sent[own]]
        self._has_rows = bool(rows)
        self._rows = number(rows + [0] * (most - len(rows)))
        self._has_begins, self._begins = bool(begins), number([parts.slots[n] for n in begins])
        self.count = len(before[own])
        self._has_windows = bool(found)
        index = [[row(n, token) for token in range(end - width, end)] for n, end in found]
        self._index = number(index)
        slots = [-1] * parts.count
        for i, (n, _) in enumerate(before[own]):
            slots[n] = i
        self.slots = number(slots, "int32")
        starts = [parts.local[0][0] if parts.local else 0, *(end for _, end in parts.local)]
        self.starts = number(starts, "int32")
        self.has_targets, self.targets = bool(targets), number(targets)

    def find(self, arrays, exchange: Exchange, x, states, dtype: str):
        """Windows [W, D, K - 1] in `dtype`: from 0 the `count` of this rank's parts, then those
        of `targets`. None if there are none."""
        channels, sources = int(x.shape[1]), []
        if self._most:
            if self._has_rows:
                own = arrays.rows_apart(x)[self._rows]
            else:
                own = arrays.zeros((self._most, channels), arrays.dtype_of(x))
            # As bytes: not every back end has all types.
            gathered = exchange.gather_arrays(arrays.as_bytes(own), arrays).view(own.dtype)
            sources.append(arrays.cast(gathered.reshape(-1, channels), dtype))
        if not self._has_windows:
            return None
        if self._has_begins:
            begins = arrays.cast(states[self._begins], dtype)
            sources.append(begins.swapaxes(1, 2).reshape(-1, channels))
        if self._needs_zeros:
            sources.append(arrays.zeros((1, channels), dtype))
        source = sources[0] if len(sources) == 1 else arrays.xp.concatenate(sources)
        return source[self._index].swapaxes(1, 2)


class PlanConvolution:
    """Convolutions of the sequences of a plan: of `rows` inputs here, and pools of `slots`
    windows."""

    def __init__(
        self,
        exchange: Exchange,
        parts: SequenceParts,
        live: list[int],
        rows: int,
        slots: int,
        runtime: Runtime | None,
    ):
        self._exchange, self._parts, self._live = exchange, parts, live
        self._rows, self._slots, self._runtime = rows, slots, runtime
        self._places: dict[int, WindowPlaces] = {}
        # What all ranks have called with.
        self._known: set[str] = set()

    def __call__(self, x, weight, states, bias, activation: str):
        """As ContextPlan.causal_conv1d."""
        arrays = library_of(x, self._runtime)
        agreed = {"bias": bias is not None, "activation": activation}
        for name, array in (("x", x), ("weight", weight), ("states", states)):
            shape = [int(size) for size in getattr(array, "shape", ())[1:]]
            agreed[name] = [str(getattr(array, "dtype", None)), shape]
        data = json.dumps(agreed)
        given = (x, weight, states, bias, activation)
        if data in self._known:
            kind = self._checked(arrays, *given)
        else:
            kind = self._agree(arrays, data, given)
        places = self._places[kind.width]
        windows = places.find(arrays, self._exchange, x, states, kind.state)
        if places.count == 0:
            out = arrays.zeros(tuple(map(int, x.shape)), kind.io)
        else:
            out = causal_conv1d(
                x,
                weight,
                windows[: places.count],
                places.slots,
                bias=bias,
                cu_seqlens=places.starts,
                activation=activation,
                runtime=self._runtime,
            )
        if places.has_targets:
            kept = windows[places.count :]
            states[places.targets] = arrays.cast(kept, arrays.dtype_of(states))
        return out

    def _agree(self, arrays, data: str, given: tuple) -> ConvKind:
        """The first call with arrays of these shapes and types, on all ranks."""
        if arrays.capturing:
            raise RuntimeError(
                "causal_conv1d: expected a call with arrays of these shapes ahead of a capture"
            )
        kind = None

        def shapes() -> bytes:
            nonlocal kind
            kind = self._checked(arrays, *given)
            call_of(kind, "prefill", arrays.device, arrays.stream, self._runtime)
            if kind.width not in self._places:
                places = WindowPlaces(arrays, self._parts, self._live, kind.width - 1)
                self._places[kind.width] = places
            return data.encode()

        known = gather_or_fail(self._exchange, shapes)
        check_agreed([json.loads(one) for one in known])
        self._known.add(data)
        return kind

    def _checked(self, arrays, x, weight, states, bias, activation: str) -> ConvKind:
        """The kernel, whose windows are of a type that has inputs and states exactly."""
        kind = conv_kind(arrays, x, weight, states, bias, activation)
        rows, slots = int(x.shape[0]), int(states.shape[0])
        if (rows, slots) != (self._rows, self._slots):
            raise ValueError(
                f"x, states: expected {self._rows} rows and {self._slots} slots, those of the plan,"
                f" got {rows} and {slots}"
            )
        return kind if kind.state == kind.io else kind._replace(state="float32")
