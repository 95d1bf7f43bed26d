# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures gdn on this CPU, records the run, and judges it.

Makes the images, runs gdnrt_cpu_bench with all measurements taking turns, and
writes runtime/bench/results/cpu-<name>.json. Prints a table of ratios; exits
with 1 if one misses its target. Ratios are of the fastest of many short runs,
which is what another program's load disturbs least.
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HEADS = {"Hk": 16, "Hv": 32, "dk": 128, "dv": 128}
PRESET = "qwen3.5-4b"
COMPILES = 3


@dataclass
class Target:
    """A claim: `value` is at least (or at most) `limit`; no claim without one."""

    what: str
    value: float
    limit: float | None = None
    at_least: bool = True
    unit: str = ""

    @property
    def holds(self) -> bool:
        if self.limit is None:
            return True
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    def line(self) -> str:
        text = f"{self.what:55} {self.value:8.3f} {self.unit:2}"
        if self.limit is None:
            return text
        sign = ">=" if self.at_least else "<="
        return f"{text} {sign} {self.limit:<4g} {'PASS' if self.holds else 'FAIL'}"


def output(*command: str | Path) -> str:
    return subprocess.run(
        [str(c) for c in command], cwd=ROOT, check=True, text=True, stdout=subprocess.PIPE
    ).stdout


def cpu_name() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def compile_images(bin_dir: Path, folder: Path) -> list[float]:
    """Makes layer.gdnk and rule.gdnk; seconds for one model and one target."""
    tool = bin_dir / "gdn-compile"
    seconds = []
    for _ in range(COMPILES):
        start = time.monotonic()
        output(tool, "--preset", PRESET, "--target=native", "-o", folder / "one.gdnk")
        seconds.append(time.monotonic() - start)
    layer, rule = folder / "layer.gdnk", folder / "rule.gdnk"
    output(tool, "--preset", PRESET, "--target=native", "--state=f32,bf16", "-o", layer)
    source = ROOT / "runtime/bench/delta_rule.mlir"
    output(tool, source, "--target=native", "-o", rule)
    return sorted(seconds)


