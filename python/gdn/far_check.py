# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks that kernels reach memory more than 2^31 elements from where it begins: rows whose
slots, and whose tokens, lie behind so many others give the bits that they give at the
beginning. `python -m gdn.far_check IMAGE..` wants some 40 GB of the device and as much of the host.
"""

import argparse
import re
from pathlib import Path

import numpy as np

from . import checks, problems
from .problems import Sizes
from .runtime import Device, Kernel, Runtime

BEYOND = 1 << 31  # elements
# Tokens of each sequence, by entry. A commit has none of its own.
LENGTHS = {"decode": (1,) * 3, "prefill": (70, 3, 130), "verify": (3, 1, 4), "commit": (4,) * 3}


def _behind(values: np.ndarray, gap: int) -> np.ndarray:
    """`values` behind `gap` elements of their first axis, of which no one may make anything."""
    rest = np.full((gap, *values.shape[1:]), np.nan, np.float32).astype(values.dtype)
    return np.concatenate([rest, values])


def moved(kernel: Kernel, near: dict[str, np.ndarray], slots: int, tokens: int) -> dict:
    """The same call with its slots `slots` and its tokens `tokens` farther. The tokens before
    are those of a sequence that is skipped."""
    far = dict(near)
    for param in kernel.params:
        if param.kind == "pool":
            far[param.name] = _behind(near[param.name], slots)
        elif param.dims and param.dims[0] == "T" and tokens:
            far[param.name] = _behind(near[param.name], tokens)
    for name in ("slots", "write_slots", "token_slots"):
        if name in far:
            far[name] = far[name] + slots
            far[name] = np.concatenate([[-1], far[name]]) if tokens else far[name]
            far[name] = far[name].astype(near[name].dtype)
    if tokens:
        bounds = np.concatenate([[0], near["cu_seqlens"] + tokens])
        far["cu_seqlens"] = bounds.astype(near["cu_seqlens"].dtype)
        if "has_initial" in far:
            far["has_initial"] = np.concatenate([near["has_initial"][:1], near["has_initial"]])
    return far


def _error_where_written(got: np.ndarray, want: np.ndarray) -> float:
    """The relative error of what the calls wrote; slots of nobody hold NaN."""
    used = ~np.isnan(want.astype(np.float32))
    if np.isnan(got.astype(np.float32))[~used].all():
        return checks.relative_error(got[used].astype(float), want[used].astype(float))
    return float("inf")


def check(
    device: Device,
    kernel: Kernel,
    sizes: Sizes,
    findings: checks.Findings,
    beyond: int = BEYOND,
    with_tokens: bool = False,
) -> None:
    """One call near and far, in every variant. Where sequences are cut depends on the tokens of the
    batch: there the bounds of errors hold instead of bits."""
    near = problems.make(kernel.params, sizes)
    names = [p.name for p in kernel.params if p.kind == "pool" and p.access != "read"]
    slots = -(-beyond // near["state_pool"][0].size)
    outputs = [p.name for p in kernel.params if p.access == "write" and p.dims[0] == "T"]
    tokens = -(-beyond // near[outputs[0]][0].size) if with_tokens else 0
    far = moved(kernel, near, slots, tokens)
    largest = max(checks.limits(kernel))
    for variant in [v.name for v in kernel.variants] if device.kind == "cuda" else [None]:
        kernel.variant = variant
        here, there = (checks.run(device, kernel, call) for call in (near, far))
        what = f"{kernel.name} {variant or ''} {slots} slots and {tokens} tokens on"
        for name in (*outputs, *names):
            gap = tokens if name in outputs else slots
            want, got = here[name], there[name][gap:]
            if variant and "segments" in variant and tokens:
                error = _error_where_written(got, want)
                findings.expect(error <= largest, f"{what}: {name}: error {error:.2e}")
            else:
                same = np.array_equal(got.view(np.uint8), want.view(np.uint8))
                findings.expect(same, f"{what}: {name} differs from the same call at the beginning")
            kept = there[name][:gap]
            if name in outputs:
                findings.expect(not kept.view(np.uint8).any(), f"{what}: {name}: not zeros before")
            else:
                same = np.array_equal(kept.view(np.uint8), far[name][:gap].view(np.uint8))
                findings.expect(same, f"{what}: {name}: a slot before has changed")
        print(f"{what}: {len(findings.failures)} failures so far", flush=True)
    kernel.variant = None


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser("gdn.far_check", description=__doc__)
    parser.add_argument("images", nargs="+", type=Path)
    parser.add_argument("--library", type=Path, help="libgdnrt, else the installed one")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--beyond", type=int, default=BEYOND, help="elements to lie behind")
    parser.add_argument("--heads", type=int, nargs=2, default=(16, 64))
    parser.add_argument("--entries", nargs="+", default=list(LENGTHS), help="that begin so")
    parser.add_argument("--tokens", action="store_true", help="also tokens of prefill")
    options = parser.parse_args(arguments)
    runtime = Runtime(options.library)
    device = runtime.cuda() if options.device == "cuda" else runtime.device()
    findings = checks.Findings()
    for path in options.images:
        image = runtime.image(path)
        for entry in image.entries:
            if not entry.startswith(tuple(options.entries)):
                continue
            kernel = device.kernel(image, entry)
            is_prefill = entry.startswith("prefill")
            lengths = LENGTHS[re.match("[a-z]*", entry)[0]]
            sizes = Sizes(*options.heads, lengths, seed=5)
            beyond = options.beyond
            check(device, kernel, sizes, findings, beyond, options.tokens and is_prefill)
    for failure in findings.failures:
        print(f"FAILED: {failure}")
    print(f"{len(findings.failures)} failures")
    return 1 if findings.failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
