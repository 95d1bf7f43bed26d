# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""gdn.ModelConfig against gdn-compile: the same facts of configurations, and the same words for
those that are refused."""

import json
import re

import model_configs
import pytest
from conftest import ROOT
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import catalogue
from gdn import ConfigError, ModelConfig
from gdn.config_text import text_of

KEY = "full_attention_interval"
KIMI_NATIVE = model_configs.without(model_configs.KIMI, "linear_attn_config")
KIMI_NATIVE |= model_configs.NATIVE
BESIDE = [*model_configs.UNUSUAL, *model_configs.PRESETS.values()]


@pytest.fixture
def compiler(tool, tmp_path):
    """The facts that gdn-compile finds in a text, or what it says against it."""

    def read(text: str) -> dict | str:
        path = tmp_path / "config.json"
        path.write_text(text)
        done = tool("gdn-compile", "--config", path, "--emit=gdn")
        if done.returncode:
            (said,) = re.findall(r"error: (.*)", done.stderr)
            return said
        return catalogue.facts_of_program(done.stdout)

    read.path = tmp_path / "config.json"
    return read


def in_python(path) -> dict | str:
    try:
        return ModelConfig.from_config(path).facts()
    except ConfigError as error:
        return str(error)


@pytest.mark.parametrize("name", model_configs.PRESETS)
def test_a_preset_is_its_configuration(name, tool):
    done = tool("gdn-compile", f"--preset={name}", "--emit=gdn")
    config = ModelConfig.from_config(model_configs.PRESETS[name])
    assert config.facts() == catalogue.facts_of_program(done.stdout)


def test_there_are_configurations_of_all_presets(tool):
    text = tool("gdn-compile", "--help").stdout
    (names,) = re.findall(r"--preset=<name> .*?: (.*)$", text, re.MULTILINE)
    assert names.split(", ") == list(model_configs.PRESETS)


@pytest.mark.parametrize("config", BESIDE, ids=range(len(BESIDE)))
def test_facts_are_those_of_the_compiler(config, compiler):
    found = compiler(json.dumps(config))
    assert isinstance(found, dict), found
    assert in_python(compiler.path) == found
    assert ModelConfig.from_config(compiler.path.parent).facts() == found
    assert ModelConfig.from_config(config).facts() == found


@pytest.mark.parametrize("config", model_configs.MISTAKES, ids=range(len(model_configs.MISTAKES)))
def test_refusals_are_those_of_the_compiler(config, compiler):
    said = compiler(json.dumps(config, ensure_ascii=False))
    assert isinstance(said, str), said
    assert in_python(compiler.path) == said


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "[" * 100, '{"a": "\\"[[", "b": }', '{"model_type": "\udcff"}']
)
def test_text_that_is_no_configuration(text, compiler):
    text = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    said, found = compiler(text), in_python(compiler.path)
    assert isinstance(said, str) and isinstance(found, str)
    # Parsers of JSON have words of their own.
    assert found.split(": ")[:2] == said.split(": ")[:2]


@pytest.mark.parametrize("eps", ["1e400", "3.5e38", "1e-46", "-1e400", "9" * 400])
def test_an_epsilon_that_f32_does_not_hold(eps, compiler):
    """It would be infinite, or 0, which makes NaN of rows of zeros."""
    text = json.dumps(model_configs.SMALL | {"rms_norm_eps": "EPS"}).replace('"EPS"', eps)
    said = compiler(text)
    assert isinstance(said, str) and "rms_norm_eps: expects a positive number" in said
    assert in_python(compiler.path) == said


@pytest.mark.parametrize("config", [None, 3, b"config.json", [{}]])
def test_what_is_no_configuration(config):
    found = type(config).__name__
    with pytest.raises(TypeError, match=f"config: expected a mapping or a path, got {found}"):
        ModelConfig.from_config(config)


def test_ling_as_transformers_writes_it():
    """Its head_dim is that of the attention layers' rotary part, and it has no no_kda_lora."""
    named = {"linear_num_heads": 16, "linear_head_dim": 128, "linear_conv_kernel_dim": 3}
    found = model_configs.without(model_configs.LING, "no_kda_lora") | {"head_dim": 64} | named
    config = ModelConfig.from_config(found)
    assert (config.key_heads, config.key_dim, config.conv_width) == (16, 128, 3)
    assert config.full_rank_decay and config.full_rank_gate


