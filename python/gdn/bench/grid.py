# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The grid over which implementations of prefill are compared: FlashQLA's published one,
9 pairs of heads by 19 sets of lengths, heads of 128, ready queries and keys."""

from dataclasses import dataclass

# Key heads and value heads, of the models on 8, 4, 2 and 1 GPUs.
HEADS = ((2, 8), (4, 16), (8, 32), (16, 64), (16, 32), (8, 24), (16, 48), (16, 16), (32, 32))
_SETS = (
    ["1x32768", "1x16384", "1x8192", "1x4096", "1x2048"]
    + ["28672+4096", "24576+8192", "16384+16384", "8192+24576", "4096+28672", "12288+4096"]
    + ["6144+2048", "4096+4096", "2048+6144", "1024+7168"]
    + ["8192x4", "4096x8", "2048x4", "1024x8"]
)
DIM = 128
CHUNK = 64
# Sets whose results are compared with float64, in every process: a long row, rows that
# differ, and many rows.
CHECKED = ("1x4096", "2048+6144", "1024x8")


def lengths_of(name: str) -> tuple[int, ...]:
    """ "1x4096": one row; "4096x8": eight; "1024+7168": these."""
    if "+" in name:
        return tuple(int(length) for length in name.split("+"))
    first, _, second = name.partition("x")
    return (int(second),) if first == "1" else (int(first),) * int(second)


LENGTHS = {name: lengths_of(name) for name in _SETS}


@dataclass(frozen=True)
class Case:
    """A row of the grid."""

    heads: tuple[int, int]
    name: str  # of the set of lengths
    dims: tuple[int, int] = (DIM, DIM)  # of keys and values

    @property
    def lengths(self) -> tuple[int, ...]:
        return lengths_of(self.name)

    @property
    def is_checked(self) -> bool:
        """Whether its results are compared with float64."""
        return self.name in CHECKED

    def config(self, io: str, state: str) -> dict:
        """As rows of a report have it, but for the variant."""
        lengths = self.lengths
        sizes = {"Hk": self.heads[0], "Hv": self.heads[1], "dk": self.dims[0]}
        sizes |= {"dv": self.dims[1]}
        sizes |= {"N": len(lengths), "T": sum(lengths), "set": self.name, "lens": list(lengths)}
        return sizes | {"io": io, "state": state, "gates": "log sigmoid / 16, a quarter 0"}


def plan(heads=(), sets=()) -> dict[tuple[int, int], list[Case]]:
    """The rows to measure, by process: those of these heads and sets, all where none are
    named. The order is that of the grid; a pair or set that is not in it comes last."""
    chosen = {name: None for name in LENGTHS if not sets or name in sets}
    chosen |= dict.fromkeys(sets)
    for name in chosen:
        if not lengths_of(name) or min(lengths_of(name)) < 1:
            raise ValueError(f"lengths: expected such as 1x4096, 4096x8 or 1024+7168, got {name}")
    pairs = {pair: None for pair in HEADS if not heads or pair in heads} | dict.fromkeys(heads)
    return {pair: [Case(pair, name) for name in chosen] for pair in pairs}
