# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""gdn.ops on a CPU, where PyTorch is installed: all that gdn.ops_check looks at, and arguments that
are refused before anything is written."""

import threading

import pytest

torch = pytest.importorskip("torch")

from gdn import (  # noqa: E402
    Runtime,
    StatePool,
    StatePoolShape,
    devices,
    ops_check,
    ops_names_check,
    ops_states_check,
    ops_tracing_check,
    rule,
    rule_plan,
)
from gdn.ops import causal_conv1d, fla, flashinfer, vllm  # noqa: E402
from gdn.ops_problems import error_of, recurrence  # noqa: E402

pytestmark = pytest.mark.usefixtures("compiler_on_path", "built_runtime")


@pytest.fixture
def built_runtime(build_dir, monkeypatch):
    """The default runtime is that of the build."""
    runtime = Runtime(build_dir / "lib/libgdnrt.so")
    monkeypatch.setattr(devices, "_runtime", [runtime])


CHECKS = [
    ops_check.check_rule,
    ops_check.check_kda,
    ops_check.check_steps,
    ops_states_check.check_channels_in_place,
    ops_states_check.check_operators_of_channels,
    ops_states_check.check_verify_of_channels,
    ops_states_check.check_deferred,
    ops_check.check_tracing,
    ops_names_check.check_convolution,
    ops_names_check.check_drafts,
    ops_names_check.check_channels_first,
    ops_names_check.check_norm,
    ops_names_check.check_prefill,
    ops_names_check.check_several,
    ops_tracing_check.check_tracing_of_names,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_checks(check, capsys):
    count = ops_check.Check()
    check(count, "cpu")
    assert count.failed == 0, capsys.readouterr().out


def test_what_is_no_number_fails(capsys):
    """Whichever of several errors it is."""
    count, numbers = ops_check.Check(), torch.ones(3, dtype=torch.float64)
    for got in (numbers, numbers * torch.nan), (numbers * torch.nan, numbers):
        count.close("numbers", 1.0, *((x, numbers) for x in got))
    assert count.failed == 2
    count.close("shown alone", None, (numbers * torch.nan, numbers))
    assert count.failed == 2 and capsys.readouterr().out.count("nan") == 3


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda x: causal_conv1d.causal_conv1d_fn(x, torch.ones(7, 4)),
            r"causal_conv1d_fn: weight: expected the shape \[8, any\], got \[7, 4\]",
        ),
        (
            lambda x: causal_conv1d.causal_conv1d_update(x, torch.ones(2, 8, 2), torch.ones(8, 4)),
            "conv_state: expected windows of at least 3 inputs, got 2",
        ),
        (
            lambda x: causal_conv1d.causal_conv1d_fn(x, torch.ones(8, 4), activation="gelu"),
            "activation: expected None, silu or swish, got 'gelu'",
        ),
        (
            lambda x: vllm.causal_conv1d_update(
                x,
                torch.ones(2, 8, 4),
                torch.ones(8, 4),
                conv_state_indices=torch.arange(2),
                num_accepted_tokens=torch.ones(2, dtype=torch.int32),
            ),
            "cache of windows: expected at least 7 columns, got 4",
        ),
        (
            lambda x: fla.rms_norm_gated(x, x, None, bias=torch.ones(4)),
            r"rms_norm_gated: bias: expected the shape \[5\], got \[4\]",
        ),
        (
            lambda x: fla.layer_norm_gated(x, x, None, activation="gelu"),
            "layer_norm_gated: activation: expected swish, silu or sigmoid, got 'gelu'",
        ),
        (
            lambda x: fla.layer_norm_swish_gate_linear(x, x[:1], None, None, x, None),
            r"layer_norm_swish_gate_linear: g: expected the shape \[2, 8, 5\], got \[1, 8, 5\]",
        ),
        (
            lambda x: fla.chunk_kda(*[x[None]] * 4, x, chunk_size=16),
            "chunk_kda: `chunk_size` must be either 32 or 64, got 16",
        ),
        (
            lambda x: fla.chunk_kda(*[x[None]] * 4, x, safe_gate=True, use_gate_in_kernel=True),
            "chunk_kda: lower_bound: expected a number from -5 to below 0 with safe_gate, got None",
        ),
        (
            lambda x: fla.chunk_kda(*[x[None]] * 4, x, cp_context=x),
            r"chunk_kda: cp_context: not supported, expected None, got a tensor of \[2, 8, 5\]",
        ),
        (
            lambda x: fla.fused_kda_gate(x[0, 0]),
            r"fused_kda_gate: g: expected the shape \[.., HV, K\], got \[5\]",
        ),
        (
            lambda x: vllm.fused_gdn_decode_post_conv_mtp(
                x[0],
                *[x] * 4,
                x[0].int(),
                x,
                x,
                torch.ones(3, 2, 8, 8),
                *[x] * 3,
                1.0,
                1e-6,
                "silu",
            ),
            "mixed_qkv: expected q and k of heads of 8, and 2 heads of v of 8, got 5 channels",
        ),
        (
            lambda x: vllm.fused_gdn_decode_post_conv_mtp(*[x] * 12, 1.0, 1e-6, "gelu"),
            "output_gate_activation: expected silu or sigmoid, got 'gelu'",
        ),
        (
            lambda x: flashinfer.chunk_gated_delta_rule(x, x, x, checkpoint_every_n_tokens=100),
            "expected a multiple of the chunk size, 64, got 100",
        ),
        (
            lambda x: flashinfer.gated_delta_rule_mtp(
                *[torch.ones(2, 3, 2, 8)] * 3,
                torch.ones(4, 2, 8, 8),
                torch.arange(2),
                *[torch.ones(2), torch.ones(2, 3, 2)] * 2,
                cache_replayssm=True,
            ),
            "cache_replayssm: not supported",
        ),
    ],
)
def test_refusals(call, message):
    x = torch.ones(2, 8, 5)
    with pytest.raises(ValueError, match=message):
        call(x)
    assert (x == 1).all()


def decode(**change):
    """A decode of two sequences on a pool of four states."""
    keys, values, gates = torch.ones(2, 1, 1, 8), torch.ones(2, 1, 2, 8), torch.ones(2, 1, 2)
    rates = {"A_log": torch.ones(2), "dt_bias": torch.ones(2), "state": None}
    given = {"q": keys, "k": keys, "v": values, "a": gates, "b": gates} | rates
    given |= {"initial_state": torch.ones(4, 2, 8, 8), "initial_state_indices": torch.arange(2)}
    states = (given | change)["initial_state"]
    flashinfer.gated_delta_rule_decode_pretranspose(**given | change)
    return states


def update(**change):
    """A step of vLLM's."""
    keys, values, gates = torch.ones(1, 3, 1, 8), torch.ones(1, 3, 2, 8), torch.ones(3, 2)
    given = {"A_log": torch.ones(2), "dt_bias": torch.ones(2), "a": gates, "b": gates}
    given |= {"q": keys, "k": keys, "v": values, "initial_state": torch.ones(9, 2, 8, 8)}
    given |= {"cu_seqlens": torch.tensor([0, 1, 3]), "ssm_state_indices": torch.ones(2, 2).int()}
    vllm.fused_sigmoid_gating_delta_rule_update(**given | change)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: decode(a=torch.ones(2, 2, 2)), r"a: expected the shape \[2, 1, 2\], got \[2, 2"),
        (lambda: decode(b=torch.ones(2, 2)), r"b: expected the shape \[2, 1, 2\], got \[2, 2\]"),
        (
            lambda: decode(output=torch.ones(2, 2, 2, 8)),
            r"output: expected the shape \[2, 1, 2, 8\], got \[2, 2, 2, 8\]",
        ),
        (
            lambda: decode(output_state_indices=torch.ones(1).int()),
            r"output_state_indices: expected the shape \[2\], got \[1\]",
        ),
        (
            lambda: decode(initial_state_indices=torch.ones(2)),
            "initial_state_indices: expected integers, got torch.float32",
        ),
        (lambda: decode(scale=float("nan")), "scale: expected a finite number, got nan"),
        (lambda: update(a=torch.ones(2, 3)), r"a: expected the shape \[3, 2\], got \[2, 3\]"),
        (lambda: update(b=torch.ones(6)), r"b: expected the shape \[3, 2\], got \[6\]"),
        (lambda: update(k=torch.ones(3, 1, 1, 8)), r"k: expected the shape \[1, 3, 1, 8\], got"),
        (lambda: update(cu_seqlens=torch.ones(3)), "cu_seqlens: expected integers, got torch.fl"),
        (
            lambda: flashinfer.gated_delta_rule_mtp(
                *[torch.ones(2, 3, 2, 8)] * 3,
                torch.ones(4, 2, 8, 8),
                torch.arange(2),
                *[torch.ones(2), torch.ones(2, 3, 2)] * 2,
                output=torch.ones(2, 1, 2, 8),
            ),
            r"mtp: output: expected the shape \[2, 3, 2, 8\], got \[2, 1, 2, 8\]",
        ),
        (
            lambda: flashinfer.chunk_gated_delta_rule(
                *[torch.ones(3, 0, 8)] * 3, cu_seqlens=torch.tensor([0, 3])
            ),
            r"q: expected heads, got \[3, 0, 8\]",
        ),
        (
            lambda: fla.fused_gdn_gate(torch.ones(3, 2), torch.ones(1)),
            r"A_log: expected 2 elements, for g has the shape \[1, 3, 2\], got \[1\]",
        ),
        (
            lambda: fla.fused_kda_gate(torch.ones(3, 2, 8), torch.ones(2), torch.ones(8)),
            r"dt_bias: expected 16 elements, for g has the shape \[1, 3, 2, 8\], got \[8\]",
        ),
        (
            lambda: fla.fused_kda_gate(torch.ones(3, 2, 8), lower_bound=float("nan")),
            "lower_bound: expected a finite number, got nan",
        ),
        (
            lambda: fla.fused_kda_gate(torch.ones(3, 2, 8), torch.ones(2, device="meta")),
            "A_log: expected a tensor on cpu, as g is, got one on meta",
        ),
        (
            lambda: fla.fused_kda_gate(torch.ones(3, 2, 8), lower_bound=5.0),
            "lower_bound: expected a number below 0, got 5.0",
        ),
        (
            lambda: fla.rms_norm_gated(*[torch.ones(2, 8)] * 2, None, eps=float("nan")),
            "rms_norm_gated: eps: expected a finite number, got nan",
        ),
        (
            lambda: fla.rms_norm_gated(*[torch.ones(2, 8)] * 2, None, eps=-1e-6),
            "rms_norm_gated: eps: expected a number of 0 or more, got -1e-06",
        ),
        (
            lambda: vllm.causal_conv1d_update(
                torch.ones(2, 8),
                torch.ones(4, 8, 3),
                torch.ones(8, 4),
                conv_state_indices=torch.ones(2),
            ),
            "causal_conv1d_update: conv_state_indices: expected integers, got torch.float32",
        ),
        (
            lambda: causal_conv1d.causal_conv1d_fn(torch.ones(2, 8, 5), torch.ones(8, 0)),
            r"weight: expected the shape \[D, K\] with K from 1, got K = 0",
        ),
        (
            lambda: vllm.causal_conv1d_fn(
                torch.ones(8, 3), torch.ones(8, 4), None, torch.ones(4, 8, 3), torch.tensor(3)
            ),
            r"query_start_loc: expected the shape \[any\], got \[\]",
        ),
    ],
)
def test_what_would_be_reshaped_or_cut(call, message):
    """What PyTorch would broadcast, cut to integers or take as another shape."""
    with pytest.raises(ValueError, match=message):
        call()


