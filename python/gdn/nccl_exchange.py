# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Buffers of ranks on NCCL, without PyTorch: what include/gdn-c/exchange.h does, which says how
ranks that fail end. NCCL is found when it is asked for.

    id = nccl_id()                                     # on one rank, which gives it to the others
    exchange = NcclExchange(device, id, rank=0, size=2)
    exchange.all_gather(send, receive, num_bytes, stream)   # addresses of the device
    exchange.wait(stream)
"""

import ctypes as c
from pathlib import Path

from . import _exchange_abi as abi
from .runtime import Device, Runtime, _Handle, _stream


def nccl_id(runtime: Runtime | None = None, library: str | Path | None = None) -> bytes:
    """An id of a communicator. `library` is NCCL's name or path, by default libnccl.so.2. GdnError
    (UNSUPPORTED) where there is none, or one older than 2.18."""
    made = c.create_string_buffer(abi.ID_BYTES)
    (runtime or Runtime()).call("gdnrt_nccl_id", _path(library), made)
    return made.raw


class NcclExchange(_Handle):
    """One rank. `communicator` is an id, for one that the exchange makes for the CUDA device that
    is current, or the address of an ncclComm_t, which stays the caller's. Calls wait `timeout`
    seconds for other ranks. Graphs that have gathers of it are destroyed before it is."""

    def __init__(
        self,
        device: Device,
        communicator: bytes | int,
        *,
        rank: int,
        size: int,
        timeout: float = 60.0,
        library: str | Path | None = None,
    ):
        options = abi.NcclOptions(
            library=_path(library), rank=rank, num_ranks=size, timeout_ms=round(1000 * timeout)
        )
        if isinstance(communicator, bytes):
            if len(communicator) != abi.ID_BYTES:
                got = len(communicator)
                raise ValueError(f"communicator: expected {abi.ID_BYTES} bytes of an id, got {got}")
            id_bytes = c.create_string_buffer(communicator, abi.ID_BYTES)
            options.id = c.addressof(id_bytes)
        else:
            options.communicator = communicator
        runtime = device._runtime
        handle = runtime.create("gdnrt_exchange_create_nccl", device._handle, c.byref(options))
        super().__init__(runtime, handle, "gdnrt_exchange_destroy")
        self.rank, self.size = rank, size

    def all_gather(self, send: int, receive: int, num_bytes: int, stream: object = None) -> None:
        """Memory at `receive`, of size * num_bytes bytes, gets what each rank has at `send`, in the
        order of `stream`, which may be being captured."""
        self._call("gdnrt_exchange_all_gather", send, receive, num_bytes, _stream(stream))

    def wait(self, stream: object = None) -> None:
        """Returns when `stream` has done its work. GdnError where another rank failed or did not
        come in time, and in every later call."""
        self._call("gdnrt_exchange_wait", _stream(stream))

    def abort(self) -> None:
        """Makes all later calls fail, and, after their time-outs, those of the other ranks."""
        self._call("gdnrt_exchange_abort")

    def _call(self, name: str, *arguments) -> None:
        self._runtime.call(name, self._handle, *arguments)


def _path(library: str | Path | None) -> bytes | None:
    return None if library is None else str(library).encode()
