# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which variant of prefill a launch takes, for the batches that were measured: each keeps the
kernels that were fastest for it (test/data/prefill-choices.json has value heads, rows and
tokens of each, and the variant). The devices of the records have 132 multiprocessors."""

import ast
import json
import re
from math import prod
from statistics import geometric_mean

import pytest
from conftest import ROOT

from gdn.bench.grid import lengths_of

CHOICES = json.loads((ROOT / "test/data/prefill-choices.json").read_text())
# Of heads of 128 x 128 on an H200, in one call: microseconds of each variant that may be taken,
# by layout, heads and lengths.
VARIANTS = json.loads((ROOT / "test/data/prefill-variants-h200.json").read_text())
HEADS = (ROOT / "test/Pipeline/Inputs/heads.json").read_text()
LAYOUTS = {
    "ready": ["--layout=ready", "--outputs=core"],
    "gated": ["--layout=gated", "--l2norm", "--outputs=core"],
    "packed": [],
}
WORKERS = 132


def attribute(text: str) -> object:
    """An attribute of strings, arrays and dictionaries as MLIR prints it."""
    quoted = re.sub(r'("[^"]*"|[\w]+) = ', lambda m: f"{json.dumps(m[1].strip(chr(34)))}: ", text)
    return ast.literal_eval(quoted)


def bracketed(text: str) -> str:
    """The beginning of `text` up to the bracket that closes the one that it begins with."""
    depth = 0
    for at, character in enumerate(text):
        depth += (character in "[{") - (character in "]}")
        if depth == 0:
            return text[: at + 1]
    raise AssertionError(f"no end: {text[:80]}")


def variants_of(program: str) -> dict[str, list]:
    """The conditions of each variant, in the order in which launches ask for them."""
    found: dict[str, list] = {}
    for stage in program.split("func.func @")[1:]:
        if not (match := re.search(r'\bvariant = (?:"([^"]+)"|(\[[^]]*\]))', stage)):
            continue
        names = [match[1]] if match[1] else ast.literal_eval(match[2])
        head = stage.partition("conditions = ")[2]
        conditions = attribute(bracketed(head)) if head else []
        for name in names:
            own = conditions.get(name, []) if isinstance(conditions, dict) else conditions
            found[name] = found.get(name) or own
    return found


def holds(condition: object, values: dict[str, int]) -> bool:
    if isinstance(condition, dict) and "any_batch" in condition:
        return True  # of other launches
    if isinstance(condition, dict):
        return any(all(holds(one, values) for one in some) for some in condition["any"])
    left, right = (
        prod(values[factor] if factor in values else int(factor) for factor in side)
        for side in condition
    )
    return left <= right


def taken_of(variants: dict[str, list], value_heads: int, rows: int, tokens: int) -> str:
    """What a launch takes."""
    symbols = symbols_of(value_heads, rows, tokens)
    return next(
        name
        for name, conditions in variants.items()
        if all(holds(one, symbols) for one in conditions)
    )


def program_of(tool, tmp_path, case: str) -> str:
    """What the compiler makes of the heads and the layout on sm_90a, before code."""
    heads, layout = case.split()
    keys, values = heads.split("x")
    config = tmp_path / "config.json"
    config.write_text(HEADS.replace("KEYS", keys).replace("VALUES", values))
    options = ["--config", config, "--io=bf16", "--state=f32", "--only=prefill", *LAYOUTS[layout]]
    done = tool("gdn-compile", *options, "--target=sm_90a", "--emit=gpu", "-o", "-")
    assert done.returncode == 0, done.stderr
    return done.stdout


def symbols_of(value_heads: int, rows: int, tokens: int) -> dict[str, int]:
    return {"N": rows, "T": tokens, "Hv": value_heads, "workers": WORKERS, "dependent": 0}


@pytest.mark.parametrize("case", CHOICES)
def test_measured_batches_keep_their_kernels(tool, tmp_path, case):
    variants = variants_of(program_of(tool, tmp_path, case))
    assert len(variants) < 15
    wrong = {}
    for wanted, batches in CHOICES[case].items():
        for value_heads, rows, tokens in batches:
            taken = taken_of(variants, value_heads, rows, tokens)
            if taken != wanted:
                wrong[value_heads, rows, tokens] = (wanted, taken)
    assert not wrong


@pytest.mark.parametrize("layout", VARIANTS)
def test_choices_are_near_the_fastest_whatever_the_lengths(tool, tmp_path, layout):
    """A launch knows the number of sequences and tokens, not lengths: what it takes loses
    little where sequences are alike, and is no trap where one is long."""
    variants = variants_of(program_of(tool, tmp_path, f"128x128 {layout}"))
    times = {}
    for heads, sets in VARIANTS[layout].items():
        for name, of_variants in sets.items():
            lengths = lengths_of(name)
            value_heads = int(heads.partition("/")[2])
            taken = taken_of(variants, value_heads, len(lengths), sum(lengths))
            times[heads, name, taken] = of_variants[taken] / min(of_variants.values())
    worst = sorted(times.items(), key=lambda item: -item[1])
    assert worst[0][1] < 1.52, worst[:8]
    assert sum(ratio > 1.14 for ratio in times.values()) <= 5, worst[:8]
    assert geometric_mean(times.values()) < 1.02


# With a decay per channel (docs/design/20261129-copies-ahead.md, 20261130-channels-by-roles.md):
# heads, rows, tokens.
CHANNELS = {
    (32, 1, 8192): "staged-v-split-2-ahead",
    (32, 1, 32768): "staged-v-split-2-ahead",
    (64, 1, 32768): "fused-channels-v-split-2",
    (64, 1, 500): "staged-v-split-2-ahead",  # few tokens
    (60, 1, 4096): "fused-channels-v-split-2",
    (80, 1, 4096): "fused-channels",
    (64, 2, 4096): "fused-channels",  # as long as the stages if one row has all tokens
    (32, 5, 20480): "fused-channels",
    (32, 16, 2048): "fused-channels",
    (12, 1, 2048): "staged-v-split-2-ahead",
    (67, 1, 8192): "fused-channels",  # halves are more blocks than multiprocessors
    (67, 1, 500): "staged-v-split-2",
    (64, 1, 8192): "fused-channels-v-split-2",
    (96, 1, 8192): "fused-channels",
    (32, 8, 8192): "fused-channels",  # two waves
    (32, 4, 32768): "fused-channels",
    (64, 4, 32768): "fused-channels",
    (64, 8, 8192): "fused-channels",
    (32, 4, 8192): "fused-channels-by-lengths",  # one wave, as long as its longest row
    (32, 4, 1023): "staged-v-split-2",  # too short for launches of both
    (16, 5, 10240): "fused-channels-by-lengths",
    (16, 4, 8192): "staged-v-split-2-ahead",  # blocks gain nothing, whatever the lengths
    (8, 16, 32768): "staged-v-split-2",  # every block looks at all lengths
    (38, 4, 8192): "staged-v-split-2",  # the second wave would be a sixth full
    (32, 8, 1024): "staged-v-split-2",  # short rows, two waves
    (32, 4, 8191): "fused-channels-by-lengths",
    (4, 1, 2048): "staged-segments-8",
    (8, 1, 2048): "staged-segments-8",
    (16, 1, 8192): "staged-segments-8",
}


# Behind a stage of gates lengths choose halves in the place of stages, of any heads, and one wave
# of few tokens or many rows takes whole heads.
PACKED = CHANNELS | {
    (64, 2, 4096): "fused-channels-by-lengths",
    (32, 4, 2048): "fused-channels",
    (32, 4, 32768): "fused-channels-by-lengths",
    (16, 5, 10240): "fused-channels-by-lengths",
    (16, 5, 5000): "fused-channels",
    (8, 16, 32768): "fused-channels",
}
# One row of 32 heads with a softplus, where queries and keys need nothing but a norm.
SCALED = PACKED | dict.fromkeys([(32, 1, 8192), (32, 1, 32768)], "fused-channels-v-split-2")
KINDS = {
    "ready": ("kimi-linear-48b-a3b", "ready", CHANNELS),
    "softplus": ("kimi-linear-48b-a3b", "packed", PACKED),
    "bounded": ("kimi-k3", "packed", PACKED),
    "gated softplus": ("kimi-linear-48b-a3b", "gated", SCALED),
    "gated bounded": ("kimi-k3", "gated", PACKED),
}


@pytest.mark.parametrize("kind", KINDS)
def test_channels_take_what_was_fastest(tool, kind):
    preset, layout, wanted = KINDS[kind]
    options = [f"--preset={preset}", "--io=bf16", "--state=f32", *LAYOUTS[layout]]
    done = tool("gdn-compile", *options, "--only=prefill", "--target=sm_90a", "--emit=gpu")
    assert done.returncode == 0, done.stderr
    variants = variants_of(done.stdout)
    assert {batch: taken_of(variants, *batch) for batch in wanted} == wanted


# Value heads, rows, tokens: what launches take that ask for the same bits in any batch.
ANY_BATCH = {
    "128x128 ready": {
        (32, 4, 32768): "fused-by-lengths",
        (32, 8, 8192): "fused-stay",
        (32, 4, 20000): "fused-by-lengths",
        (64, 4, 32768): "fused",
        (16, 8, 8192): "fused",
        (8, 1, 32768): "fused-v-split-2",
        (24, 8, 32768): "fused-v-split-2",
        (32, 100, 100): "fused-stay",
        (2, 30, 300): "fused-v-split-2",
    },
    "128x128 packed": {
        (32, 4, 32768): "fused-by-lengths",
        (8, 1, 32768): "fused-v-split-2-followed",
        (24, 8, 32768): "fused-v-split-2",
        (2, 30, 300): "fused-v-split-2",
    },
}


@pytest.mark.parametrize("case", ANY_BATCH)
def test_launches_with_the_same_bits_in_any_batch(tool, tmp_path, case):
    program = program_of(tool, tmp_path, case)
    conditions = {}
    for name, own in variants_of(program).items():
        for of_any in (one["any_batch"] for one in own if "any_batch" in one):
            conditions[name] = of_any
    # Those with the bits of the first, which is by lengths.
    assert next(iter(conditions)) == "fused-by-lengths"
    bits = "fused" if "ready" in case else "fused-norm"
    stages = [stage for stage in program.split("func.func @") if f'bits = "{bits}"' in stage]
    conditions = {
        name: some
        for name, some in conditions.items()
        if any(re.search(rf'variant = [^\n]*"{name}"', stage) for stage in stages)
    }
    assert len(conditions) == (4 if "ready" in case else 5)
    for batch, wanted in ANY_BATCH[case].items():
        symbols = symbols_of(*batch)
        taken = [
            name
            for name, some in conditions.items()
            if any(all(holds(one, symbols) for one in each) for each in some)
        ]
        assert (taken or list(conditions)[-1:])[0] == wanted, batch


def test_there_are_all_measured_batches():
    """Heads of 256 x 256 have one variant."""
    known = {
        (case, *batch)
        for case, variants in CHOICES.items()
        for batches in variants.values()
        for batch in batches
    }
    measured = set()
    for record in sorted((ROOT / "runtime/bench/results").glob("p*.json")):
        if record.stem == "prefix-cache":
            continue  # of no kernel
        layout = "packed" if record.name.startswith("packed") else "ready"
        for row in json.loads(record.read_text())["rows"]:
            if row["suite"] == "prefill-channels":
                continue  # no variant is fused
            batch = row["config"]
            if "T" in batch and batch["dk"] != 256:
                heads = f"{batch['dk']}x{batch['dv']} {layout}"
                measured.add((heads, batch["Hv"], batch["N"], batch["T"]))
    assert len(measured) > 100 and measured <= known


def test_rows_of_the_policy_name_records():
    policy = (ROOT / "lib/Pipelines/PrefillPolicy.cpp").read_text()
    records = re.findall(r'"(\S+\.json)"', policy)
    assert records and all((ROOT / record).is_file() for record in records)
