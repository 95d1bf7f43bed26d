# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""gdn-run from its command line: what it runs, prints and refuses."""

import json
import struct
from pathlib import Path

import pytest
import tensorfile

from gdn import GdnError, Runtime

DATA = Path(__file__).parents[1] / "data"
MODELS = [
    "qwen3_next_tiny",
    "qwen3_5_tiny",
    "olmo_hybrid_tiny",
    "kimi_linear_tiny",
    "kimi_k3_tiny",
    "glm5_next_tiny",
]


@pytest.fixture(scope="module")
def image(tool, tmp_path_factory):
    """dk = dv = 128, f32, both outputs."""
    path = tmp_path_factory.mktemp("image") / "x.gdnk"
    done = tool("gdn-compile", "--preset=qwen3.5-4b", "--io=f32", "--outputs=both", "-o", path)
    assert done.returncode == 0, done.stderr
    return path


def inputs(**changes):
    """Zeros for decode with Hk = 1, Hv = 2, two rows and four slots."""
    tensors = {
        "qkvz": tensorfile.zeros("F32", 2, 768),
        "ba": tensorfile.zeros("F32", 2, 4),
        "conv_weight": tensorfile.zeros("F32", 512, 4),
        "A_log": tensorfile.zeros("F32", 2),
        "dt_bias": tensorfile.zeros("F32", 2),
        "norm_weight": tensorfile.zeros("F32", 128),
        "slots": tensorfile.ints(1, 2),
        "conv_pool": tensorfile.zeros("F32", 4, 512, 3),
        "state_pool": tensorfile.zeros("F32", 4, 2, 128, 128),
    } | changes
    return {name: tensor for name, tensor in tensors.items() if tensor is not None}


def failed(done, message):
    """The tool failed, with this message alone and nothing on its output."""
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"gdn-run: error: {message}\n")


def test_lists_what_is_in_an_image(tool, image):
    done = tool("gdn-run", image)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0] == "prefill  (x86-64-v3)"
    assert "  in   qkvz: f32[N, 256*Hk + 256*Hv]" in lines
    assert "  pool state_pool: f32[P, Hv, 128, 128]" in lines
    assert "  out  out: f32[N, Hv, 128]" in lines
    assert "zero_slots  (x86-64-v3)" in lines


def test_windows_lie_in_both_orders(tool, image, tmp_path):
    """The same numbers; what is written is in the order of the shape."""
    written = []
    for order in [[], ["--windows-by-position"]]:
        output = tmp_path / "out.safetensors"
        options = ["--entry=decode", "--check", "--generate=rows=3,Hk=1,Hv=2", *order]
        done = tool("gdn-run", image, *options, "--output", output)
        assert done.returncode == 0, done.stderr + done.stdout
        written.append(output.read_bytes())
    assert written[0] == written[1]


def test_lists_images_of_other_devices(tool, tmp_path):
    """Codes of all targets, and the variants of each; --device is not looked for."""
    image = tmp_path / "x.gdnk"
    only = ("--preset=qwen3.5-4b", "--io=f32", "--only=decode", "-o", image)
    done = tool("gdn-compile", *only, "--target=x86-64-v3,sm_90a")
    assert done.returncode == 0, done.stderr
    done = tool("gdn-run", image, "--device=cuda")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == "decode  (x86-64-v3; sm_90a, cubin)"
    assert "  fact io: f32" in lines
    assert "  pool state_pool: f32[P, Hv, 128, 128]" in lines
    # Only code with several variants has them listed.
    code = lines.index("  code sm_90a, cubin")
    assert len(lines) > code + 2
    assert all(line.startswith("  variant ") for line in lines[code + 1 :])


