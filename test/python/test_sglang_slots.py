# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Slots of SGLang's pool of states that keep pending tokens, and planes, against float64: prompts,
steps, copies, what SGLang copies past its pool, the host, and slots that are used again. The pool
is one that stands in for SGLang's, and SGLang's own where the folder of its wheel is on the path.
"""

import dataclasses
import functools
import sys
import types
import typing
from contextlib import nullcontext

import numpy as np
import pytest
import rule_cases
from rule_cases import DK, DV, HV, H, draw, error_of
from sglang_cases import (
    Fallback,
    add_modules,
    classes_of,
    folder_of_sglang,
    integers,
    options,
    tensors,
)

from gdn import Runtime, devices

try:
    import torch
except ImportError:
    torch = types.SimpleNamespace(float32=None, bfloat16=None, dtype=None)
# Each test by itself: a module that is left out counts in each part of a run.
pytestmark = [
    pytest.mark.usefixtures("compiler_on_path"),
    pytest.mark.skipif(not hasattr(torch, "zeros"), reason="PyTorch is not installed"),
]

LAYERS, SIZE, ROOM = 2, 7, 4
#: The backend, the type of SGLang's states, and how far results may be off.
FORMS = {
    "f32": ("gdn_deferred", torch.float32, 2e-5),
    "bf16": ("gdn_deferred", torch.bfloat16, 3e-2),
    "i8x2 in place": ("gdn_i8x2", torch.bfloat16, 1e-3),
    "i8x2": ("gdn_i8x2_deferred", torch.float32, 1e-3),
    "i8": ("gdn_i8_deferred", torch.float32, 6e-2),
}


@dataclasses.dataclass(frozen=True)
class Types:
    conv: torch.dtype
    temporal: torch.dtype


@dataclasses.dataclass(frozen=True)
class Params:
    """As Mamba2CacheParams of SGLang."""

    dtype: Types
    shape: types.SimpleNamespace
    layers: list


def params_of(dtype):
    shape = types.SimpleNamespace(
        conv=[(8, 3)], temporal=(HV, DV, DK), num_k_heads_per_tp=H, conv_kernel=4
    )
    return Params(Types(torch.float32, dtype), shape, list(range(LAYERS)))


class Saver:
    @staticmethod
    def create(enable):
        return Saver()

    def region(self, _tag):
        return nullcontext()


class StandIn:
    """As MambaPool: arrays of all layers, and states that go with its slots."""

    def __init__(self, *, size, cache_params, mamba_layer_ids, **_others):
        shape = (len(mamba_layer_ids), size + 1, *cache_params.shape.temporal)
        temporal = torch.zeros(shape, dtype=cache_params.dtype.temporal)
        self.mamba_cache = types.SimpleNamespace(temporal=temporal)
        self.memory_saver_adapter, self.mem_usage, self.siblings = Saver(), 0.0, []

    def register_slot_state(self, state):
        self.siblings.append(state)

    def clear_slots(self, indices):
        for sibling in self.siblings:
            sibling.reset_slots(indices)
        self.mamba_cache.temporal.index_fill_(1, indices.to(torch.int64), 0)

    def copy_from(self, source, target):
        self.mamba_cache.temporal[:, target] = self.mamba_cache.temporal[:, source]
        for sibling in self.siblings:
            sibling.copy_slots(source, target)

    def get_cpu_copy(self, indices):
        return self.mamba_cache.temporal[:, indices], [
            sibling.get_cpu_slots(indices) for sibling in self.siblings
        ]

    def load_cpu_copy(self, saved, indices):
        self.mamba_cache.temporal[:, indices] = saved[0]
        for sibling, data in zip(self.siblings, saved[1], strict=True):
            sibling.load_cpu_slots(data, indices)


def sglangs_own():
    """The class that SGLang has, of the file of its wheel."""
    file = folder_of_sglang() / "sglang/srt/mem_cache/memory_pool.py"
    off = types.SimpleNamespace(get=lambda: False)
    silent = types.SimpleNamespace(info=lambda *_: None)
    given = (
        vars(typing)
        | vars(dataclasses)
        | {
            "torch": torch,
            "dataclasses": dataclasses,
            "cached_property": functools.cached_property,
            "nullcontext": nullcontext,
            "TorchMemorySaverAdapter": Saver,
            "maybe_init_custom_mem_pool": lambda device: (False, None, None),
            "envs": types.SimpleNamespace(
                SGLANG_DEBUG_MEMORY_POOL=off, SGLANG_DISABLE_FUSED_MAMBA_SLOT_OPS=off
            ),
            "GPU_MEMORY_TYPE_KV_CACHE": "kv_cache",
            "GB": 1 << 30,
            "get_tensor_size_bytes": lambda x: sum(t.nbytes for t in [*x]),
            "logger": silent,
            "current_platform": types.SimpleNamespace(synchronize=lambda: None),
            "_is_npu": False,
            "_is_cpu": True,
            "_cpu_has_amx_support": False,
        }
    )
    (cls,) = classes_of(file, ["MambaPool"], given)
    return cls


def others_of_sglang(**changed):
    """Options of the command line, by the groups that have them."""
    mamba = options("gdn_deferred", linear_replayssm_cache_len=ROOM)
    mamba.enable_int8_mamba_checkpoint = mamba.enable_mamba_extra_buffer = False
    memory = ("enable_unified_memory", "enable_page_major_kv_layout", "enable_lmcache")
    memory += ("enable_unified_cache_external_linker",)
    groups = {
        "get_exec": types.SimpleNamespace(
            mamba=mamba, features=types.SimpleNamespace(enable_mis=False)
        ),
        "get_memory": types.SimpleNamespace(**dict.fromkeys(memory, False)),
        "get_spec": types.SimpleNamespace(speculative_algorithm=None),
        "get_disagg": types.SimpleNamespace(disaggregation_mode="null"),
    }
    for name, value in changed.items():
        for group in (mamba, groups["get_exec"].features, *groups.values()):
            if hasattr(group, name):
                setattr(group, name, value)
    return {name: lambda group=group: group for name, group in groups.items()}


def configurator_of(dtype):
    config = types.SimpleNamespace(mamba2_cache_params=params_of(dtype))
    return types.SimpleNamespace(
        hybrid_gdn_config=config,
        mambaish_config=config,
        is_draft_worker=False,
        extra_mamba_cache_bytes_per_req=0,
    )


@pytest.fixture
def sglang(monkeypatch, build_dir):
    """The plugin's modules, with what they ask of SGLang."""
    base = {"LinearAttnKernelBase": object}
    add_modules(
        monkeypatch,
        layers__attention__linear__kernels__kernel_backend=base,
        constants={"GPU_MEMORY_TYPE_KV_CACHE": "kv_cache"},
        runtime_context=others_of_sglang(),
    )
    monkeypatch.delitem(sys.modules, "gdn.integrations.sglang.kernel", raising=False)
    monkeypatch.setattr(devices, "_runtime", [Runtime(build_dir / "lib/libgdnrt.so")])
    from gdn.integrations.sglang import hooks, kernel, slots

    def with_options(**changed):
        add_modules(monkeypatch, runtime_context=others_of_sglang(**changed))

    yield types.SimpleNamespace(hooks=hooks, kernel=kernel, slots=slots, with_options=with_options)
    sys.modules.pop("gdn.integrations.sglang.kernel", None)


