# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The convolution of plans over ranks, each a thread, against one call: windows come from other
ranks and from the pool, whatever the cuts, and all bits are the same, as no sum has inputs of more
than one call's."""

from itertools import pairwise

import context_cases
import numpy as np
import pytest

from gdn import Runtime, context_windows
from gdn.conv1d import causal_conv1d
from gdn.exchange import ExchangeError, ThreadExchange

ml_dtypes = pytest.importorskip("ml_dtypes")
pytestmark = [pytest.mark.usefixtures("compiler_on_path"), pytest.mark.once(compiler="cpu")]

CHANNELS, SLOTS = 16, context_cases.SLOTS
# Types of inputs and of the pool.
TYPES = (
    (np.float32, np.float32),
    (ml_dtypes.bfloat16, np.float32),
    (ml_dtypes.bfloat16, ml_dtypes.bfloat16),
    (np.float32, ml_dtypes.bfloat16),
)


@pytest.fixture(scope="module")
def runtime(build_dir):
    return Runtime(build_dir / "lib/libgdnrt.so")


class Batch:
    """A random batch over 2 to 8 ranks. Rows of no sequence are around those of each rank."""

    def __init__(self, seed: int, types=None):
        rng = np.random.default_rng(seed)
        self.rng, io, state = rng, *(types or TYPES[seed % len(TYPES)])
        self.width = 2 + seed % 3
        ranks, count = int(rng.integers(2, 9)), int(rng.integers(0, 5))
        totals = rng.choice([0, 1, 2, 3, 4, 9, 64, 65, 67, 130], count)
        cuts = [self._cut(int(total), ranks) for total in totals]
        lengths = np.array(cuts, int).reshape(count, ranks).T
        x = rng.standard_normal((int(totals.sum()), CHANNELS)).astype(io)
        self.weight = rng.standard_normal((CHANNELS, self.width)).astype(np.float32)
        self.bias = rng.standard_normal(CHANNELS).astype(np.float32) if seed % 2 else None
        self.activation = ("silu", "identity")[seed // 2 % 2]
        windows = rng.standard_normal((SLOTS, CHANNELS, self.width - 1)).astype(state)
        slots, self.options = context_cases.draw_places(rng, totals)
        self.checkpoints = self.options.pop("checkpoints")
        has_initial = self.options["has_initial"]
        self.case = context_cases.Case({"v": x}, lengths, windows, slots, self.options)
        # What is not read: slots that no sequence begins with, and inputs of skipped sequences.
        read = {int(slots[n]) for n in range(count) if has_initial[n] and self.case.is_live(n)}
        windows[[slot for slot in range(SLOTS) if slot not in read]] = np.nan
        for n, (first, behind) in enumerate(pairwise(self.case.starts)):
            if not self.case.is_live(n):
                x[first:behind] = np.nan

    def _cut(self, total: int, ranks: int) -> np.ndarray:
        """Often about 64 tokens, where checkpoints are."""
        if total > 64 and self.rng.random() < 0.5:
            ends = np.sort(np.clip(64 + self.rng.integers(-3, 4, ranks - 1), 0, total))
            return np.diff([0, *ends, total])
        return context_cases.cut(self.rng, total, ranks)

    def expected(self, runtime):
        """Outputs and pool of one call, and of calls of first tokens for checkpoints."""
        case, x = self.case, self.case.given["v"]
        starts, (cu, tokens, places) = case.starts, self.checkpoints
        pool = case.states.copy()
        out = self._one_call(x, case.states, pool, case.slots, starts, self.options, runtime)
        for n in range(len(case.slots)):
            for i in range(cu[n], cu[n + 1]):
                end = int(tokens[i])
                if end % 64 or end > starts[n + 1] - starts[n] or places[i] < 0:
                    continue
                if not case.is_live(n):
                    continue
                given = {"write_slots": places[i : i + 1], "null_slot": self.options["null_slot"]}
                given["has_initial"] = self.options["has_initial"][n : n + 1]
                begin, slots = starts[n], case.slots[n : n + 1]
                ends = np.array([0, end], np.int32)
                self._one_call(
                    x[begin : begin + end], case.states, pool, slots, ends, given, runtime
                )
        return out, pool

    def _one_call(self, x, before, pool, slots, starts, options, runtime):
        """A call that reads windows `before`, and writes those of `pool`."""
        windows = before.copy()
        out = causal_conv1d(
            x,
            self.weight,
            windows,
            slots,
            bias=self.bias,
            cu_seqlens=starts,
            activation=self.activation,
            runtime=runtime,
            **options,
        )
        for n, target in enumerate(options["write_slots"].tolist()):
            null_slot, length = options["null_slot"], starts[n + 1] - starts[n]
            is_live = 0 <= slots[n] < SLOTS and slots[n] != null_slot and length > 0
            if is_live and 0 <= target < SLOTS and target != null_slot:
                pool[target] = windows[target]
        return out

    def planned(self, runtime, calls: int = 1, change=None, spaced=False, timeout: float = 30):
        """Outputs of each rank or its error, and the pools. `change(rank, call, arguments)` may
        alter what a call is given."""
        case = self.case
        pools = [case.states.copy() for _ in case.lengths]

        def work(rank, ranks):
            rows = case.rows(rank)
            around = np.full((2 * spaced, CHANNELS), np.nan, case.given["v"].dtype)
            x = np.concatenate([around, case.given["v"][rows], around])
            plan = ranks.plan(
                x,
                np.zeros((SLOTS, 1, 16, 16), np.float32),
                case.slots,
                len(around) + np.cumsum([0, *case.lengths[rank]]),
                checkpoints=self.checkpoints,
                runtime=runtime,
                **self.options,
            )
            for call in range(calls):
                pools[rank][...] = case.states
                given = {"x": x, "weight": self.weight, "states": pools[rank], "bias": self.bias}
                given["activation"] = self.activation
                if change:
                    change(rank, call, given)
                y = plan.causal_conv1d(**given)
            assert y.dtype == x.dtype and (y[: len(around)] == 0).all()
            assert (y[len(around) + len(rows) :] == 0).all()
            return y[len(around) : len(around) + len(rows)]

        return case.per_rank(work, timeout), pools


def bits(array: np.ndarray) -> bytes:
    """With which NaNs are compared, too."""
    return np.ascontiguousarray(array).tobytes()


def check(batch: Batch, runtime, seed: int, **how) -> None:
    want, after = batch.expected(runtime)
    results, pools = batch.planned(runtime, **how)
    for rank, out in enumerate(results):
        if isinstance(out, Exception):
            raise out
        assert bits(out) == bits(want[batch.case.rows(rank)]), f"outputs of {rank}, seed {seed}"
        assert bits(pools[rank]) == bits(after), f"windows of rank {rank}, seed {seed}"


@pytest.mark.parametrize("block", range(8))
def test_random_cuts(runtime, block):
    """400 cases, widths 2 to 4: ragged batches, parts that are empty or shorter than a window,
    initial windows, skipped slots, checkpoints near cuts. Every third is the plan's second call."""
    for seed in range(50 * block, 50 * block + 50):
        calls = 1 + (seed % 3 == 0)
        check(Batch(seed), runtime, seed, calls=calls, spaced=seed % 5 == 0)


def test_calls_without_a_plan(runtime):
    """They have the same bits, with windows of all pairs of types."""
    for seed in range(2000, 2040):
        batch = Batch(seed)
        case, pools = batch.case, [batch.case.states.copy() for _ in batch.case.lengths]

        def work(rank, ranks, batch=batch, case=case, pools=pools):
            return ranks.causal_conv1d(
                case.given["v"][case.rows(rank)],
                batch.weight,
                pools[rank],
                case.slots,
                np.cumsum([0, *case.lengths[rank]]),
                bias=batch.bias,
                activation=batch.activation,
                checkpoints=batch.checkpoints,
                runtime=runtime,
                **batch.options,
            )

        want, after = batch.expected(runtime)
        for rank, out in enumerate(case.per_rank(work)):
            assert bits(out) == bits(want[case.rows(rank)]), f"outputs of {rank}, seed {seed}"
            assert bits(pools[rank]) == bits(after), f"windows of rank {rank}, seed {seed}"


def one_batch() -> Batch:
    return next(
        batch
        for batch in (Batch(seed, TYPES[0]) for seed in range(1000, 1100))
        if len(batch.case.lengths) > 2 and (batch.case.lengths.sum(0) > 4).sum() > 1
    )


def test_one_exchange_for_a_call(runtime, monkeypatch):
    """And one on the host for the first."""
    counts = {"all_gather": 0, "gather_arrays": 0}

    def counted(name):
        before = getattr(ThreadExchange, name)

        def call(exchange, *given):
            counts[name] += exchange.rank == 0
            return before(exchange, *given)

        monkeypatch.setattr(ThreadExchange, name, call)

    for name in counts:
        counted(name)
    check(one_batch(), runtime, -1, calls=5)
    # The plan's own, and the first call's.
    assert counts == {"all_gather": 2, "gather_arrays": 5}


def test_what_travels_is_what_windows_have(runtime, monkeypatch):
    """In the type of inputs, as bytes: of four ranks with 70 tokens none gives more than K - 1 for
    the ranks behind and K - 1 for a checkpoint."""
    given, before = [], ThreadExchange.gather_arrays

    def call(exchange, own, arrays):
        given.append((own.dtype, own.shape))
        return before(exchange, own, arrays)

    monkeypatch.setattr(ThreadExchange, "gather_arrays", call)
    batch = Batch(1, TYPES[1])
    x = np.ones((280, CHANNELS), ml_dtypes.bfloat16)
    batch.case = context_cases.Case(
        {"v": x}, np.full((4, 1), 70), batch.case.states, np.array([1]), {"null_slot": -1}
    )
    batch.checkpoints = tuple(np.array(each) for each in ([0, 1], [128], [2]))
    batch.options = {"null_slot": -1}
    results, _ = batch.planned(runtime)
    assert all(isinstance(out, np.ndarray) for out in results)
    rows = 2 * (batch.width - 1)
    assert set(given) == {(np.dtype(np.uint8), (rows, 2 * CHANNELS))}


def test_two_widths_and_layouts(runtime):
    """A plan has places for each width; windows of a pool may have any strides."""
    batch = one_batch()
    wide = np.random.default_rng(0).standard_normal((CHANNELS, 4)).astype(np.float32)
    other = np.random.default_rng(1).standard_normal((SLOTS, 5, CHANNELS)).astype(np.float32)
    pools = {}

    def first(rank, call, given):
        if call == 0:
            pools[rank] = other.copy()
            given |= {"weight": wide, "states": pools[rank][:, :3].swapaxes(1, 2)}

    batch.width = 3
    batch.weight = wide[:, :3]
    batch.case.states = np.ascontiguousarray(other[:, :2].swapaxes(1, 2))
    check(batch, runtime, -1, calls=2, change=first)
    want = Batch.__new__(Batch)
    want.__dict__ |= batch.__dict__ | {"weight": wide, "width": 4}
    want.case.states = np.ascontiguousarray(other[:, :3].swapaxes(1, 2))
    _, after = want.expected(runtime)
    for pool in pools.values():
        assert (pool[:, :3].swapaxes(1, 2) == after).all() and (pool[:, 3:] == other[:, 3:]).all()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"weight": np.ones((8, 3))}, r"weight: expected the shape \[16, 3\], got \[8, 3\]"),
        ({"states": np.ones((SLOTS + 1, 16, 2), np.float32)}, "x, states: expected .* 32 slots"),
        (
            {"x": np.ones((999, 16), np.float32)},
            "x, states: expected .* those of the plan, got 999",
        ),
        ({"bias": np.ones(3, np.float32)}, r"bias: expected the shape \[16\], got \[3\]"),
        ({"activation": "relu"}, "activation: expected silu or identity, got relu"),
        ({"states": np.ones((SLOTS, 16, 2))}, "states: expected float32 or .*, got float64"),
        ({"x": np.ones(9, np.float32)}, r"x: expected 2 dimensions, got \[9\]"),
    ],
)
def test_a_rank_with_wrong_arguments(runtime, changed, message):
    """In the first call all ranks fail together, and no pool is written."""
    batch = one_batch()
    batch.width = 3
    batch.weight = np.ones((16, 3), np.float32)
    batch.case.states = np.zeros((SLOTS, 16, 2), np.float32)

    def change(rank, _, given):
        if rank == 1:
            given |= changed

    results, pools = batch.planned(runtime, change=change)
    with pytest.raises(ValueError, match=message):
        raise results.pop(1)
    for result in results:
        with pytest.raises(ExchangeError, match=f"rank 1: ValueError: {message}"):
            raise result
    assert all((pool == 0).all() for pool in pools)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("activation", "identity", "activation: expected silu, which rank 0 has, got identity"),
        ("bias", None, "bias: expected True, which rank 0 has, got False on rank 1"),
    ],
)
def test_ranks_with_other_arguments(runtime, name, value, message):
    batch = one_batch()
    batch.activation, batch.bias = "silu", np.ones(CHANNELS, np.float32)
    results, _ = batch.planned(
        runtime, change=lambda rank, _, given: given.update({name: value} if rank == 1 else {})
    )
    for result in results:
        with pytest.raises(ExchangeError, match=message):
            raise result


