# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tables of wheels in README.md: what is in them, from docs/generated/wheels.json, which
tools/packaging writes, and what a first call waits for, from the record of
gdn.bench.first_call."""

from __future__ import annotations

import json
import statistics
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RECORD = ROOT / "docs/generated/wheels.json"
FIRST_CALLS = ROOT / "runtime/bench/results/first-call-h100.json"
BEGIN, END = "<!-- wheels, made by tools/scripts/docs.py -->", "<!-- end of wheels -->"
NAMES = {
    "gdn": ("gdn", "gdn"),
    "fla": ("FLA", "flash-linear-attention"),
    "flashqla": ("FlashQLA", "flash-qla"),
    "flashinfer": ("FlashInfer", "flashinfer-python"),
}


def listed(words: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def inside(facts: dict) -> str:
    """The images or tools in a wheel."""
    if "count" in facts:
        targets = ", ".join(f"`{target}`" for target in facts["targets"])
        types = f"{listed(facts['io'])}, states of {listed(facts['states'])}"
        deferred = ", writes deferred" if facts.get("deferred") else ""
        decays = f", decays per {listed(facts['decays'])}"
        return f"{facts['count']} images: {types}{deferred}{decays}, for {targets}"
    names = list(facts.get("tools", facts.get("images", [])))
    return ", ".join(f"`{name}`" for name in names) or "no images"


def table(facts: dict[str, dict]) -> list[str]:
    lines = [
        "| wheel | for | size | glibc | Python | inside | what ran |",
        "|---|---|---|---|---|---|---|",
    ]
    for wheel in facts.values():
        name, *_, processor = wheel["wheel"].removesuffix(".whl").split("-")
        processor = processor.split("_", 3)[-1]
        size = f"{wheel['bytes'] / 1e6:.1f} MB"
        python = wheel["python"].removeprefix(">=")
        cells = [f"`{name.replace('_', '-')}`", f"`{processor}`", size]
        glibc = f"{wheel['glibc']} or later" if "glibc" in wheel else "any"
        cells += [glibc, f"{python} or later", inside(wheel)]
        lines.append("| " + " | ".join([*cells, wheel.get("ran", "never run")]) + " |")
    return lines


def first_calls(report: dict) -> list[str]:
    """One line for each implementation, in the order of their times."""
    times: dict[str, list[float]] = {}
    for row in report["rows"]:
        times.setdefault(row["impl"], []).append(row["first_call_ms"])
    lines = [f"| from the first call to the first result, {report['device']} | ms |", "|---|---|"]
    for impl, found in sorted(times.items(), key=lambda item: min(item[1])):
        name, package = NAMES[impl]
        version = report["versions"].get(package, "")
        lines.append(f"| {name} {version} | {statistics.median(found):,.0f} |")
    return lines


def readme(text: str, facts: dict[str, dict]) -> str:
    """README.md with the tables of today between its marks."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    made = table(facts)
    if FIRST_CALLS.exists():
        made += ["", *first_calls(json.loads(FIRST_CALLS.read_text()))]
    return f"{before}{BEGIN}\n" + "\n".join(made) + f"\n{END}{after}"