class Engine:
    """A pool and a kernel for two layers, and in float64 what each slot holds."""

    def __init__(self, plugin, form="f32", pool=StandIn, seed=1):
        self.backend, dtype, self.bound = FORMS[form]
        self.plugin, self.rng = plugin, np.random.default_rng(seed)
        plugin.with_options(linear_attn_backend=self.backend)
        self.pool = pool.__new__(pool)
        self.configurator = configurator_of(dtype)
        plugin.hooks.count_slot_bytes(None, self.configurator)
        plugin.hooks.make_request_pool(self._make, self.configurator, max_num_reqs=SIZE)
        self.states = self.pool.mamba_cache.temporal
        self.layers = [plugin.slots.find_layer(self.states[i]) for i in range(LAYERS)]
        self.kernel = plugin.kernel.GdnKernel(Fallback(), self.backend)
        self.exact: dict[int, np.ndarray] = {}
        self.free = list(range(1, SIZE + 1))
        for slot in self.free:
            self.spoil(slot)

    def _make(self, configurator, max_num_reqs):
        params = configurator.mambaish_config.mamba2_cache_params
        self.plugin.hooks.make_state_pool(
            type(self.pool).__init__,
            self.pool,
            size=max_num_reqs,
            spec_state_size=max_num_reqs,
            cache_params=params,
            mamba_layer_ids=params.layers,
            device="cpu",
        )

    @property
    def held(self):
        """Arrays beside SGLang's."""
        siblings = getattr(self.pool, "siblings", None) or self.pool._slot_siblings
        return siblings[0].held

    def spoil(self, slot):
        """What nobody may read: NaN, and counts that are wrong."""
        self.states[:, slot] = torch.nan if self.states.is_floating_point() else 255
        for name, array in self.held.arrays.items():
            array[slot] = 3 if name == "pending_counts" else 255
            if array.is_floating_point():
                array[slot] = torch.nan

    def take(self):
        return self.free.pop(int(self.rng.integers(len(self.free))))

    def begin(self):
        slot = self.take()
        self.pool.clear_slots(integers([slot]))
        self.exact[slot] = np.zeros((LAYERS, HV, DV, DK))
        return slot

    def end(self, slot):
        del self.exact[slot]
        self.free.append(slot)
        self.spoil(slot)

    def fork(self, slot):
        target = self.take()
        self.pool.copy_from(integers([slot]), integers([target]))
        self.exact[target] = self.exact[slot]

    def go_away_and_come_back(self, slot):
        saved, state = self.pool.get_cpu_copy(integers([slot])), self.exact[slot]
        self.end(slot)
        target = self.take()
        self.pool.load_cpu_copy(saved, integers([target]))
        self.exact[target] = state

    def _tokens(self, lengths, slots):
        """Of a layer; those of padding are NaN."""
        given = draw(self.rng, sum(lengths))
        starts = np.cumsum([0, *lengths])
        for n, slot in enumerate(slots):
            if slot < 0:
                given["v"][starts[n] : starts[n + 1]] = np.nan
        return given, starts

    def _follow(self, layer, given, starts, slots, out, bound=None):
        """In float64 the same. Rows of padding give zeros."""
        for n, slot in enumerate(slots):
            tokens = range(starts[n], starts[n + 1])
            if slot < 0:
                assert not out[tokens].any()
                continue
            state = self.exact[slot][layer]
            for t, (want, after) in zip(
                tokens, rule_cases.recurrence(given, tokens, state, l2norm=True), strict=True
            ):
                assert error_of(out[t], want) < 8 * self.bound
                state = after
            self.exact[slot] = self.exact[slot].copy()
            self.exact[slot][layer] = state

    def extend(self, slots, lengths):
        for layer in range(LAYERS):
            given, starts = self._tokens(lengths, slots)
            gates = [rule_cases.ready(given)[name] for name in ("log_decay", "beta")]
            q, k, v, g, beta = tensors(*(given[n] for n in "qkv"), *gates)
            out, *_ = self.kernel.extend(
                *(x[None] for x in (q, k, v, g, beta)),
                ssm_states=self.states[layer],
                cache_indices=integers(slots),
                query_start_loc=integers(starts),
            )
            self._follow(layer, given, starts, slots, out[0].numpy())

    def decode(self, slots, tracked=()):
        """A token of each; `tracked` are rows whose states SGLang copies behind the step. They go
        to slots that nobody has cleared."""
        targets = [self.take() if row in tracked else -1 for row in range(len(slots))]
        mask = torch.tensor([row in tracked for row in range(len(slots))])
        batch = types.SimpleNamespace(
            batch_size=len(slots), mamba_track_mask=mask if tracked else None
        )
        backend = types.SimpleNamespace(
            forward_metadata=types.SimpleNamespace(mamba_track_indices=integers(targets))
        )
        for layer in range(LAYERS):
            given, starts = self._tokens([1] * len(slots), slots)
            q, k, v, a, b, rate, bias = tensors(
                *(given[n] for n in ("q", "k", "v", "a", "b", "A_log", "dt_bias"))
            )
            out = self.kernel.packed_decode(
                torch.cat([x.flatten(1) for x in (q, k, v)], 1), a, b, A_log=rate, dt_bias=bias,
                scale=DK**-0.5, ssm_states=self.states[layer], cache_indices=integers(slots),
                num_v_heads=HV, head_v_dim=DV, replayssm_d=None,
            )  # fmt: skip
            self._follow(layer, given, starts, slots, out[0].numpy())
            states = self.states[layer]
            self.plugin.hooks.commit_tracked(
                backend, batch, None, states, integers(slots), layer_id=layer
            )
        for row in tracked:
            self.states[:, targets[row]] = self.states[:, slots[row]]
            self.exact[targets[row]] = self.exact[slots[row]]

    def check(self):
        """All states, behind a commit."""
        slots = sorted(self.exact)
        for index, layer in enumerate(self.layers):
            layer.commit(integers([*slots, -1]))
            found = self.states[index]
            if layer.in_planes:
                arrays = {name: array[:, index] for name, array in self.held.arrays.items()}
                found = found.float() - 128
                if "state_low" in arrays:
                    found += (arrays["state_low"].float() - 128) / 256
                found *= arrays["state_scales"][..., None]
            want = np.stack([self.exact[slot][index] for slot in slots])
            assert error_of(found[slots].float().numpy(), want) < self.bound


