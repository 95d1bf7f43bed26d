# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays beside an engine's pool of states: steps, prompts, copies and commits of slots against
float64, and what they take."""

import numpy as np
import pytest
import rule_cases
from rule_cases import DK, DV, HV, H, draw, error_of, ready

from gdn import Runtime
from gdn.integrations.slot_arrays import SlotArrays, SlotForm, SlotSizes, slot_bytes
from gdn.pool_states import EngineStates
from gdn.rule_pool import commit_pending, delta_prefill
from gdn.rule_step import gated_delta_step

LAYERS, SLOTS = 2, 6
#: Types of the engine's array, and how far results may be off.
FORMS = {
    SlotForm("float32", 4): (np.float32, 2e-6),
    SlotForm("float16", 4): (np.float16, 2e-3),
    SlotForm("i8x2", 4): (np.uint8, 1e-3),
    SlotForm("i8x2"): (np.uint8, 1e-3),
}
pytestmark = [pytest.mark.usefixtures("compiler_on_path"), pytest.mark.once(compiler="cpu")]


@pytest.fixture(scope="module")
def runtime(build_dir):
    return Runtime(build_dir / "lib/libgdnrt.so")


def make(form):
    states = np.zeros((LAYERS, SLOTS, HV, DV, DK), FORMS[form][0])
    return states, SlotArrays(form, states, H, np.zeros)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form.state}-{form.deferred_writes}")
def test_slots_go_with_an_engines_array(runtime, form):
    """A prompt, steps of it and of its copy, a copy that goes on alone, and a slot that is used
    again; padding is NaN."""
    rng, bound = np.random.default_rng(2), FORMS[form][1]
    states, held = make(form)
    exact = np.zeros((SLOTS, HV, DV, DK))
    layer = held.layers[1]

    def follow(given, starts, slots, out):
        nonlocal exact
        want, exact = rule_cases.expected(given, exact, starts, slots, l2norm=True)
        assert error_of(out, want) < 8 * bound

    def step(slots):
        given = draw(rng, len(slots))
        given["v"][[slot < 0 for slot in slots]] = np.nan
        options = {"l2norm": True, "runtime": runtime}
        out = gated_delta_step(**given, states=layer, slots=np.array(slots), **options)
        follow(given, range(len(slots) + 1), slots, out)

    def prompt(slots, starts):
        given = draw(rng, starts[-1])
        arrays = {"slots": np.array(slots), "cu_seqlens": np.array(starts)}
        options = {"l2norm": True, "runtime": runtime}
        follow(
            given, starts, slots, delta_prefill(**ready(given), **arrays, states=layer, **options)
        )

    def copy(source, target):
        states[:, target] = states[:, source]
        held.copy([source], [target])
        exact[target] = exact[source]

    prompt([3, 1], [0, 5, 7])
    for _ in range(6):
        step([3, -1, 1])
    copy(3, 2)
    for _ in range(3):
        step([2, 1])
    prompt([3, 2], [0, 2, 5])
    states[:, 1] = 0
    held.zero([1])
    exact[1] = 0
    step([1, 3])
    if form.deferred_writes:
        options = {"io": "float32", "layout": "gated", "l2norm": True, "runtime": runtime}
        commit_pending(layer, np.array([1, 2, 3, -1]), **options)
        assert not held.arrays["pending_counts"].any()
    found = states[1].astype(np.float64)
    if form.in_planes:
        upper, low = found - 128, held.arrays["state_low"][:, 1] - 128.0
        found = held.arrays["state_scales"][:, 1, ..., None] * (upper + low / 256)
    assert error_of(found, exact) < bound
    assert not states[0].any()
    arrays = held.arrays.values()
    assert held.num_bytes == sum(array.nbytes for array in arrays)
    assert held.num_bytes == LAYERS * SLOTS * slot_bytes(form, SlotSizes(H, HV, DV, DK))


def test_what_a_commit_does_not_take(runtime):
    states, held = make(SlotForm("float32", 4))
    options = {"io": "float32", "l2norm": True, "runtime": runtime}
    commit_pending(held.layers[0], np.array([], np.int32), **options)
    alone = EngineStates(states[0], {}, format="float32")
    assert alone.is_array and not held.layers[0].is_array
    text = "expected those of a pool that defers writes, got states of float32 of an engine's pool"
    with pytest.raises(ValueError, match=text):
        commit_pending(alone, np.array([1]), **options)
    with pytest.raises(
        ValueError, match="expected those of a pool that defers writes, got ndarray"
    ):
        commit_pending(states[0], np.array([1]), **options)
    with pytest.raises(ValueError, match=r"slots: expected the shape \[4\], got \[2, 2\]"):
        commit_pending(held.layers[0], np.ones((2, 2), np.int32), **options)
    with pytest.raises(ValueError, match="slots: expected integers, got float64"):
        commit_pending(held.layers[0], np.ones(2), **options)
    with pytest.raises(ValueError, match="slots: expected each slot once, got 2 twice"):
        commit_pending(held.layers[0], np.array([3, 2, 1, 2]), **options)
    # What is skipped may be there any number of times.
    skipped = np.array([1, -1, 0, 0, 999, -1, 999])
    commit_pending(held.layers[0], skipped, null_slot=0, **options)
