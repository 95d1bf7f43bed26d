# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The time that a decode step of ours may take at most, from the other rows of its
configuration: a share of the stream, the hand-written schedules, and the peers. And the
time that no prefill can beat, from what it moves and what it multiplies."""

from collections.abc import Callable

_MIB = 1 << 20
_COPY_TBPS = 4.25  # of a large copy on an H200, bytes read and written
_COPIES = {"NVIDIA H200": _COPY_TBPS}
_PROTOTYPE = 1.03
_CHUNK = 64
_WIDTH = 4  # inputs of a convolution


def state_traffic(config: dict) -> int:
    """Bytes of the states of all rows, read and written once."""
    itemsize = 4 if config["state"] == "float32" else 2
    return 2 * config["N"] * config["Hv"] * config["dk"] * config["dv"] * itemsize


def step_traffic(config: dict) -> int:
    """Bytes that a decode step moves at least: the states of all rows, windows of the
    convolution of 4 inputs read and written, projections read, outputs written."""
    itemsize = {"float32": 4}.get(config["io"], 2)
    keys, values = config["Hk"] * config["dk"], config["Hv"] * config["dv"]
    windows = 2 * 3 * (2 * keys + values)
    projections = 2 * keys + 2 * values + 2 * config["Hv"]
    return state_traffic(config) + config["N"] * itemsize * (windows + projections + values)


def is_in_order(row: dict) -> bool:
    """Whether the states of a row of decode lie one after another: of ours with such slots, and
    of those who take no slots (FLA, FlashInfer's rule on states, a stream)."""
    variant = row["config"].get("variant", "")
    if row["impl"] == "gdn":
        return variant.removesuffix(" pdl").endswith(" in order")
    return row["impl"] in ("fla", "stream in order") or variant == "state"


def floor_us(config: dict, ordered: bool, others: list[dict]) -> float | None:
    """What those bytes take at the rate of the stream through the same slots, or of that in
    order; from 256 MiB on, where a launch is long beside its beginning and its end."""
    name = "stream in order" if ordered else "stream"
    stream = next((row for row in others if row["impl"] == name), None)
    if stream is None or state_traffic(config) < 256 * _MIB:
        return None
    return stream["us"] * step_traffic(config) / state_traffic(config)


def comparable(ordered: bool, others: list[dict]) -> list[dict]:
    """The rows whose states lie as those of a step of ours. All are compared with ours through
    random slots where none of ours is in order: records of before that was measured."""
    if not ordered and not any(row["impl"] == "gdn" and is_in_order(row) for row in others):
        return others
    return [row for row in others if is_in_order(row) == ordered]


def copy_tbps(report: dict) -> float:
    """The rate that a share of the copy is of: where none is agreed on for the device, that
    of the run."""
    return _COPIES.get(report["device"], report["ceilings"]["copy_TBps"])


def candidates(
    config: dict, dependent: bool, ordered: bool, others: list[dict], copy: float = _COPY_TBPS
) -> list[tuple[float, str]]:
    """Limits in microseconds and where they come from. `others` are rows of the same
    sizes and types; `dependent` says whether launches may overlap, `ordered` whether our
    states lie one after another: then shares of the stream and of the copy ask nothing."""
    traffic = state_traffic(config)
    found = []
    if not ordered and config["state"] != "float32" and traffic >= 512 * _MIB:
        found.append((traffic / (0.80 * copy) * 1e-6, "80 % of the copy"))
    for row in comparable(ordered, others):
        impl, part = row["impl"], row["config"].get("part")
        if impl == "stream" and config["state"] == "float32":
            share = 0.93 if traffic >= 512 * _MIB else 0.90 if traffic >= 256 * _MIB else None
            if share:
                found.append((row["us"] / share, f"{share:.0%} of the stream".replace("%", " %")))
        elif impl == ("prototype pdl" if dependent else "prototype"):
            found.append((row["us"] * _PROTOTYPE, "prototype + 3 %"))
        elif part == "step" and impl != "gdn":
            found.append((row["us"], f"{impl} step"))
        elif (part == "rule" and impl == "flashinfer") or (impl == "fla" and config["N"] >= 8):
            in_order = row["config"]["variant"] == "state"  # takes no slots
            found.append((row["us"], f"{impl} rule" + (" in order" if in_order else "")))
    return found


def verify_candidates(dependent: bool, others: list[dict]) -> list[tuple[float, str]]:
    """The same for verify: the hand-written schedule, and peers that keep states as we do,
    which do less of a step."""
    wanted = "prototype pdl" if dependent else "prototype"
    found = []
    for row in others:
        if row["impl"] == wanted:
            found.append((row["us"] * _PROTOTYPE, "prototype + 3 %"))
        elif row["impl"].split()[0] not in ("gdn", "stream", "prototype"):
            found.append((row["us"], f"{row['impl']} {row['config']['part']}"))
    return found


def same_sizes(a: dict, b: dict) -> bool:
    """Whether two configurations differ in the implementation alone."""
    apart = ("variant", "part")
    return {k: v for k, v in a.items() if k not in apart} == {
        k: v for k, v in b.items() if k not in apart
    }


def add_limits(rows: list[dict], copy: float = _COPY_TBPS) -> None:
    """Gives each row of a step of ours `limit_us`, the smallest limit, and `limit_by`; and
    one of decode `floor_us`, which no step that moves what it has to can beat. `copy` is the
    rate of a copy in TB/s."""
    for row in rows:
        config = row["config"]
        if row["impl"] != "gdn" or config.get("part") == "commit":
            continue
        if row["suite"] not in ("decode", "verify"):
            continue
        others = [
            r
            for r in rows
            if r is not row and r["suite"] == row["suite"] and same_sizes(r["config"], config)
        ]
        dependent = config["variant"].endswith(" pdl")
        if row["suite"] == "verify":
            found = verify_candidates(dependent, others)
        else:
            ordered = is_in_order(row)
            found = candidates(config, dependent, ordered, others, copy)
            if floor := floor_us(config, ordered, others):
                row["floor_us"] = floor
        if found:
            row["limit_us"], row["limit_by"] = min(found)


def prefill_bytes(config: dict) -> int:
    """Bytes that a prefill from ready queries and keys cannot avoid: each input read once,
    each output written once, the states of all rows read and written."""
    itemsize = {"float32": 4}.get(config["io"], 2)
    queries = 2 * config["Hk"] * config["dk"] * itemsize
    values = 2 * config["Hv"] * config["dv"] * itemsize
    gates = 2 * config["Hv"] * 4
    return config["T"] * (queries + values + gates) + state_traffic(config)


def prefill_flops(config: dict) -> int:
    """Operations of the products of the chunk form, in whole chunks of 64 tokens: scores of
    keys and of queries once for each key head; for each value head two products with the
    state, two of the chunk's matrices with values, and what is added to the state. The
    inverse and what is elementwise come on top."""
    key, value, size = config["dk"], config["dv"], _CHUNK
    scores = 2 * 2 * size * size * key
    state = 3 * 2 * size * key * value
    inner = 2 * 2 * size * size * value
    chunks = sum(-(-length // size) for length in config["lens"])
    return chunks * (config["Hk"] * scores + config["Hv"] * (state + inner))


def prefill_limit(config: dict, ceilings: dict) -> tuple[float, str]:
    """Microseconds that the device needs at least, at the rates that a copy and a large
    product reached in the same run, and which of them it is."""
    moved = prefill_bytes(config) / ceilings["copy_TBps"] * 1e-6
    multiplied = prefill_flops(config) / ceilings["matmul_TFLOPs"] * 1e-6
    return max((moved, "the copy"), (multiplied, "the products"))


def add_prefill_limits(rows: list[dict], ceilings: dict) -> None:
    """Gives each row of a prefill, whoever it is of, `limit_us` and `limit_by`."""
    for row in rows:
        if row["suite"] == "prefill":
            row["limit_us"], row["limit_by"] = prefill_limit(row["config"], ceilings)


def channel_bytes(config: dict) -> int:
    """Bytes that a prefill with a decay per channel cannot avoid: log decays are f32."""
    return prefill_bytes(config) + config["T"] * config["Hv"] * (config["dk"] - 1) * 4


def add_channel_limits(rows: list[dict], ceilings: dict) -> None:
    """Gives each row of such a prefill, whoever it is of, `limit_us` and `limit_by`."""
    for row in rows:
        if row["suite"] == "prefill-channels":
            row["limit_us"] = channel_bytes(row["config"]) / ceilings["copy_TBps"] * 1e-6
            row["limit_by"] = "the copy"


def prologue_bytes(config: dict) -> int:
    """Bytes that the prologue of a prefill reads and writes: queries, keys and values of all
    tokens, as projected and as the products take them, 16 bits each."""
    channels = 2 * config["Hk"] * config["dk"] + config["Hv"] * config["dv"]
    itemsize = {"float32": 4}.get(config["io"], 2)
    return config["T"] * channels * (itemsize + 2)


def norm_bytes(config: dict) -> int:
    """Bytes that the stage of the norm reads and writes: the rule's output, the gate, and the
    result, of all tokens."""
    itemsize = {"float32": 4}.get(config["io"], 2)
    return config["T"] * config["Hv"] * config["dv"] * 3 * itemsize


def add_prologue_limits(rows: list[dict], copy_us: Callable[[int], float]) -> None:
    """Gives each prologue and each norm alone the time of a copy of as many bytes, read and
    written together, as `limit_us`."""
    passes = {"prologue": prologue_bytes, "norm": norm_bytes}
    for row in rows:
        if row["suite"] == "prologue" and row["config"]["part"] in passes:
            row["limit_us"] = copy_us(passes[row["config"]["part"]](row["config"]))
            row["limit_by"] = "the copy"


def packed_bytes(config: dict) -> int:
    """Bytes that a prefill of packed projections cannot avoid: projections read and outputs
    written once, the states and windows of all rows read and written."""
    itemsize = {"float32": 4}.get(config["io"], 2)
    values = config["Hv"] * config["dv"]
    channels = 2 * config["Hk"] * config["dk"] + values
    elements = config["T"] * (channels + 2 * values + 2 * config["Hv"])
    windows = 2 * config["N"] * channels * (_WIDTH - 1)
    return (elements + windows) * itemsize + state_traffic(config)


def add_packed_limits(rows: list[dict], ceilings: dict) -> None:
    """Gives each row of a prefill of packed projections, whoever it is of, the time of a
    copy of what has to be moved, as `limit_us`."""
    for row in rows:
        if row["suite"] == "packed" and row["config"].get("part") != "stage":
            row["limit_us"] = packed_bytes(row["config"]) / ceilings["copy_TBps"] * 1e-6
            row["limit_by"] = "the copy"
