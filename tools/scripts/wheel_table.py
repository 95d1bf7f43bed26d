# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table of wheels in README.md, from docs/generated/wheels.json, which
tools/packaging/wheels.py and first_use.py write."""

from __future__ import annotations

from pathlib import Path

RECORD = Path(__file__).resolve().parents[2] / "docs/generated/wheels.json"
BEGIN, END = "<!-- wheels, made by tools/scripts/docs.py -->", "<!-- end of wheels -->"


def table(facts: dict[str, dict]) -> list[str]:
    lines = [
        "| wheel for | size | glibc | Python | images inside | what ran |",
        "|---|---|---|---|---|---|",
    ]
    for processor, wheel in facts.items():
        size = f"{wheel['bytes'] / 1e6:.1f} MB"
        images = ", ".join(f"`{name}`" for name in wheel["images"]) or "none"
        python = wheel["python"].removeprefix(">=")
        cells = (f"`{processor}`", size, f"{wheel['glibc']} or later", f"{python} or later")
        lines.append("| " + " | ".join([*cells, images, wheel.get("ran", "never run")]) + " |")
    return lines


def readme(text: str, facts: dict[str, dict]) -> str:
    """README.md with the table of today between its marks."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n" + "\n".join(table(facts)) + f"\n{END}{after}"
