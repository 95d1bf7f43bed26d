# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The rule alone through gdn-c/rule.h: test/CAPI/run_rule.c on images that gdn-compile makes."""

import json
import subprocess

import pytest

CONFIG = {
    "model_type": "qwen3_5_text",
    "num_hidden_layers": 1,
    "hidden_size": 64,
    "rms_norm_eps": 1e-6,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 16,
    "linear_value_head_dim": 24,
    "linear_conv_kernel_dim": 4,
    "hidden_act": "silu",
}


def compile_layer(tool, folder, *options):
    config, image = folder / "config.json", folder / "rule.gdnk"
    config.write_text(json.dumps(CONFIG))
    types = ["--for=c", "--io=f32", "--state=f32", "--target=native"]
    done = tool("gdn-compile", "--config", config, *types, *options, "-o", image)
    assert done.returncode == 0, done.stderr
    return image


@pytest.mark.parametrize("layout", ["ready", "gated"])
def test_run_rule(build_dir, tool, tmp_path, layout):
    image = compile_layer(tool, tmp_path, f"--layout={layout}", "--outputs=core")
    program = build_dir / "bin/run_rule"
    done = subprocess.run([program, image, layout], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("ok\n")


def test_an_image_of_a_whole_layer_is_refused(build_dir, tool, tmp_path):
    image = compile_layer(tool, tmp_path, "--layout=split", "--outputs=core")
    program = build_dir / "bin/run_rule"
    done = subprocess.run([program, image, "ready"], capture_output=True, text=True)
    assert done.returncode == 1
    assert "UNSUPPORTED: prefill: qkv: expected the parameters of a rule alone" in done.stderr
