# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The entry `plan` of mixed batches, by gdn-run on the CPU and, as code for GPUs, on a driver
that runs PTX on the CPU (test/PTX), against docs/spec/plan_batch.md in Python."""

import os
import random
import struct
import subprocess
from itertools import pairwise

import pytest
import tensorfile

FORMATS = {"BOOL": "?", "I32": "i", "I64": "q"}
RESULTS = ("cu_seqlens", "slots", "write_slots", "has_initial", "taken")


def plan(starts, lens, table, drafts, accepted):
    """The results by name; `accepted` may be None."""
    elements, is_prefill, end, in_gap = [], [], 0, False
    for n, (first, behind) in enumerate(pairwise(starts)):
        tokens = max(0, behind - first)
        goes_on = accepted is not None and tokens == 1 < lens[n]
        is_prefill.append(tokens > 0 and drafts[n] < 0 and not goes_on)
        if tokens == 0:
            continue
        end = behind
        if is_prefill[n]:
            initial = lens[n] > tokens
            a = accepted[n] if accepted is not None and initial else 1
            fits = lens[n] >= tokens and 1 <= a <= len(table[n])
            slot = table[n][a - 1] if fits else -1
            elements.append((first, slot, table[n][0], initial, True))
        elif not in_gap:
            elements.append((first, -1, -1, True, False))
        in_gap = not is_prefill[n]
    elements += [(end, -1, -1, True, False)] * (len(lens) - len(elements))
    lists = dict(zip(RESULTS, map(list, zip(*elements, strict=True)), strict=True))
    lists["cu_seqlens"].append(end)
    return {"is_prefill": is_prefill} | {f"prefill_{name}": lists[name] for name in RESULTS}


def draw(rng, n, columns, wide):
    """Sequences of every kind, at times what no engine would say."""
    starts, lens, drafts = [rng.choice([0, 0, 5])], [], []
    padding = rng.choice([n, n, rng.randint(0, n)])
    garbage = rng.random() < 0.25
    for i in range(n):
        few = rng.randint(1, 4)
        tokens, total, asked = rng.choice([
            (1, 7, -1), (1, 1, -1), (few, few + 9, few - 1), (few + 1, few + 1, -1),
            (few + 1, few + 9, -1), (0, few, few - 2), (few, few - 1, -1),
        ])  # fmt: skip
        if garbage and rng.random() < 0.3:
            tokens, asked = rng.randint(-20, 3), rng.randint(-9, 9)
        starts.append(starts[-1] + tokens if i < padding else rng.choice([0, starts[-1]]))
        lens.append(total)
        drafts.append(asked)
    largest = 1 << 40 if wide else 5000
    table = [[rng.choice([-1, rng.randint(0, largest)]) for _ in range(columns)] for _ in range(n)]
    accepted = [rng.choice([rng.randint(-2, columns + 2), -(1 << 31)]) for _ in range(n)]
    return starts, lens, table, drafts, accepted


def tensor(dtype, shape, values):
    return dtype, shape, struct.pack(f"<{len(values)}{FORMATS[dtype]}", *values)


KINDS = [("slots", False), ("slots", True), ("tree", False), ("tree", True)]


@pytest.fixture(scope="module", params=KINDS, ids=lambda kind: kind[0] + "_i64" * kind[1])
def image(request, tool, tmp_path_factory):
    verify, wide = request.param
    path = tmp_path_factory.mktemp("plan") / "plan.gdnk"
    options = ["--preset=qwen3.5-0.8b", "--mixed-batch", f"--verify={verify}", "--only=plan"]
    options += ["--slots64"] if wide else []
    done = tool("gdn-compile", *options, "--ptxas=none", "--target=x86-64-v3,sm_80", "-o", path)
    assert done.returncode == 0, done.stderr
    return path, verify == "slots", wide


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_results(build_dir, image, ptx_driver, tmp_path, device):
    path, has_counts, wide = image
    rng = random.Random(0)
    environment = os.environ | {"LD_LIBRARY_PATH": str(ptx_driver)}
    given, written = tmp_path / "in.safetensors", tmp_path / "out.safetensors"
    for n in (1, 2, 5, 9, 31, 32, 33, 70):
        columns = rng.randint(1, 4)
        starts, lens, table, drafts, accepted = draw(rng, n, columns, wide)
        ids = [slot for row in table for slot in row]
        tensors = {
            "query_start_loc": tensor("I32", [n + 1], starts),
            "seq_lens": tensor("I32", [n], lens),
            "block_table": tensor("I64" if wide else "I32", [n, columns], ids),
            "num_drafts": tensor("I32", [n], drafts),
        }
        if has_counts:
            tensors["num_accepted"] = tensor("I32", [n], accepted)
        tensorfile.write(given, tensors)
        command = [build_dir / "bin/gdn-run", path, "--entry=plan", f"--device={device}"]
        command += ["--input", given, "--output", written, "--check"]
        done = subprocess.run(command, env=environment, text=True, capture_output=True)
        assert done.returncode == 0, done.stdout + done.stderr
        got = {
            name: list(struct.unpack(f"<{shape[0]}{FORMATS[dtype]}", content))
            for name, (dtype, shape, content) in tensorfile.read(written).items()
        }
        assert got == plan(starts, lens, table, drafts, accepted if has_counts else None), n
