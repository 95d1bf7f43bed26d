# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles what peers' chains of kernels take, in processes beside each other, into the caches
that Triton and TileLang keep in files: what then measures loads it.

    python -m gdn.bench.packed_compile 128x128 rule 0 2 16 32 8192x4 1x8192
"""

import gc
import os
import subprocess
import sys
import time

from .grid import DIM, lengths_of

# Milliseconds that Triton takes to measure each of the configurations of a kernel, of some
# hundred in all; its own are 25 and 100.
_WARM_UP_MS, _MEASURE_MS = 1, 4
_WIDTH = 4
_BUCKET = 2048 * 32  # rows of a norm for which FLA's kernels have one code

_SHARES = 2  # processes that compile a rule of FLA: it takes longest

Pair = tuple[int, int]
DIMS = (DIM, DIM)  # of keys and values

HEADS = ((16, 32), (16, 64), (2, 8), (16, 16))
SETS = ("8192x4", "1x8192", "1x32768", "1024x8", "4096x8", "2048+6144")
# Peers are measured in this order: those that compile longest last.
PASSES = (("fla", "flashinfer", "flashinfer-fla-l2norm"), ("flashqla",))


def choose_quickly() -> None:
    """Has Triton's tuners measure a configuration for milliseconds, not tenths of a second."""
    import functools

    import triton.testing
    from triton.runtime import driver

    bench = functools.partial(triton.testing.do_bench, warmup=_WARM_UP_MS, rep=_MEASURE_MS)
    driver.active.get_benchmarker = lambda: bench


def take_share(share: int, of: int) -> None:
    """Leaves of each kernel's configurations a part, so that processes compile a part each."""
    from triton.runtime.autotuner import Autotuner

    for found in gc.get_objects():
        if issubclass(type(found), Autotuner):
            found.configs = found.configs[share::of] or found.configs[:1]


