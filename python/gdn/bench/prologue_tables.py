# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A table of the stages of a prefill: what each takes, and how near those that only pass over
memory come to a copy of the bytes that they move."""

from collections import defaultdict

from .markdown_table import lines_of

# The part of the bandwidth of a copy that is asked for, from so many tokens on.
GOAL, FROM_TOKENS = 0.8, 8192
_PARTS = ("prologue", "intra-chunk", "inter-chunk", "norm", "whole")
_PASSES = ("prologue", "norm")


def markdown(report: dict) -> str:
    """Nothing if the report has no such rows."""
    found: dict = defaultdict(dict)
    for row in report["rows"]:
        if row["suite"] == "prologue":
            config = row["config"]
            key = (row["impl"], config["Hk"], config["Hv"], config["T"])
            found[key][config["part"]] = row
    if not found:
        return ""
    header = ["", "heads", "tokens", *_PARTS]
    for name in _PASSES:
        header += [f"{name}: a copy", "of the copy", "as asked"]
    table = []
    for (impl, keys, values, tokens), parts in found.items():
        times = [f"{parts[part]['us']:.1f}" if part in parts else "" for part in _PARTS]
        cells = []
        for name in _PASSES:
            limit = parts.get(name, {}).get("limit_us")
            if not limit:
                cells += ["", "", ""]
                continue
            share = limit / parts[name]["us"]
            met = ("yes" if share >= GOAL else "no") if tokens >= FROM_TOKENS else ""
            cells += [f"{limit:.1f}", f"{100 * share:.0f} %", met]
        table.append([impl, f"{keys}, {values}", str(tokens), *times, *cells])
    machine = f"{report['device']}, driver {report['driver']}, {report['date']}; us"
    return "\n".join([machine, "", *lines_of(header, table, left=2)]) + "\n"
