# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""gdn as a backend of FLA's registries: which calls it takes, on a CPU, where FLA's own kernels do
not run. What it takes gives the bits of gdn.ops."""

import fla.ops.gated_delta_rule
import fla.ops.kda
import pytest
import torch

from gdn.integrations import fla as backend
from gdn.ops import chunk_gated_delta_rule, chunk_kda
from gdn.ops_problems import draw

pytestmark = pytest.mark.usefixtures("compiler_on_path")
FUNCTIONS = {
    "chunk_gated_delta_rule": (fla.ops.gated_delta_rule.chunk_gated_delta_rule, False),
    "chunk_kda": (fla.ops.kda.chunk_kda, True),
}
OURS = {"chunk_gated_delta_rule": chunk_gated_delta_rule, "chunk_kda": chunk_kda}


@pytest.fixture(autouse=True)
def registered():
    backend.register()


def inputs(name: str, tokens: int = 70) -> dict:
    return draw((1, tokens, 2, 2, 64, 64), "cpu", per_channel=FUNCTIONS[name][1])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_calls_of_fla_have_the_bits_of_gdn(name):
    given = inputs(name)
    options = {
        "initial_state": torch.randn(3, 2, 64, 64),
        "output_final_state": True,
        "use_qk_l2norm_in_kernel": True,
        "cu_seqlens": torch.tensor([0, 3, 3, 70]),
    }
    with torch.no_grad():
        found, wanted = FUNCTIONS[name][0](**given, **options), OURS[name](**given, **options)
    assert all(torch.equal(a, b) for a, b in zip(found, wanted, strict=True))


def test_positions_of_chunk_kda_are_those_of_fla():
    """Raw gates with a bound, raw strengths, states of the other order."""
    given = inputs("chunk_kda") | {"beta": torch.randn(1, 70, 2)}
    made = {"A_log": torch.randn(2), "dt_bias": torch.randn(128)}
    positions = (0.3, torch.randn(1, 2, 64, 64), True, True, True, True, False, True, -5.0, False)
    with torch.no_grad():
        found = fla.ops.kda.chunk_kda(*given.values(), *positions, False, True, **made)
        wanted = chunk_kda(
            **given,
            scale=positions[0],
            initial_state=positions[1],
            output_final_state=True,
            use_qk_l2norm_in_kernel=True,
            use_gate_in_kernel=True,
            use_beta_sigmoid_in_kernel=True,
            safe_gate=True,
            lower_bound=-5.0,
            state_v_first=True,
            **made,
        )
    assert all(torch.equal(a, b) for a, b in zip(found, wanted, strict=True))


REFUSED = {
    "a context": ({"cp_context": object()}, "cp_context"),
    "states inside": ({"return_intermediate_states": True}, "states inside of sequences"),
    "doubled strengths": ({"allow_neg_eigval": True}, "use_beta_sigmoid_in_kernel"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_left_to_fla(case):
    options, reason = REFUSED[case]
    served, why = backend.GdnBackend().verify("chunk_kda", **inputs("chunk_kda"), **options)
    assert not served and reason in why


def test_gradients_steps_types_and_sizes_are_left_to_fla():
    given = inputs("chunk_kda")
    verify = backend.GdnBackend().verify
    assert verify("chunk_kda", **given) == (True, None)
    rate = torch.randn(2, requires_grad=True)
    assert "backward" in verify("chunk_kda", **given, A_log=rate, use_gate_in_kernel=True)[1]
    assert "one token" in verify("chunk_kda", **inputs("chunk_kda", 1))[1]
    assert "of one type" in verify("chunk_kda", **given | {"q": given["q"].float()})[1]
    wide = torch.cat([given["v"], given["v"]], dim=-1)
    assert "one size" in verify("chunk_kda", **given | {"v": wide})[1]


def test_strengths_that_fla_does_not_make():
    backend.register(strengths_up_to_one=False)
    registry = fla.backends._function_registries
    (ours,) = [found._backends["gdn"] for found in registry.values() if "gdn" in found._backends]
    given = inputs("chunk_kda")
    assert "above 1" in ours.verify("chunk_kda", **given)[1]
    assert ours.verify("chunk_kda", **given, use_beta_sigmoid_in_kernel=True)[0]
