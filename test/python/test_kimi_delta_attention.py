# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""KimiDeltaAttention from hidden states to output: the layers of each family of models against
float64, tensors by every name, and what tensor-parallel ranks have of the whole layer."""

import importlib.util
import json

import model_configs
import numpy as np
import pytest

from gdn import ConfigError, GdnError, ModelConfig, Runtime
from gdn import kda_layer_problem as problem
from gdn.kda_layer_problem import SLOTS
from gdn.layers.attention import (
    CommonAttentionMetadata,
    GDNAttentionMetadataBuilder,
    KimiDeltaAttention,
    layer_kernels,
)

H, D, HIDDEN = 4, 16, 24


def small(config: dict, **linear) -> dict:
    """A model's configuration with few and small heads."""
    config = config | {"num_hidden_layers": 4, "hidden_size": HIDDEN, "dtype": "float32"}
    config.pop("torch_dtype", None)
    config.pop("layer_types", None)
    if "linear_attn_config" in config:
        heads = {"num_heads": H, "head_dim": D, "short_conv_kernel_size": 4}
        return config | {"linear_attn_config": heads | linear}
    if "linear_num_heads" in config:
        return config | {"linear_num_heads": H, "linear_head_dim": D}
    return config | {"num_attention_heads": H, "head_dim": D, "layer_group_size": 2}


MODELS = {
    "kimi-linear": small(model_configs.KIMI),
    "kimi-k3": small(model_configs.K3, gate_lower_bound=-5, use_full_rank_gate=True),
    "glm": small(model_configs.GLM),
    "ling": small(model_configs.LING),
}


@pytest.fixture(scope="module")
def runtime(build_dir):
    return Runtime(build_dir / "lib/libgdnrt.so")


@pytest.fixture(scope="module")
def kernels_of(runtime, tool, tmp_path_factory):
    """Kernels of a model, compiled once."""
    made = {}

    def get(name: str, outputs: str = "norm"):
        if (name, outputs) not in made:
            folder = tmp_path_factory.mktemp("layer")
            (folder / "config.json").write_text(json.dumps(MODELS[name]))
            options = ["--io=f32", "--state=f32", f"--outputs={outputs}", "--has-initial"]
            done = tool(
                "gdn-compile",
                f"--config={folder / 'config.json'}",
                *options,
                "--target=native",
                "-o",
                folder / "layer.gdnk",
            )
            assert done.returncode == 0, done.stderr
            image = runtime.image(folder / "layer.gdnk")
            made[name, outputs] = layer_kernels(runtime.device(), image)
        return made[name, outputs]

    return get


def checkpoint(name: str) -> dict[str, np.ndarray]:
    """Tensors of a layer, by the model's names; rates of Kimi-Linear are as in its checkpoints."""
    weights = problem.checkpoint(ModelConfig.from_config(MODELS[name]))
    if name == "kimi-linear":
        weights["A_log"] = weights["A_log"].reshape(1, 1, H, 1)
    return weights


