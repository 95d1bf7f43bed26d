# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks and times every kernel of images on this machine's device, without a
compiler: `tools/scripts/device-check IMAGE.. --output FILE`.

Images whose kernels PyTorch's layers take are checked as layers as well (gdn.layer_check), in
graphs and out of them, where PyTorch is installed.

Each entry runs with every code that the device takes (PTX for older chips too),
on made-up inputs beside a float64 reference in NumPy. Times are of graphs of
launches back to back over at least 384 MB of states. The JSON that it writes is
what tools/scripts/kernels_lock.py records. Exits with 1 if anything was wrong, with 77
if there is no such device.
"""

import argparse
import datetime
import importlib.util
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from . import checks, layer_problem, problems, reference, verify_checks
from .problems import Sizes
from .records import is_clean
from .runtime import Device, GdnError, Image, Kernel, Pool, Runtime

SANITIZERS = ("memcheck", "racecheck", "synccheck", "initcheck")
MOVES = ("copy_slots", "zero_slots")
SPECULATION = ("verify", "commit")
_BYTES_BEYOND_CACHE = 384 << 20
_MOST_SETS = 200
_SANITIZER_FAILED = 99
_SKIPPED = 77  # the exit code where there is no such device


def cases(entry: str, quick: bool) -> list[Sizes]:
    """Sizes to check an entry with: skipped sequences, empty sequences, strong decay, the shapes
    of models."""
    skipped = {1: 0, 3: -1, 4: 9999}
    if entry.startswith(MOVES):
        small = [Sizes(2, 4, (1,) * 9, skipped=skipped, seed=1)]
        return small if quick else [*small, Sizes(8, 24, (1,) * 5, seed=2)]
    if entry.startswith("decode"):
        small = [
            Sizes(2, 4, (1,) * 6, skipped=skipped, seed=1),
            Sizes(2, 8, (1,), seed=2, decay="strong"),
        ]
        return (
            small
            if quick
            else small
            + [
                Sizes(16, 32, (1,) * 8, seed=3),
                Sizes(16, 64, (1,) * 3, seed=4),
                Sizes(8, 24, (1,) * 5, seed=5),
                Sizes(2, 8, (1,) * 67, skipped=skipped, seed=6, decay="strong"),
            ]
        )
    # Around chunks of 64; sequences and slots that are skipped; decays of all kinds.
    small = [
        Sizes(1, 2, (5, 3, 0, 2, 1, 70), skipped={1: 0, 3: -1}, seed=7),
        Sizes(1, 2, (66,), seed=10, decay="very_strong"),
        Sizes(1, 1, (1, 0, 0) * 90, seed=13),  # more sequences than are put in order
    ]
    return (
        small
        if quick
        else small
        + [
            Sizes(2, 4, (64, 63, 65, 1, 130), seed=8, decay="strong"),
            Sizes(4, 8, (200, 0, 33), seed=9),
            Sizes(2, 8, (257, 3, 128), skipped={1: 9999}, seed=11, decay="near_one"),
            Sizes(2, 4, (1, 500, 0, 0, 64), seed=12, decay="very_strong"),
            # So many heads that lengths choose blocks that prepare their chunks.
            Sizes(4, 32, (33, 32, 0, 31, 3), skipped=skipped, seed=14),
        ]
    )


def check_kernel(
    device: Device, kernel: Kernel, attributes: dict[str, str], quick: bool
) -> tuple[checks.Findings, float | None]:
    """All checks of one kernel, and the error of its state after many steps. On a GPU, of
    each of its variants, whatever they are for."""
    findings, many = checks.Findings(), None
    if kernel.name.startswith(MOVES):
        for sizes in cases(kernel.name, quick):
            checks.check_moves(device, kernel, sizes, findings)
        return findings, many
    layer = reference.Layer.of(attributes)
    counts = any(param.name == "pending_counts" for param in kernel.params)
    accepts = any(param.name == "num_accepted" for param in kernel.params)
    if counts and kernel.name.startswith("commit") and not accepts:
        for sizes in cases("decode", quick):
            checks.check_commit(device, kernel, sizes, findings)
        return findings, many
    if kernel.name.startswith(SPECULATION):
        for sizes in verify_checks.cases(quick):
            verify_checks.check_case(device, kernel, layer, sizes, findings)
        return findings, many
    names = [variant.name for variant in kernel.variants]
    if device.kind != "cuda" or len(names) == 1:
        return findings, check_variant(device, kernel, layer, quick, findings)
    for kernel.variant in names:
        error = check_variant(device, kernel, layer, quick, findings)
        many = max((e for e in (many, error) if e is not None), default=None)
    kernel.variant = None
    if not kernel.name.startswith("decode"):
        # A sequence so long that it is cut where it is alone, with so few heads.
        lengths = (3, 700, 70) if quick else (3, 4160, 70)
        sizes = Sizes(1, 1, lengths, seed=23, decay="near_one")
        checks.check_any_batch(device, kernel, sizes, findings)
        return findings, many
    # More units than blocks that stay, and not a multiple of them.
    skipped = {1: 0, 3: -1, 40: 9999}
    sizes = Sizes(4, 8, (1,) * (45 if quick else 90), skipped=skipped, seed=22)
    if counts:  # a variant adds terms up in an order of its own
        sizes = Sizes(4, 8, (1,) * sizes.rows, seed=22)
        checks.check_any_batch(device, kernel, sizes, findings)
    else:
        checks.check_variants(device, kernel, sizes, findings)
    return findings, many


def check_variant(
    device: Device,
    kernel: Kernel,
    layer: reference.Layer,
    quick: bool,
    findings: checks.Findings,
) -> float | None:
    """As check_kernel, of the variant that calls take."""
    for sizes in cases(kernel.name, quick):
        checks.check_case(device, kernel, layer, sizes, findings)
    if kernel.variant is not None and "-segments-" in kernel.variant:
        return None  # where a sequence is cut depends on the batch, and so do its bits
    if not kernel.name.startswith("decode"):
        lengths = (70, 2, 33) if quick else (70, 2, 191, 64, 33)
        checks.check_rows_alone(device, kernel, Sizes(1, 2, lengths, seed=20), findings)
        return None
    checks.check_rows_alone(device, kernel, Sizes(2, 4, (1,) * 9, seed=20), findings)
    steps = 4 if quick else 64
    sizes = Sizes(2, 4, (1,) * 3, seed=21)
    return checks.check_many_steps(device, kernel, layer, sizes, findings, steps)


def pool_numbers(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Small numbers that repeat: what a pool holds does not change how long it takes."""
    few = np.random.default_rng(1).uniform(-0.1, 0.0, 1 << 16).astype(np.float32)
    return np.resize(few.astype(problems.numpy_dtype(dtype)), shape)


