# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares the generated GPU kernels with kernels.lock, or renews it.

Without options: generates the PTX of every kernel of the default sets and
fails if a digest is not the one in kernels.lock. Each kernel is in one of three
states:

  verified    it ran on a device; device, driver, errors and time stand beside it
  assembled   ptxas accepts it; it has not run
  unverified  it has changed since it last ran

--update writes the digests of today; a kernel that has changed loses its
measurements. --record FILE takes over what tools/scripts/device-check measured,
for kernels whose digest is the one that was measured: errors and time, and which
tools of compute-sanitizer found nothing (`sanitizers`).
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOCK = ROOT / "kernels.lock"
TARGETS = ["sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_103a", "sm_120a"]
# Chips that get the programs of another, which test/python/test_kernels_lock.py compares.
SIBLINGS = {"sm_89": "sm_86", "sm_103a": "sm_100a"}
# What each run of ./check compares; the rest is in --full. sm_86 has the instructions of
# sm_80 and the shared memory of sm_120a. A type differs from another in conversions.
FAMILIES = ["sm_80", "sm_90a", "sm_100a", "sm_120a"]
FAMILIES_OF = {
    "d128-f16": ["sm_90a"],
    "d96-olmo": ["sm_90a"],
    # Two sets that share most of prefill share the families, too.
    "d128-bf16": ["sm_80", "sm_90a", "sm_120a"],
    "d128-ready-bf16": ["sm_90a", "sm_100a"],
    # Of a decay per channel d128-kda has all families; f16 of pending tokens is a conversion.
    "d128-kda-ready": ["sm_80"],
    "d128-kda-slots": ["sm_80", "sm_90a"],
    "d128-kda-bounded": ["sm_90a"],
    "d128-kda-gated": ["sm_90a"],
    "d128-kda-deferred": ["sm_90a"],
    # Of deferred writes and planes, and of f32, each family is in one of the sets.
    "d128-deferred": ["sm_90a", "sm_100a"],
    "d128-planes": ["sm_80", "sm_90a"],
    "d128-upper": ["sm_80", "sm_90a"],
    "d128-pending": ["sm_90a", "sm_120a"],
    "d128-f32": ["sm_90a", "sm_120a"],
    # Kinds of verify differ in which slots are read and written, families in instructions.
    "d128-verify-slots": ["sm_80", "sm_90a"],
    "d128-verify-tree": ["sm_90a", "sm_100a"],
    "d128-verify-lazy": ["sm_90a", "sm_120a"],
    "d128-verify-buffer": ["sm_80", "sm_90a"],
    "d128-verify-lazy-4": ["sm_90a"],
}
# The default kernels: the name of a set, and what gdn-compile makes it of. A
# kernel is called <set>/<entry>.
KERNEL_SETS: dict[str, list[str]] = {
    "d128-bf16": ["--preset=qwen3-next-80b-a3b", "--io=bf16", "--state=f32,bf16"],
    "d128-f16": ["--preset=qwen3-next-80b-a3b", "--io=f16", "--state=f32"],
    "d128-ready-bf16": [
        "--preset=qwen3-next-80b-a3b",
        "--layout=ready",
        "--outputs=core",
        "--io=bf16",
        "--state=f32,bf16",
    ],
}
# Strengths up to 2: prefill whose operands have two parts.
KERNEL_SETS["d96-olmo"] = [
    "--preset=olmo-hybrid-7b",
    "--io=bf16",
    "--state=f32",
    "--only=decode,prefill",
]
_VERIFY = ["--preset=qwen3-next-80b-a3b", "--io=bf16", "--state=f32,bf16"]
for _kind in ("slots", "tree"):
    KERNEL_SETS[f"d128-verify-{_kind}"] = [*_VERIFY, f"--verify={_kind}", "--only=verify"]
for _kind in ("lazy", "buffer"):
    KERNEL_SETS[f"d128-verify-{_kind}"] = [*_VERIFY, f"--verify={_kind}", "--only=verify,commit"]
