# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays that a kernel may not have: read-only ones that it would write, bytes in another
order, memory of another device; and ids that are no ids."""

from types import SimpleNamespace

import numpy as np
import pytest
from gdn_layer_model import compile_image

from gdn import Pool, Runtime, StatePool, StatePoolShape
from gdn.arrays import View, argument, view
from gdn.layers.attention import CommonAttentionMetadata, GDNAttentionMetadataBuilder, GDNLayer
from gdn.layers.attention.host_arrays import on_host

HK, HV, D, SLOTS = 1, 2, 64, 3


@pytest.fixture(scope="module")
def runtime(build_dir):
    return Runtime(build_dir / "lib/libgdnrt.so")


@pytest.fixture(scope="module")
def decode(runtime, tool, tmp_path_factory):
    path = compile_image(tool, tmp_path_factory.mktemp("image"), "--layout=split", "--outputs=core")
    return runtime.device().kernel(runtime.image(path), "decode")


def arguments(kernel) -> dict[str, np.ndarray]:
    """Zeros for every parameter of two rows."""
    sizes = {"N": 2, "Hk": HK, "Hv": HV, "P": SLOTS}

    def size(form: str) -> int:
        total = 0
        for term in form.replace(" ", "").split("+"):
            product = 1
            for factor in term.split("*"):
                product *= sizes[factor] if factor in sizes else int(factor)
            total += product
        return total

    return {
        param.name: np.zeros([size(d) for d in param.dims], param.dtype) for param in kernel.params
    }


def bound(kernel, arrays: dict[str, np.ndarray]):
    pools = {param.name for param in kernel.params if param.kind == "pool"}
    return kernel.bind(**{n: Pool(a) if n in pools else a for n, a in arrays.items()})


def frozen(array: np.ndarray) -> np.ndarray:
    copy = array.copy()
    copy.flags.writeable = False
    return copy


def test_a_null_slot_that_is_too_large(decode):
    """It would become slot 0."""
    arrays = arguments(decode)
    with pytest.raises(ValueError, match=f"state_pool: null_slot: .* of 64 bits, got {2**64}"):
        decode.bind(**arrays | {"state_pool": Pool(arrays["state_pool"], 2**64)})
    for other in ("0", 1.5, None):
        with pytest.raises(TypeError, match="state_pool: null_slot: expected an integer, got"):
            decode.bind(**arrays | {"state_pool": Pool(arrays["state_pool"], other)})


def test_what_a_kernel_writes_may_not_be_read_only(decode):
    arrays = arguments(decode)
    bound(decode, arrays).launch()
    written = [param.name for param in decode.params if param.access != "read"]
    assert {"core", "conv_pool", "state_pool"} <= set(written)
    for name in written:
        with pytest.raises(ValueError, match=f"{name}: expected an array that can be written"):
            bound(decode, arrays | {name: frozen(arrays[name])})
    # Bytes are read-only, and a constant of the program.
    text = bytes(arrays["core"].nbytes)
    core = np.frombuffer(text, arrays["core"].dtype).reshape(arrays["core"].shape)
    with pytest.raises(ValueError, match="core: expected an array that can be written"):
        bound(decode, arrays | {"core": core})
    reads = [param.name for param in decode.params if param.access == "read"]
    bound(decode, arrays | {name: frozen(arrays[name]) for name in reads}).launch()


def test_layers_and_pools_do_not_write_read_only_arrays(runtime, decode):
    arrays = arguments(decode)
    fixed = {n: arrays[n] for n in ("conv_weight", "A_log", "dt_bias", "conv_pool", "state_pool")}
    for name in ("conv_pool", "state_pool"):
        with pytest.raises(ValueError, match=f"{name}: expected an array that can be written"):
            GDNLayer({"decode": decode}, **fixed | {name: frozen(arrays[name])})
    layer = GDNLayer({"decode": decode}, **fixed)
    tokens = {n: arrays[n] for n in ("qkv", "b", "a")}
    with pytest.raises(ValueError, match="core: expected an array that can be written"):
        layer.forward(None, **tokens, core=frozen(arrays["core"]))
    shape = StatePoolShape(1, 2, HK, HV, D, D, conv_dtype="float32")
    state, conv = arrays["state_pool"], arrays["conv_pool"]
    for name, pair in (("state", (frozen(state), conv)), ("conv", (state, frozen(conv)))):
        with pytest.raises(ValueError, match=f"{name}: expected an array that can be written"):
            StatePool.wrap(runtime.device(), shape, [pair[0]], [pair[1]])


def test_calls_do_not_write_read_only_arrays(decode):
    pytest.importorskip("tvm_ffi")
    from gdn.call import Call

    arrays = arguments(decode)
    for name in ("core", "state_pool"):
        with pytest.raises((ValueError, BufferError), match=name):
            Call(decode)(**arrays | {name: frozen(arrays[name])})


class Lender:
    """An array of another library, which says through DLPack what nobody may write."""

    def __init__(self, array: np.ndarray):
        self._array = array

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()

    def __dlpack__(self, **options):
        return self._array.__dlpack__(**options)


def test_other_libraries_read_only_arrays(decode):
    """What is read may be one, what is written not, by a binding and by a call."""
    pytest.importorskip("tvm_ffi")
    from gdn.call import Call

    arrays = arguments(decode)
    locked = {param.name for param in decode.params if param.access == "read"}
    rng = np.random.default_rng(5)
    for name in ("qkv", "conv_weight"):
        arrays[name][...] = rng.standard_normal(arrays[name].shape)
    arrays["slots"][...] = 1, 2
    given = {n: Lender(frozen(a) if n in locked else a) for n, a in arrays.items()}
    bound(decode, given).launch()
    found = arrays["core"].copy()
    assert np.abs(found).max() > 0
    arrays["core"][...] = arrays["conv_pool"][...] = arrays["state_pool"][...] = 0
    Call(decode, null_slot=0)(**given)
    np.testing.assert_array_equal(arrays["core"], found)
    for name in ("core", "state_pool"):
        wrong = given | {name: Lender(frozen(arrays[name]))}
        for launch in (lambda wrong: bound(decode, wrong), lambda wrong: Call(decode)(**wrong)):
            with pytest.raises(ValueError, match=f"{name}: expected an array that can be written"):
                launch(wrong)


def test_the_order_of_bytes(decode):
    arrays = arguments(decode)
    for name in ("qkv", "A_log", "slots"):
        other = arrays[name].astype(arrays[name].dtype.newbyteorder(">"))
        with pytest.raises(TypeError, match=f"{name}: expected the byte order of this machine"):
            bound(decode, arrays | {name: other})


def test_memory_of_another_gpu():
    device = SimpleNamespace(kind="cuda", ordinal=0)
    memory = View(4096, "float32", (2,), (1,), "cuda", None, ordinal=1)
    with pytest.raises(ValueError, match="x: expected memory of cuda:0, got cuda:1"):
        argument("x", memory, device, written=False)
    with pytest.raises(ValueError, match="x: expected memory of cuda:0, got cpu"):
        argument("x", np.zeros(2), device, written=False)
    assert argument("x", memory, SimpleNamespace(kind="cuda", ordinal=1), written=True) is memory
    # An array without elements has no memory.
    argument("x", np.zeros(0), device, written=True)


class Tensor:
    """A tensor of a GPU as far as DLPack's questions go."""

    def __init__(self, device: tuple[int, int]):
        self.device = device
        self.array = np.zeros(3, np.float32)

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, stream=None):
        return self.array.__dlpack__()


