# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where suites come from, at which versions, and the files of them that a run needs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path


class FetchError(Exception):
    """A suite that could not be fetched."""


@dataclass(frozen=True)
class Source:
    """Sources of one library. `package` is a requirement of pip whose source distribution has the
    suite; otherwise it is in a repository alone, at a commit."""

    version: str
    keep: tuple[str, ...]  # patterns below the root
    package: str | None = None
    repository: str | None = None
    commit: str | None = None


SOURCES = {
    "fla": Source(
        version="0.5.2, bc3b101d",
        keep=("fla/**/*.py", "tests/ops/test_gdn.py", "tests/ops/test_kda.py", "LICENSE")
        + ("tests/modules/test_layernorm_gated.py",),
        repository="fla-org/flash-linear-attention",
        commit="bc3b101dcb713ddc5bd8924b66754eb68b5ccf89",
    ),
    "causal-conv1d": Source(
        version="1.7.0",
        keep=("causal_conv1d/*.py", "tests/test_causal_conv1d.py", "LICENSE"),
        package="causal-conv1d==1.7.0",
    ),
    "flashinfer": Source(
        version="0.6.18, fb28d724",
        keep=("tests/gdn/*.py", "LICENSE"),
        repository="flashinfer-ai/flashinfer",
        commit="fb28d7242b3506a2348265962041acc1fb56cca4",
    ),
    "vllm": Source(
        version="0.33.0",
        keep=("tests/kernels/fla/*.py", "tests/kernels/mamba/test_causal_conv1d.py", "LICENSE")
        + ("tests/kernels/mamba/cpu/test_cpu_gdn_ops.py",),
        package="vllm==0.33.0",
    ),
}
# What suites import that neither they nor gdn have.
NEEDED = ("einops==0.8.2",)


def fetch(name: str, folder: Path) -> None:
    """The files of a source that a package has into folder/name."""
    source = SOURCES[name]
    if source.package is None:
        raise FetchError(
            f"{name}: its packages have no tests: expected the sources of {source.repository} at"
            f" {source.commit} in a folder, for the command take"
        )
    with tempfile.TemporaryDirectory() as scratch:
        take(name, _from_package(source.package, Path(scratch)), folder)


def take(name: str, root: Path, folder: Path) -> None:
    """The files of a source that lies in `root` into folder/name."""
    target = folder / name
    shutil.rmtree(target, ignore_errors=True)
    for pattern in SOURCES[name].keep:
        for path in root.glob(pattern):
            to = target / path.relative_to(root)
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, to)
    if not any(target.rglob("test_*.py")):
        raise FetchError(f"{name}: expected tests in {root}, found none")


def fetch_needed(folder: Path) -> None:
    """Packages that suites import, into folder/needed."""
    _pip("install", "--target", str(folder / "needed"), "--upgrade", *NEEDED)


def _from_package(requirement: str, scratch: Path) -> Path:
    """The unpacked source distribution. pip asks it for its metadata, which can fail where a build
    has needs; it is unpacked by then, and stays there with --no-clean."""
    options = ["--no-binary", ":all:", "--no-build-isolation", "--no-clean", "--dest", str(scratch)]
    failure = ""
    try:
        _pip("download", *options, requirement, temporary=scratch)
    except FetchError as error:
        failure = str(error)
    for archive in scratch.glob("*.tar.gz"):
        shutil.unpack_archive(archive, scratch, filter="data")
    for path in sorted(scratch.rglob("PKG-INFO")):
        if (path.parent / "tests").is_dir():
            return path.parent
    raise FetchError(failure or f"{requirement}: expected tests in its sources, found none")


def _pip(command: str, *arguments: str, temporary: Path | None = None) -> None:
    run = [sys.executable, "-m", "pip", command, "--quiet", "--no-deps", *arguments]
    place = {} if temporary is None else {"TMPDIR": str(temporary)}
    done = subprocess.run(run, text=True, capture_output=True, env=os.environ | place)
    if done.returncode:
        raise FetchError(f"{' '.join(run)}: {done.stderr.strip()[-2000:]}")
