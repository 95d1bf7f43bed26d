# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Deferred writes on slots of a StatePool: forks and copies take what is pending along, a slot with
a new owner has nothing pending, and a commit gives the state of steps in place."""

import numpy as np
import pytest
from gdn_layer_model import KEY_DIM, compile_image, relative_error

from gdn import Runtime, StatePool, StatePoolShape

ROOM = 4
PENDING = ("pending_keys", "pending_deltas", "pending_decays", "pending_counts")


@pytest.fixture(scope="module")
def device(build_dir):
    return Runtime(build_dir / "lib/libgdnrt.so").device(num_workers=2)


@pytest.fixture(scope="module")
def kernels(device, tool, tmp_path_factory):
    def kernels(name, *options):
        path = compile_image(
            tool,
            tmp_path_factory.mktemp(name),
            "--layout=ready",
            "--outputs=core",
            *options,
        )
        image = device._runtime.image(path)
        return {
            entry: device.kernel(image, entry)
            for entry in ("decode", "commit")
            if entry in image.entries
        }

    return kernels("in_place") | {
        f"deferred_{name}": kernel
        for name, kernel in kernels("deferred", f"--defer-writes={ROOM}").items()
    }


class Sequences:
    """A pool, and the same states in place beside it."""

    def __init__(self, device, kernels):
        self.keys, self.values, self.dim = 1, 2, KEY_DIM
        shape = StatePoolShape(
            1,
            4,
            self.keys,
            self.values,
            self.dim,
            self.dim,
            pending_tokens=ROOM,
            deferred_writes=True,
        )
        self.pool = StatePool(device, shape)
        self.kernels = kernels
        self.states = np.zeros_like(self.pool.state(0))
        self.rng = np.random.default_rng(4)

    @property
    def pending(self):
        return dict(zip(PENDING, self.pool.pending(0), strict=True))

    @property
    def counts(self):
        return self.pool.pending(0)[3]

    def step(self, slots, token=None):
        """A step in both forms; the same token for all rows where one is given."""
        rows = len(slots)
        token = self.token() if token is None else token
        given = {name: np.stack([value] * rows) for name, value in token.items()}
        slots = np.array(slots, np.int32)
        outputs = [np.full((rows, self.values, self.dim), np.nan, np.float32) for _ in range(2)]
        self.kernels["decode"].bind(
            **given, slots=slots, state_pool=self.states, core=outputs[0]
        ).launch()
        self.kernels["deferred_decode"].bind(
            **given, slots=slots, state_pool=self.pool.state(0), **self.pending, core=outputs[1]
        ).launch()
        want, got = (output.astype(np.float64) for output in outputs)
        assert relative_error(got, want) < 1e-5
        return got

    def token(self):
        def unit(*shape):
            x = self.rng.standard_normal(shape)
            return (x / np.linalg.norm(x, axis=-1, keepdims=True)).astype(np.float32)

        return {
            "q": unit(self.keys, self.dim),
            "k": unit(self.keys, self.dim),
            "v": self.rng.standard_normal((self.values, self.dim)).astype(np.float32),
            "log_decay": -self.rng.uniform(0, 0.5, self.values).astype(np.float32),
            "beta": self.rng.uniform(0, 1, self.values).astype(np.float32),
        }

    def commit(self, slots):
        self.kernels["deferred_commit"].bind(
            slots=np.array(slots, np.int32), state_pool=self.pool.state(0), **self.pending
        ).launch()


@pytest.fixture
def sequences(device, kernels):
    return Sequences(device, kernels)


@pytest.mark.parametrize("steps", [1, ROOM, ROOM + 1, 2 * ROOM + 3])
def test_fork_takes_what_is_pending_along(sequences, steps):
    pool = sequences.pool
    (slot,) = pool.allocate(1)
    for _ in range(steps):
        sequences.step([slot])
    fork = pool.fork(slot)
    sequences.states[fork] = sequences.states[slot]
    assert (sequences.counts[fork] == sequences.counts[slot]).all() and sequences.counts[slot].all()
    # They go on as one does, bit for bit, and apart.
    for _ in range(ROOM):
        outputs = sequences.step([slot, fork])
        assert (outputs[0] == outputs[1]).all()
    sequences.step([fork])
    sequences.commit([slot, fork, 0, -1])
    assert not sequences.counts.any()
    live = [slot, fork]
    assert relative_error(pool.state(0)[live], sequences.states[live]) < 1e-5


def test_new_owner_has_nothing_pending(sequences):
    pool = sequences.pool
    (slot,) = pool.allocate(1)
    for _ in range(3):
        sequences.step([slot])
    assert (sequences.counts[slot] == 3).all()
    pool.free([slot])
    # Whoever takes it next writes the state, as prefill does.
    assert slot in pool.allocate(4, zero=False)
    assert not sequences.counts[slot].any()
    pool.state(0)[slot] = sequences.states[slot] = 0.5
    sequences.step([slot])
    sequences.commit([slot])
    assert relative_error(pool.state(0)[slot], sequences.states[slot]) < 1e-5


def test_padding_counts_nothing(sequences):
    pool = sequences.pool
    pool.allocate(2)
    sequences.counts[0] = 0
    before = {name: array[[0, 2]].tobytes() for name, array in sequences.pending.items()}
    for _ in range(ROOM + 2):
        sequences.kernels["deferred_decode"].bind(
            **{name: np.stack([value] * 3) for name, value in sequences.token().items()},
            slots=np.array([0, 1, -1], np.int32),
            state_pool=pool.state(0),
            **sequences.pending,
            core=np.zeros((3, sequences.values, sequences.dim), np.float32),
        ).launch()
    assert {name: array[[0, 2]].tobytes() for name, array in sequences.pending.items()} == before