def measure(bin_dir: Path, folder: Path, repetitions: int) -> tuple[dict, dict]:
    """All measurements by name, and the context of the run."""
    report = folder / "report.json"
    output(
        bin_dir / "gdnrt_cpu_bench",
        folder / "layer.gdnk",
        folder / "rule.gdnk",
        "--benchmark_min_time=0.1",
        f"--benchmark_repetitions={repetitions}",
        "--benchmark_enable_random_interleaving=true",
        f"--benchmark_out={report}",
        "--benchmark_out_format=json",
    )
    data = json.loads(report.read_text())
    runs: dict[str, list[dict]] = {}
    for run in data["benchmarks"]:
        if run["run_type"] == "iteration":
            runs.setdefault(run["run_name"].removesuffix("/real_time"), []).append(run)
    merged = {}
    for name, parts in runs.items():
        medians = sorted(p["us"] for p in parts)
        merged[name] = parts[0] | {
            "us": medians[len(medians) // 2],
            "us_min": min(p["us_min"] for p in parts),
            "us_max": max(p["us_max"] for p in parts),
        }
    return merged, data["context"]


def errors(bin_dir: Path, image: Path, entry: str, generate: str) -> dict[str, float]:
    """Relative errors of an entry against the float64 reference, by tensor."""
    made_up = f"--generate={generate}"
    text = output(bin_dir / "gdn-run", image, f"--entry={entry}", made_up, "--check", "--json")
    return {c["tensor"]: c["relative_rmse"] for c in json.loads(text)["comparisons"]}


def judge(m: dict, compile_s: float) -> list[Target]:
    def rate(name: str, of: str) -> float:
        return m[name][of] / m[name]["us_min"]

    def scaling(name: str) -> float:
        one, two = m[f"{name}/1"], m[f"{name}/2"]
        work = two.get("flops", two.get("bytes")) / one.get("flops", one.get("bytes"))
        return work * one["us_min"] / two["us_min"]

    targets = []
    for n in (1, 2):
        for state in ("f32", "bf16"):
            ratio = rate(f"decode_{state}/{n}", "bytes") / rate(f"stream/{n}", "bytes")
            limit = 0.6 if state == "f32" else None
            what = f"decode, {state} states, {n} threads: of in-place bandwidth"
            targets.append(Target(what, ratio, limit))
    sgemm = rate("sgemm/1", "flops")
    for name in ("rule", "layer"):
        ratio = rate(f"{name}/1", "flops") / sgemm
        targets.append(Target(f"{name}: GFLOP/s, of sgemm's at 128^3", ratio, 0.3))
    # A baseline that found no moment with both CPUs free shows as less than 2.
    for name in ("sgemm", "stream", "rule", "layer", "decode_f32"):
        targets.append(Target(f"{name}: scaling to 2 threads", scaling(name)))
    for name in ("rule", "layer"):
        ratio = scaling(name) / scaling("sgemm")
        targets.append(Target(f"{name}: scaling to 2 threads, of sgemm's", ratio, 0.9))
    ratio = scaling("decode_f32") / scaling("stream")
    targets.append(Target("decode: scaling to 2 threads, of in-place update's", ratio, 0.9))
    targets.append(Target("compile one model, one target", compile_s, 5, False, "s"))
    load_ms = m["load_image"]["us"] / 1000
    targets.append(Target("load an image", load_ms, 5, False, "ms"))
    for step in ("bind", "rebind_slots", "launch"):
        targets.append(Target(f"host, decode: {step}", m[step]["us_min"], None, False, "us"))
    return targets


def rows(m: dict, compiles: list[float], error: dict[str, dict[str, float]]) -> list[dict]:
    result = []
    in_place = m["stream/1"]["bytes"] / m["stream/1"]["us_min"]
    sgemm = m["sgemm/1"]["flops"] / m["sgemm/1"]["us_min"]
    for name, run in sorted(m.items()):
        kind, _, threads = name.partition("/")
        suite, impl = ("cpu", "gdn") if threads else ("host", "gdn")
        impl = {"stream": "stream", "sgemm": "openblas"}.get(kind, impl)
        config: dict = {"variant": kind}
        if threads:
            config["threads"] = int(threads)
        row = {"suite": suite, "impl": impl, "config": config}
        row |= {key: round(run[key], 3) for key in ("us", "us_min", "us_max")}
        if impl == "gdn" and threads:
            config |= HEADS | {"io": "bf16"}
            if kind.startswith("decode"):
                config |= {"N": run["rows"], "T": run["rows"]}
                config["state"] = kind.removeprefix("decode_")
                row["limit_us"] = round(run["bytes"] / in_place, 3)
            else:
                config |= {"N": 1, "T": run["tokens"], "state": "f32"}
                row["limit_us"] = round(run["flops"] / sgemm, 3)
            found = error.get(kind, {})
            row["error_o"] = found.get("out", found.get("core"))
            row["error_state"] = found.get("state_pool")
        result.append(row)
    us = [round(s * 1e6) for s in compiles]
    middle = us[len(us) // 2]
    spread = {"us": middle, "us_min": us[0], "us_max": us[-1]}
    config = {"variant": PRESET, "targets": 1}
    return [*result, {"suite": "compile", "impl": "gdn", "config": config} | spread]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build/release")
    parser.add_argument("--name", default=platform.machine(), help="of the results file")
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--dry-run", action="store_true", help="write no results file")
    parser.add_argument("--smoke", action="store_true", help="only that it runs: judge nothing")
    options = parser.parse_args()
    bin_dir = options.build.resolve() / "bin"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        compiles = compile_images(bin_dir, folder)
        layer, rule = folder / "layer.gdnk", folder / "rule.gdnk"
        sizes = "Hk=2,Hv=4"
        error = {
            "decode_f32": errors(bin_dir, layer, "decode_bf16_f32", f"{sizes},rows=3"),
            "decode_bf16": errors(bin_dir, layer, "decode_bf16_bf16", f"{sizes},rows=3"),
            "layer": errors(bin_dir, layer, "prefill_bf16_f32", f"{sizes},lens=67"),
            # Keys of length 1 or so, which the layer gets from its norm.
            "rule": errors(bin_dir, rule, "prefill", f"{sizes},lens=67,scale=0.08"),
        }
        measured, context = measure(bin_dir, folder, options.repetitions)
    stream, sgemm = measured["stream/1"], measured["sgemm/1"]
    targets = judge(measured, compiles[0])
    record = {
        "device": f"{cpu_name()}, {context['num_cpus']} CPUs",
        "driver": platform.release(),
        "date": datetime.date.today().isoformat(),
        "commit": output("git", "describe", "--always", "--dirty").strip(),
        "versions": {"gdnrt": context["gdnrt"], "openblas": context["openblas"]},
        "load": context["load_avg"],
        "ceilings": {
            "inplace_TBps": round(stream["bytes"] / stream["us_min"] / 1e6, 4),
            "matmul_TFLOPs": round(sgemm["flops"] / sgemm["us_min"] / 1e6, 4),
        },
        "rows": rows(measured, compiles, error),
        "targets": [vars(t) | {"holds": t.holds} for t in targets],
    }
    if not options.dry_run and not options.smoke:
        path = ROOT / f"runtime/bench/results/cpu-{options.name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(record, indent=1) + "\n")
        print(f"wrote {path.relative_to(ROOT)}")
    for target in targets:
        print(target.line())
    return 0 if options.smoke or all(t.holds for t in targets) else 1


if __name__ == "__main__":
    sys.exit(main())
