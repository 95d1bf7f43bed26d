# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The decode loop of the guide compiles without warnings, runs, and is right: what a
request gets does not depend on who else is there."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs/guides/decode-loop-in-c.md"
CLANG = f"clang-{(ROOT / 'LLVM_VERSION').read_text().strip()}"


@pytest.fixture(scope="module")
def loop(tool, build_dir, tmp_path_factory):
    """Runs the guide's program with so many slots."""
    folder = tmp_path_factory.mktemp("loop")
    (program,) = re.findall(r"^```c\n(.*?)^```", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    source, binary, image = folder / "loop.c", folder / "loop", folder / "layer.gdnk"
    source.write_text(program)
    command = [CLANG, "-std=c11", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    command += ["-I", ROOT / "include", source, "-o", binary]
    command += [build_dir / "lib/libgdnrt.so", f"-Wl,-rpath,{build_dir / 'lib'}"]
    subprocess.run(command, check=True)
    config = ROOT / "runtime/traces/layer.json"
    options = ["--io=f32", "--state=f32", "--has-initial", "--target=native"]
    done = tool("gdn-compile", "--config", config, *options, "-o", image)
    assert done.returncode == 0, done.stderr

    def run(slots: int) -> subprocess.CompletedProcess[str]:
        return subprocess.run([binary, image, str(slots)], text=True, capture_output=True)

    return run


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
