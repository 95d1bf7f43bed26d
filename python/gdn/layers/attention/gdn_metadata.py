# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The metadata of a step, with vLLM's names. The builder's arrays are made once;
those of a GDNAttentionMetadata are views of them, which keep the builder and which the next
build overwrites."""

import ctypes as c
from dataclasses import dataclass, field

import numpy as np

from ... import _serving_abi as abi
from ...runtime import Device, Runtime, _Handle, _stream
from ...state_pool import StatePool
from .device_arrays import current_stream
from .host_arrays import host_attribute, on_host

PAD_SLOT_ID = -1
NULL_BLOCK_ID = 0
FLA_CHUNK_SIZE = 64
CONV_BLOCK = 8
_CACHE_MODES = ("none", "align", "all")
VERIFY_STATES = ("slots", "tree", "lazy", "buffer")


@dataclass
class CommonAttentionMetadata:
    """What the scheduler knows of a step. Any object with these attributes will do."""

    query_start_loc: np.ndarray
    """[num_reqs + 1]"""
    seq_lens: np.ndarray
    """[num_reqs]: tokens of the requests with those of the step"""
    num_reqs: int
    num_actual_tokens: int
    block_table_tensor: np.ndarray
    """[num_reqs, columns]"""
    token_slots: np.ndarray | None = None
    """[num_reqs, 1 + num_spec]: slots of the states after tokens, where verify_states is tree or
    buffer; with buffer those of the requests' steps before"""
    parents: np.ndarray | None = None
    """The same shape: the tokens' parents, where verify_states is tree"""


@dataclass
class GDNAttentionMetadata:
    """What a layer does in a step; see gdnrt_gdn_metadata in gdn-c/serving.h."""

    num_prefills: int
    num_prefill_tokens: int
    num_decodes: int
    num_decode_tokens: int
    num_spec_decodes: int
    num_spec_decode_tokens: int
    num_actual_tokens: int

    has_initial_state: np.ndarray | None = None
    chunk_indices: np.ndarray | None = None
    chunk_offsets: np.ndarray | None = None
    spec_query_start_loc: np.ndarray | None = None
    non_spec_query_start_loc: np.ndarray | None = None
    spec_state_indices_tensor: np.ndarray | None = None
    non_spec_state_indices_tensor: np.ndarray | None = None
    spec_sequence_masks: np.ndarray | None = None
    spec_token_indx: np.ndarray | None = None
    non_spec_token_indx: np.ndarray | None = None
    num_accepted_tokens: np.ndarray | None = None
    spec_decode_src_indices: np.ndarray | None = None
    non_spec_num_accepted: np.ndarray | None = None
    prefill_query_start_loc: np.ndarray | None = None
    prefill_state_indices: np.ndarray | None = None
    prefill_has_initial_state: np.ndarray | None = None
    nums_dict: dict | None = None
    batch_ptr: np.ndarray | None = None
    token_chunk_offset_ptr: np.ndarray | None = None
    cu_checkpoints: np.ndarray | None = None
    checkpoint_tokens: np.ndarray | None = None
    checkpoint_slots: np.ndarray | None = None
    non_spec_rows: np.ndarray | None = None
    """Mode all, of a step with a request that is two sequences of the arrays: the row of each"""

    raw: abi.Metadata | None = field(default=None, repr=False)
    """The same for the runtime library."""
    device_arena: object = field(default=None, repr=False)
    """What kernels of a GPU read of it; None on a CPU."""
    builder: object = field(default=None, repr=False)
    """Whose memory all of that is."""


