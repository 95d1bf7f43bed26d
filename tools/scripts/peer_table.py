# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The page of what other libraries' suites found, from the record of peer_suites.py."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RECORD = ROOT / "docs/generated/peer-suites.json"

_HEAD = """# Test suites of other libraries

Made by `tools/scripts/docs.py` from `peer-suites.json`, which `tools/scripts/peer_suites.py`
writes; do not edit. The suites run against the functions of `gdn.ops` with nothing but the import
swapped. Tests that compare gradients too ran without them.
"""


def markdown(record: dict[str, dict]) -> str:
    lines = [_HEAD]
    lines += ["| suite | version | ran on | passed | failed | skipped | not run |"]
    lines += ["|---|---|---|---:|---:|---:|---:|"]
    for name, suite in record.items():
        where = f"{suite['device']}, {suite['date']}, {suite['commit']}"
        if suite["every"] > 1:
            where += f", one of {suite['every']} cases"
        counts = [f"{suite[key]:,}" for key in ("passed", "failed", "skipped")]
        # Tests that ran without their gradients are among those that passed.
        rows = [row for row in suite["not_expressible"] if row["test"] != "gradients"]
        cases = sum(row["cases"] for row in rows)
        cells = [name, suite["version"], where, *counts, f"{cases:,}"]
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", "## Not expressible", "", "| suite | test | cases | why |", "|---|---|---:|---|"]
    seen = set()
    for name, suite in record.items():
        for row in suite["not_expressible"]:
            # A suite has the same ones on another device.
            of = (name.removesuffix(f", {suite['device']}"), row["test"], row["why"])
            if of in seen:
                continue
            seen.add(of)
            lines.append(f"| {name} | `{row['test']}` | {row['cases']:,} | {row['why']} |")
    return "\n".join(lines) + "\n"
