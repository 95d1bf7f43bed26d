# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The device check, on the CPU: it passes sound kernels, and finds what is wrong."""

import json
import os
from dataclasses import replace

import numpy as np
import pytest
from conftest import ROOT

from gdn import Runtime, checks, device_check, problems, reference
from gdn.problems import Sizes


def compile_layer(tool, folder, *more, io="bf16"):
    config, path = folder / "config.json", folder / "layer.gdnk"
    config.write_text(
        '{"model_type": "qwen3_5_text", "hidden_size": 128, "hidden_act": "silu",'
        ' "num_hidden_layers": 4, "linear_num_key_heads": 2, "linear_num_value_heads": 4,'
        ' "linear_key_head_dim": 32, "linear_value_head_dim": 32,'
        ' "linear_conv_kernel_dim": 4, "rms_norm_eps": 1e-6}'
    )
    options = [f"--io={io}", "--outputs=both", "--target=native", "-o", path]
    done = tool("gdn-compile", "--config", config, *options, *more)
    assert done.returncode == 0, done.stderr
    return path


@pytest.fixture(scope="module")
def image(tool, tmp_path_factory):
    return compile_layer(tool, tmp_path_factory.mktemp("check"))


@pytest.fixture(scope="module")
def library(build_dir):
    return build_dir / "lib/libgdnrt.so"


def test_sound_kernels_pass(image, library, tmp_path, capsys):
    output = tmp_path / "report.json"
    options = ["--device=cpu", "--quick", "--no-times", f"--library={library}"]
    assert device_check.main([str(image), *options, f"--output={output}"]) == 0
    report = json.loads(output.read_text())
    assert {"device", "driver", "date", "kernels"} <= report.keys()
    names = ("prefill", "decode", "copy_slots", "zero_slots")
    assert {row["name"] for row in report["kernels"]} == {f"layer/{name}" for name in names}
    for row in report["kernels"]:
        assert row["failures"] == []
        if "slots" in row["name"]:
            assert row["error_o"] == row["error_state"] == 0
            continue
        assert 0 < row["error_o"] < 2e-3
        assert 0 < row["error_state"] < 1e-5
    assert "layer/decode" in capsys.readouterr().out


def test_tokens_that_go_into_rounded_states_pass(tool, library, tmp_path, capsys):
    """Outputs of the step go on from a state of 16 bits; slots have room for two tokens. gdn-run
    passes it, too."""
    options = ("--state=bf16,f16", "--defer-writes=2", "--verify=lazy", "--verify-tokens=2")
    path = compile_layer(tool, tmp_path, *options, "--only=decode,verify,commit", io="f32")
    options = ["--device=cpu", "--quick", "--no-times", f"--library={library}"]
    assert device_check.main([str(path), *options]) == 0, capsys.readouterr().out
    for state, least, most in (("bf16", 5e-4, 4e-3), ("f16", 5e-5, 5e-4)):
        for entry, sequences in (("decode", "rows=20"), ("verify", "lens=1:2:2:1:2:2:2")):
            run = ("--entry", f"{entry}_f32_{state}", "--generate", f"{sequences},gates=near_one")
            done = tool("gdn-run", path, *run, "--check", "--json")
            assert done.returncode == 0, done.stdout
            found = {each["tensor"]: each for each in json.loads(done.stdout)["comparisons"]}
            assert least < found["core"]["relative_rmse"] < most == found["core"]["limit"]


def test_states_inside_rows_pass(tool, library, tmp_path):
    path = compile_layer(tool, tmp_path, "--only=prefill", "--checkpoints", "--has-initial")
    options = ["--device=cpu", "--quick", "--no-times", f"--library={library}"]
    assert device_check.main([str(path), *options]) == 0


