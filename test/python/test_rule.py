# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The rule as a function of arrays of NumPy, against the recurrence in float64."""

import importlib
import importlib.util
from itertools import pairwise

import numpy as np
import pytest

from gdn import Runtime, images, rule
from gdn.rule import gated_delta_rule

H, HV, DK, DV = 2, 4, 16, 24


@pytest.fixture(scope="module")
def runtime(build_dir):
    return Runtime(build_dir / "lib/libgdnrt.so")


pytestmark = [pytest.mark.usefixtures("compiler_on_path"), pytest.mark.once(compiler="cpu")]


def recurrence(q, k, v, log_decay, beta, scale, state):
    """One sequence: [T, H, d] each, the state [Hv, dv, dk]; in float64."""
    repeat = v.shape[1] // q.shape[1]
    q, k = (np.repeat(x, repeat, axis=1) for x in (q, k))
    state, outputs = state.copy(), []
    decay = np.exp(log_decay)[..., None, None] if log_decay.ndim == 2 else np.exp(log_decay)
    for t in range(len(q)):
        state *= decay[t] if log_decay.ndim == 2 else decay[t][:, None, :]
        error = v[t] - np.einsum("hvk,hk->hv", state, k[t])
        state += np.einsum("hv,hk->hvk", beta[t][:, None] * error, k[t])
        outputs.append(scale * np.einsum("hvk,hk->hv", state, q[t]))
    return np.array(outputs).reshape(v.shape), state


def unit(x):
    return x / np.sqrt((x * x).sum(-1, keepdims=True) + 1e-6)


def draw(rng, batch, tokens, *, per_channel=False, dk=DK, dv=DV, io=np.float32, strength=1.0):
    def normal(*shape):
        return rng.standard_normal(shape).astype(io)

    q, k = (unit(normal(batch, tokens, H, dk)).astype(io) for _ in range(2))
    decays = (batch, tokens, HV, dk) if per_channel else (batch, tokens, HV)
    return {
        "q": q,
        "k": k,
        "v": normal(batch, tokens, HV, dv),
        "log_decay": -rng.exponential(0.3, decays),
        "beta": rng.uniform(0, strength, (batch, tokens, HV)),
    }


def expected(given, starts, scale, states, l2norm=False):
    """Outputs [tokens, Hv, dv] of sequences that begin at `starts`, and their last states."""
    flat = {name: x.astype(np.float64).reshape(-1, *x.shape[2:]) for name, x in given.items()}
    if l2norm:
        flat["q"], flat["k"] = unit(flat["q"]), unit(flat["k"])
    outputs, last = [np.zeros_like(flat["v"][:0])], []
    for n, (first, behind) in enumerate(pairwise(starts)):
        part = {name: x[first:behind] for name, x in flat.items()}
        out, state = recurrence(**part, scale=scale, state=states[n])
        outputs.append(out)
        last.append(state)
    return np.concatenate(outputs), np.array(last)


def error_of(got, want):
    got = np.asarray(got, np.float64).reshape(want.shape)
    return np.sqrt(((got - want) ** 2).sum() / max((want**2).sum(), 1e-30))


@pytest.mark.parametrize("l2norm", [False, True])
@pytest.mark.parametrize("per_channel", [False, True])
def test_chunks_and_single_tokens(runtime, per_channel, l2norm):
    """Prompts, then a token each, from the states of the prompts; those are not changed."""
    rng = np.random.default_rng(1)
    dv = DK if per_channel else DV
    states = np.zeros((2, HV, dv, DK))
    initial = None
    for tokens in (70, 1, 5):
        given = draw(rng, 2, tokens, per_channel=per_channel, dv=dv)
        if l2norm:
            given["q"], given["k"] = 3 * given["q"], 2 * given["k"]
        before = None if initial is None else initial.copy()
        out, last = gated_delta_rule(**given, initial_state=initial, l2norm=l2norm, runtime=runtime)
        starts = [0, tokens, 2 * tokens]
        want, states = expected(given, starts, DK**-0.5, states, l2norm)
        assert out.shape == given["v"].shape and out.dtype == np.float32
        assert error_of(out, want) < 1e-5
        assert error_of(last, states) < 1e-5
        if before is not None:
            np.testing.assert_array_equal(initial, before)
        initial = last


