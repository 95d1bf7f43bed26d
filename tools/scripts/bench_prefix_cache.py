# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures the host's part of a prefix cache and records the run.

Runs gdnrt_prefix_cache_bench, and writes the rows under the key "host" of
runtime/bench/results/prefix-cache.json. What others measured stays in there. With
--runs=N each row is that of the run in which it was fastest: most of a match is waiting
for memory, whose caches others may use meanwhile.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
from pathlib import Path

from bench_cpu import ROOT, cpu_name, output

RECORD = ROOT / "runtime/bench/results/prefix-cache.json"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build/release")
    parser.add_argument("--runs", type=int, default=1, help="the best of so many")
    options = parser.parse_args()
    if options.runs < 1:
        parser.error(f"--runs: expected 1 or more, got {options.runs}")
    program = options.build.resolve() / "bin/gdnrt_prefix_cache_bench"
    runs = [json.loads(output(program, "--json")) for _ in range(options.runs)]
    rows = [min(row, key=lambda each: each["us"]) for row in zip(*runs, strict=True)]
    record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    record["host"] = {
        "device": f"{cpu_name()}, {os.cpu_count()} CPUs",
        "driver": platform.release(),
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "commit": output("git", "rev-parse", "--short", "HEAD").strip(),
        "load": list(os.getloadavg()),
        "best_of_runs": options.runs,
        "rows": rows,
    }
    RECORD.write_text(json.dumps(record, indent=1) + "\n")
    for row in rows:
        config = row["config"]
        print(
            f"{config['variant']:6} {config['nodes']:6} nodes, pages of {config['page_tokens']:2},"
            f" {config['tokens']}: {row['us']:6.2f} us ({row['us_min']:.2f} to {row['us_p99']:.2f})"
        )
    print(f"written to {RECORD.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
