# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""vLLM's class of Kimi Delta Attention with gdn's kernels, where vLLM 0.33 is installed: steps with
metadata of the builder, on this CPU, against float64, and the way back to vLLM's own kernels."""

from types import SimpleNamespace

import numpy as np
import pytest
import vllm_kinds

# ruff: noqa: E402  imports behind what skips
torch = pytest.importorskip("torch")
pytest.importorskip("vllm")

from vllm.utils import torch_utils
from vllm.v1.attention.backends import utils as backend_utils

from gdn import reference
from gdn.bench.vllm_setup import (
    PREFIX,
    Sizes,
    make_config,
    make_kda_layer,
    make_kda_weights,
    make_metadata,
    make_pools,
)
from gdn.integrations.vllm import kda_layer as module
from gdn.integrations.vllm import layer_steps
from gdn.integrations.vllm.layer_kind import LayerKind

H, D = 2, 16
SIZES = Sizes(key_heads=H, value_heads=H, key_dim=D, value_dim=D, drafts=2)
KIND = vllm_kinds.KDA._replace(decay_bound=-5.0, num_speculative_tokens=2)


@pytest.fixture(scope="module")
def kernels(build_dir, tool, tmp_path_factory):
    return vllm_kinds.make_kernels(KIND, build_dir, tool, tmp_path_factory.mktemp("image"))


@pytest.fixture
def step(monkeypatch):
    """The context of a forward."""
    context = SimpleNamespace(attn_metadata=None)
    monkeypatch.setattr(layer_steps, "get_forward_context", lambda: context)
    for found in (torch_utils, backend_utils):
        monkeypatch.setattr(found, "PIN_MEMORY", False)
    return context


def make_layer(kernels, pools=()):
    """Without projections. eps is what a model sets behind the start."""
    weights = make_kda_weights(SIZES, "cpu", torch.float32)
    cls = module.GdnKimiGatedDeltaNetAttention
    layer = make_kda_layer(cls, SIZES, weights, pools, kernels, bound=-5.0, eps=1e-3)
    object.__setattr__(layer, "get_state_shape", SIZES.shapes)
    object.__setattr__(layer, "get_state_dtype", lambda: (torch.float32, torch.float32))
    return layer


def make_arguments(count: int) -> dict[str, torch.Tensor]:
    """As the layer's forward makes them: parts of the rows of one projection."""
    generator = torch.Generator().manual_seed(5)
    wide = torch.randn(count, 4 * H * D + D + H, generator=generator)
    qkv, gate, _, beta = wide.split([SIZES.channels, H * D, D, H], dim=-1)
    return {
        "mixed_qkv": qkv,
        "g1": torch.randn(1, count, H, D, generator=generator),
        "g2": gate.view(count, H, D),
        "beta": beta.unsqueeze(0),
        "core_attn_out": torch.full((1, count, H, D), 7.0),
    }


@pytest.mark.parametrize("graphs", [False, True])
@pytest.mark.parametrize("name", vllm_kinds.STEPS)
def test_steps_against_float64(kernels, step, name, graphs):
    rows = vllm_kinds.STEPS[name]
    arguments = make_arguments(sum(count for _, count, _ in rows))
    slots = 1 + len(rows) * (1 + SIZES.drafts)
    pools = make_pools(SIZES, slots, "cpu", torch.float32, torch.float32)
    before = tuple(pool.clone() for pool in pools)
    builder, metadata = make_metadata(rows, SIZES, "cpu", graphs=graphs)
    step.attn_metadata = {PREFIX: metadata}
    layer = make_layer(kernels, pools)
    layer._forward(**arguments)
    reference_layer = reference.Layer("separate", D, D, "sigmoid", norm_eps=1e-3, decay_bound=-5.0)
    given = {
        "conv_weight": layer.conv1d.weight[:, 0],
        "A_log": layer.A_log,
        "dt_bias": layer.dt_bias.view(H, D),
        "norm_weight": layer.o_norm.weight,
    }
    q, k, v = (x.reshape(-1, H, D) for x in arguments["mixed_qkv"].split(H * D, dim=-1))
    tokens = {"q": q, "k": k, "v": v, "z": arguments["g2"]}
    tokens |= {"b": arguments["beta"][0], "a": arguments["g1"][0]}
    first = 0
    for row, (known, count, drafts) in enumerate(rows):
        part, first = slice(first, first + count), first + count
        slot = 1 + row * (1 + SIZES.drafts)
        last = slot + (count - 1 if drafts >= 0 else 0)
        result = reference.evaluate(
            reference_layer,
            {name: x.double().numpy() for name, x in given.items()}
            | {name: x[part].double().numpy() for name, x in tokens.items()}
            | {
                "conv_pool": before[0][[0, slot], :3].transpose(1, 2).double().numpy(),
                "state_pool": before[1][[0, slot]].double().numpy(),
                "slots": np.array([1]),
                "cu_seqlens": np.array([0, count]),
                "has_initial": np.array([known > 0]),
            },
        )
        out = arguments["core_attn_out"][0, part]
        np.testing.assert_allclose(out, result["out"], atol=1e-4, rtol=1e-4)
        np.testing.assert_allclose(pools[1][last], result["state_pool"][1], atol=1e-4, rtol=1e-4)
        window = pools[0][last, :3].T
        np.testing.assert_allclose(window, result["conv_pool"][1], atol=1e-6)
    assert all(torch.equal(pool[0], was[0]) for pool, was in zip(pools, before, strict=True))
    del builder


