# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Slots in pages of vLLM whose states are in planes or written every few tokens: what the engine is
told of them, and some hundred random steps on this CPU against float64. Arrays are NumPy's."""

import numpy as np
import pytest
from image_folders import ITEMS, write_folder
from vllm_kinds import KIND, make_kernels
from vllm_metadata import make_metadata

import catalogue
from gdn import Runtime, StatePool, StatePoolShape, images
from gdn.checks import relative_error
from gdn.integrations.pool_options import PoolOptions
from gdn.integrations.slot_arrays import SlotSizes
from gdn.integrations.vllm.block_arrays import BlockArrays
from gdn.integrations.vllm.layer_core import LayerCore
from gdn.integrations.vllm.steps import runs_of
from gdn.integrations.vllm.warm_up import warm_up_runs
from gdn.kernel_calls import SHORT_TYPES
from gdn.reference import Layer, evaluate

HK, HV, D, BLOCKS = 1, 2, 16, 12
CHANNELS = 2 * HK * D + HV * D
# By the type of states and the tokens that stay pending: the error of some hundred steps' outputs,
# relative to them. The norm makes that of a single one larger where there is little to divide.
LIMITS = {
    ("float32", 4): 1e-6,
    ("float16", 3): 4e-4,
    ("i8x2", 0): 1e-4,
    ("i8x2", 4): 4e-4,
    ("i8x2_upper", 4): 1e-2,
    ("i8", 4): 1.5e-2,
}


# What the engine is told.


@pytest.mark.parametrize(("state", "writes"), LIMITS)
def test_the_arrays_are_those_of_a_pool(build_dir, state, writes):
    """Names, shapes and types of a StatePool's, side by side and each at a multiple of 16 bytes."""
    kind = KIND._replace(state=state, deferred_writes=writes)
    arrays = kind.slot_arrays(HK, HV).arrays
    shape = StatePoolShape(
        num_layers=1,
        num_requests=2,
        num_key_heads=HK,
        num_value_heads=HV,
        key_dim=D,
        value_dim=D,
        state_dtype=state.removesuffix("_upper"),
        pending_tokens=writes,
        deferred_writes=writes > 0,
        pending_dtype=kind.pending if writes else "float32",
    )
    pool = StatePool(Runtime(build_dir / "lib/libgdnrt.so").device(), shape)
    wanted = [pool.state(0), *(pool.planes(0) if shape.state_planes else ())]
    if writes:
        wanted += pool.pending(0)
    assert [(x.shape, x.dtype) for x in arrays] == [(x.shape[1:], str(x.dtype)) for x in wanted]
    ends = [0, *(x.offset + x.nbytes for x in arrays)]
    starts = [x.offset for x in arrays]
    assert all(0 <= s - e < 16 and s % 16 == 0 for s, e in zip(starts, ends, strict=False))
    assert 0 <= 4 * kind.slot_arrays(HK, HV).words - ends[-1] < 16


def test_bytes_of_a_slot():
    """Those of the guide: 0.51 of f32's for two planes, and 0.19 for 16 pending tokens."""
    sizes = SlotSizes(16, 32, 128, 128)
    plain = BlockArrays(sizes, "float32").words
    assert plain == 32 * 128 * 128
    assert BlockArrays(sizes, "i8x2").words / plain == pytest.approx(0.508, abs=0.001)
    deferred = BlockArrays(sizes, "float32", 16).words
    assert deferred / plain == pytest.approx(1.189, abs=0.001)


