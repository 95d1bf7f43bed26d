# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""States of a pool in memory of the host, and in files.

    tier = HostTier(pool, num_slots=64)
    kept = tier.swap_out([slot])        # the slot is free; None where the tier is full
    (slot,) = tier.swap_in(kept)        # None where the pool is full

Copies are on a stream of their own; include/gdn-c/host_tier.h says what waits for what.
"""

import ctypes as c
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import BinaryIO

from . import _host_tier_abi as abi
from .runtime import _Handle, _stream
from .state_pool import StatePool, _ids, room_for

#: What states may be rounded to; None leaves them as the pool has them.
FORMATS = (None, "bf16", "f16", "i8x2", "i8")


@dataclass(frozen=True)
class StateTags:
    """What a caller says of a state in a file: how many tokens it has, and two numbers of the
    caller's choice, each of 64 bits."""

    num_tokens: int = 0
    name_space: int = 0
    token_hash: int = 0

    def _raw(self) -> abi.StateTags:
        return abi.StateTags(self.num_tokens, self.name_space, self.token_hash)


class HostTier(_Handle):
    """Host slots for the states of `pool`, ids 0 to num_slots - 1, pinned memory for a GPU.

    `format` is None or, for states of float32, "bf16", "f16", "i8x2" or "i8", which the host rounds
    them to, on `rounding_threads` threads. `copy_stream` is the stream of all copies, by default
    one of the tier's own. For files: the pool has the heads of rank `tp_rank` of `tp_size`; a model
    whose ranks outnumber its key heads says how many it has in `total_key_heads`."""

    def __init__(
        self,
        pool: StatePool,
        num_slots: int,
        *,
        format: str | None = None,
        rounding_threads: int = 1,
        copy_stream: object = None,
        tp_size: int = 1,
        tp_rank: int = 0,
        total_key_heads: int = 0,
        total_value_heads: int = 0,
    ):
        if format not in FORMATS:
            names = ", ".join(str(each) for each in FORMATS)
            raise ValueError(f"format: expected one of {names}, got {format}")
        options = abi.HostTierOptions(
            num_slots=num_slots,
            format=FORMATS.index(format),
            has_copy_stream=int(copy_stream is not None),
            copy_stream=_stream(copy_stream),
            tp_size=tp_size,
            tp_rank=tp_rank,
            total_key_heads=total_key_heads,
            total_value_heads=total_value_heads,
            rounding_threads=rounding_threads,
        )
        runtime = pool._runtime
        handle = runtime.create("gdnrt_host_tier_create", pool._handle, c.byref(options))
        super().__init__(runtime, handle, "gdnrt_host_tier_destroy")
        self.pool = pool

    @property
    def num_slots(self) -> int:
        """All host slots, with ids from 0 on."""
        return self._info().num_slots

    @property
    def num_free(self) -> int:
        """Host slots that nobody has."""
        return self._info().free_slots

    @property
    def slot_bytes(self) -> int:
        """What a host slot holds: all buffers, all layers."""
        return self._info().slot_bytes

    @property
    def mem_bytes(self) -> int:
        """The memory of the tier."""
        return self._info().bytes

    def allocate(self, count: int) -> list[int] | None:
        """Takes host slots; None where there are fewer, and then none is taken."""
        slots, taken = room_for(count), c.c_int32()
        if slots is None:
            return None
        self._call("gdnrt_host_tier_allocate", count, slots, c.byref(taken))
        return list(slots) if taken.value else None

    def free(self, host_slots: Sequence[int]) -> None:
        """Gives host slots back, also while copies are under way."""
        ids = _ids(host_slots)
        self._call("gdnrt_host_tier_free", ids, len(ids))

    def store(
        self, slots: Sequence[int] | int, host_slots: Sequence[int] | int, stream: object = None
    ) -> None:
        """Copies slots of the pool to host slots, after what was launched on `stream`. Until
        `wait`, the slots may be read and freed, and not written. GdnError for slots that are free,
        and for a host slot that is named twice."""
        self._copy("gdnrt_host_tier_store", slots, host_slots, stream)

    def load(
        self,
        host_slots: Sequence[int] | int,
        slots: Sequence[int] | int,
        stream: object = None,
        *,
        wait: bool = True,
    ) -> None:
        """Copies host slots to slots of the pool, after what was launched on `stream`, which then
        waits. Without `wait` it does not: call wait() ahead of what uses the slots. GdnError for
        host slots that are empty, and for slots that are free or named twice."""
        self._copy("gdnrt_host_tier_load", host_slots, slots, stream)
        if wait:
            self.wait(slots, stream)

    def wait(self, slots: Sequence[int] | int, stream: object = None) -> None:
        """Makes `stream` wait for copies of slots of the pool that are under way."""
        ids = _ids(slots)
        self._call("gdnrt_host_tier_wait", ids, len(ids), _stream(stream))

    def swap_out(self, slots: Sequence[int], stream: object = None) -> list[int] | None:
        """Preempts: stores slots of the pool and frees them. Returns the host slots; None where
        there are fewer, and then nothing is done."""
        return self._swap("gdnrt_host_tier_swap_out", slots, stream)

    def swap_in(self, host_slots: Sequence[int], stream: object = None) -> list[int] | None:
        """Takes slots of the pool, loads host slots into them and frees these. Returns the slots;
        None where the pool has fewer, and then nothing is done."""
        return self._swap("gdnrt_host_tier_swap_in", host_slots, stream)

    def is_over(self, host_slots: Sequence[int]) -> list[bool]:
        """Whether no copy of each host slot is under way."""
        ids = _ids(host_slots)
        over = (c.c_uint8 * len(ids))()
        self._call("gdnrt_host_tier_is_over", ids, len(ids), over)
        return [bool(each) for each in over]

    def synchronize(self, host_slots: Sequence[int]) -> None:
        """Returns when no copy of the host slots is under way."""
        ids = _ids(host_slots)
        self._call("gdnrt_host_tier_synchronize", ids, len(ids))

    def write(
        self, host_slot: int, target: str | os.PathLike | BinaryIO, tags: StateTags = StateTags()
    ) -> None:
        """Writes a state, of this rank, to a file, which has its name once it is complete, or to an
        object with `write`."""
        raw = tags._raw()
        if isinstance(target, (str, os.PathLike)):
            path = os.fsencode(target)
            self._call("gdnrt_host_tier_write_file", host_slot, c.byref(raw), path)
            return
        failed: list[BaseException] = []

        def write(user, data, size):
            try:
                _write_all(target, c.string_at(data, size))
            except BaseException as error:
                failed.append(error)
                return 1
            return 0

        writer = abi.ByteWriter(abi.WriteFunction(write), None)
        self._call_back(failed, "gdnrt_host_tier_write", host_slot, c.byref(raw), c.byref(writer))

    def read(
        self,
        host_slot: int,
        parts: Sequence[str | os.PathLike | BinaryIO] | str | os.PathLike | BinaryIO,
        expected: StateTags | None = None,
    ) -> StateTags:
        """Fills a host slot with what ranks have written, as many as there were; returns the tags.
        After a failure the host slot is empty."""
        if isinstance(parts, (str, os.PathLike)) or hasattr(parts, "read"):
            parts = [parts]
        wanted = c.byref(expected._raw()) if expected else None
        found, failed, count = abi.StateTags(), [], len(parts)
        files = [isinstance(part, (str, os.PathLike)) for part in parts]
        if all(files):
            paths = (c.c_char_p * count)(*(os.fsencode(part) for part in parts))
            self._call(
                "gdnrt_host_tier_read_files", host_slot, paths, count, wanted, c.byref(found)
            )
        elif any(files):
            raise TypeError("parts: expected paths alone or objects with read alone, got both")
        else:
            functions = [abi.ReadFunction(_reader(part, failed)) for part in parts]
            readers = (abi.ByteReader * count)(*((each, None) for each in functions))
            self._call_back(
                failed, "gdnrt_host_tier_read", host_slot, readers, count, wanted, c.byref(found)
            )
        return StateTags(found.num_tokens, found.name_space, found.token_hash)

    def _call(self, name: str, *arguments) -> None:
        self._runtime.call(name, self._handle, *arguments)

    def _call_back(self, failed: list[BaseException], name: str, *arguments) -> None:
        """A call with functions of the caller; what they raise is raised here."""
        try:
            self._call(name, *arguments)
        except RuntimeError:
            if failed:
                raise failed[0] from None
            raise

    def _copy(self, name: str, sources: object, targets: object, stream: object) -> None:
        sources, targets = _ids(sources), _ids(targets)
        if len(sources) != len(targets):
            raise ValueError(f"slots: expected {len(sources)} targets, got {len(targets)}")
        self._call(name, sources, targets, len(sources), _stream(stream))

    def _swap(self, name: str, slots: Sequence[int], stream: object) -> list[int] | None:
        ids, taken = _ids(slots), c.c_int32()
        found = (c.c_int32 * len(ids))()
        self._call(name, ids, len(ids), _stream(stream), found, c.byref(taken))
        return list(found) if taken.value else None

    def _info(self) -> abi.HostTierInfo:
        info = abi.HostTierInfo()
        self._call("gdnrt_host_tier_describe", c.byref(info))
        return info


def _write_all(target: BinaryIO, data: bytes) -> None:
    """Files without a buffer may take a part, and say so; others may say nothing."""
    while data:
        count = target.write(data)
        if count == 0:
            raise OSError(f"target: expected write to take some of {len(data)} bytes, got 0")
        data = data[count:] if isinstance(count, int) else b""


def _reader(part: BinaryIO, failed: list[BaseException]):
    """A function that the runtime reads a part with."""

    def read(user, data, size):
        try:
            got = 0
            while got < size:
                piece = part.read(size - got)
                if not piece:
                    break
                if len(piece) > size - got:
                    raise ValueError(
                        f"parts: expected read({size - got}) to give at most as many bytes, got"
                        f" {len(piece)}"
                    )
                c.memmove(data + got, bytes(piece), len(piece))
                got += len(piece)
            return got
        except BaseException as error:
            failed.append(error)
            return -1

    return read
