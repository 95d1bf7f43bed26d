# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a host pays once and per launch: compiling an image for one target, loading it into
a context that is there, and launching through the C ABI. No library but NumPy."""

import ctypes as c
import datetime
import resource
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

from .. import _abi, problems
from ..compiler import find_tool
from ..device_check import driver_version
from ..problems import Sizes
from ..runtime import Device, Image, Kernel, Pool, Runtime

# Compiles are of a whole image for one target, and of its decode alone.
LIMITS_US = {"launch": 4.0, "load": 20e3, "compile": 60e6, "compile of decode": 30e6}
_LAUNCHES = 200
_SIZES = Sizes(2, 4, (1,) * 4)


def _spread(times: list[float]) -> dict[str, float]:
    return {"us": statistics.median(times), "us_min": min(times), "us_max": max(times)}


def _microseconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1e6


@cache
def native_loop() -> Callable | None:
    """Calls a function of three pointers so often, from C: ctypes alone takes a
    microsecond for one launch. None where there is no compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "loop.c"), Path(folder, "loop.so")
        source.write_text(
            "typedef int (*function)(void *, void *, void *);\n"
            "int loop(function f, void *a, void *b, void *c, int n) {\n"
            "  int status = 0;\n"
            "  for (int i = 0; i < n && !status; ++i) status = f(a, b, c);\n"
            "  return status;\n}\n"
        )
        subprocess.run([compiler, "-O2", "-shared", "-fPIC", source, "-o", library], check=True)
        loop = c.CDLL(str(library)).loop
    loop.argtypes = [c.c_void_p, c.c_void_p, c.c_void_p, c.c_void_p, c.c_int]
    return loop


def launch_times(device: Device, kernel: Kernel, repeats: int) -> dict[str, float]:
    """Microseconds for one gdnrt_launch of a bound kernel, called from C, or by ctypes where
    there is no compiler. The launches of a repeat are back to back and do not wait for the
    device."""
    pools = {param.name for param in kernel.params if param.kind == "pool"}
    arrays = {n: device.array(v) for n, v in problems.make(kernel.params, _SIZES).items()}
    binding = kernel.bind(**{n: Pool(a) if n in pools else a for n, a in arrays.items()})
    if binding.workspace_bytes:
        binding.set_workspace()
    binding.launch()
    device.synchronize()
    launch, handle = kernel._runtime._lib.gdnrt_launch, binding._handle
    error, loop = _abi.Error(), native_loop()
    address = c.cast(launch, c.c_void_p)

    def launch_all() -> None:
        if loop:
            status = loop(address, handle, None, c.byref(error), _LAUNCHES)
            if status:
                raise RuntimeError(f"gdnrt_launch: {error.message.decode()}")
            return
        for _ in range(_LAUNCHES):
            launch(handle, None, c.byref(error))

    times = []
    for _ in range(repeats):
        times.append(_microseconds(launch_all) / _LAUNCHES)
        device.synchronize()
    return _spread(times)


def load(device: Device, runtime: Runtime, path: Path) -> tuple[Image, list[Kernel]]:
    """An image and a kernel of each entry that the device runs."""
    image = runtime.image(path)
    entries = [entry for entry in image.entries if image.codes(entry)]
    return image, [device.kernel(image, entry) for entry in entries]


def load_times(device: Device, runtime: Runtime, path: Path, repeats: int) -> dict[str, float]:
    """Microseconds from the file to kernels that can be bound, each time anew."""
    return _spread([_microseconds(lambda: load(device, runtime, path)) for _ in range(repeats)])


def compile_times(gdn_compile: Path, arguments: list[str], repeats: int = 3) -> dict[str, float]:
    """Microseconds of a run of gdn-compile and of ptxas, which it calls: by the clock, or of
    the processor where that is less, so that other work on the machine does not count."""
    times = []

    def spent_by_children() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    for _ in range(repeats):
        before, start = spent_by_children(), time.perf_counter()
        done = subprocess.run([gdn_compile, *arguments], text=True, capture_output=True)
        if done.returncode:
            raise RuntimeError(f"gdn-compile: {done.stderr.strip()}")
        clock = time.perf_counter() - start
        times.append(min(clock, spent_by_children() - before) * 1e6)
    return _spread(times)


def row(kind: str, what: str, times: dict[str, float], limited: bool) -> dict:
    """A row of the report; what the limit is of is the best of the repeats."""
    limit = {"limit_us": LIMITS_US[kind], "limit_by": "the contract"} if limited else {}
    return {"suite": "host", "impl": "gdn", "config": {"variant": what}} | times | limit


def failures(report: dict) -> list[str]:
    """Rows that took longer than they may."""
    return [
        f"{row['config']['variant']}: {row['us_min']:.2f} us of at most {row['limit_us']:.0f}"
        for row in report["rows"]
        if row["us_min"] > row.get("limit_us", float("inf"))
    ]


def measure(options) -> dict:
    """The report: of `options.images` on `options.device`, and of `options.compile`."""
    runtime, rows = Runtime(options.library), []
    is_cpu = options.device == "cpu"
    device = runtime.device(num_workers=0) if is_cpu else runtime.cuda()
    for path in options.images:
        loaded = load(device, runtime, path)  # the first makes the driver's context
        times = load_times(device, runtime, path, options.repeats)
        rows.append(row("load", f"load of {path.name} ({len(loaded[1])} entries)", times, True))
        for kernel in loaded[1]:
            if kernel.name.startswith("decode"):
                times = launch_times(device, kernel, options.repeats)
                what = f"launch of {path.stem}/{kernel.name}, C ABI"
                # A CPU's launch is the step itself.
                rows.append(row("launch", what, times, not is_cpu))
    for text in options.compile:
        times = compile_times(options.gdn_compile or find_tool(), text.split())
        kind = "compile of decode" if "--only=decode" in text else "compile"
        rows.append(row(kind, f"gdn-compile {text}", times, True))
    return {
        "device": device.name,
        "driver": driver_version(None),
        "date": datetime.date.today().isoformat(),
        "commit": options.commit,
        "versions": {"gdn": runtime.version},
        "ceilings": {},
        "rows": rows,
    }
