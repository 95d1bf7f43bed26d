# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decode and verify that write states every W tokens, on a driver that runs PTX on the CPU: many
steps give what steps in place give, whatever the phases of key heads are, and a commit ends it."""

import json
import os
import subprocess
import sys

import pytest
from conftest import ROOT

TOKENS, ROWS, STEPS = 4, 11, 10
# Launches are dependent, and the last one begins with states of the one ahead.
PROGRAM = f"""
import sys
import ml_dtypes
import numpy as np
from gdn import Pool, Runtime
library, driver, in_place, deferred, variant = sys.argv[1:]
gpu = Runtime(library).cuda(driver=driver)
rng = np.random.default_rng(3)
keys, values, rows, slots, room = 2, 4, {ROWS}, 16, {TOKENS}

def draw(*shape, type=ml_dtypes.bfloat16):
    return rng.standard_normal(shape).astype(type)

def unit(x):
    return (x / np.linalg.norm(x.astype("f4"), axis=-1, keepdims=True)).astype(x.dtype)

states = 0.1 * draw(slots, values, 128, 128, type="f4")
# One row has no slot, and one the slot that is null.
ids = rng.permutation(np.arange(1, slots))[:rows].astype("i4")
ids[2], ids[5] = -1, 0
phases = rng.integers(0, room + 1, (slots, keys)).astype("i4")
nan = float("nan")

def kernels(path, names):
    image = gpu._runtime.image(path)
    return [gpu.kernel(image, name) for name in names]

(plain,) = kernels(in_place, ["decode"])
step, commit = kernels(deferred, ["decode", "commit"])
step.variant = variant
# Both begin with the same states: what is pending here adds nothing.
own, other = gpu.array(states), gpu.array(states)
pools = dict(
    pending_keys=np.full((slots, keys, room, 128), nan, "f4"),
    pending_deltas=np.full((slots, values, room, 128), nan, "f4"),
    pending_decays=np.full((slots, values, room), nan, "f4"),
)
for slot in range(slots):
    for head in range(keys):
        n = phases[slot, head]
        pools["pending_keys"][slot, head, :n] = 0
        for v in range(2 * head, 2 * head + 2):
            pools["pending_deltas"][slot, v, :n] = 0
            pools["pending_decays"][slot, v, :n] = 0
pools = {{name: gpu.array(array) for name, array in pools.items()}}
pools["pending_counts"] = counted = gpu.array(phases)
pools = {{name: Pool(pool, 0) for name, pool in pools.items()}}
slot_ids, workspace = gpu.array(ids), None
for t in range({STEPS}):
    q, k, v = unit(draw(rows, keys, 128)), unit(draw(rows, keys, 128)), draw(rows, values, 128)
    given = dict(q=q, k=k, v=v)
    given["log_decay"] = -np.abs(rng.standard_normal((rows, values))).astype("f4") / 4
    given["beta"] = rng.uniform(0, 1, (rows, values)).astype("f4")
    given = {{name: gpu.array(array) for name, array in given.items()}} | {{"slots": slot_ids}}
    out = [gpu.array(draw(rows, values, 128)) for _ in range(2)]
    plain.bind(**given, state_pool=Pool(other, 0), core=out[0]).launch()
    binding = step.bind(**given, **pools, state_pool=Pool(own, 0), core=out[1])
    binding.allow_dependent_launch()
    if binding.workspace_bytes:
        if workspace is None:
            workspace = gpu.array(np.zeros(binding.workspace_bytes, "u1"))
        binding.set_workspace(workspace)
    binding.launch()
    gpu.synchronize()
    want, got = (x.numpy().astype("f4") for x in out)
    assert np.isfinite(got).all(), t
    error = np.sqrt(((want - got) ** 2).mean() / (want**2).mean())
    assert error < 4e-3, (t, error)
