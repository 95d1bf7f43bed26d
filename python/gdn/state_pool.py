# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pools of states: memory for many sequences in all layers, and who owns a slot.

    shape = StatePoolShape(num_layers=36, num_requests=64, num_key_heads=16,
                           num_value_heads=32, key_dim=128, value_dim=128)
    pool = StatePool(device, shape)
    slots = pool.allocate(2)                    # None where the pool is full
    state, conv = pool.get_layer_state(layer)   # for Kernel.bind, as Pool(state)
    pool.free(slots)

Slot 0 is the null slot. Slots from 1 on are for requests, track slots follow. See
include/gdn-c/state_pool.h, which also says what threads and streams may do.
"""

import ctypes as c
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from . import _abi
from ._state_pool_abi import StatePoolInfo, StatePoolOptions
from .arrays import DTYPES, View, itemsize, view
from .call_options import integer
from .pool_states import LayerStates
from .runtime import Device, Kernel, Runtime, _argument, _Handle, _stream

_STATE, _CONV, _CONV_HISTORY, _PENDING_KEYS = range(4)
_STATE_SCALES, _STATE_LOW, _PENDING_SCALES = 7, 8, 9
_LAYOUTS = ("DS", "SD")
#: Types of states in planes, as gdn-compile --state names them, with the number of planes.
_PLANES = {"i8": 1, "i8x2": 2}


@dataclass(frozen=True)
class StatePoolShape:
    """What a pool has room for; heads are those of one rank, strides count elements and
    are dense where they are 0. `state_dtype` is a type of elements, or "i8x2" or "i8" for
    states in two planes of bytes or one; "i8" needs deferred_writes. Kernels of --state=i8x2_upper
    take pools of "i8x2". `pending_dtype` is that of keys and deltas of pending tokens, "float32" or
    with deferred_writes "float16"."""

    num_layers: int
    num_requests: int
    num_key_heads: int
    num_value_heads: int
    key_dim: int
    value_dim: int
    num_track: int = 0
    conv_width: int = 4
    conv_extra: int = 0
    state_dtype: str = "float32"
    conv_dtype: str = "bfloat16"
    conv_layout: str = "DS"
    state_slot_stride: int = 0
    state_layer_stride: int = 0
    conv_slot_stride: int = 0
    conv_layer_stride: int = 0
    pending_tokens: int = 0
    decay_per_channel: bool = False
    deferred_writes: bool = False
    pending_dtype: str = "float32"

    @classmethod
    def for_kernels(
        cls,
        kernels: Mapping[str, Kernel],
        *,
        num_layers: int,
        num_requests: int,
        num_key_heads: int,
        num_value_heads: int,
        verify_tokens: int = 0,
        **others,
    ) -> "StatePoolShape":
        """The pool that kernels of layers (layer_kernels) take: sizes of heads and of the
        convolution, types, planes, and the tokens that deferred writes keep pending are theirs.
        Heads are those of one rank. `verify_tokens` is the most tokens of a sequence of verify,
        with the one that is no draft; where kernels keep them pending (--verify=lazy), there is
        room for them. `others` are further members.

        Raises ValueError for kernels without decode, and where that has no states of a layer."""
        if "decode" not in kernels:
            raise ValueError(f"kernels: expected decode, got {', '.join(kernels) or 'none'}")
        decode = {param.name: param for param in kernels["decode"].params}
        for name in ("state_pool", "conv_pool", "conv_weight"):
            if name not in decode:
                raise ValueError(
                    f"kernels: expected a decode of layers, with {name}, got one without"
                )
        *_, value_dim, key_dim = decode["state_pool"].dims
        state = decode["state_pool"].dtype
        if "state_scales" in decode:
            state = "i8x2" if "state_low" in decode else "i8"
        verify = kernels.get("verify")
        verifies = verify is not None and verify_tokens > 0
        keeps = verifies and any(param.name == "pending_keys" for param in verify.params)
        defers = "pending_counts" in decode
        pending = int(decode["pending_keys"].dims[2]) if defers else verify_tokens * keeps
        found = {
            "key_dim": int(key_dim),
            "value_dim": int(value_dim),
            "conv_width": int(decode["conv_weight"].dims[1]),
            "conv_extra": verify_tokens * keeps if defers else 0,
            "state_dtype": state,
            "conv_dtype": decode["conv_pool"].dtype,
            "pending_tokens": pending,
            "decay_per_channel": len(decode["dt_bias"].dims) == 2,
            "deferred_writes": defers,
            "pending_dtype": decode["pending_keys"].dtype if defers else "float32",
        }
        heads = {"num_key_heads": num_key_heads, "num_value_heads": num_value_heads}
        return cls(num_layers=num_layers, num_requests=num_requests, **heads, **found | others)

    @property
    def state_planes(self) -> int:
        """How many planes states have; 0 where they are of a type of elements."""
        return _PLANES.get(self.state_dtype, 0)

    def options(self, debug_checks: bool = False, foreign_requests: bool = False):
        """The C form."""
        fields = {"state_planes": self.state_planes}
        for name, value in vars(self).items():
            if name == "state_dtype" and self.state_planes:
                value = DTYPES.index("float32")
            elif name == "state_dtype":
                value = _index(name, DTYPES + tuple(_PLANES), value)
            elif name in ("conv_dtype", "pending_dtype"):
                value = _index(name, DTYPES, value)
            elif name == "conv_layout":
                value = _index(name, _LAYOUTS, value)
            fields[name] = value
        return StatePoolOptions(
            **fields, debug_checks=int(debug_checks), foreign_requests=int(foreign_requests)
        )

    def bytes(self, runtime: Runtime) -> int:
        """What a pool of this shape takes."""
        count = c.c_uint64()
        runtime.call("gdnrt_state_pool_bytes", c.byref(self.options()), c.byref(count))
        return count.value

    def requests_that_fit(self, runtime: Runtime, num_bytes: int) -> int:
        """The largest num_requests of a pool of at most so many bytes."""
        count = c.c_int64()
        options = c.byref(self.options())
        runtime.call("gdnrt_state_pool_requests_that_fit", options, num_bytes, c.byref(count))
        return count.value


class StatePool(_Handle):
    """A pool in memory that it takes from the device, zero at first. Somebody else gives
    out the slots for requests if `foreign_requests`."""

    null_slot = 0

    def __init__(
        self,
        device: Device,
        shape: StatePoolShape,
        debug_checks: bool = False,
        foreign_requests: bool = False,
    ):
        options = shape.options(debug_checks, foreign_requests)
        handle = device._runtime.create("gdnrt_state_pool_create", device._handle, c.byref(options))
        self._adopt(device, shape, handle, None)

    @classmethod
    def wrap(
        cls,
        device: Device,
        shape: StatePoolShape,
        states: Sequence[object],
        convs: Sequence[object],
        debug_checks: bool = False,
        foreign_requests: bool = False,
    ) -> "StatePool":
        """A pool in arrays of the caller, one [P, Hv, dv, dk] and one [P, D, K - 1 or more]
        per layer: lists, or one array with the layers in front. Their dtypes, positions and strides
        count, those of the shape do not: that of the pool has the arrays'."""
        for name, arrays in (("states", states), ("convs", convs)):
            if len(arrays) != shape.num_layers:
                raise ValueError(f"{name}: expected {shape.num_layers} layers, got {len(arrays)}")
        layers = [(states[i], convs[i]) for i in range(shape.num_layers)]
        args, keep = [(_abi.Arg * len(layers))(), (_abi.Arg * len(layers))()], []
        for i, pair in enumerate(layers):
            for kind, array in enumerate(pair):
                args[kind][i], alive = _argument(
                    ("state", "conv")[kind], array, device, written=True
                )
                keep.append(alive)
        options = shape.options(debug_checks, foreign_requests)
        handle = device._runtime.create(
            "gdnrt_state_pool_wrap", device._handle, c.byref(options), *args
        )
        state, conv = (each[0] for each in args)
        positions = c.c_int64.from_address(conv.sizes + 2 * 8).value
        found = replace(
            shape,
            state_dtype=DTYPES[state.dtype],
            conv_dtype=DTYPES[conv.dtype],
            conv_extra=positions - (shape.conv_width - 1),
        )
        pool = cls.__new__(cls)
        pool._adopt(device, found, handle, layers)
        pool._keep = keep
        return pool

    def _adopt(self, device: Device, shape: StatePoolShape, handle, layers) -> None:
        super().__init__(device._runtime, handle, "gdnrt_state_pool_destroy")
        self._device = device
        self._layers = layers
        self.shape = shape

    # Memory.

    @property
    def device(self) -> Device:
        """Where the memory is."""
        return self._device

    def state(self, layer: int) -> object:
        """The recurrent states of a layer, [P, Hv, dv, dk]: a NumPy array in place on a CPU,
        the caller's array where there is one. Of states in planes the upper one."""
        return self._layers[layer][0] if self._layers else self._view(_STATE, layer)

    def conv(self, layer: int) -> object:
        """The windows of the convolution of a layer, [P, D, K - 1]."""
        if not self._layers:
            return self._view(_CONV, layer)
        window = self._layers[layer][1]
        positions = self.shape.conv_width - 1
        return window if window.shape[-1] == positions else window[..., :positions]

    def conv_history(self, layer: int) -> object:
        """The same with all positions that the memory has, [P, D, K - 1 + conv_extra]."""
        return self._layers[layer][1] if self._layers else self._view(_CONV_HISTORY, layer)

    def pending(self, layer: int) -> tuple[object, ...]:
        """Keys, deltas and decays of pending tokens of a layer, and with deferred writes
        their counts, [P, Hk]; behind these, of deltas in f16, their scales, [P, Hv, S]."""
        count = 4 if self.shape.deferred_writes else 3
        buffers = [_PENDING_KEYS + i for i in range(count)]
        if self.shape.pending_dtype == "float16":
            buffers.append(_PENDING_SCALES)
        return tuple(self._view(buffer, layer) for buffer in buffers)

    def planes(self, layer: int) -> tuple[object, ...]:
        """What a layer has beside state() where its states are in planes: the scales, [P, Hv,
        dv], and with two planes the lower one, [P, Hv, dv, dk]. They are the arguments
        state_scales and state_low of kernels."""
        buffers = (_STATE_SCALES, _STATE_LOW)[: max(self.shape.state_planes, 1)]
        return tuple(self._view(buffer, layer) for buffer in buffers)

    def layer_states(self, layer: int) -> LayerStates:
        """All of that of a layer as one argument, `states`, for functions of gdn.rule_step and
        gdn.rule_pool. Raises ValueError for a pool with pending tokens that are no deferred writes,
        or whose deferred writes have a decay of each channel."""
        return LayerStates(self, layer)

    def get_layer_state(self, layer: int) -> tuple[object, object]:
        """States [P, Hv, dv, dk] and windows [P, D, K - 1] of a layer."""
        return self.state(layer), self.conv(layer)

    def _view(self, buffer: int, layer: int) -> object:
        arg = _abi.Arg()
        self._runtime.call("gdnrt_state_pool_view", self._handle, buffer, layer, c.byref(arg))
        shape, strides = (
            tuple((c.c_int64 * arg.rank).from_address(at)) for at in (arg.sizes, arg.strides)
        )
        device = self._device
        found = View(arg.data, DTYPES[arg.dtype], shape, strides, device.kind, self, device.ordinal)
        return _numpy(found) if self._device.kind == "cpu" else found

    @property
    def mem_bytes(self) -> int:
        """Bytes of all slots, in all layers and buffers."""
        return self._info().bytes

    # Owners.

    @property
    def num_slots(self) -> int:
        """P, the null slot included."""
        return self._info().num_slots

    @property
    def num_free(self) -> int:
        """Slots for requests that nobody has."""
        return self._info().free_requests

    @property
    def num_free_track(self) -> int:
        """Track slots that nobody has."""
        return self._info().free_track

    def allocate(self, count: int, zero: bool = True, stream: object = None) -> list[int] | None:
        """Takes `count` slots for requests, zeroed in the order of `stream` unless they are not to
        be; None where there are fewer, and then none is taken. GdnError for a pool whose requests'
        slots somebody else gives out (foreign_requests)."""
        return self._take("gdnrt_state_pool_allocate", count, zero, stream)

    def allocate_track(
        self, count: int, zero: bool = False, stream: object = None
    ) -> list[int] | None:
        """The same for track slots."""
        return self._take("gdnrt_state_pool_allocate_track", count, zero, stream)

    def alloc_track_slot(self) -> int | None:
        """One track slot, which holds anything."""
        slots = self.allocate_track(1)
        return slots[0] if slots else None

    def free_track_slot(self, slot: int) -> None:
        """Gives one back."""
        self.free([slot])

    def free(self, slots: Sequence[int], stream: object = None) -> None:
        """Gives slots of either kind back; all, or none if one cannot be: GdnError for one that is
        free, padding or named twice. `stream` is for the NaN of debug checks."""
        ids = _ids(slots)
        self._call("gdnrt_state_pool_free", ids, len(ids), _stream(stream))

    def fork(self, source: int, stream: object = None) -> int | None:
        """Takes a slot and copies all of `source` to it, in the order of `stream`; None where the
        pool is full. GdnError for a source that is padding or past the end."""
        slot, taken = c.c_int32(), c.c_int32()
        self._call("gdnrt_state_pool_fork", source, _stream(stream), c.byref(slot), c.byref(taken))
        return slot.value if taken.value else None

    def reset_states(self, slots: Sequence[int], stream: object = None) -> None:
        """Zeroes slots, all layers, in the order of `stream`. Negative ids and the null slot are
        passed over, and a slot may be named twice. GdnError for one past the end and, with debug
        checks, for one that is free."""
        ids = _ids(slots)
        self._call("gdnrt_state_pool_reset", ids, len(ids), _stream(stream))

    def copy_states(
        self, source: Sequence[int] | int, target: Sequence[int] | int, stream: object = None
    ) -> None:
        """Copies slots to slots, all layers, pending tokens included, in the order of `stream`; of
        ids or sequences of ids. Pairs with padding, and of one slot twice, are passed over.
        GdnError for a target that is also a source or another pair's target, and as reset_states.
        ValueError for another number of targets."""
        sources, targets = _ids(source), _ids(target)
        if len(sources) != len(targets):
            raise ValueError(f"target: expected {len(sources)} slots, got {len(targets)}")
        self._call("gdnrt_state_pool_copy", sources, targets, len(sources), _stream(stream))

    def has_pending(self, slots: Sequence[int], stream: object = None) -> list[bool]:
        """Whether tokens are pending in each slot, so that its state lacks them; of a pool with
        deferred_writes. Tokens of a verify step count from the next step on. Waits for `stream`
        and copies the counts of all slots to the host."""
        ids = _ids(slots)
        found = (c.c_uint8 * len(ids))()
        self._call("gdnrt_state_pool_has_pending", ids, len(ids), _stream(stream), found)
        return [bool(each) for each in found]

    def use_kernels(self, copy_slots: Kernel, zero_slots: Kernel) -> None:
        """From now on entries of an image copy and zero, all layers in one launch; see
        gdnrt_state_pool_use_kernels."""
        self._call("gdnrt_state_pool_use_kernels", copy_slots._handle, zero_slots._handle)

    def check_batch(self, slots: Sequence[int]) -> None:
        """For debugging: GdnError unless each id, padding aside, is in use and there once."""
        ids = _ids(slots)
        self._call("gdnrt_state_pool_check_batch", ids, len(ids))

    def _call(self, name: str, *arguments) -> None:
        self._runtime.call(name, self._handle, *arguments)

    def _take(self, name: str, count: int, zero: bool, stream: object) -> list[int] | None:
        slots, taken = room_for(count), c.c_int32()
        if slots is None:
            return None
        self._call(name, count, int(zero), _stream(stream), slots, c.byref(taken))
        return list(slots) if taken.value else None

    def _info(self) -> StatePoolInfo:
        info = StatePoolInfo()
        self._call("gdnrt_state_pool_describe", c.byref(info))
        return info