# Rows of up to four tokens.
KERNEL_SETS["d128-verify-lazy-4"] = [
    *_VERIFY,
    "--verify=lazy",
    "--verify-tokens=4",
    "--only=verify",
]
# Inputs and outputs of f32.
KERNEL_SETS["d128-f32"] = [
    "--preset=qwen3-next-80b-a3b",
    "--io=f32",
    "--state=f32,bf16",
    "--only=decode,prefill",
]
# States that are written every W tokens.
KERNEL_SETS["d128-deferred"] = [
    "--preset=qwen3-next-80b-a3b",
    "--io=bf16",
    "--state=f32,bf16",
    "--defer-writes=16",
    "--verify=lazy",
    "--only=decode,verify,commit",
]
# States in planes.
KERNEL_SETS["d128-planes"] = [
    "--preset=qwen3-next-80b-a3b",
    "--io=bf16",
    "--state=i8x2,i8",
    "--defer-writes=16",
    "--verify=lazy",
    "--only=decode,verify,commit,prefill",
]
# The same pools, of whose states decode reads one plane.
KERNEL_SETS["d128-upper"] = [
    "--preset=qwen3-next-80b-a3b",
    "--io=bf16",
    "--state=i8x2_upper",
    "--defer-writes=16",
    "--only=decode",
]
# Pending tokens in f16.
KERNEL_SETS["d128-pending"] = [
    "--preset=qwen3-next-80b-a3b",
    "--io=bf16",
    "--state=f32,i8x2",
    "--defer-writes=16",
    "--pending=f16",
    "--verify=lazy",
    "--only=decode,verify,commit",
]
# A decay per channel.
KERNEL_SETS["d128-kda"] = [
    "--preset=kimi-linear-48b-a3b",
    "--io=bf16",
    "--state=f32",
    "--verify=lazy",
    "--only=decode,verify,commit,prefill",
]
# The same with a slot for each token, and the weights of an engine's layer.
KERNEL_SETS["d128-kda-slots"] = [
    "--preset=kimi-linear-48b-a3b",
    "--io=bf16",
    "--state=f32",
    "--verify=slots",
    "--conv-weight=f32",
    "--only=verify",
]
# From ready inputs; and a bounded decay.
KERNEL_SETS["d128-kda-ready"] = [
    "--preset=kimi-linear-48b-a3b",
    "--io=bf16",
    "--state=f32",
    "--layout=ready",
    "--outputs=core",
    "--only=prefill",
]
KERNEL_SETS["d128-kda-bounded"] = [
    "--preset=kimi-k3",
    "--io=bf16",
    "--state=f32",
    "--only=decode,prefill",
]
# Raw gates, and queries and keys that need a norm.
KERNEL_SETS["d128-kda-gated"] = [
    "--preset=kimi-k3",
    "--io=bf16",
    "--state=f32",
    "--layout=gated",
    "--l2norm",
    "--outputs=core",
    "--only=prefill",
]
# States written every so many tokens.
KERNEL_SETS["d128-kda-deferred"] = [
    "--preset=kimi-linear-48b-a3b",
    "--io=bf16",
    "--state=f32",
    "--defer-writes=16",
    "--verify=lazy",
    "--only=decode,verify,commit",
]
MEASURED = ["device", "driver", "date", "error_o", "error_state", "us"]

# Runs gdn-compile with arguments and gives its standard output.
Compile = Callable[[list[str]], str]
Kernel = dict[str, object]


class LockError(Exception):
    """Something that the user has to know; its text is the whole message."""


def compiler(build_dir: Path, cache: str = "") -> Compile:
    program = [build_dir / "bin/gdn-compile", *([f"--cache={cache}"] if cache else [])]

    def run(arguments: list[str]) -> str:
        done = subprocess.run([*program, *arguments], text=True, capture_output=True)
        if done.returncode:
            raise LockError(f"gdn-compile {' '.join(arguments)} failed:\n{done.stderr.rstrip()}")
        return done.stdout

    return run


