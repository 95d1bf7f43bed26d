# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prefill in chunks with a decay per channel and rounded operands, on the CPU, which rounds as
GPUs do: kinds of gates, keys like each other, lengths around those of chunks and blocks."""

import json

import pytest

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
