# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the tokens of sequences do to their states, S_out = S_in P + H, by the variant
`segment-maps` of an image's prefill: one launch, in which no outputs are made.
docs/design/20261129-context-entries.md says which images have it."""

from __future__ import annotations

import threading

from .array_library import check_form
from .kernel_calls import find_refusal, kernel_of
from .rule_kernels import RuleKind
from .runtime import Binding, Kernel, Pool, Runtime

VARIANT = "segment-maps"
_MOST_BINDINGS = 64
_calls = threading.local()


def check_tokens(arrays, q, k, v, log_decay, beta) -> None:
    """Raises ValueError for arrays of a rule, [T, H, ..], that do not go together. What is bound
    once is not looked at again."""
    given = {"q": q, "k": k, "v": v, "log_decay": log_decay, "beta": beta}
    for name, array in given.items():
        arrays.check(name, array)
        if name in ("q", "k", "v") and len(array.shape) != 3:
            raise ValueError(f"{name}: expected the shape [T, H, d], got {list(array.shape)}")
    rows, io = [int(size) for size in v.shape[:2]], arrays.dtype_of(v)
    keys = [rows[0], *(int(size) for size in q.shape[1:])]
    check_form(arrays, "q", q, keys, (io,))
    check_form(arrays, "k", k, keys, (io,))
    channels = keys[2:] if len(log_decay.shape) == 3 else []
    check_form(arrays, "log_decay", log_decay, [*rows, *channels])
    check_form(arrays, "beta", beta, rows)


class SegmentMaps:
    """The maps of an image on a device, for one thread."""

    def __init__(self, kernel: Kernel, variant: str):
        self._kernel, self._variant = kernel, variant
        self._bindings: dict[tuple, Binding] = {}
        self._sizes: dict[tuple, int] = {}

    def __call__(self, arrays, tokens: tuple, starts, slots, out) -> tuple:
        """H [M, Hv, dv, dk] and P [M, Hv, dk, dk] in f32 of M runs of tokens. `tokens` are q, k, v,
        log_decay and beta, [T, H, ..], the last two in f32; run m has the rows from starts[m] to
        starts[m + 1]. `slots` [M] are the numbers of runs, or -1: these and runs without tokens
        have no map, and what is returned of them is not set. `starts` and `slots` are of i32. `out`
        [T, Hv, dv] is memory for outputs, which is not written."""
        q, _, v, *_ = tokens
        count, heads, dv, dk = len(slots), int(v.shape[1]), int(v.shape[2]), int(q.shape[2])
        size, linear = count * heads * dv * dk, count * heads * dk * dk
        # Behind the maps is what the kernel works in. The runtime takes memory that is aligned to
        # 64 bytes.
        total = max(size + linear, -(-self._bytes(arrays, tokens, starts, slots, out) // 4))
        space = arrays.empty((total + 16,), "float32")
        first = -arrays.address(space) % 64 // 4
        space = space[first : first + total]
        self._bind(arrays, tokens, starts, slots, out, space).launch(arrays.stream)
        return (
            space[:size].reshape(count, heads, dv, dk),
            space[size : size + linear].reshape(count, heads, dk, dk),
        )

    def _bytes(self, arrays, tokens, starts, slots, out) -> int:
        """The workspace for arrays of these sizes."""
        key = (len(slots), *(tuple(map(int, x.shape)) for x in tokens))
        if key not in self._sizes:
            if len(self._sizes) >= _MOST_BINDINGS:
                self._sizes.clear()
            binding = self._bound(arrays, tokens, starts, slots, out)
            self._sizes[key] = binding.workspace_bytes
        return self._sizes[key]

    def _bind(self, arrays, tokens, starts, slots, out, space) -> Binding:
        key = tuple(arrays.place(x) for x in (*tokens, starts, slots, out, space))
        if key in self._bindings:
            return self._bindings[key]
        if len(self._bindings) >= _MOST_BINDINGS and not arrays.capturing:
            # Launches end before their bindings do.
            self._kernel._device.synchronize(arrays.stream)
            self._bindings.clear()
        binding = self._bound(arrays, tokens, starts, slots, out)
        binding.set_workspace(arrays.as_bytes(space), arrays.stream)
        # What it is bound to may go when the launch is on its stream.
        binding.forget_arguments()
        self._bindings[key] = binding
        return binding

    def _bound(self, arrays, tokens, starts, slots, out) -> Binding:
        q, k, v, log_decay, beta = tokens
        count, heads = len(slots), int(v.shape[1])
        # This variant neither reads nor writes states and outputs, but the entry has them.
        states = arrays.empty((count, heads, int(v.shape[2]), int(q.shape[2])), "float32")
        given = {
            "q": q,
            "k": k,
            "v": v,
            "log_decay": log_decay,
            "beta": beta,
            "cu_seqlens": starts,
            "slots": slots,
            "write_slots": slots,
            "has_initial": arrays.flags(count, True),
            "state_pool": Pool(states, -1),
            "core": out,
        }
        names = [param.name for param in self._kernel.params]
        binding = self._kernel.bind(**{name: given[name] for name in names if name in given})
        binding.force_variant(self._variant)
        return binding


def maps_of(kind: RuleKind, device: tuple[str, int], runtime: Runtime | None) -> SegmentMaps | None:
    """The maps for a rule on a device, or None where no image has them. `kind` is that of its
    prefill."""
    kind = kind._replace(maps=True)
    known = _calls.__dict__.setdefault("known", {})
    key = (kind, device, runtime)
    if key not in known:
        known[key] = None
        if find_refusal(kind, device, runtime) is None:
            kernel = kernel_of(kind, "prefill", device, runtime)
            names = [one.name for one in kernel.variants if one.name.startswith(VARIANT)]
            if names:
                known[key] = SegmentMaps(kernel, names[0])
    return known[key]
