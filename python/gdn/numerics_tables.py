# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The page of a record of gdn.numerics_check: the largest errors by heads, types and kind of
inputs."""

_SHORT = {"bfloat16": "bf16", "float16": "f16", "float32": "f32"}


def _case_names(rows: list[dict]) -> list[str]:
    names: dict[str, None] = {}
    for row in rows:
        names |= dict.fromkeys(row["cases"])
    return list(names)


def _table(rows: list[dict], index: int) -> list[str]:
    """Errors of outputs (0) or states (1): a line for each entry, a column for each case."""
    names = _case_names(rows)
    lines = [
        f"| heads, keys x values | inputs | in and out | states | code | {' | '.join(names)} |",
        "|---|---|---|---|---|" + "---:|" * len(names),
    ]
    for row in rows:
        found = row["cases"]
        cells = [f"{found[name][index]:.1e}" if name in found else "" for name in names]
        keys, values = row["heads"]
        what = f"{keys} x {values} | {row['layout']} | {_SHORT[row['io']]} | {_SHORT[row['state']]}"
        lines.append(f"| {what} | {row['target']} | {' | '.join(cells)} |")
    return lines


def _order(row: dict) -> tuple:
    return row["heads"], row["layout"], row["io"], row["state"], row["target"]


def markdown(report: dict) -> str:
    """The page of a report."""
    rows = sorted(report["rows"], key=_order)
    failed = sum(len(row["failures"]) for row in rows)
    kernels = sum(len(row["variants"]) for row in rows)
    lines = [
        f"# Errors of prefill: {report['device']}",
        "",
        f"{report['device']}, driver {report['driver']}, {report['date']}.",
        "",
        "Relative RMSE against float64 from the same inputs, the largest of all variants of an",
        f"entry; {len(rows)} entries, {kernels} variants, {failed} errors beyond the bounds of",
        "[the page on numerics](../spec/numerics.md). Made by `python -m gdn.numerics_check`.",
        "",
        "## Outputs",
        "",
        *_table(rows, 0),
        "",
        "## States",
        "",
        *_table(rows, 1),
    ]
    return "\n".join(lines) + "\n"
