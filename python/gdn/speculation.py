# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The entries for tokens that may be refused, in float64 NumPy: `verify` with a
slot per token, with parents, with slots of a buffer or with pending tokens, and
`commit`. From docs/spec/slots.md; see gdn.reference."""

import numpy as np

from . import reference
from .reference import Layer, is_live

# Where tokens stay pending, their keys, what they add, their log decays.
PENDING = ("pending_keys", "pending_deltas", "pending_decays")
PENDING_SCALES = "pending_scales"  # of deltas in f16


def accepted_slot(table: np.ndarray, count: int) -> int:
    """The slot after `count` tokens, or -1 where there is none."""
    return int(table[count - 1]) if 1 <= count <= len(table) else -1


def evaluate(
    layer: Layer, arguments: dict[str, np.ndarray], null_slot: int = 0
) -> dict[str, np.ndarray]:
    """As gdn.reference.evaluate. An entry without tokens is a commit."""
    floats = reference.floats_of(arguments)
    floats["state_pool"] = reference.states_of(arguments)
    pools = {name: floats[name].copy() for name in floats if name.endswith("_pool")}
    pools |= {name: floats[name].copy() for name in (*PENDING, PENDING_SCALES) if name in floats}
    if "pending_counts" in arguments:
        floats["pending_counts"] = np.asarray(arguments["pending_counts"]).astype(np.float64)
        pools["pending_counts"] = floats["pending_counts"].copy()
    if "cu_seqlens" not in arguments:
        _commit(layer, arguments, floats, pools, null_slot)
        return pools
    if layer.layout == "ready":
        names = ("q", "k", "v", "z", "beta", "log_decay", "erase")
        parts = [floats.get(name) for name in names]
    else:
        parts = [*reference.unpack(layer, floats), None]
    z, (tokens, heads) = parts[3], parts[5].shape[:2]
    core = np.zeros((tokens, heads, layer.value_dim))
    ran = np.zeros(tokens, bool)
    bounds = arguments["cu_seqlens"]
    for row in range(len(bounds) - 1):
        rows = _Row(layer, arguments, floats, pools, null_slot, row)
        part = slice(int(bounds[row]), int(bounds[row + 1]))
        if layer.max_tokens and part.stop - part.start > layer.max_tokens:
            continue
        if part.start < part.stop and rows.is_live():
            ran[part] = True
            core[part] = rows.run([None if x is None else x[part] for x in parts])
    result = {"core": core, **pools}
    if z is not None and "norm_weight" in floats:
        result["out"] = np.zeros_like(core)
        result["out"][ran] = reference.gated_norm(layer, core[ran], z[ran], floats)
    return result


class _Row:
    """One sequence of a verify step. `before` holds the pools as they were, `after` as they
    will be."""

    def __init__(self, layer, arguments, before, after, null_slot, row):
        self.layer, self.before, self.after, self.null_slot = layer, before, after, null_slot
        self.is_ready = layer.layout == "ready"
        self.window = 0 if self.is_ready else before["conv_weight"].shape[1] - 1
        self.table = arguments["token_slots"][row] if "token_slots" in arguments else None
        self.parents = arguments["parents"][row] if "parents" in arguments else None
        self.count = int(arguments["num_accepted"][row]) if "num_accepted" in arguments else 0
        self.is_lazy = "pending_keys" in before
        self.is_counted = "pending_counts" in before
        self.target = "token_" if "token_state_pool" in before else ""
        if "slots" in arguments:
            self.slot = int(arguments["slots"][row])
        else:
            self.slot = accepted_slot(self.table, self.count)
        if self.is_lazy and not 0 <= self.count <= self.steps:
            self.slot = -1

    @property
    def steps(self) -> int:
        """Tokens whose states can be kept, or that can be accepted of a step."""
        if not self.is_lazy:
            return len(self.table)
        if self.is_counted:
            return self.before["conv_pool"].shape[2] - self.window
        return self.before["pending_keys"].shape[2]

    def is_live(self, slot=None, pool="state_pool") -> bool:
        slot = self.slot if slot is None else slot
        return is_live(slot, len(self.before[pool]), self.null_slot)

    def parent(self, t: int) -> int:
        """The token whose state token `t` starts from, -1 for the sequence's."""
        if self.parents is None:
            return t - 1
        if t >= self.steps:
            return -1
        parent = int(self.parents[t])
        kept = 0 <= parent < t and self.is_live(int(self.table[parent]), self._pool("state"))
        return parent if kept else -1

    def _pool(self, kind: str) -> str:
        return f"{self.target}{kind}_pool"

    def run(self, parts) -> np.ndarray:
        """Goes through the tokens, keeps what is to be kept, and gives the core outputs."""
        q, k, v, _, b, a, erase = parts
        inputs = np.concatenate([x.reshape(len(a), -1) for x in (q, k, v)], axis=1)
        window = None if self.is_ready else self.before["conv_pool"][self.slot]
        state = self.before["state_pool"][self.slot]
        if self.is_lazy:
            state = self._start(state, len(a))
            if window is not None:
                window = window[:, self.count : self.count + self.window]
                self.after["conv_pool"][self.slot][:, : self.window] = window
        known = [(window, state)]  # before the first token, then after each
        core = np.empty((*a.shape[:2], self.layer.value_dim))
        for t in range(len(a)):
            window, state = known[self.parent(t) + 1]
            one = slice(t, t + 1)
            if self.is_ready:
                beta = None if b is None else b[one]
                ready = (q[one], k[one], v[one], a[one], beta)
                erased = None if erase is None else erase[one]
                steps = reference.ready_steps(self.layer, *ready, state, erased)
            else:
                mixed, window = reference.convolve(inputs[one], window, self.before["conv_weight"])
                gates = (self.before["A_log"], self.before["dt_bias"], a[one], b[one])
                steps = reference.rule_steps(self.layer, mixed, state, *gates)
            core[t], state, *what = next(steps)
            known.append((window, state))
            if t < self.steps or self.is_counted:
                self._keep(t, inputs[t], window, state, what)
        return core

    def _start(self, state: np.ndarray, tokens: int) -> np.ndarray:
        """The state with what is accepted of pending tokens; notes what of it is written, and
        behind how many tokens of each key head this step's become pending."""
        heads = self.before["pending_keys"].shape[1]
        if not self.is_counted:
            self.first = np.zeros(heads, int)
            if self.count:
                state = fold(state, self.before, self.slot, self.count)
                self.after["state_pool"][self.slot] = state
            return state
        counts = self.before["pending_counts"][self.slot].astype(int) + self.count
        is_full = counts + tokens > self.before["pending_keys"].shape[2]
        state = fold(state, self.before, self.slot, counts)
        written = np.repeat(is_full, len(state) // heads)
        self.after["state_pool"][self.slot][written] = state[written]
        self.first = np.where(is_full, 0, counts)
        self.after["pending_counts"][self.slot] = self.first
        return state

    def _keep(self, t, inputs, window, state, what) -> None:
        if self.is_lazy:
            if not self.is_ready and t < self.steps:
                self.after["conv_pool"][self.slot][:, self.window + t] = inputs
            keys, deltas, decays = what
            each = len(keys) // self.after["pending_keys"].shape[1]
            for name, values in zip(PENDING, (keys[::each], deltas, decays), strict=True):
                pool = self.after[name][self.slot]
                for head, value in enumerate(values):
                    at = self.first[head * len(self.first) // len(values)] + t
                    if at >= pool.shape[1]:
                        continue
                    if name == "pending_deltas" and PENDING_SCALES in self.after:
                        scale = reference.delta_scale(value)
                        self.after[PENDING_SCALES][self.slot][head, at] = scale
                        value = value / scale
                    pool[head, at] = value
            return
        slot = int(self.table[t])
        for kind, values in (("conv", window), ("state", state)):
            if values is not None and self.is_live(slot, self._pool(kind)):
                self.after[self._pool(kind)][slot] = values


def fold(state: np.ndarray, pools: dict[str, np.ndarray], slot: int, count) -> np.ndarray:
    """`state` [Hv, dv, dk] after the first `count` pending tokens of a slot, a number or one for
    each key head."""
    keys, deltas, decays = (pools[name][slot] for name in PENDING)
    if PENDING_SCALES in pools:
        deltas = deltas * pools[PENDING_SCALES][slot][..., None]
    each = len(deltas) // len(keys)
    counts = np.repeat(np.broadcast_to(count, len(keys)), each)
    for t in range(counts.max(initial=0)):
        own = counts > t  # others may be NaN
        decay = np.exp(decays[own, t]).reshape(own.sum(), 1, -1)
        key = np.repeat(keys[:, t], each, axis=0)[own]
        state = state.copy()
        state[own] = state[own] * decay + deltas[own, t][:, :, None] * key[:, None, :]
    return state


def _commit(layer, arguments, before, after, null_slot: int) -> None:
    for row, slot in enumerate(np.asarray(arguments["slots"])):
        count = int(arguments["num_accepted"][row])
        if not is_live(slot, len(before["state_pool"]), null_slot):
            continue
        if "pending_keys" not in before:
            source = accepted_slot(arguments["token_slots"][row], count)
            # A layer without a convolution has no windows.
            for kind in (kind for kind in ("conv_pool", "state_pool") if kind in before):
                if is_live(source, len(before[f"token_{kind}"]), null_slot):
                    after[kind][slot] = before[f"token_{kind}"][source]
        elif "pending_counts" in before:
            if 0 <= count <= before["conv_pool"].shape[2] - layer.window:
                counts = before["pending_counts"][slot].astype(int) + count
                after["state_pool"][slot] = fold(before["state_pool"][slot], before, slot, counts)
                after["pending_counts"][slot] = 0
                moved = before["conv_pool"][slot][:, count : count + layer.window]
                after["conv_pool"][slot][:, : layer.window] = moved
        elif 1 <= count <= (steps := before["pending_keys"].shape[2]):
            after["state_pool"][slot] = fold(before["state_pool"][slot], before, slot, count)
            window = before["conv_pool"].shape[2] - steps
            moved = before["conv_pool"][slot][:, count : count + window]
            after["conv_pool"][slot][:, :window] = moved
