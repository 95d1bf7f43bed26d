# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""As test_known_calls.py, on layers of a pool: planes and pending tokens go along, and a prefill
with deferred writes launches its commit ahead."""

import threading

import pytest

torch = pytest.importorskip("torch")

from test_known_calls import DK, DV, HV, H, draw  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from gdn import Runtime, StatePool, StatePoolShape, rule_plan  # noqa: E402
from gdn.rule_pool import commit_pending, delta_prefill, gated_delta_prefill  # noqa: E402
from gdn.rule_step import delta_step, gated_delta_step  # noqa: E402
from gdn.rule_verify import gated_delta_verify  # noqa: E402

DEFERRED = {"pending_tokens": 4, "deferred_writes": True}
FORMS = {
    "f32": {},
    "i8x2": {"state_dtype": "i8x2"},
    "f32 deferred": DEFERRED,
    "i8x2 deferred f16": DEFERRED | {"state_dtype": "i8x2", "pending_dtype": "float16"},
}
INPUTS, GATES = ("q", "k", "v"), ("a", "b", "A_log", "dt_bias")
READY = ("log_decay", "beta")
#: Steps come first, so that something is pending.
FUNCTIONS = {
    gated_delta_step: (*INPUTS, *GATES, "slots"),
    delta_step: (*INPUTS, *READY, "slots"),
    delta_prefill: (*INPUTS, *READY, "slots", "cu_seqlens"),
    gated_delta_prefill: (*INPUTS, *GATES, "slots", "cu_seqlens"),
}
CALLERS = ("rule_step.RuleEntry", "rule_pool.RuleEntry", "rule_verify.RuleEntry")

pytestmark = pytest.mark.usefixtures("compiler_on_path")


class Operations(TorchDispatchMode):
    """The names of operations of PyTorch, but for what NumPy does to read tensors."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if (name := function._schema.name.removeprefix("aten::")) != "detach":
            self.names.append(name)
        return function(*args, **(kwargs or {}))


@pytest.fixture(scope="module")
def runtime(build_dir):
    return Runtime(build_dir / "lib/libgdnrt.so")


@pytest.fixture
def layers(runtime):
    def make(form):
        """Two layers of a pool."""
        shape = StatePoolShape(2, 6, H, HV, DK, DV, **FORMS[form])
        pool = StatePool(runtime.device(), shape)
        return pool, [pool.layer_states(0), pool.layer_states(1)]

    return make


@pytest.fixture
def forget(monkeypatch):
    """Drops all plans."""
    return lambda: monkeypatch.setattr(rule_plan, "_plans", threading.local())


@pytest.fixture
def unchecked(monkeypatch, forget):
    """Takes away what checks need."""
    forget()

    def take():
        for name in (*CALLERS, "rule_pool.kind_of"):
            monkeypatch.delattr(f"gdn.{name}")

    return take


def bits(pool, layer):
    arrays = [pool.state(layer)]
    arrays += pool.planes(layer) if pool.shape.state_planes else ()
    arrays += pool.pending(layer) if pool.shape.deferred_writes else ()
    return [array.tobytes() for array in arrays]


def run_all(layer, runtime, forget=lambda: None):
    """The results of two rounds of all functions, with `forget` ahead of each call."""
    found = []
    for seed in (1, 2):
        given = draw(seed)
        for function, names in FUNCTIONS.items():
            forget()
            arrays = {name: given[name] for name in names}
            found.append(function(**arrays, states=layer, l2norm=True, runtime=runtime))
    return found


@pytest.mark.parametrize("form", FORMS)
def test_bits_and_what_is_checked(runtime, layers, unchecked, forget, form):
    """A second layer of a pool has the plans of the first one, and so has another pool."""
    (checked, wanted_in), (pool, others) = layers(form), layers(form)
    wanted = run_all(wanted_in[0], runtime, forget)
    run_all(wanted_in[1], runtime)
    unchecked()
    for at, layer in enumerate(others):
        found = run_all(layer, runtime)
        assert all(torch.equal(*pair) for pair in zip(found, wanted, strict=True))
        assert bits(pool, at) == bits(checked, 0)
    for other in (layers(next(name for name in FORMS if name != form)), layers(form)):
        given = {name: draw(1)[name] for name in FUNCTIONS[gated_delta_step]}
        if other[0].shape == pool.shape:
            with pytest.raises(NameError):
                gated_delta_step(**given, states=other[1][0], null_slot=2, runtime=runtime)
        else:
            with pytest.raises(NameError):
                gated_delta_step(**given, states=other[1][0], l2norm=True, runtime=runtime)


