# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles layers with gdn-compile, of the package gdn-compiler or of the PATH.

Nothing is compiled unless `compile` is called. What it has made is kept in a folder of the
user's cache, by the content of the configuration, the options and the compiler, and several
processes may ask at once: one compiles, the others wait for it.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from .config_text import text_of

# Where the package nvidia-cuda-nvcc has ptxas, below its folder.
_PTXAS = ("cu13/bin/ptxas", "cuda_nvcc/bin/ptxas")
_PROGRESS_S = 0.5


class CompileError(RuntimeError):
    """gdn-compile failed, or there is none. The message is what it said."""


class Layer(str):
    """The text of a layer in the gdn dialect, as a .mlir file has it."""


def cache_folder() -> Path:
    """$XDG_CACHE_HOME/gdn, or ~/.cache/gdn."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gdn"


def find_tool(name: str = "gdn-compile") -> Path:
    """The path of a tool: from the package gdn-compiler, else from the PATH. Raises
    CompileError where there is none."""
    package = importlib.util.find_spec("gdn_compiler")
    if package is not None and package.origin is not None:
        return Path(package.origin).parent / "bin" / name
    if found := shutil.which(name):
        return Path(found)
    raise CompileError(
        f"expected {name} from the package gdn-compiler (pip install gdn-compiler) or on the PATH,"
        " found neither"
    )


def find_ptxas() -> Path | None:
    """NVIDIA's assembler from the package nvidia-cuda-nvcc, or None: gdn-compile then looks
    for one itself."""
    package = importlib.util.find_spec("nvidia")
    for folder in package.submodule_search_locations or () if package else ():
        for name in _PTXAS:
            if (path := Path(folder) / name).is_file():
                return path
    return None


def compile(
    config: Mapping[str, object] | Layer | str | os.PathLike[str],
    targets: str | Iterable[str] = "native",
    *,
    engine: str | None = None,
    io: str | Iterable[str] | None = None,
    state: str | Iterable[str] | None = None,
    verify: str | None = None,
    options: str | Iterable[str] = (),
    cache: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
) -> Path:
    """The path of an image for a model, compiled unless it is in the cache.

    `config` is a Hugging Face configuration as a mapping or the path of its config.json, the name
    of a preset, or a layer in the gdn dialect: the path of a .mlir file, or a `Layer`. `targets`
    are names of GPUs ("sm_90a") and CPUs ("x86-64-v3", "native"). `engine` is what serves the
    layers: "vllm", "sglang", "pymllm" or "c". `io`, `state` and `verify` are the options of
    gdn-compile of these names; `options` are others, as on its command line. `cache` is a folder,
    by default `cache_folder()`. Progress is shown where standard error is a terminal, unless
    `progress` says otherwise.

    Raises CompileError with what gdn-compile said, and keeps nothing then; OSError for a file that
    cannot be read; ConfigError for a mapping that JSON does not hold.
    """
    tool = find_tool()
    arguments = _arguments(targets, engine, io, state, verify, options)
    text, source = _source(config)
    folder = Path(cache) if cache is not None else cache_folder()
    images = folder / "images"
    images.mkdir(parents=True, exist_ok=True)
    key = _key(tool, text, source, arguments)
    path = images / f"{key}.gdnk"
    if path.exists():
        return path
    with (images / f"{key}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if path.exists():  # made while this process waited
            return path
        with tempfile.TemporaryDirectory(dir=images) as work:
            if text is not None:
                file = Path(work) / ("layer.mlir" if isinstance(text, Layer) else "config.json")
                file.write_text(text)
                source = [str(file)] if isinstance(text, Layer) else ["--config", str(file)]
            made = Path(work) / "image.gdnk"
            command = [str(tool), *source, *arguments, f"--cache={folder}", "-o", str(made)]
            _run(command, "gdn: compiling for " + ", ".join(_names(targets)), progress)
            made.replace(path)
    return path


def _names(values: str | Iterable[str] | None) -> list[str]:
    return [values] if isinstance(values, str) else list(values or ())


def _arguments(targets, engine, io, state, verify, options) -> list[str]:
    """Those of gdn-compile, in one order whatever the caller's is."""
    if not (names := _names(targets)):
        raise ValueError("targets: expected at least one, got none")
    arguments = [f"--target={','.join(names)}"]
    for name, value in (("for", engine), ("io", io), ("state", state), ("verify", verify)):
        if values := _names(value):
            arguments.append(f"--{name}={','.join(values)}")
    if ptxas := find_ptxas():
        arguments.append(f"--ptxas={ptxas}")
    return [*arguments, *_names(options)]


def _source(config) -> tuple[str | None, list[str]]:
    """The text of a configuration or a layer, or None and the option that names a preset."""
    if isinstance(config, Layer):
        return config, []
    if isinstance(config, Mapping):
        return text_of(config), []
    if not isinstance(config, str | os.PathLike):
        raise TypeError(
            "config: expected a mapping, a path, the name of a preset or a Layer, got"
            f" {type(config).__name__}"
        )
    path = Path(config)
    is_file = path.suffix in (".json", ".mlir") or path.exists()
    if isinstance(config, str) and not is_file and "/" not in config:
        return None, [f"--preset={config}"]
    text = (path / "config.json" if path.is_dir() else path).read_text()
    return Layer(text) if path.suffix == ".mlir" else text, []


def _key(tool: Path, text: str | None, source: list[str], arguments: list[str]) -> str:
    """Of the files of the compiler and of ptxas, and of all that the compiler is given."""
    assembler = find_ptxas() or shutil.which("ptxas")
    programs = [_identity(Path(path)) for path in (tool, assembler) if path]
    kind = type(text).__name__ if isinstance(text, Layer) else ""
    what = json.dumps([programs, text or "", kind, source, arguments, sys.platform])
    # "native" means this machine's processor.
    if any("native" in argument for argument in arguments):
        what += _processor()
    return hashlib.sha256(what.encode()).hexdigest()[:32]


def _identity(program: Path) -> list[str]:
    """What changes where a program is replaced by another version at the same path."""
    status = program.stat()
    return [str(program.resolve()), str(status.st_size), str(status.st_mtime_ns)]


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return ""
    return "".join(sorted({x for x in lines if x.startswith(("flags", "Features", "model name"))}))


def _run(command: list[str], title: str, progress: bool | None) -> None:
    """Runs gdn-compile; what it has said goes to standard error when it has ended."""
    shown = sys.stderr.isatty() if progress is None else progress
    start = time.monotonic()
    said: list[str] = []
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, text=True)
        try:
            while True:
                try:
                    code = process.wait(_PROGRESS_S if shown else None)
                    break
                except subprocess.TimeoutExpired:
                    print(f"\r{title}: {time.monotonic() - start:.0f} s", end="", file=sys.stderr)
                    sys.stderr.flush()
        except BaseException:
            process.kill()
            process.wait()
            raise
        output.seek(0)
        said = output.read().splitlines()
    if shown:
        print(f"\r{title}: {time.monotonic() - start:.0f} s", file=sys.stderr)
    if code != 0:
        raise CompileError("\n".join(said) or f"gdn-compile ended with {code}")
    for line in said:
        print(line, file=sys.stderr)
