# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""gdn-compile from its command line: inputs, outputs, and whole messages."""

import json
import re
from pathlib import Path

import pytest
import tensorfile

ROOT = Path(__file__).resolve().parents[2]
CONFIG = {
    "model_type": "qwen3_next",
    "hidden_size": 256,
    "num_hidden_layers": 4,
    "linear_num_key_heads": 1,
    "linear_num_value_heads": 2,
    "linear_key_head_dim": 16,
    "linear_value_head_dim": 16,
    "linear_conv_kernel_dim": 4,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-6,
}
LAYER = "func.func @f() { return }\n"


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIG))
    return path


def failed(done, message):
    """The tool failed, with this message alone and nothing on its output."""
    expected = (1, "", f"gdn-compile: error: {message}\n")
    assert (done.returncode, done.stdout, done.stderr) == expected


def test_image_is_written_and_reproducible(tool, config, tmp_path):
    first, second = tmp_path / "a.gdnk", tmp_path / "b.gdnk"
    for image in (first, second):
        done = tool("gdn-compile", "--config", config, "--target=x86-64-v3", "-o", image)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert first.read_bytes() == second.read_bytes()
    assert first.read_bytes()[4:8] == b"GDNK"
    assert {path.name for path in tmp_path.iterdir()} == {"config.json", "a.gdnk", "b.gdnk"}


def test_the_most_demanding_target_comes_first(tool, config, tmp_path):
    image = tmp_path / "a.gdnk"
    done = tool("gdn-compile", "--config", config, "--target=x86-64-v3,x86-64-v4", "-o", image)
    assert done.returncode == 0, done.stderr
    content = image.read_bytes()
    assert b"x86-64-v3" in content and b"x86-64-v4" in content


def test_config_in_the_folder_of_a_model(tool, config, tmp_path):
    for path in (tmp_path, f"{tmp_path}/"):
        done = tool("gdn-compile", "--config", path, "--emit=gdn")
        assert done.returncode == 0 and "func.func @prefill" in done.stdout, done.stderr
    empty = tmp_path / "empty"
    empty.mkdir()
    done = tool("gdn-compile", "--config", empty, "--emit=gdn")
    assert done.returncode == 1 and f"{empty}/config.json" in done.stderr


def test_config_inside_a_safetensors_file(tool, tmp_path):
    path = tensorfile.write(tmp_path / "m.safetensors", {}, {"config": json.dumps(CONFIG)})
    done = tool("gdn-compile", "--config", path, "--emit=gdn")
    assert done.returncode == 0, done.stderr
    assert "tensor<?x?x16xbf16>" in done.stdout


def test_a_generated_layer_compiles_from_its_text(tool, config, tmp_path):
    text = tool("gdn-compile", "--config", config, "--emit=gdn").stdout
    layer = tmp_path / "layer.mlir"
    layer.write_text(text)
    direct = tool("gdn-compile", "--config", config, "--emit=asm")
    from_text = tool("gdn-compile", layer, "--emit=asm")
    assert direct.returncode == 0, direct.stderr
    assert from_text.stdout == direct.stdout


def test_separate_projections_have_packed_prefill(tool):
    """Stages of a variant promise the same of an array, also where it is values alone."""
    options = ["--preset=qwen3-next-80b-a3b", "--layout=split", "--only=prefill", "--target=sm_90a"]
    done = tool("gdn-compile", *options, "--emit=ptx")
    assert done.returncode == 0, done.stderr
    assert "prefill__inter_chunk_by_lengths_1" in done.stdout


def test_timing_shows_the_passes(tool, config, tmp_path):
    done = tool("gdn-compile", "--config", config, "-o", tmp_path / "a.gdnk", "--mlir-timing")
    assert done.returncode == 0
    assert "ConvertGDNToTile" in done.stderr and "Total" in done.stderr


def test_help_speaks_of_what_a_newcomer_needs(tool):
    text = tool("gdn-compile", "--help").stdout
    for word in ("--preset", "--config", "--target", "--emit", "qwen3-next-80b-a3b", "-o <file>"):
        assert word in text
    assert "--x86-" not in text  # LLVM's own options stay hidden


@pytest.mark.parametrize(
    "arguments, message",
    [
        ([], "expects one of a layer, --config and --preset, but got none"),
        (
            ["--preset=qwen3.5-4b", "--config=c.json", "-o", "x"],
            "expects one of a layer, --config and --preset, but got several",
        ),
        (["--preset=qwen3.5-4b"], "expects -o <file> for the image"),
        (
            ["layer.mlir", "--io=f16", "-o", "x"],
            "options about generated entries go with --config or --preset; "
            "the entries of a layer are written in its file",
        ),
        (
            ["--preset=qwen3.5-4b", "--emit=asm", "--target=x86-64-v3,x86-64-v4"],
            "expects one target for this stage, but got 2",
        ),
        (
            ["--preset=qwen3.5-4b", "--tokens=0", "-o", "x"],
            "--tokens: expects 1 to 65536, but got 0",
        ),
        (
            ["--preset=qwen3.5-4b", f"--tokens={2**63 - 1}", "-o", "x"],
            "--tokens: expects 1 to 65536, but got 9223372036854775807",
        ),
        (
            ["--preset=qwen3.5-4b", f"--segments={2**63 - 1}", "-o", "x"],
            "--segments: expects at most 65536, but got 9223372036854775807",
        ),
        (
            ["--preset=qwen3.5-4b", "--target=sm_80,x86-64-v3,sm_80", "-o", "x"],
            "--target: expects each name once, but got sm_80 twice",
        ),
        (
            ["--config=no.json", "-o", "x"],
            "no.json: cannot be read: No such file or directory",
        ),
        (
            ["--preset=kimi-linear-48b-a3b", "--layout=flat", "-o", "x"],
            "kimi-linear-48b-a3b: a decay per channel expects the layout separate, gated or ready,"
            " but got flat",
        ),
    ],
)
def test_contradictions(tool, arguments, message):
    failed(tool("gdn-compile", *arguments), message)


