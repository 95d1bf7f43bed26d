# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks steps and prefill on states in place with tensors of PyTorch: a decay of each channel
against float64, and pools that defer writes beside states that each token writes. For
gdn.ops_check."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import torch

from .devices import device_of
from .ops import prefill as prefill_operators
from .ops import step as step_operators
from .ops import verify as verify_operators
from .ops_problems import Check, recurrence
from .rule_pool import delta_prefill, gated_delta_prefill
from .rule_step import delta_step, gated_delta_step
from .rule_verify import gated_delta_verify, gated_delta_verify_in_slots
from .state_pool import StatePool, StatePoolShape

H, HV, D = 4, 8, 128
SLOTS, PENDING = 9, 16
BOUND = -5.0


def _draw(tokens: int, device: str, seed: int, per_channel: bool = True) -> dict[str, torch.Tensor]:
    """What functions of raw gates take, in bf16."""
    generator = torch.Generator().manual_seed(seed)
    channels = (D,) if per_channel else ()
    sizes = {"q": (H, D), "k": (H, D), "v": (HV, D), "a": (HV, *channels), "b": (HV,)}
    given = {
        name: torch.randn(tokens, *size, generator=generator).to(device, torch.bfloat16)
        for name, size in sizes.items()
    }
    return given | {
        "A_log": torch.rand(HV, generator=generator).to(device),
        "dt_bias": torch.randn(HV, *channels, generator=generator).to(device),
    }


def _ready(given: dict[str, torch.Tensor], bound: float | None) -> dict[str, torch.Tensor]:
    """The same with decays and strengths in place of raw gates, in f32."""
    rate, raw = given["A_log"].exp()[:, None], given["a"].float() + given["dt_bias"]
    softened = -rate * torch.nn.functional.softplus(raw)
    decay = softened if bound is None else bound * (rate * raw).sigmoid()
    inputs = {name: given[name] for name in ("q", "k", "v")}
    return inputs | {"log_decay": decay, "beta": given["b"].float().sigmoid()}


def _expected(given, bound, starts, states):
    """Outputs, and states [N, HV, V, K] behind the sequences, which begin with `states`."""
    x = {name: tensor[None] for name, tensor in _ready(given, bound).items()}
    for name in ("q", "k"):
        long = x[name].double()
        x[name] = long / (long.square().sum(-1, keepdim=True) + 1e-6).sqrt()
    x["g"] = x.pop("log_decay")
    out, after = recurrence(x, starts, states.mT, D**-0.5)
    return out[0], after.mT


def check_channels_in_place(check: Check, device: str) -> None:
    """All four functions. One slot is padding, and the others keep their states."""
    slots, starts = [4, -1, 0, 8], [0, 70, 72, 79, 80]
    live, generator = [0, 2, 3], torch.Generator().manual_seed(1)
    places = {
        "slots": torch.tensor(slots, dtype=torch.int32, device=device),
        "cu_seqlens": torch.tensor(starts, dtype=torch.int32, device=device),
    }
    own, rest = [4, 0, 8], [slot for slot in range(SLOTS) if slot not in slots]
    for dtype, bound in ((torch.float32, None), (torch.float32, BOUND), (torch.bfloat16, BOUND)):
        states = torch.randn(SLOTS, HV, D, D, generator=generator).to(device, dtype)
        form = f"states of {dtype}, bound {bound}"
        for name, ends, functions in (
            ("step", [0, 1, 2, 3, 4], (gated_delta_step, delta_step)),
            ("prefill", starts, (gated_delta_prefill, delta_prefill)),
        ):
            given = _draw(ends[-1], device, 2)
            where = {n: x for n, x in places.items() if name == "prefill" or n == "slots"}
            begin = states[[slot % SLOTS for slot in slots]]
            want, after = _expected(given, bound, ends, begin.double())
            tokens = [t for n in live for t in range(ends[n], ends[n + 1])]
            for function in functions:
                is_raw = function in (gated_delta_step, gated_delta_prefill)
                if dtype == torch.bfloat16 and not is_raw:
                    continue
                inputs = given | {"decay_bound": bound} if is_raw else _ready(given, bound)
                pool = states.clone()
                out = function(**inputs, states=pool, **where, l2norm=True)
                pairs = (out[tokens], want[tokens]), (pool[own], after[live])
                check.close(f"{function.__name__} of channels, {form}", 8e-3, *pairs)
                skipped = not out[ends[1] : ends[2]].any()
                check.that(f"skipped, {name}", skipped and torch.equal(pool[rest], states[rest]))


