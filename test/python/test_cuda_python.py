# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The Python binding's arrays and devices, without a GPU: DLPack, memory of a
device over a stand-in of the CUDA driver, and what is refused."""

import numpy as np
import pytest

from gdn import GdnError, Runtime, StatePool, StatePoolShape
from gdn.arrays import view


@pytest.fixture(scope="module")
def runtime(build_dir):
    return Runtime(build_dir / "lib/libgdnrt.so")


@pytest.fixture(scope="module")
def fake_gpu(runtime, build_dir):
    return runtime.cuda(driver=build_dir / "lib/libgdnrt_fake_cuda.so")


class Foreign:
    """An array of another library: nothing but DLPack."""

    def __init__(self, array: np.ndarray):
        self._array = array

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()

    def __dlpack__(self, **arguments):
        return self._array.__dlpack__(**arguments)


def test_a_dlpack_view_is_the_array_itself():
    array = np.arange(24, dtype=np.float32).reshape(2, 3, 4)[:, ::2, 1:]
    expected, found = view("x", array), view("x", Foreign(array))
    for field in ("data", "dtype", "shape", "strides", "device"):
        assert getattr(found, field) == getattr(expected, field), field
    assert (found.dtype, found.strides, found.device) == ("float32", (12, 8, 1), "cpu")
    assert not found.is_contiguous
    assert view("x", Foreign(np.zeros((3, 1, 2), np.int64))).is_contiguous


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "int64", "float64", "bool"])
def test_dlpack_dtypes(dtype):
    assert view("x", Foreign(np.zeros(3, dtype))).dtype == dtype


def test_refused_arrays():
    with pytest.raises(TypeError, match="x: expected a NumPy array or one with __dlpack__, got l"):
        view("x", [1, 2])
    with pytest.raises(TypeError, match=r"x: expected one of float32, .*, got int8"):
        view("x", np.zeros(2, np.int8))
    with pytest.raises(TypeError, match="DLPack's type code 0 of 8 bits"):
        view("x", Foreign(np.zeros(2, np.int8)))
    with pytest.raises(TypeError, match=r"x: expected one of .*, got DLPack's type code 1"):
        view("x", Foreign(np.zeros(2, np.uint16)))


def test_no_gpu_is_an_error_with_the_reason(runtime):
    with pytest.raises(GdnError, match=r"cuda: no driver: .*no_such_driver") as caught:
        runtime.cuda(driver="/no_such_driver.so")
    assert caught.value.status == "UNSUPPORTED"


def test_device_memory(fake_gpu):
    assert fake_gpu.kind == "cuda"
    assert fake_gpu.name == "Fake GPU, sm_90, 132 multiprocessors"
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    copy = fake_gpu.array(array)
    assert np.array_equal(copy.numpy(), array)
    assert view("x", copy).strides == (3, 1)
    assert view("x", copy).device == "cuda"
    copy.write(array * 2)
    assert np.array_equal(copy.numpy(), array * 2)
    with pytest.raises(ValueError, match=r"expected float32\[2, 3\], got float32\[6\]"):
        copy.write(array.reshape(6))
    assert fake_gpu.empty((0, 4), np.int32).numpy().shape == (0, 4)
    fake_gpu.synchronize()


def test_host_arrays_are_refused_by_a_gpu(runtime, fake_gpu):
    from gdn.runtime import _argument

    with pytest.raises(ValueError, match="x: expected memory of cuda:0, got cpu"):
        _argument("x", np.zeros(3, np.float32), fake_gpu, written=False)
    _argument("x", np.zeros(0, np.float32), fake_gpu, written=False)
    with pytest.raises(ValueError, match="x: expected memory of cpu, got cuda:0"):
        _argument("x", fake_gpu.empty((3,)), runtime.device(), written=False)


def test_kernels_take_dlpack(runtime, build_dir):
    """The test image of the unit tests adds 1 to counts."""
    image = runtime.image(build_dir / "test/Unit/runtime/test.gdnk")
    counts = np.arange(5)
    runtime.device().kernel(image, "count")(counts=Foreign(counts))
    assert counts.tolist() == [1, 2, 3, 4, 5]
    copy = runtime.device().array(counts)
    kernel = runtime.device().kernel(image, "count", code=0)
    kernel(counts=copy)
    assert copy.numpy().tolist() == [2, 3, 4, 5, 6]
    assert kernel.code.target == "x86-64"
    with pytest.raises(GdnError, match="count: code index 7 is past the 1 codes"):
        runtime.device().kernel(image, "count", code=7)


def test_state_pools_of_a_gpu(fake_gpu):
    shape = StatePoolShape(2, 3, 1, 2, 4, 4, state_dtype="bfloat16")
    pool = StatePool(fake_gpu, shape)
    state = pool.state(1)
    assert (state.device, state.shape, state.dtype) == ("cuda", (4, 2, 4, 4), "bfloat16")
    assert view("x", state) is state
    assert pool.conv(0).strides == (48, 3, 1)
    slots = pool.allocate(2)
    pool.copy_states(slots[:1], slots[1:], stream=7)
    pool.free(slots)
    with pytest.raises(ValueError, match="state: expected memory of cuda:0, got cpu"):
        host = np.zeros((2, 4, 2, 4, 4), np.float32)
        StatePool.wrap(fake_gpu, shape, host, np.zeros((2, 4, 16, 3), np.float32))
    with pytest.raises(ValueError, match="slots: expected ids on the host, got memory of a GPU"):
        pool.reset_states(fake_gpu.array(np.array([1], np.int32)))
