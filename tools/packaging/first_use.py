# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Uses the wheels of build/wheels as their first user would: in a bare root of another Debian
release, with Python and without a compiler, network or sources.

On this processor these run, each from a folder with what pip installs:

- x86_64: the program of docs/guides/decode-loop-in-python.md, from an image that was compiled
  before
- compiler: gdn.compile of a preset for a CPU and a GPU, then gdn-run, from the wheels gdn and
  gdn-compiler
- images: an image that gdn.images.find finds for this CPU, from the wheels gdn and gdn-images

For aarch64 a program without kernels runs under qemu: it loads both libraries, reads an image,
and allocates, writes and frees states. Needs root, and the packages debootstrap and
qemu-user-static. --record says in docs/generated/wheels.json what ran.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import shutil
import sys
from pathlib import Path

import inputs
import wheels

ROOT = inputs.ROOT
GUIDE = ROOT / "docs/guides/decode-loop-in-python.md"
SUITE = "trixie"
DEBIAN = {"x86_64": "amd64", "aarch64": "arm64"}
COMPILERS = ("cc", "gcc*", "c++", "g++*", "clang*", "ld", "ld.bfd", "ld.lld", "tcc", "as")

WITHOUT_KERNELS = """
import numpy as np
import gdn
from gdn.call import _functions

runtime = gdn.Runtime()
device = runtime.device(num_workers=2)
image = runtime.image("layer.gdnk")
try:
    device.kernel(image, "decode")
    raise SystemExit("expected no code for this processor")
except gdn.GdnError as error:
    assert error.status == "UNSUPPORTED", error.status
    assert "no code for aarch64; it has code for: x86-64" in str(error), error
    print(error)
pool = gdn.StatePool(device, gdn.StatePoolShape(2, 3, 1, 2, 16, 16))
slots = pool.allocate(3)
assert pool.allocate(1) is None and pool.num_free == 0, slots
pool.free(slots)
assert pool.num_free == 3
assert set(_functions(runtime.path.parent)) == {"create", "destroy", "launch", "workspace_bytes"}
print("gdn", runtime.version, "has read", ", ".join(image.entries))
"""

COMPILER = """
import subprocess, sys
from pathlib import Path
import gdn
import gdn_compiler

def compile():
    options = {"engine": "c", "options": ["--only=decode"], "cache": "cache"}
    return gdn.compile("qwen3.5-0.8b", ["x86-64-v3", "sm_90a"], **options)

path = compile()
assert compile() == path
image = gdn.Runtime().image(path)
found = [code.target for code in image.codes("decode")]
assert found == ["x86-64", "sm_90a"], found
call = ["--entry", "decode", "--generate", "rows=3,Hk=1,Hv=2", "--check"]
done = subprocess.run([gdn_compiler.tool("gdn-run"), path, *call], capture_output=True, text=True)
assert done.returncode == 0, done.stdout + done.stderr
print("gdn-compiler has made", path.name, "with", ", ".join(image.entries))
"""

PREBUILT = """
import numpy as np
import gdn
from gdn.problems import Sizes, make

runtime = gdn.Runtime()
device = runtime.device()
path = gdn.images.find("qwen3.5-4b", device, engine="vllm")
assert path.parent.name == "gdn_images", path
decode = device.kernel(runtime.image(path), "decode")
arrays = make(decode.params, Sizes(key_heads=2, value_heads=4, lengths=(1, 1, 1)))
gdn.Call(decode)(**arrays)
assert np.isfinite(arrays["out"].astype(np.float32)).all()
try:
    gdn.images.find("qwen3.5-4b", (7, 5))
    raise SystemExit("expected no image for a GPU of capability 7.5")
except gdn.ImageNotFoundError as error:
    print(error)
print("gdn", runtime.version, "has run decode of", path.name)
"""


def wheel_of(what: str) -> Path:
    """The wheel of gdn for a processor, or that of another package."""
    names = {"compiler": "gdn_compiler-*.whl", "images": "gdn_images-*.whl"}
    found = sorted(wheels.OUT.glob(names.get(what) or f"gdn-*{wheels.tag(what)}.whl"))
    if len(found) != 1:
        raise SystemExit(f"first_use: expected a wheel for {what} in build/wheels")
    return found[0]


def debian(processor: str, suite: str, folder: Path) -> Path:
    """The root of a release. That of another processor is unpacked and not set up, which takes
    programs of that processor that start others; one program alone runs in it."""
    root = folder / f"{suite}-{DEBIAN[processor]}"
    if root.exists():
        return root
    made = root.with_name(root.name + "-unfinished")
    shutil.rmtree(made, ignore_errors=True)
    foreign = processor != platform.machine()
    options = ["--variant=minbase", "--include=python3,python3-venv", *["--foreign"] * foreign]
    inputs.with_retries("debootstrap", f"--arch={DEBIAN[processor]}", *options, suite, made)
    if foreign:
        for package in sorted((made / "var/cache/apt/archives").glob("*.deb")):
            inputs.run("dpkg-deb", "--extract", package, made)
        shutil.copy("/usr/bin/qemu-aarch64-static", made / "usr/bin")
    return made.rename(root)


