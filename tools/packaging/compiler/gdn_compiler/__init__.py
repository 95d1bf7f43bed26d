# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tools of gdn's compiler, with LLVM inside. From Python: gdn.compile of the package gdn."""

import os
import sys
from pathlib import Path

TOOLS = ("gdn-compile", "gdn-opt", "gdn-gpu-opt", "gdn-tile-opt", "gdn-run")


def tool(name: str) -> Path:
    """The path of a tool."""
    if name not in TOOLS:
        raise ValueError(f"expected one of {', '.join(TOOLS)}, got {name}")
    return Path(__file__).parent / "bin" / name


def main() -> None:
    """What the scripts of the package call: the tool of the same name takes their place."""
    path = tool(Path(sys.argv[0]).name)
    os.execv(path, [str(path), *sys.argv[1:]])
