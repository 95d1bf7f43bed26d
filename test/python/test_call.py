# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls through tvm-ffi on a CPU: tensors of DLPack and NumPy, what changes between
calls, and errors."""

import threading

import numpy as np
import pytest
import tvm_ffi

import gdn.call as call_module
from gdn import Call, GdnError, Runtime
from gdn.problems import Sizes, make
from gdn.runtime import Pool

SIZES = Sizes(1, 2, (1,) * 4, seed=3, skipped={1: 0})


@pytest.fixture(scope="module")
def runtime(build_dir):
    return Runtime(build_dir / "lib/libgdnrt.so")


@pytest.fixture(scope="module")
def count(runtime, build_dir):
    """A kernel of one parameter, counts, to which it adds 1."""
    image = runtime.image(build_dir / "test/Unit/runtime/test.gdnk")
    return runtime.device().kernel(image, "count")


@pytest.fixture(scope="module")
def layer(runtime, tool, tmp_path_factory):
    """An image of a tiny layer in f32."""
    folder = tmp_path_factory.mktemp("image")
    config = folder / "config.json"
    config.write_text(
        '{"model_type": "qwen3_next", "hidden_size": 128, "hidden_act": "silu",'
        ' "num_hidden_layers": 4, "linear_num_key_heads": 1,'
        ' "linear_num_value_heads": 2, "linear_key_head_dim": 64,'
        ' "linear_value_head_dim": 64, "linear_conv_kernel_dim": 4,'
        ' "rms_norm_eps": 1e-6}'
    )
    path = folder / "layer.gdnk"
    options = ["--io=f32", "--state=f32", "--target=native", "-o", path]
    done = tool("gdn-compile", "--config", config, *options)
    assert done.returncode == 0, done.stderr
    return runtime.image(path)


@pytest.fixture(scope="module")
def decode(runtime, layer):
    return runtime.device().kernel(layer, "decode")


def bind(kernel, arrays: dict):
    pools = {param.name for param in kernel.params if param.kind == "pool"}
    return kernel.bind(**{name: Pool(x) if name in pools else x for name, x in arrays.items()})


def tensors(arrays) -> list:
    """What another library would hand over: DLPack and nothing else."""
    return [tvm_ffi.from_dlpack(array) for array in arrays]


def test_tensors_are_used_in_place(count):
    call, counts = Call(count), np.arange(5)
    call(*tensors([counts]))
    call(counts=tvm_ffi.from_dlpack(counts))
    assert counts.tolist() == [2, 3, 4, 5, 6]


def test_each_call_has_its_own_tensors(count):
    """The same memory in another size, and other memory in the same size."""
    call, counts, others = Call(count), np.zeros(6, np.int64), np.zeros(6, np.int64)
    for array in (counts, counts[:3], others, others[::2], counts):
        call(*tensors([array]))
    assert counts.tolist() == [3, 3, 3, 2, 2, 2]
    assert others.tolist() == [2, 1, 2, 1, 2, 1]


def test_a_failed_call_leaves_the_next_one_right(count):
    call, counts = Call(count), np.zeros(3, np.int64)
    call(*tensors([counts]))
    with pytest.raises(GdnError, match=r"counts: expected rank 1 .*, got 2") as caught:
        call(*tensors([np.zeros((2, 2), np.int64)]))
    assert caught.value.status == "INVALID_ARGUMENT"
    call(*tensors([counts]))
    assert counts.tolist() == [2, 2, 2]


def test_what_is_no_tensor(count):
    call = Call(count)
    with pytest.raises(TypeError, match="counts: expected a tensor"):
        call(7)
    with pytest.raises(TypeError, match="counts: no kernel takes the type code 0 of 8 bits"):
        call(*tensors([np.zeros(3, np.int8)]))
    with pytest.raises(TypeError, match="expected 1 arguments, got 2"):
        call(*tensors([np.zeros(3, np.int64)] * 2))
    with pytest.raises(TypeError, match="amounts: not a parameter"):
        call(amounts=np.zeros(3, np.int64))
    for given in ([], [np.zeros(3, np.int64)] * 2):
        with pytest.raises(TypeError, match=f"count: expected 1 arguments, got {len(given)}; they"):
            call(*given)
    with pytest.raises(GdnError, match="counts: the argument is missing"):
        call(None)


def test_a_layer_gives_the_same_bits_as_a_binding(decode):
    bound, called = make(decode.params, SIZES), make(decode.params, SIZES)
    bind(decode, bound).launch()
    Call(decode)(*tensors(called[param.name] for param in decode.params))
    for name, array in bound.items():
        assert np.array_equal(array, called[name], equal_nan=True), name
    assert not called["out"][1].any()
    assert called["out"][0].all()


@pytest.mark.parametrize("null_slot", [1.5, "0", None, 2**63])
def test_no_null_slot(decode, null_slot):
    with pytest.raises((TypeError, ValueError), match="null_slot: expected an integer"):
        Call(decode, null_slot=null_slot)


def test_the_null_slot_is_that_of_the_call(decode):
    arrays = make(decode.params, SIZES)
    slots = arrays["slots"].copy()
    Call(decode, null_slot=int(slots[2]))(**arrays)
    assert not arrays["out"][2].any()
    assert arrays["out"][0].all()


def test_what_numpy_does_not_lend_goes_through_a_binding(decode):
    """Read-only arrays, as those of bfloat16: the same results, a slower call."""
    bound, called = make(decode.params, SIZES), make(decode.params, SIZES)
    Call(decode)(**bound)
    called["qkvz"].flags.writeable = False
    with pytest.raises(BufferError):
        tvm_ffi.from_dlpack(called["qkvz"])
    Call(decode)(**called)
    assert np.array_equal(bound["out"], called["out"])


def test_workspace(runtime, layer):
    """Taken for the variant that suits the sizes, and kept."""
    kernel = runtime.device(num_workers=2).kernel(layer, "prefill")
    lengths = {"short": (64,), "long": (8192,)}
    arrays = {n: make(kernel.params, Sizes(1, 2, t, seed=4)) for n, t in lengths.items()}
    call = Call(kernel)

    def run(name: str) -> None:
        call(*tensors(arrays[name][param.name] for param in kernel.params))

    assert call.workspace_bytes == 0
    run("short")
    assert call.workspace_bytes == 0
    run("long")
    bound = bind(kernel, make(kernel.params, Sizes(1, 2, lengths["long"], seed=4)))
    assert call.workspace_bytes == bound.workspace_bytes > 0
    run("short")
    assert call.workspace_bytes == bound.workspace_bytes
    assert np.isfinite(arrays["long"]["out"]).all()


def test_memory_of_another_device_is_refused(count, monkeypatch):
    """As a kernel of a GPU refuses memory of the host."""
    monkeypatch.setitem(call_module._DLPACK_DEVICES, "cpu", 2)
    call = Call(count)
    with pytest.raises(ValueError, match="counts: expected memory of DLPack's device 2:0, got 1:0"):
        call(*tensors([np.zeros(3, np.int64)]))
    # Without elements there is no memory to be elsewhere: nothing runs.
    call(*tensors([np.zeros(0, np.int64)]))


def test_two_threads_at_once(decode):
    """Each launches what it was called with, or fails."""
    sizes = [Sizes(1, 2, (1,) * count, seed=count) for count in (1, 20, 30, 40)]
    call, sets = Call(decode), [make(decode.params, each) for each in sizes]
    wanted = [{name: array.copy() for name, array in arrays.items()} for arrays in sets]
    for arrays in wanted:
        bind(decode, arrays).launch()
    refused, wrong = [], []

    def work(arrays, want):
        for _ in range(150):
            given = {name: array.copy() for name, array in arrays.items()}
            try:
                call(*given.values())
            except GdnError as error:
                refused.append((error.status, str(error)))
                continue
            equal = [np.array_equal(given[n], want[n], equal_nan=True) for n in given]
            wrong.extend(name for name, is_equal in zip(given, equal, strict=True) if not is_equal)

    threads = [threading.Thread(target=work, args=pair) for pair in zip(sets, wanted, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert {status for status, _ in refused} <= {"INVALID_ARGUMENT"}
    assert all("call: expected one thread at a time" in text for _, text in refused)


def test_a_call_frees_its_memory_behind_the_end_of_its_device(runtime, layer):
    """As at the end of the interpreter, where objects end in any order."""
    device = runtime.device(num_workers=2)
    kernel = device.kernel(layer, "prefill")
    arrays = make(kernel.params, Sizes(1, 2, (8192,), seed=4))
    call = Call(kernel)
    call(*tensors(arrays[param.name] for param in kernel.params))
    assert call.workspace_bytes > 0
    device.__del__()
    call.__del__()
    assert np.isfinite(arrays["out"]).all()
