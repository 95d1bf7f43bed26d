# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What measurements need of the CUDA driver beside the runtime: streams, events
and graphs, through ctypes. Not needed to run kernels."""

import ctypes as c
from collections.abc import Callable
from contextlib import contextmanager

import numpy as np

LIBRARY = "libcuda.so.1"
_NON_BLOCKING = 1
_CAPTURE_RELAXED = 2


class Driver:
    """The driver with the primary context of a GPU, current on this thread."""

    def __init__(self, ordinal: int = 0, library: str = LIBRARY):
        self._lib = c.CDLL(library)
        self._call("cuInit", 0)
        self._device = c.c_int()
        self._call("cuDeviceGet", c.byref(self._device), ordinal)
        context = c.c_void_p()
        self._call("cuDevicePrimaryCtxRetain", c.byref(context), self._device)
        self._call("cuCtxSetCurrent", context)
        self.stream = c.c_void_p()
        self._call("cuStreamCreate", c.byref(self.stream), _NON_BLOCKING)

    def _call(self, name: str, *arguments) -> None:
        result = getattr(self._lib, name)(*arguments)
        if result != 0:
            text = c.c_char_p()
            self._lib.cuGetErrorName(result, c.byref(text))
            raise RuntimeError(f"{name}: {(text.value or b'error').decode()} ({result})")

    @property
    def version(self) -> str:
        """The CUDA release of the driver, such as 13.0."""
        value = c.c_int()
        self._call("cuDriverGetVersion", c.byref(value))
        return f"{value.value // 1000}.{value.value % 1000 // 10}"

    @property
    def device_name(self) -> str:
        name = c.create_string_buffer(256)
        self._call("cuDeviceGetName", name, 256, self._device)
        return name.value.decode()

    def synchronize(self) -> None:
        self._call("cuCtxSynchronize")

    def capture(self, record: Callable[[int], None]) -> "Graph":
        """A graph of what `record` launches on the stream whose address it is given."""
        self._call("cuStreamBeginCapture_v2", self.stream, _CAPTURE_RELAXED)
        graph = c.c_void_p()
        try:
            record(self.stream.value)
        finally:
            self._call("cuStreamEndCapture", self.stream, c.byref(graph))
        return Graph(self, graph)

    @contextmanager
    def event(self):
        event = c.c_void_p()
        self._call("cuEventCreate", c.byref(event), 0)
        try:
            yield event
        finally:
            self._call("cuEventDestroy_v2", event)


class Graph:
    """A captured graph, ready to be replayed."""

    def __init__(self, driver: Driver, graph: c.c_void_p):
        self._driver = driver
        self._executable = c.c_void_p()
        driver._call(
            "cuGraphInstantiateWithFlags", c.byref(self._executable), graph, c.c_ulonglong(0)
        )
        driver._call("cuGraphDestroy", graph)

    def __del__(self):
        if getattr(self, "_executable", None):
            self._driver._call("cuGraphExecDestroy", self._executable)

    def launch(self) -> None:
        self._driver._call("cuGraphLaunch", self._executable, self._driver.stream)

    def milliseconds(self) -> float:
        """The time of one replay on the GPU."""
        driver, elapsed = self._driver, c.c_float()
        with driver.event() as start, driver.event() as end:
            driver._call("cuEventRecord", start, driver.stream)
            self.launch()
            driver._call("cuEventRecord", end, driver.stream)
            driver._call("cuEventSynchronize", end)
            driver._call("cuEventElapsedTime", c.byref(elapsed), start, end)
        return elapsed.value


def time_launches(
    driver: Driver, launches: list[Callable[[int], None]], repeats: int = 15
) -> dict[str, float]:
    """Microseconds of a launch: a graph of all `launches` back to back, replayed
    `repeats` times after two warm-ups; the median, fastest and slowest replay."""

    def record(stream: int) -> None:
        for launch in launches:
            launch(stream)

    graph = driver.capture(record)
    for _ in range(2):
        graph.milliseconds()
    times = np.array([graph.milliseconds() for _ in range(repeats)]) * 1e3 / len(launches)
    return {
        "us": float(np.median(times)),
        "us_min": float(times.min()),
        "us_max": float(times.max()),
    }