def test_entries_are_found_by_kind_and_types(tool, image, build_dir, tmp_path):
    """Whether names have types in them or not."""
    pairs = tmp_path / "pairs.gdnk"
    done = tool(
        "gdn-compile",
        "--preset=qwen3.5-4b",
        "--io=f32,bf16",
        "--state=f32",
        "--only=decode",
        "-o",
        pairs,
    )
    assert done.returncode == 0, done.stderr
    runtime = Runtime(build_dir / "lib/libgdnrt.so")
    one, two = runtime.image(image), runtime.image(pairs)
    assert one.find("decode", io="float32", state="float32") == "decode"
    assert one.find("decode") == "decode"
    assert two.find("decode", io="float32", state="float32") == "decode_f32_f32"
    assert two.find("decode", io="bfloat16") == "decode_bf16_f32"
    with pytest.raises(GdnError, match="several entries fit: decode"):
        two.find("decode")
    with pytest.raises(GdnError, match=r"decode .io f16, state any.: the image has no such entry"):
        two.find("decode", io="float16")
    with pytest.raises(ValueError, match=r"io: expected one of float32, .*, got 'bf16'"):
        two.find("decode", io="bf16")


@pytest.mark.parametrize("entry", ["prefill", "decode"])
def test_check_prints_a_table(tool, image, entry):
    done = tool("gdn-run", image, "--entry", entry, "--generate", "lens=5:0:17,skip=1", "--check")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    variant = "  variant rows, workspace 0 bytes" if entry == "prefill" else ""
    assert lines[0] == f"{entry}  (x86-64-v3){variant}"
    assert lines[1].split("  ")[0] == "tensor"
    assert [line.split("  ")[0] for line in lines[2:]] == [
        "conv_pool",
        "conv_pool, other slots",
        "state_pool",
        "state_pool, other slots",
        "core",
        "out",
    ]
    assert all(line.endswith("  ok") for line in lines[2:])


@pytest.mark.parametrize("form", ["--chunk-from=-1", "--chunk-from=1", "--chunk-from=100"])
def test_checkpoints_are_written_and_checked(tool, tmp_path, form):
    """Slots of checkpoints hold NaN before the run and count as written by it."""
    path = tmp_path / "x.gdnk"
    done = tool("gdn-compile", "--preset=qwen3.5-4b", "--checkpoints", form, "-o", path)
    assert done.returncode == 0, done.stderr
    generate = "lens=200:0:63:64:130,skip=1,Hk=1,Hv=2,checkpoints=32"
    done = tool("gdn-run", path, "--entry=prefill", "--generate", generate, "--check")
    assert (done.returncode, done.stderr) == (0, "")
    assert all(line.endswith("  ok") for line in done.stdout.splitlines()[2:])
    done = tool("gdn-run", path, "--entry=prefill", "--generate", generate + ",slots=18")
    failed(
        done,
        "--generate: slots: expects a slot for each of 5 sequences and 13 checkpoints beside the"
        " null slot, but got 18",
    )


def test_verify_keeps_a_state_per_token(tool, tmp_path):
    """Rows of several lengths, some of which read skipped slots or have no valid count."""
    path = tmp_path / "x.gdnk"
    done = tool("gdn-compile", "--preset=qwen3.5-4b", "--verify=slots", "-o", path)
    assert done.returncode == 0, done.stderr
    assert "  in   token_slots: i32[N, S]" in tool("gdn-run", path).stdout.splitlines()
    generate = "lens=4:0:3:8:1:2:5:6:7:1,skip=8,Hk=1,Hv=2"
    done = tool("gdn-run", path, "--entry=verify", "--generate", generate, "--check")
    assert (done.returncode, done.stderr) == (0, "")
    assert all(line.endswith("  ok") for line in done.stdout.splitlines()[2:])
    done = tool("gdn-run", path, "--entry=verify", "--generate", generate + ",slots=80")
    failed(
        done,
        "--generate: slots: expects 8 slots for each of 10 sequences beside the null slot, but got"
        " 80",
    )


