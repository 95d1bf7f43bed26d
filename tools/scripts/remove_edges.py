# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Takes each instruction that orders others out of a kernel, one at a time, and looks whether
the PTX machine notices.

For each family one small image is compiled and run on the CPU, once whole and once without
each fence, wait, arrive, barrier and commit of its kernel. An edge is

  caught      the machine reports a race, the kernel stops, or its numbers are wrong
  covered     nothing is found, and the machine names the edges that order the same accesses
  idle        it orders nothing: it told only what was known, or what nobody uses
  global      it orders global memory alone, which the machine does not follow
  unexplained nothing of that, such as an edge that no call reaches

Nothing needs a GPU. --record writes docs/generated/edges.json, of which tools/scripts/docs.py
makes a page; --check fails where an edge is unexplained.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RECORD = ROOT / "docs/generated/edges.json"
PRESET = ["--preset=qwen3.5-0.8b", "--io=bf16", "--ptxas=none"]
HEADS = "Hk=1,Hv=2,skip=1"
# Instructions that order others. A wait in a loop is one edge: its first try may be the last.
ORDERS = re.compile(
    r"(@!?%?\w+\s+)?(fence|membar|bar|barrier|griddepcontrol|cp\.async\.(bulk\.)?(commit|wait)"
    r"|cp\.async\.mbarrier|wgmma\.(fence|commit|wait)|mbarrier\.(init|arrive|expect|test_wait|try_wait))(?![a-z])"
)
GLOBAL = re.compile(r"(@!?%?\w+\s+)?(griddepcontrol|membar|fence\.(acq_rel|sc))\b")
WAIT = re.compile(r"mbarrier\.(try|test)_wait\S*\s+(\S+?),")
# How far a run without an edge may go beyond the whole one.
SLACK = 4
ENDS = {1: "stops", 2: "numbers"}


@dataclass
class Family:
    """A kernel, and calls that reach all of it."""

    entry: str
    kernel: str
    calls: list[str]
    options: list[str] = field(default_factory=list)
    variant: str = ""
    target: str = "sm_90a"


FAMILIES = {
    "decode-resident": Family("decode", "decode", [f"rows=2,{HEADS}"]),
    "verify-slots": Family(
        "verify", "verify", [f"lens=2:4:3:0:8,{HEADS}"], ["--verify=slots"], "rows"
    ),
    "verify-lazy": Family("verify", "verify", [f"lens=2:4:3:0:8,{HEADS}"], ["--verify=lazy"]),
    "decode-persistent": Family(
        "decode", "decode_persistent", [f"rows=40,{HEADS}"], variant="persistent"
    ),
    "commit": Family("commit", "commit", [f"lens=2:4:3:0:8,{HEADS}"], ["--verify=lazy"]),
    "moves": Family("copy_slots", "copy_slots", [f"rows=3,{HEADS}"]),
    "prefill-mma-sync": Family(
        "prefill", "prefill__inter_chunk", [f"lens=70:1:200,{HEADS}"], [], "staged", "sm_80"
    ),
    "prefill-roles": Family(
        "prefill", "prefill__inter_chunk_fused", [f"lens=70:1:330,{HEADS}"], [], "fused"
    ),
    "prefill-v-split": Family(
        "prefill",
        "prefill__inter_chunk_fused_v_split_2",
        [f"lens=70:1:330,{HEADS}"],
        [],
        "fused-v-split-2",
    ),
    "prefill-segments": Family(
        "prefill",
        "prefill__inter_chunk_fused_segments_3",
        [f"lens=70:1:700,{HEADS}"],
        [],
        "fused-segments-3",
    ),
    "prefill-clusters": Family(
        "prefill",
        "prefill__inter_chunk_by_lengths_1",
        [f"lens=70:1:330,{HEADS}"],
        [],
        "fused-by-lengths",
    ),
}


@dataclass
class Edge:
    """An instruction that orders others: the line, and which one of that line it is."""

    line: int
    part: int
    text: str
    without: str

    @property
    def name(self) -> str:
        return f"{self.line}.{self.part}" if self.part else str(self.line)


