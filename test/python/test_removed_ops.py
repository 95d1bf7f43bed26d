# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""removed_ops.py: what is taken out of a program, and that gdn-gpu-check misses it.

A sample has every kind of op. The whole, all sets on a chip of each family, is in --full."""

import subprocess
import sys
from collections import Counter

import pytest

import kernels_lock
import removed_ops
from removed_ops import KINDS, Program, Removal

HEAD = "#row = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>\n"
RING = "  func.func @a_bf16_f32__stage_2() attributes {gdn_gpu.kernel = {threads = 64 : i64}} {\n"

# Programs that have every kind of op between them, and few others.
SAMPLE = [
    ("d128-bf16", "sm_90a", "decode_bf16_f32"),
    ("d128-bf16", "sm_90a", "decode_bf16_f32_persistent"),
    ("d128-bf16", "sm_90a", "prefill_bf16_f32__inter_chunk_fused"),
    ("d128-bf16", "sm_90a", "prefill_bf16_f32__inter_chunk_fused_segments_3_followed"),
    ("d128-bf16", "sm_90a", "prefill_bf16_f32__inter_chunk_fused_v_split_2_followed"),
    ("d128-bf16", "sm_90a", "prefill_bf16_f32__norm_fused_v_split_2_followed"),
    ("d128-bf16", "sm_80", "prefill_bf16_f32__scan_segments_8"),
    ("d128-verify-tree", "sm_80", "verify_bf16_f32"),
]


def program(*lines):
    return Program("set/sm_90a/a", "a", (RING, *lines, "  }\n"), HEAD)


def removed(kind, *lines):
    """The lines of the first program without an op of that kind, but for the first and last."""
    (first, *_) = removed_ops.removals(program(*lines), [kind])
    return list(first.lines[1:-1])


def test_kinds_of_programs():
    assert removed_ops.kind_of("prefill_bf16_f32__prologue_short") == "prologue"
    assert removed_ops.kind_of("prefill__first_fused_segments_9") == "first_fused_segments"
    assert removed_ops.kind_of("decode_bf16_bf16_narrow") == "decode"
    assert removed_ops.kind_of("decode_bf16_f32_persistent_aligned") == "decode_persistent"
    assert removed_ops.kind_of("verify_bf16_f32") == "verify"


def test_programs_of_a_text():
    text = f"{HEAD}module {{\n{RING}    gdn_gpu.barrier\n    return\n  }}\n{RING}  }}\n}}\n"
    first, second = removed_ops.programs_of("set/sm_90a", text)
    assert first.name == "set/sm_90a/a_bf16_f32__stage_2"
    assert first.kind == "stage"
    assert first.lines == (RING, "    gdn_gpu.barrier\n", "    return\n", "  }\n")
    assert first.head == HEAD
    assert removed_ops.different([first, second, first]) == [first, second]


def test_signals_are_checked_with_the_other_stages():
    def stage(name, variant, *lines):
        fields = f'gdn_tile.stage = {{stage_of = "a", variant = {variant}}}'
        return f"  func.func @a__{name}() attributes {{{fields}}} {{\n{''.join(lines)}  }}\n"

    signal = "    gdn_gpu.signal 64, %a[%i] : memref<?xf32>\n"
    stages = [
        stage("clear", '["one", "two"]'),
        stage("other", '"two"'),
        stage("rule", '"one"', "    gdn_gpu.barrier\n", signal),
        stage("norm", '"one"', "    gdn_gpu.await_signals 64, %a[%i] : memref<?xf32>\n"),
    ]
    clear, other, rule, norm = removed_ops.programs_of("set/sm_90a", "".join(stages))
    assert "".join(rule.ahead) == stages[0]
    assert "".join(rule.behind) == stages[3]
    assert "".join(norm.ahead) == stages[0] + stages[2]
    assert not (clear.ahead or clear.behind or other.ahead or other.behind or norm.behind)
    barrier, without = removed_ops.removals(rule, ["barrier", "signal"])
    assert barrier.text == removed_ops.module(rule, barrier.lines)
    kept = stages[2].replace(signal, "")
    assert without.text == f"module {{\n{stages[0]}{kept}{stages[3]}}}\n"


def test_ops_without_a_result_leave_nothing():
    assert removed("barrier", "    gdn_gpu.barrier\n") == []
    assert removed("await_launch", "    gdn_gpu.await_launch\n", "    gdn_gpu.barrier\n") == [
        "    gdn_gpu.barrier\n"
    ]


def test_answers_become_true():
    line = "    %last = gdn_gpu.last_reader %c0 of %n after %a : !gdn_gpu.fragment<1x8xf32, #a>\n"
    assert removed("last_reader", line) == ["    %last = arith.constant true\n"]
    assert removed("after", line) == ["    %last = gdn_gpu.last_reader %c0 of %n\n"]


def test_a_tile_of_its_own_in_scope():
    lines = removed(
        "acquire",
        "    scf.if %c {\n",
        "      %t = gdn_gpu.acquire %ring : <1x8xf32, depth = 2> -> <8xf32>\n",
        "      use %t, %t#0, %t1\n",
        "    }\n",
        "    use %t\n",
    )
    assert lines == [
        "    %own_tile = gdn_gpu.alloc : <8xf32>\n",
        "    scf.if %c {\n",
        "      use %own_tile, %t#0, %t1\n",
        "    }\n",
        "    use %t\n",
    ]


def test_a_channel_becomes_a_tile():
    lines = removed(
        "channel",
        "    %ring = gdn_gpu.channel : <64x8xf16, depth = 2, swizzled>\n",
        "    %t = gdn_gpu.receive %ring : <64x8xf16, depth = 2, swizzled>"
        " -> <8x64xf16, swizzled>\n",
        "    gdn_gpu.release %ring : <64x8xf16, depth = 2, swizzled>\n",
    )
    assert lines == [
        "    %ring = gdn_gpu.alloc : <64x8xf16, swizzled>\n",
        "    %t = gdn_gpu.reshape %ring : <64x8xf16, swizzled> to <8x64xf16, swizzled>\n",
    ]


def test_a_leader_stays():
    ring = program(
        "    %a = gdn_gpu.channel : <8xf32, depth = 2>\n",
        "    %b = gdn_gpu.channel : <8xf32, depth = 2> with %a : !ring\n",
    )
    assert [one.line for one in removed_ops.removals(ring, ["channel"])] == [2]


def test_channels_that_are_handed_on_stay():
    ring = program(
        "    %a = gdn_gpu.channel : <8xf32, depth = 2>\n",
        "    %b = gdn_gpu.channel : <8xf32, depth = 2> of %a : !ring\n",
    )
    assert not list(removed_ops.removals(ring, ["channel"]))


def test_a_table_counts_both():
    ring = program("    gdn_gpu.barrier\n")
    (removal,) = removed_ops.removals(ring)
    assert removed_ops.table([(removal, "an error"), (removal, "")]).splitlines()[2:] == [
        "| `barrier` | 1 | 1 | a 1 |"
    ]


def test_what_is_accepted_has_a_reason():
    scan = Program("set/sm_80/x", "scan_segments", (), "")
    explained = Removal(scan, "await_copies", 0, ())
    assert removed_ops.reason(explained)
    assert not removed_ops.reason(Removal(scan, "barrier", 0, ()))
    upper, other = (Program(f"{name}/sm_80/x", "decode", (), "") for name in ("d128-upper", "set"))
    assert removed_ops.reason(Removal(upper, "barrier", 0, ()))
    assert not removed_ops.reason(Removal(other, "barrier", 0, ()))


def test_only_the_last_wait_for_a_launch_may_go():
    one = program("    gdn_gpu.await_launch\n", "    gdn_gpu.barrier\n")
    (alone,) = removed_ops.removals(one, ["await_launch"])
    assert removed_ops.reason(alone)
    two = program("    gdn_gpu.await_launch\n", "    gdn_gpu.await_launch\n")
    first, second = removed_ops.removals(two, ["await_launch"])
    assert not removed_ops.reason(first)
    assert not removed_ops.reason(second)


@pytest.fixture(scope="module")
def tools(build_dir):
    if not (build_dir / "bin/gdn-gpu-opt").exists():
        pytest.skip("needs the compiler")
    return build_dir


def test_errors_go_to_their_module(tools):
    good = f"module {{\n{RING}    return\n  }}\n}}\n"
    bad = good.replace("    return", "    gdn_gpu.arrive for 1\n    return")
    errors = removed_ops.refused(tools, [good, bad, good, bad])
    assert sorted(errors) == [1, 3]
    assert "expects a gdn_gpu.await_arrivals" in errors[1]
    with pytest.raises(removed_ops.RemovedOpsError, match="programs that can be read"):
        removed_ops.refused(tools, [good, "module {"])


def check(judged):
    """Nothing is accepted without an op unless EXPLAINED says why."""
    left = [removal for removal, error in judged if not error and not removed_ops.reason(removal)]
    places = [f"{removal.program.name}:{removal.line + 1} {removal.kind}" for removal in left]
    assert not places, places[:20]


def test_a_sample_of_programs(tools):
    chosen = []
    for name, target, function in SAMPLE:
        found = removed_ops.compile_programs(tools, name, target)
        chosen += [one for one in found if one.name == f"{name}/{target}/{function}"]
    assert len(chosen) == len(SAMPLE)
    judged = removed_ops.judge_all(tools, chosen)
    counts = Counter(removal.kind for removal, _ in judged)
    rare = {"warp_barrier", "arrive", "await_arrivals"}
    assert {kind for kind in KINDS if not counts[kind]} <= rare
    check(judged)


@pytest.mark.long
def test_all_programs(tools):
    programs = removed_ops.different(
        program
        for name in kernels_lock.KERNEL_SETS
        for target in kernels_lock.FAMILIES
        for program in removed_ops.compile_programs(tools, name, target)
    )
    judged = removed_ops.judge_all(tools, programs)
    assert len(judged) > 10_000
    check(judged)
    # Each reason is still one of something.
    used = {removed_ops.reason(removal) for removal, error in judged if not error}
    assert used - {""} == set(removed_ops.EXPLAINED.values())


def test_the_command(tools):
    script = removed_ops.ROOT / "tools/scripts/removed_ops.py"
    options = ["--set=d96-olmo", "--targets=sm_80", "--kinds=barrier", "--errors"]
    command = [sys.executable, script, *options, f"--build-dir={tools}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "| `barrier` |" in done.stdout
    assert "expects a gdn_gpu.barrier" in done.stdout
