# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prefill in chunks with a decay per channel and rounded operands, on the CPU, which rounds as
GPUs do: kinds of gates, keys like each other, lengths around those of chunks and blocks."""

import json

import ml_dtypes
import numpy as np
import pytest

from gdn import Runtime, checks, problems, reference
from gdn.problems import Sizes

pytestmark = pytest.mark.once(compiler="cpu")

LENGTHS = "lens=100:1:64:257:0:33:16:15:17:700"
GATES = ("realistic", "near_one", "strong", "very_strong")


@pytest.fixture(scope="module")
def image(tool, tmp_path_factory):
    image = tmp_path_factory.mktemp("channels") / "kda.gdnk"
    options = ["--preset=kimi-linear-48b-a3b", "--io=bf16", "--state=f32", "--only=prefill"]
    options += ["--layout=ready", "--outputs=core", "--target=x86-64-v3"]
    chunks = ["--precision=mixed", "--chunk-stages=staged", "--chunk-from=1"]
    done = tool("gdn-compile", *options, *chunks, "-o", image)
    assert done.returncode == 0, done.stderr
    return image


def errors_of(tool, image, variant: str, generate: str) -> dict[str, float]:
    arguments = ["--entry=prefill", f"--variant={variant}", f"--generate={generate}"]
    done = tool("gdn-run", image, *arguments, "--check", "--json")
    assert done.returncode in (0, 2), done.stderr
    found = json.loads(done.stdout)["comparisons"]
    return {one["tensor"]: one["relative_rmse"] for one in found}


@pytest.mark.parametrize("gates", GATES)
@pytest.mark.parametrize("correlation", [0, 0.9])
@pytest.mark.parametrize("variant", ["staged", "rows"])
def test_errors_are_within_the_contract(tool, image, gates, correlation, variant):
    generate = f"{LENGTHS},Hk=2,Hv=4,skip=1,gates={gates},correlation={correlation}"
    errors = errors_of(tool, image, variant, generate)
    assert errors["core"] < 3e-3 and errors["state_pool"] < 2e-3


def test_one_key_again_and_again(tool, image):
    generate = "lens=1000,Hk=2,Hv=2,gates=near_one,correlation=1"
    errors = errors_of(tool, image, "staged", generate)
    assert errors["core"] < 4e-3 and errors["state_pool"] < 4e-3


def log_decays(kind: str, rng, tokens: int, heads: int, channels: int) -> np.ndarray:
    """Those of peers' benchmarks, of bounded gates; and what is hard for one form or another."""
    if kind == "none":
        return np.zeros((tokens, heads, channels))
    if kind == "down to -50":
        return -50 * rng.random((tokens, heads, channels)) ** 2
    if kind == "resets":
        # Eight tokens wipe one half of the channels, the next eight the other.
        wiped = np.arange(tokens)[:, None] // 8 % 2 == np.arange(channels) // (channels // 2)
        return np.repeat(np.where(wiped, -5.0, -1e-3)[:, None], heads, axis=1)
    a = rng.standard_normal((tokens, heads, channels)) + rng.random((heads, channels))
    bounded = -5 / (1 + np.exp(-np.exp(rng.random((heads, 1))) * a))
    if kind == "slow channel":
        bounded[:, np.arange(heads), rng.integers(channels, size=heads)] = -0.005
    return bounded


@pytest.mark.parametrize("correlation", [0, 0.9])
@pytest.mark.parametrize("kind", ["none", "bounded", "slow channel", "resets", "down to -50"])
def test_gates_of_benchmarks(image, build_dir, kind, correlation):
    """Keys of a head have their first direction in common."""
    runtime = Runtime(build_dir / "lib/libgdnrt.so")
    device, loaded = runtime.device(), runtime.image(image)
    kernel = device.kernel(loaded, "prefill")
    kernel.variant = "staged"
    arguments = problems.make(kernel.params, Sizes(2, 2, (700, 1, 0, 65, 130), seed=3))
    rng, shape = np.random.default_rng(4), arguments["k"].shape
    keys = np.sqrt(1 - correlation) * rng.standard_normal(shape)
    keys += np.sqrt(correlation) * rng.standard_normal(shape[1:])
    keys /= np.linalg.norm(keys, axis=-1, keepdims=True)
    arguments["k"] = keys.astype(ml_dtypes.bfloat16)
    decays = log_decays(kind, rng, *shape)
    arguments["log_decay"] = decays.astype(arguments["log_decay"].dtype)
    after = checks.run(device, kernel, arguments)
    want = reference.evaluate(reference.Layer.of(loaded.attributes("prefill")), arguments)
    used = arguments["slots"]
    assert checks.relative_error(after["core"].astype(float), want["core"]) < 3e-3
    got, exact = (x["state_pool"][used].astype(float) for x in (after, want))
    assert checks.relative_error(got, exact) < 2e-3
