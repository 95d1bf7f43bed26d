# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Takes each instruction that orders others out of a kernel, one at a time, and looks whether
the PTX machine notices.

For each family one small image is compiled and run on the CPU, once whole and once without
each fence, wait, arrive, barrier and commit of its kernel. An edge is

  caught      the machine reports a race, the kernel stops, or its numbers are wrong
  covered     nothing is found, and the machine names the edges that order the same accesses
  repeated    no access relies on it, and the machine names the edges that tell the same
  idle        it tells nothing, such as the commit of an empty group, or only the end of the
              launch tells the same
  unexplained nothing of that, such as an edge that no call reaches

Nothing needs a GPU. --record writes docs/generated/edges.json, of which tools/scripts/docs.py
makes a page; --check fails where an edge is
unexplained, or where fewer than 95 % of those that are not caught have edges that are named.
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

import edges_table

ROOT = Path(__file__).resolve().parents[2]
RECORD = edges_table.RECORD
PRESET = ["--preset=qwen3.5-0.8b", "--io=bf16", "--ptxas=none"]
HEADS = "Hk=1,Hv=2,skip=1"
FEW_HEADS = "Hk=1,Hv=1"
# Instructions that order others. A wait in a loop is one edge: its first try may be the last.
ORDERS = re.compile(
    r"(@!?%?\w+\s+)?(fence|membar|bar|barrier|griddepcontrol|cp\.async\.(bulk\.)?(commit|wait)"
    r"|cp\.async\.mbarrier|wgmma\.(fence|commit|wait)|mbarrier\.(init|arrive|expect|test_wait|try_wait))(?![a-z])"
)
WAIT = re.compile(r"mbarrier\.(try|test)_wait\S*\s+(\S+?),")
# How far a run without an edge may go beyond the whole one.
SLACK = 4
# Which share of edges that are not caught other edges have to cover.
ENOUGH = 0.95
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
    # Whether launches are run that may begin before the one ahead has ended, too.
    is_dependent: bool = False


# Launches of an entry that may begin before the one ahead has ended. By turns one gives a part of
# what the next one takes, and has states of its own; the last two give the same. The last sequence
# is to be skipped.
CHAIN = """
import sys
import ml_dtypes
import numpy as np
from gdn import Pool, Runtime
from gdn.arrays import View
library, driver, path, entry, variant = sys.argv[1:]
gpu = Runtime(library).cuda(driver=driver)
kernel = gpu.kernel(gpu._runtime.image(path), entry)
kernel.variant = variant or None
rng = np.random.default_rng(1)
sizes = {"N": 3, "T": 8, "S": 4, "P": 8, "Hk": 1, "Hv": 2}
integers = {"slots": [0, 1, -1], "cu_seqlens": [0, 2, 6, 8], "num_accepted": [1, 2, 1]}
integers["token_slots"] = [[0, 1, 2, 3], [4, 5, 6, 7], [-1] * 4]
def draw(param):
    if param.name in integers:
        return gpu.array(np.array(integers[param.name], param.dtype))
    shape = [eval(size, {}, sizes) for size in param.dims]
    type = ml_dtypes.bfloat16 if param.dtype == "bfloat16" else param.dtype
    return gpu.array((rng.standard_normal(shape) / 8).astype(type))
inputs = {p.name: draw(p) for p in kernel.params if p.access == "read"}
out = draw(kernel.params[-1])
rows, width = out.shape[0], inputs["qkvz"].shape[1]
wide = gpu.array(rng.standard_normal((rows, 256 + width)).astype(ml_dtypes.bfloat16))
def part(begin, *shape):
    strides = (256 + width, 128, 1) if len(shape) == 3 else (256 + width, 1)
    return View(wide.data + 2 * begin, "bfloat16", shape, strides, "cuda", wide)
last = dict(inputs, ba=part(0, rows, 4), qkvz=part(256, rows, width))
outputs = [part(begin, *out.shape) for begin in range(0, 256 + width, 256)]
steps = [step for output in outputs for step in ((inputs, output), (last, out))]
pools = [
    {p.name: Pool(draw(p), -1) for p in kernel.params if p.kind == "pool"} for _ in range(2)
]
bindings = []
for number, (given, output) in enumerate([*steps, (last, out)]):
    bindings.append(kernel.bind(**given, **pools[number % 2], out=output))
    bindings[-1].set_workspace()
    bindings[-1].allow_dependent_launch()
for binding in bindings:
    binding.launch()
gpu.synchronize()
"""