def generate(
    compile_: Compile, assemble: bool, only: str | None = None, targets: str = "all"
) -> dict[tuple[str, str], str]:
    """Digests by name and target, of one set or of all, for the targets that --targets means.
    With `assemble`, ptxas has accepted each kernel. As many sets at a time as there are cores."""

    def digests_of(name: str) -> dict[tuple[str, str], str]:
        arguments = [*KERNEL_SETS[name], f"--target={','.join(chosen(targets, name))}"]
        if assemble:
            compile_([*arguments, "--emit=report"])
        lines = [line.split() for line in compile_([*arguments, "--emit=digest"]).splitlines()]
        return {(f"{name}/{entry}", target): digest for entry, target, digest in lines}

    digests = {}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for found in pool.map(digests_of, [only] if only else KERNEL_SETS):
            digests |= found
    return digests


def set_of(key: tuple[str, str]) -> str:
    """The set of a kernel, whose name is <set>/<entry>."""
    return key[0].partition("/")[0]


def chosen(targets: str, name: str) -> list[str]:
    """The targets that --targets means for one set."""
    if targets == "all":
        return TARGETS
    families = FAMILIES_OF.get(name, FAMILIES)
    return [target for target in TARGETS if (target in families) == (targets == "families")]


def read(path: Path) -> dict[tuple[str, str], Kernel]:
    try:
        kernels = json.loads(path.read_text())
        return {(kernel["name"], kernel["target"]): kernel for kernel in kernels}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise LockError(f"{path.name}: expects a list of kernels, but got: {error}") from error


def write(path: Path, kernels: dict[tuple[str, str], Kernel]) -> None:
    """One kernel a line, in the order of names and of targets."""
    order = sorted(kernels, key=lambda key: (key[0], TARGETS.index(key[1])))
    lines = ",\n".join("  " + json.dumps(kernels[key]) for key in order)
    path.write_text(f"[\n{lines}\n]\n" if lines else "[]\n")


def differences(locked: dict[tuple[str, str], Kernel], digests: dict) -> list[str]:
    """One line for each kernel in which the lock is not what is generated."""
    lines = []
    for key in sorted(locked.keys() | digests.keys()):
        name = " ".join(key)
        if key not in digests:
            lines.append(f"{name}: is not generated any more")
        elif key not in locked:
            lines.append(f"{name}: is not in the lock")
        elif locked[key]["digest"] != digests[key]:
            before = str(locked[key]["digest"])
            lines.append(f"{name}: expected {before[:12]}.., got {digests[key][:12]}..")
    return lines


def updated(locked: dict[tuple[str, str], Kernel], digests: dict) -> dict:
    """The kernels of today: those that are as they were keep their state."""
    kernels = {}
    for key, digest in digests.items():
        known = locked.get(key)
        if known and known["digest"] == digest:
            kernels[key] = known
            continue
        has_run = known is not None and known["state"] != "assembled"
        state = "unverified" if has_run else "assembled"
        kernels[key] = {"name": key[0], "target": key[1], "digest": digest, "state": state}
    return kernels


def record(locked: dict[tuple[str, str], Kernel], measured: dict) -> list[str]:
    """Enters the measurements of one device; returns what was left out and why.

    A kernel may have run in several configurations: its worst errors count, and
    the time of the first.
    """
    rows: dict[tuple[str, str], list[dict]] = {}
    for row in measured.get("kernels", []):
        rows.setdefault((row["name"], row["target"]), []).append(row)
    left = []
    for key, runs in rows.items():
        name = " ".join(key)
        kernel = locked.get(key)
        errors = {
            field: max(float(run[field]) for run in runs) for field in ("error_o", "error_state")
        }
        if kernel is None:
            left.append(f"{name}: is not in the lock")
        elif any(run["digest"] != kernel["digest"] for run in runs):
            left.append(f"{name}: another kernel of that name was measured")
        elif not all(math.isfinite(float(run[f])) for run in runs for f in errors):
            left.append(f"{name}: its errors are not finite")
        else:
            for field in MEASURED:
                kernel.pop(field, None)
            kernel["state"] = "verified"
            for field in ("device", "driver", "date"):
                if field in measured:
                    kernel[field] = measured[field]
            kernel |= errors | {"us": runs[0]["us"]}
    return left + record_sanitizers(locked, measured.get("sanitizers", []))