KERNEL = """
llvm.func @k(%words: !llvm.ptr {llvm.byval = !llvm.array<3 x i64>,
                                llvm.align = 8 : i64, nvvm.grid_constant})
    attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32>, gdn_gpu.launch = {threads = 32 : i32},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  llvm.return
}
"""


@pytest.fixture
def kernel(tmp_path):
    path = tmp_path / "kernel.mlir"
    path.write_text(KERNEL)
    return path


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--target=sm_90a", "--emit=asm"], "expects a CPU to show this stage for, but got sm_90a"),
        (
            ["--target=sm_90a", "--emit=tile"],
            "expects a CPU to show this stage for, but got sm_90a",
        ),
        (["--emit=ptx"], "expects a GPU to show this stage for, but got x86-64-v3"),
        (
            ["--target=sm_80,x86-64-v3", "--emit=report"],
            "expects a GPU to show this stage for, but got x86-64-v3",
        ),
        (
            ["--target=sm_80,sm_90a", "--emit=ptx"],
            "expects one target for this stage, but got 2",
        ),
        (
            ["--target=sm_80", "--emit=report", "--ptxas=/no/ptxas"],
            "/no/ptxas: cannot be started: posix_spawn failed: No such file or directory",
        ),
    ],
)
def test_gpu_stages_and_targets(tool, kernel, arguments, message):
    failed(tool("gdn-compile", kernel, *arguments), message)


def test_machine_code_needs_an_assembler(tool, kernel):
    done = tool("gdn-compile", kernel, "--target=sm_80", "--emit=sass", "--ptxas=none")
    assert done.returncode == 1
    assert "error: expects ptxas to show machine code, but found none" in done.stderr


def test_digests_of_several_targets(tool, kernel):
    done = tool("gdn-compile", kernel, "--target=sm_80,sm_90a", "--emit=digest")
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert [line[:2] for line in lines] == [["k", "sm_80"], ["k", "sm_90a"]]
    assert all(len(line[2]) == 64 for line in lines) and lines[0][2] != lines[1][2]


def test_unknown_target_lists_the_known(tool):
    done = tool("gdn-compile", "--preset=qwen3.5-4b", "--target=z80", "-o", "x")
    assert done.returncode == 1
    assert done.stderr.startswith(
        "gdn-compile: error: unknown target 'z80'; known targets: native, x86-64-v3, x86-64-v4, "
    )


@pytest.mark.parametrize(
    "change, message",
    [
        (
            {"linear_num_key_heads": "1"},
            'linear_num_key_heads: expects a positive integer, but got "1"',
        ),
        ({"hidden_act": None}, "hidden_act: expects a string, but got null"),
        (
            {"linear_key_head_dim": 12},
            "expects the key head dimension to be a multiple of 8 up to 256, but got 12",
        ),
    ],
)
def test_bad_config(tool, tmp_path, change, message):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIG | change))
    image = tmp_path / "x.gdnk"
    failed(tool("gdn-compile", "--config", path, "-o", image), f"{path}: {message}")
    assert not image.exists()


def test_malformed_config_has_a_position(tool, tmp_path):
    path = tmp_path / "config.json"
    path.write_text('{"model_type": qwen}')
    failed(
        tool("gdn-compile", "--config", path, "-o", tmp_path / "x"),
        f"{path}: is not JSON: [1:16, byte=16]: Invalid JSON value",
    )


def test_a_failure_keeps_the_old_image(tool, tmp_path):
    layer, image = tmp_path / "layer.mlir", tmp_path / "x.gdnk"
    layer.write_text(LAYER)
    image.write_text("old")
    done = tool("gdn-compile", layer, "-o", image)
    assert done.returncode == 1
    assert "expects at least one function with 'gdn.entry'" in done.stderr
    assert image.read_text() == "old"
    assert {path.name for path in tmp_path.iterdir()} == {"layer.mlir", "x.gdnk"}


def test_output_that_cannot_be_written(tool, config, tmp_path):
    done = tool("gdn-compile", "--config", config, "-o", tmp_path / "no" / "x.gdnk")
    assert done.returncode == 1
    assert "No such file or directory" in done.stderr


