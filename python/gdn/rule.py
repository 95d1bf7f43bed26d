# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The gated delta rule as a function of arrays: NumPy's, or tensors of PyTorch.

    o, states = gated_delta_rule(q, k, v, log_decay, beta, initial_state=states)

Kernels come from the prebuilt images (gdn.images), or are compiled once into the user's cache
where gdn-compile is installed. On a GPU they run on PyTorch's current stream.
docs/spec/delta_rule.md has the mathematics.
"""

from __future__ import annotations

from .array_library import check_count, check_order, check_starts, library_of
from .call_options import finite, flag
from .kernel_calls import call_of, find_refusal, last_of
from .pool_states import refuse_pool
from .rule_kernels import RuleKind, check_head_sizes, kind_of, unit_of
from .rule_plan import RulePlan, keep, key_of, plan_of
from .runtime import Runtime

_FLOATS = ("float32", "bfloat16", "float16")


def gated_delta_rule(
    q,
    k,
    v,
    log_decay,
    beta,
    *,
    scale: float | None = None,
    initial_state=None,
    cu_seqlens=None,
    l2norm: bool = False,
    allow_neg_eigval: bool = False,
    state_dtype: str = "float32",
    state_v_first: bool = True,
    runtime: Runtime | None = None,
):
    """For each token of a sequence: `S <- exp(log_decay) S`, `S <- S + beta (v - S k) k^T`,
    `o = scale S q`.

    q and k [B, T, Hk, dk] and v [B, T, Hv, dv] are of one type (f32, bf16 or f16), and Hv is a
    multiple of Hk. log_decay [B, T, Hv], or [B, T, Hv, dk] for a decay of each channel, and beta
    [B, T, Hv] are converted to f32. The sequences are the B rows. With `cu_seqlens` [N + 1],
    integers on the same device, B is 1, and sequence n has the tokens from cu_seqlens[n] to
    cu_seqlens[n + 1]. They start at 0 or more, do not decrease, and end at T or less. On a CPU
    others are a ValueError. On a GPU the host does not read them: kernels take those below 0 for 0
    and those above T for T, a sequence that ends ahead of its start has no tokens, and with a
    `runtime` of debug_checks they are a GdnError.

    initial_state [N, Hv, dv, dk] has the states before the first tokens, and is not changed;
    without it they are zero. `scale` is dk ^ -0.5 if None. `l2norm` scales each q and k to unit
    length. `allow_neg_eigval` allows strengths up to 2 instead of 1. Without `state_v_first` states
    are [N, Hv, dk, dv], those that are given and those that are returned.

    Returns o [B, T, Hv, dv] in the type of v, and the states after the last tokens [N, Hv, dv, dk]
    in `state_dtype`.

    Raises ValueError for arrays that do not go together, ImageNotFoundError where no image is
    there and none can be compiled.
    """
    arrays = library_of(q, runtime, "q")
    key = None
    if runtime is None:
        options = (scale, l2norm, allow_neg_eigval, state_dtype, state_v_first)
        key = key_of(arrays, (q, k, v, log_decay, beta, initial_state, cu_seqlens), options)
    if key is not None and (plan := plan_of(key)) is not None:
        if cu_seqlens is not None:
            check_order(arrays, cu_seqlens, int(q.shape[1]))
        states = initial_state
        if states is not None and not state_v_first:
            states = states.swapaxes(-1, -2)
        out, states = plan.run(arrays, q, k, v, log_decay, beta, states, cu_seqlens)
        return out, states if state_v_first else states.swapaxes(-1, -2)
    scale, l2norm = finite("scale", scale), flag("l2norm", l2norm)
    state_v_first = flag("state_v_first", state_v_first)
    allow_neg_eigval = flag("allow_neg_eigval", allow_neg_eigval)
    if state_dtype not in _FLOATS:
        _fail("state_dtype", "float32, bfloat16 or float16", state_dtype)
    order = "vk" if state_v_first else "kv"
    refuse_pool("gated_delta_rule", initial_state=initial_state)
    if initial_state is not None and order == "kv":
        arrays.check("initial_state", initial_state)
        if len(initial_state.shape) != 4:
            _fail("initial_state", "the shape [N, Hv, dk, dv]", list(initial_state.shape))
        initial_state = initial_state.swapaxes(-1, -2)
    call = _RuleCall(arrays, q, k, v, log_decay, beta, cu_seqlens, initial_state)
    options = (scale, l2norm, allow_neg_eigval, state_dtype, order)
    out, states = call.run(*options, runtime, key)
    return out, states if state_v_first else states.swapaxes(-1, -2)


def _fail(name: str, expected: str, found: object):
    raise ValueError(f"{name}: expected {expected}, got {found}")


class _RuleCall:
    """The arguments of one call, checked."""

    def __init__(self, arrays, q, k, v, log_decay, beta, cu_seqlens, initial_state):
        self.arrays = arrays
        for name, array in (("log_decay", log_decay), ("beta", beta)):
            arrays.check(name, array)
        if initial_state is not None:
            arrays.check("initial_state", initial_state)
        for name, array in (("q", q), ("k", k), ("v", v)):
            arrays.check(name, array)
            if len(array.shape) != 4:
                _fail(name, "the shape [B, T, H, d]", list(array.shape))
            if self.arrays.dtype_of(array) not in _FLOATS:
                _fail(name, "float32, bfloat16 or float16", self.arrays.dtype_of(array))
        self.q, self.k, self.v = q, k, v
        self.log_decay, self.beta = log_decay, beta
        self.cu_seqlens, self.initial_state = cu_seqlens, initial_state
        self.batch, self.tokens, self.key_heads, self.key_dim = map(int, q.shape)
        self.value_heads, self.value_dim = map(int, v.shape[2:])
        self.io = self.arrays.dtype_of(v)
        self._check()

    def _check(self) -> None:
        rows = [self.batch, self.tokens]
        for name, array in (("q", self.q), ("k", self.k)):
            if (found := self.arrays.dtype_of(array)) != self.io:
                _fail(name, f"{self.io}, the type of v", found)
        if list(self.k.shape) != list(self.q.shape):
            _fail("k", f"{list(self.q.shape)}, the shape of q", list(self.k.shape))
        if list(self.v.shape[:2]) != rows:
            _fail("v", f"the shape {rows} and heads", list(self.v.shape))
        if self.key_heads == 0 or self.value_heads % self.key_heads != 0:
            _fail("v", f"a multiple of the {self.key_heads} heads of q", self.value_heads)
        check_head_sizes(self.key_dim, self.value_dim)
        wanted = [*rows, self.value_heads]
        self.per_channel = len(self.log_decay.shape) == 4
        decays = [*wanted, self.key_dim] if self.per_channel else wanted
        if list(self.log_decay.shape) != decays:
            _fail("log_decay", f"the shape {decays}", list(self.log_decay.shape))
        if list(self.beta.shape) != wanted:
            _fail("beta", f"the shape {wanted}", list(self.beta.shape))
        check_count(self.batch * self.tokens)
        self.count = self.batch
        if self.cu_seqlens is not None:
            if self.batch != 1:
                _fail("q", "one row of tokens with cu_seqlens", f"{self.batch} rows")
            self.count = check_starts(self.arrays, self.cu_seqlens, self.tokens)
        states = [self.count, self.value_heads, self.value_dim, self.key_dim]
        if self.initial_state is not None and list(self.initial_state.shape) != states:
            _fail("initial_state", f"the shape {states}", list(self.initial_state.shape))

    def run(self, scale, l2norm, allow_neg_eigval, state_dtype, order, runtime, key):
        """`order` is that of the states in memory, "vk" or "kv": with kernels for it, where there
        are some. `key` is that of a plan to keep, or None."""
        is_decode = self.cu_seqlens is None and self.tokens == 1
        entry = "decode" if is_decode else "prefill"
        kind = kind_of(
            self.key_dim,
            self.value_dim,
            unit=unit_of(entry, self.arrays.device),
            io=self.io,
            state=state_dtype,
            per_channel=self.per_channel,
            doubled_beta=bool(allow_neg_eigval),
            l2norm=bool(l2norm),
            state_order=order,
        )
        if order != "vk" and find_refusal(kind, self.arrays.device, runtime) is not None:
            kind = kind._replace(state_order="vk")
        key_dim, value_dim = kind.key_dim, kind.value_dim
        flat = self.batch * self.tokens
        beside = kind._replace(verify="buffer")
        if is_decode and self._is_read_in_place(beside, runtime):
            # It reads the states where they are, and writes others.
            kind, entry = beside, "verify"
            states = self.initial_state
            pool = self._states(self.arrays.empty, kind)
        else:
            states = pool = self._pool(kind)
        made = self.arrays.zeros if self.count == 0 else self.arrays.empty
        out = made((flat, self.value_heads, value_dim), self.io)
        if flat > 0 and self.count > 0:
            call = call_of(
                kind,
                entry,
                self.arrays.device,
                self.arrays.stream,
                runtime,
                capturing=self.arrays.capturing,
            )
            # The kernel's own scale is that of its head size.
            wanted = self.key_dim**-0.5 if scale is None else scale
            factor = wanted * key_dim**0.5
            given = self._arguments(call, key_dim, value_dim, states, pool, out)
            is_other = abs(factor - 1) > 1e-9
            # Ahead of the kernel, so that what it gives is in range; lengths are lost there.
            if is_other and not l2norm:
                given["q"] = self.arrays.cast(given["q"] * factor, self.io)
            call(**given)
            if is_other and l2norm:
                out *= factor
            if key is not None and not is_other:
                self._keep_plan(key, call, kind, entry, given, pool)
        out = out[:, :, : self.value_dim]
        out = out.reshape(self.batch, self.tokens, self.value_heads, self.value_dim)
        return out, pool[:, :, : self.value_dim, : self.key_dim]

    def _keep_plan(self, key: tuple, call, kind: RuleKind, entry: str, given, pool) -> None:
        """For calls that are as this one, if its arrays are read where they are."""
        if (kind.key_dim, kind.value_dim) != (self.key_dim, self.value_dim):
            return
        decay, beta = (self.arrays.cast(x, "float32") for x in (self.log_decay, self.beta))
        names = ("q", "k", "v", "log_decay", "beta")
        for name, array in zip(names, (self.q, self.k, self.v, decay, beta), strict=True):
            if not self.arrays.has_unit_stride(array.reshape(given[name].shape)):
                return
        device = self.arrays.device
        made = ("state_pool", "token_state_pool", "core", *names)
        if self.cu_seqlens is not None:
            made += ("cu_seqlens",)
        plan = RulePlan(
            call,
            tuple(call.names),
            last_of(kind, entry, device, None) if device[0] == "cuda" else None,
            tuple(tuple(given[name].shape) for name in names),
            tuple(pool.shape),
            kind.state_order,
            pool.dtype,
            tuple(self.v.shape),
            entry == "verify",
            {name: array for name, array in given.items() if name not in made},
        )
        keep(key, plan)

    def _is_read_in_place(self, kind: RuleKind, runtime: Runtime | None) -> bool:
        """Whether a kernel takes the initial states as they are."""
        states, arrays = self.initial_state, self.arrays
        return (
            states is not None
            and (kind.key_dim, kind.value_dim) == (self.key_dim, self.value_dim)
            and arrays.dtype_of(states) == kind.state
            and arrays.state_order(states) == kind.state_order
            and arrays.can_be_pool(states)
            and find_refusal(kind, arrays.device, runtime) is None
        )

    def _states(self, make, kind: RuleKind):
        """A slot [dv, dk] for each sequence, in the order that the kernel has."""
        heads = self.count, self.value_heads
        if kind.state_order == "vk":
            return make((*heads, kind.value_dim, kind.key_dim), kind.state)
        return make((*heads, kind.key_dim, kind.value_dim), kind.state).swapaxes(-1, -2)

    def _pool(self, kind: RuleKind):
        """The same with the states of the sequences."""
        if self.initial_state is None:
            return self._states(self.arrays.zeros, kind)
        is_padded = (kind.value_dim, kind.key_dim) != (self.value_dim, self.key_dim)
        pool = self._states(self.arrays.zeros if is_padded else self.arrays.empty, kind)
        self.arrays.fill(pool[:, :, : self.value_dim, : self.key_dim], self.initial_state)
        return pool

    def _heads(self, array, size: int):
        """[B, T, H, d] as [B * T, H, size], with zeros behind d."""
        flat = array.reshape(self.batch * self.tokens, *array.shape[2:])
        if flat.shape[2] == size:
            return self.arrays.rows_apart(flat)
        padded = self.arrays.zeros((*flat.shape[:2], size), self.arrays.dtype_of(array))
        self.arrays.fill(padded[:, :, : flat.shape[2]], flat)
        return padded

    def _arguments(
        self, call, key_dim: int, value_dim: int, states, pool, out
    ) -> dict[str, object]:
        """What the entry takes, by name: states to read, and a pool to write."""
        arrays, rows = self.arrays, self.batch * self.tokens
        decay = arrays.cast(self.log_decay, "float32")
        if self.per_channel:
            decay = self._heads(decay, key_dim)
        else:
            decay = arrays.rows_apart(decay.reshape(rows, self.value_heads))
        if self.cu_seqlens is None:
            ends = range(0, (self.batch + 1) * self.tokens, self.tokens)
            starts = arrays.numbers(ends, "int32")
        else:
            starts = arrays.rows_apart(arrays.ids(self.cu_seqlens))
        slots = arrays.numbers(range(self.count), "int32")
        given = {
            "q": self._heads(self.q, key_dim),
            "k": self._heads(self.k, key_dim),
            "v": self._heads(self.v, value_dim),
            "log_decay": decay,
            "beta": arrays.rows_apart(
                arrays.cast(self.beta, "float32").reshape(rows, self.value_heads)
            ),
            "cu_seqlens": starts,
            "slots": slots,
            "write_slots": slots,
            "has_initial": arrays.flags(self.count, True),
            "state_pool": states,
            "token_state_pool": pool,
            "token_slots": slots.reshape(-1, 1),
            "core": out,
        }
        names = call.names
        return {name: value for name, value in given.items() if name in names}
