# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What tests of the plugin of SGLang have in common: what stands in for SGLang, classes as files of
its wheel define them, and tokens of a layer on a pool of states."""

import ast
import enum
import importlib
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import rule_cases
from rule_cases import DK, DV, HV, draw, error_of

from gdn import Runtime, devices

SLOTS = 9


class Backend(enum.Enum):
    TRITON = "triton"
    FLASHINFER = "flashinfer"
    CUSTOM = "custom"


class Ours:
    """In place of gdn's kernels."""

    supports_packed_decode = True

    def __init__(self, fallback, slots=None):
        self.fallback, self.slots = fallback, slots


def options(base="triton", decode=None, prefill=None, verify=None, **more):
    return types.SimpleNamespace(
        linear_attn_backend=base,
        linear_attn_decode_backend=decode,
        linear_attn_prefill_backend=prefill,
        linear_attn_verify_backend=verify,
        **more,
    )


def add_modules(patch, **modules):
    """Modules of SGLang by the last part of their names."""
    for path, members in modules.items():
        name = "sglang.srt." + path.replace("__", ".")
        module = types.ModuleType(name)
        module.__dict__.update(members)
        patch.setitem(sys.modules, name, module)


def set_options(patch, mamba, deterministic=False):
    """What SGLang's processes ask for."""
    flag = types.SimpleNamespace(enable_deterministic_inference=deterministic)
    given = types.SimpleNamespace(mamba=mamba, deterministic=flag)
    add_modules(patch, runtime_context={"get_exec": lambda: given})


def dispatcher_of(cls: type, make: Callable, kernel: tuple[str, str]) -> Callable:
    """Makes dispatchers: `cls` stands in for SGLang's, `make` is the hook around its __init__, and
    gdn's `kernel`, a module and a class, is replaced by Ours."""

    def dispatcher(patch, mamba, *backends, deterministic=False):
        set_options(patch, mamba, deterministic)
        module = types.ModuleType(f"gdn.integrations.sglang.{kernel[0]}")
        setattr(module, kernel[1], Ours)
        patch.setitem(sys.modules, module.__name__, module)
        made = cls.__new__(cls)
        make(cls.__init__, made, *backends)
        return made

    return dispatcher


def kernels_of(patch, build_dir, name: str, *modules: str) -> Iterator[object]:
    """gdn's class `name` of the last of modules, without SGLang, on the build's runtime."""
    pytest.importorskip("torch")
    base = "layers__attention__linear__kernels__kernel_backend"
    add_modules(patch, **{base: {"LinearAttnKernelBase": object}})
    paths = [f"gdn.integrations.sglang.{module}" for module in modules]
    for path in paths:
        patch.delitem(sys.modules, path, raising=False)
    patch.setattr(devices, "_runtime", [Runtime(build_dir / "lib/libgdnrt.so")])
    yield getattr(importlib.import_module(paths[-1]), name)(Fallback())
    for path in paths:
        sys.modules.pop(path, None)


class Fallback:
    """Notes what it is asked for."""

    def __init__(self):
        self.calls = []

    def __getattr__(self, name):
        def call(*_arguments, **given):
            self.calls.append((name, given))
            return self.found

        return call


def folder_of_sglang():
    """The folder with SGLang's own files. Skips a test where there is none on the path."""
    found = next((p for p in sys.path if (Path(p) / "sglang/version.py").is_file()), None)
    if found is None:
        pytest.skip("expected the folder of sglang's wheel on the path")
    return Path(found)


def classes_of(path, names, given):
    """Classes as a file defines them, without what else it imports."""
    tree = ast.parse(path.read_text())
    later = ast.parse("from __future__ import annotations").body
    tree.body = later + [x for x in tree.body if isinstance(x, ast.ClassDef) and x.name in names]
    exec(compile(tree, str(path), "exec"), given)
    return [given[name] for name in names]


def tensors(*arrays):
    import torch

    return [torch.tensor(np.asarray(x, np.float32)) for x in arrays]


class Case:
    """Tokens of a layer, and its pool of states."""

    def __init__(self, rows, seed=1):
        import torch

        rng = np.random.default_rng(seed)
        self.given = draw(rng, rows)
        self.q, self.k, self.v, self.a, self.b = tensors(
            *(self.given[name] for name in ("q", "k", "v", "a", "b"))
        )
        rate, bias = tensors(self.given["A_log"], self.given["dt_bias"])
        # Parameters of a model, which nobody has frozen.
        self.constants = {n: torch.nn.Parameter(x) for n, x in (("A_log", rate), ("dt_bias", bias))}
        self.before = rng.standard_normal((SLOTS, HV, DV, DK)).astype(np.float32)
        (self.states,) = tensors(self.before)

    def check(self, out, starts, slots):
        """The output and all states, against float64."""
        want, after = rule_cases.expected(self.given, self.before, starts, slots, l2norm=True)
        assert error_of(out[0].numpy(), want) < 2e-5
        assert error_of(self.states.numpy(), after) < 2e-5


def integers(values):
    import torch

    return torch.tensor(values, dtype=torch.int32)
