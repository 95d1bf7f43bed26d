# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""GatedDeltaNetAttention.from_config and load_weights: the names of each family's checkpoints,
ranks, what is missing, and what is refused; of NumPy arrays, and of tensors where PyTorch is."""

from types import SimpleNamespace

import numpy as np
import pytest
from gdn_layer_model import relative_error
from test_gated_delta_net import (
    HIDDEN,
    HK,
    HV,
    SLOTS,
    D,
    expected_outputs,
    hidden_states,
    make_weights,
    metadata_of,
    run,
)

from gdn import Runtime
from gdn.layers.attention import (
    GatedDeltaNetAttention,
    GDNAttentionMetadataBuilder,
    LayerHeads,
    layer_kernels,
    shard_weights,
)
from gdn.layers.attention.layer_weights import LayerWeights

HEADS = LayerHeads(HK, HV, D, D)
PREFIX = "model.layers.3.linear_attn."


def config(model_type: str, **extra) -> dict:
    """As a config.json has it."""
    return {
        "model_type": model_type,
        "hidden_size": HIDDEN,
        "num_hidden_layers": 4,
        "linear_num_key_heads": HK,
        "linear_num_value_heads": HV,
        "linear_key_head_dim": D,
        "linear_value_head_dim": D,
        "linear_conv_kernel_dim": 4,
        "rms_norm_eps": 1e-6,
        "hidden_act": "silu",
        "dtype": "float32",
    } | extra


OLMO = config("olmo_hybrid", linear_allow_neg_eigval=False)


@pytest.fixture(scope="module")
def runtime(build_dir):
    return Runtime(build_dir / "lib/libgdnrt.so")


@pytest.fixture(scope="module")
def kernels_of(runtime, tool, tmp_path_factory):
    """Kernels of a family and a layout, compiled once."""
    import json

    made = {}

    def get(given: dict, layout: str):
        key = given["model_type"], layout, str(given)
        if key not in made:
            folder = tmp_path_factory.mktemp("layer")
            path = folder / "config.json"
            # Sizes of heads and hidden states are symbols of an image.
            path.write_text(json.dumps(given))
            options = ("--io=f32", "--state=f32", f"--layout={layout}", "--outputs=core")
            options += ("--has-initial", "--target=native")
            done = tool("gdn-compile", "--config", path, *options, "-o", folder / "layer.gdnk")
            assert done.returncode == 0, done.stderr
            image = runtime.image(folder / "layer.gdnk")
            made[key] = layer_kernels(runtime.device(), image)
        return made[key]

    return get


def as_olmo(weights: dict, *, conv_apart: bool = False) -> dict:
    """The same numbers by OLMo-Hybrid's names."""
    weights = dict(weights)
    keys = HK * D
    q, k, v = np.split(weights.pop("in_proj_qkv.weight"), [keys, 2 * keys])
    new = {"q_proj": q, "k_proj": k, "v_proj": v, "o_norm": weights.pop("norm.weight")}
    new |= {"g_proj": weights.pop("in_proj_z.weight"), "o_proj": weights.pop("out_proj.weight")}
    new |= {f"{n}_proj": weights.pop(f"in_proj_{n}.weight") for n in ("a", "b")}
    if conv_apart:
        parts = np.split(weights.pop("conv1d.weight"), [keys, 2 * keys])
        names = ("q_conv1d", "k_conv1d", "v_conv1d")
        new |= dict(zip(names, (part[:, 0] for part in parts), strict=True))
    return weights | {f"{name}.weight": array for name, array in new.items()}


def bind(layer) -> None:
    shapes = layer.get_state_shape()
    layer.bind_kv_cache(*(np.full((SLOTS, *shape), np.nan, np.float32) for shape in shapes))


def make(given, kernels, weights=None, **options):
    layer = GatedDeltaNetAttention.from_config(given, kernels, **options)
    if weights is not None:
        assert layer.load_weights(weights) == set(weights)
        bind(layer)
    return layer


def worst(outputs, eps=1e-6) -> float:
    return max(map(relative_error, outputs, expected_outputs(eps=eps)))


@pytest.mark.parametrize(
    ("given", "layout", "weights", "eps"),
    [
        (config("qwen3_next"), "interleaved", make_weights("interleaved"), 1e-6),
        (config("qwen3_next"), "split", make_weights("interleaved"), 1e-6),
        (config("qwen3_5_text"), "flat", make_weights("separate"), 1e-6),
        (config("qwen3_5_text"), "split", make_weights("flat"), 1e-6),
        (OLMO, "split", as_olmo(make_weights("separate")), 1e-5),
        (OLMO, "split", as_olmo(make_weights("separate"), conv_apart=True), 1e-5),
    ],
)
def test_names_of_checkpoints(runtime, kernels_of, given, layout, weights, eps):
    layer = make(given, kernels_of(given, layout), weights)
    assert worst(run(runtime, layer), eps) < 2e-5