def test_verify_follows_parents(tool, tmp_path):
    path = tmp_path / "x.gdnk"
    done = tool("gdn-compile", "--preset=qwen3.5-4b", "--verify=tree", "-o", path)
    assert done.returncode == 0, done.stderr
    generate = "lens=4:0:3:8:7,skip=1,Hk=1,Hv=2"
    done = tool("gdn-run", path, "--entry=verify", "--generate", generate, "--check")
    assert (done.returncode, done.stderr) == (0, "")
    assert all(line.endswith("  ok") for line in done.stdout.splitlines()[2:])


@pytest.mark.parametrize("kind", ["lazy", "buffer"])
def test_commits_follow_verify(tool, tmp_path, kind):
    """Rows of several lengths, skipped slots, counts out of range."""
    path = tmp_path / "x.gdnk"
    done = tool("gdn-compile", "--preset=qwen3.5-4b", f"--verify={kind}", "-o", path)
    assert done.returncode == 0, done.stderr
    for entry in ("verify", "commit"):
        generate = "lens=4:0:3:8:1:2:5:6:7:1,skip=3,Hk=1,Hv=2"
        done = tool("gdn-run", path, f"--entry={entry}", "--generate", generate, "--check")
        assert (done.returncode, done.stderr) == (0, "")
        assert all(line.endswith("  ok") for line in done.stdout.splitlines()[2:])
        assert "state_pool" in done.stdout


def test_json_has_errors_and_times(tool, image):
    done = tool(
        "gdn-run", image, "--entry=decode", "--generate=rows=4", "--check", "--json", "--repeat=3",
        "--workers=1",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["ok"] and report["entry"] == "decode"
    core = next(row for row in report["comparisons"] if row["tensor"] == "core")
    assert core["ok"] and 0 < core["relative_rmse"] <= core["limit"] == 1e-5
    time = report["time"]
    assert time["launches"] == 3 and 0 < time["min_us"] <= time["median_us"] <= time["max_us"]


def test_variant_is_shown_and_forced(tool, image):
    listed = tool("gdn-run", image).stdout
    assert "  variant segments where 2 * N * Hk <= workers, " in listed
    for variant, needs in (("segments", 196608), ("rows", 0)):
        done = tool(
            "gdn-run", image, "--entry=prefill", "--generate=lens=200,Hk=1,Hv=1", "--check",
            "--json", f"--variant={variant}",
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        report = json.loads(done.stdout)
        assert report["ok"] and report["variant"] == variant
        assert report["workspace_bytes"] == needs
    done = tool("gdn-run", image, "--entry=decode", "--generate=rows=1", "--variant=segments")
    failed(done, "decode: has no variant 'segments'; it has: rows")


def test_runs_a_file_and_writes_one(tool, image, tmp_path):
    # One channel of q, k and v is 1 in row 0; the convolution keeps it.
    row = [1.0] + [0.0] * 767
    qkvz = ("F32", [2, 768], struct.pack("<1536f", *row, *([0.0] * 768)))
    given = tensorfile.write(tmp_path / "in.safetensors", inputs(qkvz=qkvz))
    result = tmp_path / "out.safetensors"
    done = tool("gdn-run", image, "--entry=decode", "--input", given, "--output", result, "--check")
    assert done.returncode == 0, done.stderr
    tensors = tensorfile.read(result)
    assert set(tensors) == {"conv_pool", "state_pool", "core", "out"}
    assert tensors["out"][:2] == ("F32", [2, 2, 128])
    pool = struct.unpack("<6144f", tensors["conv_pool"][2])
    assert pool[512 * 3 : 512 * 3 + 3] == (0.0, 0.0, 1.0)  # slot 1, channel 0
    assert sum(pool) == 1.0


def test_a_file_replaces_what_was_made_up(tool, image, tmp_path):
    given = tensorfile.write(tmp_path / "in.safetensors", {"slots": tensorfile.ints(-1, 0)})
    result = tmp_path / "out.safetensors"
    done = tool(
        "gdn-run",
        image,
        "--entry=decode",
        "--generate=rows=2",
        "--input",
        given,
        f"--output={result}",
    )
    assert done.returncode == 0, done.stderr
    assert not any(tensorfile.read(result)["out"][2])  # both rows are skipped


@pytest.mark.parametrize(
    "changes, message",
    [
        (
            {"ba": tensorfile.zeros("F16", 2, 4)},
            "{path}: ba: expects f32[N, 2*Hv], but got f16[2, 4]; --convert rounds floats to the "
            "entry's types",
        ),
        (
            {"slots": tensorfile.zeros("I64", 2)},
            "{path}: slots: expects i32[N], but got i64[2]; --convert rounds floats to the entry's "
            "types",
        ),
    ],
)
def test_wrong_types(tool, image, tmp_path, changes, message):
    path = tensorfile.write(tmp_path / "in.safetensors", inputs(**changes))
    done = tool("gdn-run", image, "--entry=decode", "--input", path)
    failed(done, message.format(path=path))


def test_convert_rounds_to_the_entrys_types(tool, image, tmp_path):
    path = tensorfile.write(tmp_path / "in.safetensors", inputs(ba=tensorfile.zeros("F16", 2, 4)))
    done = tool("gdn-run", image, "--entry=decode", "--input", path, "--convert", "--check")
    assert done.returncode == 0, done.stderr


def test_missing_tensor_names_file_and_tensor(tool, image, tmp_path):
    path = tensorfile.write(tmp_path / "in.safetensors", inputs(ba=None))
    done = tool("gdn-run", image, "--entry=decode", "--input", path)
    assert done.returncode == 1
    assert str(path) in done.stderr and "'ba'" in done.stderr


def test_wrong_sizes_are_the_runtimes_to_refuse(tool, image, tmp_path):
    path = tensorfile.write(
        tmp_path / "in.safetensors", inputs(qkvz=tensorfile.zeros("F32", 2, 700))
    )
    done = tool("gdn-run", image, "--entry=decode", "--input", path)
    assert done.returncode == 1
    assert done.stderr.startswith("gdn-run: error: ") and "qkvz" in done.stderr


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--entry=decode"], "expects --input or --generate for the entry's inputs"),
        (["--generate=rows=1"], "expects --entry to say what to run"),
        (
            ["--replay=m.safetensors", "--entry=decode"],
            "--replay takes its inputs from the recording and runs the entries prefill and decode; "
            "it goes without --entry, --input and --generate",
        ),
        (
            ["--entry=decode", "--generate=gates=soft"],
            "--generate: gates: expects realistic, near_one, strong or very_strong, but got 'soft'",
        ),
    ],
)
def test_contradictions(tool, image, arguments, message):
    failed(tool("gdn-run", image, *arguments), message)


