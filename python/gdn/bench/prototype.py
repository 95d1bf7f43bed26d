# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times of the hand-written decode schedules, from the file that their own program
writes in the same run: variant, Hk, Hv, N, microseconds cold, and more columns."""

import csv
from pathlib import Path


def rows(path: Path, measured: list[dict]) -> list[dict]:
    """For each configuration that was measured, the fastest hand-written variant with and
    without dependent launches."""
    with path.open() as file:
        lines = list(csv.reader(file))
    configs = []
    for row in measured:
        config = {k: v for k, v in row["config"].items() if k not in ("variant", "part")}
        if config not in configs:
            configs.append(config)
    report = []
    for config in configs:
        size = [str(config[name]) for name in ("Hk", "Hv", "N")]
        for dependent in (False, True):
            found = [
                (float(line[4]), line[0])
                for line in lines
                if line[1:4] == size
                and ("bf16" in line[0].split()) == (config["state"] == "bfloat16")
                and ("pdl0" not in line[0].split()) == dependent
            ]
            if not found or config["state"] not in ("float32", "bfloat16"):
                continue
            us, variant = min(found)
            size_of = 2 if config["state"] == "bfloat16" else 4
            moved = 2 * config["N"] * config["Hv"] * config["dk"] * config["dv"] * size_of
            name = "prototype pdl" if dependent else "prototype"
            report.append(
                {
                    "suite": "decode",
                    "impl": name,
                    "config": config | {"variant": variant},
                    "us": us,
                    "us_min": us,
                    "us_max": us,
                    "state_TBps": moved / us * 1e-6,
                }
            )
    return report
