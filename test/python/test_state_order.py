# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""States that lie as [dk, dv]: images of gdn-compile --state-layout=kv against the reference, on
the CPU and on the driver that runs PTX there (test/PTX), and functions of arrays, whose strides say
how states lie."""

import os
import subprocess

import numpy as np
import pytest
from conftest import ROOT

from gdn import GdnError, Runtime, rule, rule_entry
from gdn.rule import gated_delta_rule
from gdn.rule_pool import delta_prefill
from gdn.rule_step import delta_step
from gdn.rule_verify import gated_delta_verify

H, HV, DK, DV, SLOTS = 2, 4, 16, 24, 9
ENTRIES = {
    "slots": ("decode", "verify", "copy_slots", "zero_slots"),
    "buffer": ("verify", "commit"),
    "lazy": ("verify", "commit"),
}


def compile_image(tool, path, *options):
    done = tool(
        "gdn-compile",
        *["--preset=qwen3.5-4b"] * all("preset" not in option for option in options),
        *("--io=bf16", "--state-layout=kv", "--ptxas=none"),
        *options,
        *("-o", path),
    )
    assert done.returncode == 0, done.stderr
    return path


def check(build_dir, image, entry, generate, *options, driver=None):
    """gdn-run beside the reference, whose ops know nothing of the order of states in memory."""
    # Verify with pending tokens reads rows behind the last one, whose products nobody uses.
    on_cpu = {"LD_LIBRARY_PATH": str(driver), "GDN_PTX_UNWRITTEN": "0"}
    paths = on_cpu if driver else {}
    command = [build_dir / "bin/gdn-run", image, f"--entry={entry}", f"--generate={generate}"]
    command += ["--check", f"--device={'cuda' if driver else 'cpu'}", *options]
    done = subprocess.run(command, env=os.environ | paths, cwd=ROOT, text=True, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "state_pool" in done.stdout and "ok" in done.stdout


@pytest.mark.parametrize("kind", ENTRIES)
@pytest.mark.parametrize("state", ["f32", "bf16"])
def test_gpu_steps(build_dir, ptx_driver, tool, tmp_path, state, kind):
    options = [f"--state={state}", f"--verify={kind}", f"--only={','.join(ENTRIES[kind])}"]
    image = compile_image(tool, tmp_path / "image.gdnk", *options, "--target=sm_90a")
    for entry in ENTRIES[kind]:
        lengths = "lens=1:3:4:2" if entry == "verify" or kind == "lazy" else "rows=4"
        generate = f"{lengths},Hk=1,Hv=2" + ",skip=1" * (entry in ("decode", "verify"))
        check(build_dir, image, entry, generate, driver=ptx_driver)


@pytest.mark.parametrize("state", ["f32", "bf16"])
@pytest.mark.parametrize("preset", ["qwen3.5-4b", "kimi-linear-48b-a3b"])
def test_gpu_decode(build_dir, ptx_driver, tool, tmp_path, state, preset):
    """Every variant, of inputs that are all aligned."""
    options = [f"--state={state}", f"--preset={preset}", "--layout=ready", "--outputs=core"]
    options += ["--only=decode", "--target=sm_90a"]
    image = compile_image(tool, tmp_path / "image.gdnk", *options)
    narrow = ["narrow"] * (state == "bf16" and preset == "qwen3.5-4b")
    for variant in ("rows", "aligned", *narrow):
        options = ("rows=3,Hk=1,Hv=2", f"--variant={variant}")
        check(build_dir, image, "decode", *options, driver=ptx_driver)


@pytest.mark.parametrize("state", ["f32", "bf16"])
def test_gpu_prefill(build_dir, ptx_driver, tool, tmp_path, state):
    options = [f"--state={state}", "--layout=ready", "--outputs=core", "--only=prefill"]
    options += ["--checkpoints", "--has-initial", "--target=sm_90a"]
    image = compile_image(tool, tmp_path / "image.gdnk", *options)
    generate = "lens=1:70:130,Hk=1,Hv=1,checkpoints=64"
    check(build_dir, image, "prefill", generate, driver=ptx_driver)


@pytest.mark.parametrize("state, entries", [("f32", "decode,verify"), ("bf16", "prefill")])
def test_cpu(build_dir, tool, tmp_path, state, entries):
    """Prefill of f32 is in test/Integration/cpu/MemoryTest.cpp."""
    options = [f"--state={state}", "--verify=slots", "--checkpoints", "--has-initial"]
    options += ["--layout=ready", "--outputs=core", f"--only={entries}", "--target=x86-64-v3"]
    image = compile_image(tool, tmp_path / "image.gdnk", *options)
    for entry in entries.split(","):
        generate = "lens=1:3:70:5,Hk=1,Hv=2,skip=1,checkpoints=64"
        check(build_dir, image, entry, generate)


def test_an_image_says_its_order(build_dir, tool, tmp_path):
    """In a fact; and binding refuses states of the other one, of the same shape though they are."""
    options = ["--state=f32", "--target=x86-64-v3", "--layout=ready", "--outputs=core"]
    image = compile_image(tool, tmp_path / "image.gdnk", *options, "--only=copy_slots")
    runtime = Runtime(build_dir / "lib/libgdnrt.so")
    device = runtime.device()
    loaded = runtime.image(image)
    assert loaded.attributes("copy_slots")["state_layout"] == "kv"
    call = {"slots": np.array([1], np.int32), "write_slots": np.array([2], np.int32)}
    states = np.random.default_rng(0).standard_normal((3, 1, 128, 128)).astype(np.float32)
    kernel = device.kernel(loaded, "copy_slots")
    with pytest.raises(GdnError, match="state_pool: expected stride 1 in dim 2, got 128"):
        kernel.bind(**call, state_pool=states)
    kernel.bind(**call, state_pool=states.swapaxes(2, 3)).launch()
    assert np.array_equal(states[1], states[2]) and not np.array_equal(states[0], states[1])


def draw(rng, rows):
    def normal(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    q, k = (x / np.linalg.norm(x, axis=-1, keepdims=True) for x in (normal(rows, H, DK),) * 2)
    gates = {"log_decay": -np.abs(normal(rows, HV)), "beta": rng.uniform(0, 1, (rows, HV))}
    return {"q": q, "k": k, "v": normal(rows, HV, DV)} | gates


def turned(states):
    """The same states, in memory as [dk, dv]."""
    return np.ascontiguousarray(states.swapaxes(-1, -2)).swapaxes(-1, -2)


@pytest.fixture(scope="module")
def runtime(build_dir):
    return Runtime(build_dir / "lib/libgdnrt.so")


@pytest.fixture(params=["own kernels", "copies"])
def kernels(request, compiler_on_path, monkeypatch):
    """With kernels of the order, and where there are none."""
    if request.param == "copies":
        for module in (rule, rule_entry):
            monkeypatch.setattr(module, "find_refusal", lambda *_: "there is none")
    return request.param


def states_of(rng):
    return rng.standard_normal((SLOTS, HV, DV, DK)).astype(np.float32)


def test_a_step(runtime, kernels):
    rng = np.random.default_rng(1)
    given, states = draw(rng, 3), states_of(rng)
    other, slots = turned(states), np.array([4, 0, 8])
    out = delta_step(**given, states=states, slots=slots, runtime=runtime)
    same = delta_step(**given, states=other, slots=slots, runtime=runtime)
    assert np.allclose(out, same, atol=1e-6) and np.allclose(states, other, atol=1e-6)
    assert not np.allclose(other, turned(states_of(np.random.default_rng(1))))


def test_prefill_on_a_pool(runtime, kernels):
    rng = np.random.default_rng(2)
    given, states = draw(rng, 9), states_of(rng)
    other, calls = turned(states), {"slots": np.array([3, 1]), "cu_seqlens": np.array([0, 2, 9])}
    out = delta_prefill(**given, states=states, **calls, runtime=runtime)
    same = delta_prefill(**given, states=other, **calls, runtime=runtime)
    assert np.allclose(out, same, atol=1e-6) and np.allclose(states, other, atol=1e-6)


def test_verify_to_a_buffer(runtime, kernels):
    rng = np.random.default_rng(3)
    given, states = draw(rng, 4), states_of(rng)
    gates = {"a": rng.standard_normal((4, HV)), "b": rng.standard_normal((4, HV))}
    gates |= {"A_log": np.zeros(HV), "dt_bias": np.zeros(HV)}
    calls = {name: given[name] for name in "qkv"} | gates
    calls |= {"slots": np.array([3, 1]), "cu_seqlens": np.array([0, 1, 4])}
    calls["token_slots"] = np.array([[0, 5, 6], [1, 2, 3]])
    buffer, kept = states_of(rng), states.copy()
    other, other_buffer = turned(states), turned(buffer)
    options = {"runtime": runtime}
    out = gated_delta_verify(**calls, states=states, token_states=buffer, **options)
    same = gated_delta_verify(**calls, states=other, token_states=other_buffer, **options)
    assert np.allclose(out, same, atol=1e-6) and np.allclose(buffer, other_buffer, atol=1e-6)
    assert np.array_equal(other, kept)
    with pytest.raises(ValueError, match="token_states: expected the order of states in memory"):
        gated_delta_verify(**calls, states=other, token_states=buffer, **options)


@pytest.mark.parametrize("tokens", [1, 5])
def test_states_of_a_function(runtime, kernels, tokens):
    """Given and returned as [N, Hv, dk, dv], contiguous where a kernel wrote them."""
    rng = np.random.default_rng(4)
    given = {name: x.reshape(2, tokens, *x.shape[1:]) for name, x in draw(rng, 2 * tokens).items()}
    states = states_of(rng)[:2]
    out, last = gated_delta_rule(**given, initial_state=states, runtime=runtime)
    swapped = np.ascontiguousarray(states.swapaxes(-1, -2))
    kept, options = swapped.copy(), {"state_v_first": False, "runtime": runtime}
    same, other = gated_delta_rule(**given, initial_state=swapped, **options)
    assert other.shape == (2, HV, DK, DV)
    assert np.allclose(out, same, atol=1e-6)
    assert np.allclose(last, other.swapaxes(-1, -2), atol=1e-6)
    assert np.array_equal(swapped, kept)
    assert other.flags.c_contiguous == (kernels == "own kernels")


def test_other_strides(runtime, compiler_on_path):
    states = np.zeros((SLOTS, HV, 2 * DV, 2 * DK), np.float32)[:, :, ::2, ::2]
    with pytest.raises(ValueError, match="states: expected one of the last two dimensions to be"):
        delta_step(**draw(np.random.default_rng(5), 1), states=states, slots=np.array([0]))
