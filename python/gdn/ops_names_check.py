# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks functions of gdn.ops other than FLA's rule against float64: convolutions, the norm,
prefills on pools, and several tokens with the states after them."""

from itertools import pairwise

import torch
from torch.nn.functional import silu, softplus

from .ops import causal_conv1d, fla, flashinfer, fused_post_conv_prep, vllm
from .ops_problems import Check, draw, recurrence

CHANNELS, WIDTH = 24, 4
LENGTHS = (2, 0, 1, 7, 2, 3)


def check_names(check: Check, device: str) -> None:
    check_convolution(check, device)
    check_drafts(check, device)
    check_channels_first(check, device)
    check_norm(check, device)
    check_prefill(check, device)
    check_several(check, device)


def starts_of(lengths) -> list[int]:
    return [sum(lengths[:n]) for n in range(len(lengths) + 1)]


def convolved(window, x, weight, bias):
    """Outputs [L, D] of inputs x [L, D] behind a window [D, K - 1], in float64."""
    inputs = torch.cat([window.double().cpu(), x.double().cpu().T], 1)
    taps = inputs.unfold(1, weight.shape[1], 1) * weight.double().cpu()[:, None]
    return silu(taps.sum(2).T + bias.double().cpu()), inputs


def weights(device):
    generator = torch.Generator().manual_seed(3)
    made = (torch.randn(*size, generator=generator) for size in ((CHANNELS, WIDTH), (CHANNELS,)))
    return tuple(x.to(device) for x in made)


def check_convolution(check: Check, device: str) -> None:
    """vLLM's prefill: sequences without tokens, without a window, with the null slot, none."""
    weight, bias = weights(device)
    starts = starts_of(LENGTHS)
    slots = torch.tensor([3, 5, 6, 7, -1, 0])
    has = torch.tensor([True, False, False, False, True, True])
    generator = torch.Generator().manual_seed(4)
    # Tokens of no sequence at the end.
    x = torch.randn(starts[-1] + 2, CHANNELS, generator=generator).to(device)
    cache = torch.randn(9, WIDTH + 1, CHANNELS, generator=generator).to(device).transpose(1, 2)
    cache[0] = torch.nan
    before = cache.clone()
    rest = (torch.tensor(starts, device=device), slots.to(device), has.to(device))
    y = vllm.causal_conv1d_fn(x.T, weight, bias, cache, *rest).T
    wanted, windows = torch.zeros(y.shape, dtype=torch.float64), before.double().cpu()
    for n in (0, 2, 3):
        window = windows[slots[n], :, : WIDTH - 1] * has[n]
        rows = slice(starts[n], starts[n + 1])
        wanted[rows], inputs = convolved(window, x[rows], weight, bias)
        windows[slots[n], :, : WIDTH - 1] = inputs[:, -(WIDTH - 1) :]
    check.close("vLLM's convolution", 1e-6, (y, wanted))
    same = torch.equal(cache.double().cpu()[1:], windows[1:])
    check.that("windows", same and bool(cache[0].isnan().all()))


def check_drafts(check: Check, device: str) -> None:
    """vLLM's update with accepted counts."""
    weight, bias = weights(device)
    starts, most = starts_of(LENGTHS), max(LENGTHS)
    slots, accepted = torch.tensor([3, 5, 1, 7, 0, 2]), torch.tensor([1, 7, 2, 3, 1, 4])
    generator = torch.Generator().manual_seed(5)
    x = torch.randn(starts[-1], CHANNELS, generator=generator).to(device)
    columns = WIDTH - 2 + most
    cache = torch.randn(9, columns, CHANNELS, generator=generator).to(device).transpose(1, 2)
    before = cache.clone()
    y = vllm.causal_conv1d_update(
        x.clone(),
        cache,
        weight,
        bias,
        "silu",
        slots.to(device),
        accepted.to(device),
        torch.tensor(starts, device=device),
        most,
    )
    wanted, windows = torch.zeros(y.shape, dtype=torch.float64), before.double().cpu()
    for n, length in enumerate(LENGTHS):
        if slots[n] == 0 or length == 0:
            continue
        first = int(accepted[n]) - 1
        rows = slice(starts[n], starts[n + 1])
        window = before[slots[n], :, first : first + WIDTH - 1]
        wanted[rows], inputs = convolved(window, x[rows], weight, bias)
        windows[slots[n], :, : WIDTH - 2 + length] = inputs[:, 1:]
    check.close("vLLM's convolution of drafts", 1e-6, (y, wanted))
    check.that("windows of drafts", torch.equal(cache.double().cpu(), windows))