def run_trace(engine, steps):
    rng, tracks = engine.rng, engine.backend == "gdn_deferred"
    for _ in range(steps):
        live = list(engine.exact)
        some = [int(x) for x in rng.permutation(live)[: rng.integers(1, 4)]]
        kind = rng.integers(10)
        if not live or (kind == 0 and engine.free):
            engine.extend([engine.begin()], [int(rng.integers(1, 9))])
        elif kind == 1 and engine.free:
            engine.fork(some[0])
        elif kind == 2 and engine.free:
            engine.go_away_and_come_back(some[0])
        elif kind == 3 and len(live) > 2:
            engine.end(some[0])
        elif kind == 4:
            # A chunk, a step in the same batch, and padding.
            engine.extend([*some, -1], [int(rng.integers(1, 7)) for _ in [*some, -1]])
        else:
            is_tracked = tracks and kind == 5 and engine.free
            engine.decode([-1, *some], tracked=(1,) if is_tracked else ())
    engine.check()


@pytest.mark.parametrize("form", FORMS)
def test_trace(sglang, form):
    run_trace(Engine(sglang, form, seed=3), 80)


@pytest.mark.parametrize("form", ["f32", "i8x2"])
def test_trace_on_the_pool_of_sglang(sglang, form):
    run_trace(Engine(sglang, form, sglangs_own(), seed=4), 80)


