# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles the catalogue of prebuilt images (catalogue.py) and builds the wheels gdn-images,
gdn-images-f16, gdn-images-kda, gdn-images-kda-f16 and gdn-images-deferred of them, into
build/wheels.

An image that is there, made by this compiler, is not compiled again, so a run goes on where
another was stopped, here or on another machine; what gdn-compile refuses is remembered with the
reason. A compiler is known by the content of gdn-compile and ptxas. --only takes a part
of the catalogue, by words that names of images have. Each image is read, and has to say of itself
what the catalogue says of it. Without --wheel the images stay in build/packaging/images, a folder
that gdn.images.find takes. The same images give the same bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import inputs

sys.path.insert(0, str(inputs.ROOT / "python"))
import catalogue
import compiler_wheel
import wheels
from gdn import Runtime, image_facts, images

ROOT = inputs.ROOT
SOURCE = Path(__file__).parent / "images"
FOLDER = inputs.FOLDER / "images"
MOST_BYTES = 100_000_000
_ERROR = re.compile(r"error: (?:[\w.-]+: )?(.*)")
# Errors that are about the image; others, such as a ptxas that took too long, may go away.
_REFUSAL = re.compile(r"expects (code for|no spilled registers)|a decay per channel expects")
_WHY = re.compile(r"(?:remark: |is left out: )(.*)$", re.MULTILINE)


class Builder:
    """Compiles images into a folder, and remembers what came of it."""

    def __init__(self, tool: Path, folder: Path, cache: Path, runtime: Runtime):
        self.tool, self.folder, self.cache, self.runtime = tool, folder, cache, runtime
        self.folder.mkdir(parents=True, exist_ok=True)
        programs = [tool, *filter(None, [shutil.which("ptxas")])]
        self.identity = [digest_of(Path(program)) for program in programs]

    def presets(self) -> dict[str, dict[str, object]]:
        """The facts of each preset, as the compiler has them."""
        text = subprocess.run([self.tool, "--help"], text=True, capture_output=True).stdout
        (names,) = re.findall(r"--preset=<name> .*?: (.*)$", text, re.MULTILINE)
        facts = {}
        for name in names.split(", "):
            program = inputs.run(self.tool, f"--preset={name}", "--emit=gdn")
            facts[name] = catalogue.facts_of_program(program)
        return facts

    def make(self, item: catalogue.Item, target: str) -> dict[str, object]:
        """Compiles an image unless it is there: {"bytes": ..}, {"refused": why}, or, which is
        not remembered, {"failed": why}."""
        path = self.folder / item.file(target)
        options = [*item.source, *item.options, f"--target={target}"]
        stamp = path.with_suffix(".json")
        key = {"compiler": self.identity, "options": options}
        if stamp.exists():
            known = json.loads(stamp.read_text())
            there = "refused" in known or path.exists()
            if there and {name: known[name] for name in key} == key:
                return known
        made = path.with_suffix(f".{os.getpid()}")
        start = time.monotonic()
        command = [self.tool, *options, f"--cache={self.cache}", "-o", made]
        done = subprocess.run([*map(str, command)], text=True, capture_output=True)
        result = key | {"seconds": round(time.monotonic() - start, 1)}
        if done.returncode:
            made.unlink(missing_ok=True)
            path.unlink(missing_ok=True)
            if (why := refusal_of(done.stderr)) is None:
                said = _ERROR.findall(done.stderr)[-1:] or [done.stderr[-2000:]]
                return result | {"failed": said[0]}
            result["refused"] = why
        else:
            data = made.read_bytes()
            result["bytes"], result["compressed"] = len(data), len(zlib.compress(data, 6))
            made.replace(path)
        stamp.write_text(json.dumps(result))
        return result

    def facts(self, item: catalogue.Item, target: str) -> dict[str, object]:
        """What an image says of itself; raises ValueError if it is not what was asked for."""
        path = self.folder / item.file(target)
        image = self.runtime.image(path)
        found = image_facts.facts_of(image)
        expected = {"facts": item.facts, "verify": item.verify, "parameters": item.parameters}
        for name, value in expected.items():
            if found[name] != value:
                raise ValueError(f"{path.name}: expected {name} {value}, found {found[name]}")
        for entry in image.entries:
            codes = image.codes(entry)
            if not codes or any(not _is_for(code, target) for code in codes):
                raise ValueError(f"{path.name}: expected code for {target}, found {codes}")
            if any(code.format == "ptx" for code in codes):
                raise ValueError(f"{path.name}: expected machine code, found PTX: no ptxas?")
        return found


def digest_of(program: Path) -> str:
    with program.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def refusal_of(said: str) -> str | None:
    """Why gdn-compile makes no image, if that is a fact about the image."""
    errors = [error for error in _ERROR.findall(said) if _REFUSAL.search(error)]
    if not errors:
        return None
    if not errors[-1].startswith("expects code for"):
        return errors[-1]
    entries = re.search(r"got none of (.*)", errors[-1])
    reasons = sorted({why for why in _WHY.findall(said) if not why.startswith("'")})
    return ": ".join([entries[1] if entries else errors[-1], "; ".join(reasons) or "no schedule"])