def _verified(given, bound, starts, firsts):
    """Outputs of tokens [T, HV, V], and the state after each [T, HV, V, K], in float64; zeros for
    those of sequences whose first state is None."""
    count = starts[-1]
    out = torch.zeros(count, HV, D, dtype=torch.float64)
    states = torch.zeros(count, HV, D, D, dtype=torch.float64)
    for (begin, end), first in zip(pairwise(starts), firsts, strict=True):
        if first is None:
            continue
        for t in range(begin, end):
            of_tokens = ("q", "k", "v", "a", "b")
            part = given | {name: given[name][begin : t + 1] for name in of_tokens}
            rows, after = _expected(part, bound, [0, t + 1 - begin], first[None].double())
            out[t], states[t] = rows[-1], after[0]
    return out, states


def check_verify_of_channels(check: Check, device: str) -> None:
    """Tokens that may be rejected, with states after them in a buffer and in slots of the pool: the
    functions, and the operators of PyTorch."""
    starts, count, steps = [0, 4, 6, 9, 10], 4, 4
    tokens = {"cu_seqlens": torch.tensor(starts, dtype=torch.int32, device=device)}
    live = [*range(4), *range(6, 10)]
    rest = {"scale": None, "l2norm": True, "null_slot": -1}
    table = torch.arange(1, 1 + count * steps, dtype=torch.int32, device=device).view(count, steps)
    rows_of = [int(table[n, t]) for n, m in enumerate((4, 0, 3, 1)) for t in range(m)]
    for bound in (None, BOUND):
        generator = torch.Generator().manual_seed(4)
        pool = torch.randn(count * steps + 2, HV, D, D, generator=generator).to(device)
        given = _draw(starts[-1], device, 3)
        common = given | tokens | {"decay_bound": bound}
        slots = torch.tensor([4, -1, 0, 8], dtype=torch.int32, device=device)
        want, after = _verified(given, bound, starts, [pool[4], None, pool[0], pool[8]])
        for function in (gated_delta_verify, verify_operators.gated_delta_verify):
            before, buffer = pool.clone(), torch.full_like(pool, -7)
            out = torch.full_like(given["v"], torch.nan)
            places = {"slots": slots, "token_states": buffer, "token_slots": table}
            function(**common, **places, **rest, states=before, out=out)
            pairs = (out, want), (buffer[rows_of], after[live])
            name = f"verify of channels, {type(function).__name__}, bound {bound}"
            check.close(f"{name}, a buffer", 8e-3, *pairs)
            others = [row for row in range(len(buffer)) if row not in rows_of]
            kept = bool(buffer[others].eq(-7).all()) and torch.equal(before, pool)
            check.that("the rest", kept and not out[4:6].any())
        # One count is out of range.
        accepted = torch.tensor([3, 5, 1, 2], dtype=torch.int32, device=device)
        first = [pool[table[0, 2]], None, pool[table[2, 0]], pool[table[3, 1]]]
        want, after = _verified(given, bound, starts, first)
        functions = gated_delta_verify_in_slots, verify_operators.gated_delta_verify_in_slots
        for function in functions:
            states, out = pool.clone(), torch.full_like(given["v"], torch.nan)
            places = {"token_slots": table, "num_accepted": accepted}
            function(**common, **places, **rest, states=states, out=out)
            pairs = (out, want), (states[rows_of], after[live])
            name = f"verify of channels, {type(function).__name__}, bound {bound}"
            check.close(f"{name}, slots", 8e-3, *pairs)
            others = [row for row in range(len(pool)) if row not in rows_of]
            check.that("the rest", torch.equal(states[others], pool[others]))


