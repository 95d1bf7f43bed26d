# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The convolution as a function of arrays, on the CPU and as a GPU kernel that the PTX machine
runs, against float64."""

import json
import os
import re
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

from gdn import Pool, Runtime
from gdn.compiler import Layer, compile
from gdn.conv1d import causal_conv1d
from gdn.op_kernels import ConvKind

TYPES = {"float32": np.float32, "bfloat16": ml_dtypes.bfloat16, "float16": np.float16}
UNIT = {"float32": 2e-6, "bfloat16": 4e-3, "float16": 1e-3}
SLOTS, NULL = 7, 4

pytestmark = pytest.mark.usefixtures("compiler_on_path")


@pytest.fixture(scope="module")
def runtime(build_dir):
    return Runtime(build_dir / "lib/libgdnrt.so")


def draw(seed=0, lengths=(5, 0, 1, 33, 2, 3), channels=40, width=4, io="float32", bias=True):
    """Sequences with a null slot, one that is out of range, tokens behind the last, and slots that
    nobody uses full of NaN."""
    rng = np.random.default_rng(seed)
    tokens = sum(lengths) + 2
    states = rng.standard_normal((SLOTS, channels, width - 1)).astype(TYPES[io])
    slots = np.array([5, 0, NULL, 2, 6, SLOTS + 3][: len(lengths)], np.int32)
    write_slots = np.array([5, 0, 1, 3, -1, 0][: len(lengths)], np.int32)
    states[[1, 3, NULL]] = np.nan
    return {
        "x": rng.standard_normal((tokens, channels)).astype(TYPES[io]),
        "weight": rng.standard_normal((channels, width)).astype(TYPES[io]),
        "states": states,
        "slots": slots,
        "write_slots": write_slots,
        "cu_seqlens": np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32),
        "has_initial": np.array([True, True, True, True, False, True][: len(lengths)]),
        "bias": rng.standard_normal(channels).astype(np.float32) if bias else None,
    }


def expected(given, activation="silu", null=NULL):
    """Results and states in float64."""
    x, weight = (given[name].astype(np.float64) for name in ("x", "weight"))
    bias = 0 if given["bias"] is None else given["bias"].astype(np.float64)
    width, states = weight.shape[1], given["states"].astype(np.float64)
    after, y = states.copy(), np.zeros_like(x)
    bounds = given["cu_seqlens"]
    is_live = [0 <= slot < SLOTS and slot != null for slot in given["slots"]]
    for n, slot in enumerate(given["slots"]):
        first, last = bounds[n], bounds[n + 1]
        if first == last or not is_live[n]:
            continue
        window = states[slot].T if given["has_initial"][n] else np.zeros((width - 1, x.shape[1]))
        row = np.concatenate([window, x[first:last]])
        for t in range(last - first):
            y[first + t] = bias + (weight.T * row[t : t + width]).sum(0)
        target = given["write_slots"][n]
        if 0 <= target < SLOTS and target != null:
            after[target] = row[len(row) - width + 1 :].T
    if activation == "silu":
        y = y / (1 + np.exp(-y))
    return y, after


def check(got, states, given, io, activation="silu"):
    want, after = expected(given, activation)
    error = np.abs(got.astype(np.float64) - want).max() / np.abs(want).max()
    assert error < UNIT[io], error
    np.testing.assert_array_equal(states.astype(np.float64), after)


def run(runtime, given, **options):
    states = given["states"].copy()
    arguments = {
        name: x for name, x in given.items() if name not in ("x", "weight", "states", "slots")
    }
    got = causal_conv1d(
        given["x"],
        given["weight"],
        states,
        given["slots"],
        null_slot=NULL,
        runtime=runtime,
        **arguments,
        **options,
    )
    return got, states


@pytest.mark.parametrize("io", TYPES)
@pytest.mark.parametrize(("width", "channels"), [(4, 40), (2, 64), (3, 192), (8, 8)])
def test_a_ragged_batch(runtime, io, width, channels):
    given = draw(width, channels=channels, width=width, io=io)
    check(*run(runtime, given), given, io)


def test_rows_of_skipped_sequences_may_stay(runtime):
    given = draw(5)
    want, _ = run(runtime, given)
    out = np.full_like(given["x"], 7)
    got, _ = run(runtime, given, out=out, zero_skipped=False)
    live = want.any(1)
    assert got is out and 0 < live.sum() < len(live)
    np.testing.assert_array_equal(out[live], want[live])
    assert (out[~live] == 7).all()


@pytest.mark.parametrize("last", [2**32 + 20, 8, 60])
def test_starts_that_are_out_of_order_or_behind_the_tokens(runtime, last):
    given = draw(6)
    starts = given["cu_seqlens"].astype(np.int64)
    starts[-1] = last
    before = given["states"].copy()
    message = f"cu_seqlens: expected element 6 from {starts[-2]} to 46, got {last}"
    with pytest.raises(ValueError, match=message):
        run(runtime, given | {"cu_seqlens": starts})
    np.testing.assert_array_equal(given["states"], before)


def test_tokens_of_no_sequence_are_zeros(runtime):
    given = draw(7) | {"cu_seqlens": np.array([0])}
    given |= {name: given[name][:0] for name in ("slots", "write_slots", "has_initial")}
    out = np.full_like(given["x"], 7)
    assert (run(runtime, given, out=out, zero_skipped=False)[0] == 7).all()
    for each in (None, out):
        assert not run(runtime, given, out=each)[0].any()


def test_without_bias_or_activation(runtime):
    given = draw(1, bias=False)
    got, states = run(runtime, given, activation="identity")
    check(got, states, given, "float32", "identity")


def test_states_of_other_strides_and_a_result_that_is_given(runtime):
    given = draw(2)
    # Positions innermost of a longer window, and rows that are parts of longer ones.
    wide = np.full((SLOTS, 6, 40), 9.0, np.float32)
    states = wide[:, 3:].transpose(0, 2, 1)
    states[...] = given["states"]
    rows = np.full((given["x"].shape[0], 50), np.nan, np.float32)
    rows[:, 5:45] = given["x"]
    out = np.full_like(given["x"], np.nan)
    got = causal_conv1d(
        rows[:, 5:45],
        given["weight"],
        states,
        given["slots"],
        **{name: given[name] for name in ("write_slots", "cu_seqlens", "has_initial", "bias")},
        out=out,
        null_slot=NULL,
        runtime=runtime,
    )
    assert got is out
    check(got, states, given, "float32")
    assert (wide[:, :3] == 9).all()


def test_a_token_for_each_slot_goes_as_a_ragged_batch_of_ones(runtime):
    given = draw(3, lengths=(1, 1, 1, 1))
    given["x"] = given["x"][:4]
    want, after = run(runtime, given)
    states = given["states"].copy()
    got = causal_conv1d(
        given["x"],
        given["weight"],
        states,
        given["slots"],
        bias=given["bias"],
        write_slots=given["write_slots"],
        null_slot=NULL,
        runtime=runtime,
    )
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(states, after)


def test_a_sequence_in_pieces(runtime):
    given = draw(4, lengths=(21,))
    given["x"], given["write_slots"] = given["x"][:21], given["slots"]
    want, after = run(runtime, given)
    states, parts = given["states"].copy(), []
    for first, last in ((0, 2), (2, 3), (3, 20), (20, 21)):
        piece = given | {"x": given["x"][first:last], "states": states}
        piece["cu_seqlens"] = np.array([0, last - first], np.int64)
        got, states = run(runtime, piece)
        parts.append(got)
    np.testing.assert_array_equal(np.concatenate(parts), want)
    np.testing.assert_array_equal(states, after)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": np.zeros((46, 44), np.float32)}, "weight: expected the shape .44, 4., got .40, 4."),
        ({"weight": np.zeros((40, 9), np.float32)}, "K from 2 to 8, got K = 9"),
        ({"states": np.zeros((7, 40, 4), np.float32)}, r"states: .*\[7, 40, 3\], got \[7, 40, 4\]"),
        ({"slots": np.zeros(6, np.float32)}, "slots: expected integers, got float32"),
        ({"slots": np.zeros(5, np.int32)}, r"slots: expected the shape \[6\], got \[5\]"),
        ({"bias": np.zeros(3, np.float32)}, r"bias: expected the shape \[40\], got \[3\]"),
        ({"x": np.zeros((46, 40), np.float64)}, "x: expected float32 or bfloat16 or float16"),
        ({"cu_seqlens": None}, "has_initial: expected None without cu_seqlens"),
    ],
)
def test_what_is_refused(runtime, change, message):
    given = draw() | change
    before = given["states"].copy()
    with pytest.raises(ValueError, match=message):
        run(runtime, given)
    np.testing.assert_array_equal(given["states"], before)


@pytest.mark.parametrize("name", ["states", "out"])
def test_what_is_written_is_not_read_only(runtime, name):
    given = draw()
    given["out"] = np.zeros_like(given["x"])
    read = [array for array in given.values() if array is not None]
    for array in read:
        array.flags.writeable = array is given["states"] or array is given["out"]
    causal_conv1d(**given, null_slot=NULL, runtime=runtime)
    given[name].flags.writeable = False
    with pytest.raises(ValueError, match=f"{name}: expected an array that can be written"):
        causal_conv1d(**given, null_slot=NULL, runtime=runtime)


def test_channels_that_no_tile_divides(runtime):
    with pytest.raises(ValueError, match="x: expected a multiple of 8 channels, got 12"):
        run(runtime, draw(channels=12))


# Sequences that end before, at and behind what a block works on at once, and long ones, which
# many blocks share.
LENGTHS = [(5, 0, 1, 33, 2, 3), (17, 16, 15, 300, 18, 1), (900, 7, 16, 256, 530, 40)]


@pytest.mark.parametrize(
    ("io", "width", "channels", "lengths"),
    [("bfloat16", 4, 192, lengths) for lengths in LENGTHS]
    + [("float32", 3, 40, LENGTHS[1]), ("float16", 8, 16, LENGTHS[1])],
)
def test_the_kernel_of_a_gpu(build_dir, ptx_driver, io, width, channels, lengths):
    gpu = Runtime(build_dir / "lib/libgdnrt.so").cuda(driver=ptx_driver / "libcuda.so.1")
    tile = 64 if channels % 64 == 0 else 8
    layer = Layer(ConvKind(width, tile, "silu", True, io, io, io).layer())
    image = gpu._runtime.image(compile(layer, "sm_90a", options=["--ptxas=none"]))

    def check_entry(entry, given, names, variants):
        kernel = gpu.kernel(image, entry)
        assert [variant.name for variant in kernel.variants] == variants
        for kernel.variant in variants:
            check_kernel(kernel, given, names)

    def check_kernel(kernel, given, names):
        x, states = given["x"].reshape(-1, channels // tile, tile), gpu.array(given["states"])
        y = gpu.array(np.full(x.shape, np.nan, x.dtype))
        names = ("weight", "bias", "slots", "write_slots", *names)
        arrays = {name: gpu.array(given[name]) for name in names}
        pool = Pool(states, NULL)
        binding = kernel.bind(x=gpu.array(x), y=y, conv_pool=pool, **arrays)
        if binding.workspace_bytes:
            binding.set_workspace()
        binding.launch()
        gpu.synchronize()
        check(y.numpy().reshape(given["x"].shape), states.numpy(), given, io)

    given = draw(5, lengths, channels, width, io)
    check_entry("prefill", given, ("cu_seqlens", "has_initial"), ["segments", "rows"])
    # A token for each slot.
    given = draw(6, (1,) * 6, channels, width, io)
    given["x"], given["has_initial"] = given["x"][:6], np.ones(6, bool)
    check_entry("decode", given, (), ["rows"])


def test_a_ticket_that_depends_on_nothing(build_dir, ptx_driver, tmp_path):
    """Takes from the counter of `segments` what makes it depend on the window that was read: the
    machine says that the last segment overwrites what others may still read. The edited kernel is
    that of the test above, in a process of its own."""
    layer = Layer(ConvKind(4, 64, "silu", True, "bfloat16", "bfloat16", "bfloat16").layer())
    text = compile(layer, "sm_90a", options=["--ptxas=none"]).read_bytes()
    begin = text.index(b".version")
    begin = text.rindex(b"\0", 0, begin) + 1
    lines = text[begin : text.index(b"\0", begin)].decode().split("\n")
    tickets = [(n, line) for n, line in enumerate(lines, 1) if "atom.relaxed.gpu" in line]
    assert len(tickets) == 1, tickets
    number, ticket = tickets[0]
    alone = re.sub(r", %r\d+; }", ", 15; }", ticket)
    assert alone != ticket
    report = tmp_path / "findings"
    edit = {"GDN_PTX_EDIT": f"{number} {alone}", "GDN_PTX_REPORT": str(report)}
    test = f"{__file__}::test_the_kernel_of_a_gpu"
    options = [f"--build-dir={build_dir}", "-k", "bfloat16-4-192-lengths0", test]
    command = [sys.executable, "-m", "pytest", "-q", *options]
    done = subprocess.run(command, env=os.environ | edit, text=True, capture_output=True)
    assert done.returncode == 1, done.stdout + done.stderr
    findings = [json.loads(line) for line in report.read_text().splitlines()]
    assert findings and {finding["kernel"] for finding in findings} == {"prefill__segments"}
    for finding in findings:
        assert "over global memory" in finding["text"]
        assert "nor an atomic that depends on what was read" in finding["text"]
