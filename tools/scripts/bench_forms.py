# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures the two forms of the delta rule on this CPU, and the rule between them.

For each pair of head dimensions, compiles runtime/bench/delta_rule.mlir without
chunks, with nothing but chunks, and as the target's rule has it, and times a row
of every length on one thread beside OpenBLAS at a chunk's products, all taking
turns. Writes runtime/bench/results/cpu-forms-<name>.json and judges: the rate of
the chunk form, and how much slower the rule's choice is than the better form.
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import re
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from bench_cpu import ROOT, Target, cpu_name, errors, output

CHUNK = 64
HEADS = {"Hk": 1, "Hv": 2}
FORMS = {"tokens": -1, "chunks": 1, "chosen": 0}
SHAPES = ["128x128", "64x64", "96x192", "256x256", "32x32"]
RATE = 0.4  # of sgemm's
LOSS = 1.05  # against the better form


@dataclass
class Shape:
    dk: int
    dv: int

    def source(self) -> str:
        """delta_rule.mlir, which has heads of 128, with heads of this shape."""
        text = (ROOT / "runtime/bench/delta_rule.mlir").read_text()
        io = "tensor<?x?x128xbf16>"
        # First by letters, or a 128 that is meant would be taken for one that is not.
        text = text.replace("128x128xf32", "VxKxf32").replace('"128", "128"]', '"V", "K"]')
        text = text.replace(f"{io}, {io}, {io}", f"{io}, {io}, {io}".replace("128", "K", 2))
        text = re.sub(r'(%[qk]: .*)128(.*)"128"', r'\1K\2"K"', text)
        text = text.replace("128", "V")
        text = re.sub(r'(?<=[x"])K(?=[x"])', str(self.dk), text)
        return re.sub(r'(?<=[x"<])V(?=[x"])', str(self.dv), text)

    @property
    def flops(self) -> float:
        """What a chunk of a value head needs: its seven products."""
        return 2.0 * CHUNK * (3 * self.dk * self.dv + 2 * CHUNK * (self.dk + self.dv))

    def __str__(self) -> str:
        return f"{self.dk}x{self.dv}"


def compile_forms(bin_dir: Path, folder: Path, shape: Shape, target: str) -> list[Path]:
    source = folder / "rule.mlir"
    source.write_text(shape.source())
    images = []
    for form, chunk_from in FORMS.items():
        images.append(folder / f"{form}.gdnk")
        flags = (f"--target={target}", f"--chunk-from={chunk_from}")
        output(bin_dir / "gdn-compile", source, *flags, "-o", images[-1])
    return images