def test_states_inside_of_prompts(sglang):
    """They go to slots that nobody has cleared; what is pending is in them."""
    engine = Engine(sglang)
    first, second, kept = engine.begin(), engine.begin(), engine.take()
    engine.extend([first, second], [3, 2])
    engine.decode([first, second])
    slots, starts, chunk = [first, -1, second], [0, 70, 73, 80], 64
    given, _ = engine._tokens([70, 3, 7], slots)
    gates = [rule_cases.ready(given)[name] for name in ("log_decay", "beta")]
    rows = [x[None] for x in tensors(*(given[n] for n in "qkv"), *gates)]
    track, states = torch.zeros(3, HV, DV, DK), engine.states[0]
    out, *_ = engine.kernel.extend(
        *rows,
        ssm_states=states,
        cache_indices=integers(slots),
        query_start_loc=integers(starts),
        track_state=track,
        track_chunk_idx=integers([1, -1, -1]),
    )
    begin = engine.exact[first][0]
    *_, (_, want) = rule_cases.recurrence(given, range(chunk), begin, l2norm=True)
    assert error_of(track[0].numpy(), want) < engine.bound
    engine._follow(0, given, starts, slots, out[0].numpy())
    # As SGLang goes on.
    metadata = types.SimpleNamespace(
        has_mamba_track_mask=True,
        track_ssm_h_dst=torch.tensor([kept]),
        track_ssm_final_dst=torch.tensor([], dtype=torch.int64),
    )
    sglang.hooks.forget_tracked(None, None, None, states, metadata, h_track_buf=track)
    states[kept] = track[0]
    engine.layers[0].commit(integers([kept]))
    assert error_of(states[kept].numpy(), want) < engine.bound


