# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Records which entries GPUs get for heads of which dimensions: what ptxas says of their
kernels, or why there is none.

Writes docs/generated/gpu-support.json, of which tools/scripts/docs.py makes a page. Takes
minutes; run it after a change of schedules or of their limits.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RECORD = ROOT / "docs/generated/gpu-support.json"
HEADS = [(64, 64), (64, 128), (96, 192), (128, 128), (256, 256)]  # keys, values
TARGETS = ["sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_103a", "sm_120a"]
LAYOUTS = {"packed": [], "ready": ["--layout=ready", "--outputs=core"]}
ENTRIES = ["prefill", "decode"]
MODEL = {
    "model_type": "qwen3_next",
    "hidden_size": 128,
    "hidden_act": "silu",
    "num_hidden_layers": 4,
    "linear_num_key_heads": 1,
    "linear_num_value_heads": 2,
    "linear_conv_kernel_dim": 4,
    "rms_norm_eps": 1e-6,
}
_REMARK = re.compile(r"remark: '([^']+)' (.+)")


def entry_of(kernel: str, names: list[str]) -> str | None:
    """The entry that a kernel is a stage or a variant of."""
    return next((name for name in names if re.match(rf"{name}(_persistent|__.*)?$", kernel)), None)


def facts(report: str, said: str, names: list[str]) -> dict[str, dict]:
    """By entry: the largest figures of its kernels, and what was said of those that were left
    out."""
    found: dict[str, dict] = {
        name: {"kernels": 0, "registers": 0, "shared": 0, "spills": 0, "left_out": {}}
        for name in names
    }
    for line in report.splitlines()[1:]:
        kernel, _, registers, static, dynamic, _, stores, *_ = line.split()
        if entry := found.get(entry_of(kernel, names) or ""):
            entry["kernels"] += 1
            entry["registers"] = max(entry["registers"], int(registers))
            entry["shared"] = max(entry["shared"], int(static) + int(dynamic))
            entry["spills"] = max(entry["spills"], int(stores))
    for kernel, reason in _REMARK.findall(said):
        if name := entry_of(kernel, names):
            found[name]["left_out"][kernel[len(name) :].lstrip("_")] = reason
    return found


def record(gdn_compile: Path) -> list[dict]:
    rows = []
    for keys, values in HEADS:
        model = MODEL | {"linear_key_head_dim": keys, "linear_value_head_dim": values}
        with tempfile.NamedTemporaryFile("w", suffix=".json") as config:
            json.dump(model, config)
            config.flush()
            for layout, options in LAYOUTS.items():
                for io in ("bf16", "f16"):
                    for target in TARGETS:
                        command = [gdn_compile, "--config", config.name, f"--io={io}", *options]
                        command += ["--state=f32", f"--only={','.join(ENTRIES)}"]
                        command += [f"--target={target}", "--emit=report"]
                        done = subprocess.run(command, text=True, capture_output=True)
                        where = {"heads": [keys, values], "layout": layout, "io": io}
                        where["target"] = target
                        for name, found in facts(done.stdout, done.stderr, ENTRIES).items():
                            if found["kernels"] == 0 and not found["left_out"]:
                                sys.exit(f"gpu_support: {where}: {done.stderr.strip()}")
                            rows.append(where | {"entry": name} | found)
                        print(where, flush=True)
    return rows


def markdown(rows: list[dict]) -> str:
    """A line for each entry, a column for each target, and the reasons below."""
    lines = [
        "# Heads that GPUs have kernels for",
        "",
        "Recorded by `tools/scripts/gpu_support.py`: the most registers of a thread, bytes of",
        "shared memory of a block and bytes spilled of a thread, of all kernels of an entry,",
        "as ptxas reports them; states are f32. Where no figure stands the entry is left out, for",
        "the reason below the table.",
        "",
        f"| heads, keys x values | inputs | entry | {' | '.join(TARGETS)} |",
        "|---|---|---|" + "---:|" * len(TARGETS),
    ]
    by_line: dict[tuple, dict[str, dict]] = {}
    for row in rows:
        key = (*row["heads"], row["layout"], row["io"], row["entry"])
        by_line.setdefault(key, {})[row["target"]] = row
    reasons: dict[str, dict[str, list[str]]] = {}
    for (keys, values, layout, io, entry), found in by_line.items():
        cells = []
        for target in TARGETS:
            row = found.get(target)
            if row and row["kernels"]:
                cells.append(f"{row['registers']}, {row['shared']}, {row['spills']}")
            else:
                cells.append("")
            for kernel, reason in row["left_out"].items() if row else ():
                text = f"`{entry}{'__' + kernel if kernel else ''}` {reason}"
                where = reasons.setdefault(text, {}).setdefault(f"{keys} x {values} {layout}", [])
                where.append(f"{io} {target}")
        name = f"{io}, {layout}"
        lines.append(f"| {keys} x {values} | {name} | `{entry}` | {' | '.join(cells)} |")
    lines += ["", "Kernels that were left out:", ""]
    everywhere = 2 * len(TARGETS)  # types of inputs by targets
    for text, where in reasons.items():
        places = [
            place if len(kinds) == everywhere else f"{place} ({', '.join(kinds)})"
            for place, kinds in where.items()
        ]
        lines.append(f"- {text}: {', '.join(places)}")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build-dir", type=Path, default=ROOT / "build/release")
    rows = record(parser.parse_args().build_dir / "bin/gdn-compile")
    RECORD.write_text(json.dumps(rows, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
