# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Entries for tokens that may be refused: compiled f32 code against the float64
reference in NumPy, on made-up calls of every kind."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from gdn import Pool, Runtime, checks, problems, reference, verify_checks

pytestmark = pytest.mark.once("test/data/entries/*.mlir", compiler="cpu")

CONFIG = (
    '{"model_type": "qwen3_5_text", "hidden_size": 128, "hidden_act": "silu",'
    ' "num_hidden_layers": 4, "linear_num_key_heads": 2, "linear_num_value_heads": 4,'
    ' "linear_key_head_dim": 32, "linear_value_head_dim": 64, "linear_conv_kernel_dim": 4,'
    ' "rms_norm_eps": 1e-6}'
)

SIZES = {
    "ragged": problems.Sizes(2, 4, (4, 0, 1, 3, 2), seed=1),
    "long": problems.Sizes(1, 3, (8, 1, 8), seed=2, decay="strong"),
    "past the places": problems.Sizes(2, 2, (5, 9, 2), seed=3, steps=3, accepted=(3, 1, 2)),
    "skipped": problems.Sizes(2, 4, (2, 3, 2, 1, 4), seed=4, skipped={1: 0, 2: -1, 4: 9999}),
    "no counts": problems.Sizes(2, 4, (2, 3, 4), seed=5, accepted=(-1, 5, 2**31 - 1)),
}
KINDS = {
    "slots": ["verify"],
    "tree": ["verify"],
    "buffer": ["verify", "commit"],
    "lazy": ["verify", "commit"],
    "deferred": ["verify", "commit"],
}
OPTIONS = {"deferred": ("--verify=lazy", "--defer-writes=9")}
ENTRIES = [(kind, entry) for kind, entries in KINDS.items() for entry in entries]


@pytest.fixture(scope="module")
def kernels(build_dir, tool, tmp_path_factory):
    """Kernel and layer of each entry, by kind, and their device."""
    runtime, found = Runtime(build_dir / "lib/libgdnrt.so"), {}
    device = found["device"] = runtime.device()
    for kind, entries in KINDS.items():
        folder = tmp_path_factory.mktemp(kind)
        (folder / "config.json").write_text(CONFIG)
        options = ["--io=f32", "--outputs=both", "--target=native"]
        options += OPTIONS.get(kind, [f"--verify={kind}"])
        path = folder / "layer.gdnk"
        done = tool("gdn-compile", "--config", folder / "config.json", *options, "-o", path)
        assert done.returncode == 0, done.stderr
        image = runtime.image(path)
        for entry in entries:
            layer = reference.Layer.of(image.attributes(entry))
            found[kind, entry] = device.kernel(image, entry), layer
    return found


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("kind, entry", ENTRIES)
def test_agrees_with_the_reference(kernels, kind, entry, sizes):
    kernel, layer = kernels[kind, entry]
    arguments = problems.make(kernel.params, SIZES[sizes])
    want = reference.evaluate(layer, arguments)
    pools = [p.name for p in kernel.params if p.kind == "pool"]
    before = {name: arguments[name].copy() for name in pools}
    kernel(**{n: Pool(v) if n in pools else v for n, v in arguments.items()})
    written = [p.name for p in kernel.params if p.access == "write"]
    for name in [*pools, *written]:
        got = arguments[name].astype(np.float64)
        # What nobody looks at holds NaN on both sides.
        assert np.array_equal(np.isnan(got), np.isnan(want[name])), name
        got, exact = np.nan_to_num(got), np.nan_to_num(want[name])
        error = np.sqrt(((got - exact) ** 2).sum() / max((exact**2).sum(), 1e-30))
        assert error < 1e-5, name
        if name in pools:
            kept = np.array(want[name] == before[name])
            assert np.array_equal(arguments[name][kept], before[name][kept]), name


def test_agrees_with_a_rule_alone(build_dir, tool, tmp_path):
    """Verify on ready inputs is a verify, not a commit: it has no slots of its own."""
    source, path = Path(__file__).parents[1] / "data/entries/verify_rule.mlir", tmp_path / "r.gdnk"
    done = tool("gdn-compile", source, "--target=native", "-o", path)
    assert done.returncode == 0, done.stderr
    runtime = Runtime(build_dir / "lib/libgdnrt.so")
    image, device = runtime.image(path), runtime.device()
    kernel, layer = device.kernel(image, "verify"), reference.Layer.of(image.attributes("verify"))
    findings = checks.Findings()
    for sizes in [*verify_checks.cases(quick=True), *SIZES.values()]:
        verify_checks.check_case(device, kernel, layer, sizes, findings)
    assert not findings.failures
    assert 0 < findings.error_state < 1e-6


@pytest.mark.parametrize("kind, entry", ENTRIES)
def test_device_check(kernels, kind, entry):
    """The checks of a device find nothing, and find what is wrong."""
    (kernel, layer), device = kernels[kind, entry], kernels["device"]
    findings = checks.Findings()
    for sizes in verify_checks.cases(quick=True):
        verify_checks.check_case(device, kernel, layer, sizes, findings)
    assert not findings.failures
    assert findings.error_state < 1e-6
    other = dataclasses.replace(layer, double_beta=True)
    if entry == "verify":
        verify_checks.check_case(device, kernel, other, SIZES["ragged"], findings)
        assert findings.failures


@pytest.mark.parametrize("kind", ["slots", "lazy", "deferred"])
def test_counts_that_are_none_skip_their_rows(kernels, kind):
    kernel, layer = kernels[kind, "verify"]
    arguments = problems.make(kernel.params, SIZES["no counts"])
    want = reference.evaluate(layer, arguments)
    assert not want["core"].any()
    for name, values in want.items():
        if name.endswith("pool") or name.startswith("pending"):
            before = arguments[name].astype(np.float64)
            assert np.array_equal(values, before, equal_nan=True), name


@pytest.mark.parametrize("kind", ["lazy", "deferred"])
def test_a_commit_changes_no_step(kernels, kind):
    """In float64: a step is a commit of what is accepted, and a step without any."""
    verify, layer = kernels[kind, "verify"]
    whole = problems.make(verify.params, SIZES["ragged"])
    commit, commit_layer = kernels[kind, "commit"]
    names = {p.name for p in commit.params}
    committed = {n: v for n, v in whole.items() if n in names}
    # A row without tokens keeps what is pending.
    has_tokens = np.diff(whole["cu_seqlens"]) > 0
    committed["num_accepted"] = np.where(has_tokens, whole["num_accepted"], 0)
    committed["slots"] = np.where(has_tokens, whole["slots"], -1)
    parts = whole | reference.evaluate(commit_layer, committed)
    parts["num_accepted"] = whole["num_accepted"] - committed["num_accepted"]
    want, got = reference.evaluate(layer, whole), reference.evaluate(layer, parts)
    for name in ("core", "out", *(["state_pool"] if kind == "lazy" else [])):
        np.testing.assert_allclose(got[name], want[name], rtol=1e-12, atol=1e-12)