def test_the_device_of_a_tensor():
    assert (view("x", Tensor((2, 1))).device, view("x", Tensor((2, 1))).ordinal) == ("cuda", 1)
    # Pinned memory is the host's.
    assert (view("x", Tensor((3, 1))).device, view("x", Tensor((3, 1))).ordinal) == ("cpu", 0)


def test_a_layer_and_a_pool_on_another_gpu(runtime, decode):
    """Kernel.bind, GDNLayer and StatePool.wrap ask alike."""
    arrays = arguments(decode)
    shape = StatePoolShape(1, 2, HK, HV, D, D, conv_dtype="float32")
    other = Tensor((2, 1))
    with pytest.raises(ValueError, match="qkv: expected memory of cpu, got cuda:1"):
        bound(decode, arrays | {"qkv": other})
    with pytest.raises(ValueError, match="A_log: expected memory of cpu, got cuda:1"):
        decode.bind(A_log=other)
    with pytest.raises(ValueError, match="state: expected memory of cpu, got cuda:1"):
        StatePool.wrap(runtime.device(), shape, [other], [arrays["conv_pool"]])


def test_ids_are_integers_that_fit():
    assert on_host("x", [1, 2]).dtype == np.int32
    assert on_host("x", []).size == 0 and on_host("x", None) is None
    with pytest.raises(ValueError, match="x: expected int32, got 4294967297"):
        on_host("x", np.array([1, 2**32 + 1]))
    with pytest.raises(ValueError, match="x: expected int32, got -2147483649"):
        on_host("x", np.array([-(2**31) - 1]))
    for wrong in (np.array([1.0]), np.array([True]), ["1"]):
        with pytest.raises(TypeError, match="x: expected integers"):
            on_host("x", wrong)


def test_wide_ids_do_not_wrap_into_live_slots(runtime):
    builder = GDNAttentionMetadataBuilder.from_options(runtime, max_num_seqs=4, max_num_tokens=8)
    step = {
        "query_start_loc": np.array([0, 1]),
        "seq_lens": np.array([9]),
        "num_reqs": 1,
        "num_actual_tokens": 1,
        "block_table_tensor": np.array([[3]]),
    }
    builder.build(0, CommonAttentionMetadata(**step))
    for name, value in {
        "block_table_tensor": np.array([[2**32 + 3]]),
        "seq_lens": np.array([2**32 + 9]),
        "query_start_loc": np.array([0, 2**32 + 1]),
    }.items():
        with pytest.raises(ValueError, match=f"{name}: expected int32"):
            builder.build(0, CommonAttentionMetadata(**step | {name: value}))
        with pytest.raises(TypeError, match=f"{name}: expected integers"):
            builder.build(0, CommonAttentionMetadata(**step | {name: value * 0.5}))


def test_slots_of_pools_are_integers(runtime):
    shape = StatePoolShape(1, 2, HK, HV, D, D)
    pool = StatePool(runtime.device(), shape)
    slots = pool.allocate(2)
    for wrong in ([1.5], np.array([1.0]), [True], [slots[0], 1.0]):
        with pytest.raises(TypeError, match="slots: expected integers"):
            pool.free(wrong)
    for wide in (2**32 + 1, [2**32 + 1], (1, 2**32 + 1)):
        with pytest.raises(ValueError, match="slots: expected ids of 32 bits, got 4294967297"):
            pool.free(wide)
    pool.free(slots[0])
    pool.free((np.int64(slots[1]),))
    pool.free([])
