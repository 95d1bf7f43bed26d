# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The plugin in vLLM 0.33, where it is installed: registration, and the layer's class with metadata
of the builder, on this CPU, against float64."""

import ctypes
from types import SimpleNamespace

import numpy as np
import pytest
import vllm_kinds

# ruff: noqa: E402  imports behind what skips
torch = pytest.importorskip("torch")
pytest.importorskip("vllm")

from vllm.model_executor import custom_op
from vllm.model_executor.layers.mamba.mamba_utils import MambaStateCopyFuncCalculator
from vllm.utils import torch_utils
from vllm.v1.attention.backends import gdn_attn, registry
from vllm.v1.attention.backends import utils as backend_utils
from vllm.v1.kv_cache_interface import MambaSpec

from gdn.bench.vllm_case import errors
from gdn.bench.vllm_setup import PREFIX, Sizes, make_layer, make_metadata, make_pools, make_weights
from gdn.integrations import vllm as plugin
from gdn.integrations.vllm import kda_layer, layer_steps
from gdn.integrations.vllm import layer as module
from gdn.integrations.vllm.backend import GdnAttentionBackend
from gdn.integrations.vllm.layer_core import LayerKernels
from gdn.integrations.vllm.layer_kind import LayerKind
from gdn.integrations.vllm.page_size import has_own_sizes, state_page_size


@pytest.fixture
def clean(monkeypatch):
    monkeypatch.setattr(custom_op, "op_registry_oot", {})
    monkeypatch.setattr(registry, "_MAMBA_ATTN_OVERRIDES", {})


def test_registration(clean):
    for _ in range(2):
        plugin.register()
    layers = module.GdnQwenGatedDeltaNetAttention, kda_layer.GdnKimiGatedDeltaNetAttention
    names = plugin.LAYER, plugin.KDA_LAYER
    assert custom_op.op_registry_oot == dict(zip(names, layers, strict=True))
    backend = registry.MambaAttentionBackendEnum.GDN_ATTN.get_class()
    assert backend is GdnAttentionBackend
    assert issubclass(backend.get_builder_cls(), gdn_attn.GDNAttentionMetadataBuilder)


def test_other_versions_are_left_alone(clean, monkeypatch, caplog):
    monkeypatch.setattr("vllm.__version__", "0.34.1")
    plugin.register()
    assert custom_op.op_registry_oot == {}
    assert "expected vLLM 0.33.*, found 0.34.1" in caplog.text


@pytest.mark.parametrize("name", [plugin.LAYER, plugin.KDA_LAYER])
def test_other_plugins_are_left_alone(clean, caplog, name):
    custom_op.op_registry_oot[name] = SimpleNamespace
    plugin.register()
    assert custom_op.op_registry_oot == {name: SimpleNamespace}
    assert registry._MAMBA_ATTN_OVERRIDES == {}
    assert "is replaced by" in caplog.text


SIZES = Sizes(key_heads=1, value_heads=2, key_dim=16, value_dim=16, drafts=2)


@pytest.fixture(scope="module")
def make_kernels(build_dir, tool, tmp_path_factory):
    def make(kind: LayerKind) -> LayerKernels:
        return vllm_kinds.make_kernels(kind, build_dir, tool, tmp_path_factory.mktemp("image"))

    return make


@pytest.fixture(scope="module")
def kernels(make_kernels):
    return make_kernels(vllm_kinds.KIND)


@pytest.fixture
def step(monkeypatch):
    """The context of a forward."""
    context = SimpleNamespace(attn_metadata=None)
    monkeypatch.setattr(layer_steps, "get_forward_context", lambda: context)
    for found in (torch_utils, backend_utils):
        monkeypatch.setattr(found, "PIN_MEMORY", False)
    return context


def make_step(rows):
    generator = torch.Generator().manual_seed(5)
    tokens = sum(count for _, count, _ in rows)
    case = SimpleNamespace(
        rows=rows,
        sizes=SIZES,
        arrays=None,
        weights=make_weights(SIZES, "cpu", torch.float32),
        qkvz=torch.randn(tokens, SIZES.packed, generator=generator),
        ba=torch.randn(tokens, 2 * SIZES.value_heads, generator=generator),
        out=torch.zeros(tokens, SIZES.value_heads, SIZES.value_dim),
    )
    slots = 1 + len(rows) * (1 + SIZES.drafts)
    return case, make_pools(SIZES, slots, "cpu", torch.float32, torch.float32)


def new_layer(case, pools, kernels):
    cls = module.GdnQwenGatedDeltaNetAttention
    return make_layer(cls, SIZES, case.weights, pools, kernels)


@pytest.mark.parametrize("graphs", [False, True])
@pytest.mark.parametrize("name", vllm_kinds.STEPS)
def test_steps_against_float64(kernels, step, name, graphs):
    case, pools = make_step(vllm_kinds.STEPS[name])
    before = tuple(pool.clone() for pool in pools)
    builder, metadata = make_metadata(case.rows, SIZES, "cpu", graphs=graphs)
    step.attn_metadata = {PREFIX: metadata}
    layer = new_layer(case, pools, kernels)
    layer._forward_core_fused_norm_packed(case.qkvz, case.ba, case.out)
    found = errors(case, before, pools, case.out)
    assert found["out"] < 1e-5 and found["state"] < 1e-5
    assert torch.equal(pools[1][0], before[1][0])
    del builder


def test_windows_that_vllm_copies(kernels, step):
    """With prefix caching a window in the slot of the first token goes on behind K - 1 inputs."""
    case, pools = make_step(vllm_kinds.STEPS["drafts"])
    _, metadata = make_metadata(case.rows, SIZES, "cpu", graphs=False)
    step.attn_metadata = {PREFIX: metadata}
    layer = new_layer(case, pools, kernels)
    object.__setattr__(layer, "gdn_joins_windows", True)
    before = pools[0][1].clone()
    layer._forward_core_fused_norm_packed(case.qkvz, case.ba, case.out)
    inputs = torch.cat([before[:3], case.qkvz[:3, : SIZES.channels]])
    assert torch.equal(pools[0][1], inputs[1:])


def test_a_profile_run_touches_no_state(kernels, step):
    case, pools = make_step(vllm_kinds.STEPS["decode"])
    layer = new_layer(case, pools, kernels)
    layer.get_state_dtype = lambda: (torch.float32, torch.float32)
    layer.get_state_shape = SIZES.shapes
    before = [pool.clone() for pool in pools]
    layer._forward_core_fused_norm_packed(case.qkvz, case.ba, case.out)
    assert kernels.is_warm and not case.out.any()
    # Nothing is made where a graph may be captured.
    core = layer.gdn_core
    _, metadata = make_metadata(case.rows, SIZES, "cpu", graphs=True)
    step.attn_metadata = {PREFIX: metadata}
    copies = tuple(pool.clone() for pool in pools)
    layer.kv_cache = copies
    layer._forward_core_fused_norm_packed(case.qkvz, case.ba, case.out)
    assert layer.gdn_core is core is not None
    assert all(torch.equal(*pair) for pair in zip(pools, before, strict=True))


def test_without_kernels_vllm_runs(monkeypatch, step):
    """Both methods go to the original's."""
    case, pools = make_step(vllm_kinds.STEPS["decode"])
    layer, called = new_layer(case, pools, None), []
    for name in ("_forward_core", "_forward_core_fused_norm_packed"):
        original = module.QwenGatedDeltaNetAttention
        monkeypatch.setattr(original, name, lambda *_, name=name: called.append(name))
    layer._forward_core(case.qkvz, case.ba, case.ba, case.out)
    layer._forward_core_fused_norm_packed(case.qkvz, case.ba, case.out)
    assert called == ["_forward_core", "_forward_core_fused_norm_packed"]


