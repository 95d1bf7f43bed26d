# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One state cache behind each mode of block tables: requests that begin alike start from its
checkpoints, leave theirs when they are preempted and when they end, and with mode all those of
whole blocks. Checkpoints that lose their slots go to the host tier that requests are swapped to."""

import numpy as np
import pytest
from gdn_layer_model import make_inputs
from test_preemption import BLOCK, HK, HV, D, Engine, Request, kernels, runtime

from gdn import HostTier, StateCache

pytestmark = pytest.mark.once(compiler="cpu")

__all__ = ["kernels", "runtime"]  # fixtures


class AlikeRequest(Request):
    """It goes on where another one ends, as a chat does, or leaves its tokens on the way."""

    def __init__(self, rng, model, drafts: int, others: list):
        super().__init__(rng, model, drafts)
        shared = 0
        if others and rng.random() < 0.7:
            other = others[int(rng.integers(len(others)))]
            shared = other.length if rng.random() < 0.7 else int(rng.integers(other.length))
        self.length += shared
        own = make_inputs(rng, self.length + drafts + 1, HK, HV)
        # Ids of tokens that nobody else has, behind those that others have.
        first = int(rng.integers(1 << 30))
        self.ids = np.arange(first, first + self.length)
        if shared:
            self.ids[:shared] = other.ids[:shared]
            for name, values in own.items():
                values[:shared] = other.inputs[name][:shared]
        self.inputs = own
        self.expected = model.row(self.inputs, slice(0, self.length), None, [1])
        self.out = np.full((self.length, HV, D), np.nan, np.float32)
        self.skipped = 0


class CachedEngine(Engine):
    def __init__(self, runtime, kernels, mode: str, seed: int, drafts: int):
        super().__init__(runtime, kernels, mode, seed, drafts, None)
        self.tier = HostTier(self.pool, 6)
        self.cache = StateCache(
            self.pool,
            max_nodes=400,
            max_tokens=20_000,
            has_pages=False,
            host_tier=self.tier,
            host_bytes=4 * self.tier.slot_bytes,
            host_min_tokens=16,
        )
        self.hits = 0
        # All slots of the engine come from the cache, which gives its own up for them.
        self.pool.allocate = lambda count, zero=False: self.cache.take_slots(count, zero)

    def admit(self) -> None:
        before = set(map(id, self.running))
        super().admit()
        for request in self.running:
            if id(request) not in before and request.done == 0:
                self.start(request)

    def start(self, request) -> None:
        match = self.cache.match(request.ids[: request.length - 1])
        lock = self.cache.lock(match.node)
        if match.tokens and self.cache.fetch(lock):
            column = 0 if self.mode == "none" else (match.tokens - 1) // BLOCK
            self.pool.copy_states(lock.slot, request.slots[column])
            request.done, request.column, request.accepted = match.tokens, column, 1
            request.out[: match.tokens] = request.expected[: match.tokens]
            request.skipped = match.tokens
            self.hits += 1
        self.cache.unlock(lock)

    def keep(self, request, tokens: int, slot: int) -> None:
        mine = self.cache.take_slots(1)
        if mine is None:
            return
        self.pool.copy_states(slot, mine[0])
        if not self.cache.insert(request.ids[:tokens], slot=mine[0]).slot_taken:
            self.pool.free(mine)

    def leave(self, request) -> None:
        """The states of a request that gives its slots up."""
        if request.done == 0:
            return
        (column,) = self.builder.state_columns(
            [request.done],
            [request.column] if self.mode == "align" else None,
            [request.accepted] if self.drafts else None,
        )
        if self.mode == "all":
            # Blocks that it computed itself end with a state in their column.
            for block in range(request.skipped // BLOCK, (request.done - 1) // BLOCK):
                if (block + 1) * BLOCK > request.skipped:
                    self.keep(request, (block + 1) * BLOCK, request.slots[block])
        self.keep(request, request.done, request.slots[column])
        self.cache.audit()

    def preempt(self, request) -> None:
        self.leave(request)
        super().preempt(request)

    def finish(self, limit: float) -> None:
        for request in self.running:
            if request.done == request.length:
                self.leave(request)
        super().finish(limit)

    def run_alike(self, requests: int, limit: float) -> None:
        made: list[AlikeRequest] = []
        for _ in range(requests):
            shorter = [each for each in made if each.length < 70]
            made.append(AlikeRequest(self.rng, self.model, self.drafts, shorter))
        self.serve(list(made), limit, turns=4000, preempted=0.4)
        there = self.cache.describe()
        assert self.pool.num_free == self.pool.shape.num_requests - there.num_checkpoints
        assert self.tier.num_free == self.tier.num_slots - there.num_host_copies


@pytest.mark.parametrize(
    "mode, drafts", [("none", 0), ("none", 2), ("align", 0), ("align", 2), ("all", 0)]
)
@pytest.mark.parametrize("seed", [1, 2])
def test_requests_start_from_checkpoints(runtime, kernels, mode, drafts, seed):
    engine = CachedEngine(runtime, kernels, mode, seed, drafts)
    engine.run_alike(30, 1e-5)
    there = engine.cache.describe()
    # With one slot for each request all of them are mostly in use, and nothing can come back.
    assert there.num_stored > 0 and engine.hits > 0
    assert engine.columns == 1 or (engine.hits >= 8 and there.num_fetched > 0)
