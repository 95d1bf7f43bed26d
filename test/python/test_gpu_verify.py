# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""GPU kernels of verify and commit, every way to keep states, on a driver that runs PTX on
the CPU (test/PTX): what the device check asks of them on a GPU, in its small cases."""

import json

import pytest

QWEN, KIMI = "qwen3-next-80b-a3b", "kimi-linear-48b-a3b"
# Convolved queries, keys and values, as SGLang's layers have them.
GATED = ("--layout=gated", "--outputs=core")
LAYERS = {
    "slots": (QWEN, "slots"),
    "tree": (QWEN, "tree"),
    "buffer": (QWEN, "buffer"),
    "lazy": (QWEN, "lazy"),
    "channels-slots": (KIMI, "slots"),
    "channels-tree": (KIMI, "tree"),
    "channels-buffer": (KIMI, "buffer"),
    "channels-gated-buffer": (KIMI, "buffer", *GATED),
    "channels-bounded-gated-buffer": ("kimi-k3", "buffer", *GATED),
    "channels-lazy": (KIMI, "lazy"),
}
# Whose decode is that of "slots", text for text: checked there alone.
ALONE = ("tree", "buffer", "lazy")
ALONE += tuple(name for name in LAYERS if name.endswith(("-tree", "-buffer")))


@pytest.mark.parametrize("layer", LAYERS)
def test_device_check(build_dir, on_ptx_driver, tool, tmp_path, layer):
    preset, kind, *form = LAYERS[layer]
    image, report = tmp_path / f"{layer}.gdnk", tmp_path / "report.json"
    states = "--state=f32,bf16" if preset == QWEN else "--state=f32"
    options = ["--io=bf16", states, f"--verify={kind}", *form, "--target=sm_90a", "--ptxas=none"]
    commits = {"commit"} if kind in ("buffer", "lazy") else set()
    expected = {"verify", *commits} | (set() if layer in ALONE else {"decode"})
    # Prefill is what test_gpu_prefill.py checks.
    options.append(f"--only={','.join(sorted(expected))}")
    done = tool("gdn-compile", f"--preset={preset}", *options, "-o", image)
    assert done.returncode == 0, done.stderr
    check = ["-m", "gdn.device_check", image, "--quick", "--no-times", "--output", report]
    # Rows behind the last one, whose products nobody uses.
    unwritten = "0" if kind == "lazy" else "1"
    library = build_dir / "lib/libgdnrt.so"
    on_ptx_driver(*check, "--library", library, GDN_PTX_UNWRITTEN=unwritten)
    kernels = json.loads(report.read_text())["kernels"]
    names = {kernel["name"].split("/")[1].split("_")[0] for kernel in kernels}
    assert expected <= names
    assert all(kernel["target"] == "sm_90a" for kernel in kernels)


def test_decode_and_prefill_are_the_same_however_tokens_are_verified(tool):
    """What lets the checks above, those of conformance in test/PTX and
    test/Pipeline/gpu-verify.test leave them out. Programs that are equal give equal kernels."""

    def programs(*options: str) -> str:
        types = ["--io=bf16", "--state=bf16", "--target=sm_90a", "--only=decode,prefill"]
        done = tool("gdn-compile", f"--preset={QWEN}", *types, *options, "--emit=gpu")
        assert done.returncode == 0, done.stderr
        return done.stdout

    plain = programs()
    assert "func.func @decode" in plain and "func.func @prefill" in plain
    for kind in ("slots", "tree", "buffer", "lazy"):
        assert programs(f"--verify={kind}") == plain