def test_padding_is_skipped(kernels, step):
    """A graph of four sequences replayed for two."""
    rows = [(9, 1, -1)] * 4
    sizes = Sizes(**{**vars(SIZES), "drafts": 0})
    pools = make_pools(sizes, 5, "cpu", torch.float32, torch.float32)
    builder, metadata = make_metadata(rows, sizes, "cpu", graphs=True)
    builder.non_spec_state_indices_tensor[2:] = 0
    pools[1][0], pools[0][0] = np.nan, np.nan
    kept = [pool[3:].clone() for pool in pools]
    step.attn_metadata = {PREFIX: metadata}
    arguments = make_arguments(4)
    make_layer(kernels, pools)._forward(**arguments)
    out = arguments["core_attn_out"][0]
    assert torch.isfinite(out).all() and out[:2].abs().min() > 0 and not out[2:].any()
    assert all(torch.equal(pool[3:], was) for pool, was in zip(pools, kept, strict=True))


def test_a_profile_run_touches_no_state(kernels, step):
    layer, arguments = make_layer(kernels), make_arguments(6)
    kernels.is_warm = False
    layer._forward(**arguments)
    assert kernels.is_warm and layer.gdn_core is not None
    assert not arguments["core_attn_out"].any()


def test_without_kernels_vllm_runs(monkeypatch, kernels):
    """And within graphs of torch.compile, where no call of gdn's is a part."""
    called = []
    original = module.KimiGatedDeltaNetAttention
    monkeypatch.setattr(original, "_forward", lambda *given: called.append(len(given)))
    make_layer(None)._forward(**make_arguments(1))
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    make_layer(kernels)._forward(**make_arguments(1))
    assert called == [6, 6]


def new_layer(monkeypatch, asked: dict, platform: str = "cuda"):
    """What the start of a layer makes of a configuration."""
    layer = make_layer(None)
    monkeypatch.setattr(module.KimiGatedDeltaNetAttention, "__init__", lambda *_, **__: None)
    monkeypatch.setattr(module, "platform_name", lambda: platform)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 3)
    config = make_config(2, mode="align")
    config.model_config.dtype = torch.float32
    config.additional_config = asked
    module.GdnKimiGatedDeltaNetAttention.__init__(layer, None, config)
    return layer, config


def test_the_start_of_a_layer(monkeypatch, kernels):
    asked: list[tuple[LayerKind, int]] = []
    monkeypatch.setattr(layer_steps, "kernels_of", lambda *given: asked.append(given) or kernels)
    layer, config = new_layer(monkeypatch, {})
    wanted = KIND._replace(norm_eps=1e-3, cache_mode="align", conv_weight="float32")
    assert asked == [(wanted, 3)]
    assert layer.gdn_kernels is kernels and layer.gdn_joins_windows
    assert config.additional_config == {"gdn_layout": "separate"}


@pytest.mark.parametrize(
    ("asked", "platform", "message"),
    [
        ({}, "cpu", "platform: expected cuda, found cpu"),
        ({"gdn_state": "bfloat16"}, "cuda", "gdn_state: expected None, found bfloat16"),
        ({"gdn_deferred_writes": 4}, "cuda", "gdn_deferred_writes: expected 0, found 4"),
    ],
)
def test_a_refusal_is_logged(monkeypatch, asked, platform, message):
    said = []
    monkeypatch.setattr(layer_steps.logger, "warning_once", lambda *words: said.append(words))
    layer, _ = new_layer(monkeypatch, asked, platform)
    assert layer.gdn_kernels is None
    assert said == [("vLLM's own kernels run, not those of gdn: %s", message)]
