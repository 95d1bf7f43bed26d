# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exchanges on NCCL itself, run by hand where there are GPUs and PyTorch: each GPU is a rank, and a
thread of this process. With one GPU there is one rank.

    python test/python/nccl_on_gpu.py [path of libnccl.so.2]
"""

import sys
from concurrent.futures import ThreadPoolExecutor

import torch

from gdn import GdnError, NcclExchange, Runtime, nccl_id

LIBRARY = sys.argv[1] if len(sys.argv) > 1 else None


def gather(runtime, made, rank, size):
    """Times in us by MiB of a rank; all values are checked, in order and replayed from a graph."""
    torch.cuda.set_device(rank)
    torch.zeros(1, device="cuda")
    device = runtime.cuda(rank)
    exchange = NcclExchange(device, made, rank=rank, size=size, library=LIBRARY)
    times = {}
    for mib in (0.25, 2, 8, 32):
        count = int(mib * 2**18)
        own = torch.empty(count, device="cuda")
        got = torch.full((size, count), float("nan"), device="cuda")
        stream = torch.cuda.Stream()

        def launch(own=own, got=got, stream=stream):
            exchange.all_gather(own.data_ptr(), got.data_ptr(), 4 * own.numel(), stream)

        def check(first, own=own, got=got):
            expected = first + torch.arange(size, device="cuda")
            assert (got == expected[:, None]).all(), (own.numel(), first)

        own.fill_(rank)
        torch.cuda.synchronize()
        launch()
        exchange.wait(stream)
        check(0)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
            launch()
        own.fill_(100 + rank)
        got.fill_(float("nan"))
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            graph.replay()
        exchange.wait(stream)
        check(100)
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        with torch.cuda.stream(stream):
            for _ in range(5):
                graph.replay()
            start.record()
            for _ in range(50):
                graph.replay()
            end.record()
        exchange.wait(stream)
        times[mib] = start.elapsed_time(end) * 1000 / 50
        # Before the exchange.
        graph.reset()
    return times


def be_late(runtime, made, rank, size):
    """One rank makes no call; the others are told so after their time-out."""
    torch.cuda.set_device(rank)
    exchange = NcclExchange(
        runtime.cuda(rank), made, rank=rank, size=size, timeout=5, library=LIBRARY
    )
    if rank == size - 1:
        return "makes no call"
    own, got = torch.zeros(64, device="cuda"), torch.zeros(size, 64, device="cuda")
    try:
        exchange.all_gather(own.data_ptr(), got.data_ptr(), 256)
        exchange.wait()
    except GdnError as error:
        return str(error)
    raise AssertionError("expected an error, got none")


def main() -> None:
    runtime, size = Runtime(), torch.cuda.device_count()
    for body in (gather, be_late) if size > 1 else (gather,):
        made = nccl_id(runtime, LIBRARY)
        with ThreadPoolExecutor(size) as threads:
            ranks = range(size)
            for rank, result in enumerate(
                threads.map(
                    lambda rank, body=body, made=made: body(runtime, made, rank, size), ranks
                )
            ):
                print(body.__name__, f"rank {rank} of {size}:", result)
    print("holds")


if __name__ == "__main__":
    main()
