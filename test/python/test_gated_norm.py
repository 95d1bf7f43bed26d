# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The gated norm as a function of arrays, on the CPU and as a GPU kernel that the PTX machine
runs, against float64."""

import ml_dtypes
import numpy as np
import pytest

from gdn import Runtime
from gdn.compiler import Layer, compile
from gdn.gated_norm import gated_rms_norm
from gdn.op_kernels import NormKind

TYPES = {"float32": np.float32, "bfloat16": ml_dtypes.bfloat16, "float16": np.float16}
UNIT = {"float32": 2e-6, "bfloat16": 4e-3, "float16": 1e-3}

pytestmark = pytest.mark.usefixtures("compiler_on_path")


@pytest.fixture(scope="module")
def runtime(build_dir):
    return Runtime(build_dir / "lib/libgdnrt.so")


def draw(io="float32", shape=(5, 3, 40)):
    rng = np.random.default_rng(shape[-1])
    x, gate = rng.standard_normal((2, *shape)).astype(TYPES[io])
    return x, gate, rng.standard_normal(shape[-1]).astype(np.float32)


def expected(x, gate, weight, eps=1e-6, activation="silu", after=False):
    x, gate, weight = (array.astype(np.float64) for array in (x, gate, weight))
    factor = 1 / (1 + np.exp(-gate))
    if activation == "silu":
        factor *= gate
    x = x * factor if after else x
    x = x / np.sqrt((x**2).mean(-1, keepdims=True) + eps) * weight
    return x if after else x * factor


def check(got, want, io):
    assert np.abs(got.astype(np.float64) - want).max() / np.abs(want).max() < UNIT[io]


@pytest.mark.parametrize("io", TYPES)
@pytest.mark.parametrize("size", [8, 128, 192])
def test_norm(runtime, io, size):
    x, gate, weight = draw(io, (5, 3, size))
    check(gated_rms_norm(x, gate, weight, runtime=runtime), expected(x, gate, weight), io)


@pytest.mark.parametrize("activation", ["silu", "sigmoid"])
@pytest.mark.parametrize("after", [False, True])
def test_gate_order_and_epsilon(runtime, activation, after):
    x, gate, weight = draw()
    x *= 1e-2
    got = gated_rms_norm(
        x, gate, weight, eps=1e-3, activation=activation, norm_after_gate=after, runtime=runtime
    )
    check(got, expected(x, gate, weight, 1e-3, activation, after), "float32")


def test_views_and_a_result_that_is_given(runtime):
    x, gate, weight = draw()
    both = np.full((5, 3, 100), np.nan, np.float32)
    both[..., :40], both[..., 50:90] = x, gate
    out = np.full((5, 3, 48), np.nan, np.float32)
    got = gated_rms_norm(
        both[..., :40], both[..., 50:90], weight, out=out[..., :40], runtime=runtime
    )
    check(got, expected(x, gate, weight), "float32")
    assert np.isnan(out[..., 40:]).all()


def test_nothing_to_do(runtime):
    x, gate, weight = draw(shape=(0, 3, 40))
    assert gated_rms_norm(x, gate, weight, runtime=runtime).shape == (0, 3, 40)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": np.zeros((5, 40), np.float32)}, r"x: expected the shape \[T, H, d\], got \[5, 40\]"),
        ({"gate": np.zeros((5, 2, 40), np.float32)}, r"gate: expected the shape \[5, 3, 40\]"),
        ({"gate": np.zeros((5, 3, 40), np.float16)}, "gate: expected float32, the type of x"),
        ({"weight": np.zeros(39, np.float32)}, r"weight: expected the shape \[40\], got \[39\]"),
        ({"eps": 0.0}, "eps: expected a positive number of f32, got 0.0"),
        ({"eps": 1e-46}, "eps: expected a positive number of f32, got 1e-46"),
        ({"activation": "gelu"}, "activation: expected silu or sigmoid, got gelu"),
    ],
)
def test_what_is_refused(runtime, change, message):
    given = dict(zip(("x", "gate", "weight"), draw(), strict=True)) | change
    with pytest.raises(ValueError, match=message):
        gated_rms_norm(runtime=runtime, **given)


def test_a_result_that_is_read_only(runtime):
    x, gate, weight = draw()
    out = np.zeros_like(x)
    for array in (x, gate, weight):
        array.flags.writeable = False
    gated_rms_norm(x, gate, weight, out=out, runtime=runtime)
    out.flags.writeable = False
    with pytest.raises(ValueError, match="out: expected an array that can be written"):
        gated_rms_norm(x, gate, weight, out=out, runtime=runtime)


def test_heads_that_no_kernel_has(runtime):
    with pytest.raises(ValueError, match="x: expected heads of a multiple of 8 up to 512, got 20"):
        gated_rms_norm(*draw(shape=(2, 2, 20)), runtime=runtime)


@pytest.mark.parametrize(("io", "size", "after"), [("bfloat16", 128, False), ("float32", 40, True)])
def test_the_kernel_of_a_gpu(build_dir, ptx_driver, io, size, after):
    gpu = Runtime(build_dir / "lib/libgdnrt.so").cuda(driver=ptx_driver / "libcuda.so.1")
    x, gate, weight = draw(io, (5, 3, size))
    layer = Layer(NormKind(size, after, io).layer())
    image = gpu._runtime.image(compile(layer, "sm_90a", options=["--ptxas=none"]))
    y = gpu.array(np.full(x.shape, np.nan, x.dtype))
    arrays = {"x": x, "gate": gate, "weight": weight, "constants": np.float32([1e-5, 0])}
    kernel = gpu.kernel(image, "norm")
    kernel.bind(y=y, **{name: gpu.array(array) for name, array in arrays.items()}).launch()
    gpu.synchronize()
    check(y.numpy(), expected(x, gate, weight, 1e-5, "sigmoid", after), io)
