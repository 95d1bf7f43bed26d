# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The check of far slots and tokens, on the CPU and not so far."""

import numpy as np
import pytest

from gdn import checks, far_check, problems
from gdn.problems import Sizes
from gdn.runtime import Runtime


@pytest.fixture(scope="module")
def kernels(tool, build_dir, tmp_path_factory):
    image = tmp_path_factory.mktemp("far") / "ready.gdnk"
    options = ["--preset=qwen3.5-0.8b", "--layout=ready", "--outputs=core", "--state=f32"]
    done = tool("gdn-compile", *options, "--io=f32", "--target=x86-64-v3", "-o", image)
    assert done.returncode == 0, done.stderr
    runtime = Runtime(build_dir / "lib/libgdnrt.so")
    device, opened = runtime.device(), runtime.image(image)
    return device, {e: device.kernel(opened, e) for e in opened.entries}


@pytest.mark.parametrize(
    "entry, tokens", [("decode", False), ("prefill", False), ("prefill", True)]
)
def test_calls_that_are_moved_give_the_same(kernels, entry, tokens):
    device, by_name = kernels
    findings = checks.Findings()
    sizes = Sizes(1, 2, (5, 0, 70) if entry == "prefill" else (1,) * 3, seed=3)
    far_check.check(device, by_name[entry], sizes, findings, beyond=1 << 17, with_tokens=tokens)
    assert findings.failures == []


@pytest.mark.parametrize("mode", ["lazy", "slots", "buffer"])
def test_tokens_that_can_be_taken_back(tool, build_dir, tmp_path, capsys, mode):
    """Their entries are found by name; tables of slots are moved as well."""
    image = tmp_path / "verify.gdnk"
    options = ["--preset=qwen3.5-0.8b", f"--verify={mode}", "--state=f32", "--io=f32"]
    only = "verify" if mode == "slots" else "verify,commit"
    done = tool("gdn-compile", *options, f"--only={only}", "--target=x86-64-v3", "-o", image)
    assert done.returncode == 0, done.stderr
    library = ["--library", str(build_dir / "lib/libgdnrt.so"), "--device", "cpu"]
    far = ["--beyond", str(1 << 18), "--heads", "1", "2"]
    assert far_check.main([str(image), *library, *far]) == 0
    printed = capsys.readouterr().out
    assert all(f"{entry}  8 slots" in printed for entry in only.split(","))
    # A table that stays where it was names slots that hold NaN.
    runtime = Runtime(build_dir / "lib/libgdnrt.so")
    kernel = runtime.device().kernel(runtime.image(image), "verify")
    near = problems.make(kernel.params, Sizes(1, 2, (3, 1, 4), seed=5))
    moved = far_check.moved(kernel, near, 8, 0)
    if mode != "lazy":
        assert (moved["token_slots"] == near["token_slots"] + 8).all()


def test_errors_are_of_what_was_written():
    """Slots of nobody hold NaN before and after; a NaN elsewhere is an error."""
    want = np.array([1.0, np.nan, 2.0], np.float32)
    error = far_check._error_where_written(np.array([1.0, np.nan, 2.1], np.float32), want)
    assert error == pytest.approx(0.1 / np.sqrt(5), rel=1e-5)
    for got in ([1.0, 0.0, 2.0], [np.nan, np.nan, 2.0]):
        assert far_check._error_where_written(np.array(got, np.float32), want) == float("inf")


def test_what_lands_elsewhere_is_found(kernels, monkeypatch):
    """A kernel that wraps around writes a slot at the beginning."""
    device, by_name = kernels
    run = checks.run

    def wrapped(device, kernel, arguments):
        written = run(device, kernel, arguments)
        if len(arguments["state_pool"]) > 10:
            written["state_pool"][1] = written["state_pool"][-5]  # slot 1, moved
        return written

    monkeypatch.setattr(checks, "run", wrapped)
    findings = checks.Findings()
    far_check.check(device, by_name["decode"], Sizes(1, 2, (1,) * 3, seed=3), findings, 1 << 20)
    assert any("a slot before has changed" in failure for failure in findings.failures)


def test_the_call_is_moved(kernels):
    _, by_name = kernels
    kernel = by_name["prefill"]
    near = problems.make(kernel.params, Sizes(1, 2, (5, 3), seed=3))
    far = far_check.moved(kernel, near, 7, 11)
    assert list(far["slots"]) == [-1, *(near["slots"] + 7)]
    assert list(far["cu_seqlens"]) == [0, *(near["cu_seqlens"] + 11)]
    assert np.isnan(far["q"][:11]).all() and np.array_equal(far["q"][11:], near["q"])
    assert len(far["state_pool"]) == len(near["state_pool"]) + 7