def _is_for(code: object, target: str) -> bool:
    """Code for CPUs has the features of the level."""
    return target in (code.target, *code.features.split(", "))


def chosen(
    items: Iterable[catalogue.Item], targets: Iterable[str], only: Iterable[str]
) -> list[tuple[catalogue.Item, str]]:
    """Pairs whose files' names have all words of `only`, each between hyphens; a word may be
    several with commas, of which one is enough."""
    pairs = [(item, target) for item in items for target in targets]
    for words in only:
        pattern = "|".join(re.escape(word) for word in words.split(","))
        pattern = rf"(?:^|-)(?:{pattern})(?=-|$)"
        pairs = [(i, t) for i, t in pairs if re.search(pattern, i.file(t).removesuffix(".gdnk"))]
    return pairs


def compile_all(
    builder: Builder,
    pairs: list[tuple[catalogue.Item, str]],
    jobs: int,
    say: Callable[[str], None],
) -> dict[tuple[str, str], dict[str, object]]:
    """What came of each pair, by the names of image and target."""
    start, lock, done = time.monotonic(), threading.Lock(), []

    def run(pair: tuple[catalogue.Item, str]):
        item, target = pair
        result = builder.make(item, target)
        with lock:
            done.append(result)
            what = next((word for word in ("refused", "failed") if word in result), None)
            what = what or f"{result['bytes'] / 1e3:,.0f} kB"
            took = time.monotonic() - start
            left = took / len(done) * (len(pairs) - len(done))
            say(
                f"{len(done)} of {len(pairs)}, {took / 60:.0f} min, about {left / 60:.0f} min left:"
                f" {item.file(target)} {what}"
            )
        return (item.name, target), result

    with ThreadPoolExecutor(jobs) as pool:
        return dict(pool.map(run, pairs))


def index_of(
    builder: Builder,
    pairs: list[tuple[catalogue.Item, str]],
    results: Mapping[tuple[str, str], Mapping[str, object]],
    presets: Mapping[str, Mapping[str, object]],
) -> dict[str, object]:
    """The index that gdn.images.find reads."""
    rows: dict[str, dict] = {}
    for item, target in pairs:
        result = results[item.name, target]
        row = rows.setdefault(
            item.name,
            {
                "name": item.name,
                "facts": item.facts,
                "verify": item.verify,
                "parameters": item.parameters,
                "presets": item.presets,
                "targets": {},
                "refused": {},
            },
        )
        if "refused" in result:
            row["refused"][target] = result["refused"]
            continue
        found = builder.facts(item, target)
        row["entries"], row["verify_tokens"] = found["entries"], found["verify_tokens"]
        data = (builder.folder / item.file(target)).read_bytes()
        row["targets"][target] = {
            "file": item.file(target),
            "bytes": len(data),
            "sha256": hashlib.sha256(data).hexdigest(),
        }
    named = {name for row in rows.values() for name in row["presets"]}
    return {
        "format": images.INDEX_FORMAT,
        "gdn": compiler_wheel.version(),
        "presets": {name: facts for name, facts in presets.items() if name in named},
        "images": list(rows.values()),
    }


def write_index(folder: Path, index: Mapping[str, object]) -> None:
    (folder / images.INDEX).write_text(json.dumps(index, indent=1, ensure_ascii=False) + "\n")


def rows_of(index: Mapping[str, object], package: str) -> list[dict]:
    """The images of a package."""
    names = ("io", "deferred_writes", "decay")
    return [
        row
        for row in index["images"]
        if images.package_of(*(row["facts"][name] for name in names)) == package
    ]


def stage(folder: Path, index: dict[str, object], package: str) -> Path:
    """The sources of a package, with its images and its part of the index."""
    staged = inputs.FOLDER / f"staged-{package}"
    shutil.rmtree(staged, ignore_errors=True)
    (staged / package).mkdir(parents=True)
    name = package.replace("_", "-")
    text = (SOURCE / "pyproject.toml").read_text()
    text = text.replace('"gdn-images"', f'"{name}"').replace('"gdn_images"', f'"{package}"')
    (staged / "pyproject.toml").write_text(text.replace("gdn_images =", f"{package} ="))
    (staged / "VERSION").write_text(compiler_wheel.version() + "\n")
    (staged / "licenses").mkdir()
    shutil.copyfile(ROOT / "LICENSE", staged / "licenses/gdn.txt")
    shutil.copyfile(SOURCE / "gdn_images/__init__.py", staged / package / "__init__.py")
    rows = rows_of(index, package)
    for row in rows:
        for made in row["targets"].values():
            shutil.copyfile(folder / made["file"], staged / package / made["file"])
    write_index(staged / package, index | {"images": rows})
    return staged


