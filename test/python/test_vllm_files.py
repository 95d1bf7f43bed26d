# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What stands in for vLLM where some of its files are all that there is."""

import sys

import pytest

pytest.importorskip("torch")

from gdn.bench.vllm_files import FILES, finder_of


def test_packages_that_are_called(tmp_path, monkeypatch):
    """The layer of Kimi Delta Attention calls einops: the installed one, if there is one."""
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    finder = finder_of(tmp_path, {})
    assert finder.find_spec("einops").loader is finder
    (tmp_path / "einops.py").touch()
    sys.path_importer_cache.pop(str(tmp_path), None)
    assert finder.find_spec("einops") is None
    assert finder.find_spec("transformers").loader is finder
    assert finder.find_spec("numpy") is None


def test_files_and_placeholders(tmp_path):
    for name in FILES:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    finder = finder_of(tmp_path, {})
    known = "vllm.model_executor.layers.mamba.gdn.kimi_gdn_linear_attn"
    assert finder.find_spec(known).origin == str(tmp_path / f"{known.replace('.', '/')}.py")
    kernels = finder.find_spec("vllm.models.kimi_k3.nvidia.ops.third_party.kda")
    assert kernels.submodule_search_locations and kernels.origin.endswith("__init__.py")
    assert finder.find_spec("vllm.distributed").loader is finder
