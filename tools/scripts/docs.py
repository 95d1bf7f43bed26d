# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes docs/generated, and the tables of README.md and of the guide on pools, from the .td files
and the files of recorded measurements; --check fails if something is stale.

What CMake turns into C++ has a page: each dialect that a CMakeLists.txt below include/gdn
generates, and each Passes.td. Pages of passes are not kept in the repository: build_site.py
makes them. measured_pages.py makes those of measurements, and their pictures.

A picture carries a digest of what it shows, so that --check needs no drawing and no matplotlib.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

import edges_table
import gpu_support
import image_table
import measured_pages
import peer_table
import presets
import state_errors_table
import wheel_table

ROOT = Path(__file__).resolve().parents[2]
LLVM = Path(f"/usr/lib/llvm-{(ROOT / 'LLVM_VERSION').read_text().strip()}")
OUT = ROOT / "docs/generated"


def tblgen(td: Path, *arguments: str) -> str:
    command = [LLVM / "bin/mlir-tblgen", *arguments, "-I", ROOT / "include"]
    command += ["-I", LLVM / "include", td]
    done = subprocess.run([str(c) for c in command], text=True, capture_output=True)
    if done.returncode:
        sys.exit(f"docs: {td.relative_to(ROOT)}: {done.stderr}")
    # A table of contents for one particular site generator.
    return done.stdout.replace("[TOC]\n\n", "").rstrip() + "\n"


def dialects() -> dict[str, Path]:
    """Dialect name to the .td that defines its ops."""
    found = {}
    for file in sorted((ROOT / "include/gdn").rglob("CMakeLists.txt")):
        td = None
        for line in file.read_text().splitlines():
            if match := re.match(r"set\(LLVM_TARGET_DEFINITIONS (\S+)\)", line):
                td = file.parent / match[1]
            elif match := re.search(r"-gen-dialect-decls -dialect=(\w+)", line):
                assert td, f"{file}: a dialect before any LLVM_TARGET_DEFINITIONS"
                found[match[1]] = td
    return found


def pass_files() -> dict[str, Path]:
    """Page name to Passes.td, named after the folders below include/gdn."""
    base = ROOT / "include/gdn"
    return {
        "-".join(["passes", *td.relative_to(base).parent.parts]).lower(): td
        for td in sorted(base.rglob("*Passes.td"))
    }


def numerics() -> dict[Path, str]:
    """Records of gdn.numerics_check to the text of their page."""
    from gdn import numerics_tables

    records = sorted(OUT.glob("numerics-*.json"))
    return {path: numerics_tables.markdown(json.loads(path.read_text())) for path in records}


def sanitizers() -> dict[Path, str]:
    """Records of gdn.sanitizer_tables to the text of their page."""
    from gdn import sanitizer_tables

    records = sorted(OUT.glob("sanitizers-*.json"))
    return {path: sanitizer_tables.markdown(json.loads(path.read_text())) for path in records}


def prefix_cache() -> str:
    """The page of what is recorded of prefix caches."""
    from gdn.bench.prefix_cache import tables

    return tables.markdown(json.loads(measured_pages.PREFIX_CACHE.read_text()))


def of_passes() -> dict[str, str]:
    """Pages that only the site has: their texts by their names."""
    return {
        name: f"# Passes: {name.removeprefix('passes-')}\n\n{tblgen(td, '-gen-pass-doc')}"
        for name, td in pass_files().items()
    }


