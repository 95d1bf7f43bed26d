# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The gated RMS norm of a layer as a function of arrays: NumPy's, or tensors of PyTorch.

    y = gated_rms_norm(x, gate, weight)

docs/spec/gated_rms_norm.md has the mathematics.
"""

from __future__ import annotations

from .array_library import check_array, check_written, library_of
from .call_options import finite, flag
from .entry_plan import KnownCall
from .kernel_calls import call_of, last_of
from .model_config import LEAST_F32, MOST_F32
from .op_kernels import MOST_NORM, NormKind, has_norm
from .runtime import Runtime

_ARRAYS = ("x", "gate", "weight", "out")
_ACTIVATIONS = {"silu": 1.0, "sigmoid": 0.0}


def gated_rms_norm(
    x,
    gate,
    weight,
    *,
    eps: float = 1e-6,
    activation: str = "silu",
    norm_after_gate: bool = False,
    out=None,
    runtime: Runtime | None = None,
):
    """`norm(x) * act(gate)` over the last dimension, or `norm(x * act(gate))` with
    `norm_after_gate`; `norm(x) = x / sqrt(mean(x^2) + eps) * weight`.

    x and gate [T, H, d] are of one type (f32, bf16 or f16), d is a multiple of 8 up to 512, and
    weight [d] is of any type. `activation` is "silu" or "sigmoid".

    Returns y [T, H, d] in the type of x, `out` if it is given. Raises ValueError for arrays that do
    not go together, CompileError where no kernel is there and none can be compiled.
    """
    options = (eps, activation, norm_after_gate)
    known = KnownCall(_ARRAYS, (x, gate, weight, out), options, runtime)
    if known.plan is not None:
        return known.run()
    arrays = library_of(x, runtime, "x")
    arrays.check("x", x)
    eps, norm_after_gate = finite("eps", eps), flag("norm_after_gate", norm_after_gate)
    if len(x.shape) != 3:
        raise ValueError(f"x: expected the shape [T, H, d], got {list(x.shape)}")
    shape, io = [int(size) for size in x.shape], arrays.dtype_of(x)
    size = shape[2]
    check_array(arrays, "gate", gate, shape)
    check_array(arrays, "weight", weight, [size])
    if out is not None:
        check_array(arrays, "out", out, shape)
    for name, array in (("gate", gate), ("out", out)):
        if array is not None and (found := arrays.dtype_of(array)) != io:
            raise ValueError(f"{name}: expected {io}, the type of x, got {found}")
    if not has_norm(size):
        raise ValueError(f"x: expected heads of a multiple of 8 up to {MOST_NORM}, got {size}")
    if activation not in _ACTIVATIONS:
        raise ValueError(f"activation: expected silu or sigmoid, got {activation}")
    if eps is None or not LEAST_F32 <= eps <= MOST_F32:
        raise ValueError(f"eps: expected a positive number of f32, got {eps}")
    if out is None:
        out = arrays.empty(shape, io)
    if 0 in shape:
        return out
    if not arrays.has_unit_stride(out):
        raise ValueError("out: expected a contiguous last dimension, got another stride")
    check_written(arrays, "out", out)
    kind = NormKind(size, bool(norm_after_gate), io)
    call = call_of(kind, "norm", arrays.device, arrays.stream, runtime, capturing=arrays.capturing)
    given = {
        "x": arrays.rows_apart(x),
        "gate": arrays.rows_apart(gate),
        "weight": arrays.rows_apart(arrays.cast(weight, "float32")),
        "constants": arrays.floats((float(eps), _ACTIVATIONS[activation])),
        "y": out,
    }
    call(**given)
    last = last_of(kind, "norm", arrays.device, runtime)
    known.keep(call, last, given, out, constants=("constants",))
    return out
