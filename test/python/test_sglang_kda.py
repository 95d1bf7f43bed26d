# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The plugin of SGLang for Kimi Delta Attention: whose kernels a dispatcher gets, and the kernels
on SGLang's pools against float64, with tensors of the CPU. SGLang itself is stood in for by what
the plugin asks of it, and by files of its wheel where they are on the path."""

import enum

import numpy as np
import pytest
from channel_cases import BOUND, HV, D, H, draw, expected, ready, recurrence
from rule_cases import error_of
from sglang_cases import (
    SLOTS,
    Backend,
    Fallback,
    Ours,
    classes_of,
    dispatcher_of,
    folder_of_sglang,
    integers,
    kernels_of,
    options,
    set_options,
)

from gdn.integrations.sglang.dispatcher import make_kda_dispatcher


class Dispatcher:
    """As SGLang's: an error for what it does not know."""

    def __init__(self, decode, prefill, verify):
        if Backend.CUSTOM in (decode, prefill, verify):
            raise ValueError("unsupported")
        self.triton_kernel = self.verify_kernel = "triton"
        self.decode_kernel = self.extend_kernel = "theirs"
        self.supports_packed_decode = self.supports_packed_decode_safe_gate = False
        self.prefill_backend = prefill


dispatcher = dispatcher_of(Dispatcher, make_kda_dispatcher, ("kda_kernel", "KdaKernel"))


def test_dispatcher_with_our_kernels(monkeypatch):
    """SGLang asks for Triton's verify where no backend of it is named."""
    backends = Backend.CUSTOM, Backend.CUSTOM, Backend.TRITON
    made = dispatcher(monkeypatch, options("gdn"), *backends)
    kernel = made.decode_kernel
    assert isinstance(kernel, Ours) and kernel is made.extend_kernel is made.verify_kernel
    assert kernel.fallback == "triton"
    assert made.supports_packed_decode and made.supports_packed_decode_safe_gate


def test_dispatcher_with_one_phase(monkeypatch):
    given = options(decode="flashinfer", prefill="gdn")
    made = dispatcher(monkeypatch, given, Backend.FLASHINFER, Backend.CUSTOM, Backend.FLASHINFER)
    assert isinstance(made.extend_kernel, Ours) and made.decode_kernel == "theirs"
    assert made.prefill_backend == Backend.TRITON and not made.supports_packed_decode
    assert made.verify_kernel == "triton"
    backends = Backend.CUSTOM, Backend.FLASHINFER, Backend.TRITON
    made = dispatcher(monkeypatch, options(decode="gdn", verify="triton"), *backends)
    assert isinstance(made.decode_kernel, Ours) and made.extend_kernel == "theirs"
    assert made.prefill_backend == Backend.FLASHINFER and made.verify_kernel == "triton"
    backends = Backend.TRITON, Backend.TRITON, Backend.CUSTOM
    made = dispatcher(monkeypatch, options(verify="gdn"), *backends)
    assert isinstance(made.verify_kernel, Ours)
    assert made.decode_kernel == made.extend_kernel == "theirs"


def test_what_the_dispatcher_refuses(monkeypatch):
    backends = Backend.CUSTOM, Backend.CUSTOM, Backend.TRITON
    made = dispatcher(monkeypatch, options(), *[Backend.TRITON] * 3)
    assert made.decode_kernel == made.extend_kernel == "theirs"
    with pytest.raises(ValueError, match="unsupported"):
        dispatcher(monkeypatch, options("other"), *backends)
    for name in ("gdn_deferred", "gdn_i8x2"):
        for given in (options(name), options("gdn", verify=name)):
            with pytest.raises(ValueError, match=rf"expected gdn with Kimi Delta.*, got {name}"):
                dispatcher(monkeypatch, given, *backends)
    with pytest.raises(ValueError, match="expected triton with --enable-deterministic-inference"):
        dispatcher(monkeypatch, options("gdn"), *backends, deterministic=True)


@pytest.fixture
def kernel(monkeypatch, build_dir, compiler_on_path):
    yield from kernels_of(monkeypatch, build_dir, "KdaKernel", "kernel", "kda_kernel")


