# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One long sequence over GPUs (ContextParallel.plan) beside one call on one GPU, same inputs:

    torchrun --nproc-per-node 2 -m gdn.bench.context --commit C --output many-gpus.json
    python3 -m gdn.bench.context --commit C --output many-gpus.json     # one GPU: rank after rank

On one GPU the ranks' parts are timed one after the other, with what the others gave recorded; what
NCCL takes is then in no time. Errors are beside one call, and of 4,096 tokens beside float64."""

from __future__ import annotations

import argparse
import datetime
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch

from ..array_library import library_of
from ..context_parallel import ContextParallel
from ..exchange import ThreadExchange, TorchExchange
from ..records import text_of
from ..rule import gated_delta_rule

NAMES = ("q", "k", "v", "log_decay", "beta")
HK, HV, D = 16, 32, 128


class Recorded:
    """A rank whose peers gave what is recorded."""

    def __init__(self, rank: int, size: int, gathered):
        self.rank, self.size, self._gathered = rank, size, gathered

    def gather_arrays(self, own, arrays):
        gathered = self._gathered.clone()
        gathered[self.rank] = own
        return gathered


def inputs(tokens: int, seed: int, key_heads: int = HK, heads: int = HV) -> dict:
    """The same on every GPU of one kind."""
    generator = torch.Generator("cuda").manual_seed(seed)

    def normal(*shape):
        return torch.randn(shape, generator=generator, device="cuda", dtype=torch.bfloat16)

    x = {name: normal(tokens, key_heads, D) for name in "qk"}
    x = {name: (y / y.norm(dim=-1, keepdim=True)).bfloat16() for name, y in x.items()}
    x["v"] = normal(tokens, heads, D)
    # From heads that keep what they had to heads that forget it in a few tokens.
    rate = torch.logspace(-5, -0.5, heads, device="cuda")
    x["log_decay"] = -rate * normal(tokens, heads).float().sigmoid()
    x["beta"] = normal(tokens, heads).float().sigmoid()
    return x


def exact(x: dict, state) -> tuple:
    """Outputs and the last state, token by token in float64."""
    q, k, v, decay, beta = (x[name].double() for name in NAMES)
    q, k = (y.repeat_interleave(HV // HK, dim=1) for y in (q, k))
    state, out = state.double(), torch.empty_like(v)
    for t in range(len(v)):
        state = state * decay[t].exp()[:, None, None]
        wrong = v[t] - torch.einsum("hvk,hk->hv", state, k[t])
        state = state + (beta[t][:, None] * wrong)[:, :, None] * k[t][:, None]
        out[t] = torch.einsum("hvk,hk->hv", state, q[t]) * D**-0.5
    return out, state


def error(got, want) -> float:
    """The largest of a head, of outputs [T, Hv, dv] or of a state [Hv, dv, dk]."""
    got, want = (x.double() for x in (got, want))
    dims = (1, 2) if got.shape[-1] == got.shape[-2] == D else (0, 2)
    return float(((got - want).norm(dim=dims) / want.norm(dim=dims)).max())


def round_of(call, group: bool, calls: int = 5) -> float:
    """Microseconds of a call, of `calls` in a row."""
    torch.cuda.synchronize()
    if group:
        torch.distributed.barrier()
        torch.cuda.synchronize()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(calls):
        call()
    end.record()
    torch.cuda.synchronize()
    return 1e3 * start.elapsed_time(end) / calls


def times_of(calls: dict, group: bool) -> dict[str, float]:
    """Microseconds of each call, the medians of 7 rounds. Rounds of all calls take turns: a GPU
    that has been idle is faster for some tens of milliseconds."""
    rounds = [{name: round_of(call, group) for name, call in calls.items()} for _ in range(9)]
    return {name: float(np.median([one[name] for one in rounds[2:]])) for name in calls}


def time_of(call, group: bool) -> float:
    return times_of({"": call}, group)[""]


def captured(call):
    """The replay of a graph of the call."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(2):
            call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    # The stream of the calls before, whose kernels have memory to work in.
    with torch.cuda.graph(graph, stream=stream):
        call()
    return graph.replay


def parts_of(x: dict, rank: int, size: int) -> dict:
    rows = len(x["v"]) // size
    return {name: y[rank * rows : (rank + 1) * rows] for name, y in x.items()}


def plan_of(exchange, x: dict, states, segments: int):
    slots, starts = (torch.tensor(y, device="cuda") for y in ([1], [0, len(x["v"])]))
    return ContextParallel(exchange).plan(x["v"], states, slots, starts, segments=segments)