def test_rule_refuses_other_tensors():
    """Arrays of another library, on another device, and tensors whose gradient would be missing."""
    given = ops_check.draw((1, 3, 1, 1, 16, 16), "cpu", torch.float32)
    given = {"log_decay" if name == "g" else name: x for name, x in given.items()}
    for name in given:
        for other, found in (
            (given[name].numpy(), "expected an? (array|tensor) of (NumPy|PyTorch), got (nda|Ten)"),
            (given[name].to("meta"), "expected a tensor o.*, got one on meta"),
            (given[name].to_sparse(), "expected a dense tensor of real numbers, got one of torch."),
        ):
            with pytest.raises((TypeError, ValueError), match=rf"\w+: {found}"):
                rule.gated_delta_rule(**given | {name: other})
        wanting = given | {name: given[name].clone().requires_grad_()}
        with pytest.raises(RuntimeError, match=rf"{name}: expected no gradient"):
            rule.gated_delta_rule(**wanting)


def test_no_slots():
    """Pools without slots: all sequences are skipped."""
    x, none = torch.ones(2, 8), torch.zeros(0, 8, 3)
    y = causal_conv1d.causal_conv1d_update(
        x, none, torch.ones(8, 4), conv_state_indices=torch.arange(2)
    )
    assert not y.any()


