# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""GatedDeltaNetAttention from hidden states to output: every order of projections and
layout of kernels against float64, tensor-parallel ranks, layouts of states, refusals."""

import importlib.util
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from gdn_layer_model import CoreModel, compile_image, relative_error

from gdn import GdnError, Runtime, StatePool, StatePoolShape
from gdn.context_parallel import ContextParallel
from gdn.exchange import ThreadExchange
from gdn.layers.attention import (
    CommonAttentionMetadata,
    GatedDeltaNetAttention,
    GDNAttentionMetadataBuilder,
    layer_kernels,
    plan_over_ranks,
    prefill_over_ranks,
    rms_norm_gated,
)

pytestmark = pytest.mark.once(compiler="cpu")

HK, HV, D, HIDDEN, SLOTS = 2, 4, 64, 48, 4
LENGTHS = ((5, 9), (1, 1), (1, 3))
CONFIG = SimpleNamespace(
    hidden_size=HIDDEN,
    linear_num_key_heads=HK,
    linear_num_value_heads=HV,
    linear_key_head_dim=D,
    linear_value_head_dim=D,
    linear_conv_kernel_dim=4,
    rms_norm_eps=1e-6,
    hidden_act="silu",
)


@pytest.fixture(scope="module")
def runtime(build_dir):
    return Runtime(build_dir / "lib/libgdnrt.so")


@pytest.fixture(scope="module")
def kernels_of(runtime, tool, tmp_path_factory):
    """Kernels of a layout and what they give, compiled once."""
    made = {}

    def get(layout: str, outputs: str):
        if (layout, outputs) not in made:
            folder = tmp_path_factory.mktemp("layer")
            path = compile_image(
                tool, folder, f"--layout={layout}", f"--outputs={outputs}", "--has-initial"
            )
            made[layout, outputs] = layer_kernels(runtime.device(), runtime.image(path))
        return made[layout, outputs]

    return get


def make_weights(order: str) -> dict[str, np.ndarray]:
    """A checkpoint, with the same numbers in every order."""
    rng = np.random.default_rng(2)

    def normal(*shape):
        return (rng.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32)

    q, k = normal(HK, D, HIDDEN), normal(HK, D, HIDDEN)
    v, z = normal(HV, D, HIDDEN), normal(HV, D, HIDDEN)
    b, a = normal(HV, HIDDEN), normal(HV, HIDDEN)
    share = HV // HK
    weights = {
        "conv1d.weight": rng.standard_normal((2 * HK * D + HV * D, 1, 4)).astype(np.float32),
        "A_log": np.log(rng.uniform(1, 16, HV)).astype(np.float32),
        "dt_bias": rng.standard_normal(HV).astype(np.float32),
        "norm.weight": rng.uniform(0.5, 1.5, D).astype(np.float32),
        "out_proj.weight": normal(HIDDEN, HV * D),
    }
    flat = [part.reshape(-1, HIDDEN) for part in (q, k, v, z)]
    if order == "separate":
        names = ("in_proj_z", "in_proj_b", "in_proj_a")
        weights["in_proj_qkv.weight"] = np.concatenate(flat[:3])
        weights |= {f"{n}.weight": w for n, w in zip(names, (flat[3], b, a), strict=True)}
    elif order == "flat":
        weights["in_proj_qkvz.weight"] = np.concatenate(flat)
        weights["in_proj_ba.weight"] = np.concatenate([b, a])
    else:
        blocks, gates = [], []
        for g in range(HK):
            own = slice(g * share, (g + 1) * share)
            blocks += [q[g], k[g], *v[own], *z[own]]
            gates += [b[own], a[own]]
        weights["in_proj_qkvz.weight"] = np.concatenate(blocks)
        weights["in_proj_ba.weight"] = np.concatenate(gates)
    return weights


def hidden_states() -> list[np.ndarray]:
    rng = np.random.default_rng(4)
    return [rng.standard_normal((sum(n), HIDDEN)).astype(np.float32) for n in LENGTHS]


def sigmoid(x):
    return np.exp(-np.logaddexp(0, -x))


def expected_outputs(gate: str = "silu", eps: float = 1e-6) -> list[np.ndarray]:
    """The layer in float64, from the checkpoint in its own parts."""
    weights = {name: w.astype(np.float64) for name, w in make_weights("separate").items()}
    core = {n: weights[n] for n in ("A_log", "dt_bias")}
    model = CoreModel(core | {"conv_weight": weights["conv1d.weight"][:, 0]}, SLOTS)
    started, outputs = set(), []
    for lengths, hidden in zip(LENGTHS, hidden_states(), strict=True):
        inputs = {n: hidden @ weights[f"in_proj_{n}.weight"].T for n in ("qkv", "z", "b", "a")}
        rows, first = [], 0
        for slot, length in zip((1, 3), lengths, strict=True):
            start = slot if slot in started else None
            rows.append(model.row(inputs, slice(first, first + length), start, [slot]))
            started.add(slot)
            first += length
        core = np.concatenate(rows)
        z = inputs["z"].reshape(core.shape)
        scale = 1 / np.sqrt((core**2).mean(-1, keepdims=True) + eps)
        normed = core * scale * weights["norm.weight"] * sigmoid(z)
        normed = normed * z if gate == "silu" else normed
        outputs.append(normed.reshape(len(hidden), -1) @ weights["out_proj.weight"].T)
    return outputs


def metadata_of(builder, done, lengths):
    return builder.build(
        0,
        CommonAttentionMetadata(
            query_start_loc=np.array([0, lengths[0], sum(lengths)], np.int32),
            seq_lens=done + np.array(lengths, np.int32),
            num_reqs=2,
            num_actual_tokens=sum(lengths),
            block_table_tensor=np.array([[1], [3]], np.int32),
        ),
    )


def make_layer(kernels, order, config=CONFIG, **options) -> GatedDeltaNetAttention:
    layer = GatedDeltaNetAttention(
        config,
        kernels,
        make_weights(order),
        order="interleaved" if order == "interleaved" else "flat",
        model_dtype="float32",
        **options,
    )
    conv, ssm = layer.get_state_shape()
    # Nothing of a new request is read.
    layer.bind_kv_cache(
        np.full((SLOTS, *conv), np.nan, np.float32), np.full((SLOTS, *ssm), np.nan, np.float32)
    )
    return layer


def run(runtime, layer, **options) -> list[np.ndarray]:
    builder = GDNAttentionMetadataBuilder.from_options(
        runtime, max_num_seqs=4, max_num_tokens=64, **options
    )
    done, outputs = np.zeros(2, np.int32), []
    for lengths, hidden in zip(LENGTHS, hidden_states(), strict=True):
        output = np.full((len(hidden) + 1, HIDDEN), 7, np.float32)
        layer.forward(hidden, output, metadata_of(builder, done, lengths))
        assert (output[-1] == 7).all()
        outputs.append(output[:-1])
        done += np.array(lengths, np.int32)
    return outputs


def worst_error(outputs, gate="silu") -> float:
    return max(map(relative_error, outputs, expected_outputs(gate)))


@pytest.mark.parametrize("outputs", ["core", "norm"])
@pytest.mark.parametrize(
    ("order", "layout"),
    [
        ("interleaved", "interleaved"),
        ("flat", "flat"),
        ("separate", "split"),
        ("flat", "split"),
        ("interleaved", "split"),
    ],
)
def test_hidden_states_to_output(runtime, kernels_of, order, layout, outputs):
    layer = make_layer(kernels_of(layout, outputs), order)
    assert layer.mamba_type == "gdn_attention"
    assert worst_error(run(runtime, layer)) < 2e-5


def test_deferred_writes(runtime, tool, tmp_path):
    """On a pool, whose arrays the layer takes: a prompt goes on behind a pending token."""
    options = ("--layout=split", "--outputs=norm", "--has-initial", "--defer-writes=3")
    device = runtime.device()
    kernels = layer_kernels(device, runtime.image(compile_image(tool, tmp_path, *options)))
    layer = GatedDeltaNetAttention(
        CONFIG, kernels, make_weights("separate"), order="flat", model_dtype="float32"
    )
    room = {"pending_tokens": 3, "deferred_writes": True}
    shape = StatePoolShape(2, SLOTS - 1, HK, HV, D, D, conv_dtype="float32", **room)
    pool = StatePool(device, shape)
    # Windows have no inputs of tokens that verify keeps.
    assert layer.get_state_shape()[0] == pool.conv(0).shape[:0:-1]
    layer.bind_state_pool(pool, 1)
    assert worst_error(run(runtime, layer, deferred_writes=True)) < 2e-5
    assert not pool.state(0).any() and pool.state(1)[[1, 3]].any()
    with pytest.raises(GdnError, match="state_pool: pending_tokens: expected 3, the room of"):
        layer.bind_state_pool(StatePool(device, replace(shape, pending_tokens=4)), 1)


@pytest.mark.parametrize("state, planes", [("i8x2", 2), ("i8", 1)])
def test_states_in_planes(runtime, tool, tmp_path, state, planes):
    """Arrays of the types and shapes that the layer names serve it as those of a pool do."""
    options = ["--layout=split", "--outputs=norm", "--has-initial", f"--state={state}"]
    room = {}
    if planes == 1:
        options.append("--defer-writes=3")
        room = {"pending_tokens": 3, "deferred_writes": True}
    device = runtime.device()
    kernels = layer_kernels(device, runtime.image(compile_image(tool, tmp_path, *options)))
    layer = GatedDeltaNetAttention(
        CONFIG, kernels, make_weights("separate"), order="flat", model_dtype="float32"
    )
    shape = StatePoolShape(
        1, SLOTS - 1, HK, HV, D, D, state_dtype=state, conv_dtype="float32", **room
    )
    pool = StatePool(device, shape)
    arrays = pool.conv(0).swapaxes(1, 2), pool.state(0), *pool.planes(0)
    assert layer.get_state_dtype() == tuple(str(array.dtype) for array in arrays)
    assert layer.get_state_shape() == tuple(array.shape[1:] for array in arrays)
    layer.bind_state_pool(pool, 0)
    expected = run(runtime, layer, deferred_writes=planes == 1)
    assert worst_error(expected) < {2: 1e-3, 1: 5e-2}[planes]
    with pytest.raises(ValueError, match=r"state_scales: expected slots of \[\d, \d+\], got none"):
        layer.bind_kv_cache(*arrays[:2])
    if planes == 1:
        return
    own = [
        np.zeros((SLOTS, *shape), dtype)
        for shape, dtype in zip(layer.get_state_shape(), layer.get_state_dtype(), strict=True)
    ]
    with pytest.raises(ValueError, match=r"state_low: expected slots of .*, got \["):
        layer.bind_kv_cache(*own[:2], state_scales=own[2], state_low=own[3][:, :, :-1])
    layer.bind_kv_cache(*own[:2], state_scales=own[2], state_low=own[3])
    for got, want in zip(run(runtime, layer), expected, strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("tp", [1, 2])
def test_ranks_add_up(runtime, kernels_of, tp):
    kernels = kernels_of("interleaved", "norm")
    ranks = [
        run(runtime, make_layer(kernels, "interleaved", tp_size=tp, tp_rank=rank))
        for rank in range(tp)
    ]
    assert worst_error([sum(parts) for parts in zip(*ranks, strict=True)]) < 2e-5


def test_all_reduce_is_of_the_caller(runtime, kernels_of):
    kernels, seen = kernels_of("interleaved", "norm"), []

    def reduce(x):
        seen.append(x.shape)
        return x * 0 + 3

    layer = make_layer(kernels, "interleaved", tp_size=2, tp_rank=1, all_reduce=reduce)
    assert all((output == 3).all() for output in run(runtime, layer))
    assert seen == [(sum(n), HIDDEN) for n in LENGTHS]


def test_layouts_of_states_have_the_same_bits(runtime, kernels_of):
    kernels = kernels_of("split", "core")
    results = []
    for options in ({}, {"conv_state_layout": "DS"}, {"num_spec": 2}):
        results.append(run(runtime, make_layer(kernels, "separate", **options)))
    for other in results[1:]:
        assert all(a.tobytes() == b.tobytes() for a, b in zip(results[0], other, strict=True))


def test_gate_of_the_norm(runtime, kernels_of, tool, tmp_path):
    options = ("--layout=split", "--outputs=core", "--has-initial")
    path = compile_image(tool, tmp_path, *options, extra=', "output_gate_type": "sigmoid"')
    sigmoids = layer_kernels(runtime.device(), runtime.image(path))
    config = SimpleNamespace(**vars(CONFIG), output_gate_type="sigmoid")
    for each in (config, CONFIG):
        layer = make_layer(sigmoids, "separate", each)
        assert worst_error(run(runtime, layer), "sigmoid") < 2e-5
    config.output_gate_type = "swish"
    assert make_layer(kernels_of("split", "core"), "separate", config).output_gate == "silu"
    config.output_gate_type = "gelu"
    with pytest.raises(ValueError, match="output_gate_type: expected silu, swish, sigmoid, got g"):
        make_layer(kernels_of("split", "core"), "separate", config)
    with pytest.raises(ValueError, match="gate: expected silu, swish, sigmoid, got gelu"):
        rms_norm_gated(np.ones(2), np.ones(2), np.ones(2), 0, "gelu")


def test_norm_constants_serve_every_gate_and_epsilon(runtime, tool, tmp_path):
    """One image gives the bits of images that were made for the layer."""
    options = ("--layout=flat", "--outputs=norm", "--has-initial")
    path = compile_image(tool, tmp_path, *options, "--norm-constants")
    shared = layer_kernels(runtime.device(), runtime.image(path))
    assert shared["decode"]._image.attributes("decode")["norm_eps"] == "argument"
    for gate in ("silu", "sigmoid"):
        config = SimpleNamespace(**vars(CONFIG), output_gate_type=gate)
        own = compile_image(tool, tmp_path, *options, extra=f', "output_gate_type": "{gate}"')
        kernels = layer_kernels(runtime.device(), runtime.image(own))
        outputs = run(runtime, make_layer(shared, "flat", config))
        assert worst_error(outputs, gate) < 2e-5
        assert all(
            (a == b).all()
            for a, b in zip(outputs, run(runtime, make_layer(kernels, "flat", config)), strict=True)
        )
    # The other epsilon shows.
    config.rms_norm_eps = 1.0
    assert worst_error(run(runtime, make_layer(shared, "flat", config)), "sigmoid") > 1e-2


def test_norm_constants_need_a_norm(tool, tmp_path):
    result = tool(
        "gdn-compile", "--preset=qwen3.5-4b", "--outputs=core", "--norm-constants", "--emit=gdn"
    )
    assert result.returncode != 0
    expected = "norm constants expect the outputs norm or both, but got core"
    assert expected in result.stderr


def test_projections_are_injected(runtime, kernels_of):
    """As quantised ones would be: without a weight in the checkpoint."""
    weights = make_weights("interleaved")
    qkvz = weights.pop("in_proj_qkvz.weight")
    calls = []

    def projection(x):
        calls.append(x.shape)
        return x @ qkvz.T

    layer = GatedDeltaNetAttention(
        CONFIG,
        kernels_of("interleaved", "norm"),
        weights,
        model_dtype="float32",
        projections={"in_proj_qkvz": projection},
    )
    conv, ssm = layer.get_state_shape()
    layer.bind_kv_cache(np.zeros((SLOTS, *conv), np.float32), np.zeros((SLOTS, *ssm), np.float32))
    assert worst_error(run(runtime, layer)) < 2e-5
    assert len(calls) == len(LENGTHS)
    with pytest.raises(ValueError, match=r"projections: expected in_proj_qkvz, .* got lm_head"):
        make_layer(kernels_of("split", "core"), "flat", projections={"lm_head": projection})


def test_split_of_interleaved_projections(kernels_of):
    """Every element by its index map."""
    layer = make_layer(kernels_of("split", "core"), "interleaved")
    share, block = HV // HK, 2 * D + 2 * (HV // HK) * D
    x = np.arange(2 * HK * block).reshape(2, -1)
    y = np.arange(2 * 2 * HV).reshape(2, -1)
    q, k, v, z, b, a = layer.fix_query_key_value_ordering(x, y)
    for g in range(HK):
        assert (q[:, g] == x[:, g * block : g * block + D]).all()
        assert (k[:, g] == x[:, g * block + D : g * block + 2 * D]).all()
        for r in range(share):
            first = g * block + 2 * D + r * D
            assert (v[:, g * share + r] == x[:, first : first + D]).all()
            first += share * D
            assert (z[:, g * share + r] == x[:, first : first + D]).all()
            assert (b[:, g * share + r] == y[:, 2 * share * g + r]).all()
            assert (a[:, g * share + r] == y[:, 2 * share * g + share + r]).all()


def test_profile_run(kernels_of):
    """Before there is a cache, and with one, which stays as it is."""
    layer = GatedDeltaNetAttention(
        CONFIG, kernels_of("split", "core"), make_weights("flat"), order="flat"
    )
    for _ in range(2):
        output = np.full((5, HIDDEN), np.nan, np.float32)
        layer.forward(np.ones((5, HIDDEN), np.float32), output)
        assert (output == 0).all()
        if layer.kv_cache is None:
            shapes = layer.get_state_shape()
            layer.bind_kv_cache(*(np.ones((SLOTS, *s), np.float32) for s in shapes))
    assert all((cache == 1).all() for cache in layer.kv_cache)


def test_refusals(runtime, kernels_of):
    kernels = kernels_of("split", "core")
    context = {}
    make_layer(kernels, "flat", prefix="model.layers.0", static_forward_context=context)
    assert list(context) == ["model.layers.0"]
    with pytest.raises(ValueError, match=r"expected a name of its own, got model\.layers\.0 tw"):
        make_layer(kernels, "flat", prefix="model.layers.0", static_forward_context=context)
    layer = GatedDeltaNetAttention(CONFIG, kernels, make_weights("flat"), order="flat")
    builder = GDNAttentionMetadataBuilder.from_options(runtime, max_num_seqs=4, max_num_tokens=64)
    metadata = metadata_of(builder, np.zeros(2, np.int32), (1, 1))
    with pytest.raises(ValueError, match="kv_cache: expected bind_kv_cache before a step"):
        layer.forward(np.ones((2, HIDDEN), np.float32), np.ones((2, HIDDEN)), metadata)
    with pytest.raises(ValueError, match=r"conv_state: expected slots of \[3, 512\], got \[512, 3"):
        layer.bind_kv_cache(np.zeros((2, 512, 3)), np.zeros((2, HV, D, D)))
    with pytest.raises(ValueError, match="order: expected flat for kernels with that, got interl"):
        make_layer(kernels_of("flat", "core"), "interleaved")


def test_weights_fit_the_configuration(kernels_of):
    """What is cut to fit gives a layer that runs, of another model."""
    kernels, good = kernels_of("split", "core"), make_weights("flat")
    more = SimpleNamespace(**vars(CONFIG) | {"linear_num_value_heads": HV + HK})
    for config in (more, SimpleNamespace(**vars(CONFIG) | {"hidden_size": HIDDEN + 8})):
        with pytest.raises(ValueError, match=r": expected \[.*\] by the configuration, got \["):
            GatedDeltaNetAttention(config, kernels, good, order="flat")
    rows = len(good["in_proj_qkvz.weight"])
    wrong = {
        "in_proj_qkvz.weight": (good["in_proj_qkvz.weight"][:-D], [rows, HIDDEN]),
        "conv1d.weight": (good["conv1d.weight"][:, :, :3], [rows - HV * D, 1, 4]),
        "A_log": (good["A_log"].reshape(1, 1, HV, 1), [HV]),
        "dt_bias": (np.tile(good["dt_bias"], D), [HV]),
        "norm.weight": (good["norm.weight"][: D // 2], [D]),
        "out_proj.weight": (good["out_proj.weight"].T, [HIDDEN, HV * D]),
    }
    for name, (weight, expected) in wrong.items():
        text = f"{name}: expected {expected} by the configuration, got {list(weight.shape)}"
        for rank in ({}, {"tp_size": 2, "tp_rank": 1}):
            with pytest.raises(ValueError) as caught:
                GatedDeltaNetAttention(CONFIG, kernels, good | {name: weight}, order="flat", **rank)
            assert str(caught.value) == text
    # Convolutions have no middle dimension in some checkpoints.
    flat = good | {"conv1d.weight": good["conv1d.weight"][:, 0]}
    GatedDeltaNetAttention(CONFIG, kernels, flat, order="flat")


@pytest.mark.parametrize("tp_size", [1, 2])
def test_merged_gates_beside_separate_projections(runtime, kernels_of, tp_size):
    """As adapters split a layer: in_proj_qkv and in_proj_z, and in_proj_ba as it was."""
    weights = make_weights("separate")
    b, a = weights.pop("in_proj_b.weight"), weights.pop("in_proj_a.weight")
    weights["in_proj_ba.weight"] = np.concatenate([b, a])
    total = [0.0 for _ in LENGTHS]
    for rank in range(tp_size):
        layer = GatedDeltaNetAttention(
            CONFIG,
            kernels_of("split", "core"),
            weights,
            tp_size=tp_size,
            tp_rank=rank,
            model_dtype="float32",
        )
        conv, ssm = layer.get_state_shape()
        caches = (np.zeros((SLOTS, *shape), np.float32) for shape in (conv, ssm))
        layer.bind_kv_cache(*caches)
        total = [sum(pair) for pair in zip(total, run(runtime, layer), strict=True)]
    assert worst_error(total) < 2e-5


def test_what_the_image_says_of_the_norm(runtime, tool, tmp_path):
    """OLMo-Hybrid's layers have an epsilon of their own, whatever the configuration has for
    its other norms."""
    options = ["--preset=olmo-hybrid-7b", "--io=f32", "--layout=split", "--outputs=core"]
    path = tmp_path / "olmo.gdnk"
    done = tool("gdn-compile", *options, "--only=decode", "--target=native", "-o", path)
    assert done.returncode == 0, done.stderr
    image = runtime.image(path)
    facts = image.attributes("decode")
    assert (facts["norm_eps"], facts["output_gate"], facts["doubled_beta"]) == (
        "1e-05",
        "silu",
        "1",
    )
    kernels = layer_kernels(runtime.device(), image)
    layer = GatedDeltaNetAttention(CONFIG, kernels, make_weights("flat"), order="flat")
    assert (layer.layer_norm_epsilon, CONFIG.rms_norm_eps) == (1e-5, 1e-6)
    config = SimpleNamespace(**vars(CONFIG), output_gate_type="sigmoid")
    with pytest.raises(
        ValueError, match="output_gate_type: expected silu, that of the image, got s"
    ):
        GatedDeltaNetAttention(config, kernels, make_weights("flat"), order="flat")


def test_kernels_that_make_no_layer(runtime, kernels_of, tool, tmp_path):
    weights = make_weights("flat")
    with pytest.raises(ValueError, match="kernels: expected at least one, got none"):
        GatedDeltaNetAttention(CONFIG, {}, weights, order="flat")
    with pytest.raises(
        ValueError, match=r"expected one of the outputs core and out of .*, got both"
    ):
        GatedDeltaNetAttention(CONFIG, kernels_of("split", "both"), weights, order="flat")
    options = ["--preset=qwen3.5-0.8b", "--io=f32,bf16", "--state=f32", "--only=decode"]
    path = tmp_path / "two.gdnk"
    done = tool("gdn-compile", *options, "--target=native", "-o", path)
    assert done.returncode == 0, done.stderr
    image = runtime.image(path)
    with pytest.raises(ValueError, match="suffix: expected one of '_bf16_f32', '_f32_f32', for"):
        layer_kernels(runtime.device(), image)
    assert list(layer_kernels(runtime.device(), image, "_f32_f32")) == ["decode"]
    missing = {n: w for n, w in weights.items() if n != "in_proj_ba.weight"}
    with pytest.raises(ValueError, match="projections: expected in_proj_qkvz and in_proj_ba, or"):
        GatedDeltaNetAttention(CONFIG, kernels_of("split", "core"), missing, order="flat")
    for name in ("conv1d.weight", "A_log", "dt_bias"):
        missing = {n: w for n, w in weights.items() if n != name}
        with pytest.raises(ValueError, match=f"{name}: expected a weight, got none"):
            GatedDeltaNetAttention(CONFIG, kernels_of("split", "core"), missing, order="flat")
    for name, value in (("hidden_act", "gelu"), ("rms_norm_eps", np.nan), ("rms_norm_eps", -1e-6)):
        other = SimpleNamespace(**vars(CONFIG) | {name: value})
        with pytest.raises(ValueError, match=f"{name}: expected .*, got {value}"):
            GatedDeltaNetAttention(other, kernels_of("split", "core"), weights, order="flat")


@pytest.mark.skipif(importlib.util.find_spec("torch") is not None, reason="PyTorch is there")
def test_torch_is_asked_for_by_name():
    with pytest.raises(ImportError, match="torch_gated_delta_net: expected PyTorch to be instal"):
        importlib.import_module("gdn.layers.attention.torch_gated_delta_net")


def layers_over_ranks(layers: list[GatedDeltaNetAttention], planned: bool) -> None:
    """Three steps of two sequences, whose tokens are spread over ranks in threads."""
    size = len(layers)
    group = ThreadExchange.group(size, timeout=5)
    for step, (lengths, hidden, want) in enumerate(
        zip(LENGTHS, hidden_states(), expected_outputs(), strict=True)
    ):

        def prefill(rank, step=step, lengths=lengths, hidden=hidden):
            ends = [[length * r // size for r in range(size + 1)] for length in lengths]
            first, second = (range(e[rank], e[rank + 1]) for e in ends)
            rows = [*first, *(lengths[0] + t for t in second)]
            output = np.full((len(rows) + 1, HIDDEN), 7, np.float32)
            layer, ranks = layers[rank], ContextParallel(group[rank])
            places = {"slots": np.array([1, 3]), "cu_seqlens": np.array([0, len(first), len(rows)])}
            places["has_initial"] = np.full(2, step > 0)
            if planned:
                places = {"plan": plan_over_ranks(layer, ranks, hidden[rows], **places)}
                ranks = None
            prefill_over_ranks(layer, ranks, hidden[rows], output, **places)
            assert (output[-1] == 7).all()
            return rows, output[:-1]

        with ThreadPoolExecutor(size) as threads:
            results = list(threads.map(prefill, range(size)))
        found = np.empty((sum(lengths), HIDDEN), np.float32)
        for rows, output in results:
            found[rows] = output
        assert relative_error(found, want) < 2e-5
    for layer in layers[1:]:
        for own, first in zip(layer.kv_cache, layers[0].kv_cache, strict=True):
            assert np.array_equal(own, first, equal_nan=True)


@pytest.mark.usefixtures("compiler_on_path")
@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize(
    ("order", "layout", "states"),
    [("interleaved", "interleaved", "SD"), ("flat", "flat", "DS"), ("separate", "split", "SD")],
)
def test_prefill_over_ranks(kernels_of, order, layout, states, size):
    """Without a plan and with one: windows have the same bits, states nearly."""
    pools = []
    for planned in (False, True):
        kernels, options = kernels_of(layout, "norm"), {"conv_state_layout": states, "num_spec": 2}
        layers = [make_layer(kernels, order, **options) for _ in range(size)]
        layers_over_ranks(layers, planned)
        pools.append(layers[0].kv_cache)
    (conv, ssm), (planned_conv, planned_ssm) = pools
    assert np.array_equal(conv, planned_conv, equal_nan=True)
    assert relative_error(planned_ssm[[1, 3]], ssm[[1, 3]]) < 1e-5


def test_prefill_over_ranks_needs_states(kernels_of):
    layer = make_layer(kernels_of("flat", "norm"), "flat")
    layer.kv_cache = None
    with pytest.raises(ValueError, match="kv_cache: expected bind_kv_cache before a step"):
        prefill_over_ranks(layer, None, hidden_states()[0], None, None, None)
    with pytest.raises(ValueError, match="kv_cache: expected bind_kv_cache before a step"):
        plan_over_ranks(layer, None, hidden_states()[0], None, None)


def test_prefill_over_ranks_has_one_batch(kernels_of):
    """That of a plan, or that of the arguments."""
    layer = make_layer(kernels_of("flat", "norm"), "flat")
    with pytest.raises(ValueError, match="plan: expected no cu_seqlens beside it, as it has its"):
        prefill_over_ranks(layer, None, None, None, cu_seqlens=np.array([0]), plan=object())
    with pytest.raises(ValueError, match="plan: expected one, or ranks, slots and cu_seqlens, got"):
        prefill_over_ranks(layer, None, None, None, np.array([1]), np.array([0, 1]))
