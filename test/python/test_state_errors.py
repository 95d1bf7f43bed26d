# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What formats of states cost in accuracy, beside float64: the record of which the guide's table is
made, its bounds in the spec, and decode of this build."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import state_errors
import state_errors_table
from gdn import Runtime

ROOT = Path(__file__).resolve().parents[2]
RECORD = json.loads(state_errors_table.RECORD.read_text())
ROWS = {(row["state"], row["deferred_writes"]): row for row in RECORD["rows"]}
STREAMS = list(state_errors.STREAMS)


@pytest.fixture(scope="module")
def measure(build_dir, gdn_compile, unsanitized):
    runtime = Runtime(build_dir / "lib/libgdnrt.so")

    def run(**options):
        rows = state_errors.measure(runtime, gdn_compile, **options)
        return {(row["state"], row["deferred_writes"]): row for row in rows}

    return run


def test_the_record_is_of_the_script():
    assert tuple(ROWS) == state_errors.FORMS
    assert all(name in row for row in ROWS.values() for name in STREAMS)
    sizes = RECORD["tokens"], RECORD["last"], RECORD["heads"], RECORD["dim"]
    assert sizes == (
        state_errors.TOKENS,
        state_errors.LAST,
        state_errors.HEADS,
        state_errors.DIM,
    )


def test_the_bounds_of_the_spec():
    text = (ROOT / "docs/spec/numerics.md").read_text().partition("### Formats of states")[2]
    bounds = {}
    for state, *limits in re.findall(r"^\| `?(\w+)`? \| ([\d.e-]*) ?\| ([\d.e-]*) \|$", text, re.M):
        bounds |= {(state, w): float(x) for w, x in zip((0, 16), limits, strict=True) if x}
    assert set(bounds) == set(ROWS)
    for form, bound in bounds.items():
        assert max(ROWS[form]["slow heads"]) <= bound, form
        # A bound says something.
        assert max(ROWS[form]["slow heads"]) >= bound / 4, form


def test_the_upper_plane_has_one_bound_for_all_streams():
    bound = 1e-2  # as the spec says behind its table
    assert all(max(ROWS["i8x2_upper", 16][name]) <= bound for name in STREAMS)


def test_formats_have_their_order(measure):
    """A short run: errors are there, have not grown to what they are after many tokens, and are
    those of their formats."""
    rows = measure(tokens=640, last=128, first=128)
    for form, row in rows.items():
        for name in ("slow heads", "values up to 1e4"):
            for got, whole in zip(row[name], ROWS[form][name], strict=True):
                assert whole / 30 < got < 1.2 * whole, (form, name)
        # Deferred writes round less often.
        if form[1] and (form[0], 0) in rows:
            assert all(row[name][0] < rows[form[0], 0][name][0] for name in STREAMS), form
    for writes in (0, 16):
        for name in STREAMS:
            order = [rows[state, writes][name][0] for state in ("f32", "i8x2", "f16", "bf16")]
            assert order == sorted(order), (writes, name)


@pytest.mark.long
def test_the_record_is_of_this_build(measure):
    """Sums have another order on other processors, so digits may differ."""
    for form, row in measure().items():
        for name in STREAMS:
            np.testing.assert_allclose(row[name], ROWS[form][name], rtol=0.15, err_msg=f"{form}")


def test_a_state_that_is_lost_is_an_error():
    got = np.array([[1.0, np.inf], [1.0, 2.0]])
    np.testing.assert_array_equal(
        state_errors.error_of(got, np.array([[1.0, 3.0], [1.0, 2.0]]), (1,)), [np.inf, 0]
    )
