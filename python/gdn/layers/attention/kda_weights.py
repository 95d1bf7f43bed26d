# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tensors of layers with a decay of each channel (KDA), as checkpoints name them: those of
Kimi-Linear, Kimi K3, GLM-5.3-Flash and Ling-3.0, and as transformers renames them."""

from __future__ import annotations

from collections.abc import Collection

from .weight_sections import WeightSections, check_rank

# Projections of the hidden states, in the order in which in_proj has them: their rows are whole
# heads, so that those of a token stay aligned. b_proj, which has one row per head, is apart.
_FULL = {"decay": ("f_proj",), "gate": ("g_proj",)}
_LOW = {"decay": ("f_a_proj", "f_b_proj"), "gate": ("g_a_proj", "g_b_proj")}
_OF_FORGET_GATE = ("f_a_proj", "f_b_proj", "f_proj", "A_log", "dt_bias")
#: What a layer has besides projections.
OTHERS = ("conv1d", "A_log", "dt_bias", "o_norm")


class KdaProjections:
    """Which projections a layer has, and which of them in_proj makes at once."""

    def __init__(self, *, full_rank_decay: bool, full_rank_gate: bool, given: Collection[str] = ()):
        decay = (_FULL if full_rank_decay else _LOW)["decay"]
        gate = (_FULL if full_rank_gate else _LOW)["gate"]
        #: By the names of checkpoints.
        self.names = ("q_proj", "k_proj", "v_proj", gate[0], decay[0], "b_proj")
        self.names += gate[1:] + decay[1:]
        if unknown := set(given) - {*self.names, "o_proj"}:
            raise ValueError(
                f"projections: expected {', '.join(self.names)} or o_proj, got "
                + ", ".join(sorted(unknown))
            )
        #: Those that in_proj has, and those that stand alone and are the layer's own.
        self.merged = tuple(name for name in self.names[:5] if name not in given)
        self.alone = tuple(name for name in self.names[5:] if name not in given)

    @property
    def own(self) -> tuple[str, ...]:
        """The layer's arrays of projections of hidden states."""
        return (*["in_proj"] * bool(self.merged), *self.alone)


class KdaWeights(WeightSections):
    """Heads are dealt out whole, with the rows of what makes their queries, keys, values, decays
    and gates. Every rank has all of the first of two projections, and of the norm."""

    def __init__(
        self,
        projections: KdaProjections,
        *,
        num_heads: int,
        head_dim: int,
        hidden_size: int,
        conv_width: int,
        has_out: bool = True,
        tp_size: int = 1,
        tp_rank: int = 0,
    ):
        check_rank(tp_size, tp_rank)
        if num_heads % tp_size:
            raise ValueError(f"heads: expected a multiple of {tp_size} ranks, got {num_heads}")
        rows = num_heads * head_dim
        sizes = dict.fromkeys(("conv_q", "conv_k", "conv_v", "dt_bias", "out"), rows)
        sizes |= {"norm": head_dim, "A_log": num_heads}
        columns = {}
        for name in projections.names:
            is_first = name in ("f_a_proj", "g_a_proj")
            sizes[name] = head_dim if is_first else num_heads if name == "b_proj" else rows
            if name in ("f_b_proj", "g_b_proj"):
                columns[name] = head_dim
        own = {name: (name,) for name in projections.names} | {
            "conv1d": ("conv_q", "conv_k", "conv_v"),
            "q_conv1d": ("conv_q",),
            "k_conv1d": ("conv_k",),
            "v_conv1d": ("conv_v",),
            "A_log": ("A_log",),
            "dt_bias": ("dt_bias",),
            "o_norm": ("norm",),
            "o_proj": ("out",),
        }
        # Names of transformers come first: messages take the last of each section.
        known = {f"forget_gate.{name}": own[name] for name in _OF_FORGET_GATE if name in own}
        columns |= {f"forget_gate.{name}": size for name, size in columns.items()}
        known |= own
        known["in_proj"] = projections.merged
        super().__init__(
            (*projections.own, *OTHERS, *["o_proj"] * has_out),
            known,
            sizes,
            hidden_size=hidden_size,
            conv_width=conv_width,
            tp_size=tp_size,
            tp_rank=tp_rank,
            whole=("norm", "f_a_proj", "g_a_proj"),
            columns=columns,
            apart=True,
        )

    def flat(self, name: str, tensor):
        """Older checkpoints have A_log as [1, 1, H, 1]."""
        is_rate, shape = name.rpartition(".")[2] == "A_log", tuple(tensor.shape)
        is_wide = len(shape) == 4 and shape == (1, 1, shape[2], 1)
        return tensor.reshape(-1) if is_rate and is_wide else tensor

    def columns_of(self) -> dict[str, slice]:
        """Where in_proj's rows have each projection on this rank."""
        first, found = 0, {}
        for name in self._known["in_proj"]:
            found[name] = slice(first, first + self._share(name))
            first += self._share(name)
        return found