@pytest.mark.parametrize(
    "said, errors",
    [
        ("========= ERROR SUMMARY: 0 errors\n", 0),
        ("========= ERROR SUMMARY: 12 errors\n", 12),
        ("========= RACECHECK SUMMARY: 3 hazards displayed (1 error, 2 warnings)\n", 1),
        ("========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n", 0),
        ("========= Error: process didn't terminate successfully\n", None),
    ],
)
def test_a_sanitizer_counts(
    image, library, tmp_path, monkeypatch, capsys, said, errors, unsanitized
):
    """What runs under a tool is this check; its kernels get the tool's count."""
    folder, output = tmp_path / "bin", tmp_path / "report.json"
    folder.mkdir()
    program = folder / "compute-sanitizer"
    program.write_text('#!/bin/bash\nwhile [[ $1 == --* ]]; do shift; done\n"$@"\ncat <<E\n')
    program.write_text(program.read_text() + said + "E\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "python"))
    options = ["--device=cpu", f"--library={library}", "--entry=zero_slots", f"--output={output}"]
    code = device_check.main([str(image), *options, "--sanitizer=memcheck"])
    assert code == (0 if errors == 0 else 1)
    report = json.loads(output.read_text())
    assert {"device", "driver", "date"} <= report.keys()
    (row,) = report["sanitizers"]
    assert (row["name"], row["tool"], row["errors"]) == ("layer/zero_slots", "memcheck", errors)
    verdict = "ok" if errors == 0 else "FAILED"
    assert f"memcheck: 1 kernels {verdict}" in capsys.readouterr().out


def test_what_was_checked_before_a_stop_is_kept(image, library, tmp_path, monkeypatch):
    output, check_kernel = tmp_path / "report.json", device_check.check_kernel

    def stop(device, kernel, *rest):
        if kernel.name == "copy_slots":
            raise KeyboardInterrupt
        return check_kernel(device, kernel, *rest)

    monkeypatch.setattr(device_check, "check_kernel", stop)
    options = ["--device=cpu", "--quick", "--no-times", f"--library={library}"]
    with pytest.raises(KeyboardInterrupt):
        device_check.main([str(image), *options, f"--output={output}"])
    names = [row["name"] for row in json.loads(output.read_text())["kernels"]]
    assert "layer/decode" in names and "layer/copy_slots" not in names


def test_a_target_that_is_not_there(image, library, capsys):
    options = ["--device=cpu", "--quick", "--no-times", f"--library={library}"]
    assert device_check.main([str(image), *options, "--target=sm_90a"]) == 1
    assert "no kernel for this device" in capsys.readouterr().out


def test_no_device_is_skipped_with_the_reason(image, library, capsys):
    if device_check.main([str(image), "--quick", "--no-times", f"--library={library}"]) == 77:
        assert "skipped: UNSUPPORTED: cuda: no" in capsys.readouterr().out
    # Otherwise there is a GPU, whose code the image lacks.


@pytest.fixture
def decode(image, library):
    runtime = Runtime(library)
    loaded = runtime.image(image)
    device = runtime.device()
    layer = reference.Layer.of(loaded.attributes("decode"))
    return device, device.kernel(loaded, "decode"), layer


def check(decode, layer=None) -> list[str]:
    device, kernel, own = decode
    findings = checks.Findings()
    sizes = Sizes(2, 4, (1,) * 4, skipped={1: 0})
    checks.check_case(device, kernel, layer or own, sizes, findings)
    return findings.failures


def test_wrong_numbers_are_found(decode):
    assert check(decode) == []
    failures = " ".join(check(decode, replace(decode[2], double_beta=True)))
    assert "core: error" in failures
    assert "state_pool: error" in failures
    failures = " ".join(check(decode, replace(decode[2], gate="sigmoid")))
    assert "out: error" in failures
    assert "state_pool" not in failures


def corrupt(monkeypatch, change):
    """Runs give what `change` makes of the results."""
    honest = checks.run

    def run(device, kernel, arguments, **options):
        results = honest(device, kernel, arguments, **options)
        change(results, arguments)
        return results

    monkeypatch.setattr(checks, "run", run)


def test_a_touched_slot_is_found(decode, monkeypatch):
    def change(results, arguments):
        results["state_pool"][5] = 1

    corrupt(monkeypatch, change)
    assert any("state_pool: a slot that no row uses" in f for f in check(decode))


def test_a_row_that_is_not_zero_is_found(decode, monkeypatch):
    def change(results, arguments):
        results["out"][1, 0, 0] = -0.0

    corrupt(monkeypatch, change)
    assert any("out: a skipped row is not zero" in f for f in check(decode))


def test_a_nan_and_a_wrong_window_are_found(decode, monkeypatch):
    def change(results, arguments):
        results["core"][0, 0, 0] = np.nan
        results["conv_pool"][1, 0, 0] += 1

    corrupt(monkeypatch, change)
    failures = " ".join(check(decode))
    assert "core: error inf" in failures
    assert "conv_pool: a window differs" in failures


def test_a_result_that_depends_on_the_layout_is_found(decode, monkeypatch):
    honest, layouts = checks.run, []

    def run(device, kernel, arguments, by_position=False):
        results = honest(device, kernel, arguments, by_position=by_position)
        layouts.append(by_position)
        results["state_pool"][1] *= 1 + by_position * 1e-7
        return results

    monkeypatch.setattr(checks, "run", run)
    assert check(decode) == ["Hk=2 Hv=4 lens=[1, 1, 1, 1]: state_pool: runs differ"]
    assert layouts == [False, True]


def test_windows_by_position_are_arrays_that_lie_so(decode):
    device, kernel, _ = decode
    arguments = problems.make(kernel.params, Sizes(2, 4, (1,) * 4))
    strides, bind = [], kernel.bind
    kernel.bind = lambda **given: strides.append(given["conv_pool"].array) or bind(**given)
    by_channel, by_position = (
        checks.run(device, kernel, arguments, by_position=transposed)
        for transposed in (False, True)
    )
    _, channels, window = arguments["conv_pool"].shape
    assert strides[1].strides == (channels * window, 1, channels)
    for name, values in by_channel.items():
        assert np.array_equal(values.view(np.uint8), by_position[name].copy().view(np.uint8))


def test_a_row_that_depends_on_the_batch_is_found(decode, monkeypatch):
    def change(results, arguments):
        results["out"] += len(arguments["slots"])

    corrupt(monkeypatch, change)
    findings = checks.Findings()
    checks.check_rows_alone(*decode[:2], Sizes(2, 4, (1,) * 5), findings)
    assert any("row 2 differs in a launch of [2]" in f for f in findings.failures)


@pytest.mark.parametrize("entry", ["copy_slots", "zero_slots"])
def test_a_wrong_move_is_found(image, library, entry, monkeypatch):
    runtime = Runtime(library)
    device = runtime.device()
    kernel = device.kernel(runtime.image(image), entry)

    def failures():
        findings = checks.Findings()
        checks.check_moves(device, kernel, Sizes(2, 4, (1,) * 9, skipped={1: 0, 3: -1}), findings)
        return findings.failures

    assert failures() == []

    def change(results, arguments):
        results["conv_pool"][arguments["slots"][0], 0, 0] += 1

    corrupt(monkeypatch, change)
    assert len(failures()) == 1 and "conv_pool differs" in failures()[0]


def test_layers_of_images(image, library, tmp_path, monkeypatch, capsys):
    """Which images have layers to check, and that what fails there is reported."""
    runtime = Runtime(library)
    assert not device_check.has_layers(runtime.image(image))  # heads of 32
    facts = runtime.image(image).attributes("decode")
    source = facts["gdn.source"].replace("x32x32x", "x128x128x")

    class Other:
        def __init__(self, entries=("decode", "copy_slots"), **changes):
            self.entries, self.changes = entries, changes

        def attributes(self, entry):
            return facts | {"gdn.source": source, "outputs": "core"} | self.changes

    assert all(device_check.has_layers(Other(layout=n)) for n in ("interleaved", "flat", "split"))
    others = [
        {"layout": "ready"},
        {"layout": "separate"},
        {"io": "f16"},
        {"outputs": "both"},
        {"state": "bf16"},
    ]
    others.append({"gdn.source": source.replace("x128x128x", "x128x64x")})
    assert not any(device_check.has_layers(Other(**changes)) for changes in others)
    assert not device_check.has_layers(Other(("prefill",)))
    monkeypatch.setattr(device_check, "has_layers", lambda image: True)
    options = device_check.parse([str(image), f"--library={library}"])
    cpu = runtime.device()
    assert device_check.check_layers(options, cpu) == []

    class Gpu:
        kind, _runtime = "cuda", runtime

    monkeypatch.setattr(device_check.importlib.util, "find_spec", lambda name: None)
    assert device_check.check_layers(options, Gpu) == []
    assert "skipped: PyTorch is not installed" in capsys.readouterr().out
    monkeypatch.setattr(device_check.importlib.util, "find_spec", lambda name: name)

    def ran(command, **_):
        assert command[-4:] == ["gdn.layer_check", str(image), "--library", str(library)]
        lines = "ok      output\nFAILED  state\n"
        return device_check.subprocess.CompletedProcess(command, 1, lines, "")

    monkeypatch.setattr(device_check.subprocess, "run", ran)
    (result,) = device_check.check_layers(options, Gpu)
    assert result == {"name": "layer", "checked": 1, "failures": ["FAILED  state"]}


@pytest.mark.parametrize("target", ["sm_80", "sm_86", "sm_89"])
def test_codes_without_rings(target):
    assert device_check.is_before_rings(target)


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a", "sm_103a", "sm_120a", "x86-64-v3", ""])
def test_codes_that_may_have_rings(target):
    assert not device_check.is_before_rings(target)
