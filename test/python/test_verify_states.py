# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A layer whose verify keeps states otherwise than in slots of the sequence: pending, in a
buffer, in trees. Random steps of all kinds of rows against a float64 model; what was accepted
is committed at the row's next step."""

import numpy as np
import pytest
from gdn_layer_model import CoreModel, compile_image, make_inputs, make_weights, relative_error

from gdn import GdnError, Pool, Runtime
from gdn.layers.attention import (
    CommonAttentionMetadata,
    GDNAttentionMetadataBuilder,
    GDNLayer,
    layer_kernels,
)

HK, HV, D, S, ROWS = 1, 2, 64, 2, 5
KINDS = ("lazy", "buffer", "tree")


@pytest.fixture(scope="module")
def runtime(build_dir):
    return Runtime(build_dir / "lib/libgdnrt.so")


@pytest.fixture(scope="module", params=KINDS)
def image(request, runtime, tool, tmp_path_factory):
    options = ("--layout=split", "--outputs=core", "--has-initial", f"--verify={request.param}")
    path = compile_image(tool, tmp_path_factory.mktemp(request.param), *options)
    return request.param, layer_kernels(runtime.device(num_workers=2), runtime.image(path))


class Engine:
    """Requests with one slot each (trees: S + 2), and the model's states of every token."""

    def __init__(self, runtime, image, seed: int):
        self.kind, kernels = image
        self.rng = np.random.default_rng(seed)
        weights = make_weights(self.rng, HK, HV)
        channels = len(weights["conv_weight"])
        slots = 1 + ROWS * (S + 2)
        extra = 1 + S if self.kind == "lazy" else 0
        nan = {
            "conv_pool": np.full((slots, channels, 3 + extra), np.nan, np.float32),
            "state_pool": np.full((slots, HV, D, D), np.nan, np.float32),
        }
        if self.kind == "lazy":
            nan["pending_keys"] = np.full((slots, HK, 1 + S, D), np.nan, np.float32)
            nan["pending_deltas"] = np.full((slots, HV, 1 + S, D), np.nan, np.float32)
            nan["pending_decays"] = np.full((slots, HV, 1 + S), np.nan, np.float32)
        if self.kind == "buffer":
            room = 1 + ROWS * (1 + S)
            nan["token_conv_pool"] = np.full((room, channels, 3), np.nan, np.float32)
            nan["token_state_pool"] = np.full((room, HV, D, D), np.nan, np.float32)
        self.pools = nan
        self.layer = GDNLayer(kernels, **weights, **{n: Pool(a) for n, a in nan.items()})
        self.builder = GDNAttentionMetadataBuilder.from_options(
            runtime,
            max_num_seqs=ROWS,
            max_num_tokens=512,
            num_speculative_tokens=S,
            verify_states=self.kind,
        )
        self.model = CoreModel(weights, 1 + ROWS * (1 + S))
        self.model_table = 1 + np.arange(ROWS * (1 + S)).reshape(ROWS, 1 + S)
        self.slots = 1 + np.arange(ROWS * (S + 2), dtype=np.int32).reshape(ROWS, S + 2)
        self.buffer = self.model_table.astype(np.int32)
        self.done = np.zeros(ROWS, np.int64)
        self.kept = np.ones(ROWS, np.int64)  # where the model's state is
        self.counts = np.zeros(ROWS, np.int32)

    def metadata(self, requests, lengths, drafts):
        tokens = self.slots[requests, 1:] if self.kind == "tree" else self.buffer[requests]
        parents = np.tile(np.arange(-1, S, dtype=np.int32), (len(requests), 1))
        common = CommonAttentionMetadata(
            query_start_loc=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32),
            seq_lens=(self.done[requests] + lengths).astype(np.int32),
            num_reqs=len(requests),
            num_actual_tokens=int(np.sum(lengths)),
            block_table_tensor=self.slots[requests, :1],
            token_slots=None if self.kind == "lazy" else tokens,
            parents=parents if self.kind == "tree" else None,
        )
        return common, self.builder.build(0, common, self.counts[requests], drafts)

    def step(self, requests, lengths, drafts=None):
        """The relative error of a step; accepts some of what was verified."""
        lengths = np.asarray(lengths)
        common, m = self.metadata(requests, lengths, drafts)
        inputs = make_inputs(self.rng, int(lengths.sum()), HK, HV)
        core = np.full((int(lengths.sum()), HV, D), np.nan, np.float32)
        self.layer.forward(m, **inputs, core=core)
        expected = np.zeros(core.shape)
        for i, request in enumerate(requests):
            part = slice(*common.query_start_loc[i : i + 2])
            if part.stop == part.start:
                continue
            table = self.model_table[request]
            start = int(table[self.kept[request] - 1]) if self.done[request] else None
            verified = m.spec_sequence_masks is not None and drafts[i] >= 0
            slots = list(table) if verified else [int(table[0])]
            expected[part] = self.model.row(inputs, part, start, slots)
            kept = int(self.rng.integers(1, lengths[i] + 1)) if verified else lengths[i]
            self.done[request] += kept
            self.kept[request] = kept if verified else 1
            self.counts[request] = kept if verified else 0
            if verified and self.kind == "tree":
                self.slots[request, [0, kept]] = self.slots[request, [kept, 0]]
        return relative_error(core, expected)