FAMILIES = {
    "decode-resident": Family("decode", "decode", [f"rows=2,{HEADS}"], is_dependent=True),
    "verify-slots": Family(
        "verify",
        "verify",
        [f"lens=2:4:3:0:8,{HEADS}"],
        ["--verify=slots"],
        "rows",
        is_dependent=True,
    ),
    "verify-lazy": Family(
        "verify", "verify", [f"lens=2:4:3:0:8,{HEADS}"], ["--verify=lazy"], is_dependent=True
    ),
    "decode-persistent": Family(
        "decode",
        "decode_persistent",
        [f"rows=40,{HEADS}"],
        variant="persistent",
        is_dependent=True,
    ),
    "commit": Family("commit", "commit", [f"lens=2:4:3:0:8,{HEADS}"], ["--verify=lazy"]),
    "moves": Family("copy_slots", "copy_slots", [f"rows=3,{HEADS}"]),
    "prefill-mma-sync": Family(
        "prefill", "prefill__inter_chunk", [f"lens=200:70:1,{FEW_HEADS}"], [], "staged", "sm_80"
    ),
    "prefill-roles": Family(
        "prefill", "prefill__inter_chunk_fused", [f"lens=600:1,{FEW_HEADS}"], [], "fused"
    ),
    "prefill-v-split": Family(
        "prefill",
        "prefill__inter_chunk_fused_v_split_2",
        [f"lens=600:1,{FEW_HEADS}"],
        [],
        "fused-v-split-2",
    ),
    "prefill-segments": Family(
        "prefill",
        "prefill__inter_chunk_fused_segments_3",
        [f"lens=900:1:1,{FEW_HEADS}"],  # two long ones may stay whole
        [],
        "fused-segments-3",
    ),
    "prefill-clusters": Family(
        "prefill",
        "prefill__inter_chunk_by_lengths_2",
        [f"lens=600:1,{FEW_HEADS}"],
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
        self.instructions = 0
        self.repeats: Counter[tuple[str, str]] = Counter()
        self.pairs: dict[tuple[int, int], list[dict]] = {}

    def read_paths(self, path: Path, kernel: str) -> None:
        for line in path.read_text().splitlines() if path.exists() else []:
            entry = json.loads(line)
            self.instructions += sum(entry.get("runs", {}).values())
            if entry["kernel"] != kernel:
                continue
            if "runs" in entry:
                self.runs.update(entry["runs"])
                self.repeats.update(
                    (edge, other) for edge, others in entry["repeats"].items() for other in others
                )
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

    def warps(self) -> int:
        """Of a block of the kernel."""
        entry = re.search(
            rf"\.entry {re.escape(self.family.kernel)}\(.*?\.(?:req|max)ntid (\d+)",
            "\n".join(self.lines),
            re.DOTALL,
        )
        return int(entry[1]) // 32 if entry else 0

    def run(self, edge: Edge | None = None, limit: int = 0, late: int = 0) -> Run:
        """The whole kernel, or what is left without an edge; warps in `late` stay behind in calls
        that are not dependent."""
        family, result = self.family, Run()
        name = edge.name if edge else "whole"
        paths, report = (self.folder / f"{name}.{kind}" for kind in ("paths", "report"))
        environment = {
            **{key: os.environ[key] for key in os.environ if not key.startswith("GDN_PTX_")},
            "LD_LIBRARY_PATH": str(self.build / "test/PTX"),
            "PYTHONPATH": str(ROOT / "python"),
            "GDN_PTX_PATHS": str(paths),
            "GDN_PTX_REPORT": str(report),
            # Rows behind the last one, whose products nobody uses.
            "GDN_PTX_UNWRITTEN": "0" if "--verify=lazy" in family.options else "1",
        }
        if edge:
            environment["GDN_PTX_EDIT"] = f"{edge.line} {edge.without}"
        if late:
            environment["GDN_PTX_LATE"] = str(late)
        if limit:
            environment["GDN_PTX_LIMIT"] = str(limit)
        command = [self.build / "bin/gdn-run", self.image, f"--entry={family.entry}"]
        command += ["--device=cuda", "--check"]
        command += [f"--variant={family.variant}"] if family.variant else []
        commands = [[*command, "--generate", call] for call in family.calls]
        if family.is_dependent and not late:
            files = [self.build / "lib/libgdnrt.so", self.build / "test/PTX/libcuda.so.1"]
            commands.append(
                [sys.executable, "-c", CHAIN, *files, self.image, family.entry, family.variant]
            )
        for arguments in commands:
            ended = subprocess.run(arguments, env=environment, capture_output=True, text=True)
            if report.exists():
                first = json.loads(report.read_text().splitlines()[0])
                result.end, result.said = first["kind"], first["text"]
            elif ended.returncode:
                result.end = ENDS.get(ended.returncode, f"signal {-ended.returncode}")
                result.said = (ended.stderr or ended.stdout).strip()
                if ended.returncode == 1 and "cuLaunchKernelEx" not in result.said:
                    raise RuntimeError(f"{family.entry}: {result.said}")
            if result.end:
                break
        result.read_paths(paths, family.kernel)
        for path in (paths, report):
            path.unlink(missing_ok=True)
        return result


def texts(names: Counter[str], lines: list[str], count: int = 3) -> list[str]:
    """The most frequent edges, with their instructions."""
    found = []
    for name, _ in names.most_common(count):
        if name == "launch":
            found.append("the order of launches")
            continue
        line, _, part = name.partition(".")
        pieces = [piece.strip().lstrip("{ \t") for piece in lines[int(line) - 1].split(";")]
        pieces = [piece for piece in pieces if piece and not piece.startswith((".", "}", "//"))]
        opcode = pieces[min(int(part or 0), len(pieces) - 1)].split()
        if opcode[0].startswith("@"):
            opcode = opcode[1:]
        # Operands say nothing to readers of a table.
        found.append(f"{name} {' '.join(opcode[:1] if '[' in pieces[-1] else opcode)}")
    return found


def cover_of(edge: Edge, whole: Run, without: Run) -> Counter[str]:
    """The edges that order, without this one, what it orders first."""
    names: Counter[str] = Counter()
    for pair in whole.pairs:
        before = whole.paths(pair)
        if not any(edge.name in path for path in before):
            continue
        now = without.paths(pair)
        # What is on all paths, such as the barrier behind a wait, is no other edge.
        shared = set.intersection(*map(set, before)) - {edge.name}
        for path in now - before or now:
            names.update(set(path) - shared or path)
    return names


def second_of(edge: Edge, whole: Run) -> Counter[str]:
    """The edges by which was known already what this one tells."""
    names: Counter[str] = Counter()
    for pair in whole.pairs:
        if edge.name in whole.told(pair):
            for path in whole.paths(pair):
                names.update(name for name in path if name != edge.name)
    return names


def judge(edge: Edge, whole: Run, without: Run, lines: list[str]) -> dict[str, object]:
    """What has become of the kernel without an edge."""
    fact: dict[str, object] = {"edge": edge.name, "text": edge.text}
    if without.end:
        return {**fact, "is": "caught", "by": without.end, "said": without.said}
    if not whole.runs[edge.name]:
        return {**fact, "is": "unexplained", "why": "no call reaches it"}
    is_first = any(edge.name in path for pair in whole.pairs for path in whole.paths(pair))
    cover = cover_of(edge, whole, without) if is_first else second_of(edge, whole)
    if cover:
        return {**fact, "is": "covered", "by": texts(cover, lines)}
    if is_first:
        return {**fact, "is": "unexplained", "why": "the accesses that it orders are gone"}
    repeats = Counter({b: n for (a, b), n in whole.repeats.items() if a == edge.name})
    # That the launch ends is no second edge of the kernel.
    if set(repeats) - {"launch"}:
        return {**fact, "is": "repeated", "by": texts(repeats, lines)}
    why = "nothing behind it in the kernel uses what it tells" if repeats else "it tells nothing"
    return {**fact, "is": "idle", "why": why}


def examine(build: Path, name: str, jobs: int) -> list[dict[str, object]]:
    """What has become of a family without each of its edges."""
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(build, Path(folder), FAMILIES[name])
        whole = machine.run()
        if whole.end:
            raise RuntimeError(f"{name}: the whole kernel: {whole.end}: {whole.said}")
        limit = SLACK * whole.instructions

        def examine_one(edge: Edge) -> dict[str, object]:
            return judge(edge, whole, machine.run(edge, limit), machine.lines)

        with ThreadPoolExecutor(jobs) as pool:
            return list(pool.map(examine_one, machine.edges))


def summary(name: str, facts: list[dict[str, object]]) -> dict[str, object]:
    """What is recorded: each edge that is not caught."""
    of = FAMILIES[name]

    def those(kind: str) -> list[dict[str, object]]:
        return [
            {key: value for key, value in fact.items() if key != "is"}
            for fact in facts
            if fact["is"] == kind
        ]

    counts = {"kernel": of.kernel, "target": of.target, "edges": len(facts)}
    kinds = {kind: those(kind) for kind in edges_table.KINDS[1:]}
    return {**counts, "caught": len(those("caught")), **kinds}


def record(name: str, family: dict[str, object]) -> None:
    """Puts a family into the record, in the order in which they stand here."""
    known = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    known[name] = family
    ordered = {of: known[of] for of in FAMILIES if of in known}
    RECORD.write_text(json.dumps(ordered, indent=1) + "\n")


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
    found: dict[str, dict] = {}
    for name in options.families or FAMILIES:
        facts = examine(options.build_dir.resolve(), name, options.jobs)
        found[name] = summary(name, facts)
        kinds = Counter(str(fact["is"]) for fact in facts)
        print(
            f"{name}: {len(facts)} edges", *(f"{n} {kind}" for kind, n in kinds.items()), sep=", "
        )
        for fact in facts:
            if options.verbose or fact["is"] == "unexplained":
                print("  ", json.dumps(fact))
        sys.stdout.flush()
        if options.record:
            record(name, found[name])
    named, listed = edges_table.share(found)
    print(f"{named} of {listed} edges that are not caught are covered or repeated by named ones")
    unexplained = sum(len(family["unexplained"]) for family in found.values())
    return 1 if options.check and (unexplained or named < ENOUGH * listed) else 0


if __name__ == "__main__":
    sys.exit(main())
