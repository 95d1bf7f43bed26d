# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The kernels of layers, and one layer with its weights. Arrays are anything that speaks DLPack."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...call import Call
from ...runtime import Device, Image
from .draft_windows import join_windows
from .steps import Run

ENTRIES = ("decode", "prefill", "verify")
# The engine's padding.
NULL_SLOT = 0


class LayerKernels:
    """The entries of an image on a device, for all layers of a model, which run one after another:
    the memory that calls work in is theirs in common, and that of graphs. `entries` are those that
    steps have (LayerKind.entries)."""

    def __init__(self, device: Device, image: Image, entries: Iterable[str] = ENTRIES):
        self.calls = {entry: Call(device.kernel(image, entry), NULL_SLOT) for entry in entries}
        self.is_warm = False


class LayerCore:
    """One layer: convolution, gates, rule and, where the kernels have it, the norm.

    `weights` are conv_weight [D, K], A_log and dt_bias [Hv], and for kernels with the norm
    norm_weight [dv] and norm_constants [2]. `all_true` is an array of true on the device, as long
    as sequences decode at most: they have a state. With `joins_windows` those of sequences with
    drafts are made such that the engine can copy them (draft_windows.py). `no_counts`, as many
    zeros of i32, are for kernels that keep tokens pending: ahead of a prefill their `commit` puts
    into the states what is pending in its slots, and in slots of new sequences it ends what is left
    of others.
    """

    def __init__(
        self,
        kernels: LayerKernels,
        weights: Mapping[str, object],
        all_true,
        joins_windows: bool = False,
        no_counts=None,
    ):
        self._calls = kernels.calls
        self._names = {entry: call.names for entry, call in self._calls.items()}
        self._weights = dict(weights)
        self._all_true = all_true
        self._joins_windows = joins_windows
        self._no_counts = no_counts

    def run(
        self,
        runs: Iterable[Run],
        tokens: Mapping[str, object],
        pools: Mapping[str, object],
        out,
    ) -> None:
        """A step. `tokens` are the projections, qkvz and ba, or qkv, b and a, a row for each token;
        `pools` are conv_pool [P, D, K - 1] and state_pool [P, Hv, dv, dk], which are changed in
        place, what else the slots have (BlockArrays), and `windows`, conv_pool with all columns,
        where they are joined. The results go to
        `out` [T, Hv, dv]. Slot 0 is padding."""
        for run in runs:
            taken = run.tokens
            given = {name: array[taken] for name, array in tokens.items()}
            # A copy, where tokens are not one range.
            part = out[taken]
            given |= self._weights | pools | run.rows
            given["out"] = given["core"] = part
            if run.entry == "prefill" and "commit" in self._calls:
                count = run.rows["slots"].shape[0]
                self._call("commit", given | {"num_accepted": self._no_counts[:count]})
            if run.entry == "decode":
                given["has_initial"] = self._all_true[: part.shape[0]]
            self._call(run.entry, given)
            if not isinstance(taken, slice):
                out[taken] = part
            if self._joins_windows and run.entry == "verify":
                width = int(pools["conv_pool"].shape[2])
                join_windows(pools["windows"], run.rows["token_slots"], width)

    def _call(self, entry: str, given: Mapping[str, object]) -> None:
        self._calls[entry](*[given[name] for name in self._names[entry]])