ON_STATES = [
    lambda x, states: fla.chunk_gated_delta_rule(x, x, x, x, x, initial_state=states),
    lambda x, states: fla.fused_recurrent_gated_delta_rule(x, x, x, x, initial_state=states),
    lambda x, states: fla.chunk_kda(x, x, x, x, x, initial_state=states),
    lambda x, states: fla.fused_recurrent_kda(x, x, x, x, x, initial_state=states),
    lambda x, states: flashinfer.gated_delta_rule_decode(x, x, x, states, x, x, x, x),
    lambda x, states: flashinfer.gated_delta_rule_decode_pretranspose(x, x, x, states, x, x, x, x),
    lambda x, states: flashinfer.gated_delta_rule_decode_pretranspose(
        x, x, x, None, x, x, x, x, initial_state=states
    ),
    lambda x, states: flashinfer.gated_delta_rule_mtp(x, x, x, states, x, x, x, x, x),
    lambda x, states: flashinfer.chunk_gated_delta_rule(x, x, x, initial_state=states),
    lambda x, states: flashinfer.chunk_gated_delta_rule(x, x, x, output_state=states),
    lambda x, states: vllm.fused_gdn_decode_post_conv_mtp(
        *[x] * 8, states, *[x] * 3, 1.0, 1e-6, "silu"
    ),
    lambda x, states: vllm.fused_recurrent_gated_delta_rule_packed_decode(
        *[x] * 5, 1.0, states, x, x
    ),
    lambda x, states: vllm.fused_sigmoid_gating_delta_rule_update(*[x] * 7, initial_state=states),
]


