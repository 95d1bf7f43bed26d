# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""TorchExchange on a stand-in for the functions of PyTorch that it calls, with threads as ranks.
gdn.context_check runs it on PyTorch itself."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest

from gdn.exchange import ExchangeError, ThreadExchange, TorchExchange, exchange_of


class Tensor(np.ndarray):
    """An array with the methods that are called."""

    def cpu(self):
        return self

    def numpy(self):
        return np.asarray(self)


@pytest.fixture
def torch(monkeypatch):
    """`torch.here` are the rank and the group of a thread; `torch.devices` those of tensors."""
    here, devices = threading.local(), []

    def made(values, dtype, device="cpu"):
        devices.append(device)
        return np.array(values, dtype).view(Tensor)

    def all_gather(parts, own, group=None):
        assert group is here.group
        sizes = [len(x) for x in here.exchange.all_gather(own.tobytes())]
        if len(set(sizes)) != 1:
            raise RuntimeError("sizes differ")
        for part, data in zip(parts, here.exchange.all_gather(own.tobytes()), strict=True):
            part[...] = np.frombuffer(data, own.dtype)

    distributed = SimpleNamespace(
        is_initialized=lambda: True,
        get_rank=lambda group: here.exchange.rank,
        get_world_size=lambda group: here.exchange.size,
        get_backend=lambda group: here.backend,
        all_gather=all_gather,
    )
    module = SimpleNamespace(
        int64=np.int64,
        uint8=np.uint8,
        tensor=made,
        zeros=lambda size, dtype, device: made([0] * size, dtype, device),
        frombuffer=lambda data, dtype: np.frombuffer(data, dtype).view(Tensor),
        empty_like=np.empty_like,
        distributed=distributed,
        here=here,
        devices=devices,
    )
    monkeypatch.setitem(sys.modules, "torch", module)
    return module


def on_ranks(torch, size, work, backend="gloo", timeout=20.0):
    group = ThreadExchange.group(size, timeout)

    def run(rank):
        torch.here.exchange, torch.here.group, torch.here.backend = group[rank], "group", backend
        try:
            return work(TorchExchange("group"))
        except ExchangeError as error:
            return error

    with ThreadPoolExecutor(size) as threads:
        return list(threads.map(run, range(size)))


@pytest.mark.parametrize(("backend", "device"), [("gloo", "cpu"), ("nccl", "cuda")])
def test_bytes_of_any_length(torch, backend, device):
    def work(exchange):
        assert exchange.size == 3
        data = [bytes([exchange.rank + 1]) * (step * exchange.rank) for step in (0, 1, 5)]
        return [exchange.all_gather(one) for one in data]

    results = on_ranks(torch, 3, work, backend)
    want = [[bytes([r + 1]) * (step * r) for r in range(3)] for step in (0, 1, 5)]
    assert results == [want] * 3 and set(torch.devices) == {device}


def test_a_failure_of_the_back_end(torch):
    def work(exchange):
        if exchange.rank == 1:
            return None
        return exchange.all_gather(b"x")

    first, none, last = on_ranks(torch, 3, work, timeout=0.2)
    assert none is None
    for rank, result in ((0, first), (2, last)):
        assert isinstance(result, ExchangeError) and str(result).startswith(f"rank {rank}: ")


def test_groups_of_torch(torch):
    """A process group has methods for what is a number of an Exchange."""
    (exchange,) = ThreadExchange.group(1)
    torch.here.exchange, torch.here.backend = exchange, "gloo"
    torch.here.group = SimpleNamespace(rank=lambda: 0, size=lambda: 1, all_gather=None)
    for group in (torch.here.group, None):
        torch.here.group = group
        found = exchange_of(group)
        assert isinstance(found, TorchExchange) and found.all_gather(b"ab") == [b"ab"]
