# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The page of errors of formats of states, and the table of the guide on pools, from the record of
state_errors.py."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RECORD = ROOT / "docs/generated/state-formats.json"
GUIDE = ROOT / "docs/guides/state-pools.md"
BEGIN = "<!-- formats of states, made by tools/scripts/docs.py -->"
END = "<!-- end of formats of states -->"

_HEAD = """# Errors of formats of states

Made by `tools/scripts/docs.py` from `state-formats.json`, which `tools/scripts/state_errors.py`
writes; do not edit. Decode on a CPU beside float64, {tokens:,} tokens of {heads} heads of
{dim} x {dim}, inputs and outputs of f32. Errors are relative: RMSE by RMS, of outputs over the last
{last} tokens and of states behind the last one, of the worst head.

- *slow heads*: random inputs; two heads lose 0.0001 of their state at each token, one with keys
  that are much alike from token to token, and two heads lose 0.001 and 0.01;
- *a key that repeats*: 512 random tokens, then one key for all tokens, whose value is written
  whole;
- *values up to 1e4*: random values of that size;
- *pure decay*: 512 random tokens, then nothing is written;
- *key and value that repeat*: 512 random tokens, then one key and one value for all tokens. What
  is written is then nearly zero at each token, and roundings are not.

Heads of the last four lose 0.0001 at each token. Inputs are random, not those of a trained model.
In pure decay floats of 16 bits that are written at each token stop to change, and bf16 does so if
it is written every 16 tokens, too: what a state loses until then rounds to nothing.
"""
#: By the option of gdn-compile: the type of states of a pool, bits of an element, and of a scale.
_FORMATS = {
    "f32": ("float32", 32, 0),
    "f16": ("float16", 16, 0),
    "bf16": ("bfloat16", 16, 0),
    "i8x2": ("i8x2", 16, 32),
    "i8x2_upper": ("i8x2", 16, 32),
    "i8": ("i8", 8, 32),
}


def _number(value: float) -> str:
    return f"{value:.1e}".replace("e-0", "e-") if value < 1 else f"{value:.2g}"


def _errors(record: dict, of: int) -> list[str]:
    names = [name for name in record["rows"][0] if name not in ("state", "deferred_writes")]
    lines = [f"| states | written | {' | '.join(names)} |", "|---|---|" + "--:|" * len(names)]
    for row in record["rows"]:
        writes = row["deferred_writes"]
        when = f"every {writes} tokens" if writes else "at each token"
        cells = [f"`{row['state']}`", when, *(_number(row[name][of]) for name in names)]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def table(record: dict) -> list[str]:
    """Both tables of the page."""
    return ["## Outputs", "", *_errors(record, 0), "", "## States", "", *_errors(record, 1)]


def markdown(record: dict) -> str:
    return "\n".join([_HEAD.format(**record), *table(record)]) + "\n"


def guide_table(record: dict) -> list[str]:
    """Of outputs of slow heads, and what states take."""
    found = {(r["state"], r["deferred_writes"]): r["slow heads"][0] for r in record["rows"]}
    deferred = max(writes for _, writes in found)
    lines = [
        "| `state_dtype` | `--state` | bytes of f32's | error, state written at each token |"
        f" error, `--defer-writes={deferred}` |",
        "|---|---|---|---|---|",
    ]
    for option, (name, bits, scale) in _FORMATS.items():
        share = f"{(bits + scale / record['dim']) / 32:.2f}".rstrip("0").rstrip(".")
        errors = [
            _number(found[option, writes]) if (option, writes) in found else "not offered"
            for writes in (0, deferred)
        ]
        lines.append("| " + " | ".join([f"`{name}`", f"`{option}`", share, *errors]) + " |")
    return lines


def guide(text: str, record: dict) -> str:
    """The guide with the table of today between its marks."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n" + "\n".join(guide_table(record)) + f"\n{END}{after}"
