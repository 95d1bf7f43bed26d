# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The plugin of SGLang: what it registers, whose kernels a dispatcher gets, and the kernels on
SGLang's pools against float64, with tensors of the CPU. SGLang itself is stood in for by what the
plugin asks of it, and by files of its wheel where they are on the path."""

import ast
import enum
import inspect
import sys
import types
from pathlib import Path
from typing import Annotated, Optional

import numpy as np
import pytest
import rule_cases
from rule_cases import DK, DV, HV, error_of
from sglang_cases import (
    Backend,
    Case,
    Ours,
    add_modules,
    classes_of,
    dispatcher_of,
    folder_of_sglang,
    integers,
    kernels_of,
    options,
    set_options,
    tensors,
)

from gdn import Runtime, devices
from gdn.integrations import sglang as plugin
from gdn.integrations.sglang import hooks
from gdn.integrations.sglang.backends import (
    BACKENDS,
    check_options,
    chosen_name,
    chosen_phases,
    form_of,
)
from gdn.integrations.sglang.dispatcher import make_dispatcher


@pytest.mark.parametrize(
    "given, phases",
    [
        (options(), set()),
        (options("gdn"), {"decode", "prefill", "verify"}),
        (options("gdn", verify="triton"), {"decode", "prefill"}),
        (options("gdn", decode="flashinfer"), {"prefill"}),
        (options(decode="gdn"), {"decode", "verify"}),
        (options(prefill="gdn"), {"prefill"}),
        (options("gdn_deferred"), {"decode", "prefill", "verify"}),
    ],
)
def test_chosen_phases(given, phases):
    assert chosen_phases(given) == phases


def test_backends_that_keep_more_in_a_slot():
    """Decode and prefill have the same one; the type of states and the tokens that stay pending
    are SGLang's options."""
    window = {"linear_replayssm_cache_len": 8}
    assert chosen_name(options("gdn")) is chosen_name(options(decode="gdn")) is None
    given = options(decode="gdn_i8_deferred", prefill="gdn_i8_deferred", **window)
    assert chosen_name(given) == "gdn_i8_deferred"
    found = form_of("gdn_i8_deferred", "float32", given)
    assert found == ("i8", 8) and found.pending == "float16"
    assert form_of("gdn_i8x2", "bfloat16", given) == ("i8x2", 0)
    found = form_of("gdn_deferred", "bfloat16", given)
    assert found == ("bfloat16", 8) and found.pending == "float32"
    for other in ("triton", "gdn", "gdn_i8x2"):
        with pytest.raises(ValueError, match=f"expected the same .* got gdn_deferred and {other}"):
            chosen_name(options("gdn_deferred", prefill=other))
    with pytest.raises(
        ValueError, match=r"-cache-len: expected 2 to 32 with .* gdn_deferred, got 6"
    ):
        form_of("gdn_deferred", "float32", options(linear_replayssm_cache_len=64))


@pytest.mark.parametrize(
    "name, option, value, message",
    [
        ("gdn_deferred", "speculative_algorithm", "EAGLE", "--speculative-algorithm: expected no"),
        ("gdn_deferred", "disaggregation_mode", "decode", "expected null with .* got decode"),
        ("gdn_i8x2", "enable_unified_memory", True, "--enable-unified-memory: expected False"),
        (
            "gdn_i8x2",
            "enable_mamba_extra_buffer",
            True,
            "-strategy: expected no_buffer with .*i8x2",
        ),
        ("gdn_deferred", "enable_mamba_extra_buffer", True, None),
        ("gdn_deferred", "enable_lmcache", None, None),
    ],
)
def test_options_beside_them(name, option, value, message):
    names = ("enable_unified_memory", "enable_page_major_kv_layout", "enable_int8_mamba_checkpoint")
    names += ("enable_unified_cache_external_linker", "enable_lmcache", "enable_mis")
    values = dict.fromkeys((*names, "enable_mamba_extra_buffer"), False)
    values |= {"speculative_algorithm": None, "disaggregation_mode": "null"}
    check_options(name, values)
    if message is None:
        return check_options(name, values | {option: value})
    with pytest.raises(ValueError, match=message):
        check_options(name, values | {option: value})


