# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sequences spread over ranks, each a thread, against one call and against float64."""

import threading
import time

import context_cases
import numpy as np
import pytest
from rule_cases import error_of

from gdn import Runtime
from gdn.context_check import Kind, errors_of, has_maps
from gdn.conv1d import causal_conv1d
from gdn.exchange import ExchangeError, ThreadExchange, exchange_of, gather_or_fail
from gdn.rule_maps import RuleMap, map_of_bytes
from gdn.rule_pool import delta_prefill

pytestmark = [pytest.mark.usefixtures("compiler_on_path"), pytest.mark.once(compiler="cpu")]


@pytest.fixture(scope="module")
def runtime(build_dir):
    return Runtime(build_dir / "lib/libgdnrt.so")


@pytest.mark.parametrize("block", range(10))
def test_random_cuts(runtime, block):
    """500 cases: ragged batches, empty parts, initial states, skipped slots, checkpoints."""
    for seed in range(50 * block, 50 * block + 50):
        case = context_cases.draw(seed)
        out, pools = case.run(runtime)
        want, after = case.expected()
        assert error_of(out, want) < 1e-5, f"outputs, seed {seed}"
        written = np.any(after != case.states, axis=(1, 2, 3))
        for slot in np.flatnonzero(written):
            assert error_of(pools[0][slot], after[slot]) < 1e-5, f"slot {slot}, seed {seed}"
        assert (pools[0][~written] == case.states[~written]).all(), f"other slots, seed {seed}"
        for rank, pool in enumerate(pools[1:], 1):
            assert (pool == pools[0]).all(), f"pool of rank {rank}, seed {seed}"


def test_one_call_gives_the_same(runtime):
    """The function without ranks, with the same arguments."""
    compared = 0
    for seed in range(1000, 1040):
        case = context_cases.draw(seed)
        if case.given["log_decay"].ndim == 3:
            continue
        out, pools = case.run(runtime)
        whole = case.states.copy()
        arrays = {name: case.given[name] for name in context_cases.TOKENS}
        want = delta_prefill(
            **arrays,
            states=whole,
            slots=case.slots,
            cu_seqlens=case.starts,
            runtime=runtime,
            **case.options,
        )
        assert error_of(out, want) < 1e-5 and error_of(pools[0], whole) < 1e-5, f"seed {seed}"
        compared += 1
    assert compared > 20


def test_runs_have_the_same_bits(runtime):
    for seed in range(2000, 2010):
        case = context_cases.draw(seed)
        out, pools = case.run(runtime)
        for _ in range(3):
            again, others = case.run(runtime)
            assert (again == out).all() and (others[0] == pools[0]).all(), f"seed {seed}"


