#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares gdn's builder of metadata with vLLM's own on random steps, in every field, and runs
vLLM's own tests of its builder with gdn's in its place. Needs PyTorch and vLLM 0.33; no GPU.

    tools/scripts/vllm_builder_check.py --batches 3000
    tools/scripts/vllm_builder_check.py --tests vllm-0.33.0     the source tree, for its tests
"""

import argparse
import dataclasses
import random
import sys
from pathlib import Path

import pytest
import torch
from vllm.utils import torch_utils
from vllm.v1.attention.backend import CommonAttentionMetadata
from vllm.v1.attention.backends import gdn_attn
from vllm.v1.attention.backends import utils as backend_utils
from vllm.v1.kv_cache_interface import MambaSpec

from gdn.bench.vllm_setup import make_config
from gdn.integrations.vllm.backend import GdnMetadataBuilder

BLOCK = 64
DEVICE = torch.device("cpu")
TESTS = ("test_gdn_metadata_builder.py", "test_gdn_zero_draft_spec_rows.py")
# Fields that may hold other slots than vLLM's in rows of padding.
MAY_DIFFER: tuple[str, ...] = ()
for module in (torch_utils, backend_utils):
    module.PIN_MEMORY = torch.cuda.is_available()
VllmBuilder = gdn_attn.GDNAttentionMetadataBuilder


def spec_of(mode: str, drafts: int) -> MambaSpec:
    return MambaSpec(
        block_size=BLOCK,
        shapes=((3, 64), (2, 16, 16)),
        dtypes=(torch.bfloat16, torch.float32),
        mamba_cache_mode=mode,
        num_speculative_blocks=drafts,
        num_prefill_checkpoint_blocks=int(mode == "align"),
        prefill_checkpoint_alignment=BLOCK if mode == "align" else None,
    )


def draw_step(rng: random.Random, drafts: int):
    """A step: sequences that decode, with drafts or without, prompts, padding; what a scheduler
    hands over is in order or, sometimes, not."""
    rows = []
    for _ in range(rng.randint(0, 6)):
        before = rng.choice((0, 1, 5, 64, 300))
        rows.append((before + 1, 1, rng.choice((-1, 0)) if drafts else -1, before == 0))
    for _ in range(rng.randint(0, 4) if drafts else 0):
        count = rng.randint(0, drafts)
        rows.append((rng.randint(1, 300) + count + 1, count + 1, count, False))
    if rng.random() < 0.5:
        rng.shuffle(rows)
    for _ in range(rng.choice((0, 0, 1, 2, 3))):
        before = rng.choice((0, 0, 1, 64, 128))
        length = rng.choice((1, 2, 63, 64, 65, 130, 200))
        rows.append((before + length, length, -1, True))
    if rng.random() < 0.2:
        rng.shuffle(rows)
    rows = rows or [(1, 1, -1, True)]
    rows += [(0, 0, -1, False)] * rng.choice((0, 0, 1, 3))
    return rows


def common_of(rng: random.Random, rows) -> CommonAttentionMetadata:
    lengths, queries, _, prompts = (torch.tensor(column) for column in zip(*rows, strict=True))
    starts = torch.zeros(len(rows) + 1, dtype=torch.int32)
    starts[1:] = queries.cumsum(0)
    table = torch.randperm(len(rows) * 16).add(1).int().view(len(rows), 16)
    table[queries == 0] = 0
    total = int(starts[-1])
    return CommonAttentionMetadata(
        query_start_loc=starts,
        query_start_loc_cpu=starts.clone(),
        seq_lens=lengths.int(),
        seq_lens_cpu_upper_bound=lengths.int(),
        num_reqs=len(rows),
        num_actual_tokens=total + rng.choice((0, 0, 0, 4)),
        max_query_len=int(queries.max()),
        max_seq_len=int(lengths.max()),
        block_table_tensor=table,
        slot_mapping=torch.zeros(total, dtype=torch.int64),
        is_prefilling=prompts if rng.random() < 0.8 else None,
    )


def differences(name: str, ours, theirs, builders) -> list[str]:
    """Names of fields that are not the same: values, types, strides, and whether they are views of
    the builder's own arrays."""
    if dataclasses.is_dataclass(theirs):
        if type(ours) is not type(theirs):
            return [name]
        fields = [field.name for field in dataclasses.fields(theirs)]
        pairs = ((f"{name}.{f}", getattr(ours, f), getattr(theirs, f)) for f in fields)
    elif isinstance(theirs, dict) and isinstance(ours, dict) and ours.keys() == theirs.keys():
        pairs = ((f"{name}[{key}]", ours[key], theirs[key]) for key in theirs)
    elif isinstance(theirs, torch.Tensor):
        same = isinstance(ours, torch.Tensor) and ours.dtype == theirs.dtype
        same = same and ours.shape == theirs.shape and ours.stride() == theirs.stride()
        same = same and torch.equal(ours, theirs)
        same = same and buffer_of(builders[0], ours) == buffer_of(builders[1], theirs)
        return [] if same else [name]
    elif hasattr(theirs, "tolist"):
        return [] if type(ours) is type(theirs) and ours.tolist() == theirs.tolist() else [name]
    else:
        return [] if ours == theirs else [name]
    return [found for pair in pairs for found in differences(*pair, builders)]


