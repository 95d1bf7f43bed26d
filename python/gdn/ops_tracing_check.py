# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks that functions of gdn.ops other than FLA's rule can be traced: fake kernels that say what
their operators give, torch.compile without a break, and CUDA graphs."""

from collections.abc import Callable

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from .ops import causal_conv1d, fla, flashinfer, fused_post_conv_prep, vllm
from .ops_problems import Check


def calls(device: str) -> dict[str, tuple[Callable, tuple, dict]]:
    """A function, and what it is called with, for each way to call an operator."""
    generator = torch.Generator().manual_seed(8)

    def normal(*sizes, dtype=torch.bfloat16):
        return torch.randn(*sizes, generator=generator).to(device, dtype)

    def integers(*values):
        return torch.tensor(values, dtype=torch.int32, device=device)

    taps, bias = normal(24, 4), normal(24)
    cache, starts, slots = normal(6, 24, 6), integers(0, 3, 5), integers(4, 1)
    rows = (normal(1, 5, 2, 128), normal(1, 5, 2, 128), normal(1, 5, 2, 128))
    batch = (normal(2, 3, 2, 128), normal(2, 3, 2, 128), normal(2, 3, 2, 128))
    gates, constants = normal(5, 2), normal(2, dtype=torch.float32)
    steps = normal(2, 3, 2)
    pool = normal(9, 2, 128, 128, dtype=torch.float32)
    decays = normal(5, 2, dtype=torch.float32).sigmoid()
    verified = (batch[0], batch[1], batch[2], pool, slots, constants, steps, constants, steps)
    buffer = normal(2, 3, 2, 128, 128, dtype=torch.float32)
    table = integers(2, 3, 4, 5, 6, 7).view(2, 3)
    update = vllm.fused_sigmoid_gating_delta_rule_update
    raw = (constants, gates, gates, constants, *rows)
    options = {"disable_state_update": False}
    packed = (normal(2, 3 * 256), gates[:2], gates[:2], constants, constants, 0.1, pool)
    final = {"output_final_state": True, "cu_seqlens": starts}
    tokens, channels = tuple(x[0] for x in rows), (normal(5, 2, 128), gates, constants)
    flat = (*tokens, *channels, normal(2, 128, dtype=torch.float32), pool)
    behind = (normal(5, 2, 128), None, True)  # out, scale and l2norm
    first = (*(x[:2] for x in (*tokens, *channels[:2])), *flat[5:])
    bound, kept = {"decay_bound": -5.0}, normal(9, 2, 128, 128, dtype=torch.float32)
    return {
        "step of channels": (
            operator("gated_delta_step"),
            (*first, slots, None, normal(2, 2, 128), None, True, -1),
            bound,
        ),
        "prefill of channels": (
            operator("gated_delta_prefill"),
            (*flat, slots, slots, starts, *behind),
            bound,
        ),
        "verify of channels": (
            operator("gated_delta_verify"),
            (*flat, slots, starts, kept, table, *behind, -1),
            bound,
        ),
        "verify of channels in slots": (
            operator("gated_delta_verify_in_slots"),
            (*flat, table, integers(1, 3), starts, *behind, -1),
            bound,
        ),
        "causal_conv1d_fn": (causal_conv1d.causal_conv1d_fn, (normal(2, 24, 7), taps, bias), {}),
        "causal_conv1d_update": (
            causal_conv1d.causal_conv1d_update,
            (normal(2, 24), cache, taps, bias, "silu", None, slots),
            {},
        ),
        "rings": (
            causal_conv1d.causal_conv1d_update,
            (normal(2, 24), cache, taps, bias, "silu", integers(7, 3), slots),
            {},
        ),
        "vLLM's causal_conv1d_fn": (
            vllm.causal_conv1d_fn,
            (normal(24, 5), taps, bias, cache, starts, slots),
            {},
        ),
        "vLLM's causal_conv1d_update": (
            vllm.causal_conv1d_update,
            (normal(5, 24), cache, taps, bias, True, slots, integers(1, 2), starts, 3),
            {},
        ),
        "rms_norm_gated": (fla.rms_norm_gated, (normal(5, 40), normal(5, 40), normal(40)), {}),
        "layer_norm_gated": (
            fla.layer_norm_gated,
            (normal(5, 40), normal(5, 40), normal(40), normal(40)),
            {},
        ),
        "fused_post_conv_prep": (
            fused_post_conv_prep,
            (normal(5, 96), gates, gates, constants, constants, 2, 16, 16),
            {},
        ),
        "prefill": (
            flashinfer.chunk_gated_delta_rule,
            (*(x[0] for x in rows), decays, decays),
            final | {"initial_state": pool, "output_state": pool, "state_indices": slots},
        ),
        "mtp": (flashinfer.gated_delta_rule_mtp, verified, options),
        "mtp with a buffer": (
            flashinfer.gated_delta_rule_mtp,
            verified,
            options | {"intermediate_states_buffer": buffer},
        ),
        "mtp and norm": (
            vllm.fused_gdn_decode_post_conv_mtp,
            (normal(5, 3 * 256), gates, gates, constants, constants, table, starts)
            + (integers(1, 3), pool, normal(5, 2, 128), normal(128), normal(5, 2, 128))
            + (0.1, 1e-6, "silu"),
            {},
        ),
        "packed decode": (
            vllm.fused_recurrent_gated_delta_rule_packed_decode,
            (*packed, normal(2, 1, 2, 128), slots),
            {},
        ),
        "update of several tokens": (
            update,
            raw,
            {
                "initial_state": pool,
                "cu_seqlens": starts,
                "ssm_state_indices": table,
                "num_accepted_tokens": integers(1, 3),
            },
        ),
    }


def operator(name: str) -> Callable:
    """One of gdn's, as a function."""
    found = getattr(torch.ops.gdn, name)
    return lambda *arguments, **options: found(*arguments, **options)


