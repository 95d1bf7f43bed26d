# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks pools of gdn.integrations.sglang whose slots keep pending tokens, and planes: prompts, and
steps of decode with copies behind them, from a CUDA graph where there is a GPU, against float64.
For gdn.sglang_check."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import torch

from .integrations.slot_arrays import SlotForm
from .ops_check import Check, milliseconds

LAYERS, SLOTS, TOKENS = 2, 24, 40
#: Bounds of outputs and of states, with inputs of bf16.
FORMS = {
    "gdn_deferred": (
        (SlotForm("float32", 16), 8e-3),
        (SlotForm("bfloat16", 8), 3e-2),
    ),
    "gdn_i8x2": ((SlotForm("i8x2"), 8e-3),),
    "gdn_i8x2_deferred": ((SlotForm("i8x2", 16), 8e-3),),
    "gdn_i8_deferred": ((SlotForm("i8", 16), 8e-2),),
}


class SlotPool:
    """Arrays of SGLang's pool, and what its slots have beside them."""

    def __init__(self, form: SlotForm, device: str, sizes: tuple[int, int, int], slots: int):
        from .integrations.sglang.slots import SlotStates, find_layer

        key_heads, value_heads, dim = sizes
        dtype = torch.uint8 if form.in_planes else getattr(torch, form.state)
        shape = LAYERS, slots, value_heads, dim, dim
        self.states = torch.zeros(shape, dtype=dtype, device=device)
        self.beside = SlotStates(form, self.states, key_heads, 0)
        self.layers = [find_layer(self.states[index]) for index in range(LAYERS)]
        self.in_planes = form.in_planes

    def copy(self, source: int, target: int) -> None:
        """As MambaPool.copy_from."""
        device = self.states.device
        places = [torch.tensor([slot], device=device) for slot in (source, target)]
        self.states[:, places[1]] = self.states[:, places[0]]
        self.beside.copy_slots(*places)

    def values(self, layer: int) -> torch.Tensor:
        """States in float64, of slots with nothing pending."""
        found = self.states[layer].double()
        if not self.in_planes:
            return found
        arrays = {name: array[:, layer] for name, array in self.beside.held.arrays.items()}
        found = found - 128
        if "state_low" in arrays:
            found += (arrays["state_low"].double() - 128) / 256
        return found * arrays["state_scales"].double()[..., None]


def check_slots(
    check: Check,
    device: str,
    *,
    sizes: tuple[int, int, int],
    batch_of: Callable,
    graph_of: Callable,
) -> None:
    """All forms. `batch_of(lengths, slots, seed)` draws tokens, `graph_of` makes a CUDA graph."""
    for name, forms in FORMS.items():
        for form, limit in forms:
            _check_form(check, device, sizes, batch_of, graph_of, name, form, limit)


def _check_form(check, device, sizes, batch_of, graph_of, name, form, limit) -> None:
    from .integrations.sglang import hooks
    from .integrations.sglang.kernel import GdnKernel

    kernel, pool = GdnKernel(None, name), SlotPool(form, device, sizes, SLOTS)
    text = f"{name}, states of {form.state}"
    # On the host, as what it is followed by.
    exact = torch.zeros(SLOTS, *pool.states.shape[2:], dtype=torch.float64)

    def follow(batch, out, what: str) -> None:
        want, after = batch.expected(exact)
        live = [n for n, slot in enumerate(batch.slots) if slot >= 0]
        tokens = [t for n in live for t in range(batch.starts[n], batch.starts[n + 1])]
        check.close(f"{what}, {text}", limit, (out[tokens], want[tokens]))
        exact[[batch.slots[n] for n in live]] = after[live]

    def prompt(lengths: list[int], slots: list[int], seed: int) -> None:
        batch = batch_of(lengths, slots, seed)
        for layer in range(LAYERS):
            out = batch.extend(kernel, pool.states[layer])[0]
        follow(batch, out, "prompts")

    prompt([130, 7, 65], [3, 9, 5], 1)
    batch = batch_of([1] * 4, [3, -1, 9, 5], 2)
    flags = torch.zeros(4, dtype=torch.bool, device=device)
    targets = torch.full((4,), -1, dtype=torch.int64, device=device)
    backend = SimpleNamespace(forward_metadata=SimpleNamespace(mamba_track_indices=targets))
    asked = SimpleNamespace(batch_size=4, mamba_track_mask=None if form.in_planes else flags)
    ids = batch.places["cache_indices"]

    def step():
        for states in pool.states:
            out = batch.packed_decode(kernel, states)
            hooks.commit_tracked(backend, asked, None, states, ids)
        return out[0]

    replay, out = None, None
    for token in range(TOKENS):
        new = batch_of([1] * 4, batch.slots, 100 + token)
        for own, other in zip(batch.inputs(), new.inputs(), strict=True):
            own.copy_(other)
        copied = token % 7 == 6
        flags[2], targets[2] = copied, 12 + token // 7 if copied else -1
        if replay is not None:
            replay()
        elif device == "cuda" and token == 1:
            # What ran before the capture made the calls, and a capture runs nothing.
            graph, out = graph_of(step, warm=False)
            replay = graph.replay
            replay()
        else:
            out = step()
        follow(new, out, f"step {token}")
        if copied and not form.in_planes:
            pool.states[:, 12 + token // 7] = pool.states[:, 9]
        elif copied:
            pool.copy(9, 12 + token // 7)
        if copied:
            exact[12 + token // 7] = exact[9]
    prompt([3, 1, 20], [9, 13, 5], 3)
    pool.copy(3, 20)
    exact[20] = exact[3]
    slots = torch.arange(-1, SLOTS, dtype=torch.int32, device=device)
    for index, layer in enumerate(pool.layers):
        layer.commit(slots)
        check.close(f"all states, {text}", limit, (pool.values(index), exact))


def time_slots(
    *, sizes: tuple[int, int, int], batch_of: Callable, graph_of: Callable
) -> list[dict[str, object]]:
    """Milliseconds of a step of one layer on the device: the mean of many, so of those that write
    states, too; and of a commit ahead of copies, which finds nothing to do."""
    from .integrations.sglang.kernel import GdnKernel

    rows: list[dict[str, object]] = []
    for name, forms in FORMS.items():
        for form, _ in forms:
            for count in (64, 256):
                pool = SlotPool(form, "cuda", sizes, count)
                batch = batch_of([1] * count, list(range(count)), 0)
                kernel, states, layer = GdnKernel(None, name), pool.states[0], pool.layers[0]
                runs = {"packed_decode": lambda b=batch, k=kernel, s=states: b.packed_decode(k, s)}
                if layer.defers:
                    ids = torch.full((count,), -1, dtype=torch.int32, device="cuda")
                    runs["commit of nothing"] = lambda layer=layer, ids=ids: layer.commit(ids)
                for what, run in runs.items():
                    graph, _out = graph_of(run)
                    text = f"{what} of {count}, {name}, states of {form.state}"
                    rows.append({"call": text, "gdn": milliseconds(graph.replay)})
                    print(text, f"{rows[-1]['gdn']:.4f} ms", flush=True)
    return rows
