# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""README.md tells the truth: its commands and its program run, with the package as pip installs
it and a driver that runs PTX on the CPU; its numbers are those of the records. Its table is that
of test_presets.py."""

import json
import os
import re
import shlex
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

import guides
import numpy as np
import pytest

import readme_picture

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "README.md"
README = PAGE.read_text()
WORDS = " ".join(README.split())
COMMANDS = re.findall(r"^    \$ (.+)$", README, re.MULTILINE)
(PROGRAM,) = guides.programs(PAGE, "python")
PEERS = {"fla", "flashqla", "flashinfer", "flashinfer-cp"}


@pytest.fixture(scope="module")
def reader(build_dir, gdn_compile, package, ptx_driver, tmp_path_factory) -> guides.Reader:
    """With a driver that runs PTX on the CPU. It takes PTX alone; with code of ptxas an image would
    be the same otherwise."""
    folder = tmp_path_factory.mktemp("first-use")
    reader = guides.Reader(folder, build_dir, [*gdn_compile, "--ptxas=none"], package)
    reader.env["LD_LIBRARY_PATH"] = str(ptx_driver)
    done = reader.run(COMMANDS[0])
    assert done.returncode == 0, done.stderr
    return reader


@pytest.mark.parametrize("command", COMMANDS[1:])
def test_command_runs(reader, command):
    done = reader.run(command)
    assert done.returncode == 0, done.stdout + done.stderr
    if "--check" in command:
        assert ("sm_90a" if "cuda" in command else "x86-64") in done.stdout


def test_program_runs_on_a_gpu_and_on_a_cpu(reader):
    """In as many lines as a reader was promised; a CPU gives what a GPU gives."""
    assert len([line for line in PROGRAM.splitlines() if line]) <= 10
    assert reader.python(PROGRAM).endswith("sm_90, 8 multiprocessors (3, 32, 128)\n")
    found = []
    for device in ("runtime.cuda()", "runtime.device()"):
        program = PROGRAM.replace("runtime.cuda()", device)
        program += 'tensors["out"].numpy().astype("float32").tofile("out.bin")\n'
        reader.python(program)
        found.append(np.fromfile(reader.folder / "out.bin", np.float32))
    assert np.abs(found[0]).max() > 0.1
    np.testing.assert_allclose(*found, atol=2e-2, rtol=2e-2)


def test_the_image_is_that_of_the_first_command():
    (image,) = re.findall(r'runtime\.image\("([^"]+)"\)', PROGRAM)
    assert shlex.split(COMMANDS[0])[-1] == image
    assert 'export PATH="$PWD/build/release/bin:$PATH"' in README


def test_the_two_commands_are_those_of_the_tree():
    for script in ("./demo", "./check"):
        assert re.search(rf"^    {script}$", README, re.MULTILINE)
        assert os.access(ROOT / script, os.X_OK)
    assert "exec ./check" in (ROOT / ".ci/run").read_text()
    last = "all 220 results within bounds"
    assert last in README and last in (ROOT / "test/python/test_demo.py").read_text()


def test_pip_knows_the_extra():
    (extra,) = re.findall(r'^    pip install "\.\[(\w+)\]"$', README, re.MULTILINE)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert extra in project["optional-dependencies"]
    assert f"Python {project['requires-python'].removeprefix('>=')} or later" in README


def beside(record: str) -> list[float]:
    """The time of the fastest peer over ours, for each combination of a record of prefill."""
    found: dict[tuple, dict[str, float]] = defaultdict(dict)
    for row in json.loads((readme_picture.RESULTS / f"{record}.json").read_text())["rows"]:
        config = row["config"]
        if "part" not in config:
            found[config["Hk"], config["Hv"], config["set"]][row["impl"]] = row["us"]
    return [
        min(us for impl, us in times.items() if impl in PEERS) / times["gdn"]
        for times in found.values()
    ]


@pytest.mark.parametrize("record", ["prefill-grid-h200", "packed-grid-h200"])
def test_numbers_are_those_of_records(record):
    sentence = WORDS.partition(f"](docs/generated/{record}.md), ")[2].partition(" at worst")[0]
    ratios = beside(record)
    mean = np.exp(np.mean(np.log(ratios)))
    numbers = [f"{len(ratios)}", f"{mean:.2f}", f"{min(ratios):.2f}"]
    assert re.findall(r"(?<![A-Z])\b(\d[\d.]*\d)x?\b", sentence) == numbers


def test_picture_is_not_stale(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["readme_picture.py", "--check"])
    assert readme_picture.main() == 0, capsys.readouterr().out
    assert f"]({readme_picture.PICTURE.relative_to(ROOT)})" in README


def test_a_picture_of_other_numbers_is_stale(capsys, monkeypatch):
    real = readme_picture.times

    def others(panel):
        data = real(panel)
        next(iter(data["us"].values()))[0] += 0.01
        return data

    monkeypatch.setattr(readme_picture, "times", others)
    monkeypatch.setattr(sys, "argv", ["readme_picture.py", "--check"])
    assert readme_picture.main() == 1
    assert "is stale" in capsys.readouterr().out


def test_links_lead_somewhere():
    for page in [PAGE, ROOT / "CONTRIBUTING.md", ROOT / "docs/spec/README.md"]:
        links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())
        assert [link for link in links if not (page.parent / link).exists()] == []


def test_places_in_pages_are_there():
    """What stands behind # in a link is a heading of the page."""
    for page, place in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", README):
        text = (ROOT / (page or "README.md")).read_text()
        headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
        assert place in [re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in headings]


def test_presets_are_those_of_the_tool(tool):
    (claimed,) = re.findall(r"^Presets: (.*?)\. ", README, re.MULTILINE | re.DOTALL)
    (known,) = re.findall(r"--preset=<name> .*?: (.*)$", tool("gdn-compile", "--help").stdout, re.M)
    assert re.findall(r"`([^`]+)`", claimed) == known.split(", ")


def test_targets_are_those_of_the_tool(tool):
    """Those of GPUs have a line each of what they are for."""
    rows = re.findall(r"^\| (`(?:sm|x86)[^|]+) \|", README, re.MULTILINE)
    claimed = [name for row in rows for name in re.findall(r"`([^`]+)`", row)]
    (known,) = re.findall(
        r"--target=<name,\.\.\.> .*?: (.*)$", tool("gdn-compile", "--help").stdout, re.M
    )
    assert claimed == re.findall(r"x86-64-v\d|sm_\d+a?", known)
