# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The Python binding: a compiled layer on NumPy arrays, and its errors."""

import ctypes
import re
from pathlib import Path

import numpy as np
import pytest

from gdn import GdnError, Pool, Runtime

HK, HV, D = 1, 2, 64
CHANNELS = 2 * HK * D + HV * D


@pytest.fixture(scope="module")
def runtime(build_dir):
    return Runtime(build_dir / "lib/libgdnrt.so")


@pytest.fixture(scope="module")
def image_path(tool, tmp_path_factory):
    """A tiny layer: prefill and decode in f32, flat packed projections."""
    folder = tmp_path_factory.mktemp("image")
    config = folder / "config.json"
    config.write_text(
        '{"model_type": "qwen3_5_text", "hidden_size": 128, "hidden_act": "silu",'
        ' "num_hidden_layers": 4, "linear_num_key_heads": 1,'
        ' "linear_num_value_heads": 2, "linear_key_head_dim": 64,'
        ' "linear_value_head_dim": 64, "linear_conv_kernel_dim": 4,'
        ' "rms_norm_eps": 1e-6}'
    )
    path = folder / "layer.gdnk"
    options = ["--io=f32", "--state=f32", "--outputs=both", "--layout=flat"]
    result = tool("gdn-compile", "--config", config, *options, "--target=native", "-o", path)
    assert result.returncode == 0, result.stderr
    return path


@pytest.fixture(scope="module")
def kernels(runtime, image_path):
    image = runtime.image(image_path)
    device = runtime.device(num_workers=2)
    return {name: device.kernel(image, name) for name in ("prefill", "decode")}


def make_layer(seed: int, tokens: int, rows: int, slots: int) -> dict:
    """Random arguments of the prefill entry; pools hold one slot more than used."""
    rng = np.random.default_rng(seed)

    def normal(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape).astype(np.float32)

    return {
        "qkvz": normal(tokens, CHANNELS + HV * D),
        "ba": normal(tokens, 2 * HV),
        "conv_weight": normal(CHANNELS, 4) * 0.5,
        "A_log": normal(HV),
        "dt_bias": normal(HV),
        "norm_weight": normal(D),
        "slots": np.arange(1, rows + 1, dtype=np.int32),
        "conv_pool": Pool(normal(slots, CHANNELS, 3)),
        "state_pool": Pool(normal(slots, HV, D, D) * 0.1),
        "core": np.full((tokens, HV, D), np.nan, np.float32),
        "out": np.full((tokens, HV, D), np.nan, np.float32),
    }


def softplus(x: np.ndarray) -> np.ndarray:
    return np.where(x > 20, x, np.log1p(np.exp(np.minimum(x, 20))))


