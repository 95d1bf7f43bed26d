# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a kernel on a device must do, beside a float64 reference: errors within
bounds, slots and sequences left alone, the same bits for a sequence whatever the batch."""

from dataclasses import dataclass, field

import numpy as np

from . import problems, reference
from .arrays import DeviceArray, View, view
from .problems import Sizes
from .runtime import Device, Kernel, Pool

OUTPUTS = ("core", "out")
POOLS = ("conv_pool", "state_pool", "state_scales", "state_low")
_OF_PENDING = (*problems.PENDING, problems.PENDING_SCALES, "pending_counts")

# Relative RMSE by type: what one rounding to it costs, or f32 arithmetic.
_OUTPUT_LIMITS = {"float32": 1e-5, "float16": 5e-4, "bfloat16": 2e-3}
_STATE_LIMITS = {"float32": 1e-6, "float16": 5e-4, "bfloat16": 4e-3}
_STATE_LIMITS |= {"planes": 1e-4, "uint8": 4e-2}
# Of states after steps that see their upper planes alone.
_SEEN_LIMIT = 1e-2
# Of states with the token of a step pending in f16.
_PENDING_LIMIT = 5e-4
# The same where chunks go through matrix units: outputs from ready keys and from packed
# projections, states of f32; and both from inputs of f32, whose operands have two parts.
CHUNK_READY, CHUNK_PACKED, CHUNK_STATE = 3e-3, 5e-3, 2e-3
CHUNK_F32 = 1e-5


@dataclass
class Findings:
    """Errors of one kernel and what was wrong with it."""

    error_o: float = 0.0
    error_state: float = 0.0
    failures: list[str] = field(default_factory=list)

    def expect(self, holds: bool, what: str) -> None:
        if not holds:
            self.failures.append(what)


def relative_error(got: np.ndarray, want: np.ndarray) -> float:
    """Relative RMSE; infinite where one is not finite and the other is."""
    if not np.isfinite(got).all():
        return float("inf")
    norm = np.sqrt((want * want).sum())
    difference = np.sqrt(((got - want) ** 2).sum())
    return float(difference / norm) if norm > 0 else float(difference != 0)


def run(
    device: Device,
    kernel: Kernel,
    arguments: dict[str, np.ndarray],
    null_slot: int = 0,
    by_position: bool = False,
) -> dict[str, np.ndarray]:
    """Launches on copies of `arguments`, and gives what the kernel wrote. Windows have their
    channels side by side where a position's are asked for, or the variant that calls take does."""
    by_position |= (kernel.variant or "").endswith("aligned")
    across = {p.name for p in kernel.params if by_position and p.name.endswith("conv_pool")}
    copies = {n: device.array(v.swapaxes(1, 2) if n in across else v) for n, v in arguments.items()}
    views = {n: _turn(n, a) if n in across else a for n, a in copies.items()}
    pools = {p.name for p in kernel.params if p.kind == "pool"}
    binding = kernel.bind(**{n: Pool(a, null_slot) if n in pools else a for n, a in views.items()})
    if binding.workspace_bytes:
        binding.set_workspace()
    binding.launch()
    device.synchronize()
    after = {p.name: copies[p.name].numpy() for p in kernel.params if p.access != "read"}
    return {n: v.swapaxes(1, 2) if n in across else v for n, v in after.items()}


def _turn(name: str, array: DeviceArray) -> View:
    """The array with its last two dimensions in the other order."""
    seen = view(name, array)
    slots, positions, channels = seen.shape
    strides = (positions * channels, 1, channels)
    return View(seen.data, seen.dtype, (slots, channels, positions), strides, seen.device, array)


