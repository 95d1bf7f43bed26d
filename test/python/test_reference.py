# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The float64 reference in NumPy against compiled f32 entries, which the compiler's
own evaluator checks too, for every layout and option that it knows."""

from pathlib import Path

import numpy as np
import pytest

from gdn import Pool, Runtime, problems, reference


@pytest.fixture(scope="module")
def runtime(build_dir):
    return Runtime(build_dir / "lib/libgdnrt.so")


CONFIG = (
    '{"model_type": "%s", "hidden_size": 128, "hidden_act": "silu", "num_hidden_layers": 4,'
    ' "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 32,'
    ' "linear_value_head_dim": 64, "linear_conv_kernel_dim": 4, "rms_norm_eps": 1e-6}'
)

CASES = {
    "interleaved": ("qwen3_next", []),
    "flat": ("qwen3_5_text", ["--write-slots"]),
    "split": ("qwen3_5_text", ["--layout=split", "--has-initial"]),
    "separate": ("qwen3_5_text", ["--layout=separate"]),
}


def relative_error(got: np.ndarray, want: np.ndarray) -> float:
    return float(np.sqrt(((got - want) ** 2).sum() / (want**2).sum()))


@pytest.mark.parametrize("case", CASES)
def test_agrees_with_compiled_entries(runtime, tool, tmp_path, case):
    model, options = CASES[case]
    config, path = tmp_path / "config.json", tmp_path / "layer.gdnk"
    config.write_text(CONFIG % model)
    options = ["--io=f32", "--outputs=both", "--target=native", *options]
    done = tool("gdn-compile", "--config", config, *options, "-o", path)
    assert done.returncode == 0, done.stderr
    check_image(runtime, path)


def test_agrees_with_a_preset_of_another_kind(runtime, tool, tmp_path):
    """Doubled beta, other head sizes and an own epsilon of the norm."""
    path = tmp_path / "olmo.gdnk"
    options = ["--io=f32", "--outputs=both", "--target=native"]
    done = tool("gdn-compile", "--preset=olmo-hybrid-7b", *options, "-o", path)
    assert done.returncode == 0, done.stderr
    layer = check_image(runtime, path)
    assert layer.double_beta
    assert (layer.key_dim, layer.value_dim) == (96, 192)
    assert layer.norm_eps == pytest.approx(1e-5)


@pytest.mark.parametrize("preset", ["qwen3-next-80b-a3b", "kimi-linear-48b-a3b"])
def test_agrees_with_the_rule_and_its_gates(runtime, tool, tmp_path, preset):
    """Without a convolution; a decay of each head and of each channel."""
    path = tmp_path / "gated.gdnk"
    options = ["--io=f32", "--layout=gated", "--l2norm", "--outputs=core", "--target=native"]
    done = tool("gdn-compile", f"--preset={preset}", *options, "--for=c", "-o", path)
    assert done.returncode == 0, done.stderr
    assert check_image(runtime, path).layout == "gated"


def test_agrees_with_gated_linear_attention(runtime, tool, tmp_path):
    """Entries written by hand, with a decay per head and per channel."""
    source, path = tmp_path / "linear.mlir", tmp_path / "linear.gdnk"
    entries = Path(__file__).parents[1] / "data/entries/gated_linear_attention.mlir"
    source.write_text(entries.read_text().replace("bf16", "f32"))
    done = tool("gdn-compile", source, "--target=native", "-o", path)
    assert done.returncode == 0, done.stderr
    layer = check_image(runtime, path, ("prefill", "decode", "decode_channels"))
    assert not layer.has_delta
    assert layer.layout == "ready"


def test_agrees_with_the_rule_with_an_erase_key(runtime, tool, tmp_path):
    """Entries written by hand: a decay per channel, one token each, tokens that stay pending."""
    source, path = tmp_path / "erase.mlir", tmp_path / "erase.gdnk"
    entries = Path(__file__).parents[1] / "data/entries/erase_rule.mlir"
    source.write_text(entries.read_text().replace("bf16", "f32"))
    done = tool("gdn-compile", source, "--target=native", "-o", path)
    assert done.returncode == 0, done.stderr
    assert check_image(runtime, path, ("prefill", "decode", "verify")).layout == "ready"
    image = runtime.image(path)
    for entry in ("prefill", "decode", "verify", "decode_planes"):
        done = tool("gdn-run", path, f"--entry={entry}", "--generate=Hk=2,Hv=4,skip=1", "--check")
        assert done.returncode == 0, done.stdout + done.stderr
        assert "erase" in [param.name for param in runtime.device().kernel(image, entry).params]


def check_image(runtime, path, entries=("prefill", "decode")) -> reference.Layer:
    image = runtime.image(path)
    for entry in entries:
        layer = reference.Layer.of(image.attributes(entry))
        kernel = runtime.device().kernel(image, entry)
        sizes = problems.Sizes(2, 4, (5, 0, 3, 1, 9), slots=9, seed=3, skipped={2: 0, 3: -1})
        arguments = problems.make(kernel.params, sizes)
        if "has_initial" in arguments:
            arguments["has_initial"][0] = False
        if "write_slots" in arguments:
            arguments["write_slots"] = np.array([7, 2, 4, 5, 8], np.int32)
        want = reference.evaluate(layer, arguments)
        pools = [p.name for p in kernel.params if p.kind == "pool"]
        kernel(**{n: Pool(v) if n in pools else v for n, v in arguments.items()})
        for name, values in want.items():
            got = arguments[name].astype(np.float64)
            # Slots that nobody uses hold NaN on both sides.
            assert np.array_equal(np.isnan(got), np.isnan(values)), name
            assert relative_error(np.nan_to_num(got), np.nan_to_num(values)) < 1e-5, name
        skipped = slice(5, 8) if "cu_seqlens" in arguments else 2  # sequence 2
        assert not want["core"][skipped].any()
    return layer


def test_shapes_follow_the_forms():
    symbols = {"N": 3, "Hk": 2}
    dims = ("N + 1", "256*Hk - 2*N", "128", "N")
    assert problems.shape_of(dims, symbols) == (4, 506, 128, 3)