def test_unknown_entry_lists_the_known(tool, image):
    done = tool("gdn-run", image, "--entry=verify", "--generate=rows=1")
    assert done.returncode == 1
    assert "verify" in done.stderr and "prefill" in done.stderr and "decode" in done.stderr


@pytest.mark.parametrize("size", [0, 7, 1000, -1])
def test_truncated_images(tool, image, tmp_path, size):
    content = image.read_bytes()
    path = tmp_path / "cut.gdnk"
    path.write_bytes(content[:size])
    done = tool("gdn-run", path)
    assert done.returncode == 1
    assert done.stderr.startswith("gdn-run: error: CORRUPT: ")


def test_flipped_bit_is_found(tool, image, tmp_path):
    content = bytearray(image.read_bytes())
    content[len(content) // 2] ^= 4
    path = tmp_path / "flipped.gdnk"
    path.write_bytes(content)
    done = tool("gdn-run", path)
    assert done.returncode == 1
    assert done.stderr.startswith("gdn-run: error: CORRUPT: ")


def test_image_that_is_not_there(tool):
    done = tool("gdn-run", "no.gdnk")
    assert done.returncode == 1
    assert "no.gdnk" in done.stderr and "No such file or directory" in done.stderr


@pytest.mark.parametrize("io", ["f32", "bf16", pytest.param("f16", marks=pytest.mark.long)])
@pytest.mark.parametrize("model", MODELS)
def test_replays_recorded_models(tool, tmp_path, model, io):
    recording = DATA / f"{model}.safetensors"
    image = tmp_path / "m.gdnk"
    done = tool("gdn-compile", "--config", recording, "--io", io, "--outputs=both", "-o", image)
    assert done.returncode == 0, done.stderr
    done = tool("gdn-run", image, "--replay", recording, "--json")
    report = json.loads(done.stdout)
    bad = [row for row in report["rows"] if not row["ok"]]
    assert (done.returncode, bad) == (0, [])
    phases = {row["phase"] for row in report["rows"]}
    assert "prefill" in phases and "decode5" in phases
    against_model = [row for row in report["rows"] if "transformers" in row]
    assert bool(against_model) == (io == "f32")
    if io == "f32":
        assert {row["tensor"] for row in against_model} == {
            "core", "out", "conv_pool", "state_pool"
        }  # fmt: skip


@pytest.mark.parametrize("layout", ["flat", "split"])
def test_replay_puts_projections_together(tool, tmp_path, layout):
    recording = DATA / "qwen3_5_tiny.safetensors"
    image = tmp_path / "m.gdnk"
    assert (
        tool(
            "gdn-compile", "--config", recording, "--io=f32", f"--layout={layout}", "-o", image
        ).returncode
        == 0
    )
    done = tool("gdn-run", image, "--replay", recording)
    assert (done.returncode, done.stderr) == (0, "")


def test_replay_needs_a_recording(tool, image, tmp_path):
    path = tensorfile.write(tmp_path / "other.safetensors", {"x": tensorfile.zeros("F32", 1)})
    failed(
        tool("gdn-run", image, "--replay", path),
        f"{path}: expects recorded activations (prefill.<layer>.core_pre_norm and others), but got "
        "none",
    )


def test_replay_of_another_model_says_what_does_not_fit(tool, image):
    recording = DATA / "olmo_hybrid_tiny.safetensors"
    done = tool("gdn-run", image, "--replay", recording)
    assert done.returncode == 1
    assert done.stderr.startswith(f"gdn-run: error: {recording}: prefill.layer0: expects ")


def test_replay_of_wrong_shapes_is_an_error(tool, tmp_path):
    """Whatever shape a tensor has, gdn-run ends by itself."""
    path, image = DATA / "qwen3_next_tiny.safetensors", tmp_path / "m.gdnk"
    done = tool("gdn-compile", "--config", path, "--io=f32", "--outputs=both", "-o", image)
    assert done.returncode == 0, done.stderr
    recording = tensorfile.read(path)
    own = [n for n in recording if ".layer0." in n and n.split(".")[0] in ("prefill", "weights")]
    assert len(own) > 6
    broken = 0
    for name in own:
        dtype, shape, content = recording[name]
        size = tensorfile.SIZES[dtype]
        half = max(shape[-1] // 2, 1)
        for wrong in (
            (dtype, [], content[:size]),
            (dtype, [*shape[:-1], 0], b""),
            (dtype, [*shape[:-1], half], content[: len(content) // shape[-1] * half]),
        ):
            path = tensorfile.write(tmp_path / "wrong.safetensors", {**recording, name: wrong})
            done = tool("gdn-run", image, "--replay", path)
            assert done.returncode in (0, 1, 2), f"{name} {wrong[:2]}: {done.returncode}"
            broken += done.returncode == 1
            assert (done.returncode == 1) == done.stderr.startswith("gdn-run: error: "), done.stderr
    assert broken > len(own)


@pytest.mark.parametrize("option", ["--config=", "--replay=", "--entry=decode --input="])
def test_inputs_without_end_are_an_error(tool, image, option):
    words = f"{option}/dev/zero".split()
    if option == "--config=":
        done = tool("gdn-compile", *words, "-o", "/dev/null")
    else:
        done = tool("gdn-run", image, *words)
    assert done.returncode == 1
    assert "/dev/zero: cannot be read: expects at most" in done.stderr