def register(patch):
    """What the plugin registers: names of backends, and hooks."""
    names, found = ["triton"], []
    registry = types.SimpleNamespace(register=lambda *hook: found.append(hook))
    members = {"LINEAR_ATTN_KERNEL_BACKEND_CHOICES": names}
    members["add_linear_attn_kernel_backend_choices"] = names.extend
    choices = types.SimpleNamespace(**members)
    kinds = types.SimpleNamespace(AROUND="around", BEFORE="before", AFTER="after")
    add_modules(
        patch,
        arg_groups={"choices": choices},
        plugins__hook_registry={"HookRegistry": registry, "HookType": kinds},
    )
    plugin.register()
    return names, found


def test_register(monkeypatch):
    names, found = register(monkeypatch)
    assert names == ["triton", *BACKENDS]
    target = "sglang.srt.layers.attention.linear.gdn_backend.GDNKernelDispatcher.__init__"
    assert found[0] == (target, make_dispatcher, "around")
    tracking = "sglang.srt.layers.attention.hybrid_linear_attn_backend.MambaAttnBackendBase"
    assert (f"{tracking}._track_mamba_state_decode", hooks.commit_tracked, "before") in found
    plugin.register()
    assert names == ["triton", *BACKENDS]


def test_register_behind_options(monkeypatch):
    """What SGLang has read of its options has a copy of the list for verify."""
    option = types.SimpleNamespace(choices=["triton", "nv_cutedsl"])
    hints = {"linear_attn_verify_backend": Annotated[str | None, "text", option]}
    add_modules(
        monkeypatch, server_args={"ServerArgs": type("ServerArgs", (), {"__annotations__": hints})}
    )
    for _ in range(2):
        register(monkeypatch)
        assert option.choices == ["triton", "nv_cutedsl", *BACKENDS]


def test_methods_of_sglang_that_have_hooks(monkeypatch):
    """They are in the files of the wheel, and take what hooks name."""
    folder = folder_of_sglang()
    for target, hook, kind in register(monkeypatch)[1]:
        module, cls, name = target.rsplit(".", 2)
        tree = ast.parse((folder / f"{module.replace('.', '/')}.py").read_text())
        (cls,) = (x for x in tree.body if isinstance(x, ast.ClassDef) and x.name == cls)
        (method,) = (x for x in cls.body if isinstance(x, ast.FunctionDef) and x.name == name)
        taken = [x.arg for x in (*method.args.args, *method.args.kwonlyargs)][1:]
        named = list(inspect.signature(hook).parameters.values())[1 if kind == "before" else 2 :]
        named = [x.name for x in named if x.kind == x.POSITIONAL_OR_KEYWORD]
        assert taken[: len(named)] == named, target


class Dispatcher:
    """As SGLang's: one kernel of Triton for all, and an error for what it does not know."""

    def __init__(self, decode, prefill, verify=None):
        if Backend.CUSTOM in (decode, prefill):
            raise ValueError("unsupported")
        self.tree_verify_kernel = self.decode_kernel = self.extend_kernel = "triton"
        self.verify_kernel = "triton"
        self.verify_kernel_is_flashinfer = decode == Backend.FLASHINFER
        self.supports_packed_decode = False
        self.seen = decode, prefill, verify


dispatcher = dispatcher_of(Dispatcher, make_dispatcher, ("kernel", "GdnKernel"))


def test_dispatcher_with_our_kernels(monkeypatch):
    made = dispatcher(monkeypatch, options("gdn"), Backend.CUSTOM, Backend.CUSTOM, Backend.TRITON)
    kernel = made.decode_kernel
    assert kernel is made.extend_kernel is made.verify_kernel
    assert kernel.fallback == made.tree_verify_kernel == "triton" and kernel.slots is None
    assert made.supports_packed_decode and not made.verify_kernel_is_flashinfer


