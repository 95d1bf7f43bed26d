# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sequences in slots of a StatePool that a layer serves, beside a float64 model of them."""

import numpy as np
from gdn_layer_model import CoreModel, make_inputs, make_weights, relative_error

from gdn import StatePool, StatePoolShape
from gdn.layers.attention import CommonAttentionMetadata, GDNAttentionMetadataBuilder, GDNLayer
from gdn.reference import states_of

HK, HV, D, ROWS = 1, 2, 64, 5
# Tokens that may be pending, and tokens of a verify: room for one step and a bit.
ROOM, S = 4, 2


def make_shape(**options):
    given = {"pending_tokens": ROOM, "deferred_writes": True, "conv_extra": S + 1}
    return StatePoolShape(1, ROWS + 2, HK, HV, D, D, conv_dtype="float32", **given | options)


def make_builder(device, *, verifies=True, **options):
    given = {"num_speculative_tokens": S, "verify_states": "lazy"} if verifies else {}
    return GDNAttentionMetadataBuilder.from_options(
        device._runtime,
        max_num_seqs=ROWS,
        max_num_tokens=512,
        **{"deferred_writes": True} | given | options,
    )


class Engine:
    """Sequences with one slot each, and the model's states after each of their tokens. `bound` is
    of relative errors; `shape` has options of the pool, the others are of the builder. Heads that
    are `slow` forget little."""

    def __init__(
        self,
        device,
        kernels,
        seed,
        *,
        verifies=True,
        shape=(),
        bound=1e-5,
        slow=False,
        **options,
    ):
        self.rng = np.random.default_rng(seed)
        self.bound, self.verifies = bound, verifies
        self.weights = make_weights(self.rng, HK, HV)
        if slow:
            self.weights["A_log"] -= np.float32(8)
        given = {"conv_extra": S + 1 if verifies else 0} | dict(shape)
        self.pool = StatePool(device, make_shape(**given), debug_checks=True)
        # What no step has written is seen.
        for array in self.arrays():
            if array.dtype != np.int32:
                array[...] = 255 if array.dtype == np.uint8 else np.nan
        self.layer = GDNLayer(kernels, pool=self.pool, **self.weights)
        self.builder = make_builder(device, verifies=verifies, **options)
        self.layer.check_steps(self.builder)
        self.model = CoreModel(self.weights, 1 + (ROWS + 2) * (1 + S))
        self.free = list(range(ROWS + 2))
        self.sequences: list[dict] = []

    @property
    def counts(self):
        return self.pool.pending(0)[3]

    def arrays(self):
        """All memory of the slots."""
        shape, pool = self.pool.shape, self.pool
        planes = pool.planes(0) if shape.state_planes else ()
        pending = pool.pending(0) if shape.pending_tokens else ()
        return [pool.state(0), *planes, pool.conv_history(0), *pending]

    def states(self):
        """The states in the pool, in float64."""
        names = ("state_pool", "state_scales", "state_low")
        planes = self.pool.planes(0) if self.pool.shape.state_planes else ()
        return states_of(dict(zip(names, (self.pool.state(0), *planes), strict=False)))

    def admit(self, slot=None):
        """A new sequence, in a slot that nobody has zeroed."""
        if slot is None:
            (slot,) = self.pool.allocate(1, zero=False)
        model = 1 + self.free.pop() * (1 + S)
        table = np.arange(model, model + 1 + S)
        sequence = {"slot": slot, "model": table, "done": 0, "kept": 1, "accepted": 0}
        self.sequences.append(sequence)
        return sequence

    def fork(self, sequence):
        slot = self.pool.fork(sequence["slot"])
        other = self.admit(slot)
        for name in ("done", "kept", "accepted"):
            other[name] = sequence[name]
        source, target = sequence["model"], other["model"]
        self.model.state[target] = self.model.state[source]
        self.model.conv[target] = self.model.conv[source]
        return other

    def finish(self, sequence):
        self.pool.free([sequence["slot"]])
        self.drop(sequence)

    def drop(self, sequence):
        self.free.append((int(sequence["model"][0]) - 1) // (1 + S))
        self.sequences.remove(sequence)

    def step(self, sequences, lengths, drafts=None, **options):
        """The relative error of a step; accepts some of what was verified."""
        starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        tokens, count = int(starts[-1]), len(sequences)
        done = np.array([each["done"] for each in sequences])
        rows = options.get("num_padded_reqs", 0) or count
        common = CommonAttentionMetadata(
            query_start_loc=starts,
            seq_lens=(done + lengths).astype(np.int32),
            num_reqs=count,
            num_actual_tokens=options.pop("num_actual_tokens", tokens),
            block_table_tensor=np.array([[s["slot"]] for s in sequences], np.int32),
        )
        accepted = np.array([s["accepted"] for s in sequences], np.int32)
        drafts = None if drafts is None else np.asarray(drafts, np.int32)
        m = self.builder.build(0, common, accepted, drafts, **options)
        room = max(tokens, common.num_actual_tokens, rows)
        inputs = make_inputs(self.rng, room, HK, HV)
        core = np.full((room, HV, D), np.nan, np.float32)
        self.layer.forward(m, **inputs, core=core)
        expected = np.zeros(core.shape)
        for i, sequence in enumerate(sequences):
            part = slice(*starts[i : i + 2])
            if part.stop == part.start:
                continue
            table = sequence["model"]
            start = int(table[sequence["kept"] - 1]) if sequence["done"] else None
            verified = drafts is not None and drafts[i] >= 0
            slots = list(table) if verified else [int(table[0])]
            expected[part] = self.model.row(inputs, part, start, slots)
            kept = int(self.rng.integers(1, lengths[i] + 1)) if verified else int(lengths[i])
            sequence["done"] += kept
            sequence["kept"] = kept if verified else 1
            sequence["accepted"] = kept if verified else 0
        return relative_error(core, expected)

    def commit(self, sequences):
        """Their states have all tokens then, which is compared."""
        slots = [each["slot"] for each in sequences]
        if "commit" in self.layer.kernels:
            m = self.builder.build_commit(slots, [each["accepted"] for each in sequences])
            self.layer.forward(m)
        if self.pool.shape.deferred_writes:
            assert not self.counts[slots].any()
        states, conv = self.states(), self.pool.conv(0)
        for sequence in sequences:
            sequence["accepted"] = 0
            there = int(sequence["model"][sequence["kept"] - 1])
            assert relative_error(states[sequence["slot"]], self.model.state[there]) < self.bound
            assert relative_error(conv[sequence["slot"]], self.model.conv[there]) < 1e-6


def random_step(engine):
    """Decodes, pieces of prompts, verified rows and rows without tokens."""
    count = int(engine.rng.integers(1, ROWS + 1))
    order = engine.rng.permutation(len(engine.sequences))[:count]
    sequences = [engine.sequences[i] for i in order]
    count = len(sequences)
    drafts = None
    lengths = engine.rng.choice([0, 1, 1, 1, 1, 2, 7, 65], count)
    if engine.verifies:
        begun = np.array([each["done"] > 0 for each in sequences])
        some = engine.rng.random(count) < engine.rng.choice([0, 0.6, 1])
        drafts = np.where(some & begun, engine.rng.integers(0, S + 1, count), -1)
        lengths = np.where(drafts >= 0, drafts + 1, lengths)
    return engine.step(sequences, lengths, drafts)


def random_steps(engine, count=25):
    """Steps, forks, slots with a new owner and commits; the errors of the steps."""
    errors = []
    for _ in range(count):
        what = engine.rng.random()
        if len(engine.sequences) < ROWS and (what < 0.3 or not engine.sequences):
            engine.admit()
        elif what < 0.4 and len(engine.sequences) < ROWS + 2:
            begun = [each for each in engine.sequences if each["done"]]
            if begun:
                engine.fork(begun[int(engine.rng.integers(len(begun)))])
        elif what < 0.45:
            engine.finish(engine.sequences[int(engine.rng.integers(len(engine.sequences)))])
        elif what < 0.5:
            engine.commit([each for each in engine.sequences if each["done"]][:ROWS])
        else:
            errors.append(random_step(engine))
            assert errors[-1] < engine.bound, errors[-1]
    engine.commit([each for each in engine.sequences if each["done"]][:ROWS])
    return errors
