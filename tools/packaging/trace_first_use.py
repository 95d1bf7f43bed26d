# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Traces the system calls from an image's file to the result of its first launch, from the wheels:
one process, and no file opened for writing outside of gdn's cache.

Unpacks gdn-*.whl, and gdn_images*.whl if there are some, of build/wheels into a folder of its own
and runs a program there twice: alone, which gives the milliseconds, and under strace. On a GPU the
context exists before. Needs strace (the Debian package of this name), the right to trace
processes, and NumPy; for types that NumPy lacks also ml_dtypes. --path takes a folder where gdn is
already installed, --image an image in place of the one that gdn.images.find finds.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import wheels

# The program asks for these, which are not there: marks in the trace.
BEGIN, END = "/gdn-trace/begin", "/gdn-trace/end"
PROGRAM = """
import json, os, sys, time
options = json.loads(sys.argv[1])
start = time.perf_counter()
import numpy as np
import gdn
from gdn.problems import Sizes, make

times = {}
def lap(name):
    global start
    now = time.perf_counter()
    times[name] = round(1000 * (now - start), 3)
    start = time.perf_counter()

runtime = gdn.Runtime()
lap("import")
if options["device"] == "cuda":
    from gdn.cuda_driver import Driver
    context = Driver()
device = runtime.cuda() if options["device"] == "cuda" else runtime.device()
lap("device")
path = options["image"] or gdn.images.find(options["config"], device, engine=options["engine"])
lap("find")
params = runtime.image(path).params(options["entry"])
arrays = make(params, Sizes(key_heads=2, value_heads=4, lengths=(1, 1, 1)))
values = {}
for param in params:
    value = arrays[param.name]
    pool = isinstance(value, gdn.Pool)
    array = value.array if pool else value
    array = device.array(array) if options["device"] == "cuda" else array
    values[param.name] = gdn.Pool(array, value.null_slot) if pool else array
device.synchronize()
os.path.exists(options["begin"])
start = time.perf_counter()
image = runtime.image(path)
lap("load the file")
kernel = device.kernel(image, options["entry"])
lap("make the kernel")
binding = kernel.bind(**values)
if binding.workspace_bytes:
    binding.set_workspace()
binding.launch()
device.synchronize()
lap("first launch")
os.path.exists(options["end"])
print(json.dumps({"device": device.name, "image": str(path), "ms": times}))
"""
STEPS = ("load the file", "make the kernel", "first launch")
_CALL = re.compile(r"(\d+)\s+([\d.]+) (\w+)\((.*)$")
_RESUMED = re.compile(r"(\d+)\s+[\d.]+ <\.\.\. (\w+) resumed>(.*)$")
_UNFINISHED = " <unfinished ...>"
_FORKS = ("fork", "vfork", "clone", "clone3")
_OPENS = ("open", "openat", "openat2", "creat")
# Calls that change files by name.
_CHANGES = re.compile(
    r"(rename|unlink|mkdir|mknod|link|symlink|truncate|rmdir|chmod|fchmod|chown|fchown|lchown)"
    r"(at2?|2)?"
)
_TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')
# Devices and the process's own files, which are no files of a disk.
_NO_FILES = re.compile(r"/(proc|dev(?!/shm))(/|$)")


@dataclass
class Trace:
    """What a program did between its two marks."""

    spawned: list[str] = field(default_factory=list)  # calls that make or replace a process
    written: list[Path] = field(default_factory=list)  # files that were opened to write, or changed
    calls: int = 0
    is_whole: bool = False  # both marks were found

    def outside(self, folder: Path) -> list[Path]:
        """Files that are not in a folder."""
        return [path for path in self.written if not path.is_relative_to(folder)]


def parse(lines: Iterable[str]) -> Trace:
    """Reads the output of `strace -f -y -ttt`."""
    trace, begun = Trace(), False
    pending: dict[tuple[str, str], str] = {}
    for line in lines:
        line = line.rstrip("\n")
        if resumed := _RESUMED.match(line):
            thread, name, rest = resumed.groups()
            arguments = pending.pop((thread, name), "") + rest
        elif call := _CALL.match(line):
            thread, _, name, arguments = call.groups()
            if arguments.endswith(_UNFINISHED):
                pending[thread, name] = arguments.removesuffix(_UNFINISHED)
                continue
        else:
            continue  # signals and ends of threads
        if f'"{BEGIN}"' in arguments:
            begun = True
        elif f'"{END}"' in arguments:
            trace.is_whole = begun
            break
        elif begun:
            trace.calls += 1
            _note(trace, name, arguments)
    if begun and not trace.is_whole:
        # A process that took the place of another never comes to the end.
        trace.spawned += [f"{name}(..)" for _, name in pending if name.startswith("exec")]
    return trace


