# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A layer with deferred writes on a StatePool. Random steps of all kinds of rows, forks, slots with
a new owner and states that are moved in place, against a float64 model; what a pool, a builder or a
kernel that does not fit is told."""

import numpy as np
import pytest
from gdn_layer_model import compile_image, make_weights
from pool_engine import HK, HV, ROOM, Engine, S, make_builder, make_shape, random_steps

from gdn import GdnError, Pool, Runtime, StatePool
from gdn.layers.attention import GDNLayer, layer_kernels

OPTIONS = ("--layout=split", "--outputs=core", "--has-initial")
IMAGES = {
    "decode": (*OPTIONS, f"--defer-writes={ROOM}"),
    "verify": (*OPTIONS, f"--defer-writes={ROOM}", "--verify=lazy", f"--verify-tokens={S + 1}"),
    "in_place": (*OPTIONS, "--verify=lazy"),
    "mixed": (
        *(*OPTIONS, f"--defer-writes={ROOM}", "--verify=lazy", f"--verify-tokens={S + 1}"),
        "--mixed-batch",
    ),
}


@pytest.fixture(scope="module")
def device(build_dir):
    return Runtime(build_dir / "lib/libgdnrt.so").device(num_workers=2)


@pytest.fixture(scope="module")
def images(device, tool, tmp_path_factory):
    folder, known = tmp_path_factory.mktemp("deferred"), {}

    def kernels(name):
        if name not in known:
            path = compile_image(tool, folder, *IMAGES[name])
            known[name] = layer_kernels(device, device._runtime.image(path))
        return known[name]

    return kernels


@pytest.mark.parametrize("name", ["decode", "verify", "mixed"])
def test_random_steps(device, images, name):
    verifies = name != "decode"
    for seed in range(8):
        options = {"mixed_batch": True} if name == "mixed" else {}
        random_steps(Engine(device, images(name), seed, verifies=verifies, **options))


def test_decode_writes_the_state_now_and_then(device, images):
    engine = Engine(device, images("decode"), 3, verifies=False)
    sequence = engine.admit()
    slot = sequence["slot"]
    assert engine.step([sequence], [5]) < 1e-5
    states, counts = [], []
    for _ in range(2 * ROOM + 1):
        states.append(engine.pool.state(0)[slot].tobytes())
        assert engine.step([sequence], [1]) < 1e-5
        counts.append(int(engine.counts[slot, 0]))
    assert counts == [1, 2, 3, 4, 1, 2, 3, 4, 1]
    assert len(set(states)) == 2


def test_has_pending(device, images):
    engine = Engine(device, images("decode"), 3, verifies=False)
    one, other = engine.admit(), engine.admit()
    slots = [one["slot"], other["slot"]]
    engine.step([one, other], [5, 6])
    assert engine.pool.has_pending(slots) == [False, False]
    engine.step([other], [1])
    assert engine.pool.has_pending([*slots, 0, -1]) == [False, True, False, False]
    fork = engine.fork(other)
    assert engine.pool.has_pending([fork["slot"], one["slot"]]) == [True, False]
    # A prefill goes on from the state that has all tokens.
    assert engine.step([other], [2]) < 1e-5
    assert engine.pool.has_pending(slots) == [False, False]
    engine.commit([fork])
    assert engine.pool.has_pending([fork["slot"]]) == [False]
    with pytest.raises(GdnError, match="slot 99 is past the pool's 8 slots"):
        engine.pool.has_pending([99])
    in_place = StatePool(device, make_shape(deferred_writes=False, conv_extra=0))
    with pytest.raises(GdnError, match="expected deferred_writes"):
        in_place.has_pending([1])


def test_a_slot_that_nobody_freed(device, images):
    """Its counts are of the request before, which the prefill of the next one ends."""
    engine = Engine(device, images("verify"), 5)
    first = engine.admit()
    engine.step([first], [5])
    for _ in range(3):
        engine.step([first], [1])
    assert engine.counts[first["slot"]].all()
    for drafts in (None, [-1, 1]):
        engine.drop(first)
        first = engine.admit(first["slot"])
        others = [engine.admit()] if drafts else []
        if others:
            engine.step(others, [4])
        assert engine.step([first, *others], [1, *([2] if drafts else [])], drafts) < 1e-5
        assert not engine.counts[first["slot"]].any()
        for _ in range(ROOM + 2):
            assert engine.step([first], [1]) < 1e-5
        engine.commit([first])
        engine.step([first], [1])
        assert engine.counts[first["slot"]].all()


@pytest.mark.parametrize("drafts", [-1, S])
def test_rows_of_padding_count_nothing(device, images, drafts):
    """Steps of a graph: all that it has behind the rows of the step is skipped."""
    engine = Engine(device, images("verify"), 6, use_full_cuda_graph=True)
    sequences = [engine.admit() for _ in range(2)]
    idle = engine.admit()
    engine.step([*sequences, idle], [5, 3, 4])
    engine.step([idle], [1])
    pools = (engine.pool.state(0), engine.pool.conv_history(0), *engine.pool.pending(0))
    rest = [s for s in range(engine.pool.num_slots) if s not in [x["slot"] for x in sequences]]
    before = [array[rest].tobytes() for array in pools]
    tokens = drafts + 1 if drafts > 0 else 1
    for _ in range(ROOM + 2):
        rows = {"num_padded_reqs": 4, "num_actual_tokens": 4 * tokens}
        assert engine.step(sequences, [tokens] * 2, [drafts] * 2, **rows) < 1e-5
        assert [array[rest].tobytes() for array in pools] == before
    engine.commit([*sequences, idle])


def test_moved_in_place(device, images):
    """A sequence goes on with kernels that write its state at every step."""
    engine = Engine(device, images("verify"), 7)
    one, other = engine.admit(), engine.admit()
    engine.step([one, other], [5, 9])
    for _ in range(3):
        engine.step([one, other], [3, 1], [2, 0])
    engine.commit([one, other])
    shape = make_shape(deferred_writes=False, pending_tokens=S + 1, conv_extra=0)
    pool = StatePool(device, shape)
    for sequence in (one, other):
        (slot,) = pool.allocate(1)
        pool.state(0)[slot] = engine.pool.state(0)[sequence["slot"]]
        pool.conv(0)[slot] = engine.pool.conv(0)[sequence["slot"]]
        sequence["slot"] = slot
    engine.layer = GDNLayer(images("in_place"), pool=pool, **engine.weights)
    engine.builder = make_builder(device, deferred_writes=False)
    for drafts in ([1, -1], [-1, 2], [-1, -1]):
        lengths = [drafts[0] + 1 or 4, drafts[1] + 1 or 1]
        assert engine.step([one, other], lengths, drafts) < 1e-5


# What is refused.


def refused(error, *pieces):
    text = str(error.value)
    for piece in pieces:
        assert piece in text, text


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        (
            "decode",
            {"deferred_writes": False, "conv_extra": 0},
            "state_pool: expected one with deferred_writes, for decode keeps tokens pending"
            " (--defer-writes=4), got one without",
        ),
        (
            "verify",
            {"pending_tokens": 8},
            "state_pool: pending_tokens: expected 4, the room of decode (--defer-writes), got 8",
        ),
        (
            "verify",
            {"conv_extra": 0},
            "state_pool: conv_extra: expected the most tokens of a sequence of verify, whose"
            " inputs verify keeps, got 0",
        ),
        (
            "in_place",
            {},
            "state_pool: expected one without deferred_writes, for decode does not count pending"
            " tokens, got one with",
        ),
    ],
)
def test_a_pool_for_other_kernels(device, images, name, options, message):
    pool, weights = StatePool(device, make_shape(**options)), make_weights(np.random, HK, HV)
    with pytest.raises(GdnError) as error:
        GDNLayer(images(name), pool=pool, **weights)
    refused(error, message)


def test_arrays_of_another_pool(device, images):
    pool, weights = StatePool(device, make_shape()), make_weights(np.random, HK, HV)
    names = ("pending_keys", "pending_deltas", "pending_decays", "pending_counts")
    given = {"state_pool": pool.state(0), "conv_pool": pool.conv_history(0)}
    given |= dict(zip(names, pool.pending(0), strict=True))
    arrays = {name: Pool(array) for name, array in given.items()}
    GDNLayer(images("verify"), **weights, **arrays)
    short = Pool(np.zeros((8, HV, 3), np.float32))
    with pytest.raises(GdnError) as error:
        GDNLayer(images("verify"), **weights, **arrays | {"pending_decays": short})
    refused(error, "pending_decays: expected room for 4 tokens, those of decode", "got 3")
    del arrays["pending_counts"]
    with pytest.raises(GdnError) as error:
        GDNLayer(images("verify"), **weights, **arrays)
    refused(error, "pending_counts: the argument is missing, which decode needs")
    with pytest.raises(GdnError) as error:
        GDNLayer(images("verify"), pool=pool, state_pool=arrays["state_pool"], **weights)
    refused(error, "state_pool: expected no array, for the layer has that of its pool")


def test_kernels_that_do_not_go_together(device, images):
    pool, weights = StatePool(device, make_shape()), make_weights(np.random, HK, HV)
    names = ("pending_keys", "pending_deltas", "pending_decays", "pending_counts")
    arrays = {"state_pool": pool.state(0), "conv_pool": pool.conv_history(0)}
    arrays |= dict(zip(names, pool.pending(0), strict=True))
    arrays = {name: Pool(array) for name, array in arrays.items()}
    both = images("verify") | {"decode": images("in_place")["decode"]}
    with pytest.raises(GdnError) as error:
        GDNLayer(both, **weights, **arrays)
    refused(
        error,
        "verify: expected a kernel without deferred writes, as decode of the layer is, got one"
        " with",
    )
    plain = images("verify") | {"commit": images("decode")["commit"]}
    with pytest.raises(GdnError) as error:
        GDNLayer(plain, **weights, **arrays)
    refused(error, "commit: expected a parameter num_accepted (--verify=lazy)")


def test_metadata_of_another_builder(device, images):
    """Nothing is launched."""
    engine = Engine(device, images("verify"), 8)
    sequence = engine.admit()
    engine.step([sequence], [5])
    engine.step([sequence], [1])
    pools = (engine.pool.state(0), engine.pool.conv_history(0), *engine.pool.pending(0))
    before = [array.tobytes() for array in pools]
    engine.builder = make_builder(device, deferred_writes=False)
    for lengths, drafts in (([1], None), ([4], None), ([2], [1])):
        with pytest.raises(GdnError) as error:
            engine.step([sequence], lengths, drafts)
        refused(error, "metadata: expected deferred_writes 1, as the kernels of the layer have")
    assert [array.tobytes() for array in pools] == before
    with pytest.raises(GdnError) as error:
        engine.layer.check_steps(engine.builder)
    refused(error, "decode has pending_counts (no --defer-writes, or a builder with")
    engine.layer = GDNLayer(
        {kind: k for kind, k in images("verify").items() if kind != "commit"},
        pool=engine.pool,
        **engine.weights,
    )
    engine.builder = make_builder(device)
    with pytest.raises(GdnError, match="commit: the step has 1 rows of that kind"):
        engine.step([sequence], [4])
    assert [array.tobytes() for array in pools] == before
    with pytest.raises(GdnError, match=r"no kernel commit \(--defer-writes\)"):
        engine.layer.check_steps(engine.builder)


@pytest.mark.parametrize("name", ["verify", "in_place"])
def test_pools_without_room_for_all_drafts(device, images, name):
    defers = name == "verify"
    room = {} if defers else {"deferred_writes": False, "pending_tokens": S, "conv_extra": 0}
    pool = StatePool(device, make_shape(**{"conv_extra": S} | room))
    layer = GDNLayer(images(name), pool=pool, **make_weights(np.random, HK, HV))
    layer.check_steps(make_builder(device, deferred_writes=defers, num_speculative_tokens=S - 1))
    with pytest.raises(GdnError) as error:
        layer.check_steps(make_builder(device, deferred_writes=defers))
    refused(error, "the pools keep 2 tokens of a row of verify, not 3 (pending_tokens or conv")


def test_in_place_kernels_of_a_deferred_builder(device, images):
    pool = StatePool(device, make_shape(deferred_writes=False, conv_extra=0))
    layer = GDNLayer(images("in_place"), pool=pool, **make_weights(np.random, HK, HV))
    with pytest.raises(GdnError) as error:
        layer.check_steps(make_builder(device))
    for name in ("decode", "verify", "commit"):
        refused(error, f"{name} has no pending_counts (--defer-writes)")
    metadata = make_builder(device).build_commit([1])
    with pytest.raises(GdnError, match="expected deferred_writes 0, as the kernels of the layer"):
        layer.forward(metadata)


def test_builders(device):
    for options, message in (
        ({"verify_states": "slots"}, "verify_states: expected lazy with deferred_writes"),
        ({"mamba_cache_mode": "all", "verifies": False}, "deferred_writes: expected 0 with the"),
    ):
        with pytest.raises(GdnError, match=message):
            make_builder(device, **options)
    builder = make_builder(device)
    with pytest.raises(GdnError, match="num_accepted: expected 0 to 3 for slot 2, got 4"):
        builder.build_commit([1, 2], [0, 4])
    with pytest.raises(GdnError, match="slots: expected each slot once, got 2 twice"):
        builder.build_commit([2, 0, -1, 2])
    assert builder.build_commit([0, 2, 0, -1, -1]).num_actual_tokens == 0
    with pytest.raises(GdnError, match="count: expected 0 to 5, got 6"):
        builder.build_commit(range(1, 7))
    with pytest.raises(ValueError, match="num_accepted_tokens: expected at least 2 elements"):
        builder.build_commit([1, 2], [0])
    plain = make_builder(device, verify_states="slots", deferred_writes=False)
    with pytest.raises(GdnError, match="build_commit: expected a builder with the verify states"):
        plain.build_commit([1])
