# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Inputs of the benchmark of decays per channel: what a peer computes gates of gives the log
decays and strengths that ours are given."""

import pytest

torch = pytest.importorskip("torch")

from gdn.bench.channel_inputs import GATES, LOWER_BOUND, make_channel_problem  # noqa: E402
from gdn.bench.grid import Case  # noqa: E402


@pytest.mark.parametrize("kind", GATES)
def test_log_decays_come_of_raw_gates(kind):
    case = Case((2, 2), "100+28")
    (x,) = make_channel_problem(case, "bfloat16", "float32", kind, "cpu", sets=1).sets
    assert x.g.shape == x.gates.raw.shape == (128, 2, 128) and x.g.dtype == torch.float32
    assert x.gates.raw.dtype == x.logits.dtype == torch.bfloat16
    rate = x.gates.A_log.double().exp()[:, None]
    want = LOWER_BOUND * torch.sigmoid(rate * (x.gates.raw.double() + x.gates.dt_bias.double()))
    torch.testing.assert_close(x.g.double(), want, rtol=2e-5, atol=0)
    assert (x.beta == torch.sigmoid(x.logits.float())).all()
    for part in (x.gates.raw, x.gates.A_log, x.gates.dt_bias, x.logits):
        assert part.is_contiguous()


def test_one_channel_of_each_head_is_slow():
    case = Case((2, 2), "100+28")
    (x,) = make_channel_problem(case, "bfloat16", "float32", "slow channel", "cpu", sets=1).sets
    slow = ((x.g / -5e-3 - 1).abs() < 1e-4).all(0)
    assert slow.sum(1).tolist() == [1, 1]


def test_resets_wipe_one_half_of_channels_after_the_other():
    case = Case((1, 1), "1x32")
    (x,) = make_channel_problem(case, "bfloat16", "float32", "resets", "cpu", sets=1).sets
    half = x.g[:, 0, :64]
    assert (half[:8] > -2e-3).all() != (half[:8] == LOWER_BOUND).all()
    assert torch.equal(x.g[:8, :, :64], x.g[8:16, :, 64:])