class Case:
    """Tokens of a layer as SGLang hands them over, and its pool of states."""

    def __init__(self, rows, bound=None, pitch=HV * D * D, io="float32"):
        import torch

        rng = np.random.default_rng(1)
        dtype = getattr(torch, io)
        self.given, self.bound = draw(rng, rows), bound
        for name in ("q", "k", "v", "a", "b"):
            tensor = torch.tensor(self.given[name]).to(dtype)
            self.given[name] = tensor.float().numpy()
            setattr(self, name, tensor)
        rate, bias = (torch.tensor(self.given[name]) for name in ("A_log", "dt_bias"))
        # Parameters of a model, which nobody has frozen, in the shapes that it has.
        shapes = {"A_log": rate.reshape(1, 1, HV, 1), "dt_bias": bias.reshape(-1)}
        self.constants = {name: torch.nn.Parameter(x) for name, x in shapes.items()}
        self.constants["lower_bound"] = bound
        self.before = rng.standard_normal((SLOTS, HV, D, D)).astype(np.float32)
        self.before[8] = 0
        # Slots of a pool whose envelopes have other things, too.
        self.memory = torch.full((SLOTS * pitch,), -7.0)
        self.states = self.memory.as_strided((SLOTS, HV, D, D), (pitch, D * D, D, 1))
        self.states.copy_(torch.tensor(self.before))

    @property
    def mixed(self):
        import torch

        return torch.cat([x.flatten(1) for x in (self.q, self.k, self.v)], 1)

    def check(self, out, starts, slots, most=2e-5):
        """The output and all states, against float64."""
        want, after = expected(self.given, self.before, starts, slots, self.bound)
        assert error_of(out[0].float().numpy(), want) < most
        assert error_of(self.states.numpy(), after) < 2e-5


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("bound", [None, BOUND])
@pytest.mark.parametrize("pitch", [HV * D * D, HV * D * D + 24])
def test_decode(kernel, packed, bound, pitch):
    """A slot of padding, whose inputs are NaN, and one with no state yet."""
    case, slots = Case(4, bound, pitch), [4, -1, 0, 8]
    case.given["v"][1] = case.v[1] = np.nan
    places = {"ssm_states": case.states, "cache_indices": integers(slots)}
    a, b = case.a.flatten(1), case.b[None]
    if packed:
        sizes = {"scale": D**-0.5, "num_v_heads": HV, "head_v_dim": D, "replayssm_d": None}
        out = kernel.packed_decode(case.mixed, a, b, **case.constants, **places, **sizes)
    else:
        rows = [x[None] for x in (case.q, case.k, case.v)]
        starts = {"query_start_loc": integers(range(5))}
        out = kernel.decode(*rows, a, b, **case.constants, **places, **starts)
    assert out.shape == (1, 4, HV, D) and not out[0, 1].any()
    case.given["v"][1] = 0
    case.check(out, range(5), slots)
    assert not kernel._fallback.calls
    if pitch > HV * D * D:
        between = case.memory.reshape(SLOTS, pitch)[:, HV * D * D :]
        assert between.eq(-7).all()


@pytest.mark.parametrize("bound", [None, BOUND])
def test_gates_of_another_type(kernel, bound):
    """Strengths in f32 beside bf16: gates are made ahead of the kernel."""
    case, slots = Case(3, bound, io="bfloat16"), [1, 8, 5]
    places = {"ssm_states": case.states, "cache_indices": integers(slots)}
    sizes = {"scale": D**-0.5, "num_v_heads": HV, "head_v_dim": D}
    b = case.b.float()
    out = kernel.packed_decode(case.mixed, case.a, b, **case.constants, **places, **sizes)
    case.check(out, range(4), slots, 4e-3)
    assert not kernel._fallback.calls


def extend(kernel, case, starts, slots, gates="raw", **more):
    import torch

    if gates == "raw":
        a, b = case.a, case.b
        more |= case.constants | {"beta_is_raw": True}
    else:
        made = ready(case.given, case.bound)
        a, b = (torch.tensor(made[name]).float() for name in ("log_decay", "beta"))
        if gates == "strengths":
            a, more = case.a, more | case.constants
    return kernel.extend(
        *(x[None] for x in (case.q, case.k, case.v, a, b)),
        ssm_states=case.states,
        cache_indices=integers(slots),
        query_start_loc=integers(starts),
        is_spec_decode=False,
        **more,
    )


