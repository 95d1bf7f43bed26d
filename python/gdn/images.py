# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prebuilt images: finds the one for a model, an engine and a processor in the packages
gdn-images (inputs and outputs of bf16), gdn-images-f16, the same for a decay per channel,
gdn-images-kda and gdn-images-kda-f16, and gdn-images-deferred (bf16, for pools with deferred
writes).

    path = gdn.images.find("config.json", "sm_90a", engine="vllm")
    image = gdn.Runtime().image(path)

An image is found by facts of the configuration, never by a model's name, and it has all that is
asked for, or there is an error that says how to compile one. Nothing is compiled here. From a
shell, `python -m gdn.find_image config.json sm_90a --for vllm` prints the path.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shlex
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from . import image_facts, targets
from .call_options import integer
from .model_config import ModelConfig

#: Packages of images.
PACKAGES = (
    "gdn_images",
    "gdn_images_f16",
    "gdn_images_kda",
    "gdn_images_kda_f16",
    "gdn_images_deferred",
)
INDEX = "index.json"
INDEX_FORMAT = 2


def package_of(io: object, deferred_writes: object, decay: object = "head") -> str:
    """The package for inputs of a type, by default the first; images with deferred writes have
    one of their own, and so have those with a decay per channel."""
    if deferred_writes:
        return "gdn_images_deferred"
    package = "gdn_images_kda" if decay == "channel" else "gdn_images"
    return f"{package}_f16" if io == "f16" else package


class ImageNotFoundError(LookupError):
    """No image is there that has all that is asked for.

    `missing` has the facts that no image has, by name: what is asked for. `nearest` is the file
    of the image that differs least, or None. `command` makes an image with gdn-compile, `call`
    with gdn.compile.
    """

    def __init__(self, message: str, missing: dict, nearest: Path | None, command: str, call: str):
        super().__init__(message)
        self.missing, self.nearest = missing, nearest
        self.command, self.call = command, call


class ImageIndexError(RuntimeError):
    """The index of a package of images cannot be read, or is not that of its files."""


def find(
    config: Mapping[str, object] | str | os.PathLike[str],
    target: object,
    *,
    engine: str = "c",
    io: str | None = None,
    state: str | None = None,
    verify: str | None = None,
    layout: str | None = None,
    outputs: str | None = None,
    pending: str | None = None,
    l2norm: bool = False,
    deferred_writes: int = 0,
    folder: str | os.PathLike[str] | None = None,
) -> Path:
    """The path of an image that serves the layers of a model.

    `config` is a Hugging Face configuration as a mapping or the path of its config.json or
    folder, or the name of a preset. `target` is what the image shall run on: a name as
    gdn-compile takes it, "native" for this CPU, a compute capability such as (9, 0), or a Device;
    the best code that runs there is taken. The other arguments are options of gdn-compile:
    `engine` is --for, the others override what it and the configuration say. `deferred_writes` is
    --defer-writes: the tokens that the pool of states keeps pending in a slot, 0 or 2 to 32;
    `pending` is the type of their keys and deltas, "f32" or "f16".
    `folder` is a folder with images and an index, in place of the installed packages.

    Raises ImageNotFoundError; ConfigError for a configuration that gdn-compile refuses, ValueError
    for other arguments that no image can have, ImageIndexError for damaged packages.
    """
    deferred_writes = integer("deferred_writes", deferred_writes)
    wanted_targets = targets.run_by(target)
    asked = {"io": io, "state": state, "verify": verify, "layout": layout, "outputs": outputs}
    asked["pending"] = pending
    ask = _Ask(config, target, wanted_targets, engine, asked, l2norm, deferred_writes)
    name = _preset_name(config)
    model = None if name else ModelConfig.from_config(config).facts()
    index = _Index(Path(folder)) if folder is not None else None
    if model is None:
        named = index or _index_with_presets(ask, name)
        if name not in named.presets:
            known = ", ".join(sorted(named.presets)) or "none"
            raise ask.error(f"expected a path or one of the presets {known}, got {name!r}")
        model = named.presets[name]
    request = image_facts.request(
        model, engine, l2norm=l2norm, deferred_writes=deferred_writes, **asked
    )
    ask.types = {"io": request.facts["io"], "state": request.facts["state"]}
    if index is None:
        package = package_of(io or model["io"], deferred_writes, model["decay"])
        index = _Index(_installed(package, ask))
    served = [image for image in index.images if not request.differences(image)]
    for wanted in wanted_targets:
        there = [image for image in served if wanted in image["targets"]]
        if there:
            best = min(there, key=request.surplus)
            return index.file(best["targets"][wanted])
    raise _miss(index, request, served, ask)