def _index(name: str, known: tuple[str, ...], value: str) -> int:
    if value not in known:
        raise ValueError(f"{name}: expected one of {', '.join(known)}, got {value}")
    return known.index(value)


def room_for(count: int) -> c.Array | None:
    """An array for so many slots that are to be taken; None for more than any pool has."""
    count = integer("count", count)
    if count < 0:
        raise ValueError(f"count: expected 0 or more slots, got {count}")
    return None if count > 2**31 - 1 else (c.c_int32 * count)()


def _ids(slots: object) -> c.Array:
    """Ids as the C ABI takes them: of an int, a sequence, or a host array."""
    # Most calls are of a few ints, and arrays would take longer than the call.
    given = (slots,) if type(slots) is int else slots
    is_plain = type(given) in (list, tuple) and {type(each) for each in given} == {int}
    if is_plain and min(given) >= -(2**31) and max(given) < 2**31:
        return (c.c_int32 * len(given))(*given)
    if not isinstance(slots, (int, np.integer, list, tuple, np.ndarray)):
        found = view("slots", slots, ("int32", "int64"))
        if found.device != "cpu":
            raise ValueError("slots: expected ids on the host, got memory of a GPU")
        slots = _numpy(found)
    ids = np.atleast_1d(np.asarray(slots))
    if ids.size and ids.dtype.kind not in "iu":
        raise TypeError(f"slots: expected integers, got {ids.dtype}")
    if ids.size and (ids.max() > 2**31 - 1 or ids.min() < -(2**31)):
        worst = ids.max() if ids.max() > 2**31 - 1 else ids.min()
        raise ValueError(f"slots: expected ids of 32 bits, got {worst}")
    return (c.c_int32 * ids.size)(*(int(each) for each in ids.ravel()))


def _numpy(array: View) -> np.ndarray:
    """Memory of the host in place, which lives as long as the result."""
    dtype = np.dtype(array.dtype) if array.dtype != "bfloat16" else _bfloat16()
    extent = 1 + sum(
        (size - 1) * stride for size, stride in zip(array.shape, array.strides, strict=True)
    )
    memory = (c.c_uint8 * (extent * itemsize(array.dtype))).from_address(array.data)
    memory._owner = array.owner
    flat = np.frombuffer(memory, dtype)
    strides = tuple(stride * dtype.itemsize for stride in array.strides)
    return np.lib.stride_tricks.as_strided(flat, array.shape, strides)


def _bfloat16() -> np.dtype:
    import ml_dtypes

    return np.dtype(ml_dtypes.bfloat16)