def layer_in_float64(arguments: dict) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Core output, gated norm and final state of one row in slot 1."""
    a = {
        name: np.asarray(value.array if isinstance(value, Pool) else value, np.float64)
        for name, value in arguments.items()
    }
    x = a["qkvz"][:, :CHANNELS]
    gate = a["qkvz"][:, CHANNELS:].reshape(-1, HV, D)
    history = np.concatenate([a["conv_pool"][1].T, x])
    y = sum(a["conv_weight"][:, j] * history[j : j + len(x)] for j in range(4))
    y = y / (1 + np.exp(-y))
    q, k, v = np.split(y, [HK * D, 2 * HK * D], axis=1)
    q, k = (m / np.sqrt((m**2).sum(-1, keepdims=True) + 1e-6) for m in (q, k))
    v = v.reshape(-1, HV, D)
    beta = 1 / (1 + np.exp(-a["ba"][:, :HV]))
    decay = np.exp(-np.exp(a["A_log"]) * softplus(a["ba"][:, HV:] + a["dt_bias"]))
    state = a["state_pool"][1].copy()
    core = np.zeros_like(v)
    for t in range(len(x)):
        for h in range(HV):
            state[h] *= decay[t, h]
            delta = beta[t, h] * (v[t, h] - state[h] @ k[t])
            state[h] += np.outer(delta, k[t])
            core[t, h] = state[h] @ q[t] / np.sqrt(D)
    norm = core / np.sqrt((core**2).mean(-1, keepdims=True) + 1e-6) * a["norm_weight"]
    return core, norm * gate / (1 + np.exp(-gate)), state


def relative_error(got: np.ndarray, want: np.ndarray) -> float:
    return float(np.sqrt(((got - want) ** 2).mean() / (want**2).mean()))


def test_prefill_agrees_with_numpy(kernels):
    arguments = make_layer(seed=1, tokens=19, rows=1, slots=3)
    arguments["cu_seqlens"] = np.array([0, 19], np.int32)
    core, out, state = layer_in_float64(arguments)
    kernels["prefill"](**arguments)
    assert relative_error(arguments["core"], core) < 1e-5
    assert relative_error(arguments["out"], out) < 1e-5
    assert relative_error(arguments["state_pool"].array[1], state) < 1e-5


def test_rows_in_segments(kernels):
    arguments = make_layer(seed=5, tokens=300, rows=1, slots=3)
    arguments["cu_seqlens"] = np.array([0, 300], np.int32)
    core, _, state = layer_in_float64(arguments)
    kernel = kernels["prefill"]
    assert [(v.name, v.stages, v.needs_workspace) for v in kernel.variants] == [
        ("segments", 3, True),
        ("rows", 1, False),
    ]
    binding = kernel.bind(**arguments)
    binding.force_variant("segments")
    with pytest.raises(GdnError, match="expected a workspace of at least"):
        binding.launch()
    # Two states and one map for each value head, in f32.
    assert binding.workspace_bytes == HV * 3 * D * D * 4
    binding.set_workspace()
    binding.launch()
    assert relative_error(arguments["core"], core) < 1e-5
    assert relative_error(arguments["state_pool"].array[1], state) < 1e-5
    binding.force_variant(None)
    assert binding.variant == "rows"  # too short, or too few workers
    with pytest.raises(ValueError, match="expected one of segments, rows, got columns"):
        binding.force_variant("columns")


def test_decode_continues_prefill(kernels):
    whole = make_layer(seed=2, tokens=6, rows=1, slots=2)
    whole["cu_seqlens"] = np.array([0, 6], np.int32)
    steps = make_layer(seed=2, tokens=6, rows=1, slots=2)
    kernels["prefill"](**whole)
    for t in range(6):
        rows = ("qkvz", "ba", "core", "out")
        step = {n: v[t : t + 1] if n in rows else v for n, v in steps.items()}
        kernels["decode"](**step)
    assert np.array_equal(whole["out"], steps["out"])
    assert np.array_equal(whole["state_pool"].array, steps["state_pool"].array)


def test_prefill_gives_states_on_the_way(runtime, image_path, tool, tmp_path):
    """A checkpoint is what a shorter prompt leaves, and a row goes on from it."""
    path = tmp_path / "checkpoints.gdnk"
    config = image_path.parent / "config.json"
    options = ["--io=f32", "--outputs=both", "--layout=flat", "--checkpoints"]
    done = tool("gdn-compile", "--config", config, *options, "--target=native", "-o", path)
    assert done.returncode == 0, done.stderr
    prefill = runtime.device(num_workers=1).kernel(runtime.image(path), "prefill")

    def run(tokens: int, **changes) -> dict:
        arguments = make_layer(seed=7, tokens=200, rows=1, slots=5)
        for name in ("qkvz", "ba", "core", "out"):
            arguments[name] = arguments[name][:tokens]
        arguments |= {
            "cu_seqlens": np.array([0, tokens], np.int32),
            "cu_checkpoints": np.array([0, 2], np.int32),
            "checkpoint_tokens": np.array([64, 128], np.int32),
            "checkpoint_slots": np.array([2, 3], np.int32),
        } | changes
        prefill(**arguments)
        return arguments

    whole, short = run(200), run(128, checkpoint_slots=np.array([-1, 0], np.int32))
    for name in ("conv_pool", "state_pool"):
        assert np.array_equal(whole[name].array[3], short[name].array[1])
        assert not np.array_equal(whole[name].array[2], short[name].array[1])
    rest = make_layer(seed=7, tokens=200, rows=1, slots=5)
    rest |= {name: whole[name] for name in ("conv_pool", "state_pool")}
    rest |= {name: rest[name][128:] for name in ("qkvz", "ba", "core", "out")}
    rest |= {
        "slots": np.array([3], np.int32),
        "cu_seqlens": np.array([0, 72], np.int32),
        "cu_checkpoints": np.zeros(2, np.int32),
        "checkpoint_tokens": np.zeros(0, np.int32),
        "checkpoint_slots": np.zeros(0, np.int32),
    }
    prefill(**rest)
    assert relative_error(rest["out"], whole["out"][128:]) < 1e-5


def test_arrays_keep_their_strides(kernels):
    """Projections are columns of a wider array, read where they are."""
    plain = make_layer(seed=3, tokens=4, rows=4, slots=5)
    strided = make_layer(seed=3, tokens=4, rows=4, slots=5)
    wide = np.full((4, plain["qkvz"].shape[1] + 7), np.nan, np.float32)
    wide[:, :-7] = plain["qkvz"]
    strided["qkvz"] = wide[:, :-7]
    kernels["decode"](**plain)
    kernels["decode"](**strided)
    assert np.array_equal(plain["out"], strided["out"])


def test_symbols_of_a_binding(kernels):
    binding = kernels["decode"].bind(**make_layer(seed=4, tokens=3, rows=3, slots=9))
    assert {s: binding.symbol(s) for s in ("N", "Hk", "Hv", "P")} == {
        "N": 3,
        "Hk": HK,
        "Hv": HV,
        "P": 9,
    }


def test_params_describe_the_entry(kernels):
    params = {param.name: param for param in kernels["decode"].params}
    assert params["state_pool"].kind == "pool"
    assert params["state_pool"].access == "read_write"
    assert params["out"].access == "write"
    assert params["slots"].dtype == "int32"
    assert params["qkvz"].dims == ("N", "128*Hk + 128*Hv")


@pytest.mark.parametrize(
    ("name", "value", "status"),
    [
        ("qkvz", np.zeros((2, 5), np.float32), "INVALID_ARGUMENT"),
        ("qkvz", np.zeros((2, CHANNELS + HV * D), np.float64), "INVALID_ARGUMENT"),
        ("A_log", np.zeros(3, np.float32), "INVALID_ARGUMENT"),
        ("nonsense", np.zeros(3, np.float32), "NOT_FOUND"),
    ],
)
def test_wrong_argument_is_named(kernels, name, value, status):
    arguments = make_layer(seed=5, tokens=2, rows=2, slots=3)
    arguments[name] = value
    with pytest.raises(GdnError, match=name) as caught:
        kernels["decode"].bind(**arguments)
    assert caught.value.status == status


def test_value_heads_come_in_whole_groups(kernels):
    """Two key heads cannot share three value heads; sizes alone would fit."""
    arguments = make_layer(seed=6, tokens=2, rows=2, slots=3)
    hk, hv = 2, 3
    channels = (2 * hk + hv) * D
    arguments |= {
        "qkvz": np.zeros((2, channels + hv * D), np.float32),
        "ba": np.zeros((2, 2 * hv), np.float32),
        "conv_weight": np.zeros((channels, 4), np.float32),
        "A_log": np.zeros(hv, np.float32),
        "dt_bias": np.zeros(hv, np.float32),
        "conv_pool": Pool(np.zeros((3, channels, 3), np.float32)),
        "state_pool": Pool(np.zeros((3, hv, D, D), np.float32)),
        "core": np.zeros((2, hv, D), np.float32),
        "out": np.zeros((2, hv, D), np.float32),
    }
    message = "decode: expected Hv to be a multiple of Hk, got 3 and 2"
    with pytest.raises(GdnError, match=message):
        kernels["decode"].bind(**arguments)


def test_not_an_array_is_a_type_error(kernels):
    with pytest.raises(TypeError, match=r"slots: expected a NumPy array .* got list"):
        kernels["decode"].bind(slots=[1, 2])


def test_damaged_image_is_refused(runtime, image_path):
    data = bytearray(Path(image_path).read_bytes())
    data[len(data) // 2] ^= 1
    with pytest.raises(GdnError) as caught:
        runtime.image(bytes(data))
    assert caught.value.status == "CORRUPT"
    for given in (data, memoryview(data)):  # are no paths
        with pytest.raises(GdnError) as caught:
            runtime.image(given)
        assert caught.value.status == "CORRUPT"
    with pytest.raises(TypeError):
        runtime.image(None)


def test_memory_is_of_numbers(runtime):
    """Pointers of Python would come back as objects that nobody holds."""
    device = runtime.device()
    with pytest.raises(TypeError, match="dtype: expected numbers, got object"):
        device.array(np.array([None]))
    with pytest.raises(ValueError, match=r"shape: expected sizes of at least 0, got \[-1, -2\]"):
        device.empty((-1, -2))


def test_missing_file_is_named(runtime, tmp_path):
    with pytest.raises(GdnError, match="no-such-file"):
        runtime.image(tmp_path / "no-such-file.gdnk")


def test_streams_are_addresses(runtime):
    """ctypes takes a text for the address of its letters."""
    device = runtime.device()
    for stream in ("cuda:0", 1.5, []):
        with pytest.raises(TypeError, match="stream: expected an integer, got "):
            device.synchronize(stream)
    device.synchronize(ctypes.c_void_p(0))


def test_a_path_that_c_would_cut(runtime, image_path):
    with pytest.raises(ValueError, match="image: expected a path without null characters, got"):
        runtime.image(f"{image_path}\0more")


def test_what_is_made_is_logged(runtime, image_path, caplog):
    with caplog.at_level("INFO", logger="gdn"):
        runtime.device(num_workers=1).kernel(runtime.image(image_path), "decode")
    assert [record.levelname for record in caplog.records] == ["INFO", "INFO"]
    device, kernel = caplog.messages
    assert re.fullmatch(r"device: .*CPU, 1 worker", device)
    assert re.fullmatch(r"decode: shared object for .*, loaded in [0-9.]+ ms", kernel)


def test_ranges_are_marked_in_pairs(runtime, image_path):
    device = runtime.device()
    kernel = device.kernel(runtime.image(image_path), "decode")
    arguments = make_layer(seed=3, tokens=2, rows=2, slots=3)
    binding = kernel.bind(**arguments)
    seen = []
    device.mark_ranges(seen.append, lambda: seen.append("end"))
    binding.launch()
    assert seen == ["decode", "end"]
    device.mark_ranges(None)
    binding.launch()
    assert len(seen) == 2


def test_a_cpu_captures_nothing(build_dir):
    device = Runtime(build_dir / "lib/libgdnrt.so").device()
    capturing = ctypes.c_int32(7)
    device._runtime.call("gdnrt_device_is_capturing", device._handle, None, ctypes.byref(capturing))
    assert capturing.value == 0