@pytest.mark.parametrize("gates", ["raw", "strengths", "ready"])
@pytest.mark.parametrize("bound", [None, BOUND])
@pytest.mark.parametrize("pitch", [HV * D * D, HV * D * D + 24])
def test_extend(kernel, gates, bound, pitch):
    """Ragged sequences: one that is empty, one without a state yet, one of padding, and tokens of
    none behind them."""
    case, starts, slots = Case(83, bound, pitch), [0, 70, 70, 77, 80], [4, 2, 8, -1]
    # SGLang has more slots than sequences where a batch is padded.
    out = extend(kernel, case, starts, [*slots, -1], gates)
    assert out.shape == (1, 83, HV, D) and not out[0, 77:].any()
    case.check(out, starts, slots)
    assert not kernel._fallback.calls


def test_extend_without_tokens(kernel):
    case = Case(0)
    out = extend(kernel, case, [0, 0], [3])
    assert out.shape == (1, 0, HV, D) and error_of(case.states.numpy(), case.before) == 0


@pytest.mark.parametrize("gates", ["raw", "strengths", "ready"])
@pytest.mark.parametrize("slots", [[4, 2, 0, 8, 3, -1], [-1, 4, 2, 0, 8, 3]])
def test_tracked_states(kernel, slots, gates):
    """States before chunk 2 of a sequence, before the first and the last one of others, and none;
    a sequence without tokens, padding in front or behind, and tokens of none."""
    import torch

    lengths, chunks = [130, 0, 70, 66, 9], [2, -1, 0, 1, -1]
    lengths, chunks = (
        ([3, *lengths], [-1, *chunks]) if slots[0] < 0 else ([*lengths, 3], [*chunks, -1])
    )
    starts = np.cumsum([0, *lengths])
    case, track = Case(280, BOUND), torch.full((7, HV, D, D), -7.0)
    more = {"track_state": track, "track_chunk_idx": integers([*chunks, -1])}
    more["return_intermediate_states"] = True
    # SGLang has more slots than sequences where a batch is padded.
    out, inside = extend(kernel, case, starts, [*slots, -1], gates, **more)
    assert inside is None and not kernel._fallback.calls and not out[0, 278:].any()
    case.check(out, starts, slots)
    assert track[6].eq(-7).all()
    for n, chunk in enumerate(chunks):
        if slots[n] < 0 or chunk < 0:
            continue
        state, tokens = (
            case.before[slots[n]].astype(float),
            range(starts[n], starts[n] + 64 * chunk),
        )
        steps = [state, *(after for _, after in recurrence(case.given, tokens, state, BOUND))]
        assert error_of(track[n].numpy(), steps[-1]) < 2e-5


def test_tracked_states_of_16_bits(kernel):
    """Kept states go from the type of the pool to the one that SGLang wants."""
    import torch

    case, track = Case(70, io="bfloat16"), torch.zeros(1, HV, D, D)
    case.states = case.states.to(torch.bfloat16)
    case.before[3] = case.states[3].float().numpy()
    extend(kernel, case, [0, 70], [3], track_state=track, track_chunk_idx=integers([1]))
    state = case.before[3].astype(float)
    _, want = list(recurrence(case.given, range(64), state, None))[-1]
    assert not kernel._fallback.calls and error_of(track[0].numpy(), want) < 4e-3
    assert track.equal(track.to(torch.bfloat16).float())


def test_errors_leave_tracked_states(kernel, monkeypatch):
    """Nothing is launched where there is no memory for the second launch, or an argument is
    wrong."""
    import torch

    from gdn.integrations.sglang import tracked

    case, track = Case(70), torch.full((1, HV, D, D), -7.0)
    more = {"track_state": track, "track_chunk_idx": integers([1])}
    with pytest.raises(ValueError, match="cu_seqlens"):
        extend(kernel, case, [0, 71], [3], **more)

    def fail(*_arguments, **_more):
        raise torch.OutOfMemoryError

    with monkeypatch.context() as patch:
        patch.setattr(tracked.torch, "empty_like", fail)
        with pytest.raises(torch.OutOfMemoryError):
            extend(kernel, case, [0, 70], [3], **more)
    assert track.eq(-7).all() and error_of(case.states.numpy(), case.before) == 0


def test_aligned_states_are_tracked(kernel):
    """SGLang reads the last state alone."""
    case, starts = Case(64), [0, 64]
    more = {"return_intermediate_states": True, "track_ssm_h_src": integers([])}
    out, inside = extend(kernel, case, starts, [3], **more)
    assert inside is None and not kernel._fallback.calls
    case.check(out, starts, [3])