def test_ranks_add_up(runtime, kernels_of):
    """Each in two calls, by the names of a whole model."""
    given = config("qwen3_5_text")
    weights = {PREFIX + n: w for n, w in make_weights("separate").items()}
    others = {"model.layers.13.linear_attn.A_log": np.zeros(1)}
    outputs = []
    for rank in range(2):
        layer = make(given, kernels_of(given, "split"), tp_size=2, tp_rank=rank)
        names = sorted(weights)
        for part in (names[:4], names[4:]):
            taken = layer.load_weights(
                [(n, weights[n]) for n in part] + [*others.items()], prefix=PREFIX
            )
            assert taken == set(part)
        bind(layer)
        outputs.append(run(runtime, layer))
    assert worst([sum(parts) for parts in zip(*outputs, strict=True)]) < 2e-5


@pytest.mark.parametrize("order", ["interleaved", "flat", "separate"])
def test_shares_are_those_of_the_library(runtime, order):
    weights = make_weights(order)
    flat = "flat" if order == "separate" else order
    for rank in range(2):
        wanted = shard_weights(runtime, HEADS, weights, 2, rank, flat)
        names = [name.removesuffix(".weight") for name in weights]
        sizes = {"hidden_size": HIDDEN, "conv_width": 4, "tp_size": 2, "tp_rank": rank}
        parts = LayerWeights(HEADS, names, order=flat, **sizes)
        own = {name: np.full(parts.shape(name), np.nan, np.float32) for name in names}
        assert parts.load(own, weights) == set(weights) and not parts.missing(own)
        for name, array in wanted.items():
            np.testing.assert_array_equal(own[name.removesuffix(".weight")], array)


@pytest.mark.parametrize(
    ("given", "weights", "left", "missing"),
    [
        (config("qwen3_5_text"), make_weights("separate"), "in_proj_z.weight", "in_proj_z.weight"),
        (config("qwen3_5_text"), make_weights("flat"), "in_proj_ba.weight", "in_proj_ba.weight"),
        (config("qwen3_5_text"), make_weights("flat"), "dt_bias", "dt_bias"),
        (OLMO, as_olmo(make_weights("separate")), "g_proj.weight", "g_proj.weight"),
        (OLMO, as_olmo(make_weights("separate")), "o_norm.weight", "o_norm.weight"),
        (OLMO, as_olmo(make_weights("separate")), "conv1d.weight", "conv1d.weight"),
    ],
)
def test_nothing_runs_without_weights(kernels_of, given, weights, left, missing):
    layer = make(given, kernels_of(given, "split"))
    layer.load_weights({name: w for name, w in weights.items() if name != left})
    output = np.full((3, HIDDEN), 7, np.float32)
    with pytest.raises(ValueError, match=f"expected load_weights to bring {missing}$"):
        layer.forward(np.zeros((3, HIDDEN), np.float32), output)
    with pytest.raises(ValueError, match=f"expected load_weights to bring {missing}$"):
        bind(layer)
    assert (output == 7).all()


def test_weights_are_replaced_in_place(runtime, kernels_of):
    given, weights = config("qwen3_5_text"), make_weights("flat")
    layer = make(given, kernels_of(given, "split"), {n: 2 * w for n, w in weights.items()})
    layer.load_weights(weights)
    assert worst(run(runtime, layer)) < 2e-5


@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        ("in_proj_q.weight", (1,), "in_proj_q.weight: expected one of conv1d, .*, got an unknown"),
        ("in_proj_z.weight", (HV * D, 9), r"in_proj_z.weight: expected \[256, 48\] by the conf.*9"),
        ("A_log", (HV, 1), r"A_log: expected \[4\] by the configuration, got \[4, 1\]"),
    ],
)
def test_refused_tensors(kernels_of, name, shape, message):
    given = config("qwen3_5_text")
    layer = make(given, kernels_of(given, "split"))
    with pytest.raises(ValueError, match=message):
        layer.load_weights({name: np.zeros(shape, np.float32)})