def edges_of(ptx: str, kernel: str) -> list[Edge]:
    """The edges of a kernel in the text of a module."""
    found, is_inside = [], False
    for number, line in enumerate(ptx.splitlines(), 1):
        if ".entry" in line:
            is_inside = re.search(rf"\.entry {re.escape(kernel)}\(", line) is not None
        if not is_inside or line.lstrip().startswith("//"):
            continue
        pieces = line.split(";")
        part = 0
        for at, piece in enumerate(pieces):
            text = piece.strip().lstrip("{ \t")
            if not text or text.startswith((".", "}", "//")):
                continue
            if ORDERS.match(text):
                wait = WAIT.search(text)
                instead = f"setp.eq.u32 {wait[2]}, 0, 0" if wait else ""
                rest = ";".join([*pieces[:at], piece.replace(text, instead), *pieces[at + 1 :]])
                # An instruction that is left out leaves no semicolon.
                rest = rest if wait else re.sub(r"^\s*;|;\s*(?=;)", "", rest)
                found.append(Edge(number, part, " ".join(text.split()), rest.strip()))
            part += 1
    return found


class Run:
    """What the machine says of one run over all calls of a family."""

    def __init__(self) -> None:
        self.end = ""
        self.said = ""
        self.runs: Counter[str] = Counter()
        self.pairs: dict[tuple[int, int], list[dict]] = {}

    def read_paths(self, path: Path, kernel: str) -> None:
        for line in path.read_text().splitlines() if path.exists() else []:
            entry = json.loads(line)
            if entry["kernel"] != kernel:
                continue
            if "runs" in entry:
                self.runs.update(entry["runs"])
            else:
                self.pairs.setdefault((entry["line"], entry["other"]), []).append(entry)

    def paths(self, pair: tuple[int, int]) -> set[tuple[str, ...]]:
        return {tuple(path) for entry in self.pairs.get(pair, []) for path in entry["paths"]}

    def told(self, pair: tuple[int, int]) -> set[str]:
        return {name for entry in self.pairs[pair] for name in entry["told"]}


class Machine:
    """Compiles the image of a family and runs it."""

    def __init__(self, build: Path, folder: Path, family: Family):
        self.build, self.folder, self.family = build, folder, family
        self.image = folder / "image.gdnk"
        options = [*PRESET, f"--only={family.entry}", f"--target={family.target}", *family.options]
        compiler = build / "bin/gdn-compile"
        subprocess.run([compiler, *options, "-o", self.image], check=True, stderr=subprocess.PIPE)
        text = subprocess.run(
            [compiler, *options, "--emit=ptx"], check=True, capture_output=True, text=True
        )
        self.edges = edges_of(text.stdout, family.kernel)
        self.lines = text.stdout.splitlines()

    def run(self, edge: Edge | None = None, limit: int = 0) -> Run:
        family, result = self.family, Run()
        name = edge.name if edge else "whole"
        paths, report = (self.folder / f"{name}.{kind}" for kind in ("paths", "report"))
        environment = {
            **{key: os.environ[key] for key in os.environ if not key.startswith("GDN_PTX_")},
            "LD_LIBRARY_PATH": str(self.build / "test/PTX"),
            "GDN_PTX_PATHS": str(paths),
            "GDN_PTX_REPORT": str(report),
        }
        if edge:
            environment["GDN_PTX_EDIT"] = f"{edge.line} {edge.without}"
        if limit:
            environment["GDN_PTX_LIMIT"] = str(limit)
        command = [self.build / "bin/gdn-run", self.image, f"--entry={family.entry}"]
        command += ["--device=cuda", "--check"]
        command += [f"--variant={family.variant}"] if family.variant else []
        for call in family.calls:
            ended = subprocess.run(
                [*command, "--generate", call], env=environment, capture_output=True, text=True
            )
            if report.exists():
                first = json.loads(report.read_text().splitlines()[0])
                result.end, result.said = first["kind"], first["text"]
            elif ended.returncode:
                result.end = ENDS.get(ended.returncode, f"signal {-ended.returncode}")
                result.said = (ended.stderr or ended.stdout).strip()
            if result.end:
                break
        result.read_paths(paths, family.kernel)
        for path in (paths, report):
            path.unlink(missing_ok=True)
        return result


