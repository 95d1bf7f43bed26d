# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Builds the wheels of the runtime into build/wheels, one for each processor.

Needs what tools/scripts/setup.sh installs, a source of Debian's packages, and pip; the rest
it fetches (tools/packaging/inputs.py). The same commit gives the same bytes. Each wheel is
then read: auditwheel has to find the platform of the tag or an older one, and the size is
limited. --record writes what was found to docs/generated/wheels.json, of which
tools/scripts/docs.py makes a table.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

import inputs

ROOT = inputs.ROOT
OUT = ROOT / "build/wheels"
FACTS = ROOT / "docs/generated/wheels.json"
PROCESSORS = ("x86_64", "aarch64")
GLIBC = "2.28"
MOST_BYTES = 60_000_000
TVM_FFI = "libtvm_ffi.so"  # of the package apache-tvm-ffi, which Python has loaded before


def tag(processor: str) -> str:
    return f"manylinux_{GLIBC.replace('.', '_')}_{processor}"


def commit_time() -> str:
    return inputs.run("git", "log", "-1", "--format=%ct", cwd=ROOT).strip()


def build(processor: str) -> Path:
    """The wheel for a processor."""
    include = inputs.headers()
    defines = {
        "GDN_ZIG": inputs.zig(),
        "GDN_PROCESSOR": processor,
        "GDN_GLIBC": GLIBC,
        "GDN_FLATBUFFERS_INCLUDE_DIR": include,
        "GDN_XXHASH_INCLUDE_DIR": include,
        "GDN_LICENSES": inputs.licenses(),
        "TBB_DIR": inputs.build_onetbb(processor),
        "CMAKE_BUILD_WITH_INSTALL_RPATH": "ON",
    }
    settings = {f"cmake.define.{name}": value for name, value in defines.items()} | {
        "cmake.toolchain-file": ROOT / "tools/cmake/zig.toolchain.cmake",
        "build-dir": inputs.FOLDER / processor / "gdn",
        "wheel.tags": f"py3-none-{tag(processor)}",
    }
    made = inputs.FOLDER / processor / "wheel"
    shutil.rmtree(made, ignore_errors=True)
    pip = [sys.executable, "-m", "pip", "wheel", ROOT, "--no-deps", "--no-build-isolation"]
    pip += ["--quiet", "--wheel-dir", made]
    pip += [f"--config-settings={name}={value}" for name, value in settings.items()]
    inputs.run(*pip, env=os.environ | {"SOURCE_DATE_EPOCH": commit_time(), "CCACHE_DISABLE": "1"})
    (wheel,) = made.glob("*.whl")
    OUT.mkdir(parents=True, exist_ok=True)
    for old in OUT.glob(f"gdn-*{processor}.whl"):
        old.unlink()
    return Path(shutil.move(wheel, OUT / wheel.name))


def audited(wheel: Path, files: str = "gdn/lib/*.so*", outside: str = TVM_FFI) -> str:
    """The oldest platform for which auditwheel finds the wheel good. It does not know of the
    package that brings `outside`: a copy is read in which no file asks for that library."""
    with tempfile.TemporaryDirectory() as folder:
        unpacked = Path(folder) / "unpacked"
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(unpacked)
        for file in unpacked.glob(files):
            inputs.run("patchelf", "--remove-needed", outside, file)
        copy = Path(shutil.make_archive(str(Path(folder) / wheel.stem), "zip", unpacked))
        copy = copy.rename(copy.with_suffix(".whl"))
        said = inputs.run(inputs.tools() / "auditwheel", "show", "--json", copy)
    return json.loads(said)["overall_tag"]


def is_within(platform: str, processor: str) -> bool:
    """Whether what auditwheel says is the platform of the tag, or an older one."""
    found = re.fullmatch(rf"manylinux_(\d+)_(\d+)_{processor}", platform)
    return bool(found) and (int(found[1]), int(found[2])) <= version(GLIBC)


def version(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split("."))


def libraries(wheel: Path) -> dict[str, dict]:
    """Of each library: bytes, what it needs, and the newest glibc of its symbols."""
    found = {}
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as archive:
        for name in sorted(n for n in archive.namelist() if re.search(r"\.so(\.\d+)*$", n)):
            path = archive.extract(name, folder)
            read = inputs.run("readelf", "--wide", "--dynamic", "--version-info", path)
            versions = set(re.findall(r"GLIBC_([\d.]+)", read))
            found[Path(name).name] = {
                "bytes": Path(path).stat().st_size,
                "needs": sorted(re.findall(r"\(NEEDED\).*\[(.*)\]", read)),
                "glibc": max(versions, key=version),
            }
    return found


def facts_of(wheel: Path) -> dict:
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = [n for n in archive.namelist() if n.endswith(".dist-info/METADATA")]
        text = archive.read(metadata).decode()
        images = sorted(n for n in archive.namelist() if n.endswith(".gdnk"))
    (python,) = re.findall(r"^Requires-Python: (.*)$", text, re.MULTILINE)
    return {
        "wheel": wheel.name,
        "bytes": wheel.stat().st_size,
        "python": python,
        "glibc": GLIBC,
        "images": images,
        "libraries": libraries(wheel),
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="wheels", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--processor", choices=PROCESSORS, action="append")
    parser.add_argument("--record", action="store_true", help="write docs/generated/wheels.json")
    options = parser.parse_args()
    recorded = json.loads(FACTS.read_text()) if FACTS.exists() else {}
    for processor in options.processor or PROCESSORS:
        wheel = build(processor)
        facts, platform = facts_of(wheel), audited(wheel)
        print(f"{wheel.relative_to(ROOT)}: {facts['bytes'] / 1e6:.1f} MB, {platform}")
        if not is_within(platform, processor):
            print(f"wheels: expected {tag(processor)} or older")
            return 1
        if facts["bytes"] > MOST_BYTES:
            print(f"wheels: expected at most {MOST_BYTES / 1e6:.0f} MB")
            return 1
        ran = {"ran": recorded[processor]["ran"]} if "ran" in recorded.get(processor, {}) else {}
        recorded[processor] = facts | {"audited": platform} | ran
    if options.record:
        FACTS.write_text(json.dumps(recorded, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