@pytest.mark.parametrize(
    "config, layers",
    [
        (model_configs.without(model_configs.PRESETS["qwen3-next-80b-a3b"], KEY), 36),
        (KIMI_NATIVE, 21),
        (model_configs.LING | {"layer_types": ["linear_attention"] * 42}, 42),
    ],
    ids=["qwen", "kimi", "ling"],
)
def test_layers_by_default_are_those_of_transformers(config, layers):
    assert ModelConfig.from_config(config).num_gdn_layers == layers


def test_text_that_is_not_utf_8(compiler):
    compiler.path.write_bytes(json.dumps(model_configs.SMALL)[:-1].encode() + b', "x": "\xe9"}')
    assert "is not JSON" in in_python(compiler.path)


@pytest.mark.parametrize("model", ["qwen3_next", "qwen3_5", "olmo_hybrid"])
def test_recorded_models(model, compiler):
    """Configurations of transformers, in the metadata of their recorded tensors."""
    data = (ROOT / f"test/data/{model}_tiny.safetensors").read_bytes()
    size = int.from_bytes(data[:8], "little")
    text = json.loads(data[8 : 8 + size])["__metadata__"]["config"]
    assert compiler(text) == in_python(compiler.path)


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 300),
    st.sampled_from([0.0, 1.5, 8.0, 1e-6, "silu", "sigmoid", "float16", "linear_attention", ""]),
    st.lists(st.sampled_from(["linear_attention", "full_attention", 1]), max_size=4),
)
KEYS = [*model_configs.SMALL, "text_config", "output_gate_type", "dtype", "layer_types"]
KEYS += ["linear_allow_neg_eigval", "linear_use_gate", "mamba_ssm_dtype"]
BOUNDS = ["linear_lower_bound", "kda_lower_bound", "kda_safe_gate", "layer_group_size"]
BOUNDS += ["linear_num_heads", "num_attention_heads", "linear_attn_config", "layer_types"]


@given(
    base=st.sampled_from([model_configs.SMALL, model_configs.OLMO, model_configs.KIMI]),
    changes=st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=2),
)
@settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_any_configuration(base, changes, compiler):
    found = compiler(json.dumps(base | changes))
    assert in_python(compiler.path) == found


@given(
    base=st.sampled_from([model_configs.KIMI, model_configs.GLM, model_configs.LING]),
    changes=st.dictionaries(
        st.sampled_from(BOUNDS),
        VALUES
        | st.sampled_from([-5.0, -5, -1, -0.25, -5.5, -1e-37, -1e-39, -1e-300])
        | st.fixed_dictionaries(
            {
                "num_heads": st.just(4),
                "head_dim": st.just(64),
                "short_conv_kernel_size": st.just(4),
            },
            optional={
                "gate_lower_bound": st.sampled_from([-5, -1.5, 0, None, "x"]),
                "safe_gate": st.sampled_from([True, False, None, 1]),
            },
        ),
        max_size=3,
    ),
)
@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_any_bound(base, changes, compiler):
    found = compiler(json.dumps(base | changes))
    assert in_python(compiler.path) == found


def test_ranks_of_projections():
    """Facts of layers with a decay of each channel that no kernel depends on."""
    kimi, k3, glm, ling = (
        ModelConfig.from_config(config)
        for config in (model_configs.KIMI, model_configs.K3, model_configs.GLM, model_configs.LING)
    )
    ranks = [(m.full_rank_decay, m.full_rank_gate) for m in (kimi, k3, glm, ling)]
    assert ranks == [(False, False), (False, True), (False, False), (True, True)]
    assert [m.decay_bound for m in (kimi, k3, glm, ling)] == [None, -5.0, -5.0, -5.0]
    assert [m.num_gdn_layers for m in (kimi, k3, glm, ling)] == [20, 69, 34, 35]


def test_more_than_facts():
    config = ModelConfig.from_config(model_configs.KIMI)
    assert (config.num_layers, config.num_gdn_layers) == (27, 20)
    assert (config.key_heads, config.value_heads, config.hidden_size) == (32, 32, 2304)
    assert (config.io, config.state) == ("bf16", None)


def nested(depth: int) -> dict:
    found: dict = {}
    for _ in range(depth):
        found = {"a": [found]}
    return found


def circular() -> dict:
    found: dict = {}
    found["self"] = found
    return found


@pytest.mark.parametrize("read", [ModelConfig.from_config, text_of])
@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            nested(100_000),
            "config.json: expects at most 64 nested arrays and objects, but got more",
        ),
        (circular(), "config.json: is not JSON: Circular reference"),
        ({("a", 1): 2}, "config.json: is not JSON: keys must be str"),
    ],
    ids=["nested", "circular", "keys"],
)
def test_mappings_that_are_no_json(read, config, message):
    with pytest.raises(ConfigError, match=message):
        read(config)