def limits(kernel: Kernel, steps: int = 1) -> tuple[float, float]:
    """The largest errors of outputs and of the state allowed."""
    dtypes = {param.name: param.dtype for param in kernel.params}
    output = max((_OUTPUT_LIMITS[dtypes[name]] for name in OUTPUTS if name in dtypes), default=0)
    kind = "planes" if "state_low" in dtypes else dtypes["state_pool"]
    state = _STATE_LIMITS[kind]
    if "pending_scales" in dtypes:
        state = max(state, _PENDING_LIMIT)
    # A step may go on from what is rounded, or not.
    is_plane, is_verify = dtypes["state_pool"] == "uint8", kernel.name.startswith("verify")
    if is_plane or is_verify:
        output = max(output, 2 * state)
    elif "pending_counts" in dtypes:
        output = max(output, 2 * _STATE_LIMITS[kind])
    if "cu_seqlens" in dtypes and device_code(kernel) and not is_verify:
        chunked = CHUNK_READY if "log_decay" in dtypes else CHUNK_PACKED
        if takes_f32(kernel):
            return max(output, CHUNK_F32), max(state, CHUNK_F32) * steps
        output, state = max(output, chunked), max(state, CHUNK_STATE)
    elif "cu_seqlens" in dtypes and not is_plane and not is_verify:
        state = max(state, 1e-5)
    return output, state * steps


def takes_f32(kernel: Kernel) -> bool:
    """Whether outputs are f32, which kernels have from inputs of f32."""
    return any(param.name in OUTPUTS and param.dtype == "float32" for param in kernel.params)


def device_code(kernel: Kernel) -> bool:
    """Whether the kernel's code is that of a GPU."""
    return kernel.code.format != "shared object"


def check_case(
    device: Device, kernel: Kernel, layer: reference.Layer, sizes: Sizes, findings: Findings
) -> None:
    """One launch beside float64, with all that the contract of slots says."""
    before = problems.make(kernel.params, sizes)
    after = run(device, kernel, before)
    want = reference.evaluate(layer, before)
    largest_output, largest_state = limits(kernel)
    what = f"Hk={sizes.key_heads} Hv={sizes.value_heads} lens={list(sizes.lengths)[:8]}"

    for name in OUTPUTS:
        if name not in after:
            continue
        got = after[name].astype(np.float64)
        error = relative_error(got, want[name])
        findings.error_o = max(findings.error_o, error)
        findings.expect(error <= largest_output, f"{what}: {name}: error {error:.2e}")
        idle = ~want[name].any(axis=(1, 2))
        findings.expect(
            not after[name][idle].view(np.uint8).any(), f"{what}: {name}: a skipped row is not zero"
        )
    used = [s for r, s in enumerate(before["slots"]) if r not in sizes.skipped and s >= 0]
    pools = [name for name in (*POOLS, *_OF_PENDING) if name in after]
    for name in pools:
        got, start = after[name], before[name]
        kept = np.setdiff1d(np.arange(len(start)), used)
        findings.expect(
            np.array_equal(_bits(got[kept]), _bits(start[kept])),
            f"{what}: {name}: a slot that no row uses has changed",
        )
    if used:
        got = reference.whole_states(before | after)[used]
        error = relative_error(got, want["state_pool"][used])
        findings.error_state = max(findings.error_state, error)
        findings.expect(error <= largest_state, f"{what}: state_pool: error {error:.2e}")
    if used and "pending_counts" in before:
        _expect_counts(before, after, used, what, findings)
    if used and "conv_pool" in after:
        windows = want["conv_pool"][used].astype(after["conv_pool"].dtype)
        findings.expect(
            np.array_equal(_bits(after["conv_pool"][used]), _bits(windows)),
            f"{what}: conv_pool: a window differs",
        )
    # Not only again: variants for aligned arrays want windows by position.
    again = run(device, kernel, before, by_position=True)
    for name, values in after.items():
        findings.expect(
            np.array_equal(_bits(values), _bits(again[name])), f"{what}: {name}: runs differ"
        )


