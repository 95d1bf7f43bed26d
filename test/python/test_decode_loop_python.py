# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The guide of a decode loop in Python: its program runs, and serves every request."""

import re
import shutil
from pathlib import Path

from gdn_layer_model import compile_image

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs/guides/decode-loop-in-python.md").read_text()


def test_the_program_runs(tool, build_dir, tmp_path, monkeypatch, capsys):
    (program,) = re.findall(r"^```python\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)
    (command,) = re.findall(r"^    gdn-compile (.*)$", GUIDE, re.MULTILINE)
    options = [o for o in command.split() if o.startswith(("--layout", "--outputs"))]
    assert len(options) == 2
    shutil.copy(compile_image(tool, tmp_path, *options), tmp_path / "layer.gdnk")
    monkeypatch.chdir(tmp_path)
    exec(compile(program.replace("build/release", str(build_dir)), "guide", "exec"), {})
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5
    # Six new tokens each, and not the same ones for all.
    answers = [line.partition("->")[2] for line in lines]
    assert all(len(answer.split(",")) == 6 for answer in answers)
    assert len(set(answers)) > 1