def test_options():
    assert PoolOptions.read({}, "additional_config") == PoolOptions(None, 0)
    given = {"gdn_state": "i8x2", "gdn_deferred_writes": 16, "other": 1}
    assert PoolOptions.read(given, "additional_config") == PoolOptions("i8x2", 16)
    assert KIND._replace(state="bfloat16").has_slot_arrays is False
    assert KIND._replace(state="bfloat16").entries == ("decode", "prefill", "verify")
    deferred = KIND._replace(state="i8x2", deferred_writes=16)
    assert deferred.find_refusal() is None and deferred.entries == ("decode", "prefill", "commit")
    assert deferred.options() == {
        "io": "f32",
        "state": "i8x2",
        "layout": "flat",
        "outputs": "norm",
        "verify": "none",
        "deferred_writes": 16,
        "pending": "f16",
    }


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"gdn_state": "int8"},
            "gdn_state: expected one of float32, bfloat16, float16, i8x2, i8x2_upper, i8,"
            " found 'int8'",
        ),
        ({"gdn_deferred_writes": 1}, "gdn_deferred_writes: expected 0 or 2 to 32 tokens, found 1"),
        ({"gdn_deferred_writes": 33}, "expected 0 or 2 to 32 tokens, found 33"),
        ({"gdn_deferred_writes": True}, "expected 0 or 2 to 32 tokens, found True"),
        ({"gdn_deferred_writes": "16"}, "expected 0 or 2 to 32 tokens, found '16'"),
        (
            {"gdn_state": "i8"},
            "gdn_deferred_writes: expected 2 to 32 tokens with gdn_state i8, found 0",
        ),
    ],
)
def test_options_that_no_pool_has(given, message):
    with pytest.raises(ValueError, match="additional_config: gdn_") as error:
        PoolOptions.read(given, "additional_config")
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"num_speculative_tokens": 2},
            "num_speculative_tokens: expected 0 with gdn_state float32 and gdn_deferred_writes 4,"
            " found 2",
        ),
        ({"transfers": True}, "kv_transfer_config: expected none with gdn_state float32 and"),
        ({"has_own_sizes": True}, "sizes of the model's blocks: expected one, found several"),
    ],
)
def test_engines_without_kernels_for_such_slots(fields, message):
    found = KIND._replace(deferred_writes=4, **fields).find_refusal()
    assert found is not None and message in found
    in_place = KIND._replace(**fields).find_refusal()
    assert in_place is None or "has_own_sizes" in fields


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_folder(tmp_path_factory.mktemp("images"), ITEMS.values())


@pytest.mark.parametrize("layout", ["flat", "interleaved", "split"])
@pytest.mark.parametrize("state", catalogue.DEFERRED)
def test_prebuilt_images_have_the_kernels(folder, state, layout):
    """With the tokens that the catalogue has for the type of states, and the pending type of the
    plugin."""
    full = {value: name for name, value in SHORT_TYPES.items()}
    types = dict.fromkeys(("io", "conv_state", "norm_weight"), "bfloat16")
    types |= {"state": full.get(state, state), "deferred_writes": catalogue.DEFERRED[state]}
    kind = KIND._replace(key_dim=128, value_dim=128, layout=layout, **types)
    options = {"engine": "vllm", "folder": folder} | kind.options()
    path = images.find(kind.config(), "sm_90a", **options)
    form = "deferred-pymllm" if layout == "split" else "deferred"
    assert path.name.startswith(form + "-128x128-")
    with pytest.raises(images.ImageNotFoundError, match="deferred_writes 12"):
        images.find(kind.config(), "sm_90a", **options | {"deferred_writes": 12})


# Steps.


@pytest.fixture(scope="module", params=LIMITS, ids=lambda form: f"{form[0]}-{form[1]}")
def made(request, build_dir, tool, tmp_path_factory):
    state, writes = request.param
    kind = KIND._replace(state=state, deferred_writes=writes)
    return kind, make_kernels(kind, build_dir, tool, tmp_path_factory.mktemp("image"))


class Pages:
    """Blocks of a layer as vLLM has them: a page each, with a gap behind, of which window and the
    rest of a slot are views. They are full of what others left there."""

    def __init__(self, kind, rng):
        self.slots = kind.slot_arrays(HK, HV)
        window = 4 * 3 * CHANNELS
        self.size = window + 4 * self.slots.words
        self.pages = rng.integers(0, 256, (BLOCKS, self.size + 192), np.uint8)
        # NaN in all that is a number: in the block of padding, and in half of the others.
        self.pages[::2] = 0xFF
        windows = self.pages[:, :window].view(np.float32).reshape(BLOCKS, 3, CHANNELS)
        words = self.pages[:, window : self.size].view(np.float32)
        turned = windows.transpose(0, 2, 1)
        self.pools = {"conv_pool": turned, "windows": turned}
        self.pools |= self.slots.split(words, np.dtype)

    def copy(self, source: int, target: int) -> None:
        """As vLLM copies a block to another one."""
        self.pages[target, : self.size] = self.pages[source, : self.size]