def _expect_counts(before: dict, after: dict, used, what: str, findings: Findings) -> None:
    """A decode counts its token, and writes the states of key heads that have no room for it."""
    room, counts = before["pending_keys"].shape[2], before["pending_counts"][used]
    is_full = counts + 1 > room
    want = np.where(is_full, 1, counts + 1)
    right = np.array_equal(after["pending_counts"][used], want)
    findings.expect(right, f"{what}: pending_counts differ")
    group = before["state_pool"].shape[1] // counts.shape[1]
    kept = np.repeat(~is_full, group, axis=1)
    for name in ("state_pool", "state_scales", "state_low"):
        if name not in before:
            continue
        same = [_bits(pools[name][used][kept]) for pools in (before, after)]
        findings.expect(np.array_equal(*same), f"{what}: {name}: written with room for the token")


def check_commit(device: Device, kernel: Kernel, sizes: Sizes, findings: Findings) -> None:
    """Pending tokens that are counted in their slots, put into states."""
    before = problems.make(kernel.params, sizes)
    after = run(device, kernel, before)
    what = f"Hk={sizes.key_heads} Hv={sizes.value_heads} N={sizes.rows}"
    used = [s for r, s in enumerate(before["slots"]) if r not in sizes.skipped and s >= 0]
    kept = np.setdiff1d(np.arange(len(before["state_pool"])), used)
    for name in (*POOLS, *_OF_PENDING):
        if name not in after:
            continue
        same = np.array_equal(_bits(after[name][kept]), _bits(before[name][kept]))
        findings.expect(same, f"{what}: {name}: a slot that no row uses has changed")
    findings.expect(not after["pending_counts"][used].any(), f"{what}: tokens are still pending")
    error = relative_error(
        reference.whole_states(before | after)[used], reference.whole_states(before)[used]
    )
    findings.error_state = max(findings.error_state, error)
    findings.expect(error <= limits(kernel)[1], f"{what}: state_pool: error {error:.2e}")


def check_moves(device: Device, kernel: Kernel, sizes: Sizes, findings: Findings) -> None:
    """Slots that are copied or zeroed, bit for bit, and all others left alone."""
    before = problems.make(kernel.params, sizes)
    copies = "write_slots" in before
    targets = before["write_slots" if copies else "slots"]
    if copies and sizes.rows > 6:
        before["write_slots"][5:7] = -1, 0
        before["slots"][-1] = before["slots"][0]  # one slot to two
    after = run(device, kernel, before)
    for name in POOLS:
        if name not in before:
            continue
        want = before[name].copy()
        for source, target in zip(before["slots"], targets, strict=True):
            if all(reference.is_live(slot, len(want), 0) for slot in (source, target)):
                want[target] = before[name][source] if copies else 0
        findings.expect(
            np.array_equal(_bits(after[name]), _bits(want)),
            f"Hk={sizes.key_heads} Hv={sizes.value_heads} N={sizes.rows}: {name} differs",
        )


def pick_rows(kernel: Kernel, whole: dict[str, np.ndarray], rows: list[int]) -> dict:
    """The arguments of a launch of these sequences of a batch, in this order."""
    cuts, bounds_of_picked = {"N": np.array(rows)}, {}
    # Tokens of the sequences, and their checkpoints.
    for name, dim in (("cu_seqlens", "T"), ("cu_checkpoints", "C")):
        if name in whole:
            bounds = whole[name]
            own = [np.arange(bounds[row], bounds[row + 1], dtype=np.int64) for row in rows]
            cuts[dim] = np.concatenate(own)
            bounds_of_picked[name] = np.cumsum([0, *map(len, own)]).astype(bounds.dtype)
    first_dims = {p.name: p.dims[0] for p in kernel.params if p.dims}
    picked = {n: v[cuts[first_dims[n]]] if first_dims[n] in cuts else v for n, v in whole.items()}
    return picked | bounds_of_picked


