# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks steps and prefill on states in place with tensors of PyTorch: a decay of each channel
against float64, and pools that defer writes beside states that each token writes. For
gdn.ops_check."""

from __future__ import annotations

import torch

from .devices import device_of
from .ops_problems import Check, recurrence
from .rule_pool import delta_prefill, gated_delta_prefill
from .rule_step import delta_step, gated_delta_step
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