def test_what_goes_to_sglang(kernel, caplog):
    """Buffered states, drafts, states between chunks, types, sizes and bounds without a kernel;
    each reason is logged once."""
    case, fallback = Case(2), kernel._fallback
    fallback.found = "theirs"
    places = {"ssm_states": case.states, "cache_indices": integers([1, 2])}
    sizes = {"scale": D**-0.5, "num_v_heads": HV, "head_v_dim": D}
    for _ in range(2):
        kernel.packed_decode(
            case.mixed, case.a, case.b, **case.constants, **places, **sizes, replayssm_d=case.q
        )
    starts = {"query_start_loc": integers(range(3))}
    rows = [x[None] for x in (case.q, case.k, case.v)]
    wide = places | starts | {"ssm_states": case.states.double()}
    kernel.decode(*rows, case.a, case.b, **case.constants, **wide)
    case.constants["lower_bound"] = -6.0
    found = kernel.decode(*rows, case.a, case.b, **case.constants, **places, **starts)
    assert found == "theirs" and fallback.calls[-1][1]["lower_bound"] == -6
    assert extend(kernel, case, [0, 2], [1], return_intermediate_states=True) == "theirs"
    raw = case.constants | places | {"beta_is_raw": True, "query_start_loc": integers([0, 2])}
    gates = case.a[None], case.b[None]
    kernel.extend(*rows, *gates, **raw, is_spec_decode=True)
    names = ["packed_decode"] * 2 + ["decode"] * 2 + ["extend"] * 2
    assert [name for name, _ in fallback.calls] == names
    assert fallback.calls[5][1] == raw | {"is_spec_decode": True}
    found = [
        record.getMessage().removeprefix("SGLang's own kernel runs for ")
        for record in caplog.records
    ]
    assert found[0] == "packed_decode: states are buffered (--enable-linear-replayssm)"
    assert "float64" in found[1] and "gate_lower_bound" in found[2]
    assert found[3] == "extend: states between chunks are returned"
    assert found[4] == "extend: tokens are those of a draft"
    assert len(found) == 5 and error_of(case.states.numpy(), case.before) == 0


STEPS = 3


def verify(kernel, case, starts, slots, rows, buffer, **more):
    """As SGLang's dispatcher calls it, with raw gates as they lie in rows of projections."""
    return kernel.target_verify(
        **case.constants,
        **{name: getattr(case, name)[None] for name in ("q", "k", "v")},
        **{"a": case.a.flatten(1), "b": case.b[None], "ssm_states": case.states},
        cache_indices=integers(slots),
        query_start_loc=integers(starts),
        intermediate_states_buffer=buffer,
        intermediate_state_indices=rows,
        cache_steps=STEPS,
        **{"retrieve_parent_token": None} | more,
    )


@pytest.mark.parametrize("bound", [None, BOUND])
@pytest.mark.parametrize("io", ["float32", "bfloat16"])
@pytest.mark.parametrize("pitch", [HV * D * D, HV * D * D + 24])
def test_target_verify(kernel, bound, io, pitch):
    """Drafts of several lengths, one of padding and tokens of none; some are accepted, whose states
    the next drafts begin with."""
    import torch

    slots, rows, starts = [4, 7, -1, 8], integers([1, 0, 4, 3, 2]), [0, 3, 5, 8, 9]
    accepted, case = {0: 2, 1: 1, 3: 1}, Case(11, bound, pitch, io)
    states = {n: case.before[slots[n]].astype(float) for n in accepted}
    for _ in range(2):
        buffer, pool = torch.full((5, STEPS, HV, D, D), -7.0), case.states.clone()
        out = verify(kernel, case, starts, [*slots, -1], rows, buffer)
        assert out.shape == (1, 11, HV, D) and torch.equal(case.states, pool)
        assert not out[0, 5:8].any() and not out[0, 9:].any()
        for n, count in accepted.items():
            tokens = range(starts[n], starts[n + 1])
            steps = list(recurrence(case.given, tokens, states[n], bound))
            want, kept = (np.stack(x) for x in zip(*steps, strict=True))
            found = buffer[rows[n]]
            assert error_of(out[0, tokens].float().numpy(), want) < (
                2e-5 if io == "float32" else 4e-3
            )
            assert error_of(found[: len(tokens)].numpy(), kept) < 2e-5
            assert found[len(tokens) :].eq(-7).all()
            # SGLang's commit.
            case.states[slots[n]], states[n] = found[count - 1], kept[count - 1]
        assert buffer[[4, 2]].eq(-7).all()
    assert not kernel._fallback.calls