def test_dispatcher_with_slots_that_keep_more(monkeypatch):
    backends = Backend.CUSTOM, Backend.CUSTOM, Backend.CUSTOM
    made = dispatcher(monkeypatch, options("gdn_deferred"), *backends)
    assert made.decode_kernel is made.extend_kernel and made.decode_kernel.slots == "gdn_deferred"
    with pytest.raises(ValueError, match="expected the same"):
        dispatcher(monkeypatch, options("triton", decode="gdn_deferred"), *backends)


def test_dispatcher_with_one_phase(monkeypatch):
    given = options(decode="flashinfer", prefill="gdn")
    made = dispatcher(monkeypatch, given, Backend.FLASHINFER, Backend.CUSTOM, Backend.FLASHINFER)
    assert isinstance(made.extend_kernel, Ours)
    assert made.decode_kernel == made.verify_kernel == "triton"
    assert made.seen == (Backend.FLASHINFER, Backend.TRITON, Backend.FLASHINFER)
    assert made.verify_kernel_is_flashinfer and not made.supports_packed_decode


def test_other_dispatchers_are_left_alone(monkeypatch):
    made = dispatcher(monkeypatch, options(), Backend.TRITON, Backend.FLASHINFER)
    assert made.decode_kernel == made.extend_kernel == "triton"
    with pytest.raises(ValueError, match="unsupported"):
        dispatcher(monkeypatch, options("other"), Backend.CUSTOM, Backend.CUSTOM)


def test_deterministic_inference_is_refused(monkeypatch):
    backends = Backend.CUSTOM, Backend.CUSTOM
    with pytest.raises(ValueError, match="expected triton with --enable-deterministic-inference"):
        dispatcher(monkeypatch, options("gdn"), *backends, deterministic=True)


def test_files_of_sglang(monkeypatch, build_dir, compiler_on_path):
    """The choice, the hook and the dispatcher of the wheel, where its folder is on the path."""
    torch = pytest.importorskip("torch")
    from gdn.bench.peers import sglang as peer

    for name in [name for name in sys.modules if name.partition(".")[0] == "sglang"]:
        monkeypatch.delitem(sys.modules, name)
    before = set(sys.modules)
    try:
        peer.make_importable()
    except ImportError as error:
        pytest.skip(str(error))
    monkeypatch.setattr(devices, "_runtime", [Runtime(build_dir / "lib/libgdnrt.so")])
    try:
        from sglang.srt.arg_groups import choices
        from sglang.srt.layers.attention.linear import kernels
        from sglang.srt.layers.attention.linear.kernels.gdn_triton import TritonGDNKernel
        from sglang.srt.plugins.hook_registry import HookRegistry

        folder = Path(kernels.__file__).parents[1]
        given = {"Enum": enum.Enum}
        (backend,) = classes_of(folder / "utils.py", ["LinearAttnKernelBackend"], given)
        given |= {"Optional": Optional, "torch": torch, "TritonGDNKernel": TritonGDNKernel}
        given |= {"rank0_log": print}
        (dispatcher,) = classes_of(folder / "gdn_backend.py", ["GDNKernelDispatcher"], given)
        module = "layers__attention__linear__gdn_backend"
        add_modules(monkeypatch, **{module: {"GDNKernelDispatcher": dispatcher}})
        set_options(monkeypatch, options("gdn"))
        plugin.register()
        assert "gdn" in choices.LINEAR_ATTN_KERNEL_BACKEND_CHOICES
        custom = backend("gdn")
        with pytest.raises(ValueError, match="Unsupported GDN decode backend"):
            dispatcher(custom, custom, backend.TRITON)
        HookRegistry.apply_hooks()
        made = dispatcher(custom, custom, backend.TRITON)
        assert type(made.decode_kernel).__name__ == "GdnKernel" and made.supports_packed_decode
        assert made.target_verify_supports_strided_qkv(None)
        assert not made.extend_uses_state_checkpoints
        assert made._get_target_verify_kernel(torch.zeros(1)) is made.tree_verify_kernel
        case, slots = Case(2), [4, 7]
        mixed = torch.cat([x.flatten(1) for x in (case.q, case.k, case.v)], 1)
        out = made.packed_decode(
            mixed, case.a, case.b, **case.constants, scale=DK**-0.5, ssm_states=case.states,
            cache_indices=integers(slots), num_v_heads=HV, head_v_dim=DV, replayssm_d=None,
        )  # fmt: skip
        case.check(out, range(3), slots)
    finally:
        for name in set(sys.modules) - before:
            if "sglang" in name:
                sys.modules.pop(name)