class GDNAttentionMetadataBuilder(_Handle):
    """Sorts the sequences of a step. Arguments and attributes are vLLM's; `vllm_config` and
    `kv_cache_spec` are any objects with the attributes that are read here. `device` is a
    gdn.Device: with a GPU, builds copy what kernels read to its memory. Used by one thread at a
    time."""

    _cudagraph_support = "UNIFORM_BATCH"
    reorder_batch_threshold = 1

    def __init__(
        self, kv_cache_spec, layer_names, vllm_config, device=None, *, runtime: Runtime
    ) -> None:
        self.kv_cache_spec = kv_cache_spec
        self.layer_names = layer_names
        self.vllm_config = vllm_config
        self.compilation_config = vllm_config.compilation_config
        self.speculative_config = vllm_config.speculative_config
        spec = self.speculative_config
        self._setup(
            runtime,
            device,
            max_num_seqs=vllm_config.scheduler_config.max_num_seqs,
            max_num_tokens=vllm_config.scheduler_config.max_num_batched_tokens,
            num_speculative_tokens=spec.num_speculative_tokens if spec else 0,
            use_full_cuda_graph=self.compilation_config.cudagraph_mode.has_full_cudagraphs(),
            max_cudagraph_capture_size=self.compilation_config.max_cudagraph_capture_size,
            mamba_cache_mode=vllm_config.cache_config.mamba_cache_mode,
            block_size=kv_cache_spec.block_size,
            pad_slot=NULL_BLOCK_ID,
            verify_states="slots",
            mixed_batch=False,
            max_num_prefills=0,
            deferred_writes=False,
        )

    @classmethod
    def from_options(
        cls,
        runtime: Runtime,
        device: Device | None = None,
        *,
        max_num_seqs: int,
        max_num_tokens: int,
        num_speculative_tokens: int = 0,
        use_full_cuda_graph: bool = False,
        max_cudagraph_capture_size: int | None = None,
        mamba_cache_mode: str = "none",
        block_size: int = 64,
        pad_slot: int = NULL_BLOCK_ID,
        verify_states: str = "slots",
        mixed_batch: bool = False,
        max_num_prefills: int = 0,
        deferred_writes: bool = False,
    ) -> "GDNAttentionMetadataBuilder":
        """Without a configuration; see gdnrt_metadata_options. `verify_states` is the kind of
        the image's verify, "slots", "tree", "lazy" or "buffer". With `mixed_batch` a step is one
        launch of verify and one of prefill over the same arrays, whatever its sequences are, for
        an image that was compiled with --mixed-batch; with use_full_cuda_graph, too, one graph
        takes any mix of up to so many sequences and tokens, of which `max_num_prefills` may be
        sequences of prefill (0: all). `deferred_writes` is for kernels of gdn-compile
        --defer-writes; with speculation, verify_states is "lazy" then."""
        options = dict(locals())
        del options["cls"], options["runtime"], options["device"]
        builder = cls.__new__(cls)
        builder._setup(runtime, device, **options)
        return builder

    def _setup(self, runtime: Runtime, device: Device | None, **options) -> None:
        self.device = device
        self.device_arena = None
        mode = options["mamba_cache_mode"]
        if mode not in _CACHE_MODES:
            raise ValueError(
                f"mamba_cache_mode: expected one of {', '.join(_CACHE_MODES)}, got {mode}"
            )
        states = options["verify_states"]
        if states not in VERIFY_STATES:
            raise ValueError(
                f"verify_states: expected one of {', '.join(VERIFY_STATES)}, got {states}"
            )
        self.verify_states = "lazy" if options["deferred_writes"] else states
        self.num_spec = options["num_speculative_tokens"]
        self.use_spec_decode = self.num_spec > 0
        self.use_full_cuda_graph = bool(options["use_full_cuda_graph"])
        raw = abi.MetadataOptions(
            **options
            | {
                "use_full_cuda_graph": int(self.use_full_cuda_graph),
                "mamba_cache_mode": _CACHE_MODES.index(mode),
                "verify_states": VERIFY_STATES.index(states),
                "mixed_batch": int(options["mixed_batch"]),
                "deferred_writes": int(options["deferred_writes"]),
                "max_cudagraph_capture_size": options["max_cudagraph_capture_size"] or 0,
            },
        )
        handle = runtime.create("gdnrt_metadata_builder_create", c.byref(raw))
        super().__init__(runtime, handle, "gdnrt_metadata_builder_destroy")
        lib = runtime._lib
        self.reorder_batch_threshold = lib.gdnrt_metadata_builder_reorder_batch_threshold(handle)
        self.decode_cudagraph_max_bs = lib.gdnrt_metadata_builder_decode_cudagraph_max_bs(handle)

    def build(
        self,
        common_prefix_len: int,
        common_attn_metadata,
        num_accepted_tokens=None,
        num_decode_draft_tokens_cpu=None,
        fast_build: bool = False,
        *,
        num_padded_reqs: int = 0,
        stream: object = None,
    ) -> GDNAttentionMetadata:
        """The metadata of a step. `common_prefix_len` and `fast_build` are not looked at.
        Arrays of graphs have `num_padded_reqs` rows, by default num_reqs or, where sequences
        decode, num_actual_tokens; what a graph reads behind them is padding always. Counts
        may be left out where no sequence has tokens before this step. The copy to a GPU is in the
        order of `stream`, PyTorch's current one if there is none."""
        return self._build(
            "gdnrt_metadata_builder_build",
            common_attn_metadata,
            on_host("num_accepted_tokens", num_accepted_tokens, rank=1),
            on_host("num_decode_draft_tokens_cpu", num_decode_draft_tokens_cpu, rank=1),
            num_padded_reqs,
            stream,
        )

    def build_for_cudagraph_capture(self, common_attn_metadata) -> GDNAttentionMetadata:
        """Sequences of one token make the graph of decode, sequences of 1 + num_spec that of
        verify. With mixed_batch the graph takes as many sequences and tokens, of any kind."""
        name = "gdnrt_metadata_builder_build_for_cudagraph_capture"
        return self._build(name, common_attn_metadata, None, None, 0, None)

    def build_commit(
        self, slots, num_accepted_tokens=None, *, stream: object = None
    ) -> GDNAttentionMetadata:
        """A step that has nothing but a commit of `slots`: their states then have all tokens,
        for a copy in place, a prefix cache or another kernel. `num_accepted_tokens` are those of
        the slots' last steps, 0 where that was no verify, by default all 0. Run it in every layer:
        layer.forward(metadata). GdnError for a slot that occurs twice; see
        gdnrt_metadata_builder_build_commit."""
        ids = on_host("slots", slots, rank=1)
        accepted = on_host("num_accepted_tokens", num_accepted_tokens, rank=1)
        if accepted is not None and len(accepted) < len(ids):
            raise ValueError(
                f"num_accepted_tokens: expected at least {len(ids)} elements, got {len(accepted)}"
            )
        raw = abi.Metadata()
        counts = None if accepted is None else accepted.ctypes.data
        name, size = "gdnrt_metadata_builder_build_commit", len(ids)
        self._runtime.call(name, self._handle, ids.ctypes.data, counts, size, c.byref(raw))
        self._upload(raw, stream)
        return _metadata(raw, self.num_spec + 1, self)

    def align_states_before(
        self,
        common_attn_metadata,
        columns: np.ndarray,
        accepted: np.ndarray | None = None,
        *,
        pool: StatePool | None = None,
        stream: object = None,
    ) -> tuple[list[int], list[int]]:
        """Mode align, ahead of build: the slots whose states have to be copied, and where to;
        with a pool they are. `columns` [num_reqs] i32 says where each request's states began
        in its last step, -1 for none, and is brought up to date, as are the counts in
        `accepted`; see gdnrt_align_states_before."""
        name = "gdnrt_align_states_before"
        return self._align(name, common_attn_metadata, columns, accepted, None, pool, stream)

    def align_states_after(
        self,
        common_attn_metadata,
        columns: np.ndarray,
        accepted: np.ndarray,
        num_decode_draft_tokens_cpu=None,
        *,
        pool: StatePool | None = None,
        stream: object = None,
    ) -> tuple[list[int], list[int]]:
        """The same behind a step with drafts, whose counts are in `accepted`: the states at
        the ends of blocks that are full now; see gdnrt_align_states_after."""
        drafts = on_host("num_decode_draft_tokens_cpu", num_decode_draft_tokens_cpu, rank=1)
        name = "gdnrt_align_states_after"
        return self._align(name, common_attn_metadata, columns, accepted, drafts, pool, stream)

    def state_columns(
        self,
        num_tokens: np.ndarray,
        columns: np.ndarray | None = None,
        accepted: np.ndarray | None = None,
    ) -> np.ndarray:
        """The column of each request's row of the block table whose slot has its state now, -1 for
        a request without tokens: what to store when it is preempted. `num_tokens` are the tokens
        of each request so far; `columns`, of mode align, are those of align_states_before, and
        `accepted` the counts that the next build would get. See gdnrt_state_columns."""
        arrays = {"num_tokens": num_tokens, "columns": columns, "accepted": accepted}
        given = [on_host(label, array, rank=1) for label, array in arrays.items()]
        found = np.empty(len(given[0]), np.int32)
        for label, array in zip(("columns", "accepted"), given[1:], strict=True):
            if array is not None and array.shape != found.shape:
                raise ValueError(
                    f"{label}: expected {len(found)} elements, got {list(array.shape)}"
                )
        addresses = [None if array is None else array.ctypes.data for array in given]
        self._runtime.call(
            "gdnrt_state_columns", self._handle, *addresses, len(found), found.ctypes.data
        )
        return found

    def _align(self, name, common, columns, accepted, drafts, pool, stream):
        rows = common.num_reqs
        given, keep = self._given(common, None, drafts, 0)
        for label, array in (("columns", columns), ("accepted", accepted)):
            if array is None and label == "accepted":
                continue
            # They are written, so that a copy would not do.
            if (
                not isinstance(array, np.ndarray)
                or array.dtype != np.int32
                or array.shape != (rows,)
                or not array.flags.c_contiguous
                or not array.flags.writeable
            ):
                raise ValueError(f"{label}: expected an int32 array of {rows} elements to write to")
        slots, count = np.empty((2, max(rows, 1)), np.int32), c.c_int64()
        addresses = [None if a is None else a.ctypes.data for a in (columns, accepted, *slots)]
        self._runtime.call(name, self._handle, c.byref(given), *addresses, c.byref(count))
        del keep
        source, target = slots[:, : count.value].tolist()
        if pool is not None and source:
            pool.copy_states(source, target, stream=stream)
        return source, target

    def _build(self, name, common, accepted, drafts, padded, stream) -> GDNAttentionMetadata:
        given, keep = self._given(common, accepted, drafts, padded)
        raw = abi.Metadata()
        self._runtime.call(name, self._handle, c.byref(given), c.byref(raw))
        del keep
        self._upload(raw, stream)
        return _metadata(raw, self.num_spec + 1, self)

    def _given(self, common, accepted, drafts, padded) -> tuple[abi.CommonMetadata, object]:
        """The C form of a step, and what must live as long."""
        starts = host_attribute(common, "query_start_loc", rank=1)
        lengths = host_attribute(common, "seq_lens", rank=1)
        table = host_attribute(common, "block_table_tensor", rank=2)
        rows = common.num_reqs
        needed = {"query_start_loc": starts, "seq_lens": lengths, "block_table_tensor": table}
        for label, array in needed.items():
            if array is None:
                raise ValueError(f"{label}: expected an array, got None")
        spec = {
            each: on_host(each, getattr(common, each, None), rank=2)
            for each in ("token_slots", "parents")
        }
        arrays = {
            "query_start_loc": (starts, rows + 1),
            "seq_lens": (lengths, rows),
            "block_table_tensor": (table, rows),
            "num_accepted_tokens": (accepted, rows),
            "num_decode_draft_tokens_cpu": (drafts, rows),
            **{name: (array, rows) for name, array in spec.items()},
        }
        for label, (array, size) in arrays.items():
            if array is not None and len(array) < size:
                raise ValueError(f"{label}: expected at least {size} elements, got {len(array)}")
        columns = self.num_spec + 1
        for label, array in spec.items():
            if array is not None and array.shape[1] != columns:
                raise ValueError(
                    f"{label}: expected [num_reqs, {columns}], got {list(array.shape)}"
                )
        given = abi.CommonMetadata(
            num_reqs=rows,
            num_actual_tokens=common.num_actual_tokens,
            query_start_loc=starts.ctypes.data,
            seq_lens=lengths.ctypes.data,
            block_table=table.ctypes.data,
            block_table_columns=table.shape[1],
            block_table_stride=table.shape[1],
            num_accepted_tokens=None if accepted is None else accepted.ctypes.data,
            num_decode_draft_tokens=None if drafts is None else drafts.ctypes.data,
            num_padded_reqs=padded,
            token_slots_stride=columns,
            **{name: None if a is None else a.ctypes.data for name, a in spec.items()},
        )
        return given, arrays

    def _upload(self, raw: abi.Metadata, stream: object) -> None:
        """Not within the capture of a graph: what a graph reads is copied ahead of it."""
        if self.device is None or self.device.kind == "cpu":
            return
        if self.device_arena is None:
            self.device_arena = self.device.empty((raw.arena_bytes,), np.uint8)
        self._runtime.call(
            "gdnrt_metadata_upload_changed",
            self.device._handle,
            c.byref(raw),
            self.device_arena.data,
            _stream(current_stream(stream)),
        )