class _Ask:
    """What the caller asked for, as messages and commands repeat it."""

    def __init__(self, config, target, wanted_targets, engine, asked, l2norm, deferred_writes):
        self.config, self.engine, self.asked, self.l2norm = config, engine, asked, l2norm
        self.deferred_writes = deferred_writes
        self.targets = wanted_targets
        self.target = wanted_targets[0] if wanted_targets else None
        self.given = target if isinstance(target, str) else getattr(target, "name", target)
        self.types: dict[str, str] = {}

    @property
    def options(self) -> dict[str, str]:
        """Those of gdn-compile, with the types that the configuration has."""
        given = {name: value for name, value in self.asked.items() if value is not None}
        if self.deferred_writes:
            given["defer-writes"] = self.deferred_writes
        return {"for": self.engine} | given | self.types

    @property
    def command(self) -> str:
        name = _preset_name(self.config)
        source = ["--preset", name] if name else ["--config", self._path()]
        options = [f"--{name}={value}" for name, value in self.options.items()]
        options += ["--l2norm"] * self.l2norm
        target = self.target or self.given
        return shlex.join(
            ["gdn-compile", *source, *options, f"--target={target}", "-o", "layer.gdnk"]
        )

    @property
    def call(self) -> str:
        known = ("engine", "io", "state", "verify")
        options = {("engine" if k == "for" else k): v for k, v in self.options.items()}
        words = [repr(_preset_name(self.config) or self._path()), repr(self.target or self.given)]
        if isinstance(self.config, Mapping):
            words[0] = "config"
        words += [f"{name}={options[name]!r}" for name in known if name in options]
        rest = [f"--{name}={value}" for name, value in options.items() if name not in known]
        rest += ["--l2norm"] * self.l2norm
        return f"gdn.compile({', '.join(words + ([f'options={rest!r}'] if rest else []))})"

    def _path(self) -> str:
        if isinstance(self.config, Mapping):
            return "config.json"
        path = Path(self.config)
        return str(path / "config.json" if path.is_dir() else path)

    def error(self, what: str, missing=None, nearest=None, can_be_made=True) -> ImageNotFoundError:
        lines = [f"images: {what}"]
        if can_be_made:
            lines.append(f"  to make one: {self.command}")
            lines.append(f"  or in Python, which keeps it in the cache: {self.call}")
        message = "\n".join(lines)
        return ImageNotFoundError(message, missing or {}, nearest, self.command, self.call)


def _preset_name(config: object) -> str | None:
    """`config` if it is no configuration and no path: as gdn.compile tells names from paths."""
    if not isinstance(config, str) or "/" in config:
        return None
    path = Path(config)
    return None if path.suffix in (".json", ".mlir") or path.exists() else config


def _installed(package: str, ask: _Ask) -> Path:
    """The folder of a package."""
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        name = package.replace("_", "-")
        raise ask.error(f"expected the package {name} (pip install {name}), found none")
    return Path(next(iter(found.submodule_search_locations)))


def _index_with_presets(ask: _Ask, name: str) -> _Index:
    """That of a package which is installed, may have images for what is asked for, and knows the
    preset. Each package knows all that there were when it was made, and one may be older than
    the others."""
    io, writes = ask.asked["io"], ask.deferred_writes
    packages = dict.fromkeys(package_of(io, writes, decay) for decay in ("head", "channel"))
    there = [package for package in packages if importlib.util.find_spec(package) is not None]
    known, damaged = [], None
    for package in there:
        try:
            known.append(_Index(_installed(package, ask)))
        except ImageIndexError as error:
            damaged = damaged or error
            continue
        if name in known[-1].presets:
            return known[-1]
    if damaged is not None:
        raise damaged
    return known[0] if known else _Index(_installed(next(iter(packages)), ask))