def test_drafts_that_go_to_sglang(kernel, caplog):
    import torch

    kernel._fallback.found, case = "theirs", Case(3)
    buffer = torch.zeros(2, STEPS, HV, D, 2 * D)
    given = {
        "drafts are trees": {"retrieve_parent_token": integers([0])},
        "states are buffered (--enable-linear-replayssm-spec)": {"buffer": None},
        "the buffer of states has gaps": {"buffer": buffer[..., :D]},
        "the buffer of states is of torch.bfloat16, and states of torch.float32": {
            "buffer": torch.zeros(2, STEPS, HV, D, D, dtype=torch.bfloat16)
        },
    }
    for more in given.values():
        more = {"buffer": torch.zeros(2, STEPS, HV, D, D)} | more
        rows = integers([0])
        assert verify(kernel, case, [0, 3], [1], rows, more.pop("buffer"), **more) == "theirs"
    case.constants["lower_bound"] = -6.0
    buffer = torch.zeros(2, STEPS, HV, D, D)
    assert verify(kernel, case, [0, 3], [1], integers([0]), buffer) == "theirs"
    assert [name for name, _ in kernel._fallback.calls] == ["target_verify"] * 5
    found = [record.getMessage().partition("target_verify: ")[2] for record in caplog.records]
    assert found[:4] == list(given) and "gate_lower_bound" in found[4]
    assert error_of(case.states.numpy(), case.before) == 0


def test_heads_of_two_sizes(kernel):
    """They have no kernel with a decay of each channel."""
    import torch

    kernel._fallback.found = "theirs"
    q, v = torch.zeros(1, 2, H, D), torch.zeros(1, 2, HV, 8)
    gates = torch.zeros(2, HV * D), torch.zeros(1, 2, HV)
    given = {"A_log": torch.zeros(HV), "dt_bias": torch.zeros(HV * D)}
    given |= {"ssm_states": torch.zeros(3, HV, 8, D), "cache_indices": integers([0, 1])}
    assert kernel.decode(q, q, v, *gates, **given, query_start_loc=None) == "theirs"
    (reason,) = kernel.reasons
    assert "expected heads of 16" in reason


def test_file_of_sglang(monkeypatch, kernel):
    """The dispatcher of the wheel with our kernel in place, where its folder is on the path."""
    import torch

    folder = folder_of_sglang() / "sglang/srt/layers/attention/linear"
    given = {"Enum": enum.Enum}
    (backend,) = classes_of(folder / "utils.py", ["LinearAttnKernelBackend"], given)

    class Triton(Fallback):
        supports_packed_decode = True

    given |= {"TritonKDAKernel": Triton, "is_cuda": lambda: False, "rank0_log": print}
    (cls,) = classes_of(folder / "kda_backend.py", ["KDAKernelDispatcher"], given)
    set_options(monkeypatch, options("gdn"))
    made, custom = cls.__new__(cls), backend("gdn")
    with pytest.raises(ValueError, match="Unsupported KDA decode backend"):
        cls.__init__(made, custom, custom, backend.TRITON)
    make_kda_dispatcher(cls.__init__, made, custom, custom, backend.TRITON)
    assert type(made.decode_kernel).__name__ == "KdaKernel" and made.supports_packed_decode
    assert made.supports_packed_decode_safe_gate and made.verify_kernel is made.decode_kernel
    assert made.effective_extend_kernel(BOUND, 2, 1) is made.extend_kernel is made.decode_kernel
    assert made.extend_kernel.supports_track_state_snapshot
    case, slots = Case(2, BOUND), [4, 7]
    out = made.packed_decode(
        case.mixed, case.a.flatten(1), case.b[None], **case.constants, scale=D**-0.5,
        ssm_states=case.states, cache_indices=integers(slots), num_v_heads=HV, head_v_dim=D,
        replayssm_d=None, replayssm_write_pos=None,
    )  # fmt: skip
    case.check(out, range(3), slots)
    out = extend(made, case, [0, 2], [5])
    assert out.shape == (1, 2, HV, D)
    out = verify(made, case, [0, 2], [5], integers([1]), torch.zeros(2, STEPS, HV, D, D))
    assert out.shape == (1, 2, HV, D) and not made.triton_kernel.calls
