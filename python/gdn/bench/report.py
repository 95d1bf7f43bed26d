# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Files of reports: how they are written, and how several become one."""

import json
from pathlib import Path


def save(path: Path, report: dict) -> None:
    path.write_text(json.dumps(report, indent=1) + "\n")


def join(parts: list[dict | list]) -> dict:
    """One report with all rows, of reports of one device and commit, and of rows alone; with all
    that they say was refused."""
    reports = [part for part in parts if isinstance(part, dict)]
    if not reports:
        raise ValueError("parts: expected a report, got rows alone")
    joined = dict(reports[0])
    for report in reports[1:]:
        for name in ("device", "driver", "commit"):
            if report[name] != joined[name]:
                raise ValueError(f"{name}: expected {joined[name]}, got {report[name]}")
        joined["versions"] = joined["versions"] | report["versions"]
    if refused := {why for report in reports for why in report.get("refused", [])}:
        joined["refused"] = sorted(refused)
    joined["rows"] = [
        row for part in parts for row in (part["rows"] if isinstance(part, dict) else part)
    ]
    return joined