def test_a_rank_that_raises_in_a_later_call(runtime):
    """It is no error of others before the time-out: nothing goes through the host."""
    batch = one_batch()

    def change(rank, call, given):
        if (rank, call) == (1, 1):
            given["bias"] = np.ones(3, np.float32)

    batch.bias = np.ones(CHANNELS, np.float32)
    check(batch, runtime, -1)  # Then the kernel is there, and no rank is late.
    results, pools = batch.planned(runtime, calls=2, change=change, timeout=2)
    assert isinstance(results.pop(1), ValueError)
    for result in results:
        assert isinstance(result, ExchangeError) and "did not come in time" in str(result)
    assert all(bits(pool) == bits(batch.case.states) for pool in pools)


def test_no_first_call_in_a_capture(runtime, monkeypatch):
    """It would wait for the host, where a capture refuses to."""
    monkeypatch.setattr("gdn.array_library.NumpyArrays.capturing", True)
    results, _ = one_batch().planned(runtime)
    for result in results:
        with pytest.raises(RuntimeError, match="expected a call with arrays of these shapes ahead"):
            raise result


def test_slots_that_do_not_go_together(runtime):
    """Plans refuse two writers of one slot, for windows as for states."""
    batch = one_batch()
    count = len(batch.case.slots)
    batch.case.slots = np.arange(1, count + 1, dtype=np.int32)
    batch.options["write_slots"] = np.full(count, 1 + count, np.int32)
    batch.options["null_slot"] = -1
    results, _ = batch.planned(runtime)
    for result in results:
        with pytest.raises(
            ValueError, match=r"write_slots: expected each slot once, got \d \d times"
        ):
            raise result


def test_no_kernel(runtime, monkeypatch):
    """It is missed ahead of the exchange: no rank waits for one that has none."""

    def missing(*_):
        raise LookupError("no image")

    monkeypatch.setattr(context_windows, "call_of", missing)
    results, _ = one_batch().planned(runtime)
    assert all(isinstance(result, LookupError) for result in results)


def test_places_are_made_once(runtime, monkeypatch):
    """For each width, whatever else differs."""
    made, before = [], context_windows.WindowPlaces

    def counted(arrays, parts, live, width):
        made.append((parts.rank, width))
        return before(arrays, parts, live, width)

    monkeypatch.setattr(context_windows, "WindowPlaces", counted)
    batch = one_batch()
    results, _ = batch.planned(
        runtime,
        calls=3,
        change=lambda _, call, given: given.update(activation=("silu", "identity", "silu")[call]),
    )
    assert all(isinstance(result, np.ndarray) for result in results)
    assert sorted(made) == [(rank, batch.width - 1) for rank in range(len(batch.case.lengths))]