def plans_alone(x: dict, states, size: int, segments: int) -> list:
    """Plans of all ranks on this GPU, each with what the others give recorded."""
    group = ThreadExchange.group(size)
    with ThreadPoolExecutor(size) as threads:
        plans = list(
            threads.map(lambda e: plan_of(e, parts_of(x, e.rank, size), states, segments), group)
        )
    own = [own_maps(plan, parts_of(x, r, size))().clone() for r, plan in enumerate(plans)]
    for rank, plan in enumerate(plans):
        plan._exchange = Recorded(rank, size, torch.stack(own))
    return plans


def own_maps(plan, x: dict):
    """A call that gives what the plan's rank sends."""
    from ..map_products import MapProducts, has_products
    from ..rule_kernels import kind_of
    from ..segment_maps import maps_of

    arrays = library_of(x["v"])
    kind = kind_of(D, D, unit=16, io="bfloat16")
    maps = maps_of(kind, arrays.device, None)
    tokens = tuple(x[name] for name in NAMES)
    out = torch.empty_like(x["v"])
    kind = kind._replace(maps=True)
    if not has_products(kind, arrays.device, None):
        return lambda: plan._own_maps(library_of(x["v"]), maps, tokens, out)[0]
    products = MapProducts(kind, None, *plan._runs, plan._own_rank)

    def run():
        arrays = library_of(x["v"])
        return products.combine(arrays, *maps(arrays, tokens, plan._starts, plan._places, out))

    return run


def outputs_call(plan, x: dict):
    """A call that makes outputs of the plan's segments, from states of zeros."""
    from ..rule_kernels import kind_of

    kind = kind_of(D, D, unit=16, io="bfloat16")._replace(maps=True)
    pool = torch.zeros(plan._segments, HV, D, D, device="cuda")
    tokens, out = tuple(x[name] for name in NAMES), torch.empty_like(x["v"])
    return lambda: plan._outputs(library_of(x["v"]), kind, tokens, pool, None, out)


def gather_call(exchange):
    """A call that exchanges maps of a sequence."""
    own = torch.zeros(1, HV, 2 * D, D, device="cuda")
    return lambda: exchange.gather_arrays(own, library_of(own))


def measure(exchange, tokens: int, segments: int, size: int) -> list[dict]:
    x = inputs(tokens, seed=tokens)
    pool = torch.randn(2, HV, D, D, device="cuda", generator=torch.Generator("cuda").manual_seed(1))
    want, after = gated_delta_rule(*(x[name][None] for name in NAMES), initial_state=pool[1:])
    group = exchange is not None
    if group:
        ranks = [
            (exchange.rank, plan_of(exchange, parts_of(x, exchange.rank, size), pool, segments))
        ]
    else:
        ranks = list(enumerate(plans_alone(x, pool, size, segments)))
    one = {
        "eager": lambda: gated_delta_rule(*(x[n][None] for n in NAMES), initial_state=pool[1:]),
    }
    rows, times = [], {}
    one["graph"] = captured(one["eager"])
    times |= {("one", mode): us for mode, us in times_of(one, group).items()}
    found = {"out": 0.0, "state": 0.0, "same": True}
    for rank, plan in ranks:
        own = parts_of(x, rank, size)
        results = []
        for _ in range(3):
            states = pool.clone()
            results.append((plan.delta_prefill(**own, states=states), states))
        found["same"] &= all(
            torch.equal(a, b)
            for other in results[1:]
            for a, b in zip(results[0], other, strict=True)
        )
        part = parts_of({**x, "v": want[0]}, rank, size)["v"]
        found["out"] = max(found["out"], error(results[0][0], part))
        found["state"] = max(found["state"], error(results[0][1][1], after[0]))
        states = pool.clone()
        calls = {"eager": lambda p=plan, o=own, s=states: p.delta_prefill(**o, states=s)}
        calls["graph"] = captured(calls["eager"])
        times |= {(rank, mode): us for mode, us in times_of(calls, group).items()}
        times[rank, "maps"] = time_of(own_maps(plan, own), group)
        times[rank, "maps graph"] = time_of(captured(own_maps(plan, own)), group)
        times[rank, "outputs"] = time_of(captured(outputs_call(plan, own)), group)
    if group:
        times["gather"] = time_of(captured(gather_call(exchange)), group)
    if group:
        mine = torch.tensor(
            [
                times["one", "eager"],
                times["one", "graph"],
                times[exchange.rank, "eager"],
                times[exchange.rank, "graph"],
                found["out"],
                found["state"],
                float(not found["same"]),
            ],
            device="cuda",
            dtype=torch.float64,
        )
        least = mine.clone()
        torch.distributed.all_reduce(mine, torch.distributed.ReduceOp.MAX)
        torch.distributed.all_reduce(least, torch.distributed.ReduceOp.MIN)
        ones, manys = least[:2].tolist(), mine[2:4].tolist()
        found = {"out": float(mine[4]), "state": float(mine[5]), "same": not bool(mine[6])}
    else:
        ones = [times["one", "eager"], times["one", "graph"]]
        manys = []
        for mode, maps in (("eager", "maps"), ("graph", "maps graph")):
            first = max(times[rank, maps] for rank, _ in ranks)
            manys.append(first + max(times[rank, mode] - times[rank, maps] for rank, _ in ranks))
    for mode, one_us, many_us in zip(("eager", "graph"), ones, manys, strict=True):
        config = {"gpus": size if group else 1, "ranks": size, "Hk": HK, "Hv": HV, "dk": D, "dv": D}
        config |= {"tokens": tokens, "io": "bfloat16", "state": "float32", "mode": mode}
        config |= {"segments": segments, "nccl": group, "plan": "PyTorch"}
        row = {"suite": "many-gpus", "impl": "gdn", "config": config, "us": many_us}
        row |= {"one_us": one_us, "ratio": one_us / many_us}
        row |= {"error_to_one": found["out"], "state_error_to_one": found["state"]}
        row["same_bits"] = found["same"]
        maps = "maps" if mode == "eager" else "maps graph"
        row["rank_us"] = {str(rank): times[rank, mode] for rank, _ in ranks}
        row["maps_us"] = {str(rank): times[rank, maps] for rank, _ in ranks}
        row["outputs_us"] = {str(rank): times[rank, "outputs"] for rank, _ in ranks}
        row |= {"gather_us": times["gather"]} if group else {}
        rows.append(row)
    return rows


