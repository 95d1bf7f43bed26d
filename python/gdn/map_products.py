# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of maps of tokens by the entries `combine_maps` and `apply_maps` of an image
(docs/design/20261129-combine-maps.md)."""

from __future__ import annotations

from .kernel_calls import call_of, has_entry
from .rule_kernels import RuleKind
from .runtime import Runtime

ENTRIES = ("combine_maps", "apply_maps")


class MapProducts:
    """The two entries on a device, for sequences of N that have the segments from `first[n]` on,
    `count[n]` of them; both [N], i32. Launches, without waiting."""

    def __init__(self, kind: RuleKind, runtime: Runtime | None, first, count, rank):
        self._kind, self._runtime = kind, runtime
        self._segments = {"first_segments": first, "num_segments": count}
        self._rank = rank

    def _run(self, arrays, entry: str, **given) -> None:
        call = call_of(
            self._kind,
            entry,
            arrays.device,
            arrays.stream,
            self._runtime,
            capturing=arrays.capturing,
        )
        call(**given, **self._segments)

    def combine(self, arrays, constant, linear):
        """What all segments of each sequence do, [N, Hv, dv + dk, dk], of H [M, Hv, dv, dk] and P
        [M, Hv, dk, dk] of segments, f32."""
        heads, dv, dk = map(int, constant.shape[1:])
        maps = arrays.empty((len(self._segments["first_segments"]), heads, dv + dk, dk), "float32")
        self._run(arrays, ENTRIES[0], constant=constant, linear=linear, maps=maps)
        return maps

    def apply(self, arrays, gathered, constant, linear, states, slots, write_slots):
        """The state before each segment, [M, Hv, dv, dk], from what ranks do, `gathered`
        [R, N, Hv, dv + dk, dk]. Sequence n begins with slot `slots[n]` of `states`, or zeros with
        -1, and its last state goes to `write_slots[n]`, or nowhere with -1."""
        before = arrays.empty(tuple(map(int, constant.shape)), "float32")
        self._run(
            arrays,
            ENTRIES[1],
            maps=gathered,
            rank=self._rank,
            constant=constant,
            linear=linear,
            slots=slots,
            write_slots=write_slots,
            state_pool=states,
            states=before,
        )
        return before


def has_products(kind: RuleKind, device: tuple[str, int], runtime: Runtime | None) -> bool:
    """Whether the image of a kind that has maps has these entries."""
    return all(has_entry(kind, entry, device, runtime) for entry in ENTRIES)