@pytest.mark.parametrize("form", FORMS)
def test_bytes_of_a_slot(sglang, form):
    """SGLang counts what is there, whatever type it takes its states for."""
    engine = Engine(sglang, form)
    itemsize = FORMS[form][1].itemsize
    counted = itemsize * engine.states[:, 0].numel()
    counted += engine.configurator.extra_mamba_cache_bytes_per_req
    held = sum(array.nbytes for array in engine.held.arrays.values())
    assert counted * (SIZE + 1) == engine.states.nbytes + held
    assert engine.held.num_bytes == held and engine.pool.mem_usage > 0
    names = [name for name, *_ in engine_entries(engine)]
    assert names == [f"gdn_{name}" for name in engine.held.arrays]


def engine_entries(engine):
    """As SGLang's tier of the host takes them: slots in front."""
    for name, array, *rest in engine.pool.siblings[0].iter_transfer_state_entries():
        assert len(array) == SIZE + 1 and array.is_contiguous()
        yield name, array, *rest


def test_pools_of_other_models_are_left_alone(sglang):
    sglang.with_options(linear_attn_backend="gdn_deferred")
    for name, value in (("hybrid_gdn_config", None), ("is_draft_worker", True)):
        configurator = configurator_of(torch.float32)
        setattr(configurator, name, value)
        sglang.hooks.count_slot_bytes(None, configurator)
        assert configurator.extra_mamba_cache_bytes_per_req == 0
        assert sglang.hooks.make_request_pool(lambda *_: "made", configurator) == "made"
    pool = StandIn.__new__(StandIn)
    given = {"cache_params": params_of(torch.float32), "mamba_layer_ids": [0]}
    sglang.hooks.make_state_pool(StandIn.__init__, pool, size=3, **given)
    assert not pool.siblings
    kernel = sglang.kernel.GdnKernel(Fallback(), "gdn_deferred")
    states = pool.mamba_cache.temporal[0]
    with pytest.raises(ValueError, match="got one of SGLang's; its log says"):
        kernel._layer(states)
    assert sglang.kernel.GdnKernel(Fallback())._layer(states) is None


def test_options_that_do_not_go_together(sglang):
    sglang.with_options(linear_attn_backend="gdn_deferred", speculative_algorithm="EAGLE")
    with pytest.raises(ValueError, match=r"--speculative-algorithm: expected no with .* got EAGLE"):
        sglang.hooks.count_slot_bytes(None, configurator_of(torch.float32))


def test_what_has_no_kernel(sglang, monkeypatch):
    """SGLang's own kernels run for prompts behind a commit, and never where a state is in planes
    or has pending tokens."""
    engine = Engine(sglang)
    slot = engine.begin()
    engine.extend([slot], [3])
    engine.decode([slot])
    monkeypatch.setattr(sglang.kernel, "find_refusal", lambda *_: "no image")
    text = r"expected a kernel for packed_decode on states of float32 with deferred writes of 4"
    with pytest.raises(ValueError, match=text + " tokens of an engine's pool, got none: no image"):
        engine.decode([slot])
    engine.kernel._fallback.found = torch.zeros(1, 1, HV, DV), None, None
    given, starts = engine._tokens([1], [slot])
    rows = [x[None] for x in tensors(*(given[n] for n in "qkv"), given["a"], given["b"])]
    places = {"cache_indices": integers([slot]), "query_start_loc": integers(starts)}
    engine.kernel.extend(*rows, ssm_states=engine.states[0], **places)
    assert engine.kernel._fallback.calls[0][0] == "extend"
    found = engine.states[0][slot].numpy()
    assert error_of(found, engine.exact[slot][0]) < engine.bound
    with pytest.raises(ValueError, match="got none: a state is kept for each"):
        engine.kernel.target_verify(
            *tensors(given["A_log"], given["dt_bias"]),
            *rows,
            ssm_states=engine.states[0],
            **places,
            intermediate_states_buffer=torch.zeros(1),
            intermediate_state_indices=None,
            cache_steps=1,
            retrieve_parent_token=None,
        )
    planes = Engine(sglang, "i8x2")
    with pytest.raises(ValueError, match=r"extend on states of i8x2 .* none: no image"):
        planes.kernel.extend(*rows, ssm_states=planes.states[0], **places)