STEPS = 3


@pytest.fixture
def kernel(monkeypatch, build_dir, compiler_on_path):
    yield from kernels_of(monkeypatch, build_dir, "GdnKernel", "kernel")


@pytest.mark.parametrize("packed", [False, True])
def test_decode(kernel, packed):
    import torch

    case, slots = Case(4), [4, -1, 0, 7]
    case.given["v"][1] = case.v[1] = np.nan
    places = {"ssm_states": case.states, "cache_indices": integers(slots)}
    if packed:
        mixed = torch.cat([x.flatten(1) for x in (case.q, case.k, case.v)], 1)
        sizes = {"scale": DK**-0.5, "num_v_heads": HV, "head_v_dim": DV, "replayssm_d": None}
        out = kernel.packed_decode(mixed, case.a, case.b, **case.constants, **places, **sizes)
    else:
        rows = [x[None] for x in (case.q, case.k, case.v)]
        starts = {"query_start_loc": integers(range(5))}
        out = kernel.decode(*rows, case.a, case.b, **case.constants, **places, **starts)
    assert out.shape == (1, 4, HV, DV) and not out[0, 1].any()
    case.check(out, range(5), slots)
    assert not kernel._fallback.calls


def extend(kernel, case, starts, slots, **more):
    gates = tensors(*(rule_cases.ready(case.given)[name] for name in ("log_decay", "beta")))
    return kernel.extend(
        *(x[None] for x in (case.q, case.k, case.v, *gates)),
        ssm_states=case.states,
        cache_indices=integers(slots),
        query_start_loc=integers(starts),
        **more,
    )


def test_extend(kernel):
    import torch

    case, starts, slots = Case(80), [0, 70, 70, 77, 80], [4, 2, 8, -1]
    output = torch.full((1, 80, HV, DV), torch.nan)
    # SGLang has more slots than sequences where a batch is padded.
    out, state, inside = extend(kernel, case, starts, [*slots, -1], output=output)
    assert state is inside is None and out.data_ptr() == output.data_ptr()
    case.check(out, starts, slots)