def checked(exchange, size: int) -> dict:
    """Beside float64."""
    x = inputs(4096, seed=7)
    pool = torch.randn(2, HV, D, D, device="cuda", generator=torch.Generator("cuda").manual_seed(2))
    want, after = exact(x, pool[1])
    if exchange is not None:
        ranks = [(exchange.rank, plan_of(exchange, parts_of(x, exchange.rank, size), pool, 4))]
    else:
        ranks = list(enumerate(plans_alone(x, pool, size, 4)))
    worst = [0.0, 0.0]
    for rank, plan in ranks:
        states = pool.clone()
        out = plan.delta_prefill(**parts_of(x, rank, size), states=states)
        part = parts_of({**x, "v": want}, rank, size)["v"]
        worst = [max(worst[0], error(out, part)), max(worst[1], error(states[1], after))]
    if exchange is not None:
        both = torch.tensor(worst, device="cuda", dtype=torch.float64)
        torch.distributed.all_reduce(both, torch.distributed.ReduceOp.MAX)
        worst = both.tolist()
    config = {"gpus": size if exchange is not None else 1, "ranks": size, "tokens": 4096}
    config |= {"Hk": HK, "Hv": HV, "dk": D, "dv": D, "io": "bfloat16", "state": "float32"}
    return {
        "suite": "many-gpus",
        "impl": "gdn",
        "config": config,
        "error": worst[0],
        "state_error": worst[1],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tokens", default="32768,131072")
    parser.add_argument("--segments", default="4")
    parser.add_argument("--ranks", type=int, default=2, help="without torchrun")
    parser.add_argument("--commit", required=True, help="that the images are of")
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    size, exchange = options.ranks, None
    if "LOCAL_RANK" in os.environ:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        torch.distributed.init_process_group("nccl")
        exchange = TorchExchange()
        size = exchange.size
    rows = [checked(exchange, size)]
    print(rows[0], flush=True)
    for segments in map(int, options.segments.split(",")):
        for tokens in map(int, options.tokens.split(",")):
            rows += measure(exchange, tokens, segments, size)
            if exchange is None or exchange.rank == 0:
                for row in rows[-2:]:
                    print(row, flush=True)
    record = {
        "device": torch.cuda.get_device_name(),
        "date": datetime.date.today().isoformat(),
        "commit": options.commit,
        "versions": {"torch": torch.__version__, "cuda": torch.version.cuda},
        "rows": rows,
    }
    if exchange is None or exchange.rank == 0:
        options.output.write_text(text_of(record))
    if exchange is not None:
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
