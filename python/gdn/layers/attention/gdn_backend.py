# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Linear attention on pooled states: one slot per request, decode or extend."""

import ctypes as c
import logging
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ... import _attention_abi as abi
from ..._abi import in_place
from ...runtime import Device, Kernel, _Handle, _stream, named_arguments
from ...state_pool import StatePool
from .device_arrays import empty_like_rows, stream_of
from .forward_batch import ForwardBatch, ForwardMode, mode_of
from .gdn_layer import GDNLayer
from .host_arrays import host_attribute, on_host
from .radix_linear_attention import RadixLinearAttention

logger = logging.getLogger(__name__)


@dataclass
class GDNForwardMetadata:
    """Views of the backend's arrays, which live as long as these and which the next batch
    overwrites."""

    cache_indices: np.ndarray
    """[batch_size] i64: slots"""
    cu_seqlens: np.ndarray | None = None
    """[batch_size + 1] i64; of extend"""


class GDNAttnBackend(_Handle):
    """Arguments and methods are pymllm's, `kernels` are those of layer_kernels() with the
    layout split. The state is read from the slot always: admission zeroes or restores it.

    Originals choose among libraries with gdn_decode_backend and gdn_extend_backend. Here are
    the kernels of the image; another choice is answered with a warning. ValueError for a pool whose
    states or windows are of another type or format than the kernels'.
    """

    def __init__(
        self,
        gdn_pool: StatePool,
        device: Device,
        *,
        kernels: Mapping[str, Kernel],
        gdn_decode_backend: str = "auto",
        gdn_extend_backend: str = "auto",
    ):
        handle = device._runtime.create("gdnrt_attention_backend_create_gdn", device._handle)
        super().__init__(device._runtime, handle, "gdnrt_attention_backend_destroy")
        self.gdn_pool = gdn_pool
        self.device = device
        # Of an image with more, such as a verify with pools of its own. Where decode keeps
        # tokens pending, extend begins with a commit.
        defers = "decode" in kernels and any(
            param.name == "pending_counts" for param in kernels["decode"].params
        )
        kinds = ("decode", "prefill", *(("commit",) if defers else ()))
        self.kernels = {kind: kernels[kind] for kind in kinds if kind in kernels}
        _check_pool(gdn_pool, self.kernels)
        self.gdn_decode_backend = gdn_decode_backend
        self.gdn_extend_backend = gdn_extend_backend
        self._layers: dict[int, tuple[RadixLinearAttention, GDNLayer]] = {}
        self._logged: set[str] = set()

    @property
    def forward_metadata(self) -> GDNForwardMetadata | None:
        """That of the last init_forward_metadata or function for graphs, in place; None before
        one."""
        raw, known = abi.GDNForwardMetadata(), c.c_int32()
        self._call("gdnrt_attention_forward_metadata", c.byref(raw), c.byref(known))
        if not known:
            return None

        def view(address: int, size: int) -> np.ndarray:
            return in_place(address, c.c_int64, size, owner=self)

        starts = view(raw.cu_seqlens, raw.batch_size + 1) if raw.cu_seqlens else None
        return GDNForwardMetadata(view(raw.cache_indices, raw.batch_size), starts)

    def init_forward_metadata(self, forward_batch: ForwardBatch) -> None:
        """Once per batch, before its layers: reads req_pool_indices [batch_size], which are slots,
        and with extend extend_seq_lens [batch_size], on the host where `*_cpu` are given. A batch
        that is IDLE leaves what was there. ValueError or GdnError for arrays that are too short or
        hold no such numbers."""
        batch, keep = raw_batch(forward_batch)
        self._call("gdnrt_attention_init_forward_metadata", c.byref(batch))
        del keep

    def init_cuda_graph_state(self, max_bs: int, max_num_tokens: int) -> None:
        """Takes the arrays that graphs of up to `max_bs` requests read, and of extend up to
        `max_num_tokens` tokens. GdnError if a later call asks for more than the first."""
        self._call("gdnrt_attention_init_cuda_graph_state", max_bs, max_num_tokens)

    def get_cuda_graph_seq_len_fill_value(self) -> int:
        """What pads seq_lens of graphs."""
        return 1

    def init_forward_metadata_capture_cuda_graph(
        self,
        bs: int,
        req_pool_indices,
        seq_lens,
        stream: object = None,
        *,
        forward_mode: ForwardMode = ForwardMode.DECODE,
        num_tokens: int | None = None,
    ) -> None:
        """A graph of extend has room for `num_tokens` tokens of up to `bs` requests. What is
        launched to be captured has none."""
        forward_mode = mode_of(forward_mode)
        extend = forward_mode.is_extend()
        if extend and num_tokens is None:
            raise ValueError("num_tokens: expected those of a graph of extend, got None")
        batch = (bs, num_tokens if extend else bs, forward_mode, 0 if extend else bs)
        self._graph("capture", batch, req_pool_indices, seq_lens, None, stream)

    def init_forward_metadata_replay_cuda_graph(
        self,
        bs: int,
        req_pool_indices,
        seq_lens,
        stream: object = None,
        *,
        num_reqs: int | None = None,
        forward_mode: ForwardMode = ForwardMode.DECODE,
        num_tokens: int | None = None,
        extend_seq_lens=None,
    ) -> None:
        """The first `num_reqs` of the `bs` rows are requests. Those behind get the null slot,
        whatever the caller left there; no length tells them apart, so the count has to be
        given. With extend they have `extend_seq_lens` tokens in this step, together at most
        `num_tokens`, those of the graph."""
        if num_reqs is None:
            raise ValueError(f"num_reqs: expected how many of the {bs} rows are requests, got None")
        forward_mode = mode_of(forward_mode)
        extend = forward_mode.is_extend()
        for name, given in (("num_tokens", num_tokens), ("extend_seq_lens", extend_seq_lens)):
            if extend and given is None:
                raise ValueError(f"{name}: expected those of a graph of extend, got None")
        batch = (bs, num_tokens if extend else bs, forward_mode, num_reqs)
        lengths = extend_seq_lens if extend else None
        self._graph("replay", batch, req_pool_indices, seq_lens, lengths, stream)

    def forward_decode(self, layer, forward_batch, mixed_qkv, a, b):
        """A token of each request: mixed_qkv [bs, D] with D = 2 * Hk * dk + Hv * dv, ahead of the
        convolution, and a and b [bs, Hv], raw gates, to [bs, Hv * dv] in the type of mixed_qkv.
        States and windows in the slots of the batch are changed in place. GdnError without metadata
        of a decode."""
        return self._run(ForwardMode.DECODE, layer, forward_batch, mixed_qkv, a, b)

    def forward_extend(self, layer, forward_batch, mixed_qkv, a, b):
        """The same of the T tokens of extend_seq_lens, the requests' one behind the other; rows
        behind them are padding, of which the output is zeros. GdnError without metadata of an
        extend."""
        return self._run(ForwardMode.EXTEND, layer, forward_batch, mixed_qkv, a, b)

    def forward_gdn(self, layer, forward_batch, mixed_qkv, a, b):
        """By the mode of the batch; mixed batches are extend, IDLE gives zeros."""
        mode = mode_of(forward_batch.forward_mode)
        if mode.is_extend():
            return self.forward_extend(layer, forward_batch, mixed_qkv, a, b)
        return self._run(mode, layer, forward_batch, mixed_qkv, a, b)

    def layer(self, layer: RadixLinearAttention) -> GDNLayer:
        """The kernels with the layer's weights and its part of the pool; made once."""
        known = self._layers.get(layer.gdn_layer_idx)
        if known is None or known[0] is not layer:
            channels = 2 * layer.key_dim + layer.value_dim
            shape = list(getattr(layer.conv_weight, "shape", ()))
            if len(shape) != 2 or shape[0] != channels:
                raise ValueError(
                    f"conv_weight: expected the shape [{channels}, K], 2 * key_dim + value_dim of"
                    f" the layer, got {shape}"
                )
            made = GDNLayer(
                self.kernels,
                pool=self.gdn_pool,
                layer_idx=layer.gdn_layer_idx,
                conv_weight=layer.conv_weight,
                A_log=layer.A_log,
                dt_bias=layer.dt_bias,
            )
            self._layers[layer.gdn_layer_idx] = known = (layer, made)
        return known[1]

    def _run(self, mode, layer, forward_batch, mixed_qkv, a, b):
        self._log(mode)
        if not hasattr(mixed_qkv, "shape"):
            raise TypeError(f"mixed_qkv: expected an array, got {type(mixed_qkv).__name__}")
        tokens = mixed_qkv.shape[0]
        out = empty_like_rows(mixed_qkv, (tokens, layer.num_v_heads, layer.head_v_dim))
        arrays = {"qkv": mixed_qkv, "b": b, "a": a, "core": out}
        made = self.layer(layer)
        named, keep = named_arguments(arrays, self.device, made.written)
        stream = stream_of(mixed_qkv, getattr(forward_batch, "stream", None))
        batch = abi.ForwardBatch(forward_mode=mode.value, stream=_stream(stream))
        self._call("gdnrt_attention_forward_gdn", made._handle, c.byref(batch), named, len(arrays))
        del keep
        return out.reshape(tokens, layer.num_v_heads * layer.head_v_dim)

    def _log(self, mode: ForwardMode) -> None:
        path = "extend" if mode.is_extend() else "decode"
        if mode.is_idle() or path in self._logged:
            return
        self._logged.add(path)
        wanted = getattr(self, f"gdn_{path}_backend")
        if wanted not in ("auto", "gdn"):
            logger.warning("gdn_%s_backend: expected auto or gdn, got %s; using gdn", path, wanted)
        kernel = self.kernels.get("prefill" if path == "extend" else "decode")
        logger.info("%s of linear attention: %s", path, kernel.code if kernel else "no kernel")

    def _graph(self, step: str, sizes, req_pool_indices, seq_lens, extend_seq_lens, stream):
        bs, num_tokens, mode, num_reqs = sizes
        slots = on_host("req_pool_indices", req_pool_indices, np.int64, rank=1)
        lengths = on_host("seq_lens", seq_lens, rank=1)
        extends = on_host("extend_seq_lens", extend_seq_lens, rank=1)
        for name, array, rows in (
            ("req_pool_indices", slots, bs),
            ("seq_lens", lengths, bs),
            ("extend_seq_lens", extends, num_reqs),
        ):
            if array is not None and len(array) < rows:
                raise ValueError(f"{name}: expected at least {rows} elements, got {len(array)}")
        batch = abi.GraphBatch(
            bs=bs,
            num_tokens=num_tokens,
            req_pool_indices=slots.ctypes.data,
            seq_lens=None if lengths is None else lengths.ctypes.data,
            forward_mode=mode.value,
            stream=_stream(stream_of(req_pool_indices, stream)),
            num_reqs=num_reqs,
            extend_seq_lens=None if extends is None else extends.ctypes.data,
        )
        self._call(f"gdnrt_attention_init_forward_metadata_{step}_cuda_graph", c.byref(batch))

    def _call(self, name: str, *arguments) -> None:
        self._runtime.call(name, self._handle, *arguments)


