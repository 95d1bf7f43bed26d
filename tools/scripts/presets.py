# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Records which entries each preset has on which target, by compiling all of them.

Presets whose entries are the same program are compiled once. On a GPU an entry counts as
assembled if ptxas has made code of it, on this CPU it also runs, against the float64 reference.
Whether a kernel for a GPU has run anywhere is looked up by its digest: in kernels.lock and in
the records of gdn.numerics_check. Writes docs/generated/presets.json, of which
tools/scripts/docs.py makes a page and the table of README.md. What is not compiled this time
(--targets, --io, --engines) keeps what was recorded before.

./check --full compiles all that is recorded, and fails where it finds something else (--check).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RECORD = ROOT / "docs/generated/presets.json"
LOCK = ROOT / "kernels.lock"
CPUS = ["x86-64-v3", "x86-64-v4"]
GPUS = ["sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_103a", "sm_120a"]
TARGETS = [*CPUS, *GPUS]
IOS = ["bf16", "f16", "f32"]
ENGINES = ["vllm", "sglang", "pymllm", "c"]
ENTRIES = ["prefill", "decode", "copy_slots", "zero_slots"]
# Those of tables; zero_slots is as copy_slots.
SHOWN = ["prefill", "decode", "copy_slots"]
# What an entry is run with on this CPU.
CALLS = {"prefill": "lens=70:1,Hk=1,Hv=2", "decode": "rows=3,Hk=1,Hv=2"}
_LEFT_OUT = re.compile(r"warning: entry '(\w+)' has no schedule for \S+ and is left out(?:: (.*))?")
_SPILLS = re.compile(r"'(\w+)' expects no spilled registers on \S+, but got (\d+) bytes")
_REMARK = re.compile(r"remark: (a state of .*)")
_VARIANT = re.compile(r"warning: '(\w+)' on \S+ (spills \d+ bytes of registers|is slow: \(\w+\))")
# Records of kernels that ran, with a digest for each.
RAN = [LOCK, *sorted((ROOT / "docs/generated").glob("numerics-*.json"))]

Row = dict[str, object]


class Compiler:
    """gdn-compile through a cache of images."""

    def __init__(self, build_dir: Path, cache: str):
        self.program = [build_dir / "bin/gdn-compile", *([f"--cache={cache}"] if cache else [])]
        self.run_program = build_dir / "bin/gdn-run"

    def __call__(self, *options: object) -> subprocess.CompletedProcess[str]:
        command = [*self.program, *map(str, options)]
        return subprocess.run(command, text=True, capture_output=True)

    def presets(self) -> list[str]:
        (names,) = re.findall(r"--preset=<name> .*?: (.*)$", self("--help").stdout, re.MULTILINE)
        return names.split(", ")

    def program_of(self, preset: str, *options: str) -> str:
        """The entries of a preset without what only names it; empty if it is refused."""
        done = self(f"--preset={preset}", *options, "--emit=gdn")
        return re.sub(r'model_type = "\w+"|norm_eps = "[^"]+"', "", done.stdout)

    def groups(self, *options: str) -> list[list[str]]:
        """Presets by program, in their order."""
        found: dict[str, list[str]] = {}
        for preset in self.presets():
            text = self.program_of(preset, *options)
            found.setdefault(text or preset, []).append(preset)
        return list(found.values())


def on_gpu(compile_: Compiler, options: list[str]) -> Row:
    """Digests of the entries that have code, and why others have none."""
    report = compile_(*options, "--emit=report")
    because = "; ".join(sorted(set(_REMARK.findall(report.stderr)))) or "no schedule"
    no = {name: reason or because for name, reason in _LEFT_OUT.findall(report.stderr)}
    left_out = dict(_VARIANT.findall(report.stderr))
    if report.returncode:
        if not no:
            return {"entries": {}, "no": {"": message(report)}}
        return {"entries": {}, "no": no, "variants": left_out}
    row = {"entries": digests_of(compile_, options), "no": no, "variants": left_out}
    if "--io=bf16" in options and not any(o.startswith("--for=") for o in options):
        # Digests depend on what else is in a module; kernels.lock has some of such images.
        others = [o.replace("--state=f32", "--state=f32,bf16") for o in options]
        found = digests_of(compile_, others)
        row["beside_bf16"] = {
            entry: found[f"{entry}_bf16_f32"]
            for entry in row["entries"]
            if f"{entry}_bf16_f32" in found
        }
    return row