live = ids[ids > 0]
counts = counted.numpy()
assert ((counts >= 0) & (counts <= room)).all() and (counts[live] != phases[live]).any()
dead = np.setdiff1d(np.arange(slots), live)
assert (counts[dead] == phases[dead]).all()
assert (own.numpy()[dead] == states[dead]).all()
commit.bind(**pools, state_pool=Pool(own, 0), slots=slot_ids).launch()
gpu.synchronize()
want, got = other.numpy()[live], own.numpy()[live]
assert np.sqrt(((want - got) ** 2).mean() / (want**2).mean()) < 1e-5
assert (counted.numpy()[live] == 0).all()
"""

# Each step of a verify accepts some of the last one's tokens; float64 keeps pools of its own.
VERIFY = """
import sys
import numpy as np
from gdn import Runtime, checks, problems, reference
library, driver, path = sys.argv[1:]
runtime = Runtime(library)
gpu = runtime.cuda(driver=driver)
image = runtime.image(path)
verify, commit = (gpu.kernel(image, name) for name in ("verify", "commit"))
layers = [reference.Layer.of(image.attributes(name)) for name in ("verify", "commit")]
rng = np.random.default_rng(5)
rows, most = 4, 4
weights = ("A_log", "dt_bias", "conv_weight", "norm_weight")

def names_of(kernel, kind):
    return [param.name for param in kernel.params if (param.kind == "pool") == (kind == "pool")]

# Of each row's last step with tokens, how many those are.
last, own, exact = np.zeros(rows, int), None, None
for step in range(9):
    accepted = tuple(int(rng.integers(0, n + 1)) for n in last)
    lengths = rng.integers(0 if step else 1, most + 1, rows)
    lengths[step % rows] = 2
    sizes = problems.Sizes(1, 2, tuple(lengths), slots=7, seed=step, accepted=accepted, steps=most)
    made = problems.make(verify.params, sizes)
    if step == 0:
        first = made
        own = {name: made[name] for name in names_of(verify, "pool")}
        exact = dict(own)
    made |= {name: first[name] for name in weights}
    want = reference.evaluate(layers[0], made | exact)
    after = checks.run(gpu, verify, made | own)
    error = checks.relative_error(after["out"].astype("f8"), want["out"])
    assert error < 5e-3, (step, error)
    own = {name: after.get(name, own[name]) for name in own}
    exact = {name: want[name] for name in exact}
    last = np.where(lengths > 0, lengths, last)
