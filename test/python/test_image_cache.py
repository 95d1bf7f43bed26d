# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""gdn-compile --cache: what comes from the cache is what would be compiled, and says what was
said then; other arguments, inputs and assemblers never get it."""

import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

# Small: two kernels that copy and zero.
SMALL = ["--preset=qwen3.5-0.8b", "--only=copy_slots,zero_slots"]
GPU = [*SMALL, "--io=bf16", "--target=sm_90a"]
# Heads whose states no block can hold: entries that are left out, with a warning.
LEFT_OUT = ["--config=odd.json", "--io=bf16", "--target=sm_90a"]
HEADS = Path(__file__).resolve().parents[1] / "Pipeline/Inputs/heads.json"


@pytest.fixture
def compile_(build_dir, tmp_path):
    """Runs gdn-compile with a cache of its own, or without; its bytes, and what it said."""
    program = build_dir / "bin/gdn-compile"

    def run(*arguments: object, cache: bool = True, folder=None) -> tuple[bytes, str]:
        place = folder or tmp_path / "cache"
        odd = HEADS.read_text().replace("KEYS", "200").replace("VALUES", "200")
        (tmp_path / "odd.json").write_text(odd)
        command = [program, *map(str, arguments), *([f"--cache={place}"] if cache else [])]
        done = subprocess.run([*command, "-o", "-"], capture_output=True, cwd=tmp_path)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout, done.stderr.decode()

    run.files = lambda: sorted((tmp_path / "cache").glob("llvmcache-*"))
    return run


@pytest.mark.parametrize("arguments", [GPU, [*GPU, "--ptxas=none"], SMALL, LEFT_OUT])
def test_the_same_bytes_and_the_same_words(compile_, arguments):
    plain = compile_(*arguments, cache=False)
    assert compile_(*arguments) == plain
    files = compile_.files()
    times = [file.stat().st_mtime_ns for file in files]
    assert compile_(*arguments) == plain
    assert compile_.files() == files
    assert [file.stat().st_mtime_ns for file in files] == times
    if arguments is LEFT_OUT:
        for entry in ("prefill", "decode"):
            said = f"warning: entry '{entry}' has no schedule for sm_90a and is left out"
            assert f"odd.json: {said}" in plain[1]


def test_an_entry_that_was_asked_for_is_wanted_from_the_cache_too(compile_, build_dir, tmp_path):
    """The same compilation, where a warning will not do."""
    compile_(*LEFT_OUT)
    wanted = [*LEFT_OUT, "--only=decode,prefill,copy_slots,zero_slots", "--cache=cache"]
    for _ in range(2):
        command = [build_dir / "bin/gdn-compile", *wanted, "-o", "-"]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.endswith(
            "odd.json: error: expects code for sm_90a of every entry that was asked for, but got"
            " none of 'prefill', 'decode'\n"
        )


def test_one_compilation_gives_image_report_and_digest(compile_):
    compile_(*GPU)
    files = compile_.files()
    for emit in ("report", "digest", "sass"):
        plain = compile_(*GPU, f"--emit={emit}", cache=False)
        assert compile_(*GPU, f"--emit={emit}") == plain
    assert compile_.files() == files


def test_a_digest_needs_no_assembler(compile_, monkeypatch):
    digests, _ = compile_(*GPU, "--emit=digest")
    assert len(digests.splitlines()) == 2
    # The PTX of each kernel, and all of it with the module, for the programs and for their source.
    assert len(compile_.files()) == 4


@pytest.mark.parametrize("target", ["sm_90a", "x86-64-v3"])
def test_programs_that_are_the_same_are_not_compiled_again(compile_, target):
    """Another compilation, but what its passes make is what was compiled before."""
    arguments = [*SMALL, f"--target={target}"]
    plain = compile_(*arguments)
    files = compile_.files()
    assert compile_(*arguments, "--segment-maps") == plain
    assert len(compile_.files()) == len(files) + 1


def test_what_is_asked_behind_the_programs_is_in_their_key(compile_):
    decode = ["--preset=qwen3.5-0.8b", "--only=decode", "--io=bf16", "--target=sm_90a"]
    compile_(*decode, "--emit=digest")
    files = compile_.files()
    compile_(*decode, "--emit=digest", "--every-thread-arrives")
    assert len(compile_.files()) >= len(files) + 2


def test_passes_that_are_verified_one_by_one_run(compile_):
    """--verify-each is about the way there, which what is in the cache has behind it."""
    plain = compile_(*SMALL)
    files = compile_.files()
    assert compile_(*SMALL, "--verify-each") == plain
    assert compile_(*GPU, "--verify-each") == compile_(*GPU, cache=False)
    assert compile_.files() == files


def test_other_arguments_are_other_keys(compile_):
    variants = [
        GPU,
        [*GPU, "--ptxas=none"],
        [*GPU, "--state=bf16"],
        [*GPU, "--slots64"],
        [*GPU[:-1], "--target=sm_80"],
        SMALL,
        [*SMALL, "--target=x86-64-v4"],
    ]
    plain = [compile_(*arguments, cache=False)[0] for arguments in variants]
    assert len(set(plain)) == len(variants)
    for _ in range(2):
        assert [compile_(*arguments)[0] for arguments in variants] == plain


def test_an_input_that_changes(compile_, tmp_path):
    layer = tmp_path / "layer.mlir"
    text = compile_(*SMALL, "--emit=gdn", cache=False)[0].decode()
    layer.write_text(text)
    first = compile_("layer.mlir", "--target=sm_90a", "--emit=digest")[0]
    assert first.startswith(b"copy_slots sm_90a ")
    layer.write_text(text.replace("@copy_slots", "@move_slots"))
    second = compile_("layer.mlir", "--target=sm_90a", "--emit=digest")[0]
    assert second.startswith(b"move_slots sm_90a ")
    assert second.split()[2] == first.split()[2]  # names are no part of a digest
    layer.write_text(text)
    assert compile_("layer.mlir", "--target=sm_90a", "--emit=digest")[0] == first


def test_broken_files_are_compiled_again(compile_):
    plain, _ = compile_(*GPU)
    for number, file in enumerate(compile_.files()):
        content = bytearray(file.read_bytes())
        content[len(content) * number // 7] ^= 1
        file.write_bytes(content[: len(content) - number % 2])
    assert compile_(*GPU)[0] == plain


def test_several_at_a_time(compile_):
    with ThreadPoolExecutor(4) as pool:
        images = list(pool.map(lambda _: compile_(*GPU)[0], range(8)))
    assert set(images) == {compile_(*GPU, cache=False)[0]}


def test_a_folder_that_cannot_be_used(build_dir, tmp_path):
    (tmp_path / "file").write_text("")
    command = [build_dir / "bin/gdn-compile", *GPU, f"--cache={tmp_path}/file", "-o", "x.gdnk"]
    done = subprocess.run(command, text=True, capture_output=True, cwd=tmp_path)
    assert done.returncode == 1
    assert f"gdn-compile: error: {tmp_path}/file: cannot be made" in done.stderr
    assert not (tmp_path / "x.gdnk").exists()
