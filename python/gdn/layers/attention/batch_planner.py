# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Metadata of mixed batches whose lengths, slots and counts are on the device."""

import ctypes as c
from dataclasses import dataclass

from ... import _serving_abi as abi
from ...arrays import argument
from ...runtime import Kernel, _Handle, _stream
from .device_arrays import current_stream
from .gdn_metadata import VERIFY_STATES


@dataclass
class PlannedBatch:
    """What GDNLayer.forward takes for a planned step, on the stream of the plan. Valid until the
    next plan."""

    raw: abi.Metadata
    device_arena: None = None


class BatchPlanner(_Handle):
    """See gdnrt_batch_planner_create. `plan` is the kernel of that name of an image of
    gdn-compile --mixed-batch, and `verify_states` is that of the image."""

    def __init__(
        self,
        plan: Kernel,
        *,
        max_num_seqs: int,
        num_speculative_tokens: int = 0,
        verify_states: str = "slots",
    ):
        if verify_states not in VERIFY_STATES:
            raise ValueError(
                f"verify_states: expected one of {', '.join(VERIFY_STATES)}, got {verify_states}"
            )
        self.device = plan._device
        options = abi.BatchPlannerOptions(
            max_num_seqs=max_num_seqs,
            num_speculative_tokens=num_speculative_tokens,
            verify_states=VERIFY_STATES.index(verify_states),
        )
        runtime = plan._runtime
        handle = runtime.create("gdnrt_batch_planner_create", plan._handle, c.byref(options))
        super().__init__(runtime, handle, "gdnrt_batch_planner_destroy")

    def plan(
        self,
        query_start_loc: object,
        seq_lens: object,
        block_table: object,
        num_decode_draft_tokens: object,
        num_accepted_tokens: object | None = None,
        *,
        num_tokens: int,
        max_num_prefills: int = 0,
        token_slots: object | None = None,
        parents: object | None = None,
        stream: object = None,
    ) -> PlannedBatch:
        """Launches the plan of a step in the order of `stream`, PyTorch's current one if there is
        none, and waits for nothing; see gdnrt_device_batch. All arrays are int32 and on the
        device. The step has `num_tokens` tokens, padding included, and as many sequences as
        `seq_lens` has elements, of which at most `max_num_prefills` are sequences of prefill (0:
        all may be)."""
        shapes = {
            "seq_lens": seq_lens,
            "query_start_loc": query_start_loc,
            "num_decode_draft_tokens": num_decode_draft_tokens,
            "num_accepted_tokens": num_accepted_tokens,
        }
        views = {name: self._view(name, array, 1) for name, array in shapes.items()}
        rows = views["seq_lens"].shape[0]
        for name, found in views.items():
            wanted = rows + (name == "query_start_loc")
            if found is not None and found.shape[0] != wanted:
                raise ValueError(f"{name}: expected {wanted} elements, got {found.shape[0]}")
        tables = {"block_table": block_table, "token_slots": token_slots, "parents": parents}
        for name, array in tables.items():
            views[name] = found = self._view(name, array, 2)
            if found is not None and found.shape[0] != rows:
                raise ValueError(f"{name}: expected {rows} rows, got {found.shape[0]}")
        table, slots, tree = views["block_table"], views["token_slots"], views["parents"]
        if tree is not None and (slots is None or tree.strides[0] != slots.strides[0]):
            raise ValueError("parents: expected rows as far apart as those of token_slots")
        batch = abi.DeviceBatch(
            num_seqs=rows,
            num_tokens=num_tokens,
            max_num_prefills=max_num_prefills,
            block_table_columns=table.shape[1],
            block_table_stride=table.strides[0],
            token_slots_stride=0 if slots is None else slots.strides[0],
        )
        for name, found in views.items():
            setattr(batch, name, None if found is None else found.data)
        raw = abi.Metadata()
        self._runtime.call(
            "gdnrt_batch_planner_plan",
            self._handle,
            c.byref(batch),
            _stream(current_stream(stream)),
            c.byref(raw),
        )
        self._last = views
        return PlannedBatch(raw)

    def _view(self, name: str, array: object | None, rank: int):
        """None, or the array as it lies in memory, dense in its last dimension."""
        if array is None:
            return None
        found = argument(name, array, self.device, written=False, dtypes=("int32",))
        dense = 0 in found.shape or found.shape[-1] == 1 or found.strides[-1] == 1
        if len(found.shape) != rank or not dense:
            raise ValueError(
                f"{name}: expected {rank} dimensions, the last contiguous, got shape"
                f" {tuple(found.shape)} with strides {tuple(found.strides)}"
            )
        return found