# What only the runtime library looks at.
_INTERNAL = {"conv_nums", "non_spec_read_indices", "zeros", "run_has_initial", "run_is_prefill"}
_INTERNAL |= {"non_spec_is_prefill", "num_expected_prefills"}
_INTERNAL |= {"num_runs", "num_run_tokens", "num_spec_columns"}
_INTERNAL |= {"spec_slots", "spec_parents"}
_INTERNAL |= {"commit_slots", "commit_num_accepted", "commit_token_slots"}
_COUNTS = [
    name
    for name, kind in abi.Metadata._fields_
    if kind is c.c_int64 and "num_" in name and name not in _INTERNAL
]
_ARRAYS = {
    name: {
        "spec_state_indices": "spec_state_indices_tensor",
        "non_spec_state_indices": "non_spec_state_indices_tensor",
    }.get(name, name)
    for name, kind in abi.Metadata._fields_
    if kind in (abi.I32Array, abi.BoolArray) and name not in _INTERNAL
}


def _metadata(
    raw: abi.Metadata, columns: int, builder: GDNAttentionMetadataBuilder
) -> GDNAttentionMetadata:
    fields = {ours: getattr(raw, name).numpy(builder) for name, ours in _ARRAYS.items()}
    for name, width in (("spec_state_indices_tensor", columns), ("chunk_indices", 2)):
        if fields[name] is not None:
            fields[name] = fields[name].reshape(-1, width)
    counts = {n: getattr(raw, n) for n in _COUNTS}
    return GDNAttentionMetadata(
        **counts,
        **fields,
        nums_dict=_conv_metadata(raw, builder),
        raw=raw,
        device_arena=builder.device_arena,
        builder=builder,
    )


def _conv_metadata(raw: abi.Metadata, owner: object) -> dict | None:
    nums = raw.conv_nums.numpy(owner)
    if nums is None:
        return None
    total = raw.conv_total
    batch_ptr, offsets = raw.batch_ptr.numpy(owner), raw.token_chunk_offset_ptr.numpy(owner)
    return {
        CONV_BLOCK: {
            "nums": nums,
            "tot": total,
            "mlist": batch_ptr[:total],
            "mlist_len": total,
            "offsetlist": offsets[:total],
            "batch_ptr": batch_ptr,
            "token_chunk_offset_ptr": offsets,
        }
    }
