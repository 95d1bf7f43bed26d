# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled entries against float64 over head sizes, ratios, types and gates."""

import json

import pytest

SHAPES = [(96, 192), (64, 64), (128, 128), (256, 256), (64, 128), (40, 24), (8, 8)]


def in_turn(rows, columns, long=(), column_first=False):
    """All pairs, as arguments. Each run has one column for each row, in turn, and no column that
    is `long`; the others are in --full."""
    short = [column for column in columns if column not in long]
    pairs = []
    for i, row in enumerate(rows):
        for column in columns:
            is_long = column != short[i % len(short)]
            values = (column, *row) if column_first else (*row, column)
            pairs.append(pytest.param(*values, marks=pytest.mark.long if is_long else ()))
    return pairs


def both(target):
    """The targets of an image that runs on every CPU of the tests, each once."""
    return ",".join(dict.fromkeys([target, "x86-64-v3"]))


GATES = ["realistic", "near_one", "strong", "very_strong"]


def config(dk, dv, model_type="qwen3_next", **extra):
    return {
        "model_type": model_type,
        "hidden_size": 64,
        "num_hidden_layers": 1,
        "linear_num_key_heads": 1,
        "linear_num_value_heads": 1,
        "linear_key_head_dim": dk,
        "linear_value_head_dim": dv,
        "linear_conv_kernel_dim": 4,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-6,
    } | extra


@pytest.fixture
def check(tool, tmp_path):
    """Compiles a model and checks prefill and decode, or some entries, on made-up inputs."""

    def run(model, options, *generate, entries=("prefill", "decode")):
        path, image = tmp_path / "config.json", tmp_path / "x.gdnk"
        path.write_text(json.dumps(model))
        only = f"--only={','.join(entries)}"
        done = tool("gdn-compile", "--config", path, "--outputs=both", only, *options, "-o", image)
        assert done.returncode == 0, done.stderr
        for entry in entries:
            for text in generate:
                done = tool("gdn-run", image, "--entry", entry, "--generate", text, "--check")
                assert done.returncode == 0, f"{entry} {text}\n{done.stdout}{done.stderr}"

    return run


@pytest.mark.parametrize("io, dk, dv", in_turn(SHAPES, ["f32", "bf16"], column_first=True))
def test_head_dimensions(check, io, dk, dv):
    check(config(dk, dv), [f"--io={io}"], "lens=5:0:17:1,pad=3,skip=1,Hk=2,Hv=4")


@pytest.mark.parametrize("ratio", [1, 2, 3, 4])
@pytest.mark.parametrize("layout", ["interleaved", "flat", "split", "separate"])
def test_value_heads_per_key_head(check, ratio, layout):
    check(config(16, 24), ["--io=f32", f"--layout={layout}"], f"lens=3:20,Hk=2,Hv={2 * ratio}")


@pytest.mark.parametrize("target", ["x86-64-v3", "x86-64-v4"])
def test_gates(check, target):
    # Lengths around 64, which chunked algorithms divide rows by.
    texts = [f"lens=0:1:63:64:65:0,gates={gates},Hk=1,Hv=2" for gates in GATES]
    check(config(64, 64), ["--io=f32", f"--target={both(target)}"], *texts)


@pytest.mark.parametrize("io", ["f32", "bf16", "f16"])
@pytest.mark.parametrize("state", ["f32", "bf16", "f16"])
def test_types(check, io, state):
    check(config(32, 32), [f"--io={io}", f"--state={state}"], "lens=5:3:17,Hk=1,Hv=2")


def test_types_of_weights_and_convolution_state(check):
    options = ["--io=bf16", "--conv-state=f32", "--conv-weight=f32", "--norm-weight=f32"]
    check(config(16, 16), [*options, "--dt-bias=bf16"], "lens=5:3,Hk=1,Hv=2")


def test_optional_parameters(check):
    options = ["--slots64", "--write-slots", "--has-initial", "--io=f32"]
    check(config(16, 16), options, "lens=5:0:17:1,skip=2,Hk=1,Hv=2")


def test_empty_batches(check):
    check(config(16, 16), ["--io=f32"], "lens=", "lens=0:0", "lens=,pad=4")


def test_large_values(check):
    check(config(16, 16), ["--io=f32"], "lens=9:70,scale=10000,Hk=1,Hv=2")