class Operators(TorchDispatchMode):
    """Collects calls of gdn's operators."""

    def __init__(self):
        super().__init__()
        self.found: list[tuple] = []

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if operator.namespace == "gdn":
            self.found.append((operator, copy(args), copy(kwargs)))
        return operator(*args, **kwargs)


def copy(values):
    """Tensors in tuples and dictionaries, each copied once, others as they are."""
    known: dict[int, torch.Tensor] = {}

    def one(value):
        if not isinstance(value, torch.Tensor):
            return value
        return known.setdefault(id(value), value.clone())

    if isinstance(values, dict):
        return {name: one(value) for name, value in values.items()}
    return tuple(map(one, values))


def check_tracing_of_names(check: Check, device: str) -> None:
    for name, (function, arguments, options) in calls(device).items():
        wanted = called(function, arguments, options)
        with Operators() as seen:
            called(function, arguments, options)
        for operator, args, kwargs in seen.found:
            tests = ("test_schema", "test_faketensor")
            torch.library.opcheck(operator, args, kwargs, test_utils=tests)
        check.that(f"opcheck, {name}", len(seen.found) > 0)
        torch._dynamo.reset()
        compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
        found = called(compiled, arguments, options)
        check.that(f"torch.compile(fullgraph=True), {name}", same(found, wanted))
        if device == "cuda":
            check.that(f"CUDA graph, {name}", same(replayed(function, arguments, options), wanted))


def called(function: Callable, arguments: tuple, options: dict) -> list[torch.Tensor]:
    """What a call gives, and its arguments behind it, which it may have changed."""
    everything = copy(dict(enumerate(arguments)) | options)
    arguments = tuple(everything[n] for n in range(len(arguments)))
    options = {name: everything[name] for name in options}
    return tensors(function(*arguments, **options), everything)


def tensors(given, everything: dict) -> list[torch.Tensor]:
    results = given if isinstance(given, tuple) else (given,)
    return [x for x in (*results, *everything.values()) if isinstance(x, torch.Tensor)]


def replayed(function: Callable, arguments: tuple, options: dict) -> list[torch.Tensor]:
    """The same, of a graph that is captured and then replayed once on the arguments."""
    everything = copy(dict(enumerate(arguments)) | options)
    kept = copy(everything)
    arguments = tuple(everything[n] for n in range(len(arguments)))
    options = {name: everything[name] for name in options}
    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        function(*arguments, **options)  # takes the memory to work in
    torch.cuda.synchronize()
    with torch.cuda.graph(graph, stream=stream):
        found = function(*arguments, **options)
    for name, value in everything.items():
        if isinstance(value, torch.Tensor):
            value.copy_(kept[name])
    graph.replay()
    torch.cuda.synchronize()
    return tensors(found, everything)


def same(found: list[torch.Tensor], wanted: list[torch.Tensor]) -> bool:
    return len(found) == len(wanted) and all(
        torch.equal(a, b) for a, b in zip(found, wanted, strict=True)
    )