@pytest.mark.parametrize(
    ("flags", "facts"),
    [
        # The rule's numbers for heads of 128 with either vectors.
        (
            (),
            {"chunk_from": "52", "chunk_next": "40", "chunk": "64", "precision": "f32"}
            | {"chunk_from.x86-64-v3": "63", "chunk_next.x86-64-v3": "60"},
        ),
        (
            ("--chunk=32", "--chunk-from=20", "--precision=mixed"),
            {"chunk_from": "20", "chunk": "32", "precision": "mixed"},
        ),
        (("--chunk-from=-1", "--segments=0"), {"chunk_from": "never"}),
    ],
)
def test_image_and_listing_say_which_tokens_take_chunks(tool, tmp_path, flags, facts):
    image = tmp_path / "a.gdnk"
    source = ROOT / "runtime/bench/delta_rule.mlir"
    done = tool("gdn-compile", source, "--target=x86-64-v3,x86-64-v4", *flags, "-o", image)
    assert (done.returncode, done.stderr) == (0, "")
    done = tool("gdn-run", image)
    assert done.returncode == 0, done.stderr
    lines = [line.split(": ") for line in done.stdout.splitlines() if line.startswith("  fact ")]
    assert {name.removeprefix("  fact "): value for name, value in lines} == facts


def test_some_entries_alone(tool, config):
    options = ["--config", config, "--verify=lazy", "--emit=gdn"]
    done = tool("gdn-compile", *options, "--only=verify,commit")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.findall(r"func\.func @(\w+)", done.stdout) == ["verify", "commit"]
    done = tool("gdn-compile", *options, "--only=veri")
    assert done.returncode == 1
    assert "--only: expects names of entries, but got 'veri'" in done.stderr


@pytest.mark.parametrize(
    "options, bound",
    [
        ("--verify=slots", 8),
        ("--verify=slots --verify-tokens=5", 5),
        ("--verify=slots --verify-tokens=0", None),
        ("--verify=tree", None),
        ("--verify=lazy", 8),
        ("--verify=lazy --verify-tokens=3", 3),
        ("--verify=buffer", None),
    ],
)
def test_rows_of_verify_have_a_bound(tool, config, options, bound):
    done = tool("gdn-compile", "--config", config, *options.split(), "--emit=gdn", "--only=verify")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.findall(r"max_tokens\((\d+)\)", done.stdout) == ([str(bound)] if bound else [])


@pytest.mark.parametrize(
    "options, error",
    [
        ("--verify-tokens=3", "a bound for the tokens of verify expects such an entry"),
        (
            "--verify=lazy --verify-tokens=9",
            "expects a bound of 1 to 8 tokens of a sequence, but got 9",
        ),
        (
            "--verify=lazy --verify-tokens=0",
            "expects a bound of 1 to 8 tokens of a sequence, but got 0",
        ),
        ("--verify=slots --verify-tokens=-1", "or 0 for none, but got -1"),
        ("--verify=tree --verify-tokens=12", "any number of tokens, but got a bound of 12"),
        ("--verify=buffer --verify-tokens=8", "any number of tokens, but got a bound of 8"),
    ],
)
def test_bounds_that_verify_cannot_have(tool, config, options, error):
    done = tool("gdn-compile", "--config", config, *options.split(), "--emit=gdn")
    assert done.returncode == 1
    assert error in done.stderr


def entries_of(tool, *options) -> dict[str, list[str]]:
    """The parameters of each entry that gdn-compile makes of these options."""
    done = tool("gdn-compile", *options, "--emit=gdn")
    assert (done.returncode, done.stderr) == (0, "")
    functions = re.findall(r"func\.func @(\w+)\((.*)", done.stdout)
    return {name: re.findall(r'gdn\.name = "(\w+)"', signature) for name, signature in functions}


@pytest.mark.parametrize(
    "engine, options",
    [
        ("vllm", "--has-initial --decode-initial --write-slots --verify=slots"),
        ("sglang", "--layout=split --outputs=core --has-initial --checkpoints --verify=buffer"),
        ("pymllm", "--layout=split --outputs=core"),
        ("c", "--has-initial --write-slots"),
    ],
)
def test_an_engine_is_its_options(tool, config, engine, options):
    made = entries_of(tool, "--config", config, f"--for={engine}")
    assert made == entries_of(tool, "--config", config, *options.split())
    assert {"prefill", "decode"} <= set(made)


def test_options_beside_an_engine_win(tool, config):
    made = entries_of(tool, "--config", config, "--for=sglang", "--checkpoints=false")
    assert "cu_checkpoints" not in made["prefill"] and "has_initial" in made["prefill"]
    made = entries_of(tool, "--config", config, "--for=c", "--verify=lazy", "--outputs=core")
    assert {"verify", "commit"} <= set(made) and "norm_weight" not in made["decode"]


def test_an_engine_that_a_model_does_not_fit(tool):
    failed(
        tool("gdn-compile", "--preset=kimi-linear-48b-a3b", "--for=sglang", "-o", "x"),
        "kimi-linear-48b-a3b: a decay per channel expects the layout separate, gated or ready,"
        " but got split",
    )
