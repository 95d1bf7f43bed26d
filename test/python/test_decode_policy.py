# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What lib/Pipelines/DecodePolicy.cpp says, as it stands in programs: for which launches a
variant of decode is, by target, and how wide a commit is."""

import re

import pytest

ARGUMENTS = ["--preset=qwen3-next-80b-a3b", "--io=bf16", "--state=f32,bf16", "--verify=lazy"]
HOPPER = {
    "decode_bf16_f32_persistent": ("192", "1024"),
    "decode_bf16_bf16_persistent": ("288", "4095"),
    "decode_bf16_bf16_narrow": ("4097", None),
}
BLACKWELL = {
    "decode_bf16_f32_persistent": ("192", "1024"),
    "decode_bf16_bf16_persistent": ("288", "4096"),
}
# Where blocks have 49 KB each.
SMALL = {"decode_bf16_bf16_persistent": ("288", "4096")}


@pytest.mark.parametrize(
    "target, variants, commit_threads",
    [
        ("sm_80", {}, 256),
        ("sm_90a", HOPPER, 256),
        ("sm_100a", BLACKWELL, 512),
        ("sm_120a", SMALL, 512),
    ],
)
def test_policy(tool, target, variants, commit_threads):
    arguments = [*ARGUMENTS, "--only=decode,commit", f"--target={target}", "--emit=gpu"]
    done = tool("gdn-compile", *arguments)
    assert done.returncode == 0, done.stderr
    found = {}
    for program in done.stdout.split("func.func @")[1:]:
        name = re.match(r"\w+", program)[0]
        if name.startswith("commit"):
            assert f"threads = {commit_threads} " in program
        if conditions := re.search(r"conditions = \[(.*?)\]\]\]", program):
            least = re.search(r'\[\["(\d+)"\], \["N", "Hv"\]', conditions[0])
            most = re.search(r'\["N", "Hv"\], \["(\d+)"\]', conditions[0])
            found[name] = (least[1], most and most[1])
            # Faster behind the work ahead of it alone.
            assert ('[["1"], ["dependent"]]' in conditions[0]) == ("_persistent" in name)
    # Those for aligned arrays are for the same sizes.
    aligned = {name: sizes for name, sizes in variants.items() if name.endswith("_persistent")}
    assert found == variants | {f"{name}_aligned": sizes for name, sizes in aligned.items()}


# docs/spec/numerics.md has the same table: from how many units on decode with deferred writes has
# another form, whose bits are its own.
FORMS = {
    ("sm_80", "bf16"): {"crowded": "1024"},
    ("sm_86", "bf16"): {},
    ("sm_90a", "f32"): {"persistent": "1280"},
    ("sm_90a", "f16"): {"crowded": "1024"},
    ("sm_90a", "i8x2"): {},
    ("sm_100a", "f32"): {"persistent": "1280"},
    ("sm_100a", "bf16"): {"crowded": "1024"},
    ("sm_120a", "f32"): {},
}


@pytest.mark.parametrize("target, state", FORMS)
def test_forms_of_deferred_writes(tool, target, state):
    arguments = [*ARGUMENTS[:2], f"--state={state}", "--defer-writes=16", "--only=decode"]
    done = tool("gdn-compile", *arguments, f"--target={target}", "--emit=gpu")
    assert done.returncode == 0, done.stderr
    found = {}
    for program in done.stdout.split("func.func @")[1:]:
        if bits := re.search(r'\bbits = "(\w+)"', program):
            least = re.search(r'conditions = \[\[\["(\d+)"\], \["N", "Hv"\]', program)
            found[bits[1]] = least[1]
    assert found == FORMS[target, state]


@pytest.mark.parametrize("pending", ["f32", "f16"])
@pytest.mark.parametrize("state", ["i8x2", "i8x2_upper", "i8"])
def test_states_in_planes(tool, state, pending):
    """A variant of four warps for launches of many units, and where tokens see one plane another
    for those whose blocks all have room; streams are for states of one array."""
    arguments = [*ARGUMENTS[:2], f"--state={state}", "--defer-writes=16", f"--pending={pending}"]
    arguments += ["--only=decode", "--target=sm_90a", "--emit=gpu"]
    done = tool("gdn-compile", *arguments)
    assert done.returncode == 0, done.stderr
    found = {}
    for program in done.stdout.split("func.func @")[1:]:
        name = re.match(r"\w+", program)[0]
        threads = int(re.search(r"threads = (\d+) ", program)[1])
        least = re.search(r'\[\["(\d+)"\], \["N", "Hv"\]', program)
        most = re.search(r'\["N", "Hv"\], \["(\d+)"\]', program)
        found[name] = (threads, least and least[1], most and most[1])
    expected = {"": (256, None, None), "_crowded": (128, "1024", None)}
    if state != "i8x2":
        expected["_sparse"] = (256, None, "264")
    if state == "i8x2_upper":  # one turn of blocks, and two
        expected["_sparse"] = (256, "397", "528")
    assert found == {
        f"decode{name}{aligned}": sizes
        for name, sizes in expected.items()
        for aligned in ("", "_aligned")
    }


def test_planes_where_nothing_was_measured(tool):
    """How many multiprocessors a chip has is not known there."""
    arguments = [*ARGUMENTS[:2], "--state=i8x2_upper", "--defer-writes=16", "--only=decode"]
    done = tool("gdn-compile", *arguments, "--target=sm_80", "--emit=gpu")
    assert done.returncode == 0, done.stderr
    assert "sparse" not in done.stdout


@pytest.mark.parametrize("target, names", [("sm_90a", ["crowded"]), ("sm_120a", ["persistent"])])
@pytest.mark.parametrize("state", ["bf16", "f16"])
def test_states_of_16_bits_with_pending_tokens(tool, state, target, names):
    """The variant of four warps takes the place of streams where four of its blocks have room."""
    arguments = [*ARGUMENTS[:2], f"--state={state}", "--defer-writes=8", "--only=decode"]
    done = tool("gdn-compile", *arguments, f"--target={target}", "--emit=gpu")
    assert done.returncode == 0, done.stderr
    programs = re.findall(r"func\.func @(\w+)", done.stdout)
    variants = ["decode", *(f"decode_{name}" for name in names)]
    assert set(programs) == {f"{name}{more}" for name in variants for more in ("", "_aligned")}
    least = re.search(r'\[\["(\d+)"\], \["N", "Hv"\]', done.stdout)
    assert least[1] == {"crowded": "1024", "persistent": "1280"}[names[0]]


def test_what_aligned_arrays_get(tool):
    """A step with states of f32 and the streams; narrow states have none of their own."""
    arguments = [*ARGUMENTS, "--only=decode", "--target=sm_90a", "--emit=gpu"]
    done = tool("gdn-compile", *arguments)
    assert done.returncode == 0, done.stderr
    programs = re.findall(r"func\.func @(\w+)", done.stdout)
    assert {name for name in programs if name.endswith("_aligned")} == {
        "decode_bf16_f32_aligned",
        "decode_bf16_f32_persistent_aligned",
        "decode_bf16_bf16_persistent_aligned",
    }


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a", "sm_103a", "sm_120a"])
def test_commits_of_the_default_heads_spill_nothing(tool, target):
    arguments = [*ARGUMENTS, "--only=commit", f"--target={target}", "--emit=report"]
    done = tool("gdn-compile", *arguments)
    assert done.returncode == 0, done.stderr
    header, *kernels = (line.split("  ") for line in done.stdout.splitlines())
    columns = [name.strip() for name in header if name.strip()]
    assert len(kernels) == 2
    for kernel in kernels:
        row = dict(zip(columns, (word for word in kernel if word.strip()), strict=True))
        assert int(row["spill st"]) == int(row["spill ld"]) == 0
