# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Errors of prefill kernels beside float64, by kind of gates: `python -m gdn.numerics_check
IMAGE.. --output FILE`.

Every prefill entry of the images runs with every code that the device takes and in every
variant, whatever launches that is for. Of each case the largest errors of all variants are
kept, and judged by the bounds of docs/spec/numerics.md. The JSON that it writes is what the
page of such a record is made from. Exits with 1 if an error is beyond its bound.
"""

import argparse
import datetime
import itertools
import json
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from . import checks, problems, records, reference
from .device_check import driver_version, kernels_of
from .problems import Sizes
from .runtime import Device, GdnError, Kernel, Runtime

_SKIPPED = 77  # the exit code where there is no such device

# What rounding a state to its pool adds to the relative RMSE that is allowed.
_ROUNDING = {"float32": 0.0, "float16": 5e-4, "bfloat16": 4e-3}

LENGTHS = (130, 1, 0, 63, 65)
QUICK_LENGTHS = (130, 1, 0, 33)
LARGE = 1e4


@dataclass(frozen=True)
class Case:
    """A kind of inputs."""

    name: str
    decay: str
    same_keys: bool = False  # and strengths of 1: each token overwrites the one before
    large: bool = False  # values of 1e4
    calls: int = 1  # that share the tokens of each sequence
    period: int = 0  # of tokens that repeat, with strengths of nearly 2; 0: none do


CASES = (
    Case("near_one", "near_one"),
    Case("realistic", "realistic"),
    Case("strong", "strong"),
    Case("very_strong", "very_strong"),
    Case("same_keys", "near_one", same_keys=True),
    Case("large_values", "realistic", large=True),
    Case("two_calls", "near_one", calls=2),
)
_READY_ALONE = ("same_keys", "large_values")
# Where beta may be 2, tokens that repeat turn the state on and on, and errors of a turn add up.
REPEATS = tuple(Case(f"every_{n}", "near_one", period=n) for n in (1, 2, 3, 4, 17, 64))
REPEATED_LENGTHS = (8192,)


@dataclass
class Errors:
    """The largest errors of a case, and what was wrong."""

    output: float = 0.0
    state: float = 0.0
    failures: list[str] = field(default_factory=list)


def make(kernel: Kernel, case: Case, lengths: tuple[int, ...]) -> dict[str, np.ndarray]:
    """The arguments of a call."""
    arguments = problems.make(kernel.params, Sizes(1, 2, lengths, seed=31, decay=case.decay))
    if case.period:
        repeat(kernel, case.period, arguments)
    if case.same_keys:
        arguments["k"][:] = arguments["k"][:1]
        arguments["beta"][:] = 1
    if case.large:
        for name in ("v", "state_pool"):
            scaled = arguments[name].astype(np.float64) * LARGE
            most = 3.0 * LARGE if name == "v" else np.inf  # f16 ends at 65504
            arguments[name] = np.clip(scaled, -most, most).astype(arguments[name].dtype)
    return arguments


def repeat(kernel: Kernel, period: int, arguments: dict[str, np.ndarray]) -> None:
    """Makes tokens of each sequence those before them by `period`; they forget little and write
    with nearly all of 2."""
    bounds = arguments["cu_seqlens"].astype(np.int64)
    tokens = np.concatenate(
        [first + np.arange(last - first) % period for first, last in itertools.pairwise(bounds)]
    )
    for name in (param.name for param in kernel.params if param.dims and param.dims[0] == "T"):
        arguments[name][: bounds[-1]] = arguments[name][tokens]
    strength, decay = 8, -7
    if "beta" in arguments:
        arguments["beta"][:] = 2 / (1 + np.exp(-strength))
        arguments["log_decay"][:] = -np.exp(decay) * np.log(2)
        return
    arguments["A_log"][:] = decay
    arguments["dt_bias"][:] = 0
    if "b" in arguments:
        arguments["b"][:] = strength
    else:  # of one key head, so that its columns come first
        arguments["ba"][:, : arguments["ba"].shape[1] // 2] = strength


def tokens_of(kernel: Kernel, whole: dict, call: int, calls: int) -> tuple[dict, np.ndarray]:
    """The arguments of a call with its share of each sequence's tokens, and which these are."""
    bounds = whole["cu_seqlens"].astype(np.int64)
    cuts = [
        np.arange(
            first + (last - first) * call // calls, first + (last - first) * (call + 1) // calls
        )
        for first, last in itertools.pairwise(bounds)
    ]
    tokens = np.concatenate(cuts)
    by_token = {param.name for param in kernel.params if param.dims and param.dims[0] == "T"}
    part = {name: x[tokens] if name in by_token else x for name, x in whole.items()}
    ends = np.cumsum([0, *map(len, cuts)])
    part["cu_seqlens"] = ends.astype(whole["cu_seqlens"].dtype)
    return part, tokens


def run(device: Device, kernel: Kernel, case: Case, whole: dict) -> dict[str, np.ndarray]:
    """What the calls of a case leave: outputs of all tokens, and pools."""
    if case.calls == 1:
        return checks.run(device, kernel, whole)
    results = {name: whole[name].copy() for name in checks.OUTPUTS if name in whole}
    for call in range(case.calls):
        part, tokens = tokens_of(kernel, whole, call, case.calls)
        after = checks.run(
            device, kernel, part | {n: x for n, x in results.items() if n in checks.POOLS}
        )
        for name, values in after.items():
            if name in checks.OUTPUTS:
                results[name][tokens] = values
            else:
                results[name] = values
    return results


def limits(kernel: Kernel, case: Case) -> tuple[float, float]:
    """The largest errors allowed, of outputs and of the state."""
    dtypes = {param.name: param.dtype for param in kernel.params}
    rounding = _ROUNDING[dtypes["state_pool"]]
    if checks.takes_f32(kernel):
        return checks.CHUNK_F32 + (rounding if case.calls > 1 else 0), checks.CHUNK_F32 + rounding
    output = checks.CHUNK_READY if "log_decay" in dtypes else checks.CHUNK_PACKED
    if case.calls > 1:  # in between, the state is in its pool
        output += rounding
    return output, checks.CHUNK_STATE + rounding


def judge(
    case: Case,
    variant: str,
    after: dict[str, np.ndarray],
    want: dict[str, np.ndarray],
    slots: np.ndarray,
    bounds: tuple[float, float],
    errors: Errors,
) -> None:
    """Adds the errors of one variant."""
    for name in (name for name in checks.OUTPUTS if name in after):
        error = checks.relative_error(after[name].astype(np.float64), want[name])
        errors.output = max(errors.output, error)
        if not error <= bounds[0]:
            errors.failures.append(f"{case.name}: {variant}: {name}: error {error:.2e}")
    got = after["state_pool"][slots].astype(np.float64)
    error = checks.relative_error(got, want["state_pool"][slots])
    errors.state = max(errors.state, error)
    if not error <= bounds[1]:
        errors.failures.append(f"{case.name}: {variant}: state_pool: error {error:.2e}")


def check_kernels(
    device: Device,
    kernels: list[Kernel],
    layer: reference.Layer,
    cases: tuple[Case, ...],
    lengths: tuple[int, ...] = LENGTHS,
) -> list[dict]:
    """A row for each of an entry's kernels, which have the same parameters: float64 is asked
    once for all of them."""
    found = [{case.name: Errors() for case in cases} for _ in kernels]
    names = [[variant.name for variant in kernel.variants] for kernel in kernels]
    for case in cases:
        whole = make(kernels[0], case, REPEATED_LENGTHS if case.period else lengths)
        want = reference.evaluate(layer, whole)
        for kernel, variants, errors in zip(kernels, names, found, strict=True):
            for kernel.variant in variants:
                after = run(device, kernel, case, whole)
                bounds = limits(kernel, case)
                judge(case, kernel.variant, after, want, whole["slots"], bounds, errors[case.name])
            kernel.variant = None
    rows = []
    for kernel, variants, errors in zip(kernels, names, found, strict=True):
        rows.append(
            {
                "target": kernel.code.target,
                "variants": variants,
                "cases": {name: [e.output, e.state] for name, e in errors.items()},
                "failures": [text for e in errors.values() for text in e.failures],
            }
        )
    return rows


def cases_of(kernel: Kernel, layer: reference.Layer, quick: bool) -> tuple[Case, ...]:
    """The cases that an entry has arguments for; with `quick` those of gates alone."""
    is_ready = any(param.name == "log_decay" for param in kernel.params)
    cases = [case for case in CASES if is_ready or case.name not in _READY_ALONE]
    if quick:
        return tuple(cases[:3])
    return (*cases, *REPEATS) if layer.double_beta else tuple(cases)


def facts_of(kernel: Kernel, layer: reference.Layer) -> dict:
    """What tells an entry from others."""
    dtypes = {param.name: param.dtype for param in kernel.params}
    output = next(name for name in checks.OUTPUTS if name in dtypes)
    return {
        "heads": [layer.key_dim, layer.value_dim],
        "layout": "ready" if "log_decay" in dtypes else "packed",
        "io": dtypes[output],
        "state": dtypes["state_pool"],
    }


def check_image(options, device: Device, path: Path) -> list[dict]:
    """A row for each prefill entry of an image and each code that the device takes."""
    rows = []
    image = device._runtime.image(path)
    for entry in (name for name in image.entries if name.startswith("prefill")):
        kernels = list(kernels_of(device, image, entry, options.target))
        if not kernels:
            continue
        layer = reference.Layer.of(image.attributes(entry))
        cases = cases_of(kernels[0], layer, options.quick)
        lengths = QUICK_LENGTHS if options.quick else LENGTHS
        lengths = tuple(options.lengths) if options.lengths else lengths
        for row in check_kernels(device, kernels, layer, cases, lengths):
            facts = facts_of(kernels[0], layer)
            digest = image.attributes(entry).get(f"gdn.digest.{row['target']}", "")
            rows.append({"image": path.stem} | facts | {"digest": digest} | row)
            print_row(rows[-1])
    return rows


def print_row(row: dict) -> None:
    errors = np.array(list(row["cases"].values()))
    outputs, states = errors.max(axis=0)
    heads = " x ".join(map(str, row["heads"]))
    print(
        f"{heads:9} {row['layout']:6} {row['io']:8} state {row['state']:8} {row['target']:7}"
        f" {len(row['variants'])} variants, {len(row['cases'])} cases: out {outputs:.1e}"
        f" state {states:.1e} {'FAILED' if row['failures'] else 'ok'}",
        flush=True,
    )
    for failure in row["failures"][:8]:
        print(f"    {failure}", flush=True)


def check_together(options) -> list[dict]:
    """As many images at the same time as asked for, a process for each."""

    def check(path: Path) -> tuple[str, list[dict]]:
        with tempfile.NamedTemporaryFile(suffix=".json") as file:
            command = [sys.executable, "-m", "gdn.numerics_check", path, "--output", file.name]
            command += ["--device", options.device]
            command += ["--library", options.library] if options.library else []
            command += [f"--target={target}" for target in options.target]
            command += ["--quick"] if options.quick else []
            done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
            if done.returncode > 1:
                sys.exit(f"{path}: {done.stdout}{done.stderr}")
            return done.stdout, json.loads(Path(file.name).read_text())["rows"]

    rows = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for text, found in pool.map(check, options.images):
            print("\n".join(text.splitlines()[1:]), flush=True)
            rows += found
    return rows


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("numerics_check", description=__doc__.split("\n\n")[0])
    parser.add_argument("images", nargs="+", type=Path)
    parser.add_argument("--output", type=Path, help="write the errors as JSON")
    parser.add_argument("--device", default="cuda", help="cuda, cuda:1 or cpu")
    parser.add_argument("--library", type=Path, help="libgdnrt, else the installed one")
    parser.add_argument("--target", action="append", default=[], help="codes of this target")
    parser.add_argument("--quick", action="store_true", help="three kinds of gates, short rows")
    parser.add_argument("--lengths", type=int, nargs="+", help="tokens of the rows")
    parser.add_argument("--jobs", type=int, default=1, help="images at the same time")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    runtime, driver = Runtime(options.library), None
    try:
        is_cpu = options.device == "cpu"
        ordinal = int(options.device.partition(":")[2] or 0)
        device = runtime.device(num_workers=1) if is_cpu else runtime.cuda(ordinal)
    except GdnError as error:
        print(f"skipped: {error}")
        return _SKIPPED
    if device.kind == "cuda":
        from .cuda_driver import Driver

        driver = Driver(ordinal)
    print(device.name, flush=True)
    report = {
        "device": driver.device_name if driver else device.name,
        "driver": driver_version(driver),
        "date": datetime.date.today().isoformat(),
        "rows": [],
    }
    if options.jobs > 1:
        report["rows"] = check_together(options)
    else:
        for path in options.images:
            report["rows"] += check_image(options, device, path)
    if options.output:
        options.output.write_text(records.text_of(report))
    if not report["rows"]:
        print("no prefill for this device")
        return 1
    return 1 if any(row["failures"] for row in report["rows"]) else 0


if __name__ == "__main__":
    sys.exit(main())