class Sequence:
    """One in float64."""

    def __init__(self, block: int):
        self.block, self.length = block, 0
        self.window, self.state = np.zeros((CHANNELS, 3)), np.zeros((HV, D, D))

    def fork(self, block: int) -> "Sequence":
        other = Sequence(block)
        other.length, other.window, other.state = self.length, self.window, self.state
        return other

    def run(self, tokens, weights) -> np.ndarray:
        rows = {
            "cu_seqlens": np.array([0, len(tokens["ba"])]),
            "slots": np.array([1]),
            "has_initial": np.array([self.length > 0]),
            "conv_pool": np.stack([self.window] * 2),
            "state_pool": np.stack([self.state] * 2),
        }
        result = evaluate(Layer("flat", D, D), tokens | weights | rows)
        self.window, self.state = result["conv_pool"][1], result["state_pool"][1]
        self.length += len(tokens["ba"])
        return result["out"]


class Engine:
    """Steps of random sequences, in vLLM's order."""

    def __init__(self, kind, kernels, seed: int):
        self.rng = np.random.default_rng(seed)
        self.weights = {
            "conv_weight": self._normal(CHANNELS, 4),
            "A_log": np.log(self.rng.uniform(1, 16, HV)).astype(np.float32),
            "dt_bias": self._normal(HV) - 3,
            "norm_weight": self._normal(D),
            "norm_constants": np.array([1e-6, 1], np.float32),
        }
        self.pages = Pages(kind, self.rng)
        no_counts, true = np.zeros(2 * BLOCKS, np.int32), np.ones(2 * BLOCKS, bool)
        self.core = LayerCore(kernels, self.weights, true, no_counts=no_counts)
        self.free, self.sequences = list(range(1, BLOCKS)), []
        self.has_pending, self.copied, self.results = 0, 0, []

    def _normal(self, *shape):
        return self.rng.standard_normal(shape).astype(np.float32)

    def admit(self) -> Sequence:
        self.sequences.append(Sequence(self.free.pop()))
        return self.sequences[-1]

    def drop(self, sequence: Sequence) -> None:
        self.sequences.remove(sequence)
        self.free.insert(0, sequence.block)

    def count(self, block: int) -> int:
        counts = self.pages.pools.get("pending_counts")
        return 0 if counts is None else int(counts[block, 0])

    def move(self, sequence: Sequence) -> None:
        """To another block, as with prefix caching at the end of one."""
        target = self.free.pop()
        self.pages.copy(sequence.block, target)
        self.has_pending += self.count(target) > 0
        self.free.insert(0, sequence.block)
        sequence.block = target
        self.copied += 1

    def fork(self, sequence: Sequence) -> None:
        """Another one goes on from a block that both had."""
        target = self.free.pop()
        self.pages.copy(sequence.block, target)
        self.has_pending += self.count(target) > 0
        self.sequences.append(sequence.fork(target))
        self.copied += 1

    def step(self, decodes, prompts, padding: int = 0) -> float:
        """The error of the outputs, which are kept. `prompts` are (sequence, tokens); rows of
        padding decode."""
        rows = [(sequence, 1) for sequence in decodes] + prompts
        counts = [count for _, count in rows] + [1] * padding
        table = [[sequence.block] for sequence, _ in rows] + [[0]] * padding
        initial = [sequence.length > 0 for sequence, _ in rows] + [True] * padding
        size = sum(counts)
        tokens = {"qkvz": self._normal(size, CHANNELS + HV * D), "ba": self._normal(size, 2 * HV)}
        metadata = make_metadata(counts, table, initial=initial, columns=1)
        out = np.zeros((size, HV, D), np.float32)
        used = [sequence.block for sequence, _ in rows]
        others = [block for block in range(BLOCKS) if block not in used]
        before = self.pages.pages.copy()
        runs = runs_of(metadata, np.ascontiguousarray)
        self.core.run(runs, tokens, self.pages.pools, out)
        # Neither other blocks nor what is behind a page's arrays.
        np.testing.assert_array_equal(self.pages.pages[others], before[others])
        end = self.pages.size
        np.testing.assert_array_equal(self.pages.pages[:, end:], before[:, end:])
        assert not out[size - padding :].any()
        first, want = 0, np.zeros(out.shape)
        for sequence, count in rows:
            part = slice(first, first + count)
            first += count
            given = {name: array[part] for name, array in tokens.items()}
            want[part] = sequence.run(given, self.weights)
        assert np.isfinite(out).all()
        self.results.append((out, want))
        return relative_error(out, want)

    def random_step(self) -> float:
        rng = self.rng
        if len(self.sequences) > 2 and rng.random() < 0.1:
            self.drop(self.sequences[rng.integers(len(self.sequences))])
        known = list(self.sequences)
        if self.free and known and rng.random() < 0.2:
            self.move(known[rng.integers(len(known))])
        if len(self.free) > 1 and known and rng.random() < 0.1:
            self.fork(known[rng.integers(len(known))])
        known = [s for s in self.sequences if rng.random() < 0.8]
        kind = rng.random()
        # Sequences that go on with a piece of a prompt, and new ones.
        prompts = [
            (s, int(rng.integers(2, 20))) for s in known if kind < 0.3 and rng.random() < 0.4
        ]
        decodes = [s for s in known if s not in [p for p, _ in prompts]]
        if len(self.free) > 1 and (rng.random() < 0.2 or not known):
            prompts.append((self.admit(), int(rng.choice([1, 2, 5, 70]))))
            # One that has a single token is behind those with more.
            prompts.sort(key=lambda row: row[1] == 1)
            if prompts[0][1] == 1:
                prompts.insert(0, (self.admit(), 3))
        padding = int(rng.integers(4)) if decodes and not prompts else 0
        return self.step(decodes, prompts, padding)


