# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A record of what compute-sanitizer found, and its page: `python -m gdn.sanitizer_tables
REPORT.. --output FILE` joins reports of `tools/scripts/device-check --sanitizer`.

A kernel is known by its digest; when a tool is clean says `records.is_clean`."""

import argparse
import json
from pathlib import Path

from .records import is_clean, text_of

TOOLS = ("memcheck", "initcheck", "synccheck", "racecheck")


def join(reports: list[dict]) -> dict:
    """The record: facts of the last report, and a row for each kernel with the tools that were
    clean and those that were not. A tool that ran again counts as it did last."""
    record: dict = {}
    found: dict[tuple[str, str, str], dict[str, bool]] = {}
    for report in reports:
        record |= {key: report[key] for key in ("device", "driver", "date") if key in report}
        for row in report["sanitizers"]:
            tools = found.setdefault((row["name"], row["target"], row["digest"]), {})
            tools[row["tool"]] = is_clean(row)
    rows = []
    for (name, target, digest), tools in sorted(found.items()):
        row = {"name": name, "target": target, "digest": digest}
        row["clean"] = [tool for tool in TOOLS if tools.get(tool) is True]
        row["not_clean"] = [tool for tool in TOOLS if tools.get(tool) is False]
        rows.append(row)
    return record | {"rows": rows}


def markdown(record: dict) -> str:
    """The page of a record."""
    lines = [
        f"# compute-sanitizer: {record['device']}",
        "",
        f"{record['device']}, driver {record['driver']}, {record['date']}.",
        "",
        "Small cases of `tools/scripts/device-check --sanitizer`: short and empty rows, rows and",
        "slots that are skipped, strong decay. A kernel is an entry of an image in every variant.",
        "Made by `python -m gdn.sanitizer_tables`. An empty cell: not run.",
        "",
        f"| kernel | code | {' | '.join(TOOLS)} |",
        "|---|---|" + "---|" * len(TOOLS),
    ]
    for row in record["rows"]:
        cells = [
            "clean" if tool in row["clean"] else "errors" if tool in row["not_clean"] else ""
            for tool in TOOLS
        ]
        lines.append(f"| {row['name']} | {row['target']} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser("gdn.sanitizer_tables", description=__doc__.split("\n\n")[0])
    parser.add_argument("reports", nargs="+", type=Path)
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args(arguments)
    record = join([json.loads(path.read_text()) for path in options.reports])
    options.output.write_text(text_of(record))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