def check_operators_of_channels(check: Check, device: str) -> None:
    """Operators of steps and prompts give what their functions give."""
    slots, starts = [4, -1, 0, 8], [0, 70, 72, 79, 80]
    ids = torch.tensor(slots, dtype=torch.int32, device=device)
    cu_seqlens = torch.tensor(starts, dtype=torch.int32, device=device)
    states = torch.randn(SLOTS, HV, D, D, generator=torch.Generator().manual_seed(6)).to(device)
    for name, function, operator, tokens in (
        ("step", gated_delta_step, step_operators.gated_delta_step, {}),
        ("prefill", gated_delta_prefill, prefill_operators.gated_delta_prefill, cu_seqlens),
    ):
        is_step = name == "step"
        given = _draw(4 if is_step else 80, device, 5) | {"slots": ids, "decay_bound": BOUND}
        given |= {"l2norm": True} | ({} if is_step else {"cu_seqlens": tokens})
        pools, out = (states.clone(), states.clone()), torch.full_like(given["v"], torch.nan)
        want = function(**given, states=pools[0])
        more = {"null_slot": -1, "write_slots": None} if is_step else {"write_slots": ids}
        operator(**given, **more, states=pools[1], out=out, scale=None)
        check.that(f"operator of a {name}", torch.equal(out, want) and torch.equal(*pools))


def check_deferred(check: Check, device: str) -> None:
    """Steps and prompts on a pool whose slots keep tokens pending, and on states that each token
    writes. A sequence without tokens keeps what is pending in its slot, which another one of the
    batch may have, too."""
    form = {"pending_tokens": PENDING, "deferred_writes": True}
    sizes = {"num_key_heads": H, "num_value_heads": HV, "key_dim": D, "value_dim": D}
    pool = StatePool(device_of((device, 0)), StatePoolShape(1, SLOTS, **sizes, **form))
    layer, options = pool.layer_states(0), {"l2norm": True}
    states = torch.zeros(pool.num_slots, HV, D, D, device=device)

    def ids(*values: int) -> torch.Tensor:
        return torch.tensor(values, dtype=torch.int32, device=device)

    def both(name: str, function, given: dict, limit: float = 8e-3) -> None:
        want = function(**given, states=states, **options)
        found = function(**given, states=layer, **options)
        check.close(f"{name} on a pool that defers writes", limit, (found, want.double().cpu()))

    for step in range(3):
        both(f"step {step}", gated_delta_step, _draw(2, device, step, False) | {"slots": ids(1, 2)})
    check.that("tokens are pending", pool.has_pending([1, 2]) == [True, True])
    prompts = {"slots": ids(2, 1, 2, 3), "cu_seqlens": ids(0, 0, 0, 40, 107)}
    both("prefill", gated_delta_prefill, _draw(107, device, 9, False) | prompts)
    kept = pool.has_pending([1, 2, 3]) == [True, False, False]
    check.that("a sequence without tokens keeps what is pending", kept)
    for step in range(2):
        slots = {"slots": ids(3, 2, 1)}
        both("step behind it", gated_delta_step, _draw(3, device, 20 + step, False) | slots)
    if device == "cuda":
        _check_deferred_graph(check, layer, states, ids)


def _check_deferred_graph(check: Check, layer, states: torch.Tensor, ids: Callable) -> None:
    """A step and prompts behind it, captured, and replayed on other inputs and slots."""
    step = _draw(3, "cuda", 30, False) | {"slots": ids(1, 2, 3), "l2norm": True}
    prompts = _draw(90, "cuda", 31, False) | {"slots": ids(2, 1, 3), "l2norm": True}
    prompts["cu_seqlens"] = ids(0, 0, 40, 90)

    def run(pool) -> list[torch.Tensor]:
        functions = ((gated_delta_step, step), (gated_delta_prefill, prompts))
        return [function(**given, states=pool) for function, given in functions]

    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    run(states)
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        run(layer)  # takes the memory to work in
    torch.cuda.synchronize()
    with torch.cuda.graph(graph, stream=stream):
        found = run(layer)
    for turn in range(3):
        for given, tokens in ((step, 3), (prompts, 90)):
            for name, tensor in _draw(tokens, "cuda", 40 + turn, False).items():
                given[name].copy_(tensor)
        prompts["slots"].copy_(prompts["slots"].roll(turn))
        prompts["cu_seqlens"].copy_(ids(0, 7 * turn, 40, 90))
        want = run(states)
        graph.replay()
        torch.cuda.synchronize()
        pairs = [(x, y.double().cpu()) for x, y in zip(found, want, strict=True)]
        check.close(f"replay {turn} on a pool that defers writes", 8e-3, *pairs)
