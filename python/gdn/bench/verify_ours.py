# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Our entries `verify` and `commit`: every row has T tokens, of whose last step some are
accepted, from one to all of them in turn."""

import numpy as np
import torch

from .. import problems, reference, verify_checks
from ..checks import Findings
from ..problems import Sizes
from ..runtime import Device, Kernel, Pool
from . import stream, verify_stream
from .inputs import TORCH, random_slots, to_gpu
from .timing import host_times, number_of_sets, time_calls

_MOST_BYTES = 24 << 30
_SCALES = {"state_pool": 0.1, "token_state_pool": 0.1, "pending_deltas": 0.3}
ENTRIES = ("verify", "commit")


def mode_of(kernel: Kernel) -> str:
    """How states are kept, as gdn-compile --verify calls it."""
    names = {param.name for param in kernel.params}
    if "pending_keys" in names:
        return "deferred" if "pending_counts" in names else "lazy"
    if "token_state_pool" in names:
        return "buffer"
    return "tree" if "parents" in names else "slots"


def state_format(params: dict) -> str:
    """The type of states, or their planes as gdn-compile --state calls them."""
    dtype = params["state_pool"].dtype
    if dtype != "uint8":
        return dtype
    return "i8x2" if "state_low" in params else "i8"


def sizes_of(heads: tuple[int, int], rows: int, tokens: int) -> Sizes:
    accepted = tuple(1 + row % tokens for row in range(rows))
    return Sizes(*heads, (tokens,) * rows, seed=1, accepted=accepted, steps=tokens)


def make_pool(param, shape: tuple[int, ...], generator) -> torch.Tensor:
    """Random numbers of the size that a layer sees; windows with channels side by side. Counts
    are 0."""
    if param.name == "pending_counts":
        return torch.zeros(shape, dtype=torch.int32, device="cuda")
    if param.dtype == "uint8":  # of a plane
        return torch.randint(1, 256, shape, generator=generator, device="cuda").to(torch.uint8)
    if param.name == "state_scales":
        return 0.0005 + 0.0015 * torch.rand(shape, generator=generator, device="cuda")
    if param.name == problems.PENDING_SCALES:
        return torch.ones(shape, device="cuda")
    if param.name == "pending_decays":
        return -0.3 * torch.rand(shape, generator=generator, device="cuda")
    scale = shape[-1] ** -0.5 if param.name == "pending_keys" else _SCALES.get(param.name, 1.0)
    values = torch.randn(shape, generator=generator, device="cuda").mul_(scale)
    values = values.to(TORCH[param.dtype])
    if param.name.endswith("conv_pool"):
        values = values.transpose(1, 2).contiguous().transpose(1, 2)
    return values


def in_random_order(arrays: dict[str, np.ndarray], count: int, is_buffer: bool) -> None:
    """Gives slots of the pool of states other numbers of 1 to `count`, the same to the same
    slot, in place. Those of a buffer stay: it has its rows one after another."""
    other = np.concatenate([[0], random_slots(count).cpu().numpy()])
    for name in ("slots", "write_slots") if is_buffer else ("slots", "write_slots", "token_slots"):
        if name in arrays:
            arrays[name] = other[arrays[name]].astype(arrays[name].dtype)


def make_sets(kernel: Kernel, sizes: Sizes) -> tuple[list, list[dict]]:
    """Bindings over sets of pools so large that no state is in a cache, and the arguments of each,
    for the yardsticks; `state_slots` are those of its rows' states. Slots are in random order."""
    pools = [param for param in kernel.params if param.kind == "pool"]
    others = [param for param in kernel.params if param.kind != "pool"]
    arrays = problems.make(others, sizes, kernel.params)
    shapes = problems.shapes(pools, sizes, kernel.params)
    in_random_order(arrays, shapes["state_pool"][0] - 1, "token_state_pool" in shapes)
    shared = {name: to_gpu(array) for name, array in arrays.items()}
    own = shared["slots"] if "slots" in shared else shared["token_slots"][:, 0].contiguous()
    itemsize = {p.name: torch.empty(0, dtype=TORCH[p.dtype]).itemsize for p in pools}
    state = int(np.prod(shapes["state_pool"][1:])) * itemsize["state_pool"]
    size = sum(int(np.prod(shapes[name])) * itemsize[name] for name in shapes)
    count = max(1, min(number_of_sets(sizes.rows * state), _MOST_BYTES // size))
    generator = torch.Generator("cuda").manual_seed(1)
    bindings, sets, workspace = [], [], None
    for _ in range(count):
        made = {p.name: make_pool(p, shapes[p.name], generator) for p in pools}
        if "pending_counts" in made:  # room for what is accepted
            most = shapes["pending_keys"][2] - sizes.steps
            rows = torch.randint(
                most + 1, (shapes["state_pool"][0], 1), generator=generator, device="cuda"
            )
            made["pending_counts"] = rows.expand(shapes["pending_counts"]).int().contiguous()
        binding = kernel.bind(**shared, **{name: Pool(pool) for name, pool in made.items()})
        if binding.workspace_bytes:
            if workspace is None:
                workspace = torch.zeros(binding.workspace_bytes, dtype=torch.uint8, device="cuda")
            binding.set_workspace(workspace, stream=torch.cuda.current_stream())
        bindings.append(binding)
        sets.append(shared | made | {"state_slots": own})
    torch.cuda.synchronize()
    return bindings, sets


def errors(device: Device, kernel: Kernel, layer: reference.Layer, heads, tokens: int) -> Findings:
    """Those of three rows of as many tokens, with all that the device check asks for."""
    findings = Findings()
    verify_checks.check_case(device, kernel, layer, sizes_of(heads, 3, tokens), findings)
    if findings.failures:
        raise RuntimeError("; ".join(findings.failures[:3]))
    return findings


def measure(
    device: Device, kernel: Kernel, layer, heads, rows: int, tokens: int, repeats: int, known: dict
):
    """Rows of the report for one configuration: ours, with dependent launches and without,
    and the stream over the states that the rows have. `known` keeps what other
    configurations of a run have in common with it: errors, those of the first heads, and the
    stream."""
    params = {param.name: param for param in kernel.params}
    state = state_format(params)
    io = next((p.dtype for n, p in params.items() if n in ("qkvz", "qkv", "q")), "")
    io = io or params["conv_pool"].dtype
    part = "step" if kernel.name.startswith("verify") else "commit"
    mode = mode_of(kernel)
    if (mode, kernel.name, tokens) not in known:
        known[mode, kernel.name, tokens] = errors(device, kernel, layer, heads, tokens)
    found = known[mode, kernel.name, tokens]
    bindings, sets = make_sets(kernel, sizes_of(heads, rows, tokens))
    states = [(arrays["state_pool"], arrays["state_slots"]) for arrays in sets]
    config = {"Hk": heads[0], "Hv": heads[1], "dk": layer.key_dim, "dv": layer.value_dim}
    config |= {"N": rows, "T": tokens, "io": io, "state": state, "mode": mode}
    if mode == "deferred":
        config |= {"form": "deferred", "W": int(params["pending_keys"].dims[2])}
    one = states[0][0][0]
    moved = 2 * rows * one.numel() * one.element_size()
    report = []

    def add(impl: str, part: str, variant: str, times: dict) -> None:
        row = {"suite": "verify", "impl": impl}
        row["config"] = config | ({"part": part} if part else {}) | {"variant": variant}
        row |= times | {"state_TBps": moved / times["us"] * 1e-6}
        report.append(row)
        print(
            f"verify {heads[0]:3},{heads[1]:3} N={rows:4} T={tokens} {state:9} {impl:10}"
            f" {config['mode']:8} {part:8} {variant:14} {row['us']:9.2f} us",
            flush=True,
        )

    for dependent in (False, True) if part == "step" else (False,):
        for binding in bindings:
            binding.allow_dependent_launch(dependent)
        calls = [lambda b=b: b.launch(torch.cuda.current_stream()) for b in bindings]
        if mode == "deferred":
            # So long that each row has been put into its state as often as it will be.
            calls = calls * max(1, -(-4 * config["W"] // len(calls)))
        times = time_calls(calls, repeats) | {"host_us": host_times(calls)["us"]}
        times |= {"error_o": found.error_o, "error_state": found.error_state}
        add("gdn", part, bindings[0].variant + (" pdl" if dependent else ""), times)
    if part == "step":
        if (heads, rows, state) not in known:
            known[heads, rows, state] = stream.fastest(states, repeats)
        add("stream", "", *known[heads, rows, state])
        if mode == "deferred" and state == "float32" and {"qkvz", "conv_pool"} <= set(params):
            add("stream deferred", "", *verify_stream.fastest(sets, tokens, repeats))
    return report