def measure(bin_dir: Path, images: list[Path], shape: Shape, options) -> tuple[dict, dict]:
    """The fastest of all repetitions, by `form/tokens`; and the run's context."""
    report = images[0].with_suffix(".json")
    output(
        bin_dir / "gdnrt_form_bench",
        *images,
        shape.dk,
        shape.dv,
        "--benchmark_min_time=0.02",
        f"--benchmark_repetitions={options.repetitions}",
        f"--benchmark_filter={options.filter}",
        "--benchmark_enable_random_interleaving=true",
        f"--benchmark_out={report}",
        "--benchmark_out_format=json",
    )
    data = json.loads(report.read_text())
    merged: dict[str, dict] = {}
    for run in data["benchmarks"]:
        if run["run_type"] != "iteration":
            continue
        name = re.sub(r"/(real_time|repeats:\d+)", "", run["run_name"])
        known = merged.setdefault(name, run | {"medians": []})
        known["medians"].append(run["us"])
        known["us_min"] = min(known["us_min"], run["us_min"])
        known["us_max"] = max(known["us_max"], run["us_max"])
    for run in merged.values():
        medians = sorted(run["medians"])
        run["us"] = medians[len(medians) // 2]
    return merged, data["context"]


def lengths(m: dict) -> list[int]:
    return sorted(int(name.split("/")[1]) for name in m if name.startswith("chosen/"))


def rate(m: dict, form: str, shape: Shape) -> float:
    """GFLOP/s of the longest row of whole chunks, as a part of sgemm's."""
    tokens = max(t for t in lengths(m) if t % CHUNK == 0)
    work = shape.flops * tokens / CHUNK * HEADS["Hv"]
    return work / m[f"{form}/{tokens}"]["us_min"] * m["sgemm"]["us_min"] / m["sgemm"]["flops"]


def losses(m: dict) -> dict[int, float]:
    """By length, the time of the rule's choice over that of the better form."""
    us = {name: run["us_min"] for name, run in m.items()}
    return {t: us[f"chosen/{t}"] / min(us[f"tokens/{t}"], us[f"chunks/{t}"]) for t in lengths(m)}


def judge(m: dict, shape: Shape) -> list[Target]:
    loss = losses(m)
    worst = max(loss, key=lambda t: loss[t])
    return [
        Target(f"{shape}: chunk form, of sgemm's rate", rate(m, "chunks", shape), RATE),
        Target(f"{shape}: rule, worst over the better form (T={worst})", loss[worst], LOSS, False),
    ]


def rows(m: dict, shape: Shape, error: dict[str, dict[str, float]]) -> list[dict]:
    result = []
    for name, run in sorted(m.items()):
        form, _, tokens = name.partition("/")
        config: dict = {"variant": form, "threads": 1, "dk": shape.dk, "dv": shape.dv}
        row = {"suite": "cpu", "impl": "gdn" if tokens else "openblas", "config": config}
        row |= {key: round(run[key], 3) for key in ("us", "us_min", "us_max")}
        if tokens:
            config |= HEADS | {"N": 1, "T": int(tokens), "io": "bf16", "state": "f32"}
            row["error_o"] = error[form].get("core")
            row["error_state"] = error[form].get("state_pool")
        else:
            config |= {"M": CHUNK, "products": run["flops"] / (2 * CHUNK * shape.dk * shape.dv)}
        result.append(row)
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build/release")
    parser.add_argument("--name", default=platform.machine(), help="of the results file")
    parser.add_argument("--target", default="native", help="of the code")
    parser.add_argument("--shapes", nargs="*", default=SHAPES, metavar="DKxDV")
    parser.add_argument("--repetitions", type=int, default=12)
    parser.add_argument("--filter", default=".", help="of the measurements, by name")
    parser.add_argument("--dry-run", action="store_true", help="write no results file")
    parser.add_argument("--smoke", action="store_true", help="only that it runs: judge nothing")
    options = parser.parse_args()
    bin_dir = options.build.resolve() / "bin"
    all_rows: list[dict] = []
    targets: list[Target] = []
    for text in options.shapes:
        shape = Shape(*map(int, text.split("x")))
        with tempfile.TemporaryDirectory() as name:
            images = compile_forms(bin_dir, Path(name), shape, options.target)
            # Keys of length 1 or so, which a layer gets from its norm.
            made_up = f"Hk=2,Hv=4,lens=67,scale={(1 / shape.dk) ** 0.5:.3f}"
            error = {i.stem: errors(bin_dir, i, "prefill", made_up) for i in images}
            measured, context = measure(bin_dir, images, shape, options)
        all_rows += rows(measured, shape, error)
        targets += judge(measured, shape)
        for target in targets[-2:]:
            print(target.line(), flush=True)
    record = {
        "device": f"{cpu_name()}, {context['num_cpus']} CPUs",
        "driver": platform.release(),
        "date": datetime.date.today().isoformat(),
        "commit": output("git", "describe", "--always", "--dirty").strip(),
        "versions": {"gdnrt": context["gdnrt"], "openblas": context["openblas"]},
        "load": context["load_avg"],
        "target": options.target,
        "rows": all_rows,
        "targets": [vars(t) | {"holds": t.holds} for t in targets],
    }
    if not options.dry_run and not options.smoke:
        path = ROOT / f"runtime/bench/results/cpu-forms-{options.name}.json"
        path.write_text(json.dumps(record, indent=1) + "\n")
        print(f"wrote {path.relative_to(ROOT)}")
    return 0 if options.smoke or all(t.holds for t in targets) else 1


if __name__ == "__main__":
    sys.exit(main())
