# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks gdn.ops with PyTorch, on a GPU or on the CPU: against float64, FLA's functions where they
are installed, torch.compile and CUDA graphs.

    python3 -m gdn.ops_check --device cuda

ops_names_check.py has the functions other than FLA's, ops_states_check.py those on states in
place, and ops_tracing_check.py the operators.

Kernels are those of the prebuilt images, or of gdn-compile where it is installed.
"""

import argparse
import sys
from functools import partial

import torch

from .ops import (
    chunk_gated_delta_rule,
    chunk_kda,
    fused_gdn_gate,
    fused_kda_gate,
    fused_recurrent_gated_delta_rule,
    fused_recurrent_kda,
    fused_sigmoid_gating_delta_rule_update,
    gated_delta_rule_decode_pretranspose,
)
from .ops_names_check import check_names
from .ops_problems import LIMITS, Check, draw, recurrence
from .ops_states_check import (
    check_channels_in_place,
    check_deferred,
    check_operators_of_channels,
    check_verify_of_channels,
)
from .ops_tracing_check import check_tracing_of_names


def check_rule(check: Check, device: str) -> None:
    """Both functions, batches and ragged sequences, with and without states."""
    sizes = (2, 130, 4, 8, 128, 128)
    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        given = draw(sizes, device, dtype)
        want, states = recurrence(given, [0, 130, 260], None, 128**-0.5)
        out, last = chunk_gated_delta_rule(**given, output_final_state=True)
        check.close(f"chunk, {dtype}", LIMITS[dtype], (out, want), (last, states))
        # A token each, from these states, which stay as they are.
        given = draw((2, 1, *sizes[2:]), device, dtype, seed=1)
        before = last.clone()
        want, states = recurrence(given, [0, 1, 2], last, 128**-0.5)
        out, after = fused_recurrent_gated_delta_rule(
            **given, initial_state=last, output_final_state=True
        )
        check.close(f"token, {dtype}", LIMITS[dtype], (out, want), (after, states))
        check.that("initial states", torch.equal(before, last))
    starts = [0, 3, 3, 100, 101]
    given = draw((1, 101, *sizes[2:]), device)
    states = torch.randn(4, 8, 128, 128, device=device)
    cu_seqlens = torch.tensor(starts, device=device)
    want, wanted = recurrence(given, starts, states, 0.5)
    for v_first in (False, True):
        out, last = chunk_gated_delta_rule(
            **given,
            scale=0.5,
            initial_state=states.mT.contiguous() if v_first else states,
            output_final_state=True,
            state_v_first=v_first,
            cu_seqlens=cu_seqlens,
        )
        pairs = (out, want), (last.mT if v_first else last, wanted)
        check.close(f"ragged, state_v_first={v_first}", 8e-3, *pairs)


def check_kda(check: Check, device: str) -> None:
    given = draw((1, 70, 2, 2, 128, 128), device, per_channel=True)
    want, states = recurrence(given, [0, 70], None, 128**-0.5)
    out, last = fused_recurrent_kda(**given, output_final_state=True)
    check.close("fused_recurrent_kda", 8e-3, (out, want), (last, states))
    out, last = chunk_kda(**given, output_final_state=True)
    check.close("chunk_kda", 8e-3, (out, want), (last, states))
    check_states_of_chunks(check, device)


def check_states_of_chunks(check: Check, device: str) -> None:
    """chunk_kda with states inside sequences, of raw gates and strengths, in both orders."""
    starts, counts = [0, 3, 3, 70, 134, 235], {64: [1, 0, 2, 1, 2], 32: [1, 0, 3, 2, 4]}
    given = draw((1, starts[-1], 2, 4, 64, 64), device, per_channel=True, seed=2)
    raw = given | {"g": torch.randn(given["g"].shape), "beta": torch.randn(1, starts[-1], 4)}
    raw = {name: x.to(device) for name, x in raw.items()}
    rate, bias = torch.randn(4).to(device), torch.randn(4 * 64).to(device)
    x = raw["g"].double() + bias.view(4, 64)
    given |= {
        "g": -5 * (rate.double().exp()[:, None] * x).sigmoid(),
        "beta": 2 * raw["beta"].double().sigmoid(),
    }
    gate = fused_kda_gate(raw["g"], rate, bias, -5.0)
    check.close("fused_kda_gate", 1e-6, (gate, given["g"].cpu()))
    of_heads = raw["g"][..., 0]
    wanted = -rate.double().exp() * torch.nn.functional.softplus(of_heads.double() + bias[:4])
    check.close("fused_gdn_gate", 1e-6, (fused_gdn_gate(of_heads, rate, bias[:4]), wanted.cpu()))
    states = torch.randn(5, 4, 64, 64).to(device)
    want, wanted = recurrence(given, starts, states, 64**-0.5)
    for size, v_first in ((64, False), (32, True)):
        out, last, inside = chunk_kda(
            **raw,
            initial_state=states.mT if v_first else states,
            output_final_state=True,
            use_gate_in_kernel=True,
            A_log=rate,
            dt_bias=bias,
            lower_bound=-5.0,
            safe_gate=True,
            use_beta_sigmoid_in_kernel=True,
            allow_neg_eigval=True,
            return_intermediate_states=True,
            state_v_first=v_first,
            cu_seqlens=torch.tensor(starts, device=device),
            chunk_size=size,
        )
        last, inside = (x.mT if v_first else x for x in (last, inside))
        name = f"chunk_kda with states of chunks of {size}"
        check.close(name, 8e-3, (out, want), (last, wanted))
        places = [(n, size * i) for n, count in enumerate(counts[size]) for i in range(count)]
        check.that("count", inside.shape == (1, len(places), 4, 64, 64))
        for (n, tokens), state in zip(places, inside[0], strict=True):
            part = {k: x[:, starts[n] : starts[n] + tokens] for k, x in given.items()}
            _, found = recurrence(part, [0, tokens], states[n : n + 1], 1.0)
            check.close(f"sequence {n}, {tokens} tokens", 8e-3, (state, found[0]))
    rows = draw((2, 70, 2, 2, 64, 64), device, per_channel=True)
    out, last, inside = chunk_kda(**rows, return_intermediate_states=True)
    same = torch.equal(out, chunk_kda(**rows)[0]) and last is None
    check.that("rows", same and inside.shape == (2, 2, 2, 64, 64) and not inside[:, 0].any())


def check_steps(check: Check, device: str) -> None:
    """Steps in place: FlashInfer's on a pool with padding, vLLM's, against float64."""
    rows, slots = 3, torch.tensor([4, 1, -1], device=device)
    given = draw((rows, 1, 4, 8, 128, 128), device)
    a = torch.randn(rows, 1, 8).to(device, torch.bfloat16)
    b = torch.randn(rows, 1, 8).to(device, torch.bfloat16)
    rate, bias = torch.rand(8, device=device), torch.randn(8, device=device)
    gates = {
        "g": -rate.double().exp() * torch.nn.functional.softplus(a.double() + bias.double()),
        "beta": b.double().sigmoid(),
    }
    for dtype, limit in ((torch.float32, 8e-3), (torch.bfloat16, 8e-3)):
        pool = torch.randn(6, 8, 128, 128, device=device).to(dtype)
        before = pool.double()
        want, states = recurrence(given | gates, range(rows + 1), before[slots].mT, 128**-0.5)
        q, k, v = given["q"], given["k"], given["v"]
        out, after = gated_delta_rule_decode_pretranspose(
            q, k, v, None, rate, a, bias, b, use_qk_l2norm=False, initial_state=pool,
            initial_state_indices=slots,
        )  # fmt: skip
        pairs = (out[:2], want[:2]), (after[slots[:2]], states[:2].mT)
        check.close(f"FlashInfer's step, states of {dtype}", limit, *pairs)
        rest = [0, 2, 3, 5]
        check.that("skipped", not out[2].any() and torch.equal(pool[rest].double(), before[rest]))
        after = after.clone()
        pool.copy_(before)
        tokens = [x.transpose(0, 1) for x in (q, k, v)]
        ids = slots.clamp_min(0).to(torch.int32)
        theirs, _ = fused_sigmoid_gating_delta_rule_update(
            rate, a[:, 0], b[:, 0], bias, *tokens, initial_state=pool, ssm_state_indices=ids
        )
        check.that("vLLM's step", torch.equal(theirs[0], out[:, 0]) and torch.equal(pool, after))


def check_tracing(check: Check, device: str) -> None:
    """torch.compile without a break, fake kernels that say what the operator gives, and a CUDA
    graph with the bits of a call."""
    given = draw((2, 64, 2, 2, 128, 128), device)

    def step(q, k, v, g, beta):
        out, last = chunk_gated_delta_rule(q, k, v, g * 0.5, beta, output_final_state=True)
        return out + 1, last

    wanted = step(**given)
    backend = "aot_eager"
    found = torch.compile(step, fullgraph=True, backend=backend)(**given)
    same = all(torch.equal(a, b) for a, b in zip(found, wanted, strict=True))
    check.that("torch.compile(fullgraph=True)", same)
    arguments = (given["q"], given["k"], given["v"], given["g"].float(), given["beta"].float())
    arguments = (*arguments, None, None, None, False, False, False)
    tests = ("test_schema", "test_faketensor")
    torch.library.opcheck(torch.ops.gdn.gated_delta_rule.default, arguments, test_utils=tests)
    check.that("opcheck", True)
    if device == "cpu":
        return
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        step(**given)  # takes the memory to work in
    torch.cuda.synchronize()
    with torch.cuda.graph(graph, stream=stream):
        found = step(**given)
    for x in given.values():
        x.copy_(x.roll(1, 1))
    graph.replay()
    torch.cuda.synchronize()
    same = all(torch.equal(a, b) for a, b in zip(found, step(**given), strict=True))
    check.that("CUDA graph", same)
    # Another graph on a stream of its own, replayed behind a call that needs more memory.
    other = torch.cuda.CUDAGraph()
    with torch.cuda.graph(other):
        found = step(**given)
    wanted = [x.clone() for x in step(**given)]
    with torch.cuda.stream(stream):
        step(**draw((4, 2048, 2, 2, 128, 128), device))
    torch.cuda.synchronize()
    other.replay()
    graph.replay()
    torch.cuda.synchronize()
    same = all(torch.equal(a, b) for a, b in zip(found, wanted, strict=True))
    check.that("CUDA graphs keep their memory", same)


def milliseconds(run, repeats: int = 50) -> float:
    for _ in range(5):
        run()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    start.record()
    for _ in range(repeats):
        run()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / repeats


def compare_with_fla(check: Check) -> None:
    """Outputs beside FLA's own of the same arguments, and the time of a call, from Python."""
    from fla.ops.gated_delta_rule import chunk_gated_delta_rule as chunk
    from fla.ops.gated_delta_rule import fused_recurrent_gated_delta_rule as recurrent
    from fla.ops.kda import chunk_kda as of_channels

    cases = [
        ("prefill 4 x 2048", (4, 2048, 16, 32, 128, 128), chunk, chunk_gated_delta_rule),
        ("chunk_kda 4 x 2048", (4, 2048, 32, 32, 128, 128), of_channels, chunk_kda),
        (
            "decode of 64",
            (64, 1, 16, 32, 128, 128),
            recurrent,
            fused_recurrent_gated_delta_rule,
        ),
    ]
    for name, sizes, theirs, ours in cases:
        given = draw(sizes, "cuda", per_channel=ours is chunk_kda)
        states = torch.randn(sizes[0], sizes[3], 128, 128, device="cuda") * 0.1
        options = {
            "initial_state": states,
            "output_final_state": True,
            "use_qk_l2norm_in_kernel": True,
        }
        with torch.no_grad():
            out, last = ours(**given, **options)
            want, wanted = theirs(**given, **options)
            ms = [milliseconds(partial(call, **given, **options)) for call in (ours, theirs)]
        pairs = [(a, b.double().cpu()) for a, b in ((out, want), (last, wanted))]
        check.close(f"FLA's {name}", 1e-2, *pairs, detail=f", ms {ms[0]:.3f}, FLA's {ms[1]:.3f}")


