# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Takes ops that order something out of GPU programs, one at a time, and looks whether
gdn-gpu-check refuses what is left.

The programs are those of kernels.lock. A program is checked once for each op of KINDS in it:
without that op, or with the constant true in its place, or with a tile of its own where a
channel was. Programs that are the same on several chips or in several sets count once.

  removed_ops.py                     a table of all kinds, for one chip of each family
  removed_ops.py --accepted          and each place whose op is not missed
  removed_ops.py --set d128-bf16 --targets sm_90a --kinds barrier,commit

Ends with 0 if every program is accepted as it is, and nothing is accepted without an op but
what EXPLAINED has.
"""

from __future__ import annotations

import argparse
import bisect
import hashlib
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import kernels_lock

ROOT = Path(__file__).resolve().parents[2]

# Ops that are taken out with nothing in their place.
PLAIN = [
    "barrier",
    "warp_barrier",
    "arrive",
    "await_arrivals",
    "await_launch",
    "release_launch",
    "await_signals",
    "signal",
    "await_copies",
    "commit",
    "release",
]
# Ops whose result is the constant true then.
ANSWERS = ["last_reader", "is_last"]
KINDS = [
    *PLAIN,
    "acquire",  # a tile of its own in place of the channel's
    "receive",
    "channel",  # one tile for both sides, and no waits
    "await_matmul",  # zeros in place of the product
    *ANSWERS,
    "after",  # the loads that a last_reader or take_ticket waits for
    "begun",  # a gdn_gpu.load without its gdn_gpu.begin_load
    "per_warpgroup",  # the wait of a group of warps in a gdn_gpu.begin_copy
]
# What may be accepted, by kind of op and, unless it is all of them, by kinds of programs, or by
# sets with kinds; and which other edge covers it.
EXPLAINED = {
    ("release_launch", ""): "the next launch begins when this one has ended",
    (
        "await_launch",
        "",
    ): "a stage with no other is no dependent launch: it begins when those ahead have ended",
    ("await_copies", "scan_segments"): "each turn of the loop awaits the copies at its beginning",
    (
        "await_copies",
        "inter_chunk_v_split_ahead",
    ): "what a copy asks for is there when its bytes are, whatever the warp waits for",
    (
        "barrier",
        "decode_crowded decode_i8 decode_i8_crowded d128-upper/decode commit_i8 commit_i8x2",
    ): "a thread stores the elements that it has loaded; lanes that read a scale are of the warp of"
    " the one that writes it, and compare their row in between",
    ("after", "prefill verify"): "a barrier stands between the loads and the question",
}

# Kinds that stages have with each other: they are checked with all stages of a variant.
BETWEEN_STAGES = ["await_signals", "signal"]

MARKER = "// -----\n"
AWAIT = "gdn_gpu.await_launch"


class RemovedOpsError(Exception):
    """Something that the user has to know; its text is the whole message."""


@dataclass(frozen=True)
class Program:
    """One function of gdn_gpu."""

    name: str  # with its set and target
    kind: str
    lines: tuple[str, ...]
    head: str  # aliases of layouts
    # The other stages of its variants, if it has an op of BETWEEN_STAGES.
    ahead: tuple[str, ...] = ()
    behind: tuple[str, ...] = ()


@dataclass(frozen=True)
class Removal:
    """An op of a program that is not there any more."""

    program: Program
    kind: str
    line: int  # from 0 on, in the program
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        return module(self.program, self.lines, whole=self.kind in BETWEEN_STAGES)


def module(program: Program, lines: Iterable[str], whole: bool = False) -> str:
    """The program with those lines; the `whole` has the other stages, too."""
    if whole:
        lines = (*program.ahead, *lines, *program.behind)
    return f"{program.head}module {{\n{''.join(lines)}}}\n"


def kind_of(function: str) -> str:
    """What a program is for: a stage of prefill, or the entry."""
    entry, _, stage = function.partition("__")
    name = stage or entry
    name = re.sub(r"_(bf16|f16|f32)\b", "", re.sub(r"_(bf16|f16|f32)(?=_)", "", name))
    return re.sub(r"_(aligned|narrow|short|\d+)(?=_|$)", "", name)


def variants_of(program: Program) -> set[tuple[str, str]]:
    """The entry with each variant that the program is a stage of."""
    entry = re.search(r'\bstage_of = "([^"]*)"', program.lines[0])
    names = re.search(r'\bvariant = (?:\[([^]]*)\]|("[^"]*"))', program.lines[0])
    if not entry or not names:
        return set()
    return {(entry[1], name) for name in re.findall(r'"([^"]*)"', names[0])}


def beside(program: Program, others: Iterable[Program]) -> tuple[str, ...]:
    """The lines of those of the others that are stages of a variant of the program's."""
    own = variants_of(program)
    return tuple(line for one in others if own & variants_of(one) for line in one.lines)