def jobs(
    pairs: list[Pair], sets: list[str], peers: list[str], dims: Pair = DIMS
) -> dict[str, list[list[str]]]:
    """Arguments of the processes behind the dims of a head, by the peer that has to wait for
    them; each kernel once. All wait for those of FLA, which go first. FlashInfer keeps what it
    compiles in the process."""
    if not peers:
        return {}
    longest = sorted({sum(lengths_of(name)) for name in sets})
    widths = {heads * dim for pair in pairs for heads, dim in zip(pair, dims, strict=True)}
    fla = [["convolution", str(width)] for width in sorted(widths)]
    for kind, heads, each in (("l2norm", 0, 1), ("norm", 1, 3)):
        rows = {pair[heads] * tokens for pair in pairs for tokens in longest}
        buckets = {-(-count // _BUCKET): str(count) for count in sorted(rows)}
        counts = list(buckets.values())
        fla += [[kind, *counts[i : i + each]] for i in range(0, len(counts), each)]
    fla += [["gates", str(heads)] for heads in sorted({pair[1] for pair in pairs})]
    found = {"fla": fla}
    if "fla" in peers:
        shares = [[str(share), str(_SHARES)] for share in range(_SHARES)]
        fla += [["rule", *share, *map(str, pair), *sets] for pair in pairs for share in shares]
    if "flashqla" in peers:
        # Sets of few rows take kernels of their own.
        several = [name for name in sets if len(lengths_of(name)) > 2]
        few = [name for name in sets if name not in several]
        groups = [group for group in (few, several) if group]
        found["flashqla"] = [
            ["flashqla", *map(str, pair), *group] for pair in pairs for group in groups
        ]
    return found


def start(
    found: dict[str, list[list[str]]], dims: Pair = DIMS
) -> dict[str, list[subprocess.Popen]]:
    command = [sys.executable, "-m", "gdn.bench.packed_compile", "x".join(map(str, dims))]
    return {
        peer: [subprocess.Popen([*command, *arguments]) for arguments in all_arguments]
        for peer, all_arguments in found.items()
    }


def wait(processes: list[subprocess.Popen], end: float) -> bool:
    """Whether all have ended; none is waited for longer than that."""
    for process in processes:
        try:
            process.wait(max(0.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            return False
    return True


def stop(processes: list[subprocess.Popen]) -> None:
    """Those that still run."""
    for process in processes:
        if process.poll() is None:
            process.kill()
            process.wait()


def _normal(*shape: int):
    import torch

    return torch.randn(shape, device="cuda", dtype=torch.bfloat16)


def _convolution(width: int) -> None:
    import torch

    from .peers import packed

    bounds = torch.tensor([0, 8192], device="cuda")
    packed.convolve(_normal(8192, width), _normal(width, _WIDTH), _normal(1, width, _WIDTH), bounds)


def _norm(rows: int, dim: int) -> None:
    from .peers import packed

    core = _normal(1, rows, 1, dim)
    packed.gated_norm(core, _normal(1, rows, 1, dim), _normal(dim), "silu", 1e-6)


def _gates(heads: int) -> None:
    import torch

    from .peers import packed

    weight = torch.zeros(heads, device="cuda")
    packed.gates(_normal(8192, heads), _normal(8192, heads), weight, weight)


def projections(pair: Pair, name: str, dims: Pair = DIMS):
    """A row of the grid as the rules take it: the problem, its set, and what stands for
    convolved queries, keys and values."""
    import torch

    from .grid import Case
    from .packed_inputs import Problem, Projections

    (keys, values), (dk, dv) = pair, dims
    case = Case(pair, name, dims)
    tokens, rows = sum(case.lengths), len(case.lengths)
    ends = torch.tensor([0, *case.lengths]).cumsum(0)
    weight = torch.zeros(values, device="cuda")
    weights = {"A_log": weight, "dt_bias": weight.clone()}
    weights["cu_seqlens"] = ends.to(device="cuda", dtype=torch.int32)
    q, k = (_normal(1, tokens, keys, dk) for _ in range(2))
    v = _normal(1, tokens, values, dv)
    state = torch.zeros(rows, values, dv, dk, device="cuda")
    a, b = (_normal(tokens, values) for _ in range(2))
    x = Projections(q[0], k[0], v[0], v[0], a, b, [], state)
    return Problem(case, None, weights, [], [x]), x, q, k, v


def call_fla(pair: Pair, sets: list[str], share: int, of: int, dims: Pair = DIMS) -> None:
    """The rule, once for each set, without the l2norm, which has a process of its own."""
    import fla.ops.gated_delta_rule  # noqa: F401  before a share is taken
    import torch

    from .peers import packed

    take_share(share, of)
    for name in sets:
        problem, *arguments = projections(pair, name, dims)
        with torch.no_grad():
            packed.fla_rule(problem, l2norm=False)(*arguments)
        torch.cuda.synchronize()


def call_ready(make, pair: Pair, sets: list[str]) -> None:
    """The rule that `make` gives of a problem, once for each set."""
    import torch

    for name in sets:
        problem, x, q, k, v = projections(pair, name)
        ones = torch.ones(1, *x.a.shape, device="cuda")
        unit = (torch.nn.functional.normalize(part, dim=-1) for part in (q, k))
        with torch.no_grad():
            make(problem)(x, *unit, v, -ones, ones)
        torch.cuda.synchronize()


def main(arguments: list[str] | None = None) -> int:
    sizes, kind, *rest = sys.argv[1:] if arguments is None else arguments
    dims = tuple(map(int, sizes.split("x")))
    if kind == "flashqla":
        os.nice(10)  # it is measured last
    from .peers import packed

    choose_quickly()
    if kind == "rule":
        share, of, keys, values = map(int, rest[:4])
        call_fla((keys, values), rest[4:], share, of, dims)
        return 0
    if kind == "flashqla":
        call_ready(packed.flashqla_ready, (int(rest[0]), int(rest[1])), rest[2:])
        return 0
    alone = {
        "convolution": _convolution,
        "l2norm": lambda rows: packed.normalise(_normal(1, rows, 1, dims[0])),
        "norm": lambda rows: _norm(rows, dims[1]),
        "gates": _gates,
    }
    for number in rest:
        alone[kind](int(number))
    return 0


if __name__ == "__main__":
    sys.exit(main())
