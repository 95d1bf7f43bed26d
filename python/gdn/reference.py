# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The meaning of a layer's entries in float64 NumPy, for machines without the
compiler. Written from the formulas of docs/spec, token by token; the tests hold
it against the compiler's own evaluator. Nothing is rounded on the way.

Covers what gdn-compile makes from a model's configuration: `decode`, `prefill`,
`verify` and `commit` in every layout of the projections, with write slots,
has_initial and a decay per head or per channel; and entries written by hand, of
gated linear attention and of the delta rule with an erase key. Checkpoints are
left out.
"""

import dataclasses
import re
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Layer:
    """What the arguments of an entry do not say."""

    layout: str  # interleaved, flat, split, separate, gated or ready
    key_dim: int
    value_dim: int
    gate: str = "silu"  # of the gated norm: silu or sigmoid
    double_beta: bool = False
    norm_eps: float = 1e-6
    normalises: bool = True  # queries and keys
    has_delta: bool = True  # whether what is written depends on the state
    max_tokens: int = 0  # of a sequence whose tokens stay pending; 0: any number
    window: int = 0  # of the convolution, in a commit
    reads_upper: bool = False  # whether tokens see the upper plane of a state alone
    decay_bound: float | None = None  # the least logarithm of a decay

    @classmethod
    def of(cls, attributes: dict[str, str]) -> "Layer":
        """From the attributes of an image's entry, which hold its source."""
        source = attributes["gdn.source"]
        pool = re.search(r"!gdn\.pool<\?x\?x(\d+)x(\d+)x", source)
        if pool is None:
            raise ValueError("the entry's source has no state pool of rank 4")
        # Without match where gate and eps are an argument.
        norm = re.search(
            r"gdn\.gated_rms_norm .* (silu|sigmoid)(?: \{eps = (\S+) : f32\})?", source
        )
        bound = re.search(r"gdn\.gates .*lower_bound = (\S+) : f32", source)
        most = re.search(r"max_tokens\((\d+)\)", source)
        window = re.search(r"gdn\.commit_conv1d .* window (\d+)", source)
        # As the compiler holds it: the nearest f32.
        eps = np.float64(np.float32(norm.group(2) if norm and norm.group(2) else 1e-6))
        return cls(
            layout=attributes["layout"],
            key_dim=int(pool.group(2)),
            value_dim=int(pool.group(1)),
            gate=norm.group(1) if norm else "silu",
            double_beta="double_beta" in source,
            decay_bound=float(np.float32(bound.group(1))) if bound else None,
            norm_eps=float(eps),
            normalises="gdn.l2norm" in source,
            has_delta="gdn.gated_linear_attention" not in source,
            max_tokens=int(most.group(1)) if most else 0,
            window=int(window.group(1)) if window else 0,
            reads_upper="reads_upper" in source,
        )


def is_live(slot: int, slots: int, null_slot: int) -> bool:
    """Whether a sequence with this slot runs; the others are skipped."""
    return 0 <= slot < slots and slot != null_slot


