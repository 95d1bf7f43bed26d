# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the wheels hold that tools/packaging/wheels.py has built, if it has; that the recorded
facts about wheels are of this version; and that the package needs no later Python than it says."""

import hashlib
import json
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import compiler_wheel
import images_wheel
import wheel_table
import wheels
from gdn import Runtime, image_facts, images

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
VERSION = re.search(r"project\(gdn VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
FACTS = json.loads(wheels.FACTS.read_text())
C_LIBRARY = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1"}
LOADERS = {"x86_64": "ld-linux-x86-64.so.2", "aarch64": "ld-linux-aarch64.so.1"}
LIBRARIES = ("libgdnrt.so.0", "libgdn_tvm_ffi.so")


def newest_source() -> float:
    """When the last of the files that a wheel is made of was changed."""
    folders = ("python", "runtime", "include/gdn-c", "tools/packaging")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*")]
    return max(p.stat().st_mtime for p in files if p.suffix in (".py", ".h", ".cpp", ".txt"))


class Wheel:
    def __init__(self, processor: str, folder: Path):
        found = sorted(wheels.OUT.glob(f"gdn-{VERSION}-*{processor}.whl"))
        if not found:
            pytest.skip("no wheel of this version is built: tools/packaging/wheels.py")
        (self.path,) = found
        if self.path.stat().st_mtime < newest_source():
            pytest.skip("the wheel is older than the sources: tools/packaging/wheels.py")
        self.processor, self.folder = processor, folder
        with zipfile.ZipFile(self.path) as archive:
            self.names = set(archive.namelist())
            archive.extractall(folder)

    def text(self, name: str) -> str:
        return (self.folder / f"gdn-{VERSION}.dist-info" / name).read_text()


@pytest.fixture(scope="module", params=wheels.PROCESSORS)
def wheel(request, tmp_path_factory) -> Wheel:
    return Wheel(request.param, tmp_path_factory.mktemp(request.param))


def read(*command: object) -> str:
    return subprocess.run([*map(str, command)], text=True, capture_output=True, check=True).stdout


def exported(library: Path) -> set[str]:
    lines = read("readelf", "--wide", "--dyn-syms", library).splitlines()
    rows = [line.split() for line in lines]
    return {
        row[7].split("@")[0]
        for row in rows
        if len(row) > 7
        and row[4:5] != ["LOCAL"]
        and row[6] != "UND"
        and row[3] != "SECTION"
        and row[0][:-1].isdigit()
    }


def test_files(wheel):
    """The package, two libraries, what C is built with, and licenses; nothing else."""
    sources = {
        f"gdn/{p.relative_to(ROOT / 'python/gdn')}" for p in (ROOT / "python/gdn").rglob("*.py")
    }
    headers = {f"gdn/include/gdn-c/{p.name}" for p in (ROOT / "include/gdn-c").glob("*.h")}
    cmake = {f"gdn/lib/cmake/gdn/gdnConfig{part}.cmake" for part in ("", "Version")}
    rest = {f"gdn/lib/{name}" for name in LIBRARIES} | {"gdn/lib/pkgconfig/gdn.pc"}
    found = {name for name in wheel.names if name.startswith("gdn/")}
    licenses = {name for name in found if name.startswith("gdn/licenses/")}
    assert found - licenses == sources | headers | cmake | rest
    assert {Path(name).stem for name in licenses} >= {"oneTBB", "FlatBuffers", "xxHash", "libc++"}
    assert all(name.startswith(("gdn/", f"gdn-{VERSION}.dist-info/")) for name in wheel.names)


def test_tag_and_metadata(wheel):
    tag = f"py3-none-{wheels.tag(wheel.processor)}"
    assert wheel.path.name == f"gdn-{VERSION}-{tag}.whl"
    assert f"Tag: {tag}\n" in wheel.text("WHEEL")
    assert f"Requires-Python: {PROJECT['requires-python']}\n" in wheel.text("METADATA")
    assert wheel.path.stat().st_size <= wheels.MOST_BYTES


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_library_needs_an_old_glibc_and_little_else(wheel, library):
    facts = wheels.libraries(wheel.path)[library]
    own = {"libgdn_tvm_ffi.so": {"libgdnrt.so.0", "libtvm_ffi.so"}}.get(library, set())
    assert set(facts["needs"]) <= C_LIBRARY | own | {LOADERS[wheel.processor]}
    assert own <= set(facts["needs"])
    assert wheels.version(facts["glibc"]) <= wheels.version(wheels.GLIBC)


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_library_exports_what_that_of_the_build_does(wheel, library, build_dir):
    path = wheel.folder / "gdn/lib" / library
    assert exported(path) == exported(build_dir / "lib" / library)
    assert any(name.startswith(("gdnrt_", "__tvm_ffi_")) for name in exported(path))


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_library_says_nothing_of_the_machine_that_built_it(wheel, library):
    path = wheel.folder / "gdn/lib" / library
    sections = read("readelf", "--wide", "--sections", path)
    assert ".debug_" not in sections and ".symtab" not in sections
    assert str(ROOT).encode() not in path.read_bytes()
    assert "[$ORIGIN]" in read("readelf", "--dynamic", path)


def test_facts_are_of_this_version():
    names = {package.removeprefix("gdn_").replace("_", "-") for package in images.PACKAGES}
    assert set(FACTS) - names == {*wheels.PROCESSORS, "compiler"}
    for processor in wheels.PROCESSORS:
        facts = FACTS[processor]
        assert facts["wheel"] == f"gdn-{VERSION}-py3-none-{wheels.tag(processor)}.whl"
        assert facts["python"] == PROJECT["requires-python"]
        assert wheels.is_within(facts["audited"], processor)
        assert facts["bytes"] <= wheels.MOST_BYTES
        assert facts["ran"]


def test_facts_of_the_compiler():
    """Five tools that need the C library, libgcc and, for gdn-run, the package gdn beside."""
    facts = FACTS["compiler"]
    tag = f"manylinux_{compiler_wheel.GLIBC.replace('.', '_')}_x86_64"
    assert facts["wheel"] == f"gdn_compiler-{VERSION}-py3-none-{tag}.whl"
    assert facts["audited"] == tag
    assert facts["bytes"] <= compiler_wheel.MOST_BYTES
    assert set(facts["tools"]) == set(compiler_wheel.TOOLS)
    for tool, found in facts["tools"].items():
        assert wheels.version(found["glibc"]) <= wheels.version(compiler_wheel.GLIBC)
        assert found["looks in"] == [compiler_wheel.RUNPATH]
        others = set(found["needs"]) - C_LIBRARY - {LOADERS["x86_64"], "libgcc_s.so.1"}
        assert others == ({"libgdnrt.so.0"} if tool == "gdn-run" else set())
    assert facts["ran"]


@pytest.mark.parametrize("package", images.PACKAGES)
def test_a_wheel_of_images(package, build_dir, tmp_path, sanitized):
    """The files of the index and no others, all of that package; the first image of each form
    says of itself what the index says."""
    found = sorted(wheels.OUT.glob(f"{package}-{VERSION}-py3-none-any.whl"))
    if not found:
        pytest.skip("no such wheel is built: tools/packaging/images_wheel.py --wheel")
    assert found[0].stat().st_size <= images_wheel.MOST_BYTES
    with zipfile.ZipFile(found[0]) as archive:
        archive.extractall(tmp_path)
    index = json.loads((tmp_path / package / images.INDEX).read_text())
    assert images_wheel.rows_of(index, package) == index["images"]
    files = {made["file"] for row in index["images"] for made in row["targets"].values()}
    there = {path.name for path in (tmp_path / package).iterdir()}
    assert there == files | {"__init__.py", images.INDEX}
    runtime = Runtime(build_dir / "lib/libgdnrt.so")
    for row in index["images"]:
        for made in row["targets"].values():
            path = tmp_path / package / made["file"]
            assert hashlib.sha256(path.read_bytes()).hexdigest() == made["sha256"]
        said = image_facts.facts_of(runtime.image(path))
        assert said == {name: row[name] for name in said}, path.name


def test_the_table_has_wheels_of_images():
    facts = {
        "wheel": f"gdn_images-{VERSION}-py3-none-any.whl",
        "bytes": 51_000_000,
        "python": ">=3.10",
        "count": 2,
        "io": ["bf16"],
        "states": ["bf16", "f32"],
        "decays": ["head"],
        "targets": ["sm_90a"],
    }
    for more, text in (
        ({}, "bf16, states of bf16 and f32, decays per head"),
        ({"deferred": True}, "bf16, states of bf16 and f32, writes deferred, decays per head"),
        (
            {"io": ["bf16", "f16"], "decays": ["channel"]},
            "bf16 and f16, states of bf16 and f32, decays per channel",
        ),
    ):
        assert wheel_table.table({"images": facts | more})[-1] == (
            "| `gdn-images` | `any` | 51.0 MB | any | 3.10 or later |"
            f" 2 images: {text}, for `sm_90a` | never run |"
        )


def test_facts_are_of_the_wheels(wheel):
    """What does not change with each commit."""
    facts = FACTS[wheel.processor]
    now = wheels.facts_of(wheel.path)
    for name in ("wheel", "python", "glibc", "images"):
        assert facts[name] == now[name]
    assert set(facts["libraries"]) == set(now["libraries"])
    assert facts["bytes"] == pytest.approx(now["bytes"], rel=0.1)


def test_the_readme_has_the_table():
    text = (ROOT / "README.md").read_text()
    assert wheel_table.readme(text, FACTS) == text
    assert all(facts["wheel"].split("-")[1] == VERSION for facts in FACTS.values())


def test_the_package_needs_no_later_python_than_it_says():
    oldest = PROJECT["requires-python"].removeprefix(">=")
    tool = Path(sys.executable).parent / "vermin"
    command = [tool, "--quiet", "--no-tips", f"--target={oldest}-"]
    done = subprocess.run(
        [*command, "--violations", ROOT / "python/gdn"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