def _check_pool(pool: StatePool, kernels: Mapping[str, Kernel]) -> None:
    """ValueError unless the pool keeps states and windows as the kernels do. Layers, which are
    made in their first steps, look at the rest."""
    shape = pool.shape
    kept = {"state_pool": "uint8" if shape.state_planes else shape.state_dtype}
    kept["conv_pool"] = shape.conv_dtype
    for kernel in kernels.values():
        params = {param.name: param for param in kernel.params}
        planes = len(params.keys() & {"state_scales", "state_low"})
        if planes != shape.state_planes:
            raise ValueError(
                f"gdn_pool: state_planes: expected {planes}, those of {kernel.name}, got"
                f" {shape.state_planes}"
            )
        for name, found in kept.items():
            if name in params and found != params[name].dtype:
                raise ValueError(
                    f"gdn_pool: {name}: expected {params[name].dtype}, that of {kernel.name}, got"
                    f" {found}"
                )


_I32 = ("seq_lens", "extend_seq_lens", "extend_prefix_lens", "extend_start_loc")
_I64 = ("req_pool_indices", "input_ids", "positions", "out_cache_loc")


def raw_batch(forward_batch: ForwardBatch, tokens: bool = False):
    """The C form of a batch, with arrays of tokens if they are asked for, and what must live
    as long."""
    names = [*_I32, "req_pool_indices", *(_I64[1:] if tokens else ())]
    # Positions may have more dimensions than one.
    of_rows = (*_I32, "req_pool_indices")
    arrays = {
        name: host_attribute(
            forward_batch,
            name,
            np.int32 if name in _I32 else np.int64,
            rank=1 if name in of_rows else None,
        )
        for name in names
    }
    for name in of_rows:
        array, size = arrays[name], forward_batch.batch_size
        if array is not None and len(array) < size:
            raise ValueError(f"{name}: expected at least {size} elements, got {len(array)}")
    raw = abi.ForwardBatch(
        forward_mode=mode_of(forward_batch.forward_mode).value,
        batch_size=forward_batch.batch_size,
        seq_lens_sum=getattr(forward_batch, "seq_lens_sum", 0) or 0,
        extend_num_tokens=getattr(forward_batch, "extend_num_tokens", 0) or 0,
        stream=_stream(
            stream_of(forward_batch.req_pool_indices, getattr(forward_batch, "stream", None))
        ),
        **{name: array.ctypes.data for name, array in arrays.items() if array is not None},
    )
    return raw, arrays