def native(weights: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The same as transformers has them."""
    convs = [weights[f"{n}_conv1d.weight"] for n in "qkv"]
    found = {n: w for n, w in weights.items() if "conv1d" not in n}
    found["conv1d.weight"] = np.concatenate(convs)
    return {
        f"forget_gate.{n}" if n.startswith(("f_", "A_log", "dt_bias")) else n: w
        for n, w in found.items()
    }


def hidden_states() -> list[np.ndarray]:
    return problem.hidden_states(ModelConfig.from_config(MODELS["glm"]))


def expected(name: str) -> tuple[list[np.ndarray], list[np.ndarray]]:
    return problem.expected(ModelConfig.from_config(MODELS[name]))


def make_layer(kernels, name: str, weights=None, **options) -> KimiDeltaAttention:
    weights = checkpoint(name) if weights is None else weights
    layer = KimiDeltaAttention(MODELS[name], kernels, weights, **options)
    conv, ssm = layer.get_state_shape()
    assert layer.get_state_dtype() == ("float32", "float32")
    # Nothing of a new request is read.
    layer.bind_kv_cache(
        np.full((SLOTS, *conv), np.nan, np.float32), np.full((SLOTS, *ssm), np.nan, np.float32)
    )
    return layer


def run(runtime, layer) -> list[np.ndarray]:
    builder = GDNAttentionMetadataBuilder.from_options(runtime, max_num_seqs=4, max_num_tokens=64)
    outputs = []
    for step, hidden in zip(problem.steps(), hidden_states(), strict=True):
        output = np.full((len(hidden) + 1, HIDDEN), 7, np.float32)
        layer.forward(hidden, output, builder.build(0, step))
        assert (output[-1] == 7).all()
        outputs.append(output[:-1])
    return outputs


def error(found: list[np.ndarray], wanted: list[np.ndarray]) -> float:
    return max(
        float(np.sqrt(((x - y) ** 2).mean() / (y**2).mean()))
        for x, y in zip(found, wanted, strict=True)
    )


@pytest.mark.parametrize("outputs", ["core", "norm"])
@pytest.mark.parametrize("name", MODELS)
def test_hidden_states_to_output(runtime, kernels_of, name, outputs):
    layer = make_layer(kernels_of(name, outputs), name)
    assert layer.mamba_type == "gdn_attention"
    assert error(run(runtime, layer), expected(name)[0]) < 2e-5


@pytest.mark.parametrize("name", MODELS)
def test_names_of_transformers(runtime, kernels_of, name):
    """In several calls, behind a prefix, beside another layer's."""
    layer = KimiDeltaAttention(MODELS[name], kernels_of(name))
    weights = {f"layers.3.self_attn.{n}": w for n, w in native(checkpoint(name)).items()}
    other = {"layers.4.self_attn.A_log": np.zeros(H, np.float32)}
    taken = set()
    for full in list(weights):
        part = {full: weights[full]} | other
        taken |= layer.load_weights(part, prefix="layers.3.self_attn.")
    assert taken == set(weights)
    same = make_layer(kernels_of(name), name)
    for array, wanted in zip(layer._own.values(), same._own.values(), strict=True):
        np.testing.assert_array_equal(array, wanted)


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("name", MODELS)
def test_ranks_have_slices_of_the_whole_layer(runtime, kernels_of, name, ranks):
    """Ahead of the last projection each rank has its heads of the whole layer, and the sum over
    the ranks is the whole output: there is nothing between them but that sum."""
    whole = make_layer(kernels_of(name), name)
    seen: dict[object, list[np.ndarray]] = {}

    def watch(layer):
        project = layer.out_proj

        def keep(x):
            seen.setdefault(layer, []).append(np.array(x))
            return project(x)

        layer.out_proj = keep
        return run(runtime, layer)

    outputs, sums = watch(whole), None
    for rank in range(ranks):
        layer = make_layer(kernels_of(name), name, tp_size=ranks, tp_rank=rank)
        assert [shape[-1 if n == 0 else 0] for n, shape in enumerate(layer.get_state_shape())] == [
            3 * H * D // ranks,
            H // ranks,
        ]
        found = watch(layer)
        columns = slice(rank * H * D // ranks, (rank + 1) * H * D // ranks)
        for part, all_of_it in zip(seen[layer], seen[whole], strict=True):
            np.testing.assert_allclose(part, all_of_it[:, columns], rtol=2e-5, atol=2e-6)
        sums = found if sums is None else [x + y for x, y in zip(sums, found, strict=True)]
    assert error(sums, outputs) < 1e-6
    assert error(sums, expected(name)[0]) < 2e-5


def test_all_reduce_gets_the_part_of_a_rank(runtime, kernels_of):
    parts = []
    options = {"tp_size": 2, "tp_rank": 1, "all_reduce": lambda x: parts.append(x) or 2 * x}
    layer = make_layer(kernels_of("glm"), "glm", **options)
    outputs = run(runtime, layer)
    for output, part in zip(outputs, parts, strict=True):
        np.testing.assert_array_equal(output, 2 * part)


# Rows, or columns, of each tensor: by heads, or all of it.
SHARES = {"f_a_proj": None, "g_a_proj": None, "o_norm": None, "o_proj": 1}


@pytest.mark.parametrize("name", MODELS)
def test_the_share_of_every_tensor(kernels_of, name):
    weights = checkpoint(name)
    for rank in range(2):
        layer = KimiDeltaAttention(MODELS[name], kernels_of(name), tp_size=2, tp_rank=rank)
        places = layer._parts._places(layer._own)
        for full, weight in weights.items():
            leaf = full.removesuffix(".weight")
            layer.load_weights({full: weight})
            section = leaf if leaf in places else layer._parts._known[leaf][0]
            array = weight.reshape(-1) if leaf == "A_log" else weight
            axis = SHARES.get(leaf, 0)
            if axis is not None:
                size = array.shape[axis] // 2
                array = np.take(array, range(rank * size, (rank + 1) * size), axis)
            np.testing.assert_array_equal(places[section], array, err_msg=full)
        assert not layer._parts.missing(layer._own)


def test_projections_of_the_caller(runtime, kernels_of):
    """Some or all of them; what is left is in the layer's own arrays."""
    weights = checkpoint("kimi-k3")
    leaves = [n.removesuffix(".weight") for n in weights if n.endswith("_proj.weight")]
    for given in (["q_proj", "f_a_proj"], ["f_b_proj", "o_proj"], leaves):
        calls = []

        def call(leaf, calls=calls):
            def projection(x):
                calls.append(leaf)
                return x @ weights[f"{leaf}.weight"].T

            return projection

        rest = {n: w for n, w in weights.items() if n.removesuffix(".weight") not in given}
        layer = make_layer(
            kernels_of("kimi-k3"),
            "kimi-k3",
            rest,
            projections={leaf: call(leaf) for leaf in given},
        )
        assert error(run(runtime, layer), expected("kimi-k3")[0]) < 2e-5
        assert set(calls) == set(given)
        # Tensors of theirs do no harm.
        assert layer.load_weights(weights) == set(rest)


def test_a_profile_run_touches_nothing(kernels_of):
    layer = make_layer(kernels_of("glm"), "glm")
    output = np.full((3, HIDDEN), 7, np.float32)
    layer.forward(hidden_states()[0][:3], output)
    assert not output.any()
    assert all(np.isnan(array).all() for array in layer.kv_cache)


def test_what_is_missing_is_named(kernels_of):
    layer = KimiDeltaAttention(MODELS["glm"], kernels_of("glm"))
    weights = checkpoint("glm")
    left_out = ("k_proj.weight", "f_b_proj.weight", "v_conv1d.weight", "A_log", "o_norm.weight")
    layer.load_weights({n: w for n, w in weights.items() if n not in left_out})
    with pytest.raises(ValueError, match="load_weights to bring") as raised:
        layer.forward(hidden_states()[0], np.zeros((14, HIDDEN), np.float32))
    assert all(name in str(raised.value) for name in left_out)
    assert "q_proj" not in str(raised.value) and "forget_gate" not in str(raised.value)


def test_wrong_tensors_are_refused(kernels_of):
    layer = KimiDeltaAttention(MODELS["glm"], kernels_of("glm"))
    weights = checkpoint("glm")
    for name, weight, said in (
        ("f_proj.weight", weights["q_proj.weight"], "f_proj.weight: expected one of .*f_a_proj"),
        ("q_proj.bias", np.zeros(H * D), "q_proj.bias: expected one of"),
        ("q_proj.weight", weights["q_proj.weight"][1:], r"q_proj.weight: expected \[64, 24\] by"),
        ("f_b_proj.weight", weights["f_a_proj.weight"], r"expected \[64, 16\] by .* \[16, 24\]"),
        ("dt_bias", np.zeros(H), r"dt_bias: expected \[64\] by the configuration, got \[4\]"),
        ("A_log", np.zeros((1, H)), r"A_log: expected \[4\] by the configuration, got \[1, 4\]"),
        ("A_log", np.zeros((1, 1, 3, 1)), r"A_log: expected \[4\] by .*, got \[3\]"),
    ):
        with pytest.raises(ValueError, match=said):
            layer.load_weights({name: weight})
    assert layer.load_weights({"q_proj.bias": np.zeros(H * D)}, strict=False) == set()
    twice = dict.fromkeys(("A_log", "forget_gate.A_log"), weights["A_log"])
    with pytest.raises(ValueError, match="expected A_log once, got it also as A_log"):
        layer.load_weights(twice)


@pytest.mark.parametrize("weight", [[0.0] * H, None, np.zeros(H, np.complex64)])
def test_what_is_no_tensor_is_refused(kernels_of, weight):
    layer = KimiDeltaAttention(MODELS["glm"], kernels_of("glm"))
    with pytest.raises(ValueError, match=r"A_log: expected (a NumPy array|real numbers)"):
        layer.load_weights({"A_log": weight})
    for shape in ((1, 1, H), (1, 1, 2, 2)):
        with pytest.raises(ValueError, match=r"A_log: expected \[4\] by the configuration, got"):
            layer.load_weights({"A_log": np.zeros(shape, np.float32)})


@pytest.mark.parametrize("outputs", ["core", "norm"])
def test_steps_without_tokens(runtime, kernels_of, outputs):
    """A rank may have nothing to do, with a step's metadata or without."""
    layer = make_layer(kernels_of("kimi-linear", outputs), "kimi-linear")
    builder = GDNAttentionMetadataBuilder.from_options(runtime, max_num_seqs=4, max_num_tokens=64)
    common = CommonAttentionMetadata(
        query_start_loc=np.zeros(1, np.int32),
        seq_lens=np.zeros(0, np.int32),
        num_reqs=0,
        num_actual_tokens=0,
        block_table_tensor=np.zeros((0, 1), np.int32),
    )
    output = np.full((1, HIDDEN), 7, np.float32)
    for metadata in (None, builder.build(0, common)):
        layer.forward(hidden_states()[0][:0], output, metadata)
    assert (output == 7).all() and all(np.isnan(array).all() for array in layer.kv_cache)


def test_outputs_without_room_are_refused_ahead_of_a_step(runtime, kernels_of):
    layer = make_layer(kernels_of("glm"), "glm")
    builder = GDNAttentionMetadataBuilder.from_options(runtime, max_num_seqs=4, max_num_tokens=64)
    hidden, metadata = hidden_states()[0], builder.build(0, problem.steps()[0])
    for shape in ((13, HIDDEN), (14, HIDDEN + 1), (14, 1), (14,)):
        with pytest.raises(
            ValueError, match=rf"output: expected the shape \[14 or more, {HIDDEN}\]"
        ):
            layer.forward(hidden, np.zeros(shape, np.float32), metadata)
    assert all(np.isnan(array).all() for array in layer.kv_cache)


def test_states_that_cannot_be_bound_leave_what_is(kernels_of):
    layer = make_layer(kernels_of("glm"), "glm")
    before = layer.kv_cache
    conv, ssm = ((SLOTS, *shape) for shape in layer.get_state_shape())
    with pytest.raises(GdnError, match="conv_pool: expected dtype f32"):
        layer.bind_kv_cache(np.zeros(conv, np.float64), np.zeros(ssm, np.float32))
    assert layer.kv_cache is before


def test_results_of_projections_are_checked(kernels_of):
    given = {"q_proj": lambda x: x[:, :H], "f_b_proj": lambda x: x}
    layer = make_layer(kernels_of("glm"), "glm", projections=given)
    output = np.zeros((14, HIDDEN), np.float32)
    with pytest.raises(ValueError, match=r"q_proj: expected a result \[14, 64\], got \[14, 4\]"):
        layer.forward(hidden_states()[0], output)


def test_layers_that_cannot_be_made(kernels_of):
    kernels = kernels_of("glm")
    for ranks, said in (
        ((2, -1), "tp_rank: expected 0 to 1, got -1"),
        ((2, 2), "tp_rank: expected 0 to 1, got 2"),
        ((0, 0), "tp_size: expected 1 or more, got 0"),
    ):
        with pytest.raises(ValueError, match=said):
            KimiDeltaAttention(MODELS["glm"], kernels, tp_size=ranks[0], tp_rank=ranks[1])
    with pytest.raises(ValueError, match=r"model_dtype: expected float32, .* got bf16"):
        KimiDeltaAttention(MODELS["glm"], kernels, model_dtype="bf16")
    with pytest.raises(ConfigError, match="model_type: expects one of"):
        KimiDeltaAttention({"model_type": "llama"}, kernels)
    with pytest.raises(ValueError, match="a decay of each channel, got qwen3_next"):
        KimiDeltaAttention(model_configs.SMALL, kernels)
    with pytest.raises(ValueError, match=r"with decay_bound None by the config.*, got -5\.0"):
        KimiDeltaAttention(MODELS["kimi-linear"], kernels)
    with pytest.raises(ValueError, match="with norm_eps 1e-06 by the configuration, got 1e-05"):
        KimiDeltaAttention(MODELS["ling"], kernels)
    with pytest.raises(ValueError, match="expected a multiple of 3 ranks, got 4"):
        KimiDeltaAttention(MODELS["glm"], kernels, tp_size=3)
    with pytest.raises(ValueError, match=r"projections: expected q_proj, .* got f_proj"):
        KimiDeltaAttention(MODELS["glm"], kernels, projections={"f_proj": abs})
    context: dict = {}
    KimiDeltaAttention(MODELS["glm"], kernels, prefix="a", static_forward_context=context)
    with pytest.raises(ValueError, match="prefix: expected a name of its own, got a twice"):
        KimiDeltaAttention(MODELS["glm"], kernels, prefix="a", static_forward_context=context)


def test_a_configuration_that_was_read(kernels_of):
    model = ModelConfig.from_config(MODELS["ling"])
    layer = KimiDeltaAttention(model, kernels_of("ling"))
    assert layer.model is model
    assert layer._parts.names[:2] == ("in_proj", "b_proj")


@pytest.mark.skipif(importlib.util.find_spec("torch") is not None, reason="PyTorch is there")
def test_torch_is_asked_for_by_name():
    with pytest.raises(ImportError, match="torch_kimi_delta_attention: expected PyTorch to be ins"):
        importlib.import_module("gdn.layers.attention.torch_kimi_delta_attention")


def test_modules_of_torch(runtime, kernels_of):
    torch = pytest.importorskip("torch")
    from gdn.layers.attention import torch_kimi_delta_attention

    module = torch_kimi_delta_attention.KimiDeltaAttention
    with pytest.raises(ValueError, match=r"device: expected .*, got none"):
        module(MODELS["kimi-k3"], kernels_of("kimi-k3"))
    layer = module(MODELS["kimi-k3"], kernels_of("kimi-k3"), device="cpu")
    weights = {n: torch.tensor(w) for n, w in checkpoint("kimi-k3").items()}
    shapes = {n: tuple(p.shape) for n, p in layer.named_parameters()}
    assert shapes["in_proj.weight"] == (4 * H * D + D, HIDDEN)
    assert shapes["conv1d.weight"] == (3 * H * D, 1, 4)
    assert {"A_log", "dt_bias", "f_b_proj.weight", "b_proj.weight"} < set(shapes)
    with pytest.raises(ValueError, match=r"load_weights to bring .*k_proj\.weight"):
        layer.get_state_shape()
    assert layer.load_weights(weights) == set(weights)
    conv, ssm = layer.get_state_shape()
    layer.bind_kv_cache(torch.zeros(SLOTS, *conv), torch.zeros(SLOTS, *ssm))
    wanted = run(runtime, make_layer(kernels_of("kimi-k3"), "kimi-k3"))

    class Wrapped:
        def forward(self, hidden, output, metadata):
            layer(torch.tensor(hidden), torch.from_numpy(output), metadata)

    assert error(run(runtime, Wrapped()), wanted) < 2e-5
