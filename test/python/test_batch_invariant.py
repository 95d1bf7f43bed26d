# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Batch invariance on a CPU, whose variants "segments" and "staged" round otherwise than one
pass: which bits a row gets no longer depends on the batch, and a check that sees it."""

import pytest

from gdn import GdnError, Pool, Runtime, checks, problems
from gdn.problems import Sizes

# Alone, the second row leaves a worker idle and is cut into segments.
SIZES = Sizes(1, 2, (20, 400, 3), seed=4, decay="near_one")
LAYER = ["--preset=qwen3.5-0.8b", "--layout=ready", "--outputs=core", "--io=bf16", "--state=f32"]
SEGMENTS = ["--segments=3", "--segments-from=64"]


@pytest.fixture(scope="module")
def kernel_of(build_dir, tool, tmp_path_factory):
    runtime = Runtime(build_dir / "lib/libgdnrt.so")
    folder = tmp_path_factory.mktemp("images")

    def make(name: str, *options: str):
        path = folder / f"{name}.gdnk"
        arguments = [*LAYER, *SEGMENTS, *options, "--only=prefill", "--target=x86-64-v3"]
        done = tool("gdn-compile", *arguments, "-o", path)
        assert done.returncode == 0, done.stderr
        device = runtime.device(num_workers=2)
        return device, device.kernel(runtime.image(path), "prefill")

    return make


def failures(device, kernel) -> list[str]:
    findings = checks.Findings()
    checks.check_any_batch(device, kernel, SIZES, findings)
    return findings.failures


def test_segments_are_not_taken(kernel_of):
    device, kernel = kernel_of("segments")
    assert [(v.name, v.bits) for v in kernel.variants] == [
        ("segments", "segments"),
        ("rows", "rows"),
    ]
    assert failures(device, kernel) == []
    assert kernel.batch_invariant is False


def test_the_check_sees_what_depends_on_the_batch(kernel_of, monkeypatch):
    device, kernel = kernel_of("dependent")
    monkeypatch.setattr("gdn.runtime.Binding.set_batch_invariant", lambda self: None)
    found = failures(device, kernel)
    assert any("row 1 differs in a launch of [1]" in failure for failure in found)


def test_split_is_taken_whatever_the_workspace(kernel_of):
    device, kernel = kernel_of("staged", "--chunk-stages=staged", "--precision=mixed-io")
    bits = {v.name: v.bits for v in kernel.variants}
    assert bits == {"staged": "staged", "segments": "segments", "rows": "rows"}
    assert failures(device, kernel) == []
    arguments = problems.make(kernel.params, SIZES)
    kernel.batch_invariant = True
    binding = kernel.bind(**{n: Pool(v) if n == "state_pool" else v for n, v in arguments.items()})
    with pytest.raises(GdnError, match=r"expected a workspace of at least .* variant staged"):
        binding.launch()
    kernel.batch_invariant = False
