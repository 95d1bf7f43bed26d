# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The sequences of a made-up call: slots, tables of slots, counts of accepted tokens, and
which elements of pools a launch may look at."""

from dataclasses import dataclass, replace

import numpy as np

MOST_STEPS = 8  # tokens of a sequence that can be taken back


@dataclass(frozen=True)
class Rows:
    """Integers of a call, for the parameters `names` of its entry."""

    names: frozenset[str]
    lengths: tuple[int, ...]
    steps: int  # S
    slots: np.ndarray  # [N]
    table: np.ndarray  # [N, S]
    accepted: np.ndarray  # [N]
    write_slots: np.ndarray  # [N]

    @classmethod
    def make(cls, names, lengths, skipped, accepted, steps) -> "Rows":
        """Sequence i has slot i + 1 and, where states are kept for each token, S slots of its
        own: behind the sequences' slots, or from slot 1 on where it has no other. Sequence i of
        `skipped` has that id instead. Where `accepted` is empty, counts of all kinds."""
        names = frozenset(names)
        if "cu_seqlens" not in names:
            lengths = (1,) * len(lengths)
        count = len(lengths)
        steps = steps or min(MOST_STEPS, max((1, *lengths)))
        slots, table = np.arange(1, count + 1), 1 + np.arange(count * steps).reshape(-1, steps)
        if "slots" in names and "token_state_pool" not in names:
            table += count
        for row, slot in skipped.items():
            slots[row] = slot
            if "slots" not in names:
                table[row] = slot
        least = 0 if "slots" in names else 1  # that can be accepted
        if not accepted:
            accepted = [least + row % (steps + 1 - least) for row in range(count)]
        return cls(names, tuple(lengths), steps, slots, table, np.asarray(accepted), slots)

    def to_others(self) -> "Rows":
        """The same, written to slots behind the sequences' own."""
        count = len(self.lengths)
        return replace(self, write_slots=1 + count + np.arange(count))

    def integers(self) -> dict[str, np.ndarray]:
        """Values of parameters that say what the sequences are, by name."""
        index = np.arange(self.steps)
        tree = np.where(index > 0, (index - 1) // 2, -1)  # each the start of two others
        return {
            "slots": self.slots,
            "write_slots": self.write_slots,
            "token_slots": self.table,
            "num_accepted": self.accepted,
            "parents": np.array(
                [index - 1 if row % 3 == 2 else tree for row in range(len(self.lengths))]
            ).reshape(-1, self.steps),
            "cu_seqlens": np.concatenate([[0], np.cumsum(self.lengths)]),
            "has_initial": np.ones(len(self.lengths)),
            "cu_checkpoints": np.zeros(len(self.lengths) + 1),
        }

    def symbols(self, slots: int = 0) -> dict[str, int]:
        """Sizes of parameters; `slots` of the pools, 0 for three more than are used."""
        own = [self.slots] if "slots" in self.names else []
        if "write_slots" in self.names:
            own.append(self.write_slots)
        if "token_slots" in self.names and "token_state_pool" not in self.names:
            own.append(self.table.ravel())
        # Ids of sequences that are skipped may lie past the end.
        rows = len(self.lengths) * (self.steps + 1)
        used = max((s for ids in own for s in ids if s <= rows), default=0)
        return {
            "N": len(self.lengths),
            "T": sum(self.lengths),
            "P": slots or int(used) + 3,
            "B": len(self.lengths) * self.steps + 3,
            "S": self.steps,
            "C": 0,
        }

    def accepted_slot(self, row: int) -> int:
        count = self.accepted[row]
        return int(self.table[row, count - 1]) if 1 <= count <= self.steps else -1

    def looked_at(self, pool: str, shape: tuple[int, ...]) -> np.ndarray:
        """True for elements of a pool that a launch may look at."""
        seen = np.zeros(shape, bool)
        is_buffer = pool.startswith("token_")
        if is_buffer and "cu_seqlens" in self.names:
            return seen  # written only
        for row in range(len(self.lengths)):
            own = self.slots[row] if "slots" in self.names else self.accepted_slot(row)
            slot = self.accepted_slot(row) if is_buffer else own
            if not 0 <= slot < shape[0]:
                continue
            # What a slot counts is not known here.
            is_lazy = "pending_keys" in self.names and "num_accepted" in self.names
            is_counted = "pending_counts" in self.names and pool != "conv_pool"
            if not is_lazy or is_counted or pool == "state_pool":
                seen[slot] = True
                continue
            # Of pending tokens those that are accepted; windows lie before them.
            columns = shape[2] - self.steps if pool == "conv_pool" else 0
            seen[slot, :, : columns + int(np.clip(self.accepted[row], 0, self.steps))] = True
        return seen
