# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A table of steps of decode through a layer, beside the bare kernel."""

from collections import defaultdict

from .markdown_table import lines_of

_FORMS = [
    (impl, variant) for variant in ("dependent", "waits") for impl in ("gdn kernel", "gdn layer")
]


def markdown(report: dict) -> str:
    """Nothing if the report has no such rows."""
    found: dict = defaultdict(dict)
    for row in report["rows"]:
        if row["suite"] == "step":
            config = row["config"]
            key = (f"{config['Hk']}, {config['Hv']}", config["state"], config["N"])
            found[key][row["impl"], config["variant"]] = row
    header = ["heads", "state", "N", *(f"{impl}, {variant}" for impl, variant in _FORMS)]
    header += ["layer to kernel", "waits to dependent"]
    table = []
    for (heads, state, rows), forms in found.items():
        if set(forms) < set(_FORMS):
            continue
        us = {form: forms[form]["us"] for form in _FORMS}
        kernel, layer = (us[impl, "dependent"] for impl in ("gdn kernel", "gdn layer"))
        ratios = [layer / kernel, us["gdn layer", "waits"] / layer]
        times = [f"{us[form]:.2f}" for form in _FORMS]
        table.append([heads, state, str(rows), *times, *(f"{ratio:.2f}" for ratio in ratios)])
    if not table:
        return ""
    machine = f"{report['device']}, driver {report['driver']}, {report['date']}; us of one step"
    return "\n".join([machine, "", *lines_of(header, table, left=2)]) + "\n"
