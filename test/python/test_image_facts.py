# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tables of Python about images are those of the compiler: what engines need, targets, and
which writes can be deferred."""

import itertools
import re

import pytest

import catalogue
from gdn import Runtime, image_facts, targets


@pytest.mark.parametrize(
    "state, writes", [("f32", 0), ("i8x2", 0), ("bf16", 8), ("i8x2_upper", 16), ("i8", 16)]
)
@pytest.mark.parametrize("engine", image_facts.ENGINES)
def test_engines_are_those_of_the_compiler(engine, state, writes, tool):
    options = [f"--state={state}", *[f"--defer-writes={writes}"] * (writes > 0)]
    done = tool("gdn-compile", "--preset=qwen3.5-4b", f"--for={engine}", *options, "--emit=gdn")
    assert done.returncode == 0, done.stderr
    entries = dict(re.findall(r"func\.func @(\w+)(\(.*)", done.stdout))
    known = image_facts.engine_of(engine, state, writes)
    has = {
        "has-initial": '"has_initial"' in entries["prefill"],
        "decode-initial": '"has_initial"' in entries["decode"],
        "write-slots": '"write_slots"' in entries["decode"],
        "checkpoints": '"cu_checkpoints"' in entries["prefill"],
    }
    assert tuple(name for name, there in has.items() if there) == known.parameters
    verify = entries.get("verify", "")
    kind = "buffer" if "token_state_pool" in verify else "slots" if verify else "none"
    kind = "lazy" if "pending_keys" in verify else kind
    assert kind == known.verify
    facts = re.search(r"gdn\.facts = {(.*?)}", entries["prefill"])[1]
    assert f'layout = "{known.layout or "flat"}"' in facts
    assert f'outputs = "{known.outputs}"' in facts


def test_targets_are_those_of_the_compiler(tool, build_dir):
    text = " ".join(tool("gdn-compile", "--help").stdout.split())
    (gpus,) = re.findall(r"or a GPU: ([\w, ]*?)(?: -|$| --)", text)
    assert tuple(gpus.split(", ")) == targets.GPUS
    assert set(catalogue.TARGETS) == {*targets.CPUS, *targets.GPUS} - {"sm_89"}
    device = Runtime(build_dir / "lib/libgdnrt.so").device()
    assert targets.run_by(device) == targets.run_by("native")


def test_the_target_of_a_gpu():
    class Gpu:
        kind, name = "cuda", "NVIDIA H200, sm_90, 132 multiprocessors"

    assert targets.run_by(Gpu()) == ("sm_90a",)
    Gpu.name = "a name without its chip"
    with pytest.raises(ValueError, match="expected a CPU or a CUDA GPU"):
        targets.run_by(Gpu())


def test_deferral_is_that_of_the_compiler(tool):
    """What one refuses the other does."""
    for state, writes, verify in itertools.product(
        ("f32", "i8x2", "i8x2_upper", "i8"),
        (0, 1, 2, 8, 32, 33),
        (None, "none", "lazy", "slots", "tree"),
    ):
        options = [f"--state={state}", f"--defer-writes={writes}"]
        options += [f"--verify={verify}"] * (verify is not None)
        options += ["--verify-tokens=2"] * (verify == "lazy")
        done = tool("gdn-compile", "--preset=qwen3.5-4b", *options, "--only=decode", "--emit=gdn")
        try:
            image_facts.check_deferred(writes, state, verify)
        except ValueError:
            assert done.returncode != 0, options
        else:
            assert done.returncode == 0, (options, done.stderr)


def test_facts_of_prefill_are_of_the_stages_that_take_chunks(tool, tmp_path):
    """OLMo's image also has a program that goes token by token, the last choice of all."""
    image = tmp_path / "olmo.gdnk"
    options = ["--preset=olmo-hybrid-7b", "--io=bf16", "--state=f32", "--only=prefill"]
    done = tool("gdn-compile", *options, "--target=sm_90a", "--ptxas=none", "-o", image)
    assert done.returncode == 0, done.stderr
    shown = tool("gdn-run", image).stdout
    assert re.findall(r"fact (chunk\w*|precision): (\w+)", shown) == [
        ("chunk", "32"),
        ("chunk_from", "1"),
        ("precision", "parts"),
    ]