def programs_of(name: str, text: str) -> Iterator[Program]:
    """The functions of what --emit=gpu prints."""
    found = list(functions_of(name, text))
    for i, one in enumerate(found):
        if any(f"gdn_gpu.{kind} " in line for line in one.lines for kind in BETWEEN_STAGES):
            ahead, behind = beside(one, found[:i]), beside(one, found[i + 1 :])
            one = replace(one, ahead=ahead, behind=behind)
        yield one


def functions_of(name: str, text: str) -> Iterator[Program]:
    """Each function by itself."""
    lines = text.splitlines(keepends=True)
    head = "".join(line for line in lines if line.startswith(("#", "!")))
    start = None
    for i, line in enumerate(lines):
        if line.startswith("  func.func"):
            start = i
        elif line.startswith("  }") and start is not None:
            function = re.search(r"@(\w+)", lines[start])[1]
            body = tuple(lines[start : i + 1])
            yield Program(f"{name}/{function}", kind_of(function), body, head)
            start = None


def different(programs: Iterable[Program]) -> list[Program]:
    """Each program once, whatever types the names have."""
    found: dict[str, Program] = {}
    for program in programs:
        text = re.sub(r"@\w+", "", program.lines[0]) + "".join(program.lines[1:]) + program.head
        found.setdefault(hashlib.sha256(text.encode()).hexdigest(), program)
    return list(found.values())


