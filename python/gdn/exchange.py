# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How ranks exchange bytes: threads of one process, or a process group of torch.distributed. A rank
that fails or does not come is an error on every other rank. PyTorch is never imported here."""

from __future__ import annotations

import contextlib
import sys
import threading
from typing import Protocol


class ExchangeError(RuntimeError):
    """Another rank failed, did not come in time, or called with other arguments."""


class Exchange(Protocol):
    """The ranks of a call. All of them make the same calls in the same order."""

    rank: int
    size: int

    def all_gather(self, data: bytes) -> list[bytes]:
        """What each rank gave, in the order of ranks, of any lengths. Raises ExchangeError if a
        rank does not come before the time-out."""
        ...


class ThreadExchange:
    """A rank that is a thread of this process. `ThreadExchange.group(4)` makes one for each of four
    threads. After a time-out the group is of no more use: every later call raises."""

    def __init__(self, rank: int, size: int, shared: tuple[threading.Barrier, list]):
        self.rank, self.size = rank, size
        self._barrier, self._given = shared

    @staticmethod
    def group(size: int, timeout: float = 60.0) -> list[ThreadExchange]:
        """`timeout` in seconds is how long a rank waits for the others in one call."""
        if size < 1:
            raise ValueError(f"size: expected at least 1 rank, got {size}")
        shared = threading.Barrier(size, timeout=timeout), [b""] * size
        return [ThreadExchange(rank, size, shared) for rank in range(size)]

    def all_gather(self, data: bytes) -> list[bytes]:
        """See Exchange.all_gather."""
        try:
            self._given[self.rank] = data
            self._barrier.wait()
            gathered = list(self._given)
            # No rank gives the next before all have this.
            self._barrier.wait()
        except threading.BrokenBarrierError as error:
            raise ExchangeError(
                f"rank {self.rank}: expected {self.size} ranks, at least one did not come in time"
            ) from error
        return gathered

    def gather_arrays(self, own, arrays):
        """As TorchExchange.gather_arrays."""
        if arrays.device[0] == "cuda":
            arrays.torch.cuda.current_stream().synchronize()
        try:
            self._given[self.rank] = own
            self._barrier.wait()
            gathered = arrays.stack(list(self._given))
            if arrays.device[0] == "cuda":
                arrays.torch.cuda.current_stream().synchronize()
            self._barrier.wait()
        except threading.BrokenBarrierError as error:
            raise ExchangeError(
                f"rank {self.rank}: expected {self.size} ranks, at least one did not come in time"
            ) from error
        return gathered


class TorchExchange:
    """A rank of torch.distributed: `group` is a process group, by default that of all processes.
    Its time-out is the one that the group was made with. With the back end NCCL the bytes go
    through memory of the current CUDA device, and `all_gather` waits for the device."""

    def __init__(self, group=None):
        torch = sys.modules.get("torch")
        if torch is None or not torch.distributed.is_initialized():
            raise RuntimeError("group: expected torch.distributed to be initialised, it is not")
        self._torch, self._group = torch, group
        self.rank = torch.distributed.get_rank(group)
        self.size = torch.distributed.get_world_size(group)
        backend = str(torch.distributed.get_backend(group))
        self._device = "cuda" if "nccl" in backend else "cpu"

    def all_gather(self, data: bytes) -> list[bytes]:
        torch = self._torch
        try:
            own = torch.tensor([len(data)], dtype=torch.int64, device=self._device)
            lengths = [length.item() for length in self._gather(own)]
            padded = torch.zeros(max(max(lengths), 1), dtype=torch.uint8, device=self._device)
            if data:
                padded[: len(data)] = torch.frombuffer(bytearray(data), dtype=torch.uint8)
            parts = [part.cpu().numpy().tobytes() for part in self._gather(padded)]
        except RuntimeError as error:
            raise ExchangeError(f"rank {self.rank}: {error}") from error
        return [part[:length] for part, length in zip(parts, lengths, strict=True)]

    def gather_arrays(self, own, arrays):
        """What each rank has in an array of one shape: [ranks, *own.shape]. With NCCL on the
        current stream, without waiting for it, and a graph can capture it."""
        gathered = arrays.empty((self.size, *own.shape), arrays.dtype_of(own))
        try:
            if self._device == "cuda":
                self._torch.distributed.all_gather_into_tensor(gathered, own, group=self._group)
            else:
                self._torch.distributed.all_gather(list(gathered), own, group=self._group)
        except RuntimeError as error:
            raise ExchangeError(f"rank {self.rank}: {error}") from error
        return gathered

    def _gather(self, own) -> list:
        parts = [self._torch.empty_like(own) for _ in range(self.size)]
        self._torch.distributed.all_gather(parts, own, group=self._group)
        return parts


def exchange_of(group) -> Exchange:
    """`group` itself if it is an Exchange, else that of a process group of torch.distributed."""
    if all(hasattr(group, name) for name in ("rank", "size", "all_gather")) and not (
        callable(group.rank) or callable(group.size)
    ):
        return group
    return TorchExchange(group)


def gather_or_fail(exchange: Exchange, make) -> list[bytes]:
    """What `make()` gives on each rank. Where it raises, that is raised there, and an ExchangeError
    with its text on every other rank."""
    try:
        data = b"\0" + make()
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        with contextlib.suppress(ExchangeError):
            exchange.all_gather(b"\1" + text.encode())
        raise
    parts = exchange.all_gather(data)
    if len(parts) != exchange.size:
        raise ExchangeError(f"expected data of {exchange.size} ranks, got {len(parts)}")
    for rank, part in enumerate(parts):
        if part[:1] != b"\0":
            raise ExchangeError(f"rank {rank}: {part[1:].decode(errors='replace')}")
    return [part[1:] for part in parts]