made = problems.make(commit.params, problems.Sizes(1, 2, (1,) * rows, slots=7, steps=most))
made["num_accepted"] = last.astype(made["num_accepted"].dtype)
after = checks.run(gpu, commit, made | {name: own[name] for name in names_of(commit, "pool")})
want = reference.evaluate(layers[1], made | exact)
used = made["slots"]
error = checks.relative_error(after["state_pool"][used].astype("f8"), want["state_pool"][used])
assert error < 1e-5, error
assert not after["pending_counts"][used].any()
assert (after["conv_pool"][used, :, :3] == want["conv_pool"][used, :, :3].astype("f4")).all()
"""


@pytest.fixture(scope="module")
def images(tool, tmp_path_factory, ptx_driver):
    folder = tmp_path_factory.mktemp("deferred")
    options = ["--preset=qwen3-next-80b-a3b", "--layout=ready", "--outputs=core", "--io=bf16"]
    options += ["--state=f32", "--target=sm_90a", "--ptxas=none"]
    paths = [folder / "in_place.gdnk", folder / "deferred.gdnk"]
    for path, more in zip(
        paths,
        (["--only=decode"], [f"--defer-writes={TOKENS}", "--only=decode,commit"]),
        strict=True,
    ):
        done = tool("gdn-compile", *options, *more, "-o", path)
        assert done.returncode == 0, done.stderr
    return paths


@pytest.mark.parametrize("variant", ["rows", "persistent"])
def test_many_steps(images, build_dir, ptx_driver, variant):
    paths = [build_dir / "lib/libgdnrt.so", ptx_driver / "libcuda.so.1", *images]
    command = [sys.executable, "-c", PROGRAM, *map(str, paths), variant]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run(command, env=environment, text=True, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_verify_accepts_some_of_each_step(tool, build_dir, ptx_driver, tmp_path):
    image = tmp_path / "verify.gdnk"
    options = ["--preset=qwen3-next-80b-a3b", "--io=bf16", "--state=f32", "--defer-writes=8"]
    options += ["--verify=lazy", "--verify-tokens=4", "--only=verify,commit", "--target=sm_90a"]
    done = tool("gdn-compile", *options, "--ptxas=none", "-o", image)
    assert done.returncode == 0, done.stderr
    paths = [build_dir / "lib/libgdnrt.so", ptx_driver / "libcuda.so.1", image]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "python"), "GDN_PTX_UNWRITTEN": "0"}
    command = [sys.executable, "-c", VERIFY, *map(str, paths)]
    done = subprocess.run(command, env=environment, text=True, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("preset", ["qwen3-next-80b-a3b", "kimi-k3"])
def test_device_check(tool, build_dir, on_ptx_driver, tmp_path, preset):
    image, report = tmp_path / "deferred.gdnk", tmp_path / "report.json"
    options = [f"--preset={preset}", "--io=bf16", "--state=f32,bf16", "--defer-writes=8"]
    options += ["--verify=lazy", "--only=decode,verify,commit", "--target=sm_90a", "--ptxas=none"]
    done = tool("gdn-compile", *options, "-o", image)
    assert done.returncode == 0, done.stderr
    check = ["-m", "gdn.device_check", image, "--quick", "--no-times", "--output", report]
    library = build_dir / "lib/libgdnrt.so"
    # Rows of a verify behind the last one are not written.
    on_ptx_driver(*check, "--library", library, GDN_PTX_UNWRITTEN="0")
    assert len(json.loads(report.read_text())["kernels"]) == 6


@pytest.mark.parametrize(
    ("states", "entries"),
    [
        ("i8x2", "decode,verify,commit,zero_slots"),
        ("i8x2_upper", "decode"),
        pytest.param("i8x2,i8", "decode,verify,commit,copy_slots", marks=pytest.mark.long),
    ],
)
def test_states_in_planes(tool, build_dir, on_ptx_driver, tmp_path, states, entries):
    image, report = tmp_path / "planes.gdnk", tmp_path / "report.json"
    options = ["--preset=qwen3-next-80b-a3b", "--io=bf16", f"--state={states}", "--defer-writes=8"]
    options += ["--verify=lazy", "--has-initial", f"--only={entries}"]
    done = tool("gdn-compile", *options, "--target=sm_90a", "--ptxas=none", "-o", image)
    assert done.returncode == 0, done.stderr
    check = ["-m", "gdn.device_check", image, "--quick", "--no-times", "--output", report]
    library = build_dir / "lib/libgdnrt.so"
    # Rows of a verify behind the last one are not written.
    on_ptx_driver(*check, "--library", library, GDN_PTX_UNWRITTEN="0")
    kernels = json.loads(report.read_text())["kernels"]
    assert len(kernels) == len(states.split(",")) * len(entries.split(","))


@pytest.mark.parametrize("tokens, is_there", [(6, False), (8, True)])
def test_numbers_of_tokens_with_a_persistent_kernel(tool, tokens, is_there):
    """Multiples of four, for states of one array; every number has the other kernel."""
    options = ["--preset=qwen3-next-80b-a3b", f"--defer-writes={tokens}", "--only=decode"]
    done = tool("gdn-compile", *options, "--state=f32", "--target=sm_90a", "--emit=gpu")
    assert done.returncode == 0, done.stderr
    assert ("func.func @decode_persistent(" in done.stdout) == is_there
    assert "func.func @decode(" in done.stdout
