# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""States inside the sequences of a prefill on a pool, with arrays of NumPy, against float64."""

import numpy as np
import pytest
import rule_cases
from rule_cases import DK, DV, HV, draw, error_of, ready

from gdn.rule_pool import delta_prefill

STARTS = np.array([0, 70, 70, 200], np.int32)
SLOTS = np.array([4, 2, 0])

pytestmark = pytest.mark.usefixtures("compiler_on_path")


def test_states_inside_sequences(runtime):
    rng = np.random.default_rng(1)
    given = draw(rng, 200)
    states = rng.standard_normal((10, HV, DV, DK)).astype(np.float32)
    states[6:] = np.nan
    want, after = rule_cases.expected(given, states, STARTS, SLOTS)
    # The last is behind the end of its sequence.
    tokens, places = np.array([64, 64, 128, 192]), np.array([6, 7, 8, 9])
    for (n, count), place in zip(((0, 64), (2, 64), (2, 128)), places, strict=False):
        steps = rule_cases.recurrence(
            given, range(STARTS[n], STARTS[n] + count), states[SLOTS[n]].astype(np.float64)
        )
        *_, (_, after[place]) = steps
    out = delta_prefill(
        **ready(given),
        states=states,
        slots=SLOTS,
        cu_seqlens=STARTS,
        checkpoints=(np.array([0, 1, 1, 4]), tokens, places),
        runtime=runtime,
    )
    assert error_of(out, want) < 2e-5
    assert error_of(states[:9], after[:9]) < 2e-5 and np.isnan(states[9]).all()


def test_shapes(runtime):
    given = ready(draw(np.random.default_rng(2), 200))
    places = {"states": np.zeros((10, HV, DV, DK), np.float32), "slots": SLOTS}
    for checkpoints, message in (
        (([0, 1], [64], [6]), r"cu_checkpoints: expected the shape \[4\], got \[2\]"),
        (([0, 1, 1, 1], [64], [6, 7]), r"checkpoint_slots: expected the shape \[1\], got \[2\]"),
        (([0.0, 1, 1, 1], [64], [6]), "cu_checkpoints: expected integers, got float64"),
    ):
        checkpoints = tuple(map(np.array, checkpoints))
        with pytest.raises(ValueError, match=message):
            delta_prefill(
                **given, **places, cu_seqlens=STARTS, checkpoints=checkpoints, runtime=runtime
            )
