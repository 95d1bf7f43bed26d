# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks of arguments that the functions of this package have in common, and arguments of FLA's
functions as the rule takes them."""

import functools
import math
import warnings

import torch
from torch import Tensor

from .. import compiler
from ..array_library import SMALL_GATE
from ..call_options import below_zero, finite, refuse_meta
from .operator import run_rule

# What the originals take for their own kernels, and what changes no number.
_IGNORED = frozenset(
    (
        "chunk_indices",
        "chunk_size",
        "cu_seqlens_cpu",
        "disable_recompute",
        "max_num_seqs",
        "use_graph",
    )
)


def refusal_of(function: str, others: dict[str, object]) -> str | None:
    """Why arguments cannot be served: those that would change what is computed."""
    for name, value in others.items():
        if name not in _IGNORED and value is not None and value is not False:
            return f"{function}: {name}: not supported, expected None, got {_shown(value)}"
    return None


def _shown(value: object) -> str:
    if isinstance(value, Tensor):
        return f"a tensor of {list(value.shape)}"
    return repr(value)[:60]


def refuse_gradients(function: str, **tensors: Tensor) -> None:
    """States in place have no backward, and a gradient that is missing would not be seen. Tensors
    without memory have no results."""
    with_gradients = torch.is_grad_enabled()
    for name, tensor in tensors.items():
        if tensor.is_meta:
            refuse_meta(f"{function}: {name}", tensor)
        if with_gradients and tensor.requires_grad:
            raise RuntimeError(
                f"{function}: {name}: expected no gradient (torch.no_grad()), for there is no"
                " backward, got a tensor that requires one"
            )


def check_others(function: str, others: dict[str, object]) -> None:
    """Raises ValueError for the same."""
    if reason := refusal_of(function, others):
        raise ValueError(reason)


def check(function: str, name: str, tensor: Tensor | None, shape: tuple[int | None, ...]) -> None:
    """Raises ValueError unless a tensor has memory and that shape; None stands for any size."""
    if tensor is None:
        return
    if tensor.is_meta:
        refuse_meta(f"{function}: {name}", tensor)
    found = tensor.shape
    same = len(found) == len(shape)
    if same:
        for size, got in zip(shape, found, strict=True):
            if size is not None and size != got:
                same = False
    if not same:
        sizes = ", ".join("any" if size is None else str(size) for size in shape)
        raise ValueError(f"{function}: {name}: expected the shape [{sizes}], got {list(found)}")


def check_ids(
    function: str, name: str, tensor: Tensor | None, shape: tuple[int | None, ...]
) -> None:
    """As check, of slots, counts and starts: they are integers."""
    check(function, name, tensor, shape)
    if tensor is not None and (
        tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool
    ):
        raise ValueError(f"{function}: {name}: expected integers, got {tensor.dtype}")


def check_starts(function: str, name: str, tensor: Tensor) -> int:
    """How many sequences [N + 1] starts are of."""
    check_ids(function, name, tensor, (None,))
    if tensor.shape[0] < 1:
        raise ValueError(f"{function}: {name}: expected the shape [N + 1], got [0]")
    return tensor.shape[0] - 1


def strengths(beta: Tensor, use_beta_sigmoid_in_kernel: bool, allow_neg_eigval: bool) -> Tensor:
    """Strengths of one type with the factor of `allow_neg_eigval`, which the originals apply to
    what goes through the sigmoid alone."""
    if not use_beta_sigmoid_in_kernel:
        return beta
    beta = beta.float().sigmoid()
    return 2 * beta if allow_neg_eigval else beta


def decays(
    g: Tensor, A_log: Tensor | None, dt_bias: Tensor | None, lower_bound: float | None = None
) -> Tensor:
    """The logarithm of the decay of raw gates [.., Hv] or [.., Hv, dk]; with `lower_bound` it is
    that times a sigmoid, and A_log may be None."""
    if A_log is None and lower_bound is None:
        raise ValueError("A_log: expected a tensor with use_gate_in_kernel, got None")
    if g.dim() not in (3, 4):
        raise ValueError(f"g: expected the shape [B, T, HV] or [B, T, HV, K], got {list(g.shape)}")
    # Views of other shapes are the originals'; a single number would go to all heads.
    for name, tensor, sizes in (("A_log", A_log, g.shape[2:3]), ("dt_bias", dt_bias, g.shape[2:])):
        if tensor is not None and tensor.numel() != math.prod(sizes):
            raise ValueError(
                f"{name}: expected {math.prod(sizes)} elements, for g has the shape"
                f" {list(g.shape)}, got {list(tensor.shape)}"
            )
        if tensor is not None and tensor.device != g.device:
            raise ValueError(
                f"{name}: expected a tensor on {g.device}, as g is, got one on {tensor.device}"
            )
    below_zero("lower_bound", lower_bound)
    raw = g.float()
    if dt_bias is not None:
        raw = raw + dt_bias.float().reshape(raw.shape[2:])
    power = raw.new_zeros(1) if A_log is None else A_log.float().reshape(-1)
    power = power[:, None] if raw.dim() == 4 else power
    rate = power.exp()
    if lower_bound is not None:
        # A factor that overflows is the largest number: half of the bound for 0.
        return lower_bound * (rate.clamp(max=torch.finfo(torch.float32).max) * raw).sigmoid()
    small = (power + raw.clamp(max=SMALL_GATE)).exp()
    decay = rate * torch.nn.functional.softplus(raw)
    return -torch.where(raw < SMALL_GATE, small, decay)


def take_legacy_order(function: str, state_v_first: bool, others: dict[str, object]) -> bool:
    """`state_v_first`, or what an older name of it in `others` says, which it removes."""
    older = others.pop("transpose_state_layout", None)
    if older is None:
        return state_v_first
    if state_v_first:
        raise ValueError(
            f"{function}: transpose_state_layout: expected None with state_v_first, got {older}"
        )
    warnings.warn(
        f"{function}: transpose_state_layout is an older name of state_v_first",
        DeprecationWarning,
        stacklevel=3,
    )
    return bool(older)


@functools.cache
def _finds_compiler() -> bool:
    try:
        compiler.find_tool()
    except compiler.CompileError:
        return False
    return True


@torch.compiler.assume_constant_result
def _has_both_orders() -> bool:
    """Whether there may be kernels of states [dk, dv]: they are compiled, no prebuilt image has
    them."""
    return _finds_compiler()


def run(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    log_decay: Tensor,
    beta: Tensor,
    scale: float | None,
    initial_state: Tensor | None,
    output_final_state: bool,
    l2norm: bool,
    allow_neg_eigval: bool,
    state_v_first: bool,
    cu_seqlens: Tensor | None,
) -> tuple[Tensor, Tensor | None]:
    """FLA's states are [N, Hv, dk, dv], or [N, Hv, dv, dk] with `state_v_first`. q, k and v of
    different types are taken in the widest; the output is of the type of v."""
    dtype = v.dtype
    if not q.dtype == k.dtype == dtype:
        wide = torch.promote_types(torch.promote_types(q.dtype, k.dtype), dtype)
        q, k, v = q.to(wide), k.to(wide), v.to(wide)
    is_view = not state_v_first and not _has_both_orders()
    if is_view and initial_state is not None:
        initial_state = initial_state.transpose(-1, -2)
    out, states = run_rule(
        q,
        k,
        v,
        log_decay,
        beta,
        finite("scale", scale),
        initial_state,
        cu_seqlens,
        l2norm,
        allow_neg_eigval,
        state_v_first or is_view,
    )
    out = out.to(dtype)
    if not output_final_state:
        return out, None
    return out, states.transpose(-1, -2) if is_view else states
