# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tables of the record of prefix caches: traces, means over their seeds, and the host's times."""

from __future__ import annotations

from collections import defaultdict
from statistics import fmean

from ..markdown_table import lines_of

OURS, BOUND = "ours", "everything kept"
YARDSTICKS = ("sglang, no buffer", "sglang, extra buffer")
#: Columns: what a row has, the heading, and how a mean is written.
_COLUMNS = (
    ("hit_rate", "hit rate", lambda x: f"{100 * x:.1f} %"),
    ("tokens", "tokens computed, of a request", lambda x: f"{x:.0f}"),
    ("ttft_mean_ms", "time to first token, ms", lambda x: f"{x:.2f}"),
    ("ttft_p50_ms", "p50", lambda x: f"{x:.2f}"),
    ("ttft_p99_ms", "p99", lambda x: f"{x:.1f}"),
    ("state_bytes", "states kept, GB", lambda x: f"{x / 1e9:.0f}"),
    ("host_bytes", "from the host, GB", lambda x: f"{x / 1e9:.0f}"),
)

Key = tuple[str, int, str]  # trace, memory in percent, policy


def by_seed(record: dict) -> dict[Key, dict[int, dict]]:
    """Rows by trace, memory and policy, then seed."""
    found: dict[Key, dict[int, dict]] = defaultdict(dict)
    for row in record["rows"]:
        row = row | {"tokens": row["computed_tokens"] / row["requests"]}
        found[row["trace"], row["memory"], row["policy"]][row["seed"]] = row
    return dict(found)


def mean(rows: dict[int, dict], name: str) -> float:
    """Over the seeds."""
    return fmean(row[name] for row in rows.values())


def cases(record: dict) -> list[tuple[str, int]]:
    """Traces and sizes of memory, in the order of the record."""
    return list(dict.fromkeys((row["trace"], row["memory"]) for row in record["rows"]))


def better_of(found: dict[Key, dict[int, dict]], trace: str, memory: int) -> str:
    """The form of sglang's rules with the lesser mean time to first token."""
    return min(YARDSTICKS, key=lambda name: mean(found[trace, memory, name], "ttft_mean_ms"))


def comparison(record: dict) -> dict[str, dict[str, float]]:
    """Of each trace, the mean time to first token over all sizes of memory, ours over that of each
    form of sglang's rules and over the bound."""
    found = by_seed(record)
    made: dict[str, dict[str, float]] = {}
    for trace in dict.fromkeys(trace for trace, _ in cases(record)):
        sizes = [memory for name, memory in cases(record) if name == trace]
        times = {
            policy: fmean(mean(found[trace, memory, policy], "ttft_mean_ms") for memory in sizes)
            for policy in (OURS, *YARDSTICKS, BOUND)
        }
        made[trace] = {name: times[OURS] / times[name] for name in (*YARDSTICKS, BOUND)}
    return made


def traces(record: dict) -> str:
    """Means over seeds for each trace and size of memory, and ours beside sglang's rules."""
    found = by_seed(record)
    seeds = sorted({row["seed"] for row in record["rows"]})
    kib = record["kv_bytes_per_token"] / 2**10
    lines = [
        f"Simulated with kernel times of an {record['device']}; {record['model']}: "
        f"{record['state_bytes'] / 2**20:.1f} MiB a state, {kib:.0f} "
        f"KiB of keys and values a token; {record['date']}. Means over the seeds {seeds[0]} to "
        f"{seeds[-1]}. Memory is a share of what the distinct states of a trace take.",
        "",
    ]
    header = ["trace", "memory", *YARDSTICKS, "ours", BOUND, "ours / better", "of seeds, at most"]
    table = []
    for trace, memory in cases(record):
        names = (*YARDSTICKS, OURS, BOUND)
        times = [mean(found[trace, memory, name], "ttft_mean_ms") for name in names]
        best = better_of(found, trace, memory)
        ours, others = found[trace, memory, OURS], found[trace, memory, best]
        worst = max(ours[seed]["ttft_mean_ms"] / others[seed]["ttft_mean_ms"] for seed in ours)
        cells = [f"{time:.2f}" for time in times]
        cells += [
            f"{mean(ours, 'ttft_mean_ms') / mean(others, 'ttft_mean_ms'):.3f}",
            f"{worst:.3f}",
        ]
        table.append([trace, f"{memory} %", *cells])
    lines += ["Mean time to first token, ms:", "", *lines_of(header, table, left=1), ""]
    header = ["trace", *(f"ours / {name}" for name in (*YARDSTICKS, BOUND))]
    table = [
        [trace, *(f"{ratio:.3f}" for ratio in ratios.values())]
        for trace, ratios in comparison(record).items()
    ]
    lines += ["The mean of all sizes of memory:", "", *lines_of(header, table, left=1), ""]
    for trace, memory in cases(record):
        policies = [key[2] for key in found if key[:2] == (trace, memory)]
        header = ["policy", *(heading for _, heading, _ in _COLUMNS)]
        table = [
            [name, *(show(mean(found[trace, memory, name], key)) for key, _, show in _COLUMNS)]
            for name in policies
        ]
        lines += [f"{trace}, memory for {memory} %:", "", *lines_of(header, table, left=1), ""]
    return "\n".join(lines)