def check_channels_first(check: Check, device: str) -> None:
    """causal-conv1d's functions: whole rows, rows with several sequences, steps, rings."""
    weight, bias = weights(device)
    generator = torch.Generator().manual_seed(6)
    x = torch.randn(2, 9, CHANNELS, generator=generator).to(device).transpose(1, 2)
    windows = torch.randn(2, CHANNELS, WIDTH - 1, generator=generator).to(device)
    options = {"initial_states": windows, "return_final_states": True, "activation": "silu"}
    y, last = causal_conv1d.causal_conv1d_fn(x, weight, bias, **options)
    wanted = [convolved(windows[n], x[n].T, weight, bias) for n in range(2)]
    check.close(
        "causal_conv1d_fn",
        1e-6,
        *((y[n], wanted[n][0].T) for n in range(2)),
        *((last[n], wanted[n][1][:, -(WIDTH - 1) :]) for n in range(2)),
    )
    numbers = torch.tensor([[0, 0, 1, 1, 1, 1, 2, -1, -1], [4] * 9], device=device)
    y = causal_conv1d.causal_conv1d_fn(x, weight, bias, numbers, activation="silu")
    wanted = torch.zeros(y.shape, dtype=torch.float64)
    zeros = torch.zeros(CHANNELS, WIDTH - 1)
    for n, ends in ((0, (0, 2, 6, 7)), (1, (0, 9))):
        for first, end in pairwise(ends):
            part, _ = convolved(zeros, x[n, :, first:end].T, weight, bias)
            wanted[n, :, first:end] = part.T
    check.close("causal_conv1d_fn of several sequences in a row", 1e-6, (y, wanted))
    # Two steps of two tokens, as windows and as rings.
    pool = torch.randn(5, CHANNELS, 6, generator=generator).to(device)
    slots, counts = torch.tensor([2, -1], device=device), torch.tensor([11, 4], device=device)
    turned = pool.clone()
    turned[2] = pool[2].roll(11, 1)
    steps = [x[:, :, 0:2], x[:, :, 2:4]]
    update = causal_conv1d.causal_conv1d_update
    plain = [update(step, pool, weight, bias, "silu", None, slots) for step in steps]
    rings = [
        update(step, turned, weight, bias, "silu", counts + 2 * n, slots)
        for n, step in enumerate(steps)
    ]
    same = all(torch.equal(a, b) for a, b in zip(plain, rings, strict=True))
    same &= torch.equal(pool[2], turned[2].roll(-15, 1)) and not plain[0][1].any()
    check.that("causal_conv1d_update with windows and with rings", same)


def normed(x, weight, bias, is_centred: bool):
    """The RMS norm of rows in float64, or the layer norm."""
    rows = x.double() - x.double().mean(-1, keepdim=True) if is_centred else x.double()
    rows = rows * (rows.square().mean(-1, keepdim=True) + 1e-6).rsqrt() * weight.double()
    return rows if bias is None else rows + bias.double()