def digests_of(compile_: Compiler, options: list[str]) -> dict[str, str]:
    """By entry."""
    lines = [line.split() for line in compile_(*options, "--emit=digest").stdout.splitlines()]
    return {entry: digest for entry, _, digest in lines}


def message(done: subprocess.CompletedProcess[str]) -> str:
    """The last error, without the name of the preset or the tool."""
    errors = re.findall(r"error: (?:[\w.-]+: )?(.*)", done.stderr)
    return errors[-1] if errors else f"exit code {done.returncode}"


def on_cpu(compile_: Compiler, options: list[str]) -> Row:
    """The entries, with what those that ran here have given."""
    with tempfile.TemporaryDirectory() as folder:
        image = Path(folder) / "layer.gdnk"
        done = compile_(*options, "-o", image)
        if done.returncode:
            return {"entries": {}, "no": {"": message(done)}}
        entries, no = {}, {}
        for entry in ENTRIES:
            if entry not in CALLS:
                entries[entry] = ""
                continue
            call = ["--entry", entry, "--generate", CALLS[entry], "--check"]
            ran = subprocess.run(
                [compile_.run_program, image, *call], text=True, capture_output=True
            )
            if ran.returncode:
                no[entry] = message(ran)
            else:
                entries[entry] = "ran"
        return {"entries": entries, "no": no}


def record(
    compile_: Compiler,
    targets: list[str],
    ios: list[str],
    engines: list[str],
    only: set[tuple] | None = None,
) -> list[Row]:
    """A row for each program, type, target and engine, or for those of `only`; the default
    entries are for no engine."""
    tasks: list[tuple[Row, list[str]]] = []
    for engine in ["", *engines]:
        flags = [f"--for={engine}"] if engine else []
        for io in ios if not engine else [io for io in ios if io == "bf16"]:
            for presets in compile_.groups(f"--io={io}", *flags):
                for target in targets:
                    if only is not None and (engine, io, target) not in only:
                        continue
                    where: Row = {"presets": presets, "engine": engine, "io": io, "target": target}
                    options = [f"--preset={presets[0]}", f"--io={io}", "--state=f32", *flags]
                    tasks.append((where, [*options, f"--target={target}"]))

    def run(task: tuple[Row, list[str]]) -> Row:
        where, options = task
        found = (on_gpu if where["target"] in GPUS else on_cpu)(compile_, options)
        print(*(where[k] for k in ("engine", "io", "target")), where["presets"][0], flush=True)
        return where | {k: v for k, v in found.items() if v or k == "entries"}

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(run, tasks))


def key_of(row: Row) -> tuple:
    return row["engine"], row["io"], row["target"], row["presets"][0]


def merged(old: list[Row], new: list[Row]) -> list[Row]:
    """The new rows, and the old ones of what was not compiled this time."""
    done = {(row["engine"], row["io"], row["target"]) for row in new}
    kept = [row for row in old if (row["engine"], row["io"], row["target"]) not in done]

    def order(row: Row) -> tuple:
        engine = ["", *ENGINES].index(row["engine"])
        return engine, IOS.index(row["io"]), row["presets"][0], TARGETS.index(row["target"])

    return sorted([*kept, *new], key=order)


def states_of(rows: list[Row]) -> dict[tuple, dict[str, set[str]]]:
    """By program, engine, type, target and entry: whether it is there, which does not change
    with the code that is made of it."""
    return {
        key_of(row): {"entries": set(row["entries"]), "no": set(row.get("no", {}))} for row in rows
    }


# The page and the table.


def devices() -> dict[str, str]:
    """By digest, where a kernel has run."""
    ran: dict[str, str] = {}
    for path in RAN:
        content = json.loads(path.read_text())
        rows = content if isinstance(content, list) else content["rows"]
        device = "" if isinstance(content, list) else content.get("device", "")
        for row in rows:
            if row.get("digest") and row.get("state") not in ("assembled", "unverified"):
                if row.get("failures"):
                    continue
                name = str(row.get("device") or device).removeprefix("NVIDIA ").split()
                ran.setdefault(row["digest"], name[0] if name else "a GPU")
    return ran


def cell(row: Row | None, entry: str, ran: dict[str, str]) -> str:
    """What a table says of an entry on a target."""
    if row is None:
        return ""
    if entry not in row["entries"]:
        return "no"
    if row["target"] in CPUS:
        return "runs"
    digests = [row["entries"][entry], row.get("beside_bf16", {}).get(entry)]
    device = next((ran[digest] for digest in digests if digest in ran), None)
    return f"runs ({device})" if device else "assembled"