def test_unknown_tensors_are_left_without_strict(kernels_of):
    given = config("qwen3_5_text")
    layer = make(given, kernels_of(given, "split"))
    some = {"rotary.inv_freq": np.zeros(1), "dt_bias": np.ones(HV, np.float32)}
    assert layer.load_weights(some, strict=False) == {"dt_bias"}
    twice = [(n, w) for n, w in make_weights("separate").items() if "qkv" in n]
    twice += [("q_proj.weight", np.zeros((HK * D, HIDDEN), np.float32))]
    with pytest.raises(
        ValueError, match=r"q_proj.weight: expected q once, got it also as in_proj_q"
    ):
        layer.load_weights(twice)


def test_projections_of_the_caller(runtime, kernels_of):
    given, weights = config("qwen3_5_text"), make_weights("separate")
    own = {n: weights[f"{n}.weight"] for n in ("in_proj_qkv", "in_proj_z", "out_proj")}
    calls = {name: (lambda w: lambda x: x @ w.T)(array) for name, array in own.items()}
    layer = make(given, kernels_of(given, "split"), projections=calls)
    rest = {n: w for n, w in weights.items() if n.removesuffix(".weight") not in own}
    assert layer.load_weights(weights) == set(rest)
    bind(layer)
    assert worst(run(runtime, layer)) < 2e-5
    with pytest.raises(ValueError, match="projections: expected in_proj_qkvz and in_proj_ba for q"):
        make(config("qwen3_next"), kernels_of(given, "split"), projections=calls)


def test_types_of_the_configuration(kernels_of):
    given = config("qwen3_5_text")
    kernels = kernels_of(given, "split")
    assert make(given, kernels).get_state_dtype() == ("float32", "float32")
    of_transformers = SimpleNamespace(to_dict=lambda: given)
    assert make(of_transformers, kernels).hidden_size == HIDDEN
    half = given | {"dtype": "float16", "mamba_ssm_dtype": "float32"}
    assert make(half, kernels).get_state_dtype() == ("float16", "float32")
    layer = make(half, kernels, model_dtype="bfloat16", mamba_ssm_cache_dtype="auto")
    assert layer.get_state_dtype() == ("bfloat16", "bfloat16")


def test_kernels_of_another_model(kernels_of):
    kernels = kernels_of(config("qwen3_5_text"), "split")
    doubled = config("olmo_hybrid", linear_allow_neg_eigval=True)
    with pytest.raises(
        ValueError, match=r"kernels: expected .* with doubled_beta 1 by the conf.* 0"
    ):
        make(doubled, kernels)
    with pytest.raises(
        ValueError, match=r"kernels: expected .* with norm_eps 1e-05 by .*, got 1e-06"
    ):
        make(OLMO, kernels)
    with pytest.raises(ValueError, match="with output_gate sigmoid by the configuration, got silu"):
        make(config("qwen3_5_text", output_gate_type="sigmoid"), kernels)
    with pytest.raises(ValueError, match="weights: expected those of a layer, or from_config"):
        GatedDeltaNetAttention(None, kernels, None)


def test_tensors_with_gradients(runtime, kernels_of):
    """The module of PyTorch: parameters of any device but a guessed one, weights that somebody
    trains."""
    torch = pytest.importorskip("torch")
    from gdn.layers.attention import torch_gated_delta_net

    given, module = config("qwen3_5_text"), torch_gated_delta_net.GatedDeltaNetAttention
    kernels = kernels_of(given, "split")
    with pytest.raises(ValueError, match=r"device: expected that of the weights.* got none"):
        module.from_config(given, kernels)
    layer = module.from_config(given, kernels, device="cpu")
    weights = {n: torch.tensor(w) for n, w in make_weights("separate").items()}
    trained = {n: torch.nn.Parameter(w) for n, w in weights.items()}
    last = trained.pop("A_log")
    layer.load_weights(trained.items())
    with pytest.raises(ValueError, match=r"weights: expected load_weights to bring A_log$"):
        layer.get_state_shape()
    with pytest.raises(ValueError, match="A_log: expected a tensor, as the layer has, got ndarray"):
        layer.load_weights({"A_log": np.zeros(HV, np.float32)})
    assert layer.load_weights({"A_log": last}) == {"A_log"}
    assert not any(parameter.requires_grad for parameter in layer.parameters())
    conv, ssm = layer.get_state_shape()
    layer.bind_kv_cache(torch.zeros(SLOTS, *conv), torch.zeros(SLOTS, *ssm))
    builder = GDNAttentionMetadataBuilder.from_options(runtime, max_num_seqs=4, max_num_tokens=64)
    hidden = torch.tensor(hidden_states()[0])
    output = torch.full((len(hidden), HIDDEN), torch.nan)
    layer(hidden, output, metadata_of(builder, np.zeros(2, np.int32), (5, 9)))
    assert relative_error(output.numpy(), expected_outputs()[0]) < 2e-5