def _note(trace: Trace, name: str, arguments: str) -> None:
    inside, _, result = arguments.rpartition(") = ") if ") = " in arguments else (arguments, "", "")
    inside = inside or arguments
    if result.startswith("-1"):
        return  # what failed changed nothing
    if (name in _FORKS and "CLONE_THREAD" not in inside) or name.startswith("exec"):
        trace.spawned.append(f"{name}({inside})")
    elif name in _OPENS:
        if name == "creat" or re.search(r"O_(WRONLY|RDWR|CREAT|TRUNC|APPEND)", inside):
            _written(trace, inside, result)
    elif _CHANGES.fullmatch(name):
        _written(trace, inside, "")


def _written(trace: Trace, inside: str, result: str) -> None:
    """The path of the result, which strace -y shows, or those of the arguments."""
    opened = re.search(r"\d+<(.*)>", result)
    paths = [opened[1]] if opened else _TEXT.findall(inside)
    at = re.search(r"(?:AT_FDCWD|\d+)<([^>]*)>", inside)
    for text in paths:
        path = Path(at[1] if at else "/") / text
        if not _NO_FILES.match(str(path)):
            trace.written.append(path)


def unpack(folder: Path) -> None:
    """What pip does with these wheels."""
    processor = platform.machine()
    found = sorted(wheels.OUT.glob(f"gdn-*{processor}.whl")) + sorted(
        wheels.OUT.glob("gdn_images*")
    )
    if not found or not found[0].name.startswith("gdn-"):
        raise SystemExit("trace_first_use: expected a wheel of gdn in build/wheels, found none")
    for wheel in found:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)


def run(python: str, path: Path, options: dict, work: Path) -> tuple[dict, Trace]:
    """The report of the program, and what it did."""
    home = work / "home"
    home.mkdir(exist_ok=True)
    environment = os.environ | {
        "PYTHONPATH": str(path),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home / ".cache"),
    }
    program = work / "program.py"
    program.write_text(PROGRAM)
    command = [python, str(program), json.dumps(options | {"begin": BEGIN, "end": END})]
    output = work / "strace.txt"
    strace = ["strace", "-f", "-y", "-ttt", "-o", str(output), "-e", "trace=%process,%file"]
    reports = []
    for words in (command, [*strace, *command]):
        done = subprocess.run(words, env=environment, cwd=work, text=True, capture_output=True)
        if done.returncode:
            raise SystemExit(f"trace_first_use: {done.stdout[-1000:]}{done.stderr[-3000:]}")
        reports.append(json.loads(done.stdout.splitlines()[-1]))
    return reports[0], parse(output.read_text(errors="replace").splitlines())


def complaints(trace: Trace, cache: Path) -> list[str]:
    """What is not as it has to be."""
    found = [f"expected one process, got {call}" for call in trace.spawned]
    found += [f"expected no file to be written, got {path}" for path in trace.outside(cache)]
    if not trace.is_whole:
        found.append("expected a trace from the file to the result, got a part")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="trace_first_use",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--image", default="", help="default: the one that gdn.images.find finds")
    parser.add_argument("--config", default="qwen3.5-4b", help="for gdn.images.find")
    parser.add_argument("--engine", default="vllm", help="for gdn.images.find")
    parser.add_argument("--entry", default="decode")
    parser.add_argument("--path", type=Path, help="where gdn is installed")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--most-ms", type=float, default=0, help="a limit of the three steps")
    options = parser.parse_args()
    if shutil.which("strace") is None:
        raise SystemExit("trace_first_use: expected strace on the PATH (apt install strace)")
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder).resolve()
        path = options.path
        if path is None:
            path = work / "installed"
            unpack(path)
        image = str(Path(options.image).resolve()) if options.image else ""
        asked = {name: getattr(options, name) for name in ("device", "config", "engine", "entry")}
        report, trace = run(options.python, path.resolve(), asked | {"image": image}, work)
        wrong = complaints(trace, work / "home/.cache/gdn")
    times = report["ms"]
    print(report["device"], Path(report["image"]).name, options.entry)
    for name, value in times.items():
        print(f"  {name}: {value:.1f} ms")
    whole = sum(times[name] for name in STEPS)
    print(
        f"from the file to the result: {whole:.1f} ms, {trace.calls} calls of files and processes"
    )
    if options.most_ms and whole > options.most_ms:
        wrong.append(f"expected at most {options.most_ms:.0f} ms, got {whole:.0f}")
    for line in wrong:
        print(f"trace_first_use: {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