def check_picked(
    device: Device, kernel: Kernel, whole: dict, batch: dict, rows: list[int], findings: Findings
) -> None:
    """Sequences of a batch give the same bits in a launch of these alone, in this order."""
    bounds = whole.get("cu_seqlens", np.arange(len(whole["slots"]) + 1))
    picked = pick_rows(kernel, whole, rows)
    got, first = run(device, kernel, picked), 0
    for row in rows:
        tokens = slice(int(bounds[row]), int(bounds[row + 1]))
        own = slice(first, first + tokens.stop - tokens.start)
        first, slot = own.stop, whole["slots"][row]
        what = f"N={len(whole['slots'])}: row {row} differs in a launch of {rows}"
        for name in (name for name in OUTPUTS if name in batch):
            same = np.array_equal(_bits(got[name][own]), _bits(batch[name][tokens]))
            findings.expect(same, f"{name}: {what}")
        for name in (name for name in POOLS if name in batch):
            same = np.array_equal(_bits(got[name][slot]), _bits(batch[name][slot]))
            findings.expect(same, f"{name}: {what}")


def check_rows_alone(device: Device, kernel: Kernel, sizes: Sizes, findings: Findings) -> None:
    """A sequence gives the same bits alone and at any place of any batch."""
    whole = problems.make(kernel.params, sizes)
    batch = run(device, kernel, whole)
    for row in (0, sizes.rows // 2, sizes.rows - 1):
        check_picked(device, kernel, whole, batch, [row], findings)


def check_any_batch(device: Device, kernel: Kernel, sizes: Sizes, findings: Findings) -> None:
    """With `batch_invariant` sequences give the same bits whatever variant their number and
    tokens call for: in another order, in two launches, and the longest one alone."""
    whole = problems.make(kernel.params, sizes)
    rows, half = list(range(sizes.rows)), sizes.rows // 2
    longest = int(np.argmax(sizes.lengths))
    kernel.batch_invariant = True
    try:
        batch = run(device, kernel, whole)
        for picked in (rows[::-1], rows[:half], rows[half:], [longest]):
            check_picked(device, kernel, whole, batch, picked, findings)
    finally:
        kernel.batch_invariant = False


def check_variants(device: Device, kernel: Kernel, sizes: Sizes, findings: Findings) -> None:
    """All variants of a kernel give the same bits."""
    arguments = problems.make(kernel.params, sizes)
    names = [variant.name for variant in kernel.variants]
    results = []
    for kernel.variant in names:
        results.append(run(device, kernel, arguments))
    kernel.variant = None
    for name, result in zip(names[1:], results[1:], strict=True):
        for what, values in result.items():
            findings.expect(
                np.array_equal(_bits(values), _bits(results[0][what])),
                f"N={sizes.rows}: {what}: variant {name} differs from {names[0]}",
            )


def check_many_steps(
    device: Device,
    kernel: Kernel,
    layer: reference.Layer,
    sizes: Sizes,
    findings: Findings,
    steps=64,
) -> float:
    """The error of the state after many steps of decode, float64 keeping its own."""
    arguments = problems.make(kernel.params, sizes)
    own = ("pending_", "state_")  # what a state consists of
    exact = {name: value for name, value in arguments.items() if not name.startswith(own)}
    exact["state_pool"] = reference.whole_states(arguments)
    for step in range(steps):
        other = problems.make(
            kernel.params, Sizes(sizes.key_heads, sizes.value_heads, sizes.lengths, seed=step + 99)
        )
        inputs = [p.name for p in kernel.params if p.dims[0] == "N" and p.name != "slots"]
        for name in inputs:
            arguments[name] = exact[name] = other[name]
        arguments.update(run(device, kernel, arguments))
        exact.update(reference.evaluate(layer, exact))
    used = arguments["slots"]
    error = relative_error(reference.whole_states(arguments)[used], exact["state_pool"][used])
    largest = limits(kernel, steps)[1]
    if layer.reads_upper:
        largest = max(largest, _SEEN_LIMIT)
    findings.expect(error <= largest, f"state after {steps} steps: error {error:.2e}")
    return error


def _bits(values: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(values).view(np.uint8)
