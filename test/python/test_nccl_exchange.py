# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exchanges of buffers through Python, on a stand-in of NCCL whose ranks are threads; with NCCL
itself, nccl_on_gpu.py is run by hand."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from gdn import GdnError, NcclExchange, Runtime, nccl_id


@pytest.fixture(scope="module")
def nccl(build_dir):
    return build_dir / "lib/libgdnrt_fake_nccl.so"


@pytest.fixture(scope="module")
def runtime(build_dir):
    return Runtime(build_dir / "lib/libgdnrt.so")


def test_ranks_get_what_all_gave(runtime, nccl):
    size, made = 3, nccl_id(runtime, nccl)
    device = runtime.device()

    def run(rank):
        exchange = NcclExchange(device, made, rank=rank, size=size, library=nccl)
        received = []
        for turn in range(3):
            own = np.full(5, 10 * turn + rank, np.float32)
            got = np.full((size, 5), np.nan, np.float32)
            exchange.all_gather(own.ctypes.data, got.ctypes.data, own.nbytes)
            exchange.wait()
            received.append(got)
        return received

    with ThreadPoolExecutor(size) as threads:
        for received in threads.map(run, range(size)):
            for turn, got in enumerate(received):
                assert (got == 10 * turn + np.arange(size)[:, None]).all()


def test_a_rank_that_does_not_come_is_an_error(runtime, nccl):
    made = nccl_id(runtime, nccl)
    with pytest.raises(GdnError, match=r"rank 1 of 2: expected .* within 20 ms"):
        NcclExchange(runtime.device(), made, rank=1, size=2, timeout=0.02, library=nccl)


def test_an_aborted_exchange_is_of_no_more_use(runtime, nccl):
    exchange = NcclExchange(runtime.device(), nccl_id(runtime, nccl), rank=0, size=1, library=nccl)
    exchange.abort()
    with pytest.raises(GdnError, match="this rank was aborted"):
        exchange.wait()


def test_what_is_missing_is_named(runtime, nccl):
    with pytest.raises(GdnError, match=r"UNSUPPORTED: exchange: no NCCL: .*libnot_there"):
        nccl_id(runtime, "libnot_there.so")
    with pytest.raises(ValueError, match="expected 128 bytes of an id, got 3"):
        NcclExchange(runtime.device(), b"abc", rank=0, size=1, library=nccl)
    made = nccl_id(runtime, nccl)
    with pytest.raises(GdnError, match="rank: expected 0 to 0, got 1"):
        NcclExchange(runtime.device(), made, rank=1, size=1, library=nccl)
