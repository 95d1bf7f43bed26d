# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What functions on states in place have in common: checks of their arrays, gates, and the call of
an entry. gdn.rule_step, gdn.rule_pool and gdn.rule_verify are these functions."""

from __future__ import annotations

from typing import NamedTuple

from .array_library import check_array, check_form, check_starts, check_written, library_of
from .call import Call
from .call_options import below_zero, finite, flag, integer
from .entry_plan import KnownCall
from .kernel_calls import WHERE_PLANES_ARE, call_of, find_refusal, last_of
from .model_config import LEAST_BOUND, LEAST_F32
from .pool_states import LayerStates
from .rule_kernels import PLANES, RuleKind, check_head_sizes, kind_of, unit_of
from .runtime import Runtime
from .skipped_rows import keep_skipped_rows, live_sequences, live_tokens, slots_with_tokens

# Of a sequence, that the kernels of gdn.rule_verify.gated_delta_verify_in_slots take.
MOST_TOKENS = 8
_FLOATS = ("float32", "bfloat16", "float16")


class Options(NamedTuple):
    """Arguments that every function has."""

    scale: float | None
    l2norm: bool
    allow_neg_eigval: bool
    null_slot: int
    zero_skipped: bool


def options_of(
    scale: object, l2norm: object, allow_neg_eigval: object, null_slot: object, zero_skipped: object
) -> Options:
    """These, checked."""
    return Options(
        finite("scale", scale),
        flag("l2norm", l2norm),
        flag("allow_neg_eigval", allow_neg_eigval),
        integer("null_slot", null_slot),
        flag("zero_skipped", zero_skipped),
    )


def layout_of(io: str, *gates: str, bound: float | None = None) -> str:
    """The layout of the kernel for raw gates of these types, whose decays have a bound or none. One
    of "gated" reads them in the type of v, which may have fewer digits or less range, and with a
    bound that models have; for others they are made ready ahead of it."""
    is_usual = bound is None or LEAST_BOUND <= bound <= -LEAST_F32
    return "gated" if is_usual and (io == "float32" or set(gates) == {io}) else "ready"


def state_order_of(arrays, name: str, pool) -> str:
    """How states [.., dv, dk] lie in memory, "vk" or "kv"."""
    order = arrays.state_order(pool)
    if order is None:
        raise ValueError(
            f"{name}: expected one of the last two dimensions to be contiguous, got other strides"
        )
    return order


def in_order(arrays, kind: RuleKind, runtime: Runtime | None, pools: dict[str, object]):
    """The kind of the kernel for these states, and what it takes: the pools, or copies with dk
    contiguous where there are kernels of that order alone."""
    if kind.state_order == "vk" or find_refusal(kind, arrays.device, runtime) is None:
        return kind, pools
    turned = {name: arrays.empty(pool.shape, arrays.dtype_of(pool)) for name, pool in pools.items()}
    for name, pool in pools.items():
        arrays.fill(turned[name], pool)
    return kind._replace(state_order="vk"), turned


def check_pending(dtype: str, l2norm: bool) -> None:
    """ValueError for pending tokens of a type that needs keys of unit length, of others."""
    if dtype == "float16" and not l2norm:
        raise ValueError(
            "l2norm: expected True with pending tokens of float16, got False: their keys are of"
            " unit length"
        )


class RuleEntry:
    """Arrays of one call of an entry on pools: "decode", "prefill" or "verify". ValueError for what
    does not go together; nothing is launched before `run`."""

    def __init__(self, name: str, q, k, v, states, runtime: Runtime | None):
        self.name, self.runtime = name, runtime
        self.arrays = library_of(q, runtime, "q")
        for name, array in (("q", q), ("k", k), ("v", v)):
            self.arrays.check(name, array)
            if len(array.shape) != 3:
                raise ValueError(f"{name}: expected the shape [N, H, d], got {list(array.shape)}")
        self._given: dict[str, object] = {}
        #: What the states are of where they are not an array.
        self._layer = self._take_layer(states) if isinstance(states, LayerStates) else None
        if self._layer is None:
            self.arrays.check("states", states)
        self.q, self.k, self.v = q, k, v
        self.states = states if self._layer is None else self._given.pop("state_pool")
        self.key_heads, self.key_dim = map(int, q.shape[1:])
        #: Rows of tokens, and value heads.
        self.heads = [int(size) for size in v.shape[:2]]
        self.value_dim = int(v.shape[2])
        self.io, self.layout = self.arrays.dtype_of(v), "ready"
        self.order = "vk"  # of states in memory: dk contiguous, or with "kv" dv
        self.per_channel, self.decay_bound = False, None
        #: Whether nothing is written to the states.
        self.reads_states = False

    def _take_layer(self, states: LayerStates) -> LayerStates:
        """All arrays of a layer of a pool."""
        if self.name == "verify" and not states.is_array:
            raise ValueError(
                "states: expected states of float32, bfloat16 or float16 that each token writes,"
                f" got {states}; layers verify those"
            )
        self._given |= states.arrays(self.arrays)
        return states

    def take_gates(
        self, a, b, A_log, dt_bias, *, ready: bool = False, bound: float | None = None
    ) -> None:
        """Raw gates [rows, HV] and constants [HV]; a and dt_bias are [.., HV, dk] of decays of
        channels, of which `bound` is the least logarithm. Those of heads with `ready`, and all
        that a kernel would round, are made ahead of it."""
        self.check_decays("a", a)
        bound = below_zero("decay_bound", bound)
        if bound is not None and not self.per_channel:
            raise ValueError(f"decay_bound: expected None with a decay of each head, got {bound}")
        channels = [self.key_dim] if self.per_channel else []
        self.check("b", b, self.heads)
        self.check("A_log", A_log, self.heads[1:])
        self.check("dt_bias", dt_bias, [*self.heads[1:], *channels])
        gates, arrays = {"a": a, "b": b, "A_log": A_log, "dt_bias": dt_bias}, self.arrays
        is_ahead = ready and not self.per_channel
        if is_ahead or layout_of(self.io, *map(arrays.dtype_of, (a, b)), bound=bound) == "ready":
            return self.take_ready_gates(*arrays.ready_gates(*gates.values(), bound))
        self.layout, self.decay_bound = "gated", bound
        for name, array in gates.items():
            dtype = self.io if name in ("a", "b") else "float32"
            self._given[name] = arrays.rows_apart(arrays.cast(array, dtype))

    def take_ready_gates(self, log_decay, beta) -> None:
        """Logarithms of decays [rows, HV], or [rows, HV, dk], and strengths [rows, HV]."""
        self.check_decays("log_decay", log_decay)
        self.check("beta", beta, self.heads)
        for name, array in (("log_decay", log_decay), ("beta", beta)):
            self._given[name] = self.arrays.rows_apart(self.arrays.cast(array, "float32"))

    def check_decays(self, name: str, decays) -> None:
        """Those of heads, or of channels."""
        self.arrays.check(name, decays)
        self.per_channel = len(decays.shape) == 3
        if self.per_channel:
            self._refuse_deferred(name, "a decay of each head", "one of each channel")
        channels = [self.key_dim] if self.per_channel else []
        check_form(self.arrays, name, decays, [*self.heads, *channels])

    def take_integers(self, name: str, array, shape: list[int]):
        """Slots, counts or starts, as i32, which it returns. What no i32 holds is no slot."""
        self.check(name, array, shape)
        return self._take_ids(name, array)

    def _take_ids(self, name: str, array):
        """The same of an array whose shape was checked."""
        if "int" not in (found := self.arrays.dtype_of(array)):
            raise ValueError(f"{name}: expected integers, got {found}")
        self._given[name] = self.arrays.rows_apart(self.arrays.ids(array))
        return self._given[name]

    def take_slots(self, slots, write_slots, count: list[int]) -> None:
        """Slots to read and to write, by default the same."""
        if write_slots is not None:
            self._refuse_deferred("write_slots")
        ids = self.take_integers("slots", slots, count)
        if write_slots is None:
            self._given["write_slots"] = ids
        else:
            self.take_integers("write_slots", write_slots, count)

    def _refuse_deferred(self, name: str, expected: str = "None", found: str = "an array") -> None:
        """An argument that goes with no deferred writes."""
        if self._layer is not None and self._layer.deferred_writes:
            raise ValueError(f"{name}: expected {expected} with {self._layer}, got {found}")

    def take_checkpoints(self, checkpoints: tuple, starts: int) -> None:
        """Those of ragged sequences that have `starts` starts."""
        self._refuse_deferred("checkpoints")
        if not isinstance(checkpoints, tuple | list) or len(checkpoints) != 3:
            raise ValueError(
                "checkpoints: expected cu_checkpoints, tokens and slots, got"
                f" {type(checkpoints).__name__}"
                + (f" of {len(checkpoints)}" if isinstance(checkpoints, tuple | list) else "")
            )
        cu_checkpoints, tokens, slots = checkpoints
        self.arrays.check("checkpoint_tokens", tokens)
        count = [int(size) for size in tokens.shape]
        self.take_integers("cu_checkpoints", cu_checkpoints, [starts])
        self.take_integers("checkpoint_tokens", tokens, count)
        self.take_integers("checkpoint_slots", slots, count)

    def take_starts(self, cu_seqlens) -> int:
        """Starts of sequences [N + 1]. Returns N."""
        count = check_starts(self.arrays, cu_seqlens, self.heads[0])
        self._take_ids("cu_seqlens", cu_seqlens)
        return count

    def take_flags(self, name: str, flags, count: int) -> None:
        """Booleans [count], by default true."""
        if flags is None:
            self._given[name] = self.arrays.flags(count, True)
            return
        self.check(name, flags, [count], ("bool",))
        self._given[name] = self.arrays.rows_apart(flags)

    def take(self, name: str, array) -> None:
        """Another array, as the entry reads it."""
        self._given[name] = array

    def check(self, name: str, array, shape: list[int], types: tuple[str, ...] = ()) -> None:
        check_array(self.arrays, name, array, shape, types)

    def check_pool(self, name: str, pool, types: tuple[str, ...] = _FLOATS) -> None:
        """States [slots, HV, dv, dk], all in the order of `states` in memory."""
        sizes = [self.heads[1], self.value_dim, self.key_dim]
        if name != "states" or self._layer is not None:
            self.arrays.check(name, pool)
        if self._layer is not None and self._layer.format in PLANES:
            types = ("uint8",)
        elif (found := self.arrays.dtype_of(pool)) == "uint8":
            expected = " or ".join(types)
            raise ValueError(f"{name}: expected {expected}, got {found}; {WHERE_PLANES_ARE}")
        check_form(self.arrays, name, pool, [*pool.shape[:1], *sizes], types)
        order = state_order_of(self.arrays, name, pool)
        self._check_written(name, pool, is_read=name == "states" and self.reads_states)
        if name == "states":
            self.order = order
        elif order != self.order:
            raise ValueError(
                f"{name}: expected the order of states in memory, {self.order}, got {order}"
            )

    def output(self, out):
        """`out`, checked, or a new array."""
        shape = [*self.heads, self.value_dim]
        if out is None:
            return self.arrays.empty(shape, self.io)
        self.check("out", out, shape, (self.io,))
        if not self.arrays.has_unit_stride(out):
            raise ValueError("out: expected a contiguous last dimension, got another stride")
        self._check_written("out", out)
        return out

    def _check_written(self, name: str, array, is_read: bool = False) -> None:
        if not is_read:
            check_written(self.arrays, name, array)
        elif not self.arrays.is_apart(array):
            raise ValueError(
                f"{name}: expected an array with each element for itself, got one that repeats some"
            )

    def check_inputs(self) -> None:
        keys = [self.heads[0], self.key_heads, self.key_dim]
        if self.io not in _FLOATS:
            raise ValueError(f"v: expected {' or '.join(_FLOATS)}, got {self.io}")
        check_form(self.arrays, "q", self.q, keys, (self.io,))
        check_form(self.arrays, "k", self.k, keys, (self.io,))
        self.check_pool("states", self.states)
        if self.key_heads == 0 or self.heads[1] % self.key_heads != 0:
            heads = self.heads[1]
            raise ValueError(
                f"v: expected a multiple of the {self.key_heads} heads of q, got {heads}"
            )
        check_head_sizes(self.key_dim, self.value_dim)
        unit = unit_of(self.name, self.arrays.device)
        if self.key_dim % unit or self.value_dim % unit:
            sizes = f"{self.value_dim} x {self.key_dim}"
            raise ValueError(f"states: expected heads of multiples of {unit}, got {sizes}")

    def run(self, out, options: Options, verify: str = "none", known: KnownCall | None = None):
        """Launches the entry, whose output is `out`; `known` keeps what others like it do."""
        arrays = self.arrays
        kind = kind_of(
            self.key_dim,
            self.value_dim,
            io=self.io,
            **self._pool_facts(options),
            per_channel=self.per_channel,
            decay_bound=self.decay_bound,
            doubled_beta=bool(options.allow_neg_eigval),
            l2norm=bool(options.l2norm),
            layout=self.layout,
            verify=verify,
            checkpoints="cu_checkpoints" in self._given,
            state_order=self.order,
        )
        pools = {"state_pool": self.states}
        if "token_state_pool" in self._given:
            pools["token_state_pool"] = self._given["token_state_pool"]
        given_pools = pools
        kind, pools = in_order(arrays, kind, self.runtime, pools)
        call = self._call(kind, self.name, options)
        factor = 1.0 if options.scale is None else options.scale * self.key_dim**0.5
        is_other = abs(factor - 1) > 1e-9
        q = arrays.rows_apart(self.q)
        # Ahead of the kernel, so that what it gives is in range; lengths are lost there.
        if is_other and not options.l2norm:
            q = arrays.cast(self.q * factor, self.io)
        inputs = {"q": q, "k": arrays.rows_apart(self.k), "v": arrays.rows_apart(self.v)}
        given = inputs | self._given | pools | {"core": out}
        if self.reads_states:
            given["state_pool"] = arrays.unlocked(given["state_pool"])
        names = call.names
        commit = None
        if self.name == "prefill" and "pending_counts" in given:
            commit = self._call(kind, "commit", options)

        def launch() -> None:
            if commit is not None:
                self._commit(commit, given)
            call(**{name: value for name, value in given.items() if name in names})
            # Those that the entry writes, where it had copies: verify leaves the states beside a
            # buffer.
            if pools is not given_pools:
                written = list(pools)[-1]
                arrays.fill(given_pools[written], pools[written])
            if is_other and options.l2norm:
                arrays.fill(out, out * factor)

        if options.zero_skipped:
            launch()
        else:
            keep_skipped_rows(arrays, out, self._live_rows(options.null_slot), launch)
        is_plain = options.zero_skipped and not is_other and pools is given_pools
        if known is not None and is_plain:
            where = arrays.device, self.runtime, options.null_slot
            ahead = None
            if commit is not None:
                ahead = commit, last_of(kind, "commit", *where)
            known.keep(call, last_of(kind, self.name, *where), given, out, commit=ahead)
        return out

    def _pool_facts(self, options: Options) -> dict[str, object]:
        """Of the kernel's kind: how states are kept."""
        if self._layer is None:
            return {"state": self.arrays.dtype_of(self.states)}
        check_pending(self._layer.pending_dtype, options.l2norm)
        if self._layer.pending_dtype == "float16" and options.allow_neg_eigval:
            raise ValueError(
                "allow_neg_eigval: expected False with pending tokens of float16, got True"
            )
        found = {"state": self._layer.format, "deferred_writes": self._layer.deferred_writes}
        return found | {"pending": self._layer.pending_dtype}

    def _call(self, kind: RuleKind, entry: str, options: Options):
        arrays, null_slot = self.arrays, options.null_slot
        places = (arrays.device, arrays.stream, self.runtime, null_slot)
        return call_of(kind, entry, *places, capturing=arrays.capturing)

    def _commit(self, commit: Call, given: dict[str, object]) -> None:
        """Puts what is pending in the slots of a prefill into their states. A sequence without
        tokens leaves its slot, which another one may have, too."""
        slots = slots_with_tokens(self.arrays, given["slots"], given["cu_seqlens"])
        given = given | {"slots": self.arrays.ids(slots)}
        commit(**{name: value for name, value in given.items() if name in commit.names})

    def _live_rows(self, null_slot: int):
        """Which rows of tokens are of a sequence that is not skipped."""
        given, count = self._given, int(self.states.shape[0])
        if "num_accepted" in given:
            live = self._live_drafts(null_slot)
        else:
            live = live_sequences(given["slots"], null_slot, count)
        if "cu_seqlens" not in given:
            return live
        return live_tokens(self.arrays, live, given["cu_seqlens"], self.heads[0])

    def _live_drafts(self, null_slot: int):
        """The same of sequences whose first slot is that of their last accepted token."""
        table, accepted = self._given["token_slots"], self._given["num_accepted"]
        starts = self._given["cu_seqlens"]
        most = int(table.shape[1])
        if most == 0:
            return self.arrays.flags(int(table.shape[0]), False)
        places = accepted.clip(1, most) - 1
        rows = self.arrays.numbers(range(int(table.shape[0])), "int64")
        live = live_sequences(table[rows, places], null_slot, int(self.states.shape[0]))
        lengths = starts[1:] - starts[:-1]
        return live & (accepted >= 1) & (accepted <= most) & (lengths <= MOST_TOKENS)
