# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sequences that are preempted again and again, by swapping to a host tier or by recomputing, in
each mode of block tables: every output and state is that of a float64 model that is never
interrupted, and no slot is lost or used twice."""

import numpy as np
import pytest
from gdn_layer_model import CoreModel, compile_image, make_inputs, make_weights, relative_error

from gdn import GdnError, HostTier, Pool, Runtime, StatePool, StatePoolShape
from gdn.layers.attention import (
    CommonAttentionMetadata,
    GDNAttentionMetadataBuilder,
    GDNLayer,
    layer_kernels,
)

pytestmark = pytest.mark.once(compiler="cpu")

HK, HV, D, BLOCK, ROWS = 1, 2, 64, 64, 4


@pytest.fixture(scope="module")
def runtime(build_dir):
    return Runtime(build_dir / "lib/libgdnrt.so")


def options(*others: str) -> tuple[str, ...]:
    return ("--layout=split", "--outputs=core", "--write-slots", "--has-initial", *others)


@pytest.fixture(scope="module")
def kernels(runtime, tool, tmp_path_factory):
    path = compile_image(
        tool, tmp_path_factory.mktemp("layer"), *options("--checkpoints", "--verify=slots")
    )
    return layer_kernels(runtime.device(debug_checks=True), runtime.image(path))


class Request:
    """Tokens of a sequence, what the model says of them, and what is known of its state."""

    def __init__(self, rng, model: CoreModel, drafts: int):
        self.length = int(rng.integers(1, 170))
        self.inputs = make_inputs(rng, self.length + drafts + 1, HK, HV)
        self.expected = model.row(self.inputs, slice(0, self.length), None, [1])
        self.out = np.full((self.length, HV, D), np.nan, np.float32)
        self.done, self.accepted, self.column = 0, 1, -1
        self.slots: list[int] = []  # of its row of the block table
        self.kept: list[int] | None = None  # host slots, while it waits


class Engine:
    """A scheduler that is never content with what it runs."""

    def __init__(self, runtime, kernels, mode: str, seed: int, drafts: int, format: str | None):
        self.rng = np.random.default_rng(seed)
        weights = make_weights(self.rng, HK, HV)
        self.model = CoreModel(weights, 2)
        self.mode, self.drafts = mode, drafts
        self.columns = {"none": 1 + drafts, "align": 4 + drafts, "all": 4}[mode]
        shape = StatePoolShape(1, 2 * self.columns + 2, HK, HV, D, D, conv_dtype="float32")
        device = runtime.device()
        self.pool = StatePool(device, shape, debug_checks=True)
        state, conv = self.pool.get_layer_state(0)
        self.layer = GDNLayer(kernels, **weights, state_pool=Pool(state), conv_pool=Pool(conv))
        self.tier = HostTier(self.pool, 3, format=format)
        self.builder = GDNAttentionMetadataBuilder.from_options(
            runtime,
            max_num_seqs=ROWS,
            max_num_tokens=1024,
            num_speculative_tokens=drafts,
            mamba_cache_mode=mode,
            block_size=BLOCK,
        )
        self.waiting: list[Request] = []
        self.running: list[Request] = []
        self.swaps = self.recomputed = 0

    def admit(self) -> None:
        while self.waiting and len(self.running) < ROWS:
            request = self.waiting[0]
            if request.kept is not None:
                # Of one state, in the column of the last token.
                got = self.tier.swap_in(request.kept)
                if got is None:
                    return
                rest = self.pool.allocate(self.columns - 1, zero=False)
                if rest is None:
                    request.kept = self.tier.swap_out(got)
                    assert request.kept is not None
                    return
                column = 0 if self.mode == "none" else (request.done - 1) // BLOCK
                request.slots = rest[:column] + got + rest[column:]
                request.column, request.accepted, request.kept = column, 1, None
            else:
                got = self.pool.allocate(self.columns, zero=False)
                if got is None:
                    return
                request.slots = got
                request.done, request.accepted, request.column = 0, 1, -1
            self.running.append(self.waiting.pop(0))

    def preempt(self, request: Request) -> None:
        self.running.remove(request)
        self.waiting.append(request)
        if request.done and self.rng.random() < 0.6:
            (column,) = self.builder.state_columns(
                [request.done],
                [request.column] if self.mode == "align" else None,
                [request.accepted] if self.drafts else None,
            )
            slot = request.slots.pop(column)
            self.pool.free(request.slots)
            request.kept = self.tier.swap_out([slot])
            self.swaps += request.kept is not None
            if request.kept is None:
                self.pool.free([slot])
        else:
            self.pool.free(request.slots)
        if request.kept is None:
            self.recomputed += request.done > 0
        request.slots = []

    def step(self) -> None:
        rows = list(self.running)
        self.rng.shuffle(rows)
        drafts = np.full(len(rows), -1, np.int32)
        tokens = []
        for i, request in enumerate(rows):
            left = request.length - request.done
            if request.done and self.drafts and self.rng.random() < 0.5:
                drafts[i] = min(self.drafts, int(self.rng.integers(1, self.drafts + 1)))
                tokens.append(drafts[i] + 1)
            else:
                tokens.append(int(min(left, self.rng.integers(1, 70))))
        # Verified sequences have tokens of the sequence as drafts, and some behind its end.
        starts = np.concatenate([[0], np.cumsum(tokens)]).astype(np.int32)
        lengths = np.array([r.done + t for r, t in zip(rows, tokens, strict=True)], np.int32)
        common = CommonAttentionMetadata(
            query_start_loc=starts,
            seq_lens=lengths,
            num_reqs=len(rows),
            num_actual_tokens=int(starts[-1]),
            block_table_tensor=np.array([r.slots for r in rows], np.int32),
        )
        accepted = np.array([r.accepted for r in rows], np.int32) if self.drafts else None
        if self.mode == "align":
            columns = np.array([r.column for r in rows], np.int32)
            self.builder.align_states_before(common, columns, accepted, pool=self.pool)
            for request, column in zip(rows, columns, strict=True):
                request.column = int(column)
        given = {
            name: np.concatenate(
                [r.inputs[name][r.done : r.done + t] for r, t in zip(rows, tokens, strict=True)]
            )
            for name in rows[0].inputs
        }
        core = np.full((len(given["b"]), HV, D), np.nan, np.float32)
        m = self.builder.build(0, common, accepted, drafts if self.drafts else None)
        self.layer.forward(m, **given, core=core)
        verified = m.spec_sequence_masks is not None
        for i, request in enumerate(rows):
            took = int(tokens[i])
            request.accepted = 1
            if drafts[i] >= 0:
                took = min(int(self.rng.integers(1, took + 1)), request.length - request.done)
                request.accepted = took if verified else 1
                assert verified
            part = core[starts[i] : starts[i] + took]
            request.out[request.done : request.done + took] = part
            request.done += took
        if self.mode == "align" and self.drafts:
            accepted = np.array([r.accepted for r in rows], np.int32)
            columns = np.array([r.column for r in rows], np.int32)
            self.builder.align_states_after(common, columns, accepted, drafts, pool=self.pool)
            for request, count in zip(rows, accepted, strict=True):
                request.accepted = int(count)

    def finish(self, limit: float) -> None:
        for request in [r for r in self.running if r.done == r.length]:
            assert relative_error(request.out, request.expected) < limit
            self.running.remove(request)
            self.pool.free(request.slots)

    def serve(self, requests: list[Request], limit: float, turns: int, preempted: float) -> None:
        """Until all are done, which takes fewer turns; after a turn a request is preempted with the
        probability `preempted`."""
        self.waiting = requests
        for _ in range(turns):
            self.admit()
            if self.running:
                self.step()
                self.finish(limit)
            elif not self.waiting:
                break
            if self.running and self.rng.random() < preempted:
                self.preempt(self.rng.choice(self.running))
        assert not self.waiting and not self.running

    def run(self, requests: int, limit: float) -> None:
        made = [Request(self.rng, self.model, self.drafts) for _ in range(requests)]
        self.serve(made, limit, turns=2000, preempted=0.5)
        assert self.pool.num_free == self.pool.shape.num_requests
        assert self.tier.num_free == self.tier.num_slots


@pytest.mark.parametrize(
    "mode, drafts", [("none", 0), ("none", 2), ("align", 0), ("align", 2), ("all", 0)]
)
@pytest.mark.parametrize("seed", range(4))
def test_preempted_sequences_are_the_same(runtime, kernels, mode, drafts, seed):
    engine = Engine(runtime, kernels, mode, seed, drafts, None)
    engine.run(20, 1e-5)
    assert engine.swaps > 1 and engine.recomputed > 1


def test_states_that_are_rounded_on_the_way(runtime, kernels):
    engine = Engine(runtime, kernels, "none", 5, 0, "i8x2")
    engine.run(20, 1e-3)
    assert engine.swaps > 1


def test_state_columns_are_checked(runtime, kernels):
    builder = Engine(runtime, kernels, "align", 1, 2, None).builder
    assert list(builder.state_columns([0, 65, 65], [-1, 1, -1], [1, 2, 1])) == [-1, 2, 1]
    with pytest.raises(ValueError, match="accepted: expected 2 elements, got \\[1\\]"):
        builder.state_columns([1, 2], [0, 0], [1])
    with pytest.raises(ValueError, match="num_tokens: expected int32, got 4294967361"):
        builder.state_columns([2**32 + 65], [1], [1])
    with pytest.raises(TypeError, match="accepted: expected integers, got float64"):
        builder.state_columns([65], [1], [1.5])
    with pytest.raises(GdnError, match="count: expected 0 or more, got -1"):
        runtime.call("gdnrt_state_columns", builder._handle, None, None, None, -1, None)