def index(has_passes: bool) -> str:
    """The page with links to all others, with or without those of passes."""
    lines = ["# Generated reference", "", "Made by `tools/scripts/docs.py`; do not edit.", ""]
    for name, td in dialects().items():
        lines.append(f"- [the `{name}` dialect]({name}.md), from `{td.relative_to(ROOT)}`")
    for name, td in pass_files().items():
        page = f"[{name}]({name}.md)" if has_passes else name
        where = "" if has_passes else ": built with the site"
        lines.append(f"- {page}, from `{td.relative_to(ROOT)}`{where}")
    for page in measured_pages.pages():
        names = ", ".join(f"`{path.relative_to(ROOT)}`" for path in page.reports)
        lines.append(f"- [{page.name}]({page.name}.md), from {names}")
    lines.append(
        "- [prefix caches](prefix-cache.md), from `runtime/bench/results/prefix-cache.json`"
    )
    lines.append("- [heads that GPUs have kernels for](gpu-support.md), from `gpu-support.json`")
    lines.append("- [what presets have on which target](presets.md), from `presets.json`")
    lines.append("- [images that all presets need](image-groups.md), from `image-groups.json`")
    if peer_table.RECORD.exists():
        lines.append("- [suites of other libraries](peer-suites.md), from `peer-suites.json`")
    if edges_table.RECORD.exists():
        lines.append("- [edges taken out of kernels](edges.md), from `edges.json`")
    lines.append("- [errors of formats of states](state-formats.md), from `state-formats.json`")
    for path in numerics():
        lines.append(f"- [errors of prefill]({path.stem}.md), from `{path.name}`")
    for path in sanitizers():
        lines.append(f"- [what compute-sanitizer found]({path.stem}.md), from `{path.name}`")
    return "\n".join(lines) + "\n"


def pages() -> dict[Path, str]:
    """Texts of the pages that the repository keeps, by their files."""
    made = {OUT / "README.md": index(has_passes=False)}
    for name, td in dialects().items():
        made[OUT / f"{name}.md"] = tblgen(td, "-gen-dialect-doc", f"-dialect={name}")
    made |= {OUT / f"{page.name}.md": page.text for page in measured_pages.pages()}
    made[OUT / "prefix-cache.md"] = prefix_cache()
    made[OUT / "gpu-support.md"] = gpu_support.markdown(json.loads(gpu_support.RECORD.read_text()))
    rows = json.loads(presets.RECORD.read_text())
    made[OUT / "presets.md"] = presets.markdown(rows)
    groups = json.loads(image_table.RECORD.read_text())
    made[OUT / "image-groups.md"] = image_table.markdown(groups)
    if peer_table.RECORD.exists():
        suites = json.loads(peer_table.RECORD.read_text())
        made[OUT / "peer-suites.md"] = peer_table.markdown(suites)
    if edges_table.RECORD.exists():
        edges = json.loads(edges_table.RECORD.read_text())
        made[OUT / "edges.md"] = edges_table.markdown(edges)
    errors = json.loads(state_errors_table.RECORD.read_text())
    made[OUT / "state-formats.md"] = state_errors_table.markdown(errors)
    pools = state_errors_table.GUIDE
    made[pools] = state_errors_table.guide(pools.read_text(), errors)
    readme = presets.readme((ROOT / "README.md").read_text(), rows)
    wheels = json.loads(wheel_table.RECORD.read_text())
    made[ROOT / "README.md"] = wheel_table.readme(readme, wheels)
    for path, text in (numerics() | sanitizers()).items():
        made[path.with_suffix(".md")] = text
    return made


def pictures() -> dict[Path, measured_pages.Page]:
    """Pages that have a picture, by its file."""
    return {OUT / f"{page.name}.svg": page for page in measured_pages.pages() if page.picture}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail on a difference")
    check = parser.parse_args().check

    made, shown = pages(), pictures()
    stale = sorted(p for p in made if not p.exists() or p.read_text() != made[p])
    undrawn = sorted(p for p in shown if not shown[p].is_drawn(p))
    gone = sorted({*OUT.glob("*.md"), *OUT.glob("*.svg")} - set(made) - set(shown))
    if check:
        found = [*stale, *undrawn, *gone]
        for path in found:
            print(f"{path.relative_to(ROOT)} is stale; run tools/scripts/docs.py")
        print(f"docs: {len(made)} pages, {len(shown)} pictures, {len(found)} stale")
        return 1 if found else 0
    OUT.mkdir(parents=True, exist_ok=True)
    for path in stale:
        path.write_text(made[path])
        print(f"wrote {path.relative_to(ROOT)}")
    for path in undrawn:
        shown[path].draw(path)
        print(f"drew {path.relative_to(ROOT)}")
    for path in gone:
        path.unlink()
        print(f"removed {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
