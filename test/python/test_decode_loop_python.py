# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The guide of a decode loop in Python: its program serves every request."""

import guides
import pytest

PAGE = guides.FOLDER / "decode-loop-in-python.md"


@pytest.mark.parametrize("engine", ["pymllm", "sglang"])
def test_the_program_runs(engine, build_dir, gdn_compile, package, tmp_path, unsanitized):
    """With the image that the guide compiles, and with one that has more than its steps need."""
    (command,) = guides.commands(PAGE)
    assert "--for=pymllm" in command
    reader = guides.Reader(tmp_path, build_dir, gdn_compile, package)
    reader.write_files(PAGE)
    done = reader.run(command.replace("--for=pymllm", f"--for={engine}"))
    assert done.returncode == 0, done.stderr
    (program,) = guides.programs(PAGE, "python")
    lines = reader.python(program).splitlines()
    assert len(lines) == 5
    # Six new tokens each, and not the same ones for all.
    answers = [line.partition("->")[2] for line in lines]
    assert all(len(answer.split(",")) == 6 for answer in answers)
    assert len(set(answers)) > 1
