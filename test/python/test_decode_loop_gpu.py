# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The guide of a decode loop on a GPU: its program is that of the guide for CPUs where they do not
differ, and names what the package has. It runs where there is a GPU, by gpu_first_use.py."""

import ast
import importlib

import guides

import gpu_first_use

PAGE = guides.FOLDER / "decode-loop-on-a-gpu.md"


def functions(text: str) -> dict[str, str]:
    return {
        node.name: ast.unparse(node)
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef)
    }


def test_the_program_names_what_the_package_has():
    (program,) = guides.programs(PAGE, "python")
    assert gpu_first_use.program() == program
    for node in ast.walk(ast.parse(program)):
        if isinstance(node, ast.ImportFrom) and node.module.startswith("gdn"):
            module = importlib.import_module(node.module)
            for alias in node.names:
                assert hasattr(module, alias.name), alias.name


def test_requests_are_served_as_on_a_cpu():
    (here,) = guides.programs(PAGE, "python")
    (there,) = guides.programs(guides.FOLDER / "decode-loop-in-python.md", "python")
    assert functions(here)["serve"] == functions(there)["serve"]
    assert (
        here.rpartition("prompts = ")[2].splitlines()[0]
        == (there.rpartition("prompts = ")[2].splitlines()[0])
    )
