# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tables of steps through a layer: decode beside the bare kernel and beside the peers' rule
alone, steps of all kinds of sequences, and what a step costs the host."""

from collections import defaultdict

from .markdown_table import lines_of

_FORMS = [
    (impl, variant) for variant in ("dependent", "waits") for impl in ("gdn kernel", "gdn layer")
]
_ALONE = " rule alone"
_KINDS = ("decodes", "verifies", "columns", "prefills", "prompt")
_PARTS = ("build", "upload", "forward", "launch")
_BESIDE = (
    "A step is the convolution, the rule and the norm in one launch, here through a layer with "
    "dependent launches; the others' kernels are the rule alone. Of several, the fastest."
)
_MIXED = (
    'A graph, and "launches" from the host, are of the same kernels over all sequences in any '
    "order; split are launches of one kind each, of sequences in order. The kernels alone have a "
    "graph each, of their own sequences."
)
_HOST = (
    'Time of the host through the C ABI, medians. "Beside launches" is a step less `gdnrt_launch` '
    "of the same kernels, bound by hand. The GPU has nothing to do when a step begins (idle), or "
    "is busy. Calls of the driver are those that are no launch and do not ask for the context of "
    "the thread; allocations are ours, not the driver's."
)


def _decodes(report: dict) -> dict[tuple, dict[tuple[str, str], dict]]:
    """Rows of decode by heads, state and N, then implementation and variant."""
    found: dict = defaultdict(dict)
    for row in report["rows"]:
        config = row["config"]
        if row["suite"] == "step" and config["step"] == "decode":
            key = (f"{config['Hk']}, {config['Hv']}", config["state"], config["N"])
            found[key][row["impl"], config["variant"]] = row
    return found


def _decode(report: dict) -> list[str]:
    header = ["heads", "state", "N", *(f"{impl}, {variant}" for impl, variant in _FORMS)]
    header += ["layer to kernel", "waits to dependent"]
    table = []
    for (heads, state, rows), forms in _decodes(report).items():
        if set(_FORMS) - set(forms):
            continue
        us = {form: forms[form]["us"] for form in _FORMS}
        kernel, layer = (us[impl, "dependent"] for impl in ("gdn kernel", "gdn layer"))
        ratios = [layer / kernel, us["gdn layer", "waits"] / layer]
        times = [f"{us[form]:.2f}" for form in _FORMS]
        table.append([heads, state, str(rows), *times, *(f"{ratio:.2f}" for ratio in ratios)])
    return lines_of(header, table, left=2) if table else []


def ratios(report: dict) -> dict[str, dict[tuple, float]]:
    """By peer and (heads, state, N): how many times as long as our step its rule alone takes."""
    found: dict = defaultdict(dict)
    for key, forms in _decodes(report).items():
        ours = forms.get(("gdn layer", "dependent"))
        for (impl, _), row in forms.items():
            if ours and impl.endswith(_ALONE):
                ratio = row["us"] / ours["us"]
                found[impl][key] = min(ratio, found[impl].get(key, ratio))
    return found


def mean(values: dict[tuple, float]) -> float:
    return sum(values.values()) / len(values)


def _beside(report: dict) -> list[str]:
    """Our steps beside the peers' rules, with the errors of both."""
    peers = ratios(report)
    names = list(peers)
    header = ["heads", "state", "N", "gdn layer", *names, *(f"{n} / gdn layer" for n in names)]
    header += [f"error of {name}" for name in ("gdn layer", *names)]
    table = []
    for key, forms in _decodes(report).items():
        best: dict = {}
        for (impl, variant), row in forms.items():
            if impl in names or (impl, variant) == ("gdn layer", "dependent"):
                best[impl] = min(row, best.get(impl, row), key=lambda each: each["us"])
        if "gdn layer" not in best or len(best) == 1:
            continue
        heads, state, rows = key
        order = ["gdn layer", *names]
        cells = [f"{best[n]['us']:.2f}" if n in best else "" for n in order]
        cells += [f"{peers[n][key]:.2f}" if key in peers[n] else "" for n in names]
        cells += [f"{best[n]['error_o']:.1e}" if n in best else "" for n in order]
        table.append([heads, state, str(rows), *cells])
    if not table:
        return []
    means = ", ".join(f"{name} {mean(values):.2f}" for name, values in peers.items())
    lines = lines_of(header, table, left=2)
    return ["## Beside the rule alone of others", "", _BESIDE, "", *lines, "", f"Means: {means}."]


def _mixed(report: dict) -> list[str]:
    found: dict = defaultdict(dict)
    for row in report["rows"]:
        config = row["config"]
        if row["suite"] == "step" and config["step"] == "mixed":
            key = tuple(config[name] for name in ("Hk", "Hv", "state", *_KINDS))
            found[key][row["impl"], config["variant"]] = row
    forms = [("gdn layer", "graph"), ("gdn layer", "launches"), ("gdn layer split", "launches")]
    forms += [("gdn kernel", f"{kind} alone") for kind in ("verify", "prefill")]
    header = ["heads", "state", "sequences", *(f"{impl}, {variant}" for impl, variant in forms)]
    header += ["graph to the kernels alone", "graph to split", "error of graph", "error of split"]
    table = []
    for (hk, hv, state, decodes, verifies, columns, prefills, prompt), rows in found.items():
        if set(forms) - set(rows):
            continue
        us = [rows[form]["us"] for form in forms]
        what = f"{decodes} of 1 token, {verifies} verified of {columns}, {prefills} of {prompt}"
        cells = [f"{time:.1f}" for time in us]
        cells += [f"{us[0] / sum(us[3:]):.2f}", f"{us[0] / us[2]:.2f}"]
        cells += [f"{rows[form]['error_o']:.1e}" for form in (forms[0], forms[2])]
        table.append([f"{hk}, {hv}", state, what, *cells])
    if not table:
        return []
    return ["## Steps of all kinds of sequences", "", _MIXED, "", *lines_of(header, table, left=3)]


def is_of_host(row: dict) -> bool:
    """Whether a row is of a step on a GPU, part by part."""
    return row["suite"] == "host" and "driver_calls" in row


def _host(report: dict) -> list[str]:
    header = ["step", "GPU", "sequences", "beside launches, us", *(f"{p}, us" for p in _PARTS)]
    header += ["launches", "calls of the driver", "allocations", "waits"]
    table = []
    for row in filter(is_of_host, report["rows"]):
        config = row["config"]
        times = [f"{row[name]:.2f}" for name in ("us", *(f"{part}_us" for part in _PARTS))]
        counts = ("launches", "driver_calls", "allocations", "synchronisations")
        where = [config["step"], config["variant"], str(config["N"])]
        table.append([*where, *times, *(f"{row[name]:g}" for name in counts)])
    return ["## The host", "", _HOST, "", *lines_of(header, table, left=2)] if table else []


def markdown(report: dict) -> str:
    """Nothing if the report has no such rows."""
    parts = [part(report) for part in (_decode, _beside, _mixed, _host)]
    lines = [line for part in parts if part for line in ["", *part]]
    if not lines:
        return ""
    machine = f"{report['device']}, driver {report['driver']}, {report['date']}; us of one step"
    return "\n".join([machine, *lines]) + "\n"
