# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The decode loop of the guide in C compiles without warnings, runs, and is right: what a
request gets does not depend on who else is there."""

import subprocess
from collections.abc import Callable

import guides
import pytest

PAGE = guides.FOLDER / "decode-loop-in-c.md"


@pytest.fixture(scope="module")
def loop(build_dir, gdn_compile, package, tmp_path_factory, unsanitized) -> Callable:
    """Runs the guide's program with so many slots."""
    reader = guides.Reader(tmp_path_factory.mktemp("loop"), build_dir, gdn_compile, package)
    reader.write_files(PAGE)
    *before, build, run = guides.commands(PAGE)
    for command in (*before, f"{build} -O1 -Wall -Wextra -Wpedantic -Werror"):
        done = reader.run(command)
        assert done.returncode == 0, done.stderr
    assert run.endswith(" 3")
    return lambda slots: reader.run(f"{run.removesuffix(' 3')} {slots}")


def requests(done: subprocess.CompletedProcess[str]) -> list[str]:
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "slots in" in lines[0]
    return sorted(lines[1:])


def test_neighbours_do_not_matter(loop):
    alone = requests(loop(1))
    assert [line.split(":")[0] for line in alone] == [f"request {i}" for i in range(5)]
    assert all(len(line.split()) == 2 + 6 for line in alone)
    # The numbers are not all alike.
    assert len({line.split(":")[1] for line in alone}) == 5
    for slots in (2, 3, 8):
        assert requests(loop(slots)) == alone


def test_no_slots(loop):
    done = loop(0)
    assert done.returncode == 1
    assert done.stderr == "no request fits\n"
