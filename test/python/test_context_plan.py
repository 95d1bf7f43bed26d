# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans of sequences over ranks, each a thread, against float64: maps of segments by the variant of
prefill that makes nothing else, one exchange, and outputs from the states that follow."""

import json
import re
import threading
import time

import context_cases
import numpy as np
import pytest
from conftest import ROOT
from rule_cases import error_of

from gdn import Runtime, context_plan
from gdn.array_library import library_of
from gdn.context_parallel import ContextParallel
from gdn.exchange import ExchangeError, ThreadExchange
from gdn.kernel_calls import kernel_of
from gdn.rule_kernels import kind_of
from gdn.rule_maps import rule_maps
from gdn.segment_maps import VARIANT, maps_of

pytestmark = [pytest.mark.usefixtures("compiler_on_path"), pytest.mark.once(compiler="cpu")]


@pytest.fixture(scope="module")
def runtime(build_dir):
    return Runtime(build_dir / "lib/libgdnrt.so")


def without_checkpoints(seed: int) -> context_cases.Case:
    case = context_cases.draw(seed)
    none = [0] * (len(case.slots) + 1), [], []
    case.options["checkpoints"] = tuple(np.array(x, np.int64) for x in none)
    return case


def not_normed(case: context_cases.Case) -> None:
    """Keys and queries of any length, which kernels norm, and half of the scale 1."""
    rng = np.random.default_rng(0)
    for name in "qk":
        rows = case.given[name]
        rows *= rng.uniform(2, 5, (*rows.shape[:2], 1)).astype(np.float32)
    case.options |= {"l2norm": True, "scale": 0.5}


def planned(case: context_cases.Case, runtime, segments: int, calls: int = 1):
    """Outputs of the whole call and the pool of each rank, after as many calls of one plan."""
    pools = [case.states.copy() for _ in case.lengths]
    names = ("has_initial", "write_slots", "null_slot", "checkpoints")
    places = {name: case.options[name] for name in names}
    rule = {name: case.options[name] for name in ("l2norm", "scale") if name in case.options}

    def work(rank, ranks):
        own = {name: case.given[name][case.rows(rank)] for name in context_cases.TOKENS}
        starts = np.cumsum([0, *case.lengths[rank]])
        plan = ranks.plan(
            own["v"],
            pools[rank],
            case.slots,
            starts,
            segments=segments,
            runtime=runtime,
            **places,
        )
        for _ in range(calls):
            pools[rank][...] = case.states
            out = plan.delta_prefill(**own, states=pools[rank], **rule)
        return out

    out = np.full_like(case.given["v"], np.nan)
    for rank, result in enumerate(case.per_rank(work)):
        if isinstance(result, Exception):
            raise result
        out[case.rows(rank)] = result
    return out, pools


@pytest.mark.parametrize("block", range(10))
def test_random_cuts(runtime, block):
    """500 cases: ragged batches, empty parts, initial states, skipped slots, decays of channels,
    checkpoints; of every fifth the kernels norm the keys."""
    for seed in range(50 * block, 50 * block + 50):
        case = context_cases.draw(seed)
        want, after = case.expected()
        if seed % 5 == 0:
            want = want * 0.5 * case.given["q"].shape[2] ** 0.5
            not_normed(case)
        out, pools = planned(case, runtime, segments=1 + seed % 4)
        assert error_of(out, want) < 1e-5, f"outputs, seed {seed}"
        written = np.any(after != case.states, axis=(1, 2, 3))
        for slot in np.flatnonzero(written):
            assert error_of(pools[0][slot], after[slot]) < 1e-5, f"slot {slot}, seed {seed}"
        assert (pools[0][~written] == case.states[~written]).all(), f"other slots, seed {seed}"
        for rank, pool in enumerate(pools[1:], 1):
            assert (pool == pools[0]).all(), f"pool of rank {rank}, seed {seed}"


def test_products_are_those_of_the_image(runtime, monkeypatch):
    """Where it has entries for them, and states are of f32. Others are in test_without_entries."""
    case = without_checkpoints(7)
    want, _ = planned(case, runtime, 3)

    def fails(*_):
        raise AssertionError("products of NumPy were made")

    monkeypatch.setattr(context_plan.ContextPlan, "_own_maps", fails)
    monkeypatch.setattr(context_plan.ContextPlan, "_fold", fails)
    out, _ = planned(case, runtime, 3)
    assert (out == want).all()


def test_without_entries(runtime, monkeypatch):
    monkeypatch.setattr(context_plan, "has_products", lambda *_: False)
    for seed in range(3000, 3020):
        case = without_checkpoints(seed)
        want, after = case.expected()
        out, pools = planned(case, runtime, segments=1 + seed % 4)
        assert error_of(out, want) < 1e-5, f"outputs, seed {seed}"
        written = np.any(after != case.states, axis=(1, 2, 3))
        assert error_of(pools[0][written], after[written]) < 1e-5, f"states, seed {seed}"


def test_runs_have_the_same_bits(runtime):
    for seed in range(2000, 2010):
        case = without_checkpoints(seed)
        out, pools = planned(case, runtime, 3)
        again, others = planned(case, runtime, 3, calls=3)
        assert (again == out).all() and (others[0] == pools[0]).all(), f"seed {seed}"


def maps_in_float64(x: dict, begin: int, end: int):
    """H and P of each value head."""
    heads, dk = x["v"].shape[1], x["k"].shape[2]
    ratio = heads // x["k"].shape[1]
    constant, linear = np.zeros((heads, x["v"].shape[2], dk)), np.tile(np.eye(dk), (heads, 1, 1))
    for t in range(begin, end):
        for h in range(heads):
            key = x["k"][t, h // ratio].astype(np.float64)
            decay = np.exp(np.broadcast_to(x["log_decay"][t, h], (dk,)).astype(np.float64))
            beta = float(x["beta"][t, h])
            for part, value in ((constant[h], x["v"][t, h]), (linear[h], 0)):
                part *= decay
                part += beta * np.outer(value - part @ key, key)
    return constant, linear


@pytest.mark.parametrize("per_channel", [False, True])
def test_maps(runtime, per_channel):
    """Runs of any length; of those without a number nothing is kept."""
    rng = np.random.default_rng(3)
    starts = np.array([0, 1, 64, 194, 200, 300], np.int32)
    rows, shape = int(starts[-1]), (16,) * per_channel
    key = rng.standard_normal((2, rows, 1, 16)).astype(np.float32)
    key /= np.linalg.norm(key, axis=-1, keepdims=True)
    x = {
        "q": key[0],
        "k": key[1],
        "v": rng.standard_normal((rows, 2, 16)).astype(np.float32),
        "log_decay": -0.1 * rng.random((rows, 2, *shape), np.float32),
        "beta": rng.random((rows, 2), np.float32),
    }
    maps = maps_of(kind_of(16, 16, io="float32", per_channel=per_channel), ("cpu", 0), runtime)
    slots, out = np.array([0, 1, 2, -1, 4], np.int32), np.full((rows, 2, 16), np.nan, np.float32)
    arrays = library_of(out)
    constant, linear = maps(arrays, tuple(x.values()), starts, slots, out)
    assert np.isnan(out).all(), "outputs were written"
    for i in np.flatnonzero(slots >= 0):
        want = maps_in_float64(x, starts[i], starts[i + 1])
        assert error_of(constant[i], want[0]) < 1e-5 and error_of(linear[i], want[1]) < 1e-5


def test_memory_of_before_with_other_numbers(runtime):
    """Bindings are found by memory and shapes, behind a look at types and starts."""
    rng = np.random.default_rng(6)
    x = {name: rng.random((70, 1, 16), np.float32) for name in "qkv"}
    x |= {"log_decay": -rng.random((70, 1), np.float32), "beta": rng.random((70, 1), np.float32)}
    starts = np.array([0, 70])
    rule_maps(**x, cu_seqlens=starts, runtime=runtime)
    for name in "qk":
        with pytest.raises(ValueError, match=f"{name}: expected float32, got int32"):
            rule_maps(**x | {name: x[name].view(np.int32)}, cu_seqlens=starts, runtime=runtime)
    with pytest.raises(ValueError, match="beta: expected the shape"):
        rule_maps(**x | {"beta": x["beta"][:-1]}, cu_seqlens=starts, runtime=runtime)
    for wrong, text in ((np.array([0, 71]), "element 1 from 0 to 70"), (starts * 1.0, "integers")):
        with pytest.raises(ValueError, match=f"cu_seqlens: expected {text}"):
            rule_maps(**x, cu_seqlens=wrong, runtime=runtime)


def test_no_launch_takes_the_variant_by_itself(runtime):
    kind = kind_of(16, 16, io="float32")._replace(maps=True)
    kernel = kernel_of(kind, "prefill", ("cpu", 0), runtime)
    (variant,) = [one for one in kernel.variants if one.name == VARIANT]
    assert variant.conditions == "workers <= 0" and variant.needs_workspace


def test_checkpoints_that_differ_or_meet(runtime):
    case = context_cases.Case({}, np.array([[64], [64]]), np.zeros((6, 1, 16, 16)), np.array([1]))

    def failing(checkpoints):
        def work(rank, ranks):
            v, starts = np.zeros((64, 1, 16), np.float32), np.array([0, 64])
            given = [np.array(x) for x in checkpoints(rank)]
            return ranks.plan(
                v, case.states, case.slots, starts, checkpoints=tuple(given), runtime=runtime
            )

        return case.per_rank(work)

    for result in failing(lambda rank: ([0, 2], [64, 128], [3 + rank, 4])):
        assert isinstance(result, ExchangeError) and "checkpoints: expected " in str(result)
    for result in failing(lambda rank: ([0, 2], [64, 128], [3, 1])):
        assert isinstance(result, ValueError)
        assert "slots that nothing else writes, got 1 2 times" in str(result)


def test_slots_that_do_not_go_together(runtime):
    """A plan of two sequences in slots 1 and 2 makes no states, and may be made by one rank."""
    (exchange,) = ThreadExchange.group(1)
    v, states = np.zeros((8, 1, 16), np.float32), np.zeros((5, 1, 16, 16), np.float32)

    def plan(slots, write_slots, has_initial):
        places = [np.array(x) for x in (slots, [0, 4, 8])]
        named = {"write_slots": np.array(write_slots), "has_initial": np.array(has_initial, bool)}
        return ContextParallel(exchange).plan(v, states, *places, **named, runtime=runtime)

    with pytest.raises(ValueError, match="write_slots: expected each slot once, got 3 2 times"):
        plan([1, 2], [3, 3], [1, 1])
    with pytest.raises(ValueError, match="that no other sequence begins with, got 2"):
        plan([1, 2], [2, 3], [1, 1])
    # One that begins with zeros reads no slot, and two may read the same one.
    for fine in (([1, 2], [2, 3], [1, 0]), ([1, 1], [2, 3], [1, 1])):
        plan(*fine)


@pytest.mark.parametrize("is_many", [True, False])
def test_time_is_linear(runtime, is_many):
    """In sequences with a checkpoint each, and in checkpoints of one sequence."""

    def seconds(count: int) -> float:
        """Of the processor, for as many checkpoints, each behind 64 tokens."""
        sequences = count if is_many else 1
        slots = np.arange(sequences)
        starts = np.linspace(0, 64 * count, sequences + 1, dtype=np.int64)
        each = np.arange(1, count + 1) * 64
        if is_many:
            each[:] = 64
        kept = np.linspace(0, count, sequences + 1, dtype=np.int64)
        v = np.zeros((64 * count, 1, 1), np.float32)
        states = np.zeros((sequences + count, 1, 1, 1), np.float32)
        [exchange] = ThreadExchange.group(1)
        begin = time.process_time()
        ContextParallel(exchange).plan(
            v,
            states,
            slots,
            starts,
            checkpoints=(kept, each, sequences + np.arange(count)),
            segments=count,
            runtime=runtime,
        )
        return time.process_time() - begin

    few, many = (min(seconds(count) for _ in range(3)) for count in (500, 8000))
    assert many < 64 * few


def test_kinds_without_maps(runtime):
    kind = kind_of(16, 16, io="float32")
    for other in (kind._replace(io="int8"), kind._replace(key_dim=0)):
        assert maps_of(other, ("cpu", 0), runtime) is None


def one_rank(runtime, **changes):
    """A plan of 70 tokens on one rank, and a call of it with some arguments changed."""
    (exchange,) = ThreadExchange.group(1)
    rng = np.random.default_rng(0)
    dk = changes.pop("dk", 16)
    x = {name: rng.random((70, 1, dk), np.float32) for name in "qk"}
    x |= {"v": rng.random((70, 1, 16), np.float32)}
    x |= {name: -rng.random((70, 1), np.float32) for name in ("log_decay", "beta")}
    states = np.zeros((2, 1, 16, dk), np.float32)
    plan = ContextParallel(exchange).plan(
        x["v"],
        states,
        np.array([1]),
        np.array([0, 70]),
        segments=changes.pop("segments", 2),
        runtime=runtime,
    )
    return plan.delta_prefill(**{**x, "states": states, **changes})


def test_arguments(runtime):
    assert one_rank(runtime).shape == (70, 1, 16)
    with pytest.raises(ValueError, match="segments: expected at least 1, got 0"):
        one_rank(runtime, segments=0)
    with pytest.raises(ValueError, match="v, states: expected 70 rows and 2 slots, those of the"):
        one_rank(runtime, states=np.zeros((3, 1, 16, 16), np.float32))
    with pytest.raises(LookupError, match="segment-maps: expected an image with this variant"):
        one_rank(runtime, dk=12)


def test_an_exchange_of_bytes_alone():
    class Bytes:
        rank, size = 0, 1

        def all_gather(self, data):
            return [data]

    v, slots = np.zeros((1, 1, 16), np.float32), np.array([0])
    with pytest.raises(TypeError, match=r"expected an exchange with gather_arrays, .* got Bytes"):
        ContextParallel(Bytes()).plan(v, np.zeros((1, 1, 16, 16)), slots, np.array([0, 1]))


def test_ranks_with_other_slots(runtime):
    case = context_cases.Case({}, np.array([[3], [4]]), np.zeros((4, 1, 16, 16)), np.array([1]))

    def work(rank, ranks):
        v = np.zeros((int(case.lengths[rank, 0]), 1, 16), np.float32)
        starts = np.array([0, len(v)])
        return ranks.plan(v, case.states, np.array([1 + rank]), starts, runtime=runtime)

    for result in case.per_rank(work):
        assert isinstance(result, ExchangeError)
        assert "slots: expected [1], which rank 0 has, got [2] on rank 1" in str(result)


def test_a_rank_that_does_not_come():
    one, _ = ThreadExchange.group(2, timeout=0.05)
    own = np.zeros(3, np.float32)
    with pytest.raises(ExchangeError, match="expected 2 ranks, at least one did not come in time"):
        one.gather_arrays(own, library_of(own))


def test_threads_exchange_arrays():
    group, found = ThreadExchange.group(3, timeout=5), {}

    def run(exchange):
        own = np.full((2, 2), exchange.rank, np.float32)
        found[exchange.rank] = exchange.gather_arrays(own, library_of(own))

    threads = [threading.Thread(target=run, args=(exchange,)) for exchange in group]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((found[rank][other] == other).all() for rank in range(3) for other in range(3))


def test_options_of_the_header_make_what_plans_need(tool):
    header = (ROOT / "include/gdn-c/context.h").read_text()
    (options,) = re.findall(r"if gdn-compile made it with\n \* (--.*)\.\n", header)
    layer = ["--preset=qwen3-next-80b-a3b", "--target=x86-64-v3", "--emit=gdn", "-o", "-"]
    made = re.findall(r"func\.func @(\w+)", tool("gdn-compile", *options.split(), *layer).stdout)
    assert {"prefill", "combine_maps", "apply_maps"} <= set(made)


def test_maps_on_a_gpu(on_ptx_driver, build_dir, tool, tmp_path):
    """Blocks in roles, H and P of a run a pair of them, on the driver that runs PTX."""
    image = tmp_path / "maps.gdnk"
    options = ["--preset=qwen3.5-0.8b", "--io=bf16", "--state=f32", "--only=prefill"]
    options += ["--layout=ready", "--outputs=core", "--segment-maps"]
    done = tool("gdn-compile", *options, "--target=sm_90a", "--ptxas=none", "-o", image)
    assert done.returncode == 0, done.stderr
    program = ["-m", "segment_maps_on_gpu", image, build_dir / "lib/libgdnrt.so"]
    found = json.loads(on_ptx_driver(*program).splitlines()[-1])
    # As much as one pass over the tokens; of P what is left of the identity, not of what decayed.
    assert found["constant"] < 1e-3 and found["linear"] < 1e-3 and found["runs"] == 3