#: Policies of two levels, and what they are compared with.
_LEVELS = ("ours, GPU alone", "ours, host", "ours, host, i8x2")
_PEERS = (
    "sglang, extra buffer, GPU alone",
    "sglang, no buffer, host",
    "sglang, extra buffer, host",
)
_LEVEL_COLUMNS = (
    *_COLUMNS[:5],
    ("stored_bytes", "states to the host, GB", lambda x: f"{x / 1e9:.0f}"),
    ("fetched_bytes", "states back, GB", lambda x: f"{x / 1e9:.0f}"),
    ("host_bytes", "keys and values back, GB", lambda x: f"{x / 1e9:.0f}"),
)


def level_ratios(record: dict) -> dict[tuple[str, int], dict[tuple[str, str], float]]:
    """Of each trace and size of memory, and of the mean of all sizes (0), mean times to first token
    of ours over those of sglang's rules."""
    found = by_seed(record)
    times: dict[tuple[str, int], dict[str, float]] = {}
    for trace, memory in cases(record):
        names = (*_LEVELS, *_PEERS)
        times[trace, memory] = {
            name: mean(found[trace, memory, name], "ttft_mean_ms") for name in names
        }
    for trace in dict.fromkeys(trace for trace, _ in cases(record)):
        sizes = [times[case] for case in cases(record) if case[0] == trace]
        times[trace, 0] = {name: fmean(each[name] for each in sizes) for name in sizes[0]}
    return {
        case: {(ours, peer): each[ours] / each[peer] for ours in _LEVELS for peer in _PEERS}
        for case, each in times.items()
    }


def levels(record: dict) -> str:
    """The same of policies with two levels."""
    found = by_seed(record)
    seeds = sorted({row["seed"] for row in record["rows"]})
    lines = [
        f"A third of the memory is on the GPU, the rest in memory of the host; "
        f"{'seed' if len(seeds) == 1 else 'seeds'} {', '.join(map(str, seeds))}, "
        f"{record['date']}. Copies as measured in `{record['copies']}`; a state in "
        f"`i8x2` takes {record['narrow_part']:.2f} of its bytes.",
        "",
    ]
    ours, peer = "ours, host", "sglang, extra buffer, host"
    pairs = (
        (ours, _PEERS[0]),
        (ours, _PEERS[1]),
        (ours, peer),
        (_LEVELS[2], peer),
        (_LEVELS[0], _PEERS[0]),
    )
    header = ["trace", "memory", *(f"{a} / {b}" for a, b in pairs)]
    table = [
        [trace, f"{memory} %" if memory else "mean", *(f"{ratios[pair]:.3f}" for pair in pairs)]
        for (trace, memory), ratios in sorted(level_ratios(record).items(), key=_of_trace(record))
    ]
    lines += ["Mean time to first token:", "", *lines_of(header, table, left=1), ""]
    for trace, memory in cases(record):
        policies = [key[2] for key in found if key[:2] == (trace, memory)]
        header = ["policy", *(heading for _, heading, _ in _LEVEL_COLUMNS)]
        table = [
            [name, *(show(mean(found[trace, memory, name], k)) for k, _, show in _LEVEL_COLUMNS)]
            for name in policies
        ]
        lines += [f"{trace}, memory for {memory} %:", "", *lines_of(header, table, left=1), ""]
    return "\n".join(lines)


def _of_trace(record: dict):
    """In the order of the record, means behind the sizes."""
    names = list(dict.fromkeys(trace for trace, _ in cases(record)))
    return lambda item: (names.index(item[0][0]), item[0][1] or 1000)


def host(record: dict) -> str:
    """Times of the cache's own work."""
    header = ["", "nodes", "tokens of a page", "ids", "us", "least", "p99"]
    table = [
        [
            row["config"]["variant"],
            str(row["config"]["nodes"]),
            str(row["config"]["page_tokens"]),
            row["config"]["tokens"],
            *(f"{row[name]:.2f}" for name in ("us", "us_min", "us_p99")),
        ]
        for row in record["rows"]
    ]
    runs = record.get("best_of_runs", 1)
    how = f", beside other work; each row is the best of {runs} runs" if runs > 1 else ""
    return "\n".join(
        [f"{record['device']}, {record['date']}{how}", "", *lines_of(header, table, left=1)]
    )


def markdown(report: dict) -> str:
    """The page of what the record has."""
    parts = ["# Prefix caches"]
    if "traces" in report:
        parts.append("## Traces\n\n" + traces(report["traces"]).rstrip())
    if "levels" in report:
        parts.append("## Two levels\n\n" + levels(report["levels"]).rstrip())
    if "host" in report:
        parts.append("## Host\n\n" + host(report["host"]).rstrip())
    return "\n\n".join(parts) + "\n"