def bind_sets(device: Device, kernel: Kernel, sizes: Sizes) -> list:
    """Bindings over enough copies of the pools that no state is in a cache."""
    params = [p for p in kernel.params if p.kind == "pool"]
    others = [p for p in kernel.params if p.kind != "pool"]
    made = problems.make(others, sizes, kernel.params)
    shared = {n: device.array(v) for n, v in made.items()}
    shapes = problems.shapes(params, sizes, kernel.params)
    pools = {p.name: pool_numbers(shapes[p.name], p.dtype) for p in params}
    state_bytes = sum(pool.nbytes for pool in pools.values())
    count = min(_MOST_SETS, -(-_BYTES_BEYOND_CACHE // state_bytes))
    bindings = []
    for _ in range(count):
        own = {name: Pool(device.array(pool)) for name, pool in pools.items()}
        binding = kernel.bind(**shared, **own)
        if binding.workspace_bytes:
            binding.set_workspace()
        bindings.append(binding)
    return bindings


def time_kernel(device: Device, kernel: Kernel, driver) -> tuple[dict, dict[str, float]]:
    """The configuration that was timed, and its microseconds."""
    if kernel.name.startswith(("decode", *MOVES)):
        config = {"Hk": 16, "Hv": 32, "N": 64}
        sizes = Sizes(16, 32, (1,) * 64)
    elif kernel.name.startswith(SPECULATION):
        config = {"Hk": 16, "Hv": 32, "N": 64, "T": 4}
        sizes = Sizes(16, 32, (4,) * 64)
    else:
        config = {"Hk": 16, "Hv": 32, "lens": [1024, 1024]}
        sizes = Sizes(16, 32, (1024, 1024))
    bindings = bind_sets(device, kernel, sizes)
    if driver is not None:
        from .cuda_driver import time_launches

        device.synchronize()
        return config, time_launches(driver, [binding.launch for binding in bindings])
    bindings[0].launch()
    times = []
    for _ in range(3):
        start = time.perf_counter()
        bindings[0].launch()
        times.append((time.perf_counter() - start) * 1e6)
    return config, {"us": float(np.median(times)), "us_min": min(times), "us_max": max(times)}


def driver_version(driver) -> str:
    """The release of the kernel module, or that of CUDA."""
    try:
        text = Path("/proc/driver/nvidia/version").read_text()
        if found := re.search(r"Kernel Module.*?(\d+\.\d+(\.\d+)?)", text):
            return found.group(1)
    except OSError:
        pass
    return f"CUDA {driver.version}" if driver else "none"


def kernels_of(device: Device, image: Image, entry: str, targets: list[str]):
    """The kernels of an entry that the device runs, one for each of its codes."""
    for index, code in enumerate(image.codes(entry)):
        if targets and code.target not in targets:
            continue
        try:
            yield device.kernel(image, entry, code=index)
        except GdnError as error:
            if error.status != "UNSUPPORTED":
                raise


def check_images(options, device: Device, driver) -> dict:
    """The report on all images."""
    runtime = device._runtime
    report = {
        "device": driver.device_name if driver else device.name,
        "driver": driver_version(driver),
        "date": datetime.date.today().isoformat(),
        "kernels": [],
    }
    for path in options.images:
        image = runtime.image(path)
        for entry in image.entries:
            if options.entry and not entry.startswith(options.entry):
                continue
            attributes = image.attributes(entry)
            for kernel in kernels_of(device, image, entry, options.target):
                code = kernel.code
                findings, many = check_kernel(device, kernel, attributes, options.quick)
                row = {
                    "name": f"{path.stem}/{entry}",
                    "target": code.target,
                    "format": code.format,
                    "digest": attributes.get(f"gdn.digest.{code.target}", ""),
                    "config": {},
                    "error_o": findings.error_o,
                    "error_state": findings.error_state,
                    "error_state_many": many,
                    "us": None,
                    "failures": findings.failures,
                }
                if not options.no_times:
                    row["config"], times = time_kernel(device, kernel, driver)
                    row |= times
                report["kernels"].append(row)
                print_row(row)
                write(report, options)
    return report


def write(report: dict, options) -> None:
    """Writes what there is so far: a run that is stopped keeps the kernels it has checked."""
    if options.output:
        options.output.write_text(json.dumps(report, indent=1) + "\n")


def print_row(row: dict) -> None:
    spent = f"{row['us']:9.2f} us" if row["us"] else ""
    many = f"{row['error_state_many']:.1e}" if row["error_state_many"] is not None else ""
    print(
        f"{row['name']:32} {row['target']:8} {row['format']:6} out {row['error_o']:.1e}"
        f" state {row['error_state']:.1e} {many:8} {spent}"
        f" {'FAILED' if row['failures'] else 'ok'}",
        flush=True,
    )
    for failure in row["failures"][:10]:
        print(f"    {failure}")


def has_layers(image: Image) -> bool:
    """Whether gdn.layer_check is for such images: a decode of bf16 with f32 states, from
    projections to one output, with the heads of gdn.layer_problem."""
    if "decode" not in image.entries:
        return False
    facts = image.attributes("decode")
    wanted = {
        "io": ("bf16",),
        "state": ("f32",),
        "layout": ("interleaved", "flat", "split"),
        "outputs": ("core", "norm"),
    }
    if any(facts.get(fact) not in values for fact, values in wanted.items()):
        return False
    layer = reference.Layer.of(facts)
    return layer.key_dim == layer.value_dim == layer_problem.D


def check_layers(options, device: Device) -> list[dict]:
    """Layers of PyTorch on the device, one process for each image: what did not hold."""
    if device.kind != "cuda" or options.no_layers:
        return []
    if importlib.util.find_spec("torch") is None:
        print("layers: skipped: PyTorch is not installed")
        return []
    results = []
    for path in options.images:
        if not has_layers(device._runtime.image(path)):
            continue
        command = [sys.executable, "-m", "gdn.layer_check", str(path)]
        command += ["--library", str(options.library)] if options.library else []
        done = subprocess.run(command, capture_output=True, text=True)
        lines = done.stdout.splitlines()
        failures = [line for line in lines if line.startswith("FAILED")]
        if done.returncode and not failures:
            failures = done.stderr.splitlines()[-5:] or [f"exit {done.returncode}"]
        checked = sum(line.startswith("ok ") for line in lines)
        results.append({"name": path.stem, "checked": checked, "failures": failures})
        print(f"{path.stem:32} layers, {checked} checks {'FAILED' if failures else 'ok'}")
        for failure in failures:
            print(f"    {failure}")
    return results


def count_errors(said: str) -> int | None:
    """The errors that compute-sanitizer counted; None if it did not come to its summary."""
    found = re.search(r"(?:ERROR SUMMARY: |RACECHECK SUMMARY: .*\()(\d+) error", said)
    return int(found.group(1)) if found else None


def is_before_rings(target: str) -> bool:
    """Whether codes of `target`, as `sm_86` or `sm_120a`, have no rings: those before sm_90."""
    number = re.fullmatch(r"sm_(\d+)[af]?", target)
    return number is not None and int(number[1]) < 90


def run_sanitizer(tool: str, options) -> dict:
    """This check again, quick and without times, under a tool of compute-sanitizer: its report,
    whose kernels have the errors that the tool counted in all of them together."""
    command = ["compute-sanitizer", f"--tool={tool}", f"--error-exitcode={_SANITIZER_FAILED}"]
    has_rings = not options.target or not all(map(is_before_rings, options.target))
    if tool == "synccheck" and has_rings:
        # Blocks with rings have about a hundred each.
        command.append("--num-cuda-barriers=262144")
    command += [sys.executable, "-m", "gdn.device_check", *map(str, options.images)]
    command += ["--quick", "--no-times", "--no-layers", "--device", options.device]
    command += ["--entry", options.entry]
    command += ["--library", str(options.library)] if options.library else []
    for target in options.target:
        command += ["--target", target]
    print(f"{tool}:", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "report.json"
        command += ["--output", str(output)]
        said = []
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            for line in process.stdout:
                print(line, end="", flush=True)
                said.append(line)
        report = json.loads(output.read_text()) if output.exists() else {"kernels": []}
    errors = count_errors("".join(said))
    report["sanitizers"] = [
        {field: row[field] for field in ("name", "target", "digest", "failures")}
        | {"tool": tool, "errors": errors}
        for row in report.pop("kernels")
    ]
    return report


def run_sanitizers(options) -> int:
    """Every tool that was asked for; the exit code: 0 where all kernels are clean."""
    report: dict = {"sanitizers": []}
    failed = False
    for tool in options.sanitizer:
        found = run_sanitizer(tool, options)
        rows = found["sanitizers"]
        report |= found | {"sanitizers": report["sanitizers"] + rows}
        write(report, options)
        clean = bool(rows) and all(is_clean(row) for row in rows)
        print(f"{tool}: {len(rows)} kernels {'ok' if clean else 'FAILED'}", flush=True)
        failed |= not clean
    return int(failed)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("device-check", description=__doc__.split("\n\n")[0])
    parser.add_argument("images", nargs="+", type=Path)
    parser.add_argument("--output", type=Path, help="write the report as JSON")
    parser.add_argument("--device", default="cuda", help="cuda, cuda:1 or cpu")
    parser.add_argument("--library", type=Path, help="libgdnrt, else the installed one")
    parser.add_argument("--entry", default="", help="entries whose name begins so")
    parser.add_argument("--target", action="append", default=[], help="codes of this target")
    parser.add_argument("--quick", action="store_true", help="small cases alone")
    parser.add_argument("--no-times", action="store_true")
    parser.add_argument("--no-layers", action="store_true", help="no layers of PyTorch")
    parser.add_argument("--sanitizer", action="append", default=[], choices=SANITIZERS)
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    if options.sanitizer:
        return run_sanitizers(options)
    runtime, driver = Runtime(options.library), None
    ordinal = int(options.device.partition(":")[2] or 0)
    try:
        is_cpu = options.device == "cpu"
        device = runtime.device(num_workers=0) if is_cpu else runtime.cuda(ordinal)
    except GdnError as error:
        print(f"skipped: {error}")
        return _SKIPPED
    if device.kind == "cuda" and not options.no_times:
        from .cuda_driver import Driver

        driver = Driver(ordinal)
    print(device.name)
    report = check_images(options, device, driver)
    report["layers"] = check_layers(options, device)
    write(report, options)
    if not report["kernels"]:
        print("no kernel for this device")
        return 1
    return 1 if any(row["failures"] for row in report["kernels"] + report["layers"]) else 0


if __name__ == "__main__":
    sys.exit(main())
