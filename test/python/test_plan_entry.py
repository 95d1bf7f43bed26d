# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The entry `plan` of mixed batches, by gdn-run on the CPU and, as code for GPUs, on a driver
that runs PTX on the CPU (test/PTX), against docs/spec/plan_batch.md in Python."""

import os
import random
import struct
import subprocess
from itertools import pairwise
from typing import NamedTuple

import pytest
import tensorfile

FORMATS = {"BOOL": "?", "I32": "i", "I64": "q"}
PREFILL = ("cu_seqlens", "slots", "write_slots", "has_initial", "taken")
SKIPPED = (-1, -1, True, False)  # all of an element of prefill but its start


class Batch(NamedTuple):
    """The arrays of an engine, and what its step may have."""

    starts: list[int]
    lens: list[int]
    table: list[list[int]]
    drafts: list[int]
    accepted: list[int]
    tokens: int
    columns: int


class Sequence(NamedTuple):
    """What is said of a sequence with tokens."""

    is_prefill: bool
    is_valid: bool
    goes_on: bool


def describe(batch, n, length, behind, kind):
    all_tokens, a = batch.lens[n], batch.accepted[n]
    goes_on = all_tokens > length
    is_prefill = batch.drafts[n] < 0 and not (kind == "slots" and length == 1 and goes_on)
    least = 1 if kind == "slots" else 0
    counted = kind == "tree" or least <= a <= batch.columns or (is_prefill and not goes_on)
    fits = length <= min(all_tokens, length if is_prefill else batch.columns)
    return Sequence(is_prefill, counted and fits and behind <= batch.tokens, goes_on)


def padded_starts(firsts, live, tokens):
    """Starts for verify: sequences from `live` on share what is behind the others."""
    sharers, end = len(firsts) - 1 - live, min(firsts[-1], tokens)
    share = -(-(tokens - end) // max(sharers, 1))
    starts = firsts[:live] + [end + i * share for i in range(sharers)]
    return [min(start, tokens) for start in starts] + [tokens if sharers else end]


def plan(batch, kind):
    """The results of the entry by name."""
    count = len(batch.lens)
    firsts = [max(0, *batch.starts[: n + 1]) for n in range(count + 1)]
    is_prefill, verify, commit, elements = [False] * count, [], [], []
    live, in_gap = 0, False
    for n, (first, behind) in enumerate(pairwise(firsts)):
        verify.append((-1, 0))
        commit.append((-1, 0))
        if first == behind:
            continue
        live = n + 1
        s = describe(batch, n, behind - first, behind, kind)
        row, a = batch.table[n], batch.accepted[n]
        is_prefill[n] = s.is_prefill
        if s.is_prefill:
            column = a - 1 if kind == "slots" and s.goes_on else 0
            slot = row[column] if s.is_valid and column < len(row) else -1
            write = row[0] if s.is_valid else -1
            elements.append((first, slot, write, s.goes_on, True))
        elif not in_gap:
            elements.append((first, *SKIPPED))
        in_gap = not s.is_prefill
        if s.is_valid and not s.is_prefill:
            verify[n] = (row[0], a)
        commits = kind == "buffer" or (kind == "lazy" and s.is_prefill)
        if commits and s.is_valid and s.goes_on and a > 0:
            commit[n] = (row[0], a)
        if kind == "deferred" and s.is_valid and s.is_prefill:
            commit[n] = (row[0], a if s.goes_on else 0)
    starts = padded_starts(firsts, live, batch.tokens)
    if not in_gap and starts[-1] > firsts[-1]:
        elements.append((firsts[-1], *SKIPPED))
    elements += [(starts[-1], *SKIPPED)] * (count - len(elements))
    lists = dict(zip(PREFILL, map(list, zip(*elements, strict=True)), strict=True))
    lists["cu_seqlens"] = [min(start, batch.tokens) for start in lists["cu_seqlens"]] + starts[-1:]
    results = {"is_prefill": is_prefill, "verify_cu_seqlens": starts}
    results |= {f"prefill_{name}": values for name, values in lists.items()}
    if kind != "slots":
        results["verify_slots"] = [slot for slot, _ in verify]
    if kind in ("slots", "lazy", "deferred"):
        results["verify_accepted"] = [a for _, a in verify]
    if kind in ("lazy", "buffer", "deferred"):
        results["commit_slots"] = [slot for slot, _ in commit]
        results["commit_accepted"] = [a for _, a in commit]
    return results


def draw(rng, n, wide):
    """Sequences of every kind, at times what no engine would say."""
    starts, lens, drafts = [rng.choice([0, 0, 5])], [], []
    width, columns = rng.randint(1, 4), rng.randint(1, 5)
    padding = rng.choice([n, rng.randint(0, n)])
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
    table = [[rng.choice([-1, rng.randint(0, largest)]) for _ in range(width)] for _ in range(n)]
    counts = [*range(columns + 1), rng.randint(-2, columns + 2), -(1 << 31)]
    accepted = [rng.choice(counts) for _ in range(n)]
    end = max(starts)
    tokens = rng.choice([end, end + rng.randint(1, 40), max(1, end - rng.randint(1, 9))])
    return Batch(starts, lens, table, drafts, accepted, max(1, tokens), columns)


def tensor(dtype, shape, values):
    return dtype, shape, struct.pack(f"<{len(values)}{FORMATS[dtype]}", *values)


def tensors_of(batch, kind, wide):
    n = len(batch.lens)
    ids = [slot for row in batch.table for slot in row]
    tensors = {
        "query_start_loc": tensor("I32", [n + 1], batch.starts),
        "seq_lens": tensor("I32", [n], batch.lens),
        "block_table": tensor("I64" if wide else "I32", [n, len(batch.table[0])], ids),
        "num_drafts": tensor("I32", [n], batch.drafts),
        # Its sizes alone are used.
        "limits": tensor(
            "BOOL", [batch.tokens, batch.columns], [True] * (batch.tokens * batch.columns)
        ),
    }
    if kind != "tree":
        tensors["num_accepted"] = tensor("I32", [n], batch.accepted)
    return tensors


NAMES = ("slots", "tree", "lazy", "buffer", "deferred")
KINDS = [(kind, wide) for kind in NAMES for wide in (False, True)]


@pytest.fixture(scope="module", params=KINDS, ids=lambda kind: kind[0] + "_i64" * kind[1])
def image(request, tool, tmp_path_factory):
    kind, wide = request.param
    path = tmp_path_factory.mktemp("plan") / "plan.gdnk"
    options = ["--preset=qwen3.5-0.8b", "--mixed-batch", "--only=plan"]
    options += ["--verify=lazy", "--defer-writes=8"] if kind == "deferred" else [f"--verify={kind}"]
    options += ["--slots64"] if wide else []
    done = tool("gdn-compile", *options, "--ptxas=none", "--target=x86-64-v3,sm_80", "-o", path)
    assert done.returncode == 0, done.stderr
    return path, kind, wide


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_results(build_dir, image, ptx_driver, tmp_path, device):
    path, kind, wide = image
    rng = random.Random(kind)
    environment = os.environ | {"LD_LIBRARY_PATH": str(ptx_driver)}
    given, written = tmp_path / "in.safetensors", tmp_path / "out.safetensors"
    for n in (1, 2, 2, 3, 3, 5, 5, 9, 9, 14, 31, 32, 33, 70):
        batch = draw(rng, n, wide)
        if kind == "tree":  # counts are not given
            batch = batch._replace(accepted=[1] * n)
        tensorfile.write(given, tensors_of(batch, kind, wide))
        command = [build_dir / "bin/gdn-run", path, "--entry=plan", f"--device={device}"]
        command += ["--input", given, "--output", written, "--check"]
        done = subprocess.run(command, env=environment, text=True, capture_output=True)
        assert done.returncode == 0, done.stdout + done.stderr
        got = {
            name: list(struct.unpack(f"<{shape[0]}{FORMATS[dtype]}", content))
            for name, (dtype, shape, content) in tensorfile.read(written).items()
        }
        assert got == plan(batch, kind), batch
