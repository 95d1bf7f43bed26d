# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the program of the guide for GPUs from the wheels of build/wheels, with a prebuilt image and
without a compiler: in a process that finds no program on its PATH and has an empty home.

For a machine with a GPU, whose Python has PyTorch and NumPy. Prints what the program prints, and
fails if it fails, or if it left a file behind.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import trace_first_use
import wheels

GUIDE = wheels.ROOT / "docs/guides/decode-loop-on-a-gpu.md"


def program() -> str:
    (found,) = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="gpu_first_use", description=__doc__)
    parser.add_argument("--wheels", type=Path, default=wheels.OUT)
    parser.add_argument("--python", default=sys.executable)
    options = parser.parse_args()
    wheels.OUT = options.wheels
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder).resolve()
        installed, home = work / "installed", work / "home"
        home.mkdir()
        trace_first_use.unpack(installed)
        script = work / "program.py"
        script.write_text(program())
        environment = {
            "PATH": str(home),
            "HOME": str(home),
            "PYTHONPATH": str(installed),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        done = subprocess.run([options.python, script], env=environment, cwd=home)
        left = [path for path in home.rglob("*") if path.is_file()]
    for path in left:
        print(f"gpu_first_use: expected no file to be written, got {path.name}")
    return done.returncode or bool(left)


if __name__ == "__main__":
    sys.exit(main())
