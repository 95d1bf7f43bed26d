# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What takes the place of FLA's recurrent function: which calls gdn serves, and that all holders of
the function get it."""

import sys
import types

import pytest

torch = pytest.importorskip("torch")

from gdn.integrations import fla_recurrent  # noqa: E402
from gdn.ops import fused_recurrent_gated_delta_rule  # noqa: E402


def call_of(tokens: int = 1, **others) -> dict:
    torch.manual_seed(3)
    rows, keys, values, size = 2, 1, 2, 16
    given = {name: torch.randn(rows, tokens, keys, size) for name in ("q", "k")}
    given |= {"v": torch.randn(rows, tokens, values, size)}
    given |= {"g": -torch.rand(rows, tokens, values), "beta": torch.rand(rows, tokens, values)}
    given |= {"initial_state": torch.randn(rows, values, size, size)}
    return given | {"output_final_state": True, "use_qk_l2norm_in_kernel": True} | others


def original(*arguments, **options):
    return "FLA"


def test_a_token_is_served():
    function = fla_recurrent.replacement(original, lambda: True, bounded=True)
    given = call_of()
    found, wanted = function(**given), fused_recurrent_gated_delta_rule(**given)
    assert all(torch.equal(a, b) for a, b in zip(found, wanted, strict=True))
    places = [given[name] for name in ("q", "k", "v", "g")] + [None, None, given["beta"]]
    options = {name: value for name, value in given.items() if name not in fla_recurrent._ORDER[:7]}
    again = function(*places, **options)
    assert torch.equal(again[0], wanted[0])


@pytest.mark.parametrize(
    "given",
    [
        call_of(tokens=2),
        call_of(gk=torch.zeros(1)),
        call_of(cu_seqlens=torch.tensor([0, 1])),
        call_of(head_first=True),
        call_of(allow_neg_eigval=True),
        call_of(v=torch.randn(2, 1, 2, 16, requires_grad=True)),
        call_of(v=torch.randn(2, 1, 2, 16).half()),
        call_of(beta=torch.rand(2, 1, 2, 16)),
        call_of(g=None),
    ],
)
def test_other_calls_go_to_fla(given):
    assert fla_recurrent.replacement(original, lambda: True, bounded=True)(**given) == "FLA"


def test_unbounded_strengths_and_a_disabled_backend_go_to_fla():
    assert fla_recurrent.replacement(original, lambda: True, bounded=False)(**call_of()) == "FLA"
    assert fla_recurrent.replacement(original, lambda: False, bounded=True)(**call_of()) == "FLA"


def test_all_holders_get_it(monkeypatch):
    def theirs(*arguments, **options):
        return "FLA"

    name = "fused_recurrent_gated_delta_rule"
    names = ("fla", "fla.ops", "fla.ops.gated_delta_rule", "a_model_that_imported_it")
    modules = {each: types.ModuleType(each) for each in names}
    for each, module in modules.items():
        setattr(module, name, theirs)
        monkeypatch.setitem(sys.modules, each, module)
    for _ in range(2):
        fla_recurrent.patch(lambda: True, strengths_up_to_one=True)
        held = {getattr(module, name) for module in modules.values()}
        assert len(held) == 1 and theirs not in held
        assert held.pop().gdn_original is theirs