def check_norm(check: Check, device: str) -> None:
    generator = torch.Generator().manual_seed(7)
    x, gate, residual = (torch.randn(5, 3, 40, generator=generator) for _ in range(3))
    # A layer norm takes that away.
    x = x + 3
    weight, bias = (torch.randn(40, generator=generator) for _ in range(2))
    project = torch.randn(24, 40, generator=generator), torch.randn(24, generator=generator)
    given = [tensor.to(device) for tensor in (x, gate, weight)]
    last = [tensor.to(device) for tensor in (bias, *project)]
    for is_centred, norm, linear in (
        (False, fla.rms_norm_gated, fla.rms_norm_swish_gate_linear),
        (True, fla.layer_norm_gated, fla.layer_norm_swish_gate_linear),
    ):
        for activation, act in (("swish", silu), ("sigmoid", torch.sigmoid)):
            total = (x + residual).double()
            wanted = normed(total, weight, None, is_centred) * act(gate.double())
            y, kept = norm(
                *given, activation=activation, residual=residual.to(device), prenorm=True
            )
            check.close(f"{norm.__name__}, {activation}", 1e-6, (y, wanted), (kept, total))
            wanted = normed(x, weight, bias, is_centred) * act(gate.double())
            y = norm(*given, last[0], activation)
            check.close(f"{norm.__name__} with a bias, {activation}", 1e-6, (y, wanted))
        gated = normed(x, weight, bias, is_centred) * silu(gate.double())
        wanted = gated @ project[0].double().T + project[1].double()
        check.close(linear.__name__, 1e-6, (linear(*given, *last), wanted))
        half = [tensor.to(torch.bfloat16) for tensor in given[:2]]
        y = norm(*half, given[2])
        rows = normed(half[0].cpu(), weight, None, is_centred) * silu(half[1].cpu().double())
        check.close(f"{norm.__name__}, bf16", 4e-3, (y, rows))
        check.that("type", y.dtype == torch.bfloat16)
    mixed = torch.randn(5, 2 * 2 * 16 + 4 * 8, generator=generator)
    a, b, rate, bias = (
        torch.randn(*size, generator=generator) for size in ((5, 4),) * 2 + ((4,),) * 2
    )
    given = (tensor.to(device) for tensor in (mixed, a, b, rate, bias))
    q, k, v, decay, beta = fused_post_conv_prep(*given, 2, 16, 8, True, True)
    parts = mixed.double().split([32, 32, 32], 1)
    heads = [part.unflatten(1, (2, 16)) for part in parts[:2]]
    heads = [x * (x.square().sum(-1, keepdim=True) + 1e-6).rsqrt() for x in heads]
    wanted = (-rate.double().exp() * softplus(a.double() + bias.double())).exp()
    pairs = (q, heads[0]), (k, heads[1]), (v, parts[2].unflatten(1, (4, 8)))
    check.close("fused_post_conv_prep", 1e-6, *pairs, (decay, wanted), (beta, b.double().sigmoid()))


def check_prefill(check: Check, device: str) -> None:
    """FlashInfer's prefill on a pool in place, with states inside sequences."""
    starts, slots = [0, 70, 70, 200], [4, 2, 0]
    given = draw((1, 200, 2, 4, 128, 128), device)
    pool = torch.randn(6, 4, 128, 128, device=device)
    pool[5] = torch.nan
    before = pool.clone()
    kept = torch.zeros(3, 4, 128, 128, device=device)
    q, k, v, g, beta = (x[0] for x in given.values())
    out, states = flashinfer.chunk_gated_delta_rule(
        q,
        k,
        v,
        g.exp(),
        beta.float(),
        initial_state=pool,
        output_final_state=True,
        cu_seqlens=torch.tensor(starts, device=device),
        output_state=pool,
        state_checkpoints=kept,
        checkpoint_cu_starts=torch.tensor([0, 1, 1, 3], device=device),
        checkpoint_every_n_tokens=64,
        state_indices=torch.tensor(slots, device=device),
    )
    want, wanted = recurrence(given, starts, before[slots].mT, 128**-0.5)
    check.close("FlashInfer's prefill", 8e-3, (out, want[0]), (states[slots].mT, wanted))
    check.that("other states", torch.equal(pool[[1, 3]], before[[1, 3]]) and states is pool)
    for row, (n, tokens) in enumerate(((0, 64), (2, 64), (2, 128))):
        part = {name: x[:, starts[n] : starts[n] + tokens] for name, x in given.items()}
        _, inside = recurrence(part, [0, tokens], before[slots[n]][None].mT, 1.0)
        check.close(f"checkpoint {row}", 8e-3, (kept[row].mT, inside[0]))


