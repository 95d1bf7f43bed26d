# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Calls of functions of arrays that are as one before, with tensors of PyTorch: they are launched
without checks, give the bits of calls that are checked, and what is not as before is checked."""

import threading

import pytest

torch = pytest.importorskip("torch")

from gdn import (  # noqa: E402
    Call,
    Runtime,
    StatePool,
    StatePoolShape,
    conv1d,
    devices,
    gated_norm,
    rule,
    rule_plan,
)
from gdn.rule_pool import delta_prefill  # noqa: E402
from gdn.rule_step import delta_step, gated_delta_step  # noqa: E402
from gdn.rule_verify import gated_delta_verify, gated_delta_verify_in_slots  # noqa: E402

H, HV, DK, DV, N, SLOTS = 1, 2, 16, 24, 3, 7

pytestmark = pytest.mark.usefixtures("compiler_on_path")


@pytest.fixture(scope="module")
def runtime(build_dir):
    return Runtime(build_dir / "lib/libgdnrt.so")


def draw(seed):
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(shape, generator=generator) / 4

    def ids(*values):
        return torch.tensor(values)[torch.randperm(len(values), generator=generator)]

    return {
        "q": normal(N, H, DK),
        "k": normal(N, H, DK),
        "v": normal(N, HV, DV),
        "a": normal(N, HV),
        "b": normal(N, HV),
        "A_log": normal(HV).double(),
        "dt_bias": normal(HV),
        "log_decay": -normal(N, HV).abs(),
        "beta": normal(N, HV).abs(),
        "states": normal(SLOTS, HV, DV, DK),
        "slots": ids(0, 2, 4),
        "write_slots": ids(1, 3, 5),
        "cu_seqlens": torch.tensor([0, 1, 3, 3], dtype=torch.int32),
        "token_states": normal(2 * N, HV, DV, DK),
        "token_slots": ids(*range(6)).reshape(N, 2),
        "num_accepted": ids(1, 2, 1).int(),
        "x": normal(N, 64),
        "weight": normal(64, 4),
        "windows": normal(SLOTS, 64, 3),
        "gate": normal(N, HV, DV),
        "norm": normal(DV).bfloat16(),
    }


GATES = ("a", "b", "A_log", "dt_bias")
FUNCTIONS = {
    "step": (gated_delta_step, ("q", "k", "v", *GATES, "states", "slots")),
    "ready step": (delta_step, ("q", "k", "v", "log_decay", "beta", "states", "slots")),
    "prefill": (
        delta_prefill,
        ("q", "k", "v", "log_decay", "beta", "states", "slots", "cu_seqlens"),
    ),
    "verify": (
        gated_delta_verify,
        ("q", "k", "v", *GATES, "states", "slots", "cu_seqlens", "token_states", "token_slots"),
    ),
    "verify in slots": (
        gated_delta_verify_in_slots,
        ("q", "k", "v", *GATES, "states", "token_slots", "num_accepted", "cu_seqlens"),
    ),
    "convolution": (conv1d.causal_conv1d, ("x", "weight", "windows", "slots")),
    "norm": (gated_norm.gated_rms_norm, ("v", "gate", "norm")),
}


@pytest.fixture
def unchecked(monkeypatch):
    """Takes away what checks need."""

    def take():
        for function in ("rule_step", "rule_pool", "rule_verify"):
            monkeypatch.delattr(f"gdn.{function}.RuleEntry")
        for module in (conv1d, gated_norm):
            monkeypatch.delattr(module, "library_of")

    monkeypatch.setattr(rule_plan, "_plans", threading.local())
    return take


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("more", [(), ("out",)], ids=["new", "out"])
def test_bits_and_what_is_checked(runtime, unchecked, name, more, monkeypatch):
    function, names = FUNCTIONS[name]

    def call(given, **options):
        out = {"out": torch.empty_like(given["x" if "x" in names else "v"])} if more else {}
        return function(*(given[n] for n in names), **out, **options, runtime=runtime)

    first, second, wanted = draw(1), draw(2), draw(2)
    result = call(wanted)
    monkeypatch.setattr(rule_plan, "_plans", threading.local())
    call(first)
    unchecked()
    found = call(second)
    assert torch.equal(found, result) and found.shape == result.shape
    assert all(torch.equal(second[n], wanted[n]) for n in second)
    if "cu_seqlens" in names:
        starts = second["cu_seqlens"] + torch.tensor([0, 0, 0, 1], dtype=torch.int32)
        with pytest.raises(ValueError, match="cu_seqlens: expected element 3 from 3 to 3, got 4"):
            call(second | {"cu_seqlens": starts})
    # Other types, shapes, strides and options are checked.
    for n in names:
        array = second[n]
        strided = torch.stack([array, array], dim=-1)[..., 0]
        for other in (array[1:], array.to(torch.int16), strided, array[..., None]):
            with pytest.raises(NameError):
                call(second | {n: other})
    options = {"eps": 1e-3} if name == "norm" else {"null_slot": 2}
    with pytest.raises(NameError):
        call(second, **options)
    with pytest.raises(NameError):
        call({n: x.requires_grad_() if n == names[0] else x for n, x in second.items()})


def test_slots_to_write_are_not_those_of_before(runtime, unchecked):
    """The first call reads and writes the same array of slots, the second does not."""
    first, second = draw(1), draw(2)
    function, names = FUNCTIONS["step"]
    slots = first["slots"].int()
    first["slots"], second["slots"] = slots, slots.clone()
    call = (function, runtime)
    for given, written in ((first, slots), (second, second["write_slots"].int())):
        before = given["states"].clone()
        call[0](*(given[n] for n in names), write_slots=written, runtime=call[1])
        changed = (given["states"] != before).flatten(1).any(1).nonzero().flatten()
        assert changed.tolist() == written.sort().values.tolist()


def test_what_has_no_plan(runtime, unchecked):
    """A scale of its own, rows that are kept, and options that compare equal but are none."""
    function, names = FUNCTIONS["step"]
    given = draw(1)
    arguments = [given[n] for n in names]
    function(*arguments, null_slot=1, runtime=runtime)
    with pytest.raises(TypeError, match="null_slot: expected an integer, got"):
        function(*arguments, null_slot=1.0, runtime=runtime)
    function(*arguments, scale=0.5, runtime=runtime)
    function(*arguments, zero_skipped=False, runtime=runtime)
    unchecked()
    for options in ({"scale": 0.5}, {"zero_skipped": False}, {"scale": torch.tensor(0.25)}):
        with pytest.raises(NameError, match="RuleEntry"):
            function(*arguments, **options, runtime=runtime)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_views_that_negate_are_refused(runtime, name):
    """Memory has the numbers with another sign. Not behind a call that was as this one, either."""
    function, names = FUNCTIONS[name]
    for _ in range(2):
        for negated in names:
            given = draw(1)
            before = {n: x.clone() for n, x in given.items()}
            array = given[negated]
            # A view by name, and what users have of numbers with two parts.
            views = [torch._neg_view(array)]
            if array.is_floating_point():
                views.append(torch.complex(array.double(), -array.double()).conj().imag)
            for wrong in views:
                with pytest.raises(ValueError, match="expected numbers as they are in memory"):
                    arguments = given | {negated: wrong}
                    function(*(arguments[n] for n in names), runtime=runtime)
            assert all(torch.equal(given[n], before[n]) for n in given)
        function(*(draw(1)[n] for n in names), runtime=runtime)


def test_views_that_negate_behind_a_call_of_the_rule(runtime, monkeypatch):
    monkeypatch.setattr(devices, "_runtime", [runtime])
    names = ("q", "k", "v", "log_decay", "beta")
    arrays = {n: draw(1)[n][None] for n in names}
    rule.gated_delta_rule(**arrays)
    for name in names:
        with pytest.raises(ValueError, match=f"{name}: expected numbers as they are in memory"):
            rule.gated_delta_rule(**arrays | {name: torch._neg_view(arrays[name])})


def test_views_that_negate_in_a_call(runtime, build_dir):
    """tvm-ffi hands over their memory as it is."""
    image = runtime.image(build_dir / "test/Unit/runtime/test.gdnk")
    call, counts = Call(runtime.device().kernel(image, "count")), torch.zeros(3, dtype=torch.int64)
    call(counts)
    with pytest.raises(ValueError, match="counts: expected numbers as they are in memory"):
        call(torch._neg_view(counts))
    call(counts=counts.numpy())
    assert counts.tolist() == [2, 2, 2]


def test_views_that_negate_in_a_binding_and_a_pool(runtime, build_dir):
    """PyTorch lends their memory through DLPack, too."""
    image = runtime.image(build_dir / "test/Unit/runtime/test.gdnk")
    kernel, counts = runtime.device().kernel(image, "count"), torch.zeros(3, dtype=torch.int64)
    with pytest.raises(ValueError, match="counts: expected numbers as they are in memory"):
        kernel.bind(counts=torch._neg_view(counts))
    shape = StatePoolShape(1, 2, 1, 2, 64, 64, conv_dtype="float32")
    state, conv = torch.zeros(3, 2, 64, 64), torch.zeros(3, 256, 3)
    for name, pair in (
        ("state", (torch._neg_view(state), conv)),
        ("conv", (state, torch._neg_view(conv))),
    ):
        with pytest.raises(ValueError, match=f"{name}: expected numbers as they are in memory"):
            StatePool.wrap(runtime.device(), shape, [pair[0]], [pair[1]])


def test_starts_are_not_those_of_before(runtime, unchecked, monkeypatch):
    """A ragged call of the rule, whose second has other starts, of i64."""
    monkeypatch.setattr(devices, "_runtime", [runtime])
    names = ("q", "k", "v", "log_decay", "beta")

    def call(given, starts):
        arrays = (given[n][None] for n in names)
        return rule.gated_delta_rule(*arrays, cu_seqlens=torch.tensor(starts))

    first, second = draw(1), draw(2)
    wanted = call(second, [0, 1, 1, 3])
    monkeypatch.setattr(rule_plan, "_plans", threading.local())
    call(first, [0, 2, 3, 3])
    monkeypatch.delattr(rule, "_RuleCall")
    found = call(second, [0, 1, 1, 3])
    assert all(torch.equal(*pair) for pair in zip(found, wanted, strict=True))
    with pytest.raises(ValueError, match="cu_seqlens: expected element 2 from 1 to 3, got 0"):
        call(second, [0, 1, 0, 3])
    with pytest.raises(NameError, match="_RuleCall"):
        call(second, [0, 1, 3])
    with pytest.raises(NameError, match="_RuleCall"):
        call(second, [0.0, 1, 1, 3])


@pytest.mark.parametrize("value_dim", [20, 24])
def test_values_of_any_size(runtime, value_dim):
    """Sizes that are no multiple of 8 have zeros behind them in copies: there is no plan."""
    given = draw(4)
    tokens = [given[name][None] for name in ("q", "k", "v", "log_decay", "beta")]
    tokens[2] = tokens[2][..., :value_dim]
    states = given["states"][:1, :, :value_dim]
    options = {"state_v_first": True, "runtime": runtime}
    wanted = rule.gated_delta_rule(*tokens, initial_state=states.double(), **options)
    for _ in range(2):
        found = rule.gated_delta_rule(*tokens, initial_state=states, state_v_first=True)
        assert found[0].shape == (1, N, HV, value_dim) and found[1].shape == states.shape
        assert all(map(torch.equal, found, wanted))
