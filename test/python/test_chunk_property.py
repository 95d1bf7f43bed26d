# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The chunk form equals the recurrence, on random calls (docs/spec/numerics.md).

Both are compiled from the same entries. A failing call is made smaller and
printed; --case='<what was printed>' runs it again.
"""

import dataclasses
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from delta_rule_cases import Call, Case, Row, all_in_float64, cases, in_float64, relative_error
from delta_rule_images import Variant, compile_image
from hypothesis import HealthCheck, Phase, find, given, settings

from gdn import Pool, Runtime

pytestmark = pytest.mark.once(compiler="cpu")

VARIANTS = (
    Variant(64, 64),
    Variant(16, 24, has_initial=True, write_slots=True),
    Variant(128, 128),
    Variant(64, 128, "bfloat16", has_initial=True),
    Variant(64, 128, "bfloat16", double_beta=True),
    Variant(40, 24, "float16", write_slots=True),
    Variant(32, 64, "bfloat16", "bfloat16"),
    Variant(64, 64, per_channel=True),
    Variant(24, 40, per_channel=True, has_initial=True, write_slots=True),
    Variant(32, 64, "bfloat16", per_channel=True),
    Variant(16, 16, "float16", "float16", per_channel=True, write_slots=True),
    Variant(64, 64, per_channel=True, has_initial=True, erase=True),
    Variant(32, 64, "bfloat16", write_slots=True, erase=True),
)
CHUNKS = (16, 32, 64, 128)
SAMPLE = (64,)  # without --long: each length is two more compilations of ten entries
PRECISIONS = ("f32", "mixed")

# Relative, of a head of a row. 16-bit results may differ where two nearly equal
# sums are rounded apart.
BOUNDS = {"float32": 1e-5, "bfloat16": 3e-3, "float16": 3e-3}
# With rounded operands: the bounds of the chunk form, and the roundings that both
# forms have. Of one token, a product may be next to 0 and its operands are not:
# errors are relative to a hundredth of the values at least, and to 1e-3, below
# which precision=mixed promises nothing.
MIXED_BOUNDS = {"core": 3e-3 + 2e-3, "state": {"float32": 3e-3, "bfloat16": 5e-3, "float16": 3e-3}}
# Where each token takes out nearly all that the one before has written.
ALIKE_BOUNDS = {"core": 4e-3 + 2e-3, "state": {"float32": 4e-3, "bfloat16": 6e-3, "float16": 4e-3}}


@pytest.fixture(scope="module")
def chunks(pytestconfig) -> tuple[int, ...]:
    """The lengths of chunks that calls are drawn with."""
    return CHUNKS if pytestconfig.getoption("--long") else SAMPLE


@pytest.fixture(scope="module")
def run(build_dir, gdn_compile, tmp_path_factory) -> Callable[..., dict[str, np.ndarray]]:
    """Runs a call in chunks as it says, or as the recurrence; its outputs."""
    runtime = Runtime(build_dir / "lib/libgdnrt.so")
    device = runtime.device()

    @cache
    def kernel_of(form: tuple[int, str] | None, variant):
        """Compiled when a call first asks for it."""
        flags = ["--chunk-from=-1"]
        if form is not None:
            flags = [f"--chunk={form[0]}", "--chunk-from=1", f"--precision={form[1]}"]
        path = compile_image(gdn_compile, tmp_path_factory.mktemp("chunk"), [variant], flags)
        return device.kernel(runtime.image(path), variant.name)

    def run_call(call: Call, recurrent: bool = False) -> dict[str, np.ndarray]:
        form = None if recurrent else (call.case.chunk, call.case.precision)
        outputs = call.outputs()
        pool = Pool(outputs["pool"], null_slot=call.case.null_slot)
        kernel = kernel_of(form, call.case.variant)
        kernel(**call.arguments, core=outputs["core"], state_pool=pool)
        return outputs

    return run_call


def bound_of(call: Call, name: str, dtype: str) -> tuple[float, float]:
    """The largest error of a tensor, and the smallest size it is relative to."""
    variant = call.case.variant
    # The lowering keeps f32 operands for these (docs/design, the chunk form).
    exact = variant.io == "float32" or variant.double_beta
    exact = exact or variant.erase or (variant.per_channel and variant.dk % 16 != 0)
    if call.case.precision == "f32" or exact:
        # A row of one token gives its value times k.q, which may be next to nothing.
        return BOUNDS[dtype], 1e-2 * call.case.scale if name == "core" else 0
    alike = call.case.correlation >= 0.99 and call.case.gates in ("none", "near_one")
    bound = (ALIKE_BOUNDS if alike else MIXED_BOUNDS)[name]
    smallest = max(1e-2 * call.case.scale, 1e-3)
    return bound[dtype] if isinstance(bound, dict) else bound, smallest


def differences(call: Call, got: dict, want: dict) -> list[str]:
    """What is wrong with `got`, if anything, one line for each finding."""
    found = []
    if got["core"][~call.live_tokens()].astype(np.float32).any():
        found.append("tokens of no live row are not zero")
    written = [call.written_slot(n) for n in range(len(call.case.rows))]
    kept = [slot for slot in range(len(call.pool)) if slot not in written]
    if got["pool"][kept].tobytes() != call.pool[kept].tobytes():
        found.append("a slot changed that no row writes")
    for n, slot in enumerate(written):
        if not call.case.is_live(n):
            continue
        tokens = slice(call.bounds[n], call.bounds[n + 1])
        for head in range(call.pool.shape[1]):
            pairs = {"core": (got["core"][tokens, head], want["core"][tokens, head])}
            if slot is not None:
                pairs["state"] = (got["pool"][slot, head], want["pool"][slot, head])
            for name, (x, y) in pairs.items():
                bound, smallest = bound_of(call, name, x.dtype.name)
                error = relative_error(x, y, call.case.scale, smallest)
                if not error <= bound:
                    found.append(f"row {n}, head {head}: {name} differs by {error:.2e}")
    return found


def check(call: Call, run: Callable) -> None:
    # With an erase key there are no chunks: what is asked for in chunks is the recurrence.
    chunked = run(call)
    recurrent = all_in_float64(call) if call.case.variant.erase else run(call, recurrent=True)
    found = differences(call, chunked, recurrent)
    if not found:
        return
    text = [*found, "against float64, in chunks and token by token:"]
    for n in filter(call.case.is_live, range(len(call.case.rows))):
        tokens = slice(call.bounds[n], call.bounds[n + 1])
        for head in range(call.pool.shape[1]):
            want, _ = in_float64(call, n, head)
            errors = [relative_error(x["core"][tokens, head], want) for x in (chunked, recurrent)]
            text.append(f"row {n}, head {head}: core {errors[0]:.2e} and {errors[1]:.2e}")
    command = ".venv/bin/python -m pytest test/python/test_chunk_property.py"
    pytest.fail("\n".join([*text, f"again: {command} --long --case='{call.case.to_json()}'"]))


def test_chunks_equal_the_recurrence(run, chunks, pytestconfig):
    """Examples are the same in every run, unless --hypothesis-seed asks for others."""
    fixed = pytestconfig.getoption("--hypothesis-seed") is None

    @settings(
        max_examples=pytestconfig.getoption("--examples"),
        derandomize=fixed,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(cases(VARIANTS, chunks, PRECISIONS))
    def holds(case: Case) -> None:
        check(Call(case), run)

    holds()


# What random calls have found, made small.
ONCE_FAILED = {
    "decays taken from differences of running sums": Case(
        VARIANTS[0], 16, (Row(22),), key_heads=2, gates="forgets_then_keeps", seed=1
    ),
    "a query across the one key of its row": Case(
        Variant(24, 40, "float32", "float32", per_channel=True, has_initial=True, write_slots=True),
        16,
        tuple(Row(tokens, initial=False) for tokens in (184, 1, 17, 127, 160)),
        padding=3,
        correlation=1.0,
        seed=270,
    ),
    "keys that are nearly alike": Case(
        Variant(32, 64, "bfloat16", per_channel=True),
        128,
        (Row(128),),
        precision="mixed",
        gates="near_one",
        betas="one",
        correlation=0.99,
        seed=242,
    ),
}


@pytest.mark.parametrize("name", ONCE_FAILED)
def test_case_that_once_failed(run, name):
    check(Call(ONCE_FAILED[name]), run)


# Tokens, correlation of keys, a decay per channel; what docs/spec/numerics.md allows.
ALIKE = [(1000, 0.99, False, 4e-3), (1000, 0.99, True, 4e-3), (1000, 1.0, True, 6e-3)]


@pytest.mark.parametrize(("tokens", "correlation", "per_channel", "bound"), ALIKE)
def test_keys_that_are_nearly_alike(run, tokens, correlation, per_channel, bound):
    variant = Variant(32, 64, "bfloat16", per_channel=per_channel)
    case = Case(variant, 64, (Row(tokens),), precision="mixed", gates="near_one", betas="one")
    call = Call(dataclasses.replace(case, correlation=correlation, seed=17))
    got = run(call)
    core, state = in_float64(call, 0, 0)
    tokens = slice(call.bounds[0], call.bounds[1])
    assert relative_error(got["core"][tokens, 0], core) <= bound
    assert relative_error(got["pool"][call.written_slot(0), 0], state) <= bound


def test_case_of_the_command_line(run, pytestconfig):
    if not (text := pytestconfig.getoption("--case")):
        pytest.skip("runs with --case")
    check(Call(Case.from_json(text)), run)


# The test of the test: what it would not see, and what it makes of a failure.


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.name)
def test_the_recurrence_is_within_bounds_of_float64(run, variant):
    call = Call(Case(variant, 64, (Row(70), Row(9)), ratio=2, gates="realistic", seed=3))
    got = run(call, recurrent=True)
    for n in range(2):
        tokens = slice(call.bounds[n], call.bounds[n + 1])
        for head in range(2):
            core, state = in_float64(call, n, head)
            slot = call.written_slot(n)
            assert relative_error(got["core"][tokens, head], core) <= BOUNDS[variant.io]
            assert relative_error(got["pool"][slot, head], state) <= BOUNDS[variant.state]


def test_differences_are_found(run):
    call = Call(Case(VARIANTS[0], 64, (Row(70), Row(3, slot="null")), padding=2))
    want = run(call, recurrent=True)
    assert differences(call, want, want) == []
    slot = call.written_slot(0)
    for name, at, what in [
        ("core", (69, 0), "row 0, head 0: core differs"),
        ("core", (71, 0), "tokens of no live row are not zero"),
        ("pool", (slot, 0), "row 0, head 0: state differs"),
        ("pool", ((slot + 1) % len(call.pool), 0), "a slot changed"),
    ]:
        got = {key: array.copy() for key, array in want.items()}
        got[name][at] = np.nan_to_num(got[name][at]) * 1.001 + 1e-3
        assert any(line.startswith(what) for line in differences(call, got, want)), what


def test_a_failure_shrinks():
    """A fault behind the first chunk is shown with one row that just reaches there."""

    def reaches(case: Case) -> bool:
        rows = range(len(case.rows))
        return any(case.is_live(n) and case.rows[n].tokens > case.chunk for n in rows)

    small = settings(database=None, derandomize=True)
    fails = find(cases(VARIANTS, CHUNKS, PRECISIONS), reaches, settings=small)
    assert fails == Case(VARIANTS[0], CHUNKS[0], (Row(CHUNKS[0] + 1),), seed=0)
    assert Case.from_json(fails.to_json()) == fails