def buffer_of(builder, tensor: torch.Tensor) -> str | None:
    """The attribute of the builder that the tensor is a view of."""
    if tensor.numel() == 0:
        return None
    memory = tensor.untyped_storage().data_ptr()
    arrays = {n: array for n, array in vars(builder).items() if isinstance(array, torch.Tensor)}
    found = (n for n, array in arrays.items() if array.untyped_storage().data_ptr() == memory)
    return next(found, None)


def outcome(call):
    """What a call gives, or the error that it raises."""
    try:
        return call()
    except AssertionError as error:
        return f"AssertionError: {error}"


def check_step(seed: int) -> tuple[list[str], object]:
    """A step through both builders, and another group's table; what is not the same."""
    rng = random.Random(seed)
    torch.manual_seed(seed)
    drafts, mode = rng.choice((0, 0, 1, 2, 3)), rng.choice(("none", "none", "align"))
    graphs, capture = rng.random() < 0.5, rng.random() < 0.1
    most = rng.choice((4, 16, 256))
    flashinfer = rng.random() < 0.5
    rows = draw_step(rng, drafts)
    if capture:
        rows = [(tokens := rng.randint(1, drafts + 1), tokens, -1, False)] * rng.randint(1, 4)
    common = common_of(rng, rows)
    other = torch.randperm(common.block_table_tensor.numel()).int()
    other = other.view_as(common.block_table_tensor)
    given = {}
    if drafts and not capture:
        counts = torch.tensor([row[2] for row in rows], dtype=torch.int32)
        accepted = torch.randint(1, drafts + 2, (len(rows),), dtype=torch.int32)
        given = {"num_accepted_tokens": accepted, "num_decode_draft_tokens_cpu": counts}
    builders, made = [], []
    for cls in (GdnMetadataBuilder, VllmBuilder):
        options = make_config(drafts, graphs, mode, most)
        builder = cls(spec_of(mode, drafts), ["layer"], options, DEVICE)
        if flashinfer:
            builder.gdn_prefill_backend = "flashinfer"
            builder.plan_flashinfer_checkpoints = mode == "align"
        # What was never written must be the same, too.
        for value in vars(builder).values():
            if isinstance(value, torch.Tensor):
                value.zero_()
        if capture:
            made.append(outcome(lambda b=builder: b.build_for_cudagraph_capture(common)))
        else:
            made.append(outcome(lambda b=builder: b.build(0, common, **given)))
        if mode == "align":
            builder.mamba_aligned_state_indices = other[:, : drafts + 1]
        builders.append(builder)
    if isinstance(made[0], str) or isinstance(made[1], str):
        return ([] if made[0] == made[1] else ["error"]), made[0]
    names = differences("build", made[0], made[1], builders)
    groups = [
        builder.update_block_table(metadata, other, common.slot_mapping)
        for builder, metadata in zip(builders, made, strict=True)
    ]
    names += differences("update_block_table", groups[0], groups[1], builders)
    return [name for name in names if name.split(".")[-1] not in MAY_DIFFER], made[0]


def compare(batches: int) -> int:
    """The number of steps that are not the same."""
    failed, kinds = 0, {"decode": 0, "prompts": 0, "drafts": 0, "checkpoint": 0, "refused": 0}
    for seed in range(batches):
        names, made = check_step(seed)
        if names:
            failed += 1
            print(f"step {seed}: {', '.join(names)}")
        if isinstance(made, str):
            kinds["refused"] += 1
            continue
        kinds["decode"] += made.num_decodes > 0
        kinds["prompts"] += made.num_prefills > 0
        kinds["drafts"] += made.num_spec_decodes > 0
        kinds["checkpoint"] += made.checkpoint is not None
    with_kinds = ", ".join(f"{count} with {name}" for name, count in kinds.items())
    print(f"{batches - failed} of {batches} steps are the same in every field ({with_kinds})")
    return failed


def run_tests(source: Path) -> int:
    """vLLM's tests, with gdn's builder and a configuration that needs no download."""
    sys.path.insert(0, str(source))
    from tests.v1.attention import utils

    gdn_attn.GDNAttentionMetadataBuilder = GdnMetadataBuilder
    utils.create_vllm_config = lambda **_: make_config()
    files = [str(source / "tests/v1/attention" / name) for name in TESTS]
    return pytest.main(["-q", "-p", "no:cacheprovider", "--noconftest", *files])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=3000)
    parser.add_argument("--tests", type=Path, help="the source tree of vLLM 0.33.0")
    arguments = parser.parse_args()
    failed = compare(arguments.batches)
    if arguments.tests:
        failed += int(run_tests(arguments.tests.resolve()) != 0)
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