def test_ragged_sequences(runtime):
    rng = np.random.default_rng(2)
    lengths = [3, 0, 65, 1]
    starts = np.cumsum([0, *lengths])
    given = draw(rng, 1, sum(lengths))
    first = rng.standard_normal((4, HV, DV, DK))
    for states in (np.zeros_like(first), first):
        initial = states.astype(np.float32) if states.any() else None
        out, last = gated_delta_rule(
            **given, cu_seqlens=starts, initial_state=initial, runtime=runtime
        )
        want, wanted = expected(given, starts, DK**-0.5, states)
        assert error_of(out, want) < 1e-5 and error_of(last, wanted) < 1e-5
        np.testing.assert_array_equal(last[1], states[1].astype(np.float32))


@pytest.mark.parametrize(
    ("starts", "message"),
    [
        ([0, 2**32 + 2], "element 1 from 0 to 5, got 4294967298"),
        ([0, 6], "element 1 from 0 to 5, got 6"),
        ([-1, 5], "element 0 from 0 to 5, got -1"),
        ([0, 4, 3, 5], "element 2 from 4 to 5, got 3"),
        ([0, 7, 5], "element 1 from 0 to 5, got 7"),
    ],
)
def test_starts_that_are_out_of_order_or_behind_the_tokens(runtime, starts, message):
    given = draw(np.random.default_rng(2), 1, 5)
    with pytest.raises(ValueError, match=f"cu_seqlens: expected {message}"):
        gated_delta_rule(**given, cu_seqlens=np.array(starts), runtime=runtime)


def test_more_tokens_than_starts_can_say(runtime):
    """They are of i32 in kernels; rows that lie on each other need no memory."""

    def rows(*shape):
        one = np.ones(shape[2:], np.float32)
        return np.lib.stride_tricks.as_strided(one, shape, (0, 0, *one.strides))

    for batch, tokens, starts in ((1, 2**31 + 5, np.array([2**31, 2**31 + 5])), (2, 2**30, None)):
        heads, gates = rows(batch, tokens, 1, 16), rows(batch, tokens, 1)
        with pytest.raises(ValueError, match="tokens: expected at most 2147483647 in a call, got"):
            arguments = [heads] * 3 + [gates] * 2
            gated_delta_rule(*arguments, cu_seqlens=starts, runtime=runtime)


@pytest.mark.parametrize("tokens", [1, 33])
def test_heads_that_are_no_multiple_of_eight(runtime, tokens):
    rng = np.random.default_rng(3)
    given = draw(rng, 2, tokens, dk=13, dv=5)
    states = rng.standard_normal((2, HV, 5, 13))
    out, last = gated_delta_rule(**given, initial_state=states.astype(np.float32), runtime=runtime)
    want, wanted = expected(given, [0, tokens, 2 * tokens], 13**-0.5, states)
    assert out.shape == (2, tokens, HV, 5) and last.shape == states.shape
    assert error_of(out, want) < 1e-5 and error_of(last, wanted) < 1e-5


def strided(array):
    """The same numbers, no dimension of which is contiguous."""
    wide = np.full(tuple(2 * size for size in array.shape), np.nan, array.dtype)
    view = wide[tuple(slice(1, None, 2) for _ in array.shape)]
    view[...] = array
    return view


@pytest.mark.parametrize("per_channel", [False, True])
def test_strided_arrays(runtime, per_channel):
    rng = np.random.default_rng(10)
    dv = DK if per_channel else DV
    for tokens in (20, 1):
        given = draw(rng, 2, tokens, per_channel=per_channel, dv=dv)
        states = rng.standard_normal((2, HV, dv, DK)).astype(np.float32)
        whole = gated_delta_rule(**given, initial_state=states, runtime=runtime)
        apart = {name: strided(x) for name, x in given.items()}
        found = gated_delta_rule(**apart, initial_state=strided(states), runtime=runtime)
        for a, b in zip(found, whole, strict=True):
            np.testing.assert_array_equal(a, b)


