# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors on PyTorch's device meta, which have no memory: whatever takes arrays refuses them by the
name of the argument. Those without PyTorch are stand-ins."""

import numpy as np
import pytest

from gdn import Kernel, Runtime, StateCache, StatePool, StatePoolShape
from gdn.arrays import view
from gdn.layers.attention.host_arrays import on_host
from gdn.layers.attention.layer_shape import LayerHeads
from gdn.layers.attention.layer_weights import LayerWeights
from gdn.sequence_parts import _integers

REFUSAL = "expected a tensor of a CPU or of CUDA, got one on meta"


@pytest.fixture(scope="module")
def runtime(build_dir):
    return Runtime(build_dir / "lib/libgdnrt.so")


class Meta:
    """As much of such a tensor as is looked at. What it would be asked for beyond that fails."""

    is_meta, requires_grad, dtype = True, True, "torch.int64"

    def __init__(self, *shape: int):
        self.shape = shape

    def __dlpack__(self):
        raise NotImplementedError("Cannot pack tensors on meta")

    cpu = tolist = __array__ = __dlpack_device__ = __dlpack__


def weights_of(tensor):
    """Loads a norm of a layer."""
    weights = LayerWeights(
        LayerHeads(2, 2, 16, 16), ["norm"], order="flat", hidden_size=8, conv_width=4
    )
    weights.load({"norm": np.empty(16, np.float32)}, {"norm.weight": tensor}, prefix="")


CALLS = {
    "x": lambda pool, meta: view("x", meta),
    "slots": lambda pool, meta: on_host("slots", meta),
    "starts": lambda pool, meta: _integers("starts", meta),
    "tokens": lambda pool, meta: StateCache(pool, max_nodes=4, max_tokens=8).match(meta),
    "norm.weight": lambda pool, meta: weights_of(meta),
}


@pytest.mark.parametrize("name", CALLS)
def test_arguments(runtime, name):
    pool = StatePool(runtime.device(), StatePoolShape(1, 4, 1, 2, 16, 16))
    with pytest.raises(ValueError, match=f"^{name}: {REFUSAL}"):
        CALLS[name](pool, Meta(16))
    with pytest.raises(ValueError, match=f"^slots: {REFUSAL}"):
        pool.free(Meta(2))


def test_functions_of_other_libraries(runtime, compiler_on_path, monkeypatch):
    """An operator does nothing with such tensors where PyTorch is asked; one that is not the first
    is found, too."""
    torch = pytest.importorskip("torch")
    from gdn import devices
    from gdn.ops import causal_conv1d, fla, flashinfer, vllm

    monkeypatch.setattr(devices, "_runtime", [runtime])

    def ones(*shape):
        return torch.ones(shape)

    ids = torch.arange(3, dtype=torch.int32)
    step = {
        "q": ones(3, 1, 1, 16),
        "k": ones(3, 1, 1, 16),
        "v": ones(3, 1, 2, 16),
        "state": ones(3, 2, 16, 16),
        "A_log": ones(2),
        "a": ones(3, 1, 2),
        "dt_bias": ones(2),
        "b": ones(3, 1, 2),
    }
    conv = {
        "x": ones(3, 64),
        "conv_state": ones(3, 64, 3),
        "weight": ones(64, 4),
        "bias": ones(64),
        "conv_state_indices": ids,
    }
    norm = {"x": ones(3, 16), "g": ones(3, 16), "weight": ones(16)}
    rule = {"q": ones(1, 3, 1, 16), "k": ones(1, 3, 1, 16), "v": ones(1, 3, 2, 16)}
    rule |= {"g": ones(1, 3, 2), "beta": ones(1, 3, 2)}
    packed = {
        "mixed_qkv": ones(3, 64),
        "a": ones(3, 2),
        "b": ones(3, 2),
        "A_log": ones(2),
        "dt_bias": ones(2),
        "scale": 1.0,
        "initial_state": ones(4, 2, 16, 16),
        "out": ones(3, 1, 2, 16),
        "ssm_state_indices": ids,
    }
    others = {"g": "log_decay"}
    for function, given in (
        (flashinfer.gated_delta_rule_decode_pretranspose, step),
        (causal_conv1d.causal_conv1d_update, conv),
        (fla.rms_norm_gated, norm),
        (fla.fused_recurrent_gated_delta_rule, rule),
        (vllm.fused_recurrent_gated_delta_rule_packed_decode, packed),
    ):
        for name, tensor in given.items():
            if name == "scale":
                continue
            names = f"({name}|{others.get(name, name)}|slots)"
            with pytest.raises(ValueError, match=rf"\b{names}: expected a tensor .* on meta"):
                function(**given | {name: tensor.to("meta")})
        with torch.no_grad():
            function(**given)


def test_calls_of_kernels(runtime, compiler_on_path):
    torch = pytest.importorskip("torch")
    from gdn import Call
    from gdn.kernel_calls import kernel_of
    from gdn.rule_kernels import kind_of

    kernel: Kernel = kernel_of(kind_of(16, 16, io="float32"), "decode", ("cpu", 0), runtime)
    sizes = {"N": 3, "Hk": 1, "Hv": 2, "P": 4}
    given = {
        p.name: torch.zeros([sizes.get(d) or int(d) for d in p.dims], dtype=getattr(torch, p.dtype))
        for p in kernel.params
    }
    call = Call(kernel)
    call(**given)
    for name, tensor in given.items():
        with pytest.raises(ValueError, match=f"^{name}: {REFUSAL}"):
            call(**given | {name: tensor.to("meta")})
        with pytest.raises(ValueError, match=f"^{name}: {REFUSAL}"):
            kernel.bind(**given | {name: tensor.to("meta")})
