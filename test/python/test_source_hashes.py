# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The hashes that caches of compiled programs have in their keys: they are of all sources that
what is behind the programs may use, and change with each of them."""

import re
import subprocess
from pathlib import Path

import passed_before
import pytest

ROOT = Path(__file__).resolve().parents[2]
# What turns programs into code, and the keys themselves.
BEHIND = {
    "SourcesBehindGpu": ["lib/Conversion/GPUToNVVM", "lib/Target", "lib/Dialect/GPU/IR"],
    "SourcesBehindTile": ["lib/Conversion/TileToCPU", "lib/Target", "lib/Dialect/Tile"],
}
FILES = {
    "SourcesBehindGpu": ["CompileGpu", "GpuToLlvm", "GpuProgramsToLlvm", "CachedModule"],
    "SourcesBehindTile": ["CompileCpu", "TileToLlvm", "CachedModule"],
}


@pytest.fixture(params=BEHIND)
def hashed(request, build_dir) -> tuple[str, set[str]]:
    """The name of a hash, and the files that it is of."""
    file = build_dir / f"lib/Pipelines/{request.param}.txt"
    return request.param, set(file.read_text().split())


def included(path: str) -> set[str]:
    """The files of gdn that a file includes, with those of the same name that have their code."""
    found = set()
    for name in re.findall(r'^#include "([^"]+)"', (ROOT / path).read_text(), re.MULTILINE):
        beside = [Path(path).parent, *Path(path).parents]
        for candidate in [Path("include") / name, *(folder / name for folder in beside)]:
            if (ROOT / candidate).is_file() and candidate.parts[0] in ("lib", "include"):
                found.add(str(candidate))
    return found


def code_of(header: str) -> list[str]:
    """The sources of the compiler that may define what a header declares."""
    name = Path(header)
    if name.parts[0] == "include":
        name = Path("lib", *name.parts[2:])
    return [str(name.with_suffix(".cpp"))] if (ROOT / name.with_suffix(".cpp")).is_file() else []


def test_all_that_is_used_is_hashed(hashed):
    name, files = hashed
    todo = [
        str(path.relative_to(ROOT))
        for folder in BEHIND[name]
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".cpp", ".h")
    ]
    todo += [f"lib/Pipelines/{file}.cpp" for file in FILES[name]]
    # These declare what is ahead of the programs, too, which has files of its own.
    names = ("GpuPipeline", "CpuPipeline", "CompileCpu")
    ahead = {f"include/gdn/Pipelines/{name}.h" for name in names}
    seen: set[str] = set()
    while todo:
        path = todo.pop()
        if path in seen:
            continue
        seen.add(path)
        todo += included(path)
        if path.endswith(".h") and path not in ahead:
            todo += code_of(path)
    assert len(seen) > 60
    assert sorted(seen - files) == []


def test_policies_and_schedules_are_ahead(hashed):
    _, files = hashed
    assert not [file for file in files if file.startswith("lib/Schedule") or "Policy" in file]


def test_entries_of_cpus_use_nothing_of_gpus(build_dir):
    """Tests of them are not repeated when that changes: passed_before.py."""
    todo = [f"lib/Pipelines/{name}.cpp" for name in ("CpuPipeline", "TileToLlvm")]
    todo += [
        str(path.relative_to(ROOT))
        for folder in ("lib/Conversion/GDNToTile", "lib/Conversion/TileToCPU", "lib/Model")
        for path in (ROOT / folder).rglob("*.cpp")
    ]
    seen: set[str] = set()
    while todo:
        path = todo.pop()
        if path not in seen:
            seen.add(path)
            todo += included(path) | (set(code_of(path)) if path.endswith(".h") else set())
    assert len(seen) > 100
    hashed = {str(path.relative_to(ROOT)) for path in passed_before.sources_for_cpus()}
    assert sorted(seen - hashed) == []
    integration = (build_dir / "test/Integration/cpu/SourcesForCpus.txt").read_text().split()
    assert sorted(seen - set(integration)) == []


def test_a_hash_changes_with_every_file(tmp_path):
    script = ROOT / "tools/cmake/GDNSourceHash.cmake"

    def header(build: str = "Release") -> str:
        names = ["a.cpp", "b.h"]
        (tmp_path / "list.txt").write_text("".join(f"{name}\n" for name in names))
        options = [f"-DLIST={tmp_path}/list.txt", f"-DOUT={tmp_path}/out.h", "-DNAME=sourcesX"]
        options.append(f"-DBUILD={build}")
        subprocess.run(["cmake", *options, "-P", script], cwd=tmp_path, check=True)
        return (tmp_path / "out.h").read_text()

    (tmp_path / "a.cpp").write_text("one")
    (tmp_path / "b.h").write_text("two")
    first = header()
    assert re.search(r'sourcesX\[\] =\s*"[0-9a-f]{64}";', first)
    assert header() == first
    assert header("Release,address") != first
    (tmp_path / "b.h").write_text("three")
    assert header() != first