@pytest.mark.parametrize("slots", [[4, 0, 8, -1], [-1, 4, 0, 8]])
def test_tracked_states(kernel, slots):
    """States before chunk 2 of a sequence and before its first one; padding in front or behind."""
    import torch

    lengths = [3, 130, 70, 66] if slots[0] < 0 else [130, 70, 66, 3]
    starts = np.cumsum([0, *lengths])
    case, chunks = Case(269), [-1 if n == 3 else n // 65 for n in lengths]
    chunks[lengths.index(70)] = 0
    track = torch.full((4, HV, DV, DK), -7.0)
    out, _, inside = extend(
        kernel, case, starts, slots, track_state=track, track_chunk_idx=integers(chunks)
    )
    assert inside is None and not kernel._fallback.calls
    case.check(out, starts, slots)
    for n, chunk in enumerate(chunks):
        if slots[n] < 0:
            continue
        state = case.before[slots[n]].astype(float)
        tokens = range(starts[n], starts[n] + 64 * chunk)
        found = rule_cases.recurrence(case.given, tokens, state, l2norm=True)
        steps = [state, *(after for _, after in found)]
        assert error_of(track[n].numpy(), steps[-1]) < 2e-5


def test_tracked_states_without_a_batch(kernel):
    """Padding alone leaves all states."""
    import torch

    case, track = Case(70), torch.zeros(2, HV, DV, DK)
    more = {"track_state": track, "track_chunk_idx": integers([-1, -1])}
    out, *_ = extend(kernel, case, [0, 70, 70], [-1, -1], **more)
    assert not out.any() and error_of(case.states.numpy(), case.before) == 0


def test_tracked_states_are_sglangs(kernel, monkeypatch):
    import torch

    kernels = sys.modules["gdn.integrations.sglang.kernel"]
    monkeypatch.setattr(kernels, "find_refusal", lambda *_: "no image")

    case, inside = Case(80), torch.arange(4.0).reshape(1, 4, 1, 1, 1).expand(1, 4, HV, DV, DK)
    kernel._fallback.found = torch.ones(1), None, inside
    track = torch.zeros(3, HV, DV, DK)
    # Chunks 0 and 1 of the first sequence, none of the second, 2 and 3 of the others.
    starts = [0, 65, 65, 80]
    found = extend(
        kernel, case, starts, [1, 2, 3], track_state=track, track_chunk_idx=integers([1, -1, 0])
    )
    assert found is kernel._fallback.found
    assert track[0].eq(1).all() and track[2].eq(2).all()
    name, given = kernel._fallback.calls[0]
    assert name == "extend" and "track_state" not in given


@pytest.mark.parametrize("stable_rows", [False, True])
def test_target_verify(kernel, stable_rows):
    import torch

    case, slots, rows = Case(2 * STEPS + 3), [4, 7, -1], [1, 0, 3]
    given, table = case.given, integers(rows)
    buffer = torch.full((4, STEPS, HV, DV, DK), -7.0)
    starts = [0, STEPS, 2 * STEPS, 2 * STEPS + 3]
    for _ in range(2):
        out = kernel.target_verify(
            *case.constants.values(),
            *(x[None] for x in (case.q, case.k, case.v)),
            case.a,
            case.b,
            ssm_states=case.states,
            cache_indices=integers(slots),
            query_start_loc=integers(starts),
            intermediate_states_buffer=buffer,
            intermediate_state_indices=table,
            cache_steps=STEPS,
            retrieve_parent_token=None,
            stable_rows=stable_rows,
        )
        assert not out[0, 2 * STEPS :].any()
        for n in range(2):
            tokens, first = range(starts[n], starts[n + 1]), case.before[slots[n]].astype(float)
            steps = list(rule_cases.recurrence(given, tokens, first, l2norm=True))
            want, kept = (np.stack(x) for x in zip(*steps, strict=True))
            assert error_of(out[0, tokens].numpy(), want) < 2e-5
            assert error_of(buffer[table[n]].numpy(), kept) < 2e-5
        # Rows that change are looked at in each step.
        if stable_rows:
            table[:2] = integers([2, 1])
    assert error_of(case.states.numpy(), case.before) == 0


def test_what_goes_to_sglang(kernel, caplog):
    """Buffered states, types and sizes without a kernel, planes; each reason is logged once."""
    import torch

    case = Case(2)
    kernel._fallback.found = torch.ones(1)
    places = {"ssm_states": case.states, "cache_indices": integers([1, 2])}
    mixed = torch.cat([x.flatten(1) for x in (case.q, case.k, case.v)], 1)
    sizes = {"scale": DK**-0.5, "num_v_heads": HV, "head_v_dim": DV}
    for _ in range(2):
        kernel.packed_decode(
            mixed, case.a, case.b, **case.constants, **places, **sizes, replayssm_d=mixed
        )
    rows = [x[None] for x in (case.q, case.k, case.v)]
    wide = {"query_start_loc": integers(range(3))} | places
    wide["ssm_states"] = case.states.double()
    kernel.decode(*rows, case.a, case.b, **case.constants, **wide)
    planes = wide | {"ssm_states": case.states.byte()}
    kernel.decode(*rows, case.a, case.b, **case.constants, **planes)
    assert [name for name, _ in kernel._fallback.calls] == ["packed_decode"] * 2 + ["decode"] * 2
    found = [record.getMessage() for record in caplog.records]
    own = "SGLang's own kernel runs for packed_decode"
    assert found[0] == f"{own}: states are buffered (--enable-linear-replayssm)"
    assert len(found) == 3 and "float64" in found[1]
    assert found[2].startswith("SGLang's own kernel runs for decode: types: expected float32, ")
    assert "uint8; states in planes are for layers on a gdn.StatePool" in found[2]
    assert error_of(case.states.numpy(), case.before) == 0
