# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What wheels are built from and is not in the sources, in build/packaging: zig, the source of
oneTBB, headers of Debian's packages, and the licenses of all that ends up in the libraries.

Packages come by pip and apt as this machine has them set up. Nothing of apt's own state is
changed: the lists of source packages lie in a folder of their own.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build/packaging"
REQUIREMENTS = Path(__file__).parent / "requirements.txt"
TRIES = 5


def run(*command: object, **options) -> str:
    """Output of a command; what it said is in the error if it fails."""
    words = [str(word) for word in command]
    done = subprocess.run(words, text=True, capture_output=True, **options)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)} failed\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return done.stdout


def with_retries(*command: object, **options) -> str:
    """Servers of packages fail now and then, and what was fetched before stays."""
    wait = 5
    for attempt in range(1, TRIES):
        try:
            return run(*command, **options)
        except RuntimeError as error:
            print(f"packaging: try {attempt} of {TRIES}, again in {wait} s: {error}", flush=True)
            time.sleep(wait)
            wait *= 2
    return run(*command, **options)


def tools() -> Path:
    """The programs of requirements.txt, in an environment of their own; the folder bin."""
    venv = FOLDER / "venv"
    stamp = venv / REQUIREMENTS.name
    if not stamp.exists() or stamp.read_text() != REQUIREMENTS.read_text():
        run(sys.executable, "-m", "venv", venv)
        pip = [venv / "bin/python", "-m", "pip", "install", "--disable-pip-version-check"]
        with_retries(*pip, "-r", REQUIREMENTS)
        shutil.copy(REQUIREMENTS, stamp)
    return venv / "bin"


def zig() -> Path:
    where = "import pathlib, ziglang; print(pathlib.Path(ziglang.__file__).parent / 'zig')"
    return Path(run(tools() / "python", "-c", where).strip())


def version_of(package: str) -> str:
    """That of the source of an installed package."""
    return run("dpkg-query", "-W", "-f", "${source:Version}", package)


def onetbb() -> Path:
    """The source of the oneTBB that the ordinary build links with."""
    version = version_of("libtbb-dev")
    source = FOLDER / f"onetbb-{version}"
    if source.exists():
        return source
    state = FOLDER / "apt"
    (state / "lists/partial").mkdir(parents=True, exist_ok=True)
    (state / "archives/partial").mkdir(parents=True, exist_ok=True)
    known = "deb-src $(REPO_URI) $(RELEASE) $(COMPONENT)"
    lines = run("apt-get", "indextargets", "--format", known, "Identifier: Packages").splitlines()
    (state / "sources.list").write_text("\n".join(sorted(set(lines))) + "\n")
    options = {
        "Dir::Etc::SourceList": state / "sources.list",
        "Dir::Etc::SourceParts": "/dev/null",
        "Dir::State::Lists": state / "lists",
        "Dir::Cache": state,
        "APT::Sandbox::User": "",
        "APT::Update::Error-Mode": "any",
    }
    apt = ["apt-get", "-qq", *(f"-o{name}={value}" for name, value in options.items())]
    with_retries(*apt, "update")
    with_retries(*apt, "source", "--download-only", f"onetbb={version}", cwd=state)
    (description,) = state.glob("onetbb_*.dsc")
    unpacked = FOLDER / "onetbb-unpacked"
    shutil.rmtree(unpacked, ignore_errors=True)
    run("dpkg-source", "--extract", description, unpacked, cwd=state)
    return unpacked.rename(source)


def build_onetbb(processor: str) -> Path:
    """The static library for a processor, where find_package finds it."""
    installed = FOLDER / processor / "tbb"
    if not installed.exists():
        build = FOLDER / processor / "tbb-build"
        options = {
            "CMAKE_TOOLCHAIN_FILE": ROOT / "tools/cmake/zig.toolchain.cmake",
            "CMAKE_BUILD_TYPE": "Release",
            "CMAKE_INSTALL_PREFIX": FOLDER / processor / "tbb-installing",
            "CMAKE_INSTALL_LIBDIR": "lib",
            "GDN_ZIG": zig(),
            "GDN_PROCESSOR": processor,
            "BUILD_SHARED_LIBS": "OFF",
            "TBBMALLOC_BUILD": "OFF",
            "TBB_DISABLE_HWLOC_AUTOMATIC_SEARCH": "ON",
            "TBB_ENABLE_IPO": "OFF",
            "TBB_STRICT": "OFF",
            "TBB_TEST": "OFF",
        }
        defines = [f"-D{name}={value}" for name, value in options.items()]
        run("cmake", "-G", "Ninja", "-S", onetbb(), "-B", build, *defines)
        run("cmake", "--build", build, "--target", "install")
        (FOLDER / processor / "tbb-installing").rename(installed)
    return installed / "lib/cmake/TBB"


def headers() -> Path:
    """FlatBuffers and xxHash away from the headers of this machine's glibc."""
    folder = FOLDER / "include"
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("flatbuffers", "xxhash.h"):
        if not (folder / name).exists():
            (folder / name).symlink_to(Path("/usr/include") / name)
    return folder


def licenses() -> Path:
    """Of what is compiled or linked into the libraries of wheels."""
    folder = FOLDER / "licenses"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    inside = zig().parent / "lib"
    texts = {
        "oneTBB": onetbb() / "LICENSE.txt",
        "FlatBuffers": Path("/usr/share/doc/libflatbuffers-dev/copyright"),
        "xxHash": Path("/usr/share/doc/libxxhash-dev/copyright"),
        "libc++": inside / "libcxx/LICENSE.TXT",
        "libc++abi": inside / "libcxxabi/LICENSE.TXT",
        "libunwind": inside / "libunwind/LICENSE.TXT",
        "zig": inside.parent / "LICENSE",
    }
    for name, text in texts.items():
        shutil.copyfile(text, folder / f"{name}.txt")
    return folder