class _Index:
    """What a folder of images says it has."""

    def __init__(self, folder: Path):
        self.folder, self.path = folder, folder / INDEX
        try:
            content = json.loads(self.path.read_bytes())
        except OSError as error:
            raise ImageIndexError(
                f"{self.path}: expected the index of a folder of images, found none: {error}"
            ) from None
        except ValueError as error:
            raise ImageIndexError(f"{self.path}: expected JSON: {error}") from None
        except RecursionError:
            raise ImageIndexError(
                f"{self.path}: expected presets and images, found arrays or objects that are nested"
                " too deep"
            ) from None
        try:
            found = content["format"]
            if found != INDEX_FORMAT:
                raise ImageIndexError(
                    f"{self.path}: expected format {INDEX_FORMAT}, found {found!r}; gdn and the"
                    " package of images have to be of one version"
                )
            self.presets: dict[str, dict] = content["presets"]
            self.images: list[dict] = content["images"]
            for facts in self.presets.values():
                _ = facts["io"], facts["layout"], facts["decay"]
            for image in self.images:
                _ = [image["facts"][name] for name in image_facts.FACTS]
                _ = image["verify"], sorted(image["parameters"]), image["refused"].items()
                _ = [(made["file"], made["bytes"]) for made in image["targets"].values()]
        except (KeyError, TypeError, AttributeError) as error:
            raise ImageIndexError(
                f"{self.path}: expected presets and images with their facts and targets, found"
                f" another content: {error!r}"
            ) from None

    def nearest(self, image: Mapping[str, dict], wanted: tuple[str, ...]) -> Path | None:
        """Its file for one of the targets, or for another."""
        files = image["targets"]
        target = next((t for t in (*wanted, *files) if t in files), None)
        return self.folder / files[target]["file"] if target else None

    def file(self, made: Mapping[str, object]) -> Path:
        name = PurePosixPath(str(made["file"]))
        if name.is_absolute() or ".." in name.parts:
            raise ImageIndexError(f"{self.path}: expected files of the folder, found {name}")
        path = self.folder / name
        size = path.stat().st_size if path.is_file() else None
        if size != made["bytes"]:
            found = "none" if size is None else f"{size} bytes"
            raise ImageIndexError(
                f"{path}: expected an image of {made['bytes']} bytes, found {found}"
            )
        return path


def _miss(index: _Index, request, served: list[dict], ask: _Ask) -> ImageNotFoundError:
    on = f"{ask.target or ask.given}, engine {ask.engine}"
    if served:
        return _miss_of_target(index, request, served, ask, on)
    missing, lines = {}, []
    # Facts that are None follow from others, which are named.
    wanted = {name: value for name, value in request.facts.items() if value is not None}
    if request.verify != "none":
        wanted["verify"] = request.verify
    for name, value in wanted.items():
        have = {image["facts"].get(name, image.get(name)) for image in index.images}
        if value not in have and image_facts.ARGUMENT not in have:
            missing[name] = value
            there = ", ".join(sorted(str(v) for v in have if v is not None)) or "none"
            lines.append(f"  no image has {name} {value} (there is {there})")
    nearest = None
    if index.images:
        near = min(index.images, key=lambda image: len(request.differences(image)))
        differences = request.differences(near)
        if "pending" in differences:  # whose f32 is said by None
            differences["pending"] = tuple(value or "f32" for value in differences["pending"])
        named = {name: values for name, values in differences.items() if None not in values}
        found = named or differences
        if not missing:
            missing = {name: wanted for name, (_, wanted) in found.items()}
            together = [f"{name} {value}" for name, value in missing.items()]
            lines.append(f"  no image has {', '.join(together)} with the rest")
        nearest = index.nearest(near, ask.targets)
        if nearest is not None:
            has = [f"{n} {had} where {w} is wanted" for n, (had, w) in found.items()]
            lines.append(f"  nearest: {nearest.name}, with {', '.join(has)}")
    text = "\n".join([f"expected one for {on}, found none of {len(index.images)}", *lines])
    return ask.error(text, missing, nearest)


def _miss_of_target(index: _Index, request, served, ask: _Ask, on: str) -> ImageNotFoundError:
    """There are images for the layers, and none for what they shall run on."""
    best = min(served, key=request.surplus)
    there = ", ".join(sorted({name for image in served for name in image["targets"]})) or "none"
    lines = [f"expected one for {on}, found none"]
    if ask.targets:
        lines.append(f"  no image has code for {' or '.join(ask.targets)} (there is {there})")
    else:
        lines.append(f"  gdn-compile makes no code for {ask.given} (there is {there})")
    reasons = {t: i["refused"][t] for i in served for t in ask.targets if t in i["refused"]}
    lines += [f"  gdn-compile makes none for {t}: {why}" for t, why in reasons.items()]
    nearest = index.nearest(best, ask.targets)
    can_be_made = bool(ask.targets) and not reasons
    return ask.error("\n".join(lines), {"target": ask.target}, nearest, can_be_made)
