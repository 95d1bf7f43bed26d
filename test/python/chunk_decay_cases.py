# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The ops of a chunk with a decay per channel against float64: launches the kernel `chunk` of a
program of PTX on the driver that the system finds. `python chunk_decay_cases.py PTX [narrow]`
prints the largest errors, over the largest number where that is above 1; `narrow`: of a kernel that
takes log decays of f16 and what rows of queries and keys are multiplied with."""

import ctypes as c
import json
import sys
from pathlib import Path

import ml_dtypes
import numpy as np

from gdn.cuda_driver import Driver

TOKENS, CHANNELS, SCALE = 32, 128, 128**-0.5


class Launch(c.Structure):
    _fields_ = [
        *((axis, c.c_uint) for axis in ("grid_x", "grid_y", "grid_z")),
        *((axis, c.c_uint) for axis in ("block_x", "block_y", "block_z")),
        ("shared_bytes", c.c_uint),
        ("stream", c.c_void_p),
        ("attributes", c.c_void_p),
        ("num_attributes", c.c_uint),
    ]


class Kernel:
    def __init__(self, ptx: bytes):
        self.driver = Driver()
        module, self.function = c.c_void_p(), c.c_void_p()
        self.call("cuModuleLoadDataEx", c.byref(module), ptx, 0, None, None)
        self.call("cuModuleGetFunction", c.byref(self.function), module, b"chunk")

    def call(self, name: str, *arguments) -> None:
        self.driver._call(name, *arguments)

    def run(self, arrays: list[np.ndarray]) -> None:
        """A parameter is an address, then sizes, then strides; symbols follow."""
        places, words = [], []
        for array in arrays:
            place = c.c_uint64()
            self.call("cuMemAlloc_v2", c.byref(place), c.c_size_t(array.nbytes))
            self.copy("cuMemcpyHtoDAsync_v2", place, array.ctypes.data_as(c.c_void_p), array)
            strides = [stride // array.itemsize for stride in array.strides]
            words += [place.value, *array.shape, *strides]
            places.append(place)
        words = (c.c_uint64 * (len(words) + 8))(*words, *[1] * 8)
        given = (c.c_void_p * 1)(c.addressof(words))
        launch = Launch(1, 1, 1, 128, 1, 1)
        self.call("cuLaunchKernelEx", c.byref(launch), self.function, given, None)
        for place, array in zip(places, arrays, strict=True):
            self.copy("cuMemcpyDtoHAsync_v2", array.ctypes.data_as(c.c_void_p), place, array)
        self.driver.synchronize()
        for place in places:
            self.call("cuMemFree_v2", place)

    def copy(self, name: str, to, source, array: np.ndarray) -> None:
        self.call(name, to, source, c.c_size_t(array.nbytes), None)


def log_decays(kind: str, rng) -> np.ndarray:
    shape = TOKENS, CHANNELS
    if kind == "none":
        return np.zeros(shape)
    if kind == "resets":
        return np.where(rng.random(shape) < 0.1, -50, -1e-3)
    if kind == "clears":  # as at the start of a document: decays of 0
        return np.where(
            (rng.random(shape) < 0.1) | (np.arange(TOKENS) == 20)[:, None], -np.inf, -1e-3
        )
    if kind == "all":
        return np.full(shape, -50.0)
    return -np.exp(rng.standard_normal(shape) + {"slow": -6, "fast": 0}[kind])


def expected(query, key, log, beta) -> dict[str, np.ndarray]:
    query, key, log, beta = (array.astype(np.float64) for array in (query, key, log, beta))
    behind = np.array([np.exp(log[i + 1 :].sum(0)) for i in range(TOKENS)])
    scores, lower = np.zeros((2, TOKENS, TOKENS))
    for i in range(TOKENS):
        for j in range(i + 1):
            faded = key[j] * np.exp(log[j + 1 : i + 1].sum(0))
            scores[i, j] = SCALE * (query[i] @ faded)
            lower[i, j] = beta[i] * (key[i] @ faded) * (j < i)
    return {
        "from_query": query * np.exp(np.cumsum(log, 0)),
        "from_key": key * np.exp(np.cumsum(log, 0)),
        "to_end": key * behind,
        "inverse": np.linalg.inv(np.eye(TOKENS) + lower) * beta,
        "scores": scores,
        "end": np.exp(log.sum(0)),
    }


def to_end(memory: np.ndarray) -> np.ndarray:
    """Panels 0 and 2 of four, whose pieces of 16 bytes are swizzled."""
    panels = memory.view(np.float16).reshape(4, TOKENS, 8, 8)[::2]
    rows = np.arange(TOKENS)[:, None]
    return panels[:, rows, np.arange(8) ^ rows % 8].swapaxes(0, 1).reshape(TOKENS, CHANNELS)


def narrowed(log: np.ndarray) -> np.ndarray:
    return np.maximum(log * (256 * np.log2(np.e)), -65504).astype(np.float16)


def errors(kernel: Kernel, kind: str, narrow: bool) -> dict[str, float]:
    rng = np.random.default_rng(3)
    query, key = rng.standard_normal((2, TOKENS, CHANNELS))
    key /= np.linalg.norm(key, axis=1, keepdims=True)
    query, key = query.astype(ml_dtypes.bfloat16), key.astype(ml_dtypes.bfloat16)
    log = log_decays(kind, rng).astype(np.float32)
    beta = rng.random(TOKENS, np.float32)
    from_query, from_key = np.full((2, TOKENS, CHANNELS), np.nan, np.float16)
    memory = np.full((TOKENS, CHANNELS), np.nan, np.float32)
    products = np.full((TOKENS, 2 * TOKENS), np.nan, np.float16)
    end = np.full(CHANNELS, np.nan, np.float32)
    given, rows = [query, key, log], (query, key)
    if narrow:
        norms = rng.uniform(0.5, 1, (2, TOKENS)).astype(np.float32)
        given = [query, key, narrowed(log), norms]
        rows = [x.astype(float) * norm[:, None] for x, norm in zip(rows, norms, strict=True)]
    kernel.run([*given, beta, from_query, from_key, memory, products, end])
    got = {"from_query": from_query, "from_key": from_key, "to_end": to_end(memory), "end": end}
    got |= {"inverse": products[:, :TOKENS], "scores": products[:, TOKENS:]}
    want = expected(*rows, log, beta)
    return {
        name: float(np.abs(got[name] - want[name]).max() / max(1, np.abs(want[name]).max()))
        for name in want
    }


def main() -> None:
    kernel = Kernel(Path(sys.argv[1]).read_bytes() + b"\0")
    kinds = ["none", "slow", "fast", "resets", "clears", "all"]
    narrow = "narrow" in sys.argv[2:]
    print(json.dumps({kind: errors(kernel, kind, narrow) for kind in kinds}))


if __name__ == "__main__":
    main()