def test_operations_of_a_prefill(runtime, layers, unchecked):
    """One behind pending tokens makes its output, and where a sequence has no tokens its slots."""
    pool, (layer, _) = layers("f32 deferred")
    run_all(layer, runtime)
    unchecked()
    given = {name: draw(3)[name] for name in FUNCTIONS[delta_prefill]}
    given["slots"] = given["slots"].int()
    cases = {(0, 1, 2, 3): [], (0, 0, 2, 3): ["slice", "slice", "gt", "where"]}
    # The first call of slots in i32 is checked.
    with pytest.raises(NameError):
        delta_prefill(**given, states=layer, l2norm=True, runtime=runtime)
    given["slots"] = given["slots"].long()
    for starts, more in cases.items():
        given["cu_seqlens"] = torch.tensor(starts, dtype=torch.int32)
        with Operations() as operations:
            delta_prefill(**given, states=layer, l2norm=True, runtime=runtime)
        wanted = ["new_empty", "clamp", "_to_copy", *more]
        assert sorted(operations.names) == sorted(wanted)
    assert not any(pool.has_pending(given["slots"].tolist()))


def test_sequences_without_tokens(runtime, layers, unchecked):
    """They keep what is pending, of a slot of theirs and of one that another sequence has."""
    pool, (layer, _) = layers("f32 deferred")
    run_all(layer, runtime)
    unchecked()
    given = draw(4)
    step = {name: given[name] for name in FUNCTIONS[gated_delta_step]}
    step["slots"] = torch.tensor([1, 2, 4])
    gated_delta_step(**step, states=layer, l2norm=True, runtime=runtime)
    before = [array.copy() for array in (pool.state(0), *pool.pending(0))]
    prompt = {name: given[name] for name in FUNCTIONS[delta_prefill]}
    prompt |= {"slots": torch.tensor([2, 4, 2]), "cu_seqlens": torch.tensor([0, 0, 0, 3]).int()}
    assert pool.has_pending([1, 2, 4]) == [True, True, True]
    delta_prefill(**prompt, states=layer, l2norm=True, runtime=runtime)
    assert pool.has_pending([1, 2, 4]) == [True, False, True]
    for array, was in zip((pool.state(0), *pool.pending(0)), before, strict=True):
        assert array[4].tobytes() == was[4].tobytes()


@pytest.mark.parametrize("form", ["f32 deferred", "i8x2 deferred f16"])
def test_commits(runtime, layers, unchecked, form):
    (checked, wanted_in), (pool, others) = layers(form), layers(form)
    step = {name: draw(1)[name] for name in FUNCTIONS[delta_step]}
    step["slots"] = torch.tensor([1, 2, 4])
    for layer in (wanted_in[0], others[0]):
        delta_step(**step, states=layer, l2norm=True, runtime=runtime)
    options = {"io": "float32", "l2norm": True, "runtime": runtime}
    commit_pending(wanted_in[0], torch.tensor([4, 9, -1, 2]), **options)
    unchecked()
    before = bits(pool, 0)
    with pytest.raises(ValueError, match="slots: expected each slot once, got 2 twice"):
        commit_pending(others[0], torch.tensor([4, 2, 2, 4]), **options)
    assert bits(pool, 0) == before
    commit_pending(others[0], torch.tensor([-1, 2, 4, -1]), **options)
    assert bits(pool, 0) == bits(checked, 0)
    assert pool.has_pending([1, 2, 4]) == [True, False, False]
    for slots in (torch.tensor([1, 2]), torch.tensor([1.0, 2, 3, 4])):
        with pytest.raises((NameError, ValueError)):
            commit_pending(others[0], slots, **options)


def test_verify_reads_a_layer(runtime, layers, unchecked):
    """A pool without pending tokens is an array; the buffer of states is not one of it."""
    pool, (layer, other) = layers("f32")
    names = (*INPUTS, *GATES, "slots", "cu_seqlens", "token_slots")
    given = {name: draw(5)[name] for name in names}
    pool.state(0)[...] = draw(5)["states"].numpy()
    buffers = [torch.zeros_like(torch.from_numpy(pool.state(0))) for _ in range(2)]
    states = torch.from_numpy(pool.state(0).copy())
    want = gated_delta_verify(**given, states=states, token_states=buffers[0], runtime=runtime)
    gated_delta_verify(**given, states=other, token_states=buffers[1], runtime=runtime)
    unchecked()
    found = gated_delta_verify(**given, states=layer, token_states=buffers[1], runtime=runtime)
    assert torch.equal(found, want) and torch.equal(*buffers)
    with pytest.raises(NameError):
        gated_delta_verify(**given, states=layer, token_states=layer, runtime=runtime)