def test_states_of_a_token_are_read_where_they_are(runtime, monkeypatch):
    """A state is copied only where no kernel takes it as it is: another type, or strides."""
    copies = []
    pool = rule._RuleCall._pool
    monkeypatch.setattr(
        rule._RuleCall, "_pool", lambda self, *sizes: copies.append(1) or pool(self, *sizes)
    )
    rng = np.random.default_rng(11)
    given = draw(rng, 2, 1)
    states = rng.standard_normal((2, HV, DV, DK)).astype(np.float32)
    rows = np.concatenate([states, np.full_like(states, np.nan)], axis=3)[..., :DK]
    want = gated_delta_rule(**given, initial_state=states, runtime=runtime)
    found = gated_delta_rule(**given, initial_state=rows, runtime=runtime)
    assert not copies
    for other in (states.astype(np.float64), strided(states)):
        found += gated_delta_rule(**given, initial_state=other, runtime=runtime)
    assert len(copies) == 2
    for i, array in enumerate(found):
        assert error_of(array, want[i % 2]) < 1e-6


@pytest.mark.parametrize("tokens", [1, 3])
def test_initial_states_are_only_read(runtime, tokens):
    """They may be read-only, and one state for all sequences."""
    rng = np.random.default_rng(10)
    given, state = draw(rng, 3, tokens), rng.standard_normal((1, HV, DV, DK)).astype(np.float32)
    copies = np.repeat(state, 3, axis=0)
    want = gated_delta_rule(**given, initial_state=copies.copy(), runtime=runtime)
    copies.setflags(write=False)
    for states in (copies, np.broadcast_to(state, copies.shape)):
        found = gated_delta_rule(**given, initial_state=states, runtime=runtime)
        for pair in zip(found, want, strict=True):
            np.testing.assert_array_equal(*pair)


def test_scale(runtime):
    rng = np.random.default_rng(4)
    given = draw(rng, 1, 9)
    one, _ = gated_delta_rule(**given, scale=1.0, runtime=runtime)
    want, _ = expected(given, [0, 9], 1.0, np.zeros((1, HV, DV, DK)))
    assert error_of(one, want) < 1e-5


@pytest.mark.parametrize("per_channel", [False, True])
def test_strengths_up_to_two(runtime, per_channel):
    rng = np.random.default_rng(5)
    dv = DK if per_channel else DV
    given = draw(rng, 1, 80, per_channel=per_channel, dv=dv, strength=2.0)
    # Repeated keys: strengths above 1 turn the sign of what a key finds.
    given["k"][:, 20:60] = given["k"][:, :1]
    out, last = gated_delta_rule(**given, allow_neg_eigval=True, runtime=runtime)
    want, states = expected(given, [0, 80], DK**-0.5, np.zeros((1, HV, dv, DK)))
    assert error_of(out, want) < 1e-5 and error_of(last, states) < 1e-5


def test_types(runtime):
    rng = np.random.default_rng(6)
    given = draw(rng, 1, 40, io=np.float16)
    out, last = gated_delta_rule(**given, state_dtype="float16", runtime=runtime)
    assert (out.dtype, last.dtype) == (np.float16, np.float16)
    want, states = expected(given, [0, 40], DK**-0.5, np.zeros((1, HV, DV, DK)))
    assert error_of(out, want) < 2e-3 and error_of(last, states) < 2e-3