def compile_programs(build_dir: Path, name: str, target: str) -> list[Program]:
    arguments = [*kernels_lock.KERNEL_SETS[name], f"--target={target}", "--emit=gpu", "-o", "-"]
    command = [str(build_dir / "bin/gdn-compile"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RemovedOpsError(f"{name} {target}: expects a program, but got: {done.stderr}")
    return list(programs_of(f"{name}/{target}", done.stdout))


# -- What is taken out -----------------------------------------------------------------


def _op(line: str) -> re.Match[str] | None:
    return re.match(r"\s*(?:(%[\w#:]+) = )?gdn_gpu\.(\w+)", line)


def _tile(type_: str) -> str:
    """The shared tile of a channel's type, or of a tile's, as an alloc prints it."""
    shape = re.search(r"(?:gdn_gpu\.channel)?<([^,>]+)", type_)[1]
    return f"<{shape}{', swizzled' if 'swizzled' in type_ else ''}>"


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _without_begin(lines: list[str], i: int) -> tuple[str, ...]:
    """An acquire or receive, or a commit with its tile: it becomes a tile of its own."""
    result, type_ = _op(lines[i])[1], _tile(lines[i].rpartition("->")[2])
    kept = [lines[0], f"    %own_tile = gdn_gpu.alloc : {type_}\n", *lines[1:i]]
    in_scope = True
    for line in lines[i + 1 :]:
        in_scope = in_scope and _indent(line) >= _indent(lines[i])
        kept.append(re.sub(rf"{result}\b(?!#)", "%own_tile", line) if in_scope else line)
    return tuple(kept)


def _without_channel(lines: list[str], i: int) -> tuple[str, ...] | None:
    """A channel: both sides use one tile, and wait for nothing."""
    channel = _op(lines[i])[1]
    type_ = lines[i].partition(" : ")[2]
    if any(re.search(rf"(with|of) {channel}\b", line) for line in lines):
        return None  # others go behind its barriers, or have its tiles
    if " of %" in type_:
        return None  # its tiles are another's, which are handed on to it
    kept = [*lines[:i], f"    {channel} = gdn_gpu.alloc : {_tile(type_)}\n"]
    for line in lines[i + 1 :]:
        if not re.search(rf"{channel}\b(?!#)", line):
            kept.append(line)
            continue
        if (op := _op(line)) and op[1]:
            result = line.rpartition("->")[2]
            kept.append(
                f"    {op[1]} = gdn_gpu.reshape {channel} : {_tile(type_)} to {_tile(result)}\n"
            )
    return tuple(kept)


def _without_wait(lines: list[str], i: int) -> tuple[str, ...]:
    """An await_matmul: zeros in place of the product."""
    result = _op(lines[i])[1]
    fragment = re.search(r"(?:async_token)?<(.*)>\s*$", lines[i].partition(" : ")[2])[1]
    zero = f"    {result}_zero = arith.constant 0.0 : f32\n"
    fill = f"    {result} = gdn_gpu.fill {result}_zero : f32 -> <{fragment}>\n"
    return (*lines[:i], zero, fill, *lines[i + 1 :])


def _true(lines: list[str], i: int) -> tuple[str, ...]:
    return (*lines[:i], f"    {_op(lines[i])[1]} = arith.constant true\n", *lines[i + 1 :])


def _replaced(lines: list[str], i: int, pattern: str) -> tuple[str, ...]:
    return (*lines[:i], re.sub(pattern, "", lines[i]), *lines[i + 1 :])


def removals(program: Program, kinds: Iterable[str] = KINDS) -> Iterator[Removal]:
    lines = list(program.lines)
    for i, line in enumerate(lines):
        op = _op(line)
        if not op:
            continue
        result, name = op[1], op[2]
        left: dict[str, tuple[str, ...] | None] = {}
        if name in PLAIN and not result:
            left[name] = (*lines[:i], *lines[i + 1 :])
        elif name in ("acquire", "commit", "receive"):
            left[name] = _without_begin(lines, i)
        elif name == "channel":
            left[name] = _without_channel(lines, i)
        elif name == "await_matmul":
            left[name] = _without_wait(lines, i)
        elif name in ANSWERS:
            left[name] = _true(lines, i)
        elif name == "begin_copy" and "per_warpgroup" in line:
            left["per_warpgroup"] = _replaced(lines, i, r" per_warpgroup")
        elif name == "load" and " begun(" in line:
            left["begun"] = _replaced(lines, i, r" begun\([^)]*\)")
        if name in ("last_reader", "take_ticket") and " after " in line:
            left["after"] = _replaced(lines, i, r" after .*(?=\n)")
        for kind, text in left.items():
            if kind in kinds and text is not None:
                yield Removal(program, kind, i, text)


def reason(removal: Removal) -> str:
    """Why a program may be accepted without an op; empty if nothing says so."""
    program = removal.program
    if removal.kind == "await_launch" and any(AWAIT in line for line in removal.lines):
        return ""
    names = {program.kind, f"{program.name.partition('/')[0]}/{program.kind}"}
    for (kind, programs), why in EXPLAINED.items():
        if kind == removal.kind and (not programs or names & set(programs.split())):
            return why
    return ""


# -- What the verifier says of it --------------------------------------------------------


def refused(build_dir: Path, modules: list[str]) -> dict[int, str]:
    """The first error of each module that is refused, by its number."""
    tool = str(build_dir / "bin/gdn-gpu-opt")
    command = [tool, "-", "-split-input-file", "-gdn-gpu-check", "-o", os.devnull]
    last_lines, line = [], 0
    for text in modules:
        line += text.count("\n") + MARKER.count("\n")
        last_lines.append(line)
    done = subprocess.run(
        command, input=MARKER.join(modules), capture_output=True, text=True, check=False
    )
    errors: dict[int, str] = {}
    for match in re.finditer(r"^<stdin>:(\d+):\d+: error: (.*)$", done.stderr, re.MULTILINE):
        if not re.match(r"'[a-z_]+\.\w+' op ", match[2]):
            raise RemovedOpsError(f"expects programs that can be read, but: {match[0]}")
        errors.setdefault(bisect.bisect_left(last_lines, int(match[1])), match[2])
    if done.returncode < 0 or (done.returncode != 0 and not errors):
        raise RemovedOpsError(f"{tool} -gdn-gpu-check ended with {done.returncode}: {done.stderr}")
    return errors


def judge(build_dir: Path, program: Program, kinds: Iterable[str]) -> list[tuple[Removal, str]]:
    """Each removal with the error that it gets, empty if it is accepted."""
    found = list(removals(program, kinds))
    as_it_is = [module(program, program.lines), module(program, program.lines, whole=True)]
    errors = refused(build_dir, [*as_it_is, *(r.text for r in found)])
    if error := errors.get(0) or errors.get(1):
        raise RemovedOpsError(f"{program.name}: expects to be accepted as it is, but: {error}")
    return [(removal, errors.get(i, "")) for i, removal in enumerate(found, len(as_it_is))]


def judge_all(
    build_dir: Path, programs: list[Program], kinds: Iterable[str] = KINDS
) -> list[tuple[Removal, str]]:
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(lambda program: judge(build_dir, program, kinds), programs)
        return [pair for pairs in found for pair in pairs]


def table(judged: list[tuple[Removal, str]]) -> str:
    """Refused and accepted, by kind of op and of program, as a page has it."""
    all_, kept = Counter(), Counter()
    for removal, error in judged:
        key = (removal.kind, removal.program.kind)
        all_[key] += 1
        kept[key] += not error
    lines = ["| without | refused | accepted | accepted in |", "|---|--:|--:|---|"]
    for kind in KINDS:
        keys = [key for key in all_ if key[0] == kind]
        if not keys:
            continue
        accepted = sum(kept[key] for key in keys)
        count = sum(all_[key] for key in keys)
        where = ", ".join(f"{key[1]} {kept[key]}" for key in sorted(keys) if kept[key])
        lines.append(f"| `{kind}` | {count - accepted} | {accepted} | {where} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="removed_ops.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--build-dir", type=Path, default=ROOT / "build/release")
    parser.add_argument("--set", help="names of sets, with commas (default: all)")
    parser.add_argument("--targets", default=",".join(kernels_lock.FAMILIES))
    parser.add_argument("--kinds", default=",".join(KINDS), help="kinds of ops, with commas")
    parser.add_argument("--accepted", action="store_true", help="print places that are accepted")
    parser.add_argument("--errors", action="store_true", help="print the errors, with counts")
    arguments = parser.parse_args()
    sets = arguments.set.split(",") if arguments.set else list(kernels_lock.KERNEL_SETS)
    try:
        programs = different(
            program
            for name in sets
            for target in arguments.targets.split(",")
            for program in compile_programs(arguments.build_dir, name, target)
        )
        judged = judge_all(arguments.build_dir, programs, arguments.kinds.split(","))
    except RemovedOpsError as error:
        print(f"removed_ops.py: error: {error}", file=sys.stderr)
        return 1
    print(f"{len(programs)} programs, {len(judged)} ops taken out\n\n{table(judged)}")
    if arguments.errors:
        counts = Counter((removal.kind, error) for removal, error in judged if error)
        for (kind, error), count in sorted(counts.items()):
            print(f"{count:6} {kind}: {error}")
    accepted = [removal for removal, error in judged if not error]
    if arguments.accepted:
        for removal in accepted:
            line = removal.program.lines[removal.line].strip()
            print(f"{removal.program.name}:{removal.line + 1}: {removal.kind}: {line}")
    left = Counter(removal.kind for removal in accepted if not reason(removal))
    for kind, count in left.items():
        print(f"removed_ops.py: {kind}: accepted {count} times without a reason", file=sys.stderr)
    return int(bool(left))


if __name__ == "__main__":
    sys.exit(main())