def test_random_steps(made):
    kind, kernels = made
    limit = LIMITS[kind.state, kind.deferred_writes]
    engine = Engine(kind, kernels, 7)
    errors = [engine.random_step() for _ in range(300)]
    assert max(errors) < 20 * limit, errors
    found = [np.concatenate(arrays) for arrays in zip(*engine.results, strict=True)]
    assert relative_error(*found) < limit
    assert engine.copied > 20
    assert engine.has_pending > 10 or not kind.deferred_writes


def test_a_new_sequence_in_a_block_that_others_had(made):
    """Whatever bytes are there, counts too: of NaN, or of a sequence with pending tokens."""
    kind, kernels = made
    limit = LIMITS[kind.state, kind.deferred_writes]
    engine = Engine(kind, kernels, 8)
    for fill in (0xFF, 0x7F, 0x80, 0x01, 0x00, None):
        sequence = engine.admit()
        if fill is not None:
            engine.pages.pages[sequence.block] = fill
        for prompts in ([(sequence, 5)], [(sequence, 1)]):
            assert engine.step([], prompts) < 20 * limit
            assert engine.count(sequence.block) == 0
            sequence.length, sequence.window[:], sequence.state[:] = 0, 0, 0
        engine.step([], [(sequence, 6)])
        for _ in range(3):
            assert engine.step([sequence], []) < 20 * limit
        # The next one finds its pending tokens.
        engine.drop(sequence)
        engine.free.append(engine.free.pop(0))


def test_warming_up(made):
    """All entries run and touch no slot."""
    kind, kernels = made
    engine = Engine(kind, kernels, 9)
    before, size = engine.pages.pages.copy(), 21
    tokens = {"qkvz": engine._normal(size, CHANNELS + HV * D), "ba": engine._normal(size, 2 * HV)}
    out, entries = np.ones((size, HV, D), np.float32), []

    def array(values):
        return np.array(values, bool if values[0] is False else np.int32)

    for launches in warm_up_runs(size, BLOCKS, 0, array):
        engine.core.run(launches, tokens, engine.pages.pools, out)
        entries += [run.entry for run in launches]
    assert set(entries) == {"decode", "prefill"} and not out.any()
    np.testing.assert_array_equal(engine.pages.pages, before)
