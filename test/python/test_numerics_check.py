# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Errors of prefill beside float64: by heads and types on the driver that runs PTX on the CPU
(test/PTX), and that the check finds what is wrong."""

import json

import numpy as np
import pytest

from gdn import Runtime, checks, numerics_check, numerics_tables, reference

HEADS = [(64, 64), (64, 128), (96, 192), (256, 256)]  # 128 x 128: test_gpu_prefill.py


def model(keys, values):
    return {
        "model_type": "qwen3_5_text",
        "hidden_size": 128,
        "hidden_act": "silu",
        "num_hidden_layers": 4,
        "linear_num_key_heads": 1,
        "linear_num_value_heads": 2,
        "linear_key_head_dim": keys,
        "linear_value_head_dim": values,
        "linear_conv_kernel_dim": 4,
        "rms_norm_eps": 1e-6,
    }


@pytest.fixture(scope="module")
def compiled(tool, tmp_path_factory):
    """An image with a prefill of such heads."""

    def run(keys, values, *options):
        folder = tmp_path_factory.mktemp("image")
        config, image = folder / "config.json", folder / "layer.gdnk"
        config.write_text(json.dumps(model(keys, values)))
        done = tool("gdn-compile", "--config", config, "--only=prefill", *options, "-o", image)
        assert done.returncode == 0, done.stderr
        return image

    return run


@pytest.fixture
def check_types(build_dir, on_ptx_driver, compiled, tmp_path):
    """Checks a prefill of some heads in some types."""

    def run(keys, values, layout, types):
        form = ["--layout=ready", "--outputs=core"] if layout == "ready" else ["--outputs=both"]
        options = [*form, *(f"--io={io}" for io in types), "--state=f32"]
        image = compiled(keys, values, *options, "--target=sm_90a", "--ptxas=none")
        report = tmp_path / "report.json"
        report.unlink(missing_ok=True)
        check = ["-m", "gdn.numerics_check", image, "--quick", "--output", report]
        on_ptx_driver(*check, "--library", build_dir / "lib/libgdnrt.so")
        rows = json.loads(report.read_text())["rows"]
        assert [row["io"] for row in rows] == [types[io] for io in types]
        for row in rows:
            assert row["heads"] == [keys, values] and row["layout"] == layout
            assert set(row["cases"]) == {"near_one", "realistic", "strong"}
            assert row["variants"][-1] == ("staged-v-split-4" if keys == 256 else "staged")
            assert ("staged-v-split-3" in row["variants"]) == (keys == 96)

    return run


# Each run has every size in one form, which the sizes take in turn.
IN_TURN = [
    pytest.param(layout, *heads, marks=pytest.mark.long if (i + j) % 2 else ())
    for i, heads in enumerate(HEADS)
    for j, layout in enumerate(("ready", "packed"))
]


@pytest.mark.parametrize("layout, keys, values", IN_TURN)
def test_heads_and_types(check_types, keys, values, layout):
    check_types(keys, values, layout, {"bf16": "bfloat16"})


@pytest.mark.long
@pytest.mark.parametrize("keys, values", HEADS)
@pytest.mark.parametrize("layout", ["ready", "packed"])
def test_heads_and_more_types(check_types, keys, values, layout):
    check_types(keys, values, layout, {"bf16": "bfloat16", "f16": "float16"})


@pytest.fixture
def kernel(build_dir, compiled):
    options = ["--io=bf16", "--layout=ready", "--outputs=core", "--target=native"]
    options += ["--precision=mixed-io", "--chunk-from=1"]
    runtime = Runtime(build_dir / "lib/libgdnrt.so")
    device = runtime.device(num_workers=1)
    image = runtime.image(compiled(32, 48, *options))
    return device, device.kernel(image, "prefill"), reference.Layer.of(image.attributes("prefill"))


@pytest.fixture
def doubled(build_dir, tool, tmp_path):
    """A prefill whose strengths reach 2, with operands in the precision that is asked for."""

    def compiled(layout):
        sizes = {"num_hidden_layers": 1, "linear_key_head_dim": 32, "linear_value_head_dim": 48}
        config, image = tmp_path / "config.json", tmp_path / "layer.gdnk"
        fields = model(32, 48) | sizes | {"model_type": "olmo_hybrid"}
        config.write_text(json.dumps(fields | {"linear_allow_neg_eigval": True}))
        form = ["--layout=ready", "--outputs=core"] if layout == "ready" else ["--outputs=both"]
        options = [*form, "--io=bf16", "--target=native", "--precision=mixed-io", "--chunk-from=1"]
        command = ["gdn-compile", "--config", config, "--only=prefill", *options, "-o", image]
        done = tool(*command)
        assert done.returncode == 0, done.stderr
        runtime = Runtime(build_dir / "lib/libgdnrt.so")
        device = runtime.device(num_workers=1)
        image = runtime.image(image)
        layer = reference.Layer.of(image.attributes("prefill"))
        return device, device.kernel(image, "prefill"), layer

    return compiled


@pytest.mark.parametrize(
    "tokens", [2048, pytest.param(8192, marks=pytest.mark.long)], ids=["short", "long"]
)
@pytest.mark.parametrize("layout", ["ready", "packed"])
def test_tokens_that_repeat_with_doubled_beta(doubled, monkeypatch, layout, tokens):
    """What repeats turns the state on and on: errors of a turn must not add up."""
    monkeypatch.setattr(numerics_check, "REPEATED_LENGTHS", (tokens,))
    device, prefill, layer = doubled(layout)
    assert layer.double_beta
    cases = numerics_check.cases_of(prefill, layer, quick=False)
    repeats = cases[-len(numerics_check.REPEATS) :]
    assert repeats == numerics_check.REPEATS
    periods = repeats if tokens > 4096 else repeats[:2]
    (row,) = numerics_check.check_kernels(device, [prefill], layer, periods)
    assert row["failures"] == []
    # Rounded keys give 1e-3; keys of bf16 are not of length 1, so that states grow with the text.
    most = 2e-4 if tokens < 4096 else 1e-3
    assert all(state < most for _, state in row["cases"].values())


@pytest.fixture
def in_parts(build_dir, ptx_driver, tool, tmp_path):
    """A prefill in stages whose operands have two parts, of a CPU or on the PTX machine."""

    def compiled(io, layout, target):
        fields = model(32, 48) | {"num_hidden_layers": 1}
        fields |= {"linear_key_head_dim": 32, "linear_value_head_dim": 48}
        if io == "bf16":
            fields |= {"model_type": "olmo_hybrid", "linear_allow_neg_eigval": True}
        config, image = tmp_path / "config.json", tmp_path / "layer.gdnk"
        config.write_text(json.dumps(fields))
        form = ["--layout=ready", "--outputs=core"] if layout == "ready" else []
        staged = ["--precision=mixed", "--chunk-stages=staged", "--chunk-from=1"]
        options = [*form, f"--io={io}", f"--target={target}", "--ptxas=none"]
        if target == "native":
            options = [*options[:-1], *staged]
        done = tool("gdn-compile", "--config", config, "--only=prefill", *options, "-o", image)
        assert done.returncode == 0, done.stderr
        runtime = Runtime(build_dir / "lib/libgdnrt.so")
        driver = ptx_driver / "libcuda.so.1"
        device = (
            runtime.device(num_workers=1) if target == "native" else runtime.cuda(driver=driver)
        )
        image = runtime.image(image)
        layer = reference.Layer.of(image.attributes("prefill"))
        return device, device.kernel(image, "prefill"), layer

    return compiled


@pytest.mark.parametrize("target", ["native", "sm_80"])
@pytest.mark.parametrize("layout", ["ready", "packed"])
@pytest.mark.parametrize("io", ["bf16", "f32"])
def test_operands_in_two_parts(in_parts, monkeypatch, io, layout, target):
    """Strengths up to 2, and inputs of f32: what is rounded to one part would be off by 1e-3."""
    monkeypatch.setattr(numerics_check, "REPEATED_LENGTHS", (2048 if target == "native" else 256,))
    device, prefill, layer = in_parts(io, layout, target)
    assert {"staged", "rows"} < {variant.name for variant in prefill.variants}
    cases = numerics_check.cases_of(prefill, layer, quick=False)
    if target != "native":
        cases = tuple(case for case in cases if case.name in ("near_one", "same_keys", "every_2"))
    (row,) = numerics_check.check_kernels(device, [prefill], layer, cases, (70, 1, 0, 33))
    assert row["failures"] == []
    # Values are rounded to f16 where packed projections are not f32.
    most = 1e-5 if io == "f32" else 5e-4
    assert all(state < most for _, state in row["cases"].values())
    # Whoever asks for f32 and gets one part fails here.
    assert io == "bf16" or all(output < 1e-5 for output, _ in row["cases"].values())


def test_all_cases_of_a_sound_kernel(kernel):
    device, prefill, layer = kernel
    (row,) = numerics_check.check_kernels(device, [prefill], layer, numerics_check.CASES)
    assert row["failures"] == []
    assert set(row["cases"]) == {case.name for case in numerics_check.CASES}
    for output, state in row["cases"].values():
        assert 1e-4 < output < 3e-3 and 1e-6 < state < 2e-3


@pytest.mark.parametrize("name", ["core", "state_pool"])
def test_errors_are_found(kernel, monkeypatch, name):
    device, prefill, layer = kernel
    run = checks.run

    def wrong(*arguments):
        after = run(*arguments)
        after[name] = (after[name].astype(np.float64) * 1.006).astype(after[name].dtype)
        return after

    monkeypatch.setattr(checks, "run", wrong)
    cases = numerics_check.CASES[:1]
    (row,) = numerics_check.check_kernels(device, [prefill], layer, cases)
    assert len(row["failures"]) == len(row["variants"])
    assert all(f": {name}: error 6" in failure for failure in row["failures"])


def test_a_result_that_is_not_finite_is_found(kernel, monkeypatch):
    device, prefill, layer = kernel
    run = checks.run

    def wrong(*arguments):
        after = run(*arguments)
        after["core"][5] = np.inf
        return after

    monkeypatch.setattr(checks, "run", wrong)
    large = tuple(case for case in numerics_check.CASES if case.large)
    (row,) = numerics_check.check_kernels(device, [prefill], layer, large)
    assert "error inf" in row["failures"][0]


def test_the_page_has_a_line_for_each_entry():
    row = {"heads": [64, 128], "layout": "ready", "io": "bfloat16", "state": "float32"}
    row |= {"target": "sm_90a", "variants": ["staged"], "failures": []}
    cases = {"near_one": [2e-3, 4e-4], "strong": [1.9e-3, 3e-4]}
    fewer = {"near_one": [2.2e-3, 5e-4]}
    rows = [row | {"cases": cases}, row | {"layout": "packed", "cases": fewer}]
    report = {"device": "a GPU", "driver": "1.2", "date": "2026-01-02", "rows": rows}
    text = numerics_tables.markdown(report)
    outputs, states = text.split("## States")
    assert "| 64 x 128 | ready | bf16 | f32 | sm_90a | 2.0e-03 | 1.9e-03 |" in outputs
    assert "| 64 x 128 | packed | bf16 | f32 | sm_90a | 5.0e-04 |  |" in states
    assert "2 entries, 2 variants, 0 errors beyond the bounds" in text
