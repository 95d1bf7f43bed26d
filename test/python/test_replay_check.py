# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""gdn.replay_check: recorded activations of Kimi-Linear, Kimi K3 and GLM-5.3-Flash through images
of their presets, on the CPU and on PTX on the CPU; what it says of wrong results and recordings."""

import json
from pathlib import Path

import numpy as np
import pytest
import tensorfile
from conftest import ROOT

from gdn import Runtime, replay_check
from gdn.replay_check import Recording, RecordingError

DATA = ROOT / "test/data"
PRESETS = {
    "kimi-linear-48b-a3b": "kimi_linear",
    "kimi-k3": "kimi_k3",
    "glm-5.3-flash": "glm5_next",
}


@pytest.fixture(scope="module")
def library(build_dir) -> Path:
    return build_dir / "lib/libgdnrt.so"


def compiled(tool, path: Path, *options: object) -> Path:
    done = tool("gdn-compile", *options, "--state=f32", "--outputs=both", "-o", path)
    assert done.returncode == 0, done.stderr
    return path


def recording_of(model: str) -> Path:
    return DATA / f"{model}_tiny.safetensors"


@pytest.fixture(scope="module")
def image(tool, tmp_path_factory):
    """Of Kimi K3, f32."""
    path = tmp_path_factory.mktemp("replay") / "x.gdnk"
    return compiled(tool, path, "--preset=kimi-k3", "--io=f32")


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("io", ["f32", "bf16"])
def test_presets_replay_what_was_recorded(tool, library, tmp_path, capsys, preset, io):
    path = compiled(tool, tmp_path / "x.gdnk", f"--preset={preset}", f"--io={io}")
    output = tmp_path / "report.json"
    options = [f"--library={library}", "--device=cpu", f"--output={output}"]
    recording = recording_of(PRESETS[preset])
    assert replay_check.main([str(path), str(recording), *options]) == 0
    rows = json.loads(output.read_text())["rows"]
    assert {(row["phase"], row["tensor"]) for row in rows} == {
        (phase, tensor)
        for phase in ("prefill", *(f"decode{n}" for n in range(6)))
        for tensor in ("core", "out", "conv_pool", "state_pool")
    }
    # Outputs were recorded of every step, states of three.
    held = [row for row in rows if row["transformers"] is not None]
    assert len(held) == (7 * 2 + 3 * 2 if io == "f32" else 0)
    assert "0 of 28 out of bounds" in capsys.readouterr().out


@pytest.mark.parametrize("preset", PRESETS)
def test_on_ptx(tool, library, on_ptx_driver, tmp_path, preset):
    options = ["--io=bf16", "--target=sm_90a", "--ptxas=none"]
    path = compiled(tool, tmp_path / "x.gdnk", f"--preset={preset}", *options)
    recording = recording_of(PRESETS[preset])
    lines = on_ptx_driver("-m", "gdn.replay_check", path, recording, f"--library={library}")
    assert "PTX on the CPU" in lines and "0 of 28 out of bounds" in lines


@pytest.mark.parametrize("model", ["qwen3_next", "qwen3_5", "olmo_hybrid"])
def test_other_layouts(tool, library, tmp_path, model):
    recording = recording_of(model)
    path = compiled(tool, tmp_path / "x.gdnk", f"--config={recording}", "--io=f32")
    options = [f"--library={library}", "--device=cpu"]
    assert replay_check.main([str(path), str(recording), *options]) == 0


def changed(tmp_path: Path, model: str, name: str, content) -> Path:
    """The recording with another tensor; None takes it out."""
    tensors = tensorfile.read(recording_of(model))
    del tensors[name]
    if content is not None:
        tensors[name] = content
    return tensorfile.write(tmp_path / "changed.safetensors", tensors)


@pytest.mark.parametrize("phase", ["prefill", "decode5"])
@pytest.mark.parametrize("module", ["core_pre_norm", "recurrent_states", "conv_states"])
def test_another_result_is_out_of_bounds(image, library, tmp_path, capsys, phase, module):
    name = f"{phase}.layer0.{module}"
    _, shape, data = tensorfile.read(recording_of("kimi_k3"))[name]
    values = np.frombuffer(data, np.float32).copy()
    values[-1] += 0.01 * np.abs(values).max()
    path = changed(tmp_path, "kimi_k3", name, ("F32", shape, values.tobytes()))
    options = [f"--library={library}", "--device=cpu"]
    assert replay_check.main([str(image), str(path), *options]) == 1
    out = capsys.readouterr().out
    assert "1 of 28 out of bounds" in out and out.count("OUT OF BOUNDS") == 1


def test_another_bound_of_decays_is_out_of_bounds(tool, library, tmp_path, capsys):
    """Kimi-Linear's gate has none."""
    path = compiled(tool, tmp_path / "x.gdnk", "--preset=kimi-linear-48b-a3b", "--io=f32")
    recording = recording_of("kimi_k3")
    rows = replay_check.replay(
        Runtime(library).device(), Runtime(library).image(path), Recording.load(recording)
    )
    against = {row.tensor for row in rows if not row.holds}
    assert against == {"core", "out", "state_pool"}
    # Float64 has the meaning of the image, not that of the recording.
    assert all(row.float64 <= row.limit for row in rows)


