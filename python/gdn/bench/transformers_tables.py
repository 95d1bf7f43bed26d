# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tables of models of transformers: tokens per second of each way in which their linear attention
runs, and its share of the time."""

from .markdown_table import lines_of

SUITE = "transformers"
_STEPS = {
    ("prefill", "eager"): "prompts",
    ("decode", "eager"): "tokens",
    ("decode", "graph"): "tokens, in a graph",
    ("decode", "compiled"): "tokens, torch.compile",
}


def _cells(row: dict | None) -> list[str]:
    """Tokens per second, and the share of the linear attention."""
    if row is None or "ms" not in row:
        return ["", ""]
    linear = row.get("linear_ms")
    share = "" if linear is None else f"{100 * linear / row['ms']:.0f} %"
    return [f"{row['tokens_per_s']:,.0f}", share]


def _times(rows: list[dict], impls: list[str]) -> list[str]:
    found: dict[tuple, dict[str, dict]] = {}
    for row in rows:
        config = row["config"]
        key = config["step"], config["how"], config["N"], config["T"]
        found.setdefault(key, {})[row["impl"]] = row
    table = []
    for (step, how, batch, tokens), by_impl in found.items():
        sizes = f"{batch} x {tokens // batch:,}" if step == "prefill" else str(batch)
        cells = [cell for impl in impls for cell in _cells(by_impl.get(impl))]
        first, last = (by_impl.get(impl, {}).get("ms") for impl in (impls[0], impls[-1]))
        times = f"{first / last:.2f}" if first and last else ""
        table.append([_STEPS[step, how], sizes, *cells, times])
    header = ["step", "sequences"]
    for impl in impls:
        header += [f"{impl}, tokens/s", "linear"]
    return lines_of([*header, f"{impls[0]} / {impls[-1]}"], table, left=1)


def markdown(report: dict) -> str:
    """Nothing if the report has no such rows."""
    rows = [row for row in report["rows"] if row.get("suite") == SUITE]
    if not rows:
        return ""
    used = [f"{name} {v or 'not installed'}" for name, v in report["versions"].items()]
    lines = [f"{report['device']}, {report['date']}; {', '.join(used)}.", ""]
    for model in dict.fromkeys(row["config"]["model"] for row in rows):
        own = [row for row in rows if row["config"]["model"] == model]
        impls = list(dict.fromkeys(row["impl"] for row in own))
        timed = [row for row in own if "step" in row["config"]]
        layers = timed[0]["config"]["layers"]
        lines += [f"{model}, {layers} layers with random weights, bf16", ""]
        lines += [*_times(timed, impls), ""]
        compared = [row for row in own if "error" in row]
        if compared:
            errors = ", ".join(f"{row['impl']} {row['error']:.1e}" for row in compared)
            layers = compared[0]["config"]["layers"]
            lines += [f"Errors of logits against f32, {layers} layers: {errors}.", ""]
        for row in timed:
            if "refused" in row:
                how = _STEPS[row["config"]["step"], row["config"]["how"]]
                lines += [f"Not measured: {row['impl']}, {how}: {row['refused']}.", ""]
    return "\n".join(lines).rstrip() + "\n"