def python_of(root: Path) -> str:
    """The version of Python in a root, such as 3.13."""
    (program,) = (p for p in (root / "usr/bin").iterdir() if re.fullmatch(r"python3\.\d+", p.name))
    return program.name.removeprefix("python")


def install(root: Path, packages: list[str], processor: str) -> Path:
    """Wheels and what they depend on, as wheels alone, in a folder of the root."""
    where = root / "opt/first-use"
    shutil.rmtree(where, ignore_errors=True)
    minors = (34, 28, 27, 24, 17)
    platforms = [f"manylinux_2_{minor}_{processor}" for minor in minors]
    which = [f"--platform={name}" for name in [*platforms, f"manylinux2014_{processor}"]]
    which += ["--only-binary=:all:", f"--python-version={python_of(root)}"]
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    inputs.with_retries(*pip, *which, "--no-compile", "--target", where, *packages)
    return where


def guide() -> tuple[str, str, list[str]]:
    """The program of the guide, and the configuration and the options of its image."""
    text = GUIDE.read_text()
    (program,) = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    (config,) = re.findall(r"^```json\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    (options,) = re.findall(r"^ {4}gdn-compile (.*) --target=native -o layer.gdnk$", text, re.M)
    return program, config, options.split()


def run(root: Path, where: Path, program: str, processor: str) -> None:
    """Runs a program in the folder of the root, without the network."""
    (where / "program.py").write_text(program)
    emulator = [] if processor == platform.machine() else ["/usr/bin/qemu-aarch64-static"]
    script = "import os, sys; os.chdir('/opt/first-use'); sys.path.insert(0, '.')"
    script += "; exec(open('program.py').read())"
    python = f"/usr/bin/python{python_of(root)}"
    # Code of images is loaded from /proc. Mounts and the network end with the process.
    enter = 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"'
    alone = ["unshare", "--mount", "--net", "sh", "-c", enter, root]
    print(inputs.run(*alone, *emulator, python, "-c", script), end="")


def first_use(what: str, suite: str, folder: Path, compiler: Path) -> str:
    """Runs a program in a root; says where, and with what."""
    processor = what if what in wheels.PROCESSORS else platform.machine()
    root = debian(processor, suite, folder)
    there = [p.name for pattern in COMPILERS for p in (root / "usr/bin").glob(pattern)]
    if there:
        raise SystemExit(f"first_use: expected no compiler in the root, found {there}")
    gdn = str(wheel_of(processor))
    native = processor == platform.machine()
    if what == "compiler":
        where = install(root, [f"{gdn}[bfloat16]", str(wheel_of(what))], processor)
        program = COMPILER
        ran = "no compiler: `gdn.compile` of a preset for a CPU and a GPU, then `gdn-run`"
    elif what == "images":
        where = install(root, [f"{gdn}[bfloat16]", str(wheel_of(what))], processor)
        program, ran = PREBUILT, "no compiler: decode of an image that `gdn.images.find` found"
    else:
        where = install(root, [gdn], processor)
        program, config, options = guide()
        (where / "layer.json").write_text(config)
        command = [compiler.resolve(), *options, "--target=x86-64-v3", "-o", "layer.gdnk"]
        inputs.run(*command, cwd=where)
        program = program if native else WITHOUT_KERNELS
        ran = "the decode loop of the guide" if native else "libraries, image and pool, no kernel"
    run(root, where, program, processor)
    version = (root / "etc/debian_version").read_text().strip()
    how = "" if native else ", under qemu"
    separator = ", " if what in ("compiler", "images") else ": "
    return f"Debian {version}, Python {python_of(root)}{how}{separator}{ran}"


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="first_use", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    known = (*wheels.PROCESSORS, "compiler", "images")
    parser.add_argument("--what", choices=known, action="append", help="default: all of them")
    parser.add_argument("--suite", default=SUITE, help="a release of Debian")
    parser.add_argument("--roots", type=Path, default=inputs.FOLDER / "roots")
    compiler = ROOT / "build/release/bin/gdn-compile"
    parser.add_argument("--gdn-compile", type=Path, default=compiler)
    parser.add_argument("--record", action="store_true", help="write docs/generated/wheels.json")
    options = parser.parse_args()
    options.roots.mkdir(parents=True, exist_ok=True)
    for what in options.what or known:
        ran = first_use(what, options.suite, options.roots.resolve(), options.gdn_compile)
        print(f"{wheel_of(what).name}: {ran}")
        if options.record:
            recorded = json.loads(wheels.FACTS.read_text())
            recorded[what]["ran"] = ran
            wheels.FACTS.write_text(json.dumps(recorded, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
