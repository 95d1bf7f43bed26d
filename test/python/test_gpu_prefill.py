# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""GPU kernels of prefill, every variant, on a driver that runs PTX on the CPU (test/PTX): what
the device check asks of them on a GPU, in its small cases."""

import json

import pytest
from conftest import ROOT

ALL = {"fused", "fused-segments-5", "fused-stay", "fused-v-split-2", "staged-segments-8"}
ALL |= {"staged-v-split-2"}
LAYERS = {
    "ready": (["--layout=ready", "--outputs=core"], ALL),
    "packed": (["--outputs=core"], ALL | {"staged-v-split-2-short"}),
    "norm": ([], ALL | {"staged-v-split-2-short"}),
}


# On sm_80 what chips without warpgroups run, whose recurrences take rows longest first. With a norm
# the stages of `packed` run, too, and one behind them; those of `ready` run on sm_90a in
# test_what_lengths_decide and in the conformance suite.
CASES = [
    pytest.param("ready", "sm_90a", marks=pytest.mark.long),
    pytest.param("packed", "sm_90a", marks=pytest.mark.long),
    ("norm", "sm_90a"),
    ("ready", "sm_80"),
]


@pytest.mark.parametrize("layer, target", CASES)
def test_device_check(build_dir, on_ptx_driver, tool, tmp_path, layer, target):
    form, variants = LAYERS[layer]
    image, report = tmp_path / f"{layer}.gdnk", tmp_path / "report.json"
    options = ["--preset=qwen3.5-0.8b", "--io=bf16", "--state=f32", "--only=prefill", *form]
    code = [f"--target={target}", "--ptxas=none", "-o", image]
    done = tool("gdn-compile", *options, *code)
    assert done.returncode == 0, done.stderr
    listed = tool("gdn-compile", *options, f"--target={target}", "--emit=gpu", "-o", "-").stdout
    for variant in variants:
        if target == "sm_80" and variant.startswith("fused"):
            continue
        assert f'"{variant}"' in listed
    check = ["-m", "gdn.device_check", image, "--quick", "--no-times", "--output", report]
    on_ptx_driver(*check, "--library", build_dir / "lib/libgdnrt.so")
    (kernel,) = json.loads(report.read_text())["kernels"]
    assert kernel["target"] == target and kernel["failures"] == []


# Rows of 2 value heads. By lengths: whole heads, of so many rows that halves of all do not fit
# beside each other, then halves. Two rows of which the shorter is computed behind the first segment
# of the other, which is so much shorter than its others.
LENGTHS = {"whole": (130, 130, 130) + (0,) * 31, "halves": (30, 200), "pair": (64, 2560)}


@pytest.fixture(scope="module")
def image_90a(tool, tmp_path_factory):
    image = tmp_path_factory.mktemp("lengths") / "ready.gdnk"
    options = ["--preset=qwen3.5-0.8b", "--io=bf16", "--state=f32", "--only=prefill"]
    options += ["--layout=ready", "--outputs=core", "--target=sm_90a", "--ptxas=none"]
    done = tool("gdn-compile", *options, "-o", image)
    assert done.returncode == 0, done.stderr
    return image


# A decay per channel; the bounded gate from packed projections. The first stage of others.
CHANNELS = [
    ("kimi-linear-48b-a3b", ["--layout=ready", "--outputs=core"], "sm_80"),
    pytest.param(
        "kimi-linear-48b-a3b",
        ["--layout=ready", "--outputs=core"],
        "sm_90a",
        marks=pytest.mark.long,
    ),
    pytest.param("kimi-k3", [], "sm_90a", marks=pytest.mark.long),
]


@pytest.mark.parametrize("preset, form, target", CHANNELS)
def test_decay_per_channel(build_dir, on_ptx_driver, tool, tmp_path, preset, form, target):
    image, report = tmp_path / "channels.gdnk", tmp_path / "report.json"
    options = [f"--preset={preset}", "--io=bf16", "--state=f32", "--only=prefill", *form]
    code = [f"--target={target}", "--ptxas=none", "-o", image]
    done = tool("gdn-compile", *options, *code)
    assert done.returncode == 0, done.stderr
    check = ["-m", "gdn.device_check", image, "--quick", "--no-times", "--output", report]
    on_ptx_driver(*check, "--library", build_dir / "lib/libgdnrt.so")
    (kernel,) = json.loads(report.read_text())["kernels"]
    assert kernel["failures"] == []
    assert kernel["error_o"] < 3e-3 and kernel["error_state"] < 5e-4


# A variant with chunks of its own, which packed projections have a first stage for.
@pytest.mark.parametrize(
    "form", [[], pytest.param(["--layout=ready", "--outputs=core"], marks=pytest.mark.long)]
)
def test_chunks_of_its_own(build_dir, on_ptx_driver, tool, tmp_path, form):
    config, report = tmp_path / "config.json", tmp_path / "report.json"
    image = tmp_path / "heads.gdnk"
    heads = (ROOT / "test/Pipeline/Inputs/heads.json").read_text()
    config.write_text(heads.replace("KEYS", "96").replace("VALUES", "192"))
    options = ["--config", config, "--io=bf16", "--state=f32", "--only=prefill", *form]
    options += ["--target=sm_90a"]
    assert '"staged-v-split-3"' in tool("gdn-compile", *options, "--emit=gpu", "-o", "-").stdout
    assert tool("gdn-compile", *options, "--ptxas=none", "-o", image).returncode == 0
    # Every variant: rows that end in a chunk, empty rows, slots that are skipped.
    check = ["-m", "gdn.device_check", image, "--quick", "--no-times", "--output", report]
    on_ptx_driver(*check, "--library", build_dir / "lib/libgdnrt.so")
    (kernel,) = json.loads(report.read_text())["kernels"]
    assert kernel["failures"] == []
    assert kernel["error_o"] < 3e-3 and kernel["error_state"] < 6e-4


@pytest.mark.parametrize("name", ["whole", "halves", pytest.param("pair", marks=pytest.mark.long)])
def test_what_lengths_decide(build_dir, on_ptx_driver, image_90a, tmp_path, name):
    report = tmp_path / "report.json"
    check = ["-m", "gdn.numerics_check", image_90a, "--quick", "--output", report]
    check += ["--lengths", *LENGTHS[name]]
    on_ptx_driver(*check, "--library", build_dir / "lib/libgdnrt.so")
    (row,) = json.loads(report.read_text())["rows"]
    assert row["failures"] == [] and set(row["cases"]) == {"near_one", "realistic", "strong"}
    assert {"fused-by-lengths", "fused-segments-3", "fused-segments-5"} <= set(row["variants"])