def test_padding_is_skipped(kernels, step):
    """A graph of four sequences replayed for two."""
    rows = [(9, 1, -1)] * 4
    case, pools = make_step(rows)
    sizes = Sizes(**{**vars(SIZES), "drafts": 0})
    pools = make_pools(sizes, 5, "cpu", torch.float32, torch.float32)
    builder, metadata = make_metadata(rows, sizes, "cpu", graphs=True)
    builder.non_spec_state_indices_tensor[2:] = 0
    pools[1][0], pools[0][0] = np.nan, np.nan
    kept = [pool[3:].clone() for pool in pools]
    step.attn_metadata = {PREFIX: metadata}
    layer = make_layer(module.GdnQwenGatedDeltaNetAttention, sizes, case.weights, pools, kernels)
    layer._forward_core_fused_norm_packed(case.qkvz, case.ba, case.out)
    assert case.out[:2].abs().min() > 0 and not case.out[2:].any()
    assert all(torch.equal(pool[3:], was) for pool, was in zip(pools, kept, strict=True))


@pytest.mark.parametrize(("state", "writes"), [("float32", 4), ("i8x2", 4), ("i8x2", 0)])
def test_blocks_of_several_arrays(make_kernels, step, state, writes):
    """In pages with a gap behind, as vLLM binds them: the spec has their bytes, copies of the two
    arrays of a block are sequences, and a new sequence finds what another one left."""
    kind = vllm_kinds.KIND._replace(state=state, deferred_writes=writes)
    sizes = Sizes(**{**vars(SIZES), "drafts": 0})
    arrays, weights = kind.slot_arrays(1, 2), make_weights(sizes, "cpu", torch.float32)
    cls = module.GdnQwenGatedDeltaNetAttention
    layer = make_layer(cls, sizes, weights, (), make_kernels(kind), arrays)
    types = SimpleNamespace(mamba_cache_dtype="auto", mamba_ssm_cache_dtype="auto")
    object.__setattr__(layer, "model_config", SimpleNamespace(dtype=torch.float32))
    object.__setattr__(layer, "cache_config", types)
    shapes, dtypes = layer.get_state_shape(), layer.get_state_dtype()
    spec = MambaSpec(block_size=1, shapes=shapes, dtypes=dtypes)
    assert spec.page_size_bytes == 4 * (3 * sizes.channels + arrays.words)
    pages = torch.full((7, 1, 1, spec.page_size_bytes + 64), -1, dtype=torch.int8)
    layer.bind_kv_cache(pages)
    pools = layer.kv_cache
    assert [pool[0].shape for pool in pools] == [torch.Size(shape) for shape in shapes]
    generator = torch.Generator().manual_seed(6)

    def copy_block(blocks, column, target):
        """As collect_mamba_copy_meta and batch_memcpy of vLLM do."""
        functions = MambaStateCopyFuncCalculator.gated_delta_net_state_copy_func()
        for pool, function in zip(pools, functions, strict=True):
            source = function(pool, blocks, column, 1)
            size = source.num_elements * pool.element_size()
            ctypes.memmove(pool[target].data_ptr(), source.start_addr, size)

    def run(rows, table):
        _, metadata = make_metadata(rows, sizes, "cpu", graphs=False, table=table)
        step.attn_metadata = {PREFIX: metadata}
        tokens = sum(count for _, count, _ in rows)
        case = SimpleNamespace(rows=rows, sizes=sizes, arrays=arrays, weights=weights)
        case.qkvz = torch.randn(tokens, sizes.packed, generator=generator)
        case.ba = torch.randn(tokens, 4, generator=generator)
        case.out = torch.zeros(tokens, 2, 16)
        before = tuple(pool.clone() for pool in pools)
        layer._forward_core_fused_norm_packed(case.qkvz, case.ba, case.out)
        found = errors(case, before, pools, case.out, [row[0] for row in table])
        assert found["out"] < 2e-3 and found["state"] < 2e-3, found

    run([(0, 9, -1), (0, 70, -1)], [[5], [2]])
    for count in range(10):
        run([(9 + count, 1, -1), (70 + count, 1, -1)], [[5], [2]])
        if count == 5:
            copy_block([9, 2, 9], 1, 4)
    run([(76, 1, -1), (80, 5, -1)], [[4], [2]])
    run([(77, 1, -1), (0, 3, -1), (0, 1, -1)], [[4], [5], [2]])
    run([(78, 1, -1), (3, 1, -1), (1, 1, -1)], [[4], [5], [2]])
    assert (pages[[0, 1, 3, 6]] == -1).all() and (pages[..., spec.page_size_bytes :] == -1).all()