@pytest.mark.parametrize("call", ON_STATES)
@pytest.mark.parametrize("form", ["a plane", "a pool"])
def test_pools_of_gdn_are_refused(call, form, built_runtime):
    """States in planes and pending tokens are more than the array that these functions take."""
    sizes = {"num_key_heads": 1, "num_value_heads": 1, "key_dim": 16, "value_dim": 16}
    kinds = {"state_dtype": "i8x2", "pending_tokens": 4, "deferred_writes": True}
    pool = StatePool(devices._runtime[0].device(), StatePoolShape(1, 2, **sizes, **kinds))
    states = torch.from_numpy(pool.state(0)) if form == "a plane" else pool.layer_states(0)
    found = "uint8, as planes" if form == "a plane" else "states of i8x2 with deferred writes of 4"
    with pytest.raises(ValueError, match=rf"\w+: \w*state: expected an array of .* got {found}"):
        call(torch.ones(2, 8), states)
    assert not pool.state(0).any()


def test_gradients_are_refused():
    x = torch.ones(2, 8, requires_grad=True)
    with pytest.raises(RuntimeError, match="causal_conv1d_update: x: expected no gradient"):
        causal_conv1d.causal_conv1d_update(x, torch.ones(2, 8, 3), torch.ones(8, 4))


def test_heads_of_any_size():
    """Heads that are no multiple of 8: states are copied, padded, and copied back."""
    pool = torch.zeros(3, 1, 1, 1)
    out = torch.empty(1, 1, 1, 1)
    one = torch.ones(1, 1)
    vllm.fused_recurrent_gated_delta_rule_packed_decode(
        torch.ones(1, 3), 0 * one, 0.5 * one, one[0], one[0], 1.0, pool, out, torch.tensor([2])
    )
    strength = float(torch.tensor(0.5).sigmoid())
    assert out.item() == pytest.approx(strength, rel=1e-6)
    assert pool.flatten().tolist() == pytest.approx([0, 0, strength], rel=1e-6)


def test_indices_behind_the_sequences():
    """An engine's buffer of slots is longer than a batch; it must not be shorter."""
    x, weight, starts = torch.ones(8, 3), torch.ones(8, 4), torch.tensor([0, 1, 3])
    slots = torch.tensor([2, 1, 3, 3])
    y = [
        vllm.causal_conv1d_fn(x, weight, None, torch.zeros(4, 8, 3), starts, given)
        for given in (slots, slots[:2])
    ]
    assert torch.equal(*y)
    with pytest.raises(ValueError, match="cache_indices: expected at least 2 elements, got"):
        vllm.causal_conv1d_fn(x, weight, None, torch.zeros(4, 8, 3), starts, slots[:1])