def test_inputs_and_states_of_bf16(runtime):
    """States are rounded when pools get them, not between ranks."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    for seed in range(3000, 3010):
        case = context_cases.draw(seed, ml_dtypes.bfloat16)
        case.states = case.states.astype(ml_dtypes.bfloat16)
        out, pools = case.run(runtime)
        want, after = case.expected()
        assert error_of(out, want) < 8e-3 and error_of(pools[0], after) < 5e-3, f"seed {seed}"


def test_scale_and_lengths(runtime):
    """Options reach all launches: a map has no scale, but lengths of keys."""
    cases = map(context_cases.draw, range(4000, 4100))
    case = next(
        case
        for case in cases
        if (case.lengths > 0).sum(0).max(initial=0) > 3 and case.given["log_decay"].ndim == 2
    )
    case.given["k"] *= 3
    case.given["q"] *= 0.5
    plain = {"scale": 0.7, "l2norm": True}
    options, case.options = case.options, case.options | plain
    out, pools = case.run(runtime)
    whole = case.states.copy()
    arrays = {name: case.given[name] for name in context_cases.TOKENS}
    want = delta_prefill(
        **arrays,
        states=whole,
        slots=case.slots,
        cu_seqlens=case.starts,
        runtime=runtime,
        **options,
        **plain,
    )
    assert error_of(out, want) < 1e-5 and error_of(pools[0], whole) < 1e-5


D, K = 16, 4


def conv_case(seed: int):
    """Cuts, inputs, weights, windows and slots of a convolution."""
    rng = np.random.default_rng(seed)
    ranks, count = int(rng.integers(2, 9)), int(rng.integers(1, 5))
    totals = rng.choice([0, 1, 2, 3, 4, 9, 64, 70], count)
    lengths = np.stack([context_cases.cut(rng, total, ranks) for total in totals], axis=1)
    normal = rng.standard_normal
    x = normal((int(totals.sum()), D)).astype(np.float32)
    weight, windows = normal((D, K)).astype(np.float32), normal((12, D, K - 1)).astype(np.float32)
    slots = rng.permutation(8)[:count].astype(np.int32)
    slots[rng.random(count) < 0.2] = -1
    return lengths, x, weight, windows, slots, rng.random(count) < 0.7


@pytest.mark.parametrize("seed", range(40))
def test_convolution(runtime, seed):
    lengths, x, weight, windows, slots, has_initial = conv_case(seed)
    whole = windows.copy()
    case = context_cases.Case({"v": x}, lengths, windows, slots, {"null_slot": -1})
    want = causal_conv1d(
        x,
        weight,
        whole,
        slots,
        cu_seqlens=case.starts,
        has_initial=has_initial,
        runtime=runtime,
    )
    pools = [windows.copy() for _ in lengths]

    def work(rank, ranks):
        return ranks.causal_conv1d(
            x[case.rows(rank)],
            weight,
            pools[rank],
            slots,
            np.cumsum([0, *lengths[rank]]),
            has_initial=has_initial,
            runtime=runtime,
        )

    out = np.full_like(x, np.nan)
    for rank, result in enumerate(case.per_rank(work)):
        out[case.rows(rank)] = result
        # A window is a copy of inputs.
        assert (pools[rank] == whole).all(), f"windows of rank {rank}"
    assert error_of(out, want) < 1e-6


def test_windows_inside_a_sequence(runtime):
    """Wherever the cuts are: the window after 64 tokens has the inputs 61 to 63."""
    x = np.random.default_rng(1).standard_normal((70, D)).astype(np.float32)
    weight = np.ones((D, K), np.float32)
    for lengths in ([64, 6], [62, 8], [63, 0, 1, 6], [10, 60]):
        pools = [np.zeros((3, D, K - 1), np.float32) for _ in lengths]
        case = context_cases.Case({}, np.array(lengths)[:, None], pools[0], np.array([1]))

        def work(rank, ranks, case=case, pools=pools):
            return ranks.causal_conv1d(
                x[case.rows(rank)],
                weight,
                pools[rank],
                case.slots,
                np.array([0, len(case.rows(rank))]),
                checkpoints=tuple(map(np.array, ([0, 1], [64], [2]))),
                runtime=runtime,
            )

        assert all(isinstance(result, np.ndarray) for result in case.per_rank(work))
        for pool in pools:
            assert (pool[2] == x[61:64].T).all() and (pool[1] == x[67:].T).all()


def failing(case, runtime, wrong: int, change, timeout=30.0):
    """Results of the ranks where `change` spoils the arguments of one, and their pools."""
    pools = [case.states.copy() for _ in case.lengths]

    def work(rank, ranks):
        given = {name: case.given[name][case.rows(rank)] for name in context_cases.TOKENS}
        given |= {"states": pools[rank], "slots": case.slots} | case.options
        given["cu_seqlens"] = np.cumsum([0, *case.lengths[rank]])
        if rank == wrong:
            change(given)
        return ranks.delta_prefill(**given, runtime=runtime)

    results = case.per_rank(work, timeout)
    for pool in pools:
        assert (pool == case.states).all(), "a pool was written"
    return results


def whole_case():
    case = context_cases.draw(12)
    assert len(case.lengths) > 2 and case.starts[-1] > 0
    return case


def test_a_rank_that_raises(runtime):
    def change(given):
        given["beta"] = given["beta"][:, :0]

    results = failing(whole_case(), runtime, 1, change)
    assert isinstance(results.pop(1), ValueError)
    for result in results:
        assert isinstance(result, ExchangeError) and "rank 1: ValueError: beta: " in str(result)


@pytest.mark.parametrize("name", ["of_own_tokens", "states_inside"])
def test_a_rank_that_raises_later(runtime, monkeypatch, name):
    from gdn import context_steps

    step = context_steps.RuleStep
    before = getattr(step, name)

    def raises(self, *arguments):
        if self.parts.rank == 2:
            raise MemoryError("no memory")
        return before(self, *arguments)

    monkeypatch.setattr(step, name, raises)
    results = failing(whole_case(), runtime, -1, None)
    assert isinstance(results.pop(2), MemoryError)
    for result in results:
        assert isinstance(result, ExchangeError) and "rank 2: MemoryError: no memory" in str(result)


def test_a_rank_that_does_not_come(runtime):
    def change(given):
        raise LookupError("gone")

    start = time.monotonic()
    results = failing(whole_case(), runtime, 0, change, timeout=0.3)
    assert time.monotonic() - start < 5
    assert isinstance(results.pop(0), LookupError)
    for result in results:
        assert isinstance(result, ExchangeError) and "did not come in time" in str(result)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("null_slot", 5, "null_slot: expected -?[0-9]+, which rank 0 has, got 5 on rank 1"),
        ("l2norm", True, "l2norm: expected False, which rank 0 has, got True on rank 1"),
        ("scale", 2, "scale: expected None, which rank 0 has, got 2.0 on rank 1"),
    ],
)
def test_ranks_with_other_arguments(runtime, name, value, message):
    results = failing(whole_case(), runtime, 1, lambda given: given.update({name: value}))
    for result in results:
        assert isinstance(result, ExchangeError)
        with pytest.raises(ExchangeError, match=message):
            raise result


def test_arguments(runtime):
    for change, message in (
        ({"cu_seqlens": np.array([1, 0])}, "cu_seqlens: expected 0 <= .. <= "),
        ({"slots": np.array([0.5])}, "slots: expected integers, got float64"),
        ({"has_initial": np.array([True] * 9)}, r"has_initial: expected the shape \[.\], got"),
        ({"q": np.zeros((3, 4), np.float32)}, r"q: expected the shape \[T, H, d\], got"),
        ({"states": np.zeros((3, 1, 1, 1), np.float32)}, "states: expected the shape"),
        ({"checkpoints": (np.array([0]),) * 3}, r"cu_checkpoints: expected the shape \[.\]"),
    ):
        results = failing(whole_case(), runtime, 0, lambda given, c=change: given.update(c))
        with pytest.raises(ValueError, match=message):
            raise results[0]


def test_threads_exchange_bytes_of_any_length():
    group = ThreadExchange.group(3, timeout=5)
    seen = {}

    def run(exchange):
        seen[exchange.rank] = [
            exchange.all_gather(bytes([exchange.rank]) * (exchange.rank * step))
            for step in range(50)
        ]

    threads = [threading.Thread(target=run, args=(exchange,)) for exchange in group]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    want = [[bytes([r]) * (r * step) for r in range(3)] for step in range(50)]
    assert seen == dict.fromkeys(range(3), want)
    with pytest.raises(ValueError, match="size: expected at least 1 rank, got 0"):
        ThreadExchange.group(0)


def test_a_group_after_a_time_out():
    one, other = ThreadExchange.group(2, timeout=0.05)
    for exchange in (one, other, one):
        with pytest.raises(ExchangeError, match="expected 2 ranks"):
            exchange.all_gather(b"")


def test_an_error_is_not_replaced_by_a_time_out():
    one, _ = ThreadExchange.group(2, timeout=0.05)

    def make():
        raise LookupError("nothing there")

    with pytest.raises(LookupError, match="nothing there"):
        gather_or_fail(one, make)


def test_groups():
    (one,) = ThreadExchange.group(1)
    assert exchange_of(one) is one and gather_or_fail(one, lambda: b"x") == [b"x"]
    with pytest.raises(RuntimeError, match=r"expected torch\.distributed to be initialised"):
        exchange_of(None)


def test_maps_compose():
    """As matrices: the map of two runs is the product, and a known state forgets what was."""
    rng = np.random.default_rng(0)
    draw = rng.standard_normal

    def maps(linear=True):
        p = draw((2, 8, 8)).astype(np.float32) if linear else None
        return RuleMap(p, draw((2, 5, 8)).astype(np.float32))

    state = draw((2, 5, 8)).astype(np.float32)
    for a, b in ((maps(), maps()), (maps(False), maps()), (maps(), maps(False))):
        step = b.apply(a.apply(state))
        assert error_of(a.then(b).apply(state), step) < 1e-6
        data = a.to_bytes()
        again = map_of_bytes(data, 2, 5, 8, linear=a.linear is not None)
        assert (again.apply(state) == a.apply(state)).all()
    with pytest.raises(ValueError, match="map: expected 832 bytes, got 8"):
        map_of_bytes(bytes(8), 2, 5, 8, linear=True)


def test_the_check_of_devices(runtime):
    """What gdn.context_check runs on each rank, here in threads."""
    for seed in range(4):
        case = context_cases.Case({}, np.zeros((3, 0), int), np.zeros(0), np.zeros(0))
        found = case.per_rank(
            lambda rank, ranks, seed=seed: errors_of(ranks.exchange, seed, np.copy, runtime)
        )
        assert np.shape(found) == (3, 2, 2) and np.max(found) < 1e-5


def test_the_check_of_devices_with_other_plans(runtime):
    """As on GPUs: plans of other kinds than calls, or none where there are no maps."""
    case = context_cases.Case({}, np.zeros((2, 0), int), np.zeros(0), np.zeros(0))
    plans = (Kind(1, 1, False, 16, "bfloat16"), None)
    for seed, most in ((0, 6e-3), (1, 1e-5)):
        found = case.per_rank(
            lambda rank, ranks, seed=seed: errors_of(ranks.exchange, seed, np.copy, runtime, plans)
        )
        assert np.shape(found) == (2, 2, 2) and np.max(found) < most
        assert (np.max(found, 0)[1] > 0).all() == (seed == 0)
    device = runtime.device().kind, 0
    assert has_maps(plans[0], device, runtime)
