# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures the host's part of a decode step and records the run.

Makes an image, runs gdnrt_step_time on it, and writes
runtime/bench/results/host-<name>.json.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import tempfile
from pathlib import Path

from bench_cpu import PRESET, ROOT, cpu_name, output


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build/release")
    parser.add_argument("--name", default=platform.machine(), help="of the results file")
    options = parser.parse_args()
    bin_dir = options.build.resolve() / "bin"
    with tempfile.TemporaryDirectory() as folder:
        image = Path(folder) / "layer.gdnk"
        output(bin_dir / "gdn-compile", "--preset", PRESET, "--target=native", "-o", image)
        rows = json.loads(output(bin_dir / "gdnrt_step_time", image, "--json"))
    report = {
        "device": f"{cpu_name()}, {os.cpu_count()} CPUs",
        "driver": platform.release(),
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "commit": output("git", "rev-parse", "--short", "HEAD").strip(),
        "versions": {},
        "load": list(os.getloadavg()),
        "ceilings": {},
        "rows": rows,
    }
    path = ROOT / f"runtime/bench/results/host-{options.name}.json"
    path.write_text(json.dumps(report, indent=1) + "\n")
    for row in rows:
        config = row["config"]
        print(
            f"{config['variant']:24} N {config['N']:3} layers {config['layers']:2}"
            f" {row['us']:7.2f} us ({row['us_min']:.2f} to {row['us_max']:.2f})"
        )
    print(f"written to {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
