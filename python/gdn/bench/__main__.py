# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command line of the benchmarks; see the package."""

import argparse
import json
import sys
from pathlib import Path

from . import (
    grid,
    packed_compile,
    packed_tables,
    prefill_tables,
    prologue_tables,
    step_tables,
    tables,
)
from .report import join, save


def heads(text: str) -> tuple[int, int]:
    """ "16,32": key heads and value heads."""
    keys, values = text.split(",")
    return int(keys), int(values)


def suites_of(report: dict) -> list[str]:
    """The suites with tables that a report has rows of."""
    return [suite for suite in tables.SUITES if tables.groups(report, suite)]


def refusal_of(options) -> str:
    """Why the arguments of `packed` cannot be measured; empty where they can."""
    if not options.image.exists():
        return f"image: no file {options.image}"
    for keys, values in options.heads:
        if keys < 1 or values < keys or values % keys:
            return f"heads: expected a multiple of the key heads, got {keys},{values}"
    try:
        grid.plan(options.heads, options.sets)
    except ValueError as error:
        return str(error)
    known = [name for names in packed_compile.PASSES for name in names]
    for name in options.peers:
        if name not in known:
            return f"peers: expected some of {', '.join(known)}, got {name}"
    return ""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser("gdn-bench")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="measure the decode, verify and commit entries of images")
    run.add_argument("images", nargs="+", type=Path)
    run.add_argument("--output", type=Path, help="write the report as JSON")
    run.add_argument("--commit", help="that the image is of; that of this tree by default")
    run.add_argument("--library", type=Path, help="libgdnrt, else the installed one")
    run.add_argument("--heads", type=heads, nargs="+", default=[(16, 32)])
    run.add_argument("--rows", type=int, nargs="*", default=[1, 8, 64, 256, 512])
    run.add_argument(
        "--verify-rows",
        type=int,
        nargs="+",
        default=[],
        help="of entries verify and commit, and of peers with the first heads",
    )
    run.add_argument("--verify-tokens", type=int, nargs="+", default=[4, 8])
    run.add_argument("--repeats", type=int, default=15)
    run.add_argument("--prototype", type=Path, help="times of the hand-written schedules, as CSV")
    run.add_argument(
        "--prototype-verify",
        type=Path,
        help="what the hand-written verify printed; ours is measured at its sizes, too, and of "
        "other sizes with the first heads alone",
    )
    run.add_argument("--seconds", type=float, default=1e9, help="begin no configuration after")
    run.add_argument("--peers", nargs="+", default=[], help="these alone; else all that are there")
    run.add_argument("--no-peers", action="store_true")
    run.add_argument("--conv-layout", choices=["SD", "DS"], default="SD")
    costs = commands.add_parser("host", help="measure loads, launches and compiles")
    costs.add_argument("images", nargs="*", type=Path)
    costs.add_argument("--output", type=Path, help="write the report as JSON")
    costs.add_argument("--commit", default="unknown", help="that the images are of")
    costs.add_argument("--library", type=Path, help="libgdnrt, else the installed one")
    costs.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    costs.add_argument("--repeats", type=int, default=15)
    costs.add_argument("--compile", nargs="+", default=[], help="arguments of gdn-compile, each")
    costs.add_argument("--gdn-compile", type=Path, help="else the installed one")
    fill = commands.add_parser("prefill", help="measure prefill over the grid, beside the peers")
    fill.add_argument("image", type=Path, help="of ready queries and keys, for any targets")
    fill.add_argument("--output", type=Path, required=True, help="write the report as JSON")
    fill.add_argument("--commit", help="that the image is of; that of this tree by default")
    fill.add_argument("--library", type=Path, help="libgdnrt, else the installed one")
    fill.add_argument("--heads", type=heads, nargs="+", default=[], help="these; else all")
    fill.add_argument("--sets", nargs="+", default=[], help="of lengths, these; else all")
    fill.add_argument(
        "--checked", nargs="*", default=list(grid.CHECKED), help="sets compared with float64"
    )
    fill.add_argument("--repeats", type=int, default=9)
    fill.add_argument("--seconds", type=float, default=1e9, help="begin no row after")
    fill.add_argument("--peers", nargs="+", default=[], help="these alone; else all that are there")
    fill.add_argument("--no-peers", action="store_true")
    fill.add_argument("--variants", action="store_true", help="also each variant, forced")
    fill.add_argument("--prototype", type=Path, help="what the hand-written prefill printed")
    fill.add_argument("--devices", nargs="+", default=[], help="GPUs, such as 0 1; else the first")
    fill.add_argument(
        "--together",
        action="store_true",
        help="let the processes of all heads compile at the same time, then measure in turn",
    )
    fill.add_argument("--resume", action="store_true", help="measure what the report has no row of")
    stages = commands.add_parser("prologue", help="measure the stages of a prefill, each alone")
    stages.add_argument("image", type=Path, help="of packed projections, for any targets")
    stages.add_argument("--output", type=Path, help="write the report as JSON")
    stages.add_argument("--commit", help="that the image is of; that of this tree by default")
    stages.add_argument("--library", type=Path, help="libgdnrt, else the installed one")
    stages.add_argument("--heads", type=heads, nargs="+", default=[(16, 32), (2, 8), (16, 64)])
    stages.add_argument("--tokens", type=int, nargs="+", default=[8192, 32768])
    stages.add_argument("--repeats", type=int, default=9)
    packed = commands.add_parser(
        "packed", help="measure prefill of projections beside the peers' chains of kernels"
    )
    packed.add_argument("image", type=Path, help="of packed projections")
    packed.add_argument("--output", type=Path, required=True, help="write the report as JSON")
    packed.add_argument("--commit", help="that the image is of; that of this tree by default")
    packed.add_argument("--library", type=Path, help="libgdnrt, else the installed one")
    packed.add_argument("--heads", type=heads, nargs="+", default=list(packed_compile.HEADS))
    packed.add_argument("--sets", nargs="+", default=list(packed_compile.SETS), help="of lengths")
    packed.add_argument("--repeats", type=int, default=9)
    packed.add_argument("--seconds", type=float, default=1e9, help="begin no row after")
    packed.add_argument(
        "--peers", nargs="+", default=[], help="these alone; else all that are there"
    )
    packed.add_argument("--no-peers", action="store_true")
    packed.add_argument("--variants", action="store_true", help="also each variant, forced")
    packed.add_argument("--stages", action="store_true", help="also each stage, with a profiler")
    caches = commands.add_parser(
        "prefix-cache", help="simulate policies of prefix caches on traces"
    )
    caches.add_argument(
        "--output", type=Path, help='write the key "traces" of this file, or "levels"'
    )
    caches.add_argument("--levels", action="store_true", help="with states on the host")
    caches.add_argument(
        "--results", type=Path, required=True, help="folder of recorded kernel times"
    )
    caches.add_argument("--traces", nargs="+", default=[], help="these; else all")
    caches.add_argument("--seeds", type=int, nargs="+", default=list(range(1, 11)))
    caches.add_argument("--seconds", type=float, default=7200.0, help="that requests arrive")
    caches.add_argument("--workers", type=int, default=1, help="processes")
    joined = commands.add_parser("join", help="make one report of several of one device")
    joined.add_argument("parts", type=Path, nargs="+", help="reports, and rows alone")
    joined.add_argument("--output", type=Path, required=True, help="write the report as JSON")
    table = commands.add_parser("table", help="print a report as tables")
    table.add_argument("report", type=Path)
    plot = commands.add_parser("plot", help="draw reports in one picture")
    plot.add_argument("reports", type=Path, nargs="+")
    plot.add_argument("--output", type=Path, required=True, help="FILE.svg")
    options = parser.parse_args(arguments)
    if options.command == "run":
        from .measure import measure

        report = measure(options)
        print(tables.markdown(report))
        print("\n".join(report.get("failed", [])))
        return 1 if "failed" in report else 0
    if options.command == "prefill":
        from . import prefill_run
        from .measure import describe

        report = prefill_run.measure(options, lambda: describe(options.commit))
        print(prefill_tables.markdown(report))
        return 0
    if options.command == "prologue":
        from . import prologue

        report = prologue.measure(options)
        if options.output:
            save(options.output, report)
        print(prologue_tables.markdown(report))
        return 0
    if options.command == "packed":
        if refusal := refusal_of(options):
            parser.error(refusal)
        from . import packed as packed_run

        print(packed_tables.markdown(packed_run.measure(options)))
        return 0
    if options.command == "host":
        from . import costs

        report = costs.measure(options)
        if options.output:
            save(options.output, report)
        print(tables.host(report))
        late = costs.failures(report)
        print("\n".join(late))
        return 1 if late else 0
    if options.command == "prefix-cache":
        from .prefix_cache import level_study, study, traces
        from .prefix_cache import tables as cache_tables

        if unknown := set(options.traces) - set(traces.NAMES):
            parser.error(f"traces: expected some of {', '.join(traces.NAMES)}, got {unknown.pop()}")
        names = options.traces or traces.NAMES
        arguments = (options.results, names, options.seeds, options.seconds, options.workers)
        key = "levels" if options.levels else "traces"
        record = (level_study.levels if options.levels else study.study)(*arguments)
        if options.output:
            study.save(options.output, record, key)
        print(getattr(cache_tables, key)(record))
        return 0
    if options.command == "join":
        try:
            save(options.output, join([json.loads(path.read_text()) for path in options.parts]))
        except ValueError as error:
            parser.error(str(error))
        return 0
    if options.command == "plot":
        from . import drawing, pictures

        read = (json.loads(path.read_text()) for path in options.reports)
        if not (picture := pictures.of_reports(read)):
            parser.error("no rows of decode, verify or prefill, with others beside them")
        options.output.write_text(drawing.svg(picture))
        return 0
    report = json.loads(options.report.read_text())
    print("\n".join(tables.markdown(report, suite) for suite in suites_of(report)))
    print(prefill_tables.markdown(report))
    print(packed_tables.markdown(report))
    print(prologue_tables.markdown(report))
    print(step_tables.markdown(report))
    print(tables.host(report))
    return 0


if __name__ == "__main__":
    sys.exit(main())