def check_fla_backend(check: Check) -> None:
    """What calls FLA gets our bits, and FLA's own kernels where there has to be a backward."""
    from fla.ops.gated_delta_rule import chunk_gated_delta_rule as chunk
    from fla.ops.kda import chunk_kda as of_channels

    from .integrations import fla

    fla.register()
    given = draw((2, 200, 4, 8, 128, 128), "cuda")
    options = {"output_final_state": True, "use_qk_l2norm_in_kernel": True}
    found, wanted = chunk(**given, **options), chunk_gated_delta_rule(**given, **options)
    same = all(torch.equal(a, b) for a, b in zip(found, wanted, strict=True))
    check.that("FLA's registry takes gdn", same)
    channels = draw((2, 200, 4, 4, 128, 128), "cuda", per_channel=True)
    found, wanted = of_channels(**channels, **options), chunk_kda(**channels, **options)
    same = all(torch.equal(a, b) for a, b in zip(found, wanted, strict=True))
    check.that("FLA's registry of chunk_kda takes gdn", same)
    given["v"].requires_grad_()
    with torch.enable_grad():
        out, _ = chunk(**given, **options)
    check.that("FLA keeps what needs a backward", out.requires_grad)


def main() -> int:
    parser = argparse.ArgumentParser(prog="ops_check", description=__doc__)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    device = parser.parse_args().device
    check = Check()
    check_rule(check, device)
    check_kda(check, device)
    check_steps(check, device)
    check_channels_in_place(check, device)
    check_operators_of_channels(check, device)
    check_verify_of_channels(check, device)
    check_deferred(check, device)
    check_names(check, device)
    check_tracing(check, device)
    check_tracing_of_names(check, device)
    if device == "cuda":
        try:
            import fla  # noqa: F401
        except ImportError:
            print("FLA is not installed")
        else:
            compare_with_fla(check)
            check_fla_backend(check)
    print(f"{check.failed} failed")
    return 1 if check.failed else 0


if __name__ == "__main__":
    sys.exit(main())
