# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures the host's part of a prefix cache and records the run.

Runs gdnrt_prefix_cache_bench, and writes the rows under the key "host" of
runtime/bench/results/prefix-cache.json. What others measured stays in there.
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
    options = parser.parse_args()
    rows = json.loads(output(options.build.resolve() / "bin/gdnrt_prefix_cache_bench", "--json"))
    record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    record["host"] = {
        "device": f"{cpu_name()}, {os.cpu_count()} CPUs",
        "driver": platform.release(),
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "commit": output("git", "rev-parse", "--short", "HEAD").strip(),
        "load": list(os.getloadavg()),
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