@pytest.mark.parametrize(
    "name, content, message",
    [
        (
            "prefill.layer0.f_b_proj",
            None,
            "prefill.layer0: nothing was recorded for the parameter 'a'",
        ),
        (
            "decode2.layer0.q_proj",
            tensorfile.zeros("F32", 1, 1, 255),
            "decode2.layer0: expected [1, 2, 128] elements for the parameter 'q', but found "
            "[1, 255]",
        ),
    ],
)
def test_recordings_that_do_not_fit(image, library, tmp_path, capsys, name, content, message):
    path = changed(tmp_path, "kimi_k3", name, content)
    options = [f"--library={library}", "--device=cpu"]
    assert replay_check.main([str(image), str(path), *options]) == 1
    assert capsys.readouterr().err == f"replay_check: {path}: {message}\n"


def with_header(text: bytes) -> bytes:
    return len(text).to_bytes(8, "little") + text


NOT_SAFETENSORS = [
    b"",
    b"x" * 7,
    with_header(b"not json"),
    b"\xff" * 99,
    with_header(b"[" * 200_000),
    with_header(b'"text"'),
    with_header(b"7"),
    with_header(b'{"x": {"dtype": "F32", "shape": [1e999], "data_offsets": [0, 4]}}') + bytes(4),
]


@pytest.mark.parametrize("content", NOT_SAFETENSORS, ids=range(len(NOT_SAFETENSORS)))
def test_files_that_are_none(tmp_path, content):
    path = tmp_path / "x.safetensors"
    path.write_bytes(content)
    with pytest.raises(RecordingError, match="expected safetensors of f32 and integers"):
        Recording.load(path)


def test_files_without_activations(tmp_path):
    tensors = dict.fromkeys(("x", "prefill.layer0"), tensorfile.zeros("F32", 1))
    path = tensorfile.write(tmp_path / "x.safetensors", tensors)
    with pytest.raises(RecordingError, match="expected recorded activations"):
        Recording.load(path)


def test_files_that_are_missing(image, library, tmp_path, capsys):
    """And one that is no image."""
    missing, recording = tmp_path / "missing", recording_of("kimi_k3")
    reason = "No such file or directory"
    for files, message in [
        ((missing, recording), f"IO_ERROR: {missing}: cannot open: {reason}"),
        ((recording, recording), f"CORRUPT: {recording}: image: the trailer is missing"),
        ((image, missing), f"{missing}: cannot read: {reason}"),
        ((image, tmp_path), f"{tmp_path}: cannot read: Is a directory"),
    ]:
        options = [*map(str, files), f"--library={library}", "--device=cpu"]
        assert replay_check.main(options) == 1
        assert capsys.readouterr().err.startswith(f"replay_check: {message}")


def test_an_image_without_decode(tool, library, tmp_path, capsys):
    path = tmp_path / "x.gdnk"
    compiled(tool, path, "--preset=kimi-k3", "--io=f32", "--only=prefill")
    options = [str(path), str(recording_of("kimi_k3")), f"--library={library}", "--device=cpu"]
    assert replay_check.main(options) == 1
    message = f"replay_check: {path}: NOT_FOUND: decode: the image has no such entry"
    assert capsys.readouterr().err.startswith(message)


def test_without_a_device(image, library, capsys, monkeypatch):
    def none(self, *_):
        raise replay_check.GdnError("UNSUPPORTED", "cuda: no device")

    monkeypatch.setattr(Runtime, "cuda", none)
    recording = recording_of("kimi_k3")
    assert replay_check.main([str(image), str(recording), f"--library={library}"]) == 77
