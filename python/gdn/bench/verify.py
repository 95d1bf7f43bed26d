# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Verification of several tokens of each row, as peers do it: every row has T tokens,
and the state after each of them is kept, in a slot or in a buffer."""

import traceback
from dataclasses import dataclass

import numpy as np
import torch

from .. import reference
from ..checks import relative_error
from .inputs import TORCH, random_slots, to_host
from .peers.verify import PEERS
from .timing import first_call_ms, host_times, number_of_sets, time_calls

_MOST_BYTES = 24 << 30


@dataclass
class Tokens:
    """T tokens of each row, from what the convolution gave, and sets of states. `states`
    have one slot for each token of each row, in random order, after slot 0, which is null: a
    row begins in the slot of its first token."""

    layer: reference.Layer
    heads: tuple[int, int]
    rows: int
    tokens: int
    mixed: torch.Tensor  # [rows, T, 2 Hk dk + Hv dv]
    z: torch.Tensor  # [rows, T, Hv, dv]
    a: torch.Tensor  # [rows, T, Hv]
    b: torch.Tensor
    a_log: torch.Tensor
    dt_bias: torch.Tensor
    norm_weight: torch.Tensor
    states: list[torch.Tensor]  # of each set, [1 + rows T, Hv, dv, dk]

    def heads_of(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Queries and keys [rows, T, Hk, dk], values [rows, T, Hv, dv]."""
        keys = self.heads[0] * self.layer.key_dim
        parts = self.mixed.split([keys, keys, self.mixed.shape[2] - 2 * keys], dim=2)
        sizes = (self.heads[0], self.heads[0], self.heads[1])
        return tuple(
            part.reshape(self.rows, self.tokens, size, -1).contiguous()
            for part, size in zip(parts, sizes, strict=True)
        )

    @property
    def slots(self) -> torch.Tensor:
        """The slot of each token, [rows, T]."""
        return random_slots(self.rows * self.tokens).view(self.rows, -1)


def make_tokens(layer: reference.Layer, heads, rows: int, tokens: int, io: str, state: str):
    """Random tokens and states."""
    generator = torch.Generator("cuda").manual_seed(7)
    keys, values = heads

    def normal(*shape: int, scale: float = 1.0) -> torch.Tensor:
        return torch.randn(shape, generator=generator, device="cuda") * scale

    channels = 2 * keys * layer.key_dim + values * layer.value_dim
    shape = (1 + rows * tokens, values, layer.value_dim, layer.key_dim)
    itemsize = torch.empty(0, dtype=TORCH[state]).itemsize
    size = int(np.prod(shape)) * itemsize
    sets = max(1, min(number_of_sets(size // tokens), _MOST_BYTES // (2 * size)))
    return Tokens(
        layer,
        heads,
        rows,
        tokens,
        torch.nn.functional.silu(normal(rows, tokens, channels)).to(TORCH[io]),
        normal(rows, tokens, values, layer.value_dim).to(TORCH[io]),
        normal(rows, tokens, values, scale=0.5).to(TORCH[io]),
        normal(rows, tokens, values).to(TORCH[io]),
        torch.log(torch.rand(values, generator=generator, device="cuda") * 15 + 1),
        normal(values) - 4,
        (normal(layer.value_dim, scale=0.2) + 1).to(TORCH[io]),
        [normal(*shape, scale=0.1).to(TORCH[state]) for _ in range(sets)],
    )


def errors(x: Tokens, peer, run) -> tuple[float, float]:
    """Errors of outputs and of the states after the last token, of three rows."""
    rows = sorted({0, x.rows // 2, x.rows - 1})
    before = to_host(x.states[0][x.slots[rows, 0].long()])
    mixed, z, a, b = (to_host(value[rows]) for value in (x.mixed, x.z, x.a, x.b))
    gates, weight = [to_host(value) for value in (x.a_log, x.dt_bias)], to_host(x.norm_weight)
    want = [
        reference.delta_rule(x.layer, mixed[i], before[i], *gates, a[i], b[i])
        for i in range(len(rows))
    ]
    core = np.stack([core for core, _ in want])
    if peer.has_norm:
        core = reference.gated_norm(x.layer, core, z, {"norm_weight": weight})
    run()
    torch.cuda.synchronize()
    return (
        relative_error(to_host(peer.output()[rows]), core),
        relative_error(to_host(peer.states()[rows]), np.stack([state for _, state in want])),
    )


def measure(layer: reference.Layer, heads, rows: int, tokens: int, io: str, state: str, repeats):
    """Rows of the report for one configuration, from the peers that can be imported; why others
    have none."""
    x = make_tokens(layer, heads, rows, tokens, io, state)
    config = {"Hk": heads[0], "Hv": heads[1], "dk": layer.key_dim, "dv": layer.value_dim}
    config |= {"N": rows, "T": tokens, "io": io, "state": state}
    moved = 2 * rows * x.states[0][0].numel() * x.states[0].element_size()
    report, refused = [], []
    for impl, mode, part, prepare in PEERS:
        try:
            peer = prepare(x)
            first = {}

            def run(peer=peer, first=first):
                first["first_call_ms"] = first_call_ms(peer.calls[0])

            error_o, error_state = errors(x, peer, run)
            row = {"suite": "verify", "impl": impl}
            row["config"] = config | {"mode": mode, "part": part, "variant": ""}
            row |= time_calls(peer.calls, repeats) | first
            row |= {"error_o": error_o, "error_state": error_state}
            row["host_us"] = host_times(peer.calls)["us"]
            row["state_TBps"] = moved / row["us"] * 1e-6
            report.append(row)
            print(
                f"verify {heads[0]:3},{heads[1]:3} N={rows:4} T={tokens} {state:9} {impl:10}"
                f" {mode:8} {part:8} {row['us']:9.2f} us {error_o:.1e} {error_state:.1e}",
                flush=True,
            )
        except Exception as error:
            # As for decode: a peer that refuses is a line.
            why = f"verify, {impl} {mode}: {type(error).__name__}: {str(error)[:200]}"
            print(f"skipped: {why}")
            refused.append(why)
            if not isinstance(error, ImportError | ValueError):
                traceback.print_exc()
            torch.cuda.synchronize()
    return report, refused