def check_several(check: Check, device: str) -> None:
    """FlashInfer's verification with its three places for states, and vLLM's."""
    rows, tokens, slots = 3, 4, torch.tensor([4, -1, 1])
    given = draw((rows, tokens, 2, 4, 128, 128), device)
    a, b = (torch.randn(rows, tokens, 4).to(device, torch.bfloat16) for _ in range(2))
    rate, bias = torch.rand(4, device=device), torch.randn(4, device=device)
    gates = {
        "g": -rate.double().exp() * softplus(a.double() + bias.double()),
        "beta": b.double().sigmoid(),
    }
    pool = torch.randn(20, 4, 128, 128, device=device)
    before, live = pool.clone(), [0, 2]
    taken = before[slots[live]]
    out, states = [], []
    for count in range(1, tokens + 1):
        part = {name: x[live, :count] for name, x in (given | gates).items()}
        ends = range(0, 2 * count + 1, count)
        last, state = recurrence(part, ends, taken.mT, 128**-0.5)
        out.append(last[:, -1])
        states.append(state.mT)
    out, states = torch.stack(out, 1), torch.stack(states, 1)
    inputs = (given["q"], given["k"], given["v"])
    rest = (slots.to(device), rate, a, bias, b)
    places = torch.arange(8, 8 + rows * tokens, device=device, dtype=torch.int32).view(rows, -1)
    for name, options in (
        ("the last state", {}),
        ("a buffer", {"intermediate_states_buffer": torch.zeros(rows, 5, 4, 128, 128)}),
        ("slots", {"ssm_state_indices": places, "output_state_indices": slots + 2}),
    ):
        options = {key: x.to(device) for key, x in options.items()}
        pool.copy_(before)
        found, _ = flashinfer.gated_delta_rule_mtp(
            *inputs, pool, *rest, disable_state_update=False, use_qk_l2norm=False, **options
        )
        pairs = [(found[live], out)]
        if name == "a buffer":
            pairs.append((options["intermediate_states_buffer"][live, :tokens], states))
        if name == "slots":
            pairs += [(pool[places[live]], states), (pool[slots[live] + 2], states[:, -1])]
        else:
            pairs.append((pool[slots[live]], states[:, -1]))
        check.close(f"gated_delta_rule_mtp with {name}", 8e-3, *pairs)
        check.that("skipped", not found[1].any() and torch.equal(pool[[0, 2]], before[[0, 2]]))
    # vLLM's: the sequence starts with the state of its last accepted token.
    table = torch.tensor([[9, 8, 4, 10], [0, 0, 0, 0], [1, 12, 13, 14]], device=device)
    pool.copy_(before)
    flat = [x.flatten(0, 1)[None] for x in inputs]
    starts = torch.arange(0, 13, 4, device=device)
    accepted = torch.tensor([3, 1, 1], device=device)
    updated = (rate, a.flatten(0, 1), b.flatten(0, 1), bias, *flat)
    places_of = {
        "initial_state": pool,
        "cu_seqlens": starts,
        "ssm_state_indices": table,
        "num_accepted_tokens": accepted,
    }
    unit = {"use_qk_l2norm_in_kernel": True}
    found, _ = vllm.fused_sigmoid_gating_delta_rule_update(*updated, **places_of)
    found = found.view(rows, tokens, 4, 128)
    check.close("vLLM's verification", 8e-3, (found[live], out), (pool[table[live]], states))
    check.that("skipped", not found[1].any() and torch.equal(pool[0], before[0]))
    # The same, and the norm behind it.
    gate, weight = torch.randn(rows * tokens, 4, 128).to(device, torch.bfloat16), torch.rand(128)
    pool.copy_(before)
    theirs, _ = vllm.fused_sigmoid_gating_delta_rule_update(*updated, **places_of, **unit)
    wanted = normed(theirs[0].cpu(), weight, None, False) * silu(gate.double().cpu())
    kept = pool.clone()
    pool.copy_(before)
    found = vllm.fused_gdn_decode_post_conv_mtp(
        torch.cat([x[0].flatten(1) for x in flat], 1),
        *(a.flatten(0, 1), b.flatten(0, 1), rate, bias),
        table,
        starts,
        accepted,
        pool,
        gate,
        weight.to(device),
        torch.empty_like(gate),
        128**-0.5,
        1e-6,
        "silu",
    )
    check.close("vLLM's verification and norm", 4e-3, (found, wanted))
    check.that("states", torch.equal(pool, kept))