def test_correlated_keys(check):
    check(config(32, 32), ["--io=f32", "--layout=separate"], "lens=100,correlation=1,Hk=1,Hv=1")


def test_doubled_beta_and_fixed_eps(check):
    model = config(96, 192, "olmo_hybrid", linear_allow_neg_eigval=True)
    check(model, ["--io=f32"], "lens=5:40,Hk=3,Hv=3")


def test_sigmoid_gate(check):
    check(config(32, 32, "qwen4_exp", output_gate_type="sigmoid"), ["--io=f32"], "lens=5:40")


def kimi(dim):
    return {
        "model_type": "kimi_linear",
        "hidden_size": 64,
        "num_hidden_layers": 1,
        "rms_norm_eps": 1e-5,
        "linear_attn_config": {"num_heads": 2, "head_dim": dim, "short_conv_kernel_size": 4},
    }


@pytest.mark.parametrize("io", ["f32", "bf16"])
def test_decay_per_channel(check, io):
    texts = [f"lens=5:40,Hk=2,Hv=2,gates={gates}" for gates in GATES]
    check(kimi(32), [f"--io={io}"], *texts)


@pytest.mark.parametrize(
    "dim, io, chunk",
    in_turn([(128, "f32"), (64, "bf16"), (40, "f16")], [64, 16, 32, 128], long=[32, 128]),
)
def test_chunk_form_of_decay_per_channel(check, chunk, dim, io):
    """As test_chunk_form: decays per channel keep the bounds in every kind of gates."""
    lengths = "lens=0:1:15:17:63:64:65:127:129:0:273,pad=3,skip=1,Hk=2,Hv=2"
    texts = [f"{lengths},gates={gates}" for gates in GATES]
    texts.append("lens=200,correlation=1,gates=near_one,Hk=1,Hv=1")
    texts.append("lens=150,scale=10000,Hk=1,Hv=1")
    options = [f"--io={io}", f"--chunk={chunk}", "--chunk-from=1"]
    check(kimi(dim), options, *texts, entries=("prefill",))


@pytest.mark.parametrize("width", [2, 3, 8])
def test_convolution_widths(check, width):
    check(config(16, 16, linear_conv_kernel_dim=width), ["--io=f32"], "lens=1:2:0:9")


@pytest.mark.parametrize(
    "dk, dv, chunk", in_turn([(128, 128), (96, 192), (40, 24)], [64, 16, 128], long=[128])
)
def test_chunk_form(check, chunk, dk, dv):
    """Every row in chunks: the same bounds as token by token, whatever the gates."""
    lengths = "lens=0:1:15:17:63:64:65:127:129:0:273,pad=3,skip=1,Hk=1,Hv=2"
    texts = [f"{lengths},gates={gates}" for gates in GATES]
    texts.append("lens=200,correlation=1,gates=near_one,Hk=1,Hv=1")
    options = ["--io=f32", f"--chunk={chunk}", "--chunk-from=1"]
    check(config(dk, dv), options, *texts, entries=("prefill",))


@pytest.mark.parametrize(
    "target, dk, dv",
    in_turn(
        [(8, 256), (72, 136), (248, 16), (200, 104)],
        ["x86-64-v3", "x86-64-v4"],
        column_first=True,
    ),
)
def test_chunk_form_where_vectors_do_not_fit(check, target, dk, dv):
    options = ["--io=f32", f"--target={both(target)}", "--chunk-from=1"]
    check(config(dk, dv), options, "lens=65:127:3,Hk=1,Hv=2")


@pytest.mark.parametrize("least", [2, 20, 64, pytest.param(100, marks=pytest.mark.long)])
def test_chunks_while_enough_tokens_are_left(check, least):
    """Both forms in one row, whatever is left for the second one."""
    options = ["--io=bf16", "--state=bf16", f"--chunk-from={least}"]
    text = "lens=1:19:20:63:64:65:84:99:100:101:163:164:200:0,Hk=2,Hv=6"
    check(config(64, 64), options, text, entries=("prefill",))


def test_chunk_size_is_checked(tool):
    done = tool("gdn-compile", "--preset", "qwen3.5-4b", "--chunk=48", "-o", "x.gdnk")
    assert done.returncode == 1
    assert "--chunk: expects 16, 32, 64 or 128, but got 48" in done.stderr
