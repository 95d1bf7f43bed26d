# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Builds the wheel gdn-compiler into build/wheels: gdn's tools with LLVM inside.

The tools are targets of the release build that nothing else builds (<tool>-static), from the
same objects as the others. Neither the tools' symbols nor auditwheel may ask for a newer glibc
than that of the tag, and the size is limited. --record writes what was found to
docs/generated/wheels.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import inputs
import wheels

ROOT = inputs.ROOT
SOURCE = Path(__file__).parent / "compiler"
BUILD = ROOT / "build/release"
TOOLS = ("gdn-compile", "gdn-opt", "gdn-gpu-opt", "gdn-tile-opt", "gdn-run")
# Debian's archives ask for it: they were compiled where threads are in the C library itself.
GLIBC = "2.34"
MOST_BYTES = 90_000_000
LIBRARY = "libgdnrt.so.0"  # of the package gdn, which gdn-run loads
RUNPATH = "$ORIGIN/../../gdn/lib"
LICENSES = {
    "LLVM": "llvm-22",
    "zlib": "zlib1g-dev",
    "zstd": "libzstd-dev",
    "FlatBuffers": "libflatbuffers-dev",
    "xxHash": "libxxhash-dev",
    "nlohmann-json": "nlohmann-json3-dev",
    "libstdc++": "libstdc++-12-dev",
}


def version() -> str:
    text = (ROOT / "CMakeLists.txt").read_text()
    return re.search(r"project\(gdn VERSION ([0-9.]+)", text)[1]


def build_tools() -> None:
    """Says how far it is: linking takes minutes where objects have to be compiled."""
    command = ["cmake", "--build", BUILD, "--target", *(f"{tool}-static" for tool in TOOLS)]
    subprocess.run(list(map(str, command)), check=True)


def stage() -> Path:
    """The sources of the package, with the tools and the licenses in their places."""
    folder = inputs.FOLDER / "compiler"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(SOURCE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "VERSION").write_text(version() + "\n")
    (folder / "gdn_compiler/bin").mkdir()
    for tool in TOOLS:
        shutil.copy2(BUILD / "static" / f"{tool}-static", folder / "gdn_compiler/bin" / tool)
    (folder / "licenses").mkdir()
    shutil.copyfile(ROOT / "LICENSE", folder / "licenses/gdn.txt")
    for name, package in LICENSES.items():
        text = Path("/usr/share/doc") / package / "copyright"
        shutil.copyfile(text, folder / f"licenses/{name}.txt")
    return folder


def build() -> Path:
    build_tools()
    folder = stage()
    made = inputs.FOLDER / "compiler-wheel"
    shutil.rmtree(made, ignore_errors=True)
    time = inputs.run("git", "log", "-1", "--format=%ct", cwd=ROOT).strip()
    pip = [inputs.tools() / "python", "-m", "pip", "wheel", folder, "--no-deps", "--quiet"]
    inputs.with_retries(*pip, "--wheel-dir", made, env=os.environ | {"SOURCE_DATE_EPOCH": time})
    (pure,) = made.glob("*.whl")
    tag = f"manylinux_{GLIBC.replace('.', '_')}_{platform.machine()}"
    wheel = [inputs.tools() / "python", "-m", "wheel", "tags", "--remove"]
    inputs.run(*wheel, f"--platform-tag={tag}", pure, cwd=made)
    (tagged,) = made.glob("*.whl")
    wheels.OUT.mkdir(parents=True, exist_ok=True)
    for old in wheels.OUT.glob("gdn_compiler-*.whl"):
        old.unlink()
    return Path(shutil.move(tagged, wheels.OUT / tagged.name))


def facts_of(wheel: Path) -> dict:
    """Size, and of each tool what it needs and the newest glibc of its symbols."""
    tools = {}
    for tool in TOOLS:
        path = BUILD / "static" / f"{tool}-static"
        read = inputs.run("readelf", "--wide", "--dynamic", "--version-info", path)
        versions = set(re.findall(r"GLIBC_([\d.]+)", read))
        tools[tool] = {
            "bytes": path.stat().st_size,
            "needs": sorted(re.findall(r"\(NEEDED\).*\[(.*)\]", read)),
            "glibc": max(versions, key=wheels.version),
            "looks in": re.findall(r"\(RUNPATH\).*\[(.*)\]", read),
        }
    targets = inputs.run(BUILD / "static/gdn-compile-static", "--version")
    return {
        "wheel": wheel.name,
        "bytes": wheel.stat().st_size,
        "python": ">=3.10",
        "glibc": GLIBC,
        "tools": tools,
        "version": targets.splitlines()[0] if targets else "",
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="compiler_wheel",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--record", action="store_true", help="write docs/generated/wheels.json")
    options = parser.parse_args()
    wheel = build()
    facts = facts_of(wheel)
    print(f"{wheel.relative_to(ROOT)}: {facts['bytes'] / 1e6:.1f} MB")
    newer = [
        t for t, f in facts["tools"].items() if wheels.version(f["glibc"]) > wheels.version(GLIBC)
    ]
    if newer:
        print(f"compiler_wheel: expected glibc {GLIBC} or older, got newer in {', '.join(newer)}")
        return 1
    facts["audited"] = wheels.audited(wheel, "gdn_compiler/bin/*", LIBRARY)
    if facts["audited"] not in wheel.name:
        print(f"compiler_wheel: expected the tag {facts['audited']} of auditwheel in {wheel.name}")
        return 1
    lost = [t for t, f in facts["tools"].items() if f["looks in"] != [RUNPATH]]
    if lost:
        print(f"compiler_wheel: expected {RUNPATH} for libgdnrt, not so in {', '.join(lost)}")
        return 1
    if facts["bytes"] > MOST_BYTES:
        print(f"compiler_wheel: expected at most {MOST_BYTES / 1e6:.0f} MB")
        return 1
    if options.record:
        recorded = json.loads(wheels.FACTS.read_text()) if wheels.FACTS.exists() else {}
        ran = recorded.get("compiler", {}).get("ran")
        recorded["compiler"] = facts | ({"ran": ran} if ran else {})
        wheels.FACTS.write_text(json.dumps(recorded, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
