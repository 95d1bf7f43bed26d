# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shares of ranks in C: those of layers with a decay of each channel are the Python layer's, and
heads and tokens dealt out at once name each rank once."""

import numpy as np
import pytest

from gdn.layers.attention.kda_weights import KdaProjections, KdaWeights
from gdn.layers.attention.layer_shape import LayerHeads, kda_weight_slices, rank_place
from gdn.runtime import GdnError, Runtime

NUM, DIM, HIDDEN = 6, 8, 20


@pytest.fixture(scope="module")
def runtime(build_dir):
    return Runtime(build_dir / "lib/libgdnrt.so")


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("tp", [1, 2, 3, 6])
def test_kda_shares(runtime, full, tp):
    heads = LayerHeads(NUM, NUM, DIM, DIM)
    rows = NUM * DIM
    projections = KdaProjections(full_rank_decay=full, full_rank_gate=full)
    sizes = dict.fromkeys(projections.names, rows)
    sizes |= {"f_a_proj": DIM, "g_a_proj": DIM, "b_proj": NUM, "A_log": NUM, "dt_bias": rows}
    sizes |= {"o_norm": DIM, "o_proj": rows, "conv1d": 3 * rows, "q_conv1d": rows}
    alone = ("f_a_proj", "g_a_proj", "o_norm")
    for name, size in sizes.items():
        sections = np.split(np.arange(size), 3 if name == "conv1d" else 1)
        for rank in range(tp):
            axis, slices = kda_weight_slices(runtime, heads, name, tp, rank)
            got = np.concatenate([np.arange(size)[part] for part in slices])
            want = [s if name in alone else np.split(s, tp)[rank] for s in sections]
            assert axis == (name == "o_proj")
            assert got.tolist() == np.concatenate(want).tolist()
            weights = KdaWeights(
                projections,
                num_heads=NUM,
                head_dim=DIM,
                hidden_size=HIDDEN,
                conv_width=4,
                tp_size=tp,
                tp_rank=rank,
            )
            if name in ("conv1d", "A_log", "dt_bias", "o_norm", "o_proj"):
                assert len(got) in weights.shape(name)


def test_refusals(runtime):
    heads = LayerHeads(NUM, NUM, DIM, DIM)
    with pytest.raises(GdnError, match="in_proj_z: no weight"):
        kda_weight_slices(runtime, heads, "in_proj_z", 2, 0)
    with pytest.raises(GdnError, match="expected num_value_heads, which is 6, got 3"):
        kda_weight_slices(runtime, LayerHeads(3, NUM, DIM, DIM), "q_proj", 1, 0)
    with pytest.raises(GdnError, match="INVALID_ARGUMENT"):
        kda_weight_slices(runtime, heads, "q_proj", 4, 0)
    with pytest.raises(GdnError, match="rank: expected 0 to 5, got 6"):
        rank_place(runtime, 2, 3, 6)
    with pytest.raises(GdnError, match="cp: expected 1 to 1048576, got 0"):
        rank_place(runtime, 2, 0, 0)


def test_places(runtime):
    places = [rank_place(runtime, 2, 3, rank) for rank in range(6)]
    assert places == [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2)]