def build_wheel(staged: Path, out: Path) -> Path:
    """The same images give the same bytes: times are the commit's."""
    made = staged.with_name(staged.name + "-wheel")
    shutil.rmtree(made, ignore_errors=True)
    pip = [inputs.tools() / "python", "-m", "pip", "wheel", staged, "--no-deps", "--quiet"]
    environment = os.environ | {"SOURCE_DATE_EPOCH": wheels.commit_time()}
    inputs.with_retries(*pip, "--wheel-dir", made, env=environment)
    (wheel,) = made.glob("*.whl")
    out.mkdir(parents=True, exist_ok=True)
    for old in out.glob(f"{wheel.name.partition('-')[0]}-*.whl"):
        old.unlink()
    return Path(shutil.move(wheel, out / wheel.name))


def facts_of(wheel: Path, index: Mapping[str, object], package: str) -> dict[str, object]:
    """For docs/generated/wheels.json."""
    rows = rows_of(index, package)
    targets = {target for row in rows for target in row["targets"]}
    return {
        "wheel": wheel.name,
        "bytes": wheel.stat().st_size,
        "python": ">=3.10",
        "count": sum(len(row["targets"]) for row in rows),
        "io": sorted({row["facts"]["io"] for row in rows}),
        "decays": sorted({row["facts"]["decay"] for row in rows}),
        "states": sorted({row["facts"]["state"] for row in rows}),
        "deferred": package == images.package_of(None, True),
        "targets": [target for target in catalogue.TARGETS if target in targets],
    }


def record(package: str, facts: dict[str, object]) -> None:
    recorded = json.loads(wheels.FACTS.read_text())
    name = package.removeprefix("gdn_").replace("_", "-")
    ran = recorded.get(name, {}).get("ran")
    recorded[name] = facts | ({"ran": ran} if ran else {})
    wheels.FACTS.write_text(json.dumps(recorded, indent=2) + "\n")


def table(pairs: list, results: Mapping) -> list[str]:
    """Numbers and sizes by form, types and target."""
    lines = []
    for title, key in (
        ("form", lambda item, target: item.form.name),
        ("types", lambda item, target: f"{item.io} {item.state}"),
        ("target", lambda item, target: target),
    ):
        rows: dict[str, list[dict]] = {}
        for item, target in pairs:
            rows.setdefault(key(item, target), []).append(results[item.name, target])
        for name, found in rows.items():
            made = [result for result in found if "bytes" in result]
            whole = sum(result["bytes"] for result in made) / 1e6
            packed = sum(result["compressed"] for result in made) / 1e6
            minutes = sum(result["seconds"] for result in found) / 60
            lines.append(
                f"{title} {name}: {len(made)} images, {len(found) - len(made)} refused,"
                f" {whole:.1f} MB, {packed:.1f} in a wheel, {minutes:.0f} min"
            )
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="images_wheel",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    compiler = ROOT / "build/release/bin/gdn-compile"
    parser.add_argument("--gdn-compile", type=Path, default=compiler)
    parser.add_argument("--library", type=Path, default=ROOT / "build/release/lib/libgdnrt.so")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where images are kept")
    parser.add_argument("--cache", type=Path, default=inputs.FOLDER / "images-cache")
    parser.add_argument("--out", type=Path, default=wheels.OUT)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--targets", default=",".join(catalogue.TARGETS))
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="WORD,..",
        help="bf16, flat, slots, sm_90a, ..",
    )
    parser.add_argument("--list", action="store_true", help="names of images, and nothing else")
    parser.add_argument("--wheel", action="store_true", help="build wheels of the images")
    parser.add_argument("--record", action="store_true", help="write docs/generated/wheels.json")
    options = parser.parse_args()
    runtime = Runtime(options.library)
    builder = Builder(options.gdn_compile, options.folder, options.cache, runtime)
    presets = builder.presets()
    pairs = chosen(catalogue.items(presets), options.targets.split(","), options.only)
    if options.list or not pairs:
        print("\n".join(item.file(target) for item, target in pairs) or "images_wheel: none")
        return 0 if pairs else 1
    results = compile_all(builder, pairs, options.jobs, lambda text: print(text, flush=True))
    failed = [(i, t) for i, t in pairs if "failed" in results[i.name, t]]
    pairs = [pair for pair in pairs if pair not in failed]
    index = index_of(builder, pairs, results, presets)
    write_index(options.folder, index)
    print("\n".join(table(pairs, results)))
    for item, target in failed:
        print(f"images_wheel: {item.file(target)}: {results[item.name, target]['failed']}")
    if failed:
        return 1
    for package in images.PACKAGES if options.wheel else ():
        if not rows_of(index, package):
            continue
        wheel = build_wheel(stage(options.folder, index, package), options.out)
        size = wheel.stat().st_size
        print(f"{wheel.name}: {size / 1e6:.1f} MB")
        if size > MOST_BYTES:
            print(f"images_wheel: expected at most {MOST_BYTES / 1e6:.0f} MB")
            return 1
        if options.record:
            record(package, facts_of(wheel, index, package))
    return 0


if __name__ == "__main__":
    sys.exit(main())
