# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The benchmark of SGLang's layer of Kimi Delta Attention: what stands in for SGLang, and its steps
with gdn's kernels against float64, on the CPU, where files of SGLang's wheel are on the path."""

import importlib
import sys

import pytest
from sglang_cases import folder_of_sglang

pytest.importorskip("torch")

import torch

from gdn import Runtime, devices
from gdn.bench import sglang_setup
from gdn.bench.sglang_files import FILES, Server, finder_of
from gdn.bench.sglang_layer import LIMIT, Case, steps_of


def test_files_and_placeholders(tmp_path):
    for name in FILES:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    finder = finder_of(Server(), tmp_path)
    known = "sglang.srt.layers.attention.linear.kda_backend"
    assert finder.find_spec(known).origin == str(tmp_path / f"{known.replace('.', '/')}.py")
    assert finder.find_spec("sglang.srt.distributed").loader is finder
    assert finder.find_spec("numpy") is None


def test_steps():
    steps = steps_of({"2 x 130": (130, 130)}, (3,))
    assert [step.kept for step in steps.values()] == [None, 128, 64, None]
    assert steps["verify 3"].lengths == (4, 4, 4) and steps["verify 3"].drafts == 4


def _convolved(x, taps, window):
    """Of x [channels, T] behind a window."""
    rows = torch.cat([window, x], 1).float()
    parts = [rows[:, n : n + x.shape[1]] * taps[:, n : n + 1] for n in range(4)]
    return torch.nn.functional.silu(sum(parts)).to(x.dtype)


def _prefill(x, taps, _bias, *, conv_states, cache_indices, query_start_loc, **_others):
    parts = zip(query_start_loc.diff().tolist(), cache_indices.tolist(), strict=True)
    first, out = 0, []
    for length, slot in parts:
        out.append(_convolved(x[:, first : first + length], taps, conv_states[slot]))
        first += length
    return torch.cat(out, 1)


def _verify(x, windows, taps, _bias, *, conv_state_indices, **_others):
    slots = conv_state_indices.tolist()
    return torch.stack([_convolved(x[n], taps, windows[s]) for n, s in enumerate(slots)])


@pytest.fixture
def server(monkeypatch, build_dir, compiler_on_path):
    """SGLang's classes, with PyTorch in place of its Triton kernels of convolutions."""
    server, before = Server(), set(sys.modules)
    finder = finder_of(server, folder_of_sglang())
    monkeypatch.setattr(sys, "meta_path", [finder, *sys.meta_path])
    monkeypatch.setattr(devices, "_runtime", [Runtime(build_dir / "lib/libgdnrt.so")])
    kda_backend = importlib.import_module("sglang.srt.layers.attention.linear.kda_backend")
    monkeypatch.setattr(kda_backend, "causal_conv1d_fn", _prefill)
    monkeypatch.setattr(kda_backend, "causal_conv1d_update", _verify)
    yield server
    sglang_setup._hook.cache_clear()
    ours = "gdn.integrations.sglang"
    for name in set(sys.modules) - before:
        if name.startswith(("sglang", "msgspec", ours)):
            sys.modules.pop(name)


@pytest.mark.parametrize("bound", [None, -5.0])
@pytest.mark.parametrize("name", ["prefill", "prefill, kept in the middle", "verify 3"])
def test_layer_against_float64(server, name, bound):
    """The layer, and what it hands to its kernel."""
    step = steps_of({"": (130, 130)}, (3,))[name.replace("prefill", "prefill ")]
    case = Case(server, step, bound, "cpu", 1)
    layer = case.call("gdn")
    for call in (layer, case.kernel_call(layer)):
        found = case.errors(call)
        assert max(found.values()) < LIMIT and ("kept" in found) == (step.kept is not None), found
        assert found["changed"] == 0
    assert not layer.dispatcher.extend_kernel.reasons