def test_where_an_update_goes():
    """Into its input, or into `out`."""
    x, weight, slots = torch.ones(2, 8), torch.ones(8, 4), torch.tensor([1, 2])
    made = []
    for out in (None, torch.zeros(2, 8)):
        given = x.clone()
        y = vllm.causal_conv1d_update(
            given, torch.zeros(3, 8, 3), 2 * weight, conv_state_indices=slots, out=out
        )
        assert y is (given if out is None else out)
        assert torch.equal(given, x) == (out is not None)
        made.append(y)
    assert torch.equal(*made)


def test_an_older_name_of_the_order_of_states():
    given = ops_check.draw((1, 3, 1, 1, 16, 16), "cpu", torch.float32)
    states = torch.zeros(1, 1, 16, 16)
    options = {"initial_state": states, "output_final_state": True}
    with pytest.warns(DeprecationWarning, match="older name of state_v_first"):
        older = fla.chunk_gated_delta_rule(**given, **options, transpose_state_layout=True)
    newer = fla.chunk_gated_delta_rule(**given, **options, state_v_first=True)
    assert torch.equal(older[1], newer[1]) and not torch.equal(newer[1], newer[1].mT)
    with pytest.raises(ValueError, match="transpose_state_layout: expected None"):
        fla.chunk_gated_delta_rule(**given, state_v_first=True, transpose_state_layout=True)


def test_arguments_in_the_order_of_fla():
    """Behind beta: its calls may have them without names."""
    given = ops_check.draw((1, 3, 1, 1, 16, 16), "cpu", torch.float32)
    starts, states = torch.tensor([0, 2, 3]), torch.randn(2, 1, 16, 16)
    places = (None, states, True, True, True, True, True, starts, starts)
    names = ("scale", "initial_state", "output_final_state", "use_qk_l2norm_in_kernel")
    names += ("use_beta_sigmoid_in_kernel", "allow_neg_eigval", "state_v_first", "cu_seqlens")
    wanted = fla.chunk_gated_delta_rule(**given, **dict(zip(names, places, strict=False)))
    found = fla.chunk_gated_delta_rule(*given.values(), *places)
    assert all(map(torch.equal, found, wanted))
    with pytest.raises(ValueError, match="chunk_gated_delta_rule: cp_context: not supported"):
        fla.chunk_gated_delta_rule(*given.values(), *places, None, 3)
    with pytest.raises(ValueError, match="chunk_kda: cp_context: not supported"):
        fla.chunk_kda(
            *given.values(), *places[:4], *[False] * 4, None, *[False] * 3, *[None] * 2, 3
        )


def test_types_that_differ():
    """The widest is computed in, and the output is of the type of v."""
    given = ops_check.draw((1, 3, 1, 1, 16, 16), "cpu", torch.float32)
    narrow = given | {"v": given["v"].half()}
    out, _ = fla.fused_recurrent_gated_delta_rule(**narrow)
    wide = given | {"v": given["v"].half().float()}
    wanted, _ = fla.fused_recurrent_gated_delta_rule(**wide)
    assert out.dtype == torch.float16 and torch.equal(out, wanted.half())


STATES = {"none": None, "by keys": False, "by values": True}


@pytest.mark.parametrize("tokens", [1, 70])
@pytest.mark.parametrize("order", STATES)
def test_calls_whose_arguments_were_checked(tokens, order, monkeypatch):
    """The second call of its kind is not checked again; it gives the bits of one that is."""
    function = fla.fused_recurrent_gated_delta_rule
    v_first = bool(STATES[order])

    def arguments(seed, dtype=torch.bfloat16):
        given = ops_check.draw((2, tokens, 1, 2, 24, 24), "cpu", dtype, seed=seed)
        if STATES[order] is not None:
            generator = torch.Generator().manual_seed(seed)
            given["initial_state"] = torch.randn(2, 2, 24, 24, generator=generator)
        options = {"output_final_state": True, "use_qk_l2norm_in_kernel": True}
        return given | options | {"state_v_first": v_first}

    def checked(given):
        monkeypatch.setattr(rule_plan, "_plans", threading.local())
        return function(**given)

    first, second = arguments(1), arguments(2)
    wanted = checked(second)
    checked(first)
    before = {name: x.clone() for name, x in second.items() if isinstance(x, torch.Tensor)}
    with monkeypatch.context() as without:
        without.delattr(rule, "_RuleCall")
        found = function(**second)
        assert all(torch.equal(*pair) for pair in zip(found, wanted, strict=True))
        assert [x.shape for x in found] == [x.shape for x in wanted]
        assert all(torch.equal(second[name], x) for name, x in before.items())
        # Another type, other strides, and another option are other kinds.
        strided = torch.empty(2, tokens, 1, 48, dtype=torch.bfloat16)[..., ::2]
        for change in (
            {"v": second["v"].float()},
            {"q": strided},
            {"scale": 0.5},
            {"beta": second["beta"][:1]},
        ):
            with pytest.raises(NameError, match="_RuleCall"):
                function(**second | change)
    with pytest.raises(ValueError, match="beta: expected the shape"):
        function(**second | {"beta": second["beta"][:1]})