def floats_of(arguments: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arguments that are numbers and not outputs, in float64."""
    return {
        name: np.asarray(value).astype(np.float64)
        for name, value in arguments.items()
        if name not in ("core", "out") and np.asarray(value).dtype.kind not in "iub"
    }


def evaluate(
    layer: Layer, arguments: dict[str, np.ndarray], null_slot: int = 0
) -> dict[str, np.ndarray]:
    """What a launch leaves: `core`, `out` and all pools, in float64.

    `arguments` are those of the entry by name, in any type that converts; outputs among
    them are ignored, pools are not changed.
    """
    if layer.layout == "gated" and "a" in arguments:
        layer, arguments = as_ready(layer, arguments)
    if "num_accepted" in arguments or "token_slots" in arguments:
        from . import speculation

        return speculation.evaluate(layer, arguments, null_slot)
    floats = floats_of(arguments)
    floats["state_pool"] = whole_states(arguments)
    seen = seen_states(layer, arguments)
    pools = {name: floats[name].copy() for name in ("conv_pool", "state_pool") if name in floats}
    state_pool = pools["state_pool"]
    if layer.layout == "ready":
        z, (tokens, heads) = None, floats["log_decay"].shape[:2]
    else:
        q, k, v, z, b, a = unpack(layer, floats)
        tokens, heads = b.shape
    slots = np.asarray(arguments["slots"])
    bounds = arguments.get("cu_seqlens", np.arange(tokens + 1))
    write_slots = np.asarray(arguments.get("write_slots", slots))
    has_initial = np.asarray(arguments.get("has_initial", np.ones(len(slots), bool)))
    core = np.zeros((tokens, heads, layer.value_dim))
    ran = np.zeros(tokens, bool)
    for row, slot in enumerate(slots):
        first, last = int(bounds[row]), int(bounds[row + 1])
        if first == last or not is_live(slot, len(state_pool), null_slot):
            continue
        part = slice(first, last)
        ran[part] = True
        # A state that is not read may be NaN.
        before = {name: np.zeros_like(pool[0]) for name, pool in pools.items()}
        if has_initial[row]:
            before = {name: floats[name][slot].copy() for name in pools}
        state = before["state_pool"]
        start = state if seen is None else seen[slot]
        after = {}
        if layer.layout == "ready":
            ready = [floats[name][part] for name in ("q", "k", "v", "log_decay")]
            beta = floats["beta"][part] if layer.has_delta else None
            erase = floats["erase"][part] if "erase" in floats else None
            steps = ready_steps(layer, *ready, beta, start, erase)
        else:
            inputs = np.concatenate([x[part].reshape(last - first, -1) for x in (q, k, v)], axis=1)
            mixed, after["conv_pool"] = convolve(inputs, before["conv_pool"], floats["conv_weight"])
            gates = (floats["A_log"], floats["dt_bias"], a[part], b[part])
            steps = rule_steps(layer, mixed, start, *gates)
        if seen is not None:
            steps = carried(steps, state)
        core[part], after["state_pool"] = last_of(steps, core[part])
        target = write_slots[row]
        if is_live(target, len(state_pool), null_slot):
            for name, pool in pools.items():
                pool[target] = after[name]
    result = {"core": core, **pools}
    if z is not None and "norm_weight" in floats:
        result["out"] = np.zeros_like(core)
        result["out"][ran] = gated_norm(layer, core[ran], z[ran], floats)
    return result


def states_of(arguments: dict[str, np.ndarray]) -> np.ndarray:
    """The states in a pool, [P, Hv, dv, dk] in float64, whatever their format: those in planes are
    bytes less 128, with 256 parts of the lower one, times a scale for each row."""
    states = np.asarray(arguments["state_pool"]).astype(np.float64)
    if "state_scales" not in arguments:
        return states
    states -= 128
    if "state_low" in arguments:
        states += (np.asarray(arguments["state_low"]).astype(np.float64) - 128) / 256
    return states * np.asarray(arguments["state_scales"]).astype(np.float64)[..., None]


def whole_states(arguments: dict[str, np.ndarray]) -> np.ndarray:
    """The same, with what is pending of tokens that slots count."""
    return (with_pending if "pending_counts" in arguments else states_of)(arguments)


def seen_states(layer: Layer, arguments: dict[str, np.ndarray]) -> np.ndarray | None:
    """What tokens see of the states that `whole_states` gives, or None if that is all of it."""
    if not layer.reads_upper or "state_low" not in arguments:
        return None
    return whole_states({name: x for name, x in arguments.items() if name != "state_low"})


def with_pending(arguments: dict[str, np.ndarray]) -> np.ndarray:
    """The states that slots stand for, [P, Hv, dv, dk] in float64: those of the pool with as many
    pending tokens as `pending_counts` says."""
    floats = unscaled(floats_of(arguments))
    counts = np.asarray(arguments["pending_counts"])
    states = states_of(arguments).copy()
    group = states.shape[1] // counts.shape[1]
    for slot, head in np.ndindex(states.shape[:2]):
        key_head = head // group
        for j in range(int(np.clip(counts[slot, key_head], 0, floats["pending_keys"].shape[2]))):
            states[slot, head] *= np.exp(floats["pending_decays"][slot, head, j])
            key = floats["pending_keys"][slot, key_head, j]
            states[slot, head] += np.outer(floats["pending_deltas"][slot, head, j], key)
    return states


def unscaled(floats: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The same arguments with deltas of pending tokens as they are: those in f16 are numbers times
    a scale for each token."""
    if "pending_scales" not in floats:
        return floats
    scales = floats["pending_scales"][..., None]
    return floats | {"pending_deltas": floats["pending_deltas"] * scales}


def delta_scale(delta: np.ndarray) -> float:
    """What a delta in f16 is a multiple of: the power of two of its largest element."""
    most = np.abs(delta).max()
    power = np.floor(np.log2(most)) if 0 < most < np.inf else 126 if most > 0 else -126
    return float(2.0 ** np.clip(power, -126, 126))


def unpack(layer: Layer, floats: dict[str, np.ndarray]):
    """q, k [T, Hk, dk], v, z [T, Hv, dv] (z may be None), b, a."""
    dk, dv = layer.key_dim, layer.value_dim
    heads = len(floats["A_log"])
    if layer.layout == "separate":
        return (*(floats[n] for n in "qkv"), floats.get("z"), floats["b"], floats["a"])
    if layer.layout == "interleaved":
        return _unpack_interleaved(layer, floats, heads)
    packed = floats["qkvz"] if layer.layout == "flat" else floats["qkv"]
    tokens = len(packed)
    after = heads * dv * (2 if layer.layout == "flat" else 1)
    keys = (packed.shape[1] - after) // 2
    ends = np.cumsum([keys, keys, heads * dv])
    q, k, v, rest = np.split(packed, ends, axis=1)
    if layer.layout == "flat":
        z = rest
        b, a = np.split(floats["ba"], 2, axis=1)
    else:
        z, b, a = floats.get("z"), floats["b"], floats["a"]
    return (
        q.reshape(tokens, -1, dk),
        k.reshape(tokens, -1, dk),
        v.reshape(tokens, heads, dv),
        None if z is None else z.reshape(tokens, heads, dv),
        b,
        a,
    )


def as_ready(layer: Layer, arguments: dict[str, np.ndarray]):
    """A layer whose gates are not in the entry, and its arguments: decays and strengths."""
    names = ("A_log", "dt_bias", "a", "b")
    made = gates(layer, *(np.asarray(arguments[name]).astype(np.float64) for name in names))
    rest = {name: value for name, value in arguments.items() if name not in names}
    ready = dict(zip(("log_decay", "beta"), made, strict=True))
    return dataclasses.replace(layer, layout="ready"), rest | ready


def _unpack_interleaved(layer: Layer, floats: dict[str, np.ndarray], heads: int):
    """One group per key head: q, k, its value heads, their z; b's, then a's."""
    dk, dv = layer.key_dim, layer.value_dim
    packed = floats["qkvz"]
    tokens = len(packed)
    key_heads = (packed.shape[1] - 2 * heads * dv) // (2 * dk)
    group = packed.reshape(tokens, key_heads, -1)
    share = heads // key_heads * dv
    q, k, v, z = np.split(group, np.cumsum([dk, dk, share]), axis=2)
    gates = floats["ba"].reshape(tokens, key_heads, 2, -1)
    return (
        q,
        k,
        v.reshape(tokens, heads, dv),
        z.reshape(tokens, heads, dv),
        gates[:, :, 0].reshape(tokens, heads),
        gates[:, :, 1].reshape(tokens, heads),
    )


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return np.exp(-np.logaddexp(0, -x))


def convolve(inputs: np.ndarray, window: np.ndarray, weight: np.ndarray):
    """Causal, with SiLU; the window holds raw inputs, the oldest first."""
    width = weight.shape[1]
    history = np.concatenate([window.T, inputs])
    mixed = sum(history[j : j + len(inputs)] * weight[:, j] for j in range(width))
    return mixed * _sigmoid(mixed), history[len(inputs) :].T


def _unit(x: np.ndarray) -> np.ndarray:
    eps = float(np.float32(1e-6))
    return x / np.sqrt((x * x).sum(-1, keepdims=True) + eps)


def gates(layer: Layer, a_log, dt_bias, a, b):
    """The logarithms of the decays and the strengths of raw `a` and `b`."""
    rate = np.exp(a_log).reshape((b.shape[1],) + (1,) * (a.ndim - 2))
    u = a + dt_bias
    bound = layer.decay_bound
    decays = -rate * np.logaddexp(0, u) if bound is None else bound * _sigmoid(rate * u)
    return decays, _sigmoid(b) * (2 if layer.double_beta else 1)


def rule_steps(layer: Layer, mixed, state, a_log, dt_bias, a, b):
    """The recurrence of one sequence, token after token: what it gives, the state it leaves,
    the key of each value head, what is written with it, and the log decay.

    `mixed` is what the convolution gives, [tokens, 2 Hk dk + Hv dv]; `state` is
    [Hv, dv, dk]; `a` and `b` are raw.
    """
    dk, dv = layer.key_dim, layer.value_dim
    tokens, heads = b.shape
    keys = (mixed.shape[1] - heads * dv) // 2
    q, k, v = np.split(mixed, [keys, 2 * keys], axis=1)
    q, k = (x.reshape(tokens, -1, dk) for x in (q, k))
    v = v.reshape(tokens, heads, dv)
    log_decay, beta = gates(layer, a_log, dt_bias, a, b)
    yield from ready_steps(layer, q, k, v, log_decay, beta, state)


def ready_steps(layer: Layer, q, k, v, log_decay, beta, state, erase=None):
    """The same from queries and keys [tokens, Hk, dk], values, decays and strengths. Without
    a delta term there are no strengths, and values are written as they are. `erase` is what the
    delta term reads instead of keys, which it has to be ready for."""
    dk, (tokens, heads) = layer.key_dim, log_decay.shape[:2]
    each = heads // k.shape[1]  # value heads of a key head
    if layer.normalises:
        q, k = _unit(q), _unit(k)
    q, k, e = (np.repeat(x, each, axis=1) for x in (q, k, k if erase is None else erase))
    # One decay per head acts on all channels of the key.
    decay = np.exp(log_decay if log_decay.ndim == 3 else log_decay[:, :, None])
    for t in range(tokens):
        state = state * decay[t][:, None, :]
        delta = v[t]
        if layer.has_delta:
            delta = beta[t][:, None] * (delta - np.einsum("hvk,hk->hv", state, e[t]))
        state = state + delta[:, :, None] * k[t][:, None, :]
        core = np.einsum("hvk,hk->hv", state, q[t]) / np.sqrt(dk)
        yield core, state, k[t], delta, log_decay[t]


def delta_rule(layer: Layer, mixed, state, a_log, dt_bias, a, b):
    """The recurrence of one sequence: what it gives, [tokens, Hv, dv], and the state it leaves.
    Arguments as those of `rule_steps`."""
    core = np.empty((*b.shape, layer.value_dim))
    return last_of(rule_steps(layer, mixed, state, a_log, dt_bias, a, b), core)


def carried(steps, state):
    """The same steps from `state`, with what they write as they saw another one."""
    for core, _, key, delta, log_decay in steps:
        decay = np.exp(log_decay if log_decay.ndim == 2 else log_decay[:, None])
        state = state * decay[:, None, :] + delta[:, :, None] * key[:, None, :]
        yield core, state, key, delta, log_decay


def last_of(steps, core: np.ndarray):
    """`core` with what each step gives, and the state after the last one."""
    for t, step in enumerate(steps):
        core[t], state = step[:2]
    return core, state


def gated_norm(layer: Layer, core, z, floats: dict[str, np.ndarray]):
    """The norm over the last dimension, times the weight and the gate of z. Epsilon and gate
    are those of `norm_constants` where that is an argument."""
    eps, is_silu = floats.get("norm_constants", (layer.norm_eps, layer.gate == "silu"))
    scale = 1 / np.sqrt((core * core).mean(-1, keepdims=True) + eps)
    gate = _sigmoid(z) * (z if is_silu else 1)
    return core * scale * floats["norm_weight"] * gate