def record_sanitizers(locked: dict[tuple[str, str], Kernel], rows: list[dict]) -> list[str]:
    """Enters the tools of compute-sanitizer that had nothing to say of a kernel; returns what
    was left out and why."""
    sys.path.insert(0, str(ROOT / "python"))
    from gdn.records import is_clean

    left = []
    for row in rows:
        kernel = locked.get((row["name"], row["target"]))
        about = f"{row['name']} {row['target']}: {row['tool']}"
        if kernel is None:
            left.append(f"{about}: is not in the lock")
        elif row["digest"] != kernel["digest"]:
            left.append(f"{about}: another kernel of that name was checked")
        elif not is_clean(row):
            left.append(f"{about}: has errors, or did not end")
        else:
            clean = {*kernel.get("sanitizers", []), row["tool"]}
            kernel["sanitizers"] = sorted(clean)
    return left


def run(arguments: argparse.Namespace, compile_: Compile) -> int:
    locked = read(arguments.lock)
    if arguments.record:
        for path in arguments.record:
            for line in record(locked, json.loads(path.read_text())):
                print(f"kernels.lock: {path.name}: {line}", file=sys.stderr)
        write(arguments.lock, locked)
        return 0
    locked = {
        key: kernel
        for key, kernel in locked.items()
        if arguments.set in (None, set_of(key)) and key[1] in chosen(arguments.targets, set_of(key))
    }
    digests = generate(compile_, arguments.update, arguments.set, arguments.targets)
    if arguments.update:
        write(arguments.lock, updated(locked, digests))
        return 0
    stale = differences(locked, digests)
    for line in stale:
        print(f"kernels.lock: {line}", file=sys.stderr)
    if stale:
        print("kernels.lock: tools/scripts/kernels_lock.py --update renews it", file=sys.stderr)
        return 1
    states = [kernel["state"] for kernel in locked.values()]
    counts = (f"{states.count(s)} {s}" for s in ("verified", "assembled", "unverified"))
    print(f"kernels.lock: {len(states)} kernels: {', '.join(counts)}")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="kernels_lock.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--update", action="store_true", help="write the digests of today")
    parser.add_argument(
        "--record", type=Path, nargs="+", metavar="FILE", help="results of device-check"
    )
    parser.add_argument("--build-dir", type=Path, default=ROOT / "build/release")
    parser.add_argument("--set", choices=KERNEL_SETS, help="compare this set alone")
    parser.add_argument(
        "--targets",
        choices=["all", "families", "siblings"],
        default="all",
        help="compare one chip of each family, or the others",
    )
    parser.add_argument("--list", action="store_true", help="print the names of the sets")
    parser.add_argument("--cache", default="", help="gdn-compile's option of that name")
    parser.add_argument("--lock", type=Path, default=LOCK, help="the file (default: kernels.lock)")
    arguments = parser.parse_args()
    if arguments.list:
        print(";".join(KERNEL_SETS))
        return 0
    in_part = arguments.set or arguments.targets != "all"
    if in_part and (arguments.update or arguments.record):
        parser.error("--set and --targets go with neither --update nor --record")
    try:
        return run(arguments, compiler(arguments.build_dir, arguments.cache))
    except LockError as error:
        print(f"kernels_lock.py: error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
