# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The stages of a prefill of packed projections, each alone: the prologue (convolution,
norms, values) and the norm behind the rule beside a copy of as many bytes, and what the
others take."""

import functools

import torch

from .. import problems, reference
from ..problems import Sizes
from ..runtime import Device, Image, Kernel, Pool, Runtime
from . import limits, stream
from .inputs import TORCH
from .measure import describe, io_of
from .prefill import bind_each, impl_of
from .timing import number_of_sets, time_calls

VARIANT = "staged"
STAGES = ("prologue", "intra-chunk", "inter-chunk", "norm")  # the last one where there is a norm
_MOST_BYTES = 48 << 30


def make_arguments(kernel: Kernel, sizes: Sizes, generator, device: str = "cuda") -> dict:
    """Random arguments on the GPU, by name; row i has slot i + 1."""
    shapes = problems.shapes(kernel.params, sizes)
    bounds = torch.cumsum(torch.tensor([0, *sizes.lengths]), 0)
    integers = {"slots": torch.arange(1, sizes.rows + 1), "cu_seqlens": bounds}
    integers["has_initial"] = torch.ones(sizes.rows)
    made = {}
    for param in kernel.params:
        dtype, shape = TORCH[param.dtype], shapes[param.name]
        if param.name in integers:
            value = integers[param.name].to(device=device, dtype=dtype)
        elif param.access == "write":
            value = torch.full(shape, float("nan"), device=device, dtype=dtype)
        else:
            value = torch.randn(shape, generator=generator, device=device).mul_(0.5).to(dtype)
        made[param.name] = Pool(value) if param.kind == "pool" else value
    return made


def bind_sets(kernel: Kernel, sizes: Sizes, size: int, device: str = "cuda") -> list:
    """Bindings over as many sets of arguments, of `size` bytes each, as no cache holds."""
    generator = torch.Generator(device).manual_seed(1)
    count = max(1, min(number_of_sets(size), _MOST_BYTES // size))
    sets = (make_arguments(kernel, sizes, generator, device) for _ in range(count))
    return bind_each(kernel, sets, VARIANT, device)


def kernels_of(
    device: Device, image: Image, variant: str | None = VARIANT
) -> list[tuple[str, Kernel, reference.Layer]]:
    """Kernels of each prefill from projections with a prologue, in this variant or, where that is
    None, in any, for each code that the device takes."""
    found = []
    for entry in image.entries:
        attributes = image.attributes(entry)
        if attributes.get("layout") == "ready" or not entry.startswith("prefill"):
            continue
        for index, code in enumerate(image.codes(entry)):
            try:
                kernel = device.kernel(image, entry, code=index)
            except Exception as error:
                print(f"skipped: {entry} for {code.target}: {error}")
                continue
            stages = {variant.name: variant.stages for variant in kernel.variants}
            taken = any(name == impl_of(code.target) for name, *_ in found)
            count = stages.get(variant, 0) if variant else max(stages.values())
            if count >= len(STAGES) - 1 and not taken:
                found.append((impl_of(code.target), kernel, reference.Layer.of(attributes)))
    return found


def measure_case(impl: str, kernel: Kernel, layer, heads, tokens: int, repeats: int) -> list[dict]:
    """Rows of one configuration: the whole, and each stage over what the whole left."""
    sizes = Sizes(*heads, (tokens,))
    params = {param.name: param for param in kernel.params}
    config = {"Hk": heads[0], "Hv": heads[1], "dk": layer.key_dim, "dv": layer.value_dim}
    config |= {"N": 1, "T": tokens, "lens": [tokens], "io": io_of(kernel)}
    config |= {"state": params["state_pool"].dtype, "variant": VARIANT}
    bound = bind_sets(kernel, sizes, limits.prologue_bytes(config) // 2)
    calls = [lambda b=b: b.launch(torch.cuda.current_stream()) for b in bound]
    rows = []
    count = next(variant.stages for variant in kernel.variants if variant.name == VARIANT)
    for index, part in enumerate((None, *STAGES[:count])):
        for binding in bound:
            binding.force_stage(index - 1 if part else None)
        times = time_calls(calls, repeats)
        row = {"suite": "prologue", "impl": impl, "config": config | {"part": part or "whole"}}
        rows.append(row | times)
        print(f"{impl} {heads} {tokens} {part or 'whole':10} {times['us']:9.2f} us", flush=True)
    return rows


def measure(options) -> dict:
    """The report."""
    torch.cuda.init()
    torch.zeros(1, device="cuda")
    report = describe(options.commit)
    runtime = Runtime(options.library)
    device = runtime.cuda()
    rows = []
    for impl, kernel, layer in kernels_of(device, runtime.image(options.image)):
        for heads in options.heads:
            for tokens in options.tokens:
                rows += measure_case(impl, kernel, layer, heads, tokens, options.repeats)
                torch.cuda.empty_cache()
    limits.add_prologue_limits(rows, functools.cache(stream.copy_us))
    return report | {"rows": rows}