def lines_of(rows: list[Row], entries: list[str], targets: list[str]) -> dict[tuple, list[str]]:
    """The cells of each line: by entry and presets and types that have the same cells."""
    ran = devices()
    cells: dict[tuple, dict[tuple, list[str]]] = {}
    for row in rows:
        if row["engine"]:
            continue
        for entry in entries:
            line = cells.setdefault((tuple(row["presets"]), entry, row["io"]), {})
            line[row["target"]] = cell(row, entry, ran)
    by_cells: dict[tuple, list[str]] = {}
    for (presets, entry, io), line in cells.items():
        content = tuple(line.get(target, "") for target in targets)
        by_cells.setdefault((presets, entry, content), []).append(io)
    return by_cells


def targets_of(rows: list[Row]) -> list[str]:
    """The targets of default entries."""
    found = {row["target"] for row in rows if not row["engine"]}
    return [target for target in TARGETS if target in found]


def label_of(entry: str) -> str:
    return "`copy_slots`, `zero_slots`" if entry == "copy_slots" else f"`{entry}`"


def heading(columns: list[str], targets: list[str]) -> list[str]:
    names = [*columns, *(f"`{target}`" for target in targets)]
    return [f"| {' | '.join(names)} |", "|" + "---|" * len(names)]


def summary(rows: list[Row]) -> list[str]:
    """Entries and types by target, with numbers of presets where they differ: the table of
    README.md."""
    ran, targets = devices(), targets_of(rows)
    counts: dict[tuple, dict[str, int]] = {}
    for row in rows:
        for entry in SHOWN if not row["engine"] else ():
            found = counts.setdefault((entry, row["io"], row["target"]), {})
            state = cell(row, entry, ran)
            found[state] = found.get(state, 0) + len(row["presets"])
    lines: dict[tuple, list[str]] = {}
    for entry in SHOWN:
        for io in IOS:
            content = []
            for target in targets:
                found = sorted(counts.get((entry, io, target), {}).items(), reverse=True)
                several = len(found) > 1
                content.append(", ".join(f"{s}: {n}" if several else s for s, n in found))
            lines.setdefault((entry, *content), []).append(io)
    return [
        *heading(["entry", "inputs and outputs"], targets),
        *(
            f"| {' | '.join([label_of(entry), ', '.join(ios), *content])} |"
            for (entry, *content), ios in lines.items()
        ),
    ]


def table(rows: list[Row]) -> list[str]:
    """Presets, entries and types by target."""
    targets = targets_of(rows)
    found: dict[tuple, list[tuple]] = {}
    for (presets, entry, content), ios in lines_of(rows, SHOWN, targets).items():
        found.setdefault((entry, tuple(ios), content), []).append(presets)
    lines = heading(["entry", "inputs and outputs", "presets"], targets)
    every = {preset for row in rows if not row["engine"] for preset in row["presets"]}
    for (entry, ios, content), groups in sorted(
        found.items(), key=lambda item: (SHOWN.index(item[0][0]), IOS.index(item[0][1][0]))
    ):
        presets = [preset for group in groups for preset in group]
        names = "all" if set(presets) == every else ", ".join(short(presets))
        lines.append(f"| {' | '.join([label_of(entry), ', '.join(ios), names, *content])} |")
    return lines


def short(presets: list[str]) -> list[str]:
    """Names of presets; many of one family under its name."""
    families: dict[str, list[str]] = {}
    for preset in presets:
        families.setdefault(re.match(r"[a-z]+[\d.]*", preset)[0], []).append(preset)
    return [
        f"`{members[0]}`" if len(members) == 1 else f"{family} ({len(members)})"
        for family, members in families.items()
    ]


def engine_table(rows: list[Row]) -> list[str]:
    """Presets by engine and target."""
    targets = [t for t in TARGETS if any(r["engine"] and r["target"] == t for r in rows)]
    if not targets:
        return []
    lines = [
        f"| `--for` | presets | {' | '.join(f'`{t}`' for t in targets)} |",
        "|---|---|" + "---|" * len(targets),
    ]
    notes: dict[str, int] = {}
    by_line: dict[tuple, dict[str, Row]] = {}
    for row in rows:
        if row["engine"]:
            by_line.setdefault((row["engine"], tuple(row["presets"])), {})[row["target"]] = row
    for (engine, presets), found in by_line.items():
        cells = []
        for target in targets:
            row = found.get(target)
            if row is None:
                cells.append("")
                continue
            reasons = why(row)
            gone = [
                f"without `{name}`, which {fault}"
                for name, fault in row.get("variants", {}).items()
            ]
            numbers = [notes.setdefault(text, len(notes) + 1) for text in [*reasons, *gone]]
            marks = ", ".join(f"({n})" for n in numbers)
            cells.append(f"{'no' if reasons else 'yes'} {marks}".strip())
        lines.append(f"| `{engine}` | {', '.join(short(list(presets)))} | {' | '.join(cells)} |")
    if notes:
        lines += ["", *(f"{number}. {text}" for text, number in notes.items())]
    return lines