def most(names: Counter[str], count: int = 3) -> list[str]:
    return [name for name, _ in names.most_common(count)]


def cover_of(edge: Edge, whole: Run, without: Run) -> list[str]:
    """The edges that order, without this one, what it orders first."""
    names: Counter[str] = Counter()
    for pair in whole.pairs:
        before = whole.paths(pair)
        if not any(edge.name in path for path in before):
            continue
        now = without.paths(pair)
        new = now - before or {path for path in now if path in before}
        shared = set.intersection(*map(set, before)) - {edge.name} if before else set()
        for path in new:
            names.update(set(path) - shared or path)
    return most(names)


def second_of(edge: Edge, whole: Run) -> list[str]:
    """The edges by which was known already what this one tells."""
    names: Counter[str] = Counter()
    for pair in whole.pairs:
        if edge.name in whole.told(pair):
            for path in whole.paths(pair):
                names.update(name for name in path if name != edge.name)
    return most(names)


def judge(edge: Edge, whole: Run, without: Run) -> dict[str, object]:
    fact: dict[str, object] = {"edge": edge.name, "text": edge.text}
    if without.end:
        return {**fact, "is": "caught", "by": without.end, "said": without.said[:300]}
    if not whole.runs[edge.name]:
        return {**fact, "is": "unexplained", "why": "no call reaches it"}
    if cover := cover_of(edge, whole, without):
        return {**fact, "is": "covered", "by": cover}
    if any(edge.name in path for pair in whole.pairs for path in whole.paths(pair)):
        return {**fact, "is": "unexplained", "why": "the accesses that it orders are not there"}
    if second := second_of(edge, whole):
        return {**fact, "is": "covered", "by": second}
    if GLOBAL.match(edge.text):
        return {**fact, "is": "global"}
    return {**fact, "is": "idle", "why": "no accesses behind it wait for one before it"}


def examine(build: Path, folder: Path, name: str, jobs: int) -> dict[str, object]:
    machine = Machine(build, folder, FAMILIES[name])
    whole = machine.run()
    if whole.end:
        sys.exit(f"{name}: the whole kernel: {whole.end}: {whole.said}")
    limit = SLACK * sum(whole.runs.values())
    with ThreadPoolExecutor(jobs) as pool:
        runs = pool.map(lambda edge: machine.run(edge, limit), machine.edges)
        facts = [judge(*each) for each in zip(machine.edges, [whole] * len(machine.edges), runs)]
    counts = Counter(str(fact["is"]) for fact in facts)
    return {
        "kernel": FAMILIES[name].kernel,
        "target": FAMILIES[name].target,
        "edges": len(facts),
        "caught": counts["caught"],
        "facts": facts,
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("families", nargs="*", metavar="family", help=", ".join(FAMILIES))
    parser.add_argument("--build-dir", type=Path, default=ROOT / "build/release")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--record", action="store_true", help=f"write {RECORD.name}")
    parser.add_argument("--check", action="store_true", help="fail if an edge is unexplained")
    parser.add_argument("--verbose", action="store_true", help="show each edge")
    options = parser.parse_args()
    found = {}
    for name in options.families or FAMILIES:
        with tempfile.TemporaryDirectory() as folder:
            found[name] = examine(options.build_dir.resolve(), Path(folder), name, options.jobs)
        facts = found[name]["facts"]
        print(name, dict(Counter(fact["is"] for fact in facts)), flush=True)
        for fact in facts:
            if options.verbose or fact["is"] == "unexplained":
                print("  ", json.dumps(fact))
    return 0


if __name__ == "__main__":
    sys.exit(main())