def test_where_operators_are_looked_at():
    """A call is an operator of PyTorch where a mode or autograd sees it."""
    given = ops_check.draw((1, 1, 1, 1, 16, 16), "cpu", torch.float32)
    with ops_tracing_check.Operators() as seen:
        fla.fused_recurrent_gated_delta_rule(**given)
    assert [call[0].name() for call in seen.found] == ["gdn::gated_delta_rule"]
    given["v"].requires_grad_()
    out, _ = fla.fused_recurrent_gated_delta_rule(**given)
    assert out.requires_grad
    with torch.no_grad():
        out, _ = fla.fused_recurrent_gated_delta_rule(**given)
    assert not out.requires_grad


@pytest.mark.parametrize("starts", [[0, 5, 3, 9], [0, 10], [-1, 9]])
def test_chunks_of_starts_that_are_out_of_order(starts):
    given = ops_check.draw((1, 9, 1, 1, 16, 16), "cpu", torch.float32)
    given |= {"g": given["g"][..., None].expand(1, 9, 1, 16), "cu_seqlens": torch.tensor(starts)}
    for more in ({}, {"return_intermediate_states": True}):
        with pytest.raises(ValueError, match="cu_seqlens: expected element"):
            fla.chunk_kda(**given, **more)


@pytest.mark.parametrize("name", ["gated_delta_step", "gated_delta_prefill", "gated_delta_verify"])
def test_operators_with_channels_of_any_size(name):
    """Heads that no kernel has are widened, and the gates of channels with them."""
    heads, size, starts = (2, 4), 20, [0, 1, 2] if name == "gated_delta_step" else [0, 3, 5]
    generator, bound = torch.Generator().manual_seed(1), -5.0
    widths = {"q": (heads[0], size), "k": (heads[0], size), "v": (heads[1], size)}
    widths |= {"a": (heads[1], size), "b": heads[1:]}
    q, k, v, a, b = (
        torch.randn(starts[-1], *width, generator=generator) for width in widths.values()
    )
    rate, bias = torch.rand(heads[1], generator=generator), torch.randn(heads[1], size)
    pool = torch.randn(3, heads[1], size, size, generator=generator)
    decay = bound * (rate.exp()[:, None] * (a + bias)).sigmoid()
    unit = [torch.nn.functional.normalize(x.double(), dim=-1, eps=1e-6) for x in (q, k)]
    given = {"q": unit[0], "k": unit[1], "v": v, "g": decay, "beta": b.sigmoid()}
    given = {key: x[None] for key, x in given.items()}
    want, states = recurrence(given, starts, pool[[2, 0]].mT, size**-0.5)
    operator, out = getattr(torch.ops.gdn, name), torch.empty_like(v)
    slots, cu_seqlens = torch.tensor([2, 0]), torch.tensor(starts)
    inputs, kept, last = (q, k, v, a, b, rate, bias, pool), pool, [2, 0]
    if name == "gated_delta_step":
        operator(*inputs, slots, None, out, None, True, -1, decay_bound=bound)
    elif name == "gated_delta_prefill":
        operator(*inputs, slots, slots, cu_seqlens, out, None, True, bound)
    else:
        kept, last = torch.zeros(6, *pool.shape[1:]), [2, 4]
        places = slots, cu_seqlens, kept, torch.arange(6).view(2, 3)
        operator(*inputs, *places, out, None, True, -1, bound)
    assert error_of(out, want[0]) < 2e-5 and error_of(kept[last].mT, states) < 2e-5