def why(row: Row) -> list[str]:
    """The reasons of a row, as the page has them."""
    reasons = []
    for entry, reason in row.get("no", {}).items():
        spills = _SPILLS.match(reason)
        text = f"`{spills[1]}` spills {spills[2]} bytes of registers" if spills else reason
        reasons.append(f"`{entry}`: {text}" if entry else text)
    return reasons


def markdown(rows: list[Row]) -> str:
    """The page."""
    lines = [
        "# Presets",
        "",
        "Recorded by `tools/scripts/presets.py`, which compiles all of this; states are f32.",
        '"runs" on a CPU: prefill and decode ran, against the float64 reference. "runs" on a GPU',
        "names a chip on which just these kernels ran, compared with float64 (`verified` in",
        "`kernels.lock`, or in `numerics-*.json`). The code for `sm_80` and `sm_86` also ran on",
        'that chip, never on an A100 or an A10. "assembled": ptxas takes the kernels, and no',
        "record has them run. An empty cell has not been compiled.",
        "",
        *table(rows),
        "",
    ]
    reasons: dict[str, list[str]] = {}
    for row in rows:
        for reason in why(row) if not row["engine"] else ():
            where = f"{row['presets'][0]} {row['io']} {row['target']}"
            reasons.setdefault(reason, []).append(where)
    if reasons:
        lines += ["No, because:", ""]
        lines += [f"- {reason} ({', '.join(where)})" for reason, where in reasons.items()]
        lines.append("")
    if engines := engine_table(rows):
        lines += [
            "## Images for engines",
            "",
            "`gdn-compile --for=NAME` with inputs and outputs of bf16; on CPUs prefill and decode",
            "ran. [What the names mean](../guides/compile-for-an-engine.md).",
            "",
            *engines,
            "",
        ]
    lines += ["## Presets of one program", ""]
    groups = {tuple(row["presets"]): None for row in rows if not row["engine"]}
    lines += [f"- {', '.join(f'`{preset}`' for preset in presets)}" for presets in groups]
    return "\n".join(lines) + "\n"


BEGIN, END = "<!-- made by tools/scripts/docs.py -->", "<!-- end -->"


def readme(text: str, rows: list[Row]) -> str:
    """README.md with the table of today between its marks."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n" + "\n".join(summary(rows)) + f"\n{END}{after}"


def check(old: list[Row], new: list[Row]) -> int:
    """Complains of entries that are there now and were not, or the other way round."""
    before, now = states_of(old), states_of(new)
    wrong = [key for key in now if before.get(key) != now[key]]
    for key in wrong:
        print(f"{' '.join(key)}: recorded {before.get(key)}, found {now[key]}")
    print(f"presets: {len(now)} compiled, {len(wrong)} not as recorded")
    return 1 if wrong else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="presets", description=__doc__)
    parser.add_argument("--build-dir", type=Path, default=ROOT / "build/release")
    parser.add_argument("--cache", default="", help="folder of compiled images")
    parser.add_argument("--targets", default=",".join(TARGETS))
    parser.add_argument("--io", default=",".join(IOS))
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--check", action="store_true", help="compare and write nothing")
    options = parser.parse_args()
    split = {name: getattr(options, name).split(",") for name in ("targets", "io", "engines")}
    compile_ = Compiler(options.build_dir, options.cache)
    engines = [engine for engine in split["engines"] if engine]
    if options.check:
        old = json.loads(RECORD.read_text())
        only = {(row["engine"], row["io"], row["target"]) for row in old}
        return check(old, record(compile_, split["targets"], split["io"], engines, only))
    rows = record(compile_, split["targets"], split["io"], engines)
    # Others may have been written meanwhile.
    old = json.loads(RECORD.read_text()) if RECORD.exists() else []
    lines = ",\n".join("  " + json.dumps(row) for row in merged(old, rows))
    RECORD.write_text(f"[\n{lines}\n]\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
