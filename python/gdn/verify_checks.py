# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What `verify` and `commit` must do on a device, beside the float64 reference: every
element of every pool is either what the reference has or what it was."""

from dataclasses import replace

import numpy as np

from . import problems, reference
from .checks import OUTPUTS, Findings, limits, relative_error, run
from .problems import Sizes
from .rows import MOST_STEPS
from .runtime import Device, Kernel


def cases(quick: bool) -> list[Sizes]:
    """Sizes for `verify` and `commit`: sequences without tokens, more tokens than are kept, and
    than a sequence may have where it has a bound, skipped sequences, counts out of range, strong
    decay, shapes of models."""
    small = [
        Sizes(2, 4, (4, 0, 1, 3, 2), seed=30),
        Sizes(2, 4, (2, 3, 2, 1, 4), seed=31, skipped={1: 0, 2: -1, 4: 9999}),
        Sizes(2, 4, (2, 3, 4, 3), seed=32, accepted=(-1, 5, 2**31 - 1, 2)),
        Sizes(1, 3, (5, 9, 2), seed=33, steps=3, accepted=(3, 1, 2)),
        Sizes(1, 2, (8, 1, 9), seed=37, steps=2, accepted=(2, 0, 1)),
    ]
    if quick:
        return small
    return [
        *small,
        Sizes(2, 8, (8, 1, 8, 7, 6), seed=34, decay="strong"),
        Sizes(16, 32, (4,) * 6, seed=35),
        Sizes(8, 24, (8, 3, 5), seed=36),
    ]


def check_case(
    device: Device, kernel: Kernel, layer: reference.Layer, sizes: Sizes, findings: Findings
) -> None:
    """One launch, and once more, with windows by position: variants for aligned arrays want
    these. Slots have no room for more steps than tokens stay pending."""
    dims = {param.name: param.dims for param in kernel.params}
    if "pending_counts" in dims:
        steps = sizes.steps or min(MOST_STEPS, max((1, *sizes.lengths)))
        sizes = replace(sizes, steps=min(steps, int(dims["pending_keys"][2])))
    before = problems.make(kernel.params, sizes)
    after, want = run(device, kernel, before), reference.evaluate(layer, before)
    what = f"Hk={sizes.key_heads} Hv={sizes.value_heads} lens={list(sizes.lengths)[:8]}"
    for name in OUTPUTS:
        if name in after:
            _check_output(name, after[name], want[name], limits(kernel)[0], findings, what)
    planes = {"state_pool", "state_scales", "state_low"} if "state_scales" in before else set()
    if planes:
        _check_planes(kernel, planes & set(before), before, after, want, findings, what)
    for param in kernel.params:
        if param.kind == "pool" and param.access != "read" and param.name not in planes:
            name = param.name
            _check_pool(kernel, name, before[name], after[name], want[name], findings, what)
    again = run(device, kernel, before, by_position=True)
    for name, values in after.items():
        same = np.array_equal(_bits(values), _bits(again[name]))
        findings.expect(same, f"{what}: {name}: runs differ")


def _check_output(name, values, want, largest, findings: Findings, what: str) -> None:
    error = relative_error(values.astype(np.float64), want)
    findings.error_o = max(findings.error_o, error)
    findings.expect(error <= largest, f"{what}: {name}: error {error:.2e}")
    idle = ~want.any(axis=(1, 2))
    findings.expect(not _bits(values[idle]).any(), f"{what}: {name}: a skipped row is not zero")


def _check_pool(kernel: Kernel, name, before, after, want, findings, what: str) -> None:
    """Elements that the reference leaves alone keep their bits; where all it does is to
    move inputs, the others have its bits too."""
    width = before.dtype.itemsize
    old, new = (_bits(x).reshape(*before.shape, width) for x in (before, after))
    start = before.astype(np.float64)
    kept = (want == start) | (np.isnan(want) & np.isnan(start))
    changed = (old != new).any(axis=-1)
    findings.expect(
        not (changed & kept & ~np.isfinite(start)).any(),
        f"{what}: {name}: an element that nobody may look at has changed",
    )
    slots = kept.reshape(len(kept), -1).all(axis=1)
    findings.expect(not changed[slots].any(), f"{what}: {name}: a slot was written in vain")
    if kept.all():
        return
    got, exact = after.astype(np.float64)[~kept], want[~kept]
    if "conv_pool" in name:
        exact = exact.astype(before.dtype).astype(np.float64)
        findings.expect(np.array_equal(got, exact), f"{what}: {name}: a window differs")
        return
    error = relative_error(got, exact)
    largest = limits(kernel)[1]
    if "state_pool" in name:
        findings.error_state = max(findings.error_state, error)
    else:  # of f32, but from a state that a narrow pool has rounded
        largest = max(largest, 1e-5)
    findings.expect(error <= largest, f"{what}: {name}: error {error:.2e}")


def _check_planes(kernel, names, before, after, want, findings: Findings, what: str) -> None:
    """States in planes stand for what the reference has; heads whose states it leaves alone keep
    all bits."""
    start = reference.states_of(before)
    exact = want["state_pool"]
    kept = ((exact == start) | (np.isnan(exact) & np.isnan(start))).all(axis=(2, 3))
    for name in names:
        same = np.array_equal(_bits(before[name][kept]), _bits(after[name][kept]))
        findings.expect(same, f"{what}: {name}: a state was written in vain")
    if kept.all():
        return
    got = reference.states_of(before | after)[~kept]
    error = relative_error(got, exact[~kept])
    findings.error_state = max(findings.error_state, error)
    findings.expect(error <= limits(kernel)[1], f"{what}: states in planes: error {error:.2e}")


def _bits(values: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(values).view(np.uint8)
