# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The guide of a decode loop in Python: its program serves every request."""

import guides

PAGE = guides.FOLDER / "decode-loop-in-python.md"


def test_the_program_runs(build_dir, gdn_compile, tmp_path, monkeypatch, capsys):
    guides.Sources(tmp_path, build_dir, gdn_compile).run_all(PAGE)
    monkeypatch.chdir(tmp_path)
    (program,) = guides.programs(PAGE, "python")
    exec(compile(program, PAGE.name, "exec"), {})
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5
    # Six new tokens each, and not the same ones for all.
    answers = [line.partition("->")[2] for line in lines]
    assert all(len(answer.split(",")) == 6 for answer in answers)
    assert len(set(answers)) > 1