def test_random_steps(runtime, image):
    for seed in range(8):
        engine = Engine(runtime, image, seed)
        for _ in range(8):
            count = int(engine.rng.integers(1, ROWS + 1))
            requests = engine.rng.permutation(ROWS)[:count]
            drafts = np.where(
                (engine.rng.random(count) < 0.6) & (engine.done[requests] > 0),
                engine.rng.integers(0, S + 1, count),
                -1,
            )
            other = engine.rng.choice([0, 1, 1, 2, 7, 65], count)
            error = engine.step(requests, np.where(drafts >= 0, drafts + 1, other), drafts)
            assert error < 1e-5, f"seed {seed}"
        live = np.flatnonzero(engine.done)
        assert engine.step(live, np.ones(len(live), int)) < 1e-5
        for request in live:  # nothing waits any more
            slot, there = engine.slots[request, 0], engine.model_table[request, 0]
            state, conv = engine.pools["state_pool"][slot], engine.pools["conv_pool"][slot]
            assert relative_error(state, engine.model.state[there]) < 1e-5
            assert relative_error(conv[:, :3], engine.model.conv[there]) < 1e-6


def test_metadata_of_another_kind(runtime, image):
    engine = Engine(runtime, image, 1)
    engine.step([0, 1], [3, 4])
    engine.builder = GDNAttentionMetadataBuilder.from_options(
        runtime, max_num_seqs=ROWS, max_num_tokens=512, num_speculative_tokens=S
    )
    engine.slots[:, :] = engine.slots[:, :1]
    engine.counts[:] = 1
    common = CommonAttentionMetadata(
        query_start_loc=np.array([0, 2, 4], np.int32),
        seq_lens=np.array([5, 6], np.int32),
        num_reqs=2,
        num_actual_tokens=4,
        block_table_tensor=engine.slots[[0, 1]],
    )
    m = engine.builder.build(0, common, engine.counts[:2], np.array([1, 1]))
    core = np.zeros((4, HV, D), np.float32)
    message = f"expected the verify states {engine.kind}, those of the kernel, got slots"
    with pytest.raises(GdnError, match=message):
        engine.layer.forward(m, **make_inputs(engine.rng, 4, HK, HV), core=core)


def test_refusals(runtime, image):
    kind, kernels = image
    with pytest.raises(ValueError, match="verify_states: expected one of slots, tree"):
        GDNAttentionMetadataBuilder.from_options(
            runtime, max_num_seqs=1, max_num_tokens=8, verify_states="eager"
        )
    if kind == "tree":
        return
    without = {name: kernel for name, kernel in kernels.items() if name != "commit"}
    engine = Engine(runtime, (kind, without), 2)
    engine.step([0], [3])
    engine.step([0], [3], np.array([2]))
    with pytest.raises(GdnError, match="commit: the step has 1 rows of that kind"):
        engine.step([0], [1])