def test_the_size_of_blocks():
    """The model's class answers as the layers of a configuration do, and else as before."""

    class Model:
        @classmethod
        def get_mamba_state_shape_from_config(cls, vllm_config):
            return ((1,), (2,))

        @classmethod
        def get_mamba_state_dtype_from_config(cls, vllm_config):
            return (torch.bfloat16, torch.bfloat16)

    def config(**layers):
        return SimpleNamespace(compilation_config=SimpleNamespace(static_forward_context=layers))

    layer = SimpleNamespace(
        gdn_kernels=object(),
        get_state_shape=lambda: ((1,), (3,)),
        get_state_dtype=lambda: (torch.bfloat16, torch.float32),
    )
    for _ in range(2):
        state_page_size(Model)
    other = SimpleNamespace(gdn_kernels=None)
    for given in (config(), config(attention=object(), linear=other)):
        assert Model.get_mamba_state_shape_from_config(given) == ((1,), (2,))
        assert Model.get_mamba_state_dtype_from_config(given)[1] is torch.bfloat16
    given = config(attention=object(), linear=layer)
    assert Model.get_mamba_state_shape_from_config(given) == ((1,), (3,))
    assert Model.get_mamba_state_dtype_from_config(given)[1] is torch.float32
    assert has_own_sizes(Model) is False


def test_values_that_no_pool_has_end_the_start(monkeypatch):
    monkeypatch.setattr(module.QwenGatedDeltaNetAttention, "__init__", lambda *_, **__: None)
    layer = object.__new__(module.GdnQwenGatedDeltaNetAttention)
    torch.nn.Module.__init__(layer)
    layer.get_state_dtype = lambda: (torch.float32, torch.float32)
    config = SimpleNamespace(additional_config={"gdn_state": "fp8"})
    with pytest.raises(ValueError, match="additional_config: gdn_state: expected one of float32"):
        module.GdnQwenGatedDeltaNetAttention.__init__(layer, None, config)


def test_a_refusal_is_logged(monkeypatch):
    """A layer whose kind has no kernels is the original in all but its class."""
    monkeypatch.setattr(module.QwenGatedDeltaNetAttention, "__init__", lambda *_, **__: None)
    kind = vllm_kinds.KIND._replace(platform="cpu")
    monkeypatch.setattr(module, "kind_of", lambda *_: kind)
    said = []
    monkeypatch.setattr(layer_steps.logger, "warning_once", lambda *words: said.append(words))
    layer = object.__new__(module.GdnQwenGatedDeltaNetAttention)
    torch.nn.Module.__init__(layer)
    module.GdnQwenGatedDeltaNetAttention.__init__(layer, None, None)
    assert layer.gdn_kernels is None
    assert said == [
        ("vLLM's own kernels run, not those of gdn: %s", "platform: expected cuda, found cpu")
    ]
