# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The page of images that all presets need, from docs/generated/image-groups.json, which
tools/packaging/image_groups.py writes."""

from __future__ import annotations

from pathlib import Path

RECORD = Path(__file__).resolve().parents[2] / "docs/generated/image-groups.json"
HEAD = """# Images that all presets need

Made by `tools/scripts/docs.py` from `image-groups.json`, which `tools/packaging/image_groups.py`
writes; do not edit. Presets whose entries are the same program share an image. Numbers of heads
are symbols, so an image serves every share of a layer's heads.

An image here has prefill, decode, `copy_slots` and `zero_slots`, with inputs and outputs of bf16
and states of f32, for one target. Sizes are kilobytes (1,000 bytes), as compressed in a wheel,
and of the file in brackets.
"""


def markdown(groups: list[dict]) -> str:
    lines = [HEAD]
    names = ("heads", "decay", "layout", "gate", "strength", "norm_eps")
    lines += ["| | presets | " + " | ".join(names) + " |", "|---" * (len(names) + 2) + "|"]
    for letter, group in zip("ABCDEFGHIJ", groups, strict=False):
        presets = ", ".join(f"`{name}`" for name in group["presets"])
        facts = " | ".join(group[name] for name in names)
        lines.append(f"| {letter} | {presets} | {facts} |")
    letters = "ABCDEFGHIJ"[: len(groups)]
    lines += ["", "| target | " + " | ".join(letters) + " | all |"]
    lines += ["|---" * (len(groups) + 2) + "|"]
    for target in groups[0]["sizes"]:
        sizes = [group["sizes"][target] for group in groups]
        cells = [cell(size) for size in sizes]
        lines.append(f"| `{target}` | " + " | ".join([*cells, cell(total(sizes))]) + " |")
    sums = [total(list(group["sizes"].values())) for group in groups]
    lines.append("| all | " + " | ".join(cell(size) for size in [*sums, total(sums)]) + " |")
    return "\n".join(lines) + "\n"


def total(sizes: list[dict | None]) -> dict[str, int]:
    there = [size for size in sizes if size]
    return {name: sum(size[name] for size in there) for name in ("bytes", "compressed")}


def cell(size: dict[str, int] | None) -> str:
    if not size:
        return "no"
    return f"{size['compressed'] / 1e3:,.0f} ({size['bytes'] / 1e3:,.0f})"
