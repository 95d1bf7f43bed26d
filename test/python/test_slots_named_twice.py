# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lists of slots in which one is named twice: what frees, copies, moves, keeps or commits them
refuses it, with the slot and its list, and has done nothing then; what may name one twice says
so."""

import numpy as np
import pytest

from gdn import GdnError, HostTier, Runtime, StateCache, StatePool, StatePoolShape
from gdn.layers.attention import GDNAttentionMetadataBuilder
from gdn.rule_pool import commit_pending
from gdn.rule_step import delta_step
from gdn.runtime import Pool

pytestmark = pytest.mark.usefixtures("compiler_on_path")
D = 16


@pytest.fixture(scope="module")
def runtime(build_dir):
    return Runtime(build_dir / "lib/libgdnrt.so")


@pytest.fixture
def pool(runtime):
    shape = StatePoolShape(1, 4, 1, 2, D, D, pending_tokens=4, deferred_writes=True)
    made = StatePool(runtime.device(debug_checks=True), shape, debug_checks=True)
    assert made.allocate(4) == [1, 2, 3, 4]
    return made


def refusals(pool, runtime):
    """Calls by the text of their errors."""
    tier = HostTier(pool, 4)
    tier.store([1, 3], tier.allocate(2))
    options = {"max_num_seqs": 5, "max_num_tokens": 8, "deferred_writes": True}
    builder = GDNAttentionMetadataBuilder.from_options(runtime, pool.device, **options)
    commit = {"io": "float32", "l2norm": True, "runtime": runtime}
    states = pool.layer_states(0)
    return {
        "slot 2 occurs twice": [
            lambda: pool.free([2, 1, 2]),
            lambda: pool.check_batch([2, 1, 2]),
            lambda: tier.swap_out([2, 1, 2]),
            lambda: tier.load([0, 1], [2, 2]),
        ],
        "slot 2 is the target of two copies": [lambda: pool.copy_states([1, 3], [2, 2])],
        "slot 2 is the source of one copy and the target of another": [
            lambda: pool.copy_states([1, 2], [2, 3])
        ],
        "host slot 1 occurs twice": [
            lambda: tier.store([1, 2], [1, 1]),
            lambda: tier.free([1, 0, 1]),
            lambda: tier.swap_in([1, 1]),
        ],
        "slots: expected each slot once, got 2 twice": [
            lambda: builder.build_commit([2, 1, 2]),
            lambda: commit_pending(states, np.array([2, 1, 2]), **commit),
        ],
    }


def test_what_is_refused(pool, runtime):
    for layer in pool.layer_states(0).arrays(_Host()).values():
        layer[...] = np.arange(len(layer)).reshape(-1, *(1 for _ in layer.shape[1:]))
    before = {n: x.copy() for n, x in pool.layer_states(0).arrays(_Host()).items()}
    for text, calls in refusals(pool, runtime).items():
        for call in calls:
            with pytest.raises((GdnError, ValueError), match=text):
                call()
    after = pool.layer_states(0).arrays(_Host())
    assert all(np.array_equal(after[n], x) for n, x in before.items())
    assert pool.num_free == 0


def test_what_may_name_one_twice(pool):
    pool.state(0)[...] = 1
    pool.reset_states([2, 0, 2])
    assert not pool.state(0)[2].any() and pool.state(0)[[1, 3, 4]].all()
    assert pool.has_pending([2, 2]) == [False, False]
    pool.state(0)[1] = 7
    pool.copy_states([1, 1], [3, 4])
    assert (pool.state(0)[3:] == 7).all()
    tier = HostTier(pool, 2)
    kept = tier.allocate(2)
    tier.store([1, 1], kept)
    assert tier.is_over([kept[0]] * 2)


def test_functions_with_debug_checks(build_dir):
    """A runtime that has them passes them on to the devices that functions run on."""
    checked = Runtime(build_dir / "lib/libgdnrt.so", debug_checks=True)
    q = np.zeros((2, 1, D), np.float32)
    v, gates, states = np.zeros((2, 2, D), np.float32), np.zeros((2, 2)), np.zeros((5, 2, D, D))
    step = (q, q, v, gates, gates, states.astype(np.float32))
    delta_step(*step, np.array([1, 1]), write_slots=np.array([2, 3]), runtime=checked)
    with pytest.raises(GdnError, match="write_slots: rows 0 and 1 both write slot 2"):
        delta_step(*step, np.array([1, 3]), write_slots=np.array([2, 2]), runtime=checked)
    with pytest.raises(TypeError, match="debug_checks: expected True or False, got 'no'"):
        Runtime(build_dir / "lib/libgdnrt.so", debug_checks="no")


def test_a_checkpoint_of_another(pool):
    cache = StateCache(pool, page_tokens=1, max_tokens=64, max_nodes=8, has_pages=False)
    cache.insert([1, 2], slot=3)
    with pytest.raises(GdnError, match="slot: expected one of the caller's, got 3"):
        cache.insert([5, 6], slot=3)


def test_slots_of_a_launch(pool):
    """Debug checks of a device look at what a launch writes."""
    from gdn.kernel_calls import kernel_of
    from gdn.rule_kernels import kind_of

    kernel = kernel_of(kind_of(D, D, io="float32"), "prefill", ("cpu", 0), pool.device._runtime)
    kernel = pool.device.kernel(kernel._image, "prefill")

    def zeros(*shape):
        return np.zeros(shape, np.float32)

    def bind(slots, write_slots):
        given = {
            **{n: zeros(2, 1, D) for n in ("q", "k")},
            **{n: zeros(2, 2, D) for n in ("v", "core")},
            **{n: zeros(2, 2) for n in ("log_decay", "beta")},
            "state_pool": Pool(zeros(5, 2, D, D), 0),
            "slots": np.array(slots, np.int32),
            "write_slots": np.array(write_slots, np.int32),
            "cu_seqlens": np.array([0, 1, 2], np.int32),
            "has_initial": np.ones(2, bool),
        }
        return kernel.bind(**{p.name: given[p.name] for p in kernel.params})

    bind([1, 1], [2, 3]).launch()
    with pytest.raises(GdnError, match="write_slots: rows 0 and 1 both write slot 2 of state_pool"):
        bind([1, 3], [2, 2]).launch()


class _Host:
    """As much of a library of arrays as the arrays of a pool on a CPU need."""

    device = ("cpu", 0)

    def in_place(self, array):
        return array
