# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whole layers in one call, with arrays of NumPy, against float64."""

import numpy as np
import pytest

from gdn import Runtime
from gdn.checks import relative_error
from gdn.layer_kernels import PROJECTIONS, LayerKind
from gdn.layer_run import LayerWeights, run_layer
from gdn.reference import Layer, evaluate

H, HV, BATCH = 2, 4, 3
KINDS = {
    "split": LayerKind("split", 16, 24, 4, 1e-6, "silu", "float32"),
    "interleaved": LayerKind("interleaved", 16, 24, 4, 1e-6, "silu", "float32"),
    "separate": LayerKind("separate", 16, 24, 4, 1e-5, "silu", "float32", doubled_beta=True),
    "channels": LayerKind("separate", 16, 16, 3, 1e-5, "sigmoid", "float32", per_channel=True),
    "bounded": LayerKind(
        "separate", 16, 16, 4, 1e-5, "sigmoid", "float32", per_channel=True, decay_bound=-5.0
    ),
}
pytestmark = [pytest.mark.usefixtures("compiler_on_path"), pytest.mark.once(compiler="cpu")]


@pytest.fixture(scope="module")
def runtime(build_dir):
    return Runtime(build_dir / "lib/libgdnrt.so")


class Sequences:
    """Weights and states of BATCH sequences."""

    def __init__(self, kind: LayerKind):
        self.rng, self.kind = np.random.default_rng(3), kind
        heads = H if not kind.per_channel else HV
        self.channels = 2 * heads * kind.key_dim + HV * kind.value_dim
        self.key_heads = heads
        bias = (HV, kind.key_dim) if kind.per_channel else (HV,)
        self.weights = LayerWeights(
            self.normal(self.channels, kind.conv_width),
            np.log(self.rng.uniform(1, 8, HV)).astype(np.float32),
            self.normal(*bias),
            self.normal(kind.value_dim),
        )
        # As a cache has them: windows behind an input that is not looked at, NaN here.
        self.inputs = np.full((BATCH, self.channels, kind.conv_width), np.nan, np.float32)
        self.windows = self.inputs[:, :, 1:]
        self.states = np.full((BATCH, HV, kind.value_dim, kind.key_dim), np.nan, np.float32)

    def normal(self, *shape):
        return self.rng.standard_normal(shape).astype(np.float32)

    def projections(self, tokens: int):
        kind, heads = self.kind, self.key_heads
        shapes = {
            "qkvz": (self.channels + HV * kind.value_dim,),
            "ba": (2 * HV,),
            "qkv": (self.channels,),
            "q": (heads, kind.key_dim),
            "k": (heads, kind.key_dim),
            "v": (HV, kind.value_dim),
            "z": (HV * kind.value_dim,) if kind.layout == "split" else (HV, kind.value_dim),
            "b": (HV,),
            "a": (HV, kind.key_dim) if kind.per_channel else (HV,),
        }
        names = PROJECTIONS[kind.layout]
        return [self.normal(BATCH * tokens, *shapes[name]) for name in names]

    def step(self, tokens: int, has_initial: bool, runtime):
        """Errors of the outputs, the windows and the states of a step."""
        kind = self.kind
        projections = self.projections(tokens)
        arguments = dict(zip(PROJECTIONS[kind.layout], projections, strict=True)) | {
            "conv_weight": self.weights.conv,
            "A_log": self.weights.A_log,
            "dt_bias": self.weights.dt_bias,
            "norm_weight": self.weights.norm,
            "slots": np.arange(BATCH),
            "cu_seqlens": np.arange(BATCH + 1) * tokens,
            "has_initial": np.full(BATCH, has_initial),
            "conv_pool": self.windows,
            "state_pool": self.states,
        }
        sizes = kind.layout, kind.key_dim, kind.value_dim
        layer = Layer(
            *sizes, kind.gate, kind.doubled_beta, kind.norm_eps, decay_bound=kind.decay_bound
        )
        want = evaluate(layer, arguments, null_slot=-1)
        out = np.full((BATCH * tokens, HV, kind.value_dim), np.nan, np.float32)
        run_layer(
            kind,
            projections,
            self.weights,
            self.windows,
            self.states,
            out,
            has_initial=has_initial,
            runtime=runtime,
        )
        got = {"out": out, "conv_pool": self.windows, "state_pool": self.states}
        return [relative_error(array, want[name]) for name, array in got.items()]


@pytest.mark.parametrize("name", KINDS)
def test_prompt_pieces_and_tokens(runtime, name):
    """Sequences begin, go on with pieces of a prompt, and with tokens."""
    sequences = Sequences(KINDS[name])
    for tokens, has_initial in ((70, False), (5, True), (1, True), (1, True), (2, True)):
        assert max(sequences.step(tokens, has_initial, runtime)) < 1e-5, (tokens, has_initial)


def test_a_first_prompt_of_one_token(runtime):
    sequences = Sequences(KINDS["split"])
    assert max(sequences.step(1, False, runtime)) < 1e-5
    assert np.isnan(sequences.inputs[:, :, 0]).all()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"projections": 3}, "projections: expected qkv, z, b, a for the layout split, got 3"),
        ({"tokens": 4}, "out: expected tokens of 3 sequences of one length, got 4"),
        ({"tokens": 0}, "out: expected tokens of 3 sequences of one length, got 0"),
    ],
)
def test_arrays_that_do_not_go_together(runtime, changed, message):
    sequences = Sequences(KINDS["split"])
    projections = sequences.projections(2)[: changed.get("projections", 4)]
    out = np.zeros((changed.get("tokens", 6), HV, 24), np.float32)
    with pytest.raises(ValueError, match=message):
        run_layer(
            KINDS["split"],
            projections,
            sequences.weights,
            sequences.windows,
            sequences.states,
            out,
            has_initial=False,
            runtime=runtime,
        )
    assert np.isnan(sequences.states).all()


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (KINDS["separate"]._replace(norm_eps=1e-6), "norm_eps: expected 1e-05 for layers with"),
        (KINDS["split"]._replace(doubled_beta=True), "doubled_beta: expected False for layers"),
        (KINDS["split"]._replace(decay_bound=-5.0), "decay_bound: expected None for layers with"),
        (KINDS["channels"]._replace(gate="silu"), "gate: expected 'sigmoid' for layers with a"),
    ],
)
def test_kinds_that_no_model_has(kind, message):
    with pytest.raises(ValueError, match=message):
        kind.config()