def test_no_tokens(runtime):
    rng = np.random.default_rng(7)
    states = rng.standard_normal((2, HV, DV, DK)).astype(np.float32)
    out, last = gated_delta_rule(**draw(rng, 2, 0), initial_state=states, runtime=runtime)
    assert out.shape == (2, 0, HV, DV)
    np.testing.assert_array_equal(last, states)
    out, last = gated_delta_rule(
        **draw(rng, 1, 0), cu_seqlens=np.zeros(1, np.int64), runtime=runtime
    )
    assert out.shape == (1, 0, HV, DV) and last.shape == (0, HV, DV, DK)
    # No value heads.
    for count in (1, 3):
        given = draw(rng, 2, count)
        given |= {name: given[name][:, :, :0] for name in ("v", "log_decay", "beta")}
        out, last = gated_delta_rule(**given, runtime=runtime)
        assert out.shape == (2, count, 0, DV) and last.shape == (2, 0, DV, DK)
    # Tokens of no sequence.
    out, _ = gated_delta_rule(**draw(rng, 1, 3), cu_seqlens=np.zeros(1, int), runtime=runtime)
    assert out.shape == (1, 3, HV, DV) and not out.any()


@pytest.mark.parametrize(
    "change, message",
    [
        ({"q": np.zeros((1, 4, 2), np.float32)}, r"q: expected the shape \[B, T, H, d\], got"),
        ({"q": np.zeros((1, 4, H, DK))}, "q: expected float32, bfloat16 or float16, got float64"),
        ({"k": np.zeros((1, 4, H, DK), np.float16)}, "k: expected float32, the type of v, got fl"),
        ({"k": np.zeros((1, 4, 1, DK), np.float32)}, r"k: expected \[1, 4, 2, 16\], the shape of"),
        ({"v": np.zeros((1, 4, 3, DV), np.float32)}, "v: expected a multiple of the 2 heads of q"),
        ({"v": np.zeros((1, 5, HV, DV), np.float32)}, r"v: expected the shape \[1, 4\] and heads"),
        ({"beta": np.zeros((1, 4, H))}, r"beta: expected the shape \[1, 4, 4\], got \[1, 4, 2\]"),
        ({"log_decay": np.zeros((1, 4, HV, 5))}, r"log_decay: expected the shape \[1, 4, 4, 16\]"),
        ({"cu_seqlens": np.array([0.0, 4.0])}, "cu_seqlens: expected integers, got float64"),
        ({"cu_seqlens": np.zeros((1, 2), np.int32)}, r"cu_seqlens: expected the shape \[N \+ 1\]"),
        ({"initial_state": np.zeros((2, HV, DV, DK))}, r"initial_state: expected the shape \[1, 4"),
        (
            {name: np.zeros((1, 4, H, 264), np.float32) for name in "qk"},
            "q: expected heads of 1 to 256 numbers, got 264",
        ),
        (
            {"v": np.zeros((1, 4, HV, 0), np.float32)},
            "v: expected heads of 1 to 256 numbers, got 0",
        ),
        ({"state_dtype": "float64"}, "state_dtype: expected float32, bfloat16 or float16, got"),
    ],
)
def test_refusals(runtime, change, message):
    given = draw(np.random.default_rng(8), 1, 4)
    with pytest.raises(ValueError, match=message):
        gated_delta_rule(**given | change, runtime=runtime)


def test_what_no_image_has(runtime, monkeypatch):
    rng = np.random.default_rng(9)
    channel = draw(rng, 1, 4, per_channel=True)
    with pytest.raises(ValueError, match="v: expected heads of 16, those of q, with a decay of"):
        gated_delta_rule(**channel, runtime=runtime)
    # Where nothing can be compiled, the error says what image is missing and what makes it.
    monkeypatch.setenv("PATH", "")
    with pytest.raises(images.ImageNotFoundError, match="gdn-compile --config"):
        gated_delta_rule(**draw(rng, 1, 4, dk=40, dv=48), runtime=runtime)
    with pytest.raises(TypeError, match="expected an array of NumPy or a tensor of PyTorch, got l"):
        gated_delta_rule([], [], [], [], [])


@pytest.mark.skipif(importlib.util.find_spec("torch") is not None, reason="PyTorch is installed")
def test_operators_need_pytorch():
    with pytest.raises(ImportError, match=r"gdn\.ops: expected PyTorch to be installed"):
        importlib.import_module("gdn.ops")
