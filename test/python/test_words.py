# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One word for one thing: words of docs/glossary.md that have been replaced do not come back.

Each has a pattern, and the word that stands in its place. A line that may have it all the same
is in ALLOWED, with the reason."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("docs/guides", "docs/spec", "include", "lib", "python", "runtime", "test", "tools")
# Records, logs and what is made of other files. This file has all the words.
LEFT_OUT = ("docs/generated", "docs/design/log", "runtime/bench/results", "test/data")
SUFFIXES = {".cpp", ".h", ".td", ".py", ".md", ".mlir", ".test", ".txt", ".fbs", ".cmake"}

OLD = {
    "transposed, not turned": r"\bturned (a?round)\b|[a-z]Turned\b|\bturned\b(?= %| matri| tile)",
    "optimisation barrier, not hidden value": r"hidden values?\b|HiddenValue|hideValue",
    "persistent, not streamed": r"\bstreamed\b|_streamed|StreamedRec",
    "narrow, not packed": r"packed-units|variant \"packed\"|_packed\(",
    "async token, not pending": r"gdn_gpu\.pending|\bgpu::PendingType",
    "cyclic, not interleaved": r"interleaved = (true|false)>|getInterleaved",
    "store_shared, not share": r"gdn_gpu\.share\b|\bShareOp\b",
    "load_shared, not fetch": r"gdn_gpu\.fetch|\bFetch(Element)?Op\b|fetchMatrix",
    "tensor map, not box": r"\bboxed\b|Boxed|Box(Maps|Encoder|Copy|Schema)",
    "per_warpgroup, not own": r"begin_copy own\b|`own`|own columns",
    "inter-chunk, recurrence or consumers, not walk": r"\b[Ww]alk(s|ed|ing)?\b(?!\()|__walk",
    "producer, not feed": r"\bfeed\b|\bFeed|ProductFeed|emitFeed|\bfeeds\b",
    "intra-chunk, not prepare": r"__prepare|\"prepare\"|emitPrepareStage|PreparedChunk",
    "segments, not cuts": r"[-_]cuts[-_]|\.cuts\b|SplitCuts|\"cuts\"",
    "V-split, not parts": r"[-_]parts[-_][0-9]|[vV]alueParts|takePart|\bhalves of (its|a) heads?\b",
    "staged, not split": r"variants? \"split\"|chunk-stages=split|Split(Stage|Walk|Chunk|Kernel)",
    "fused, not together": r"algorithm\.together|isTogether",
    "buffer, ring stage or rank, not place": r"\bgetPlaces?\b|(Tile|Scan|Fold)Places?\b|'place'",
    "overlap, not beside": r"gdn_tile\.beside|[a-z]Beside\b",
    "sequence, not row": r"mask_rows|MaskRows|RowsTensor|verifyRows|RowChoice|\browForm\b"
    r"|row(Count|Bound)\(|findRow\(|ordersRows|(when|where)=[^\"]*\brows\b",
}

# Files and lines, and why.
ALLOWED = [
    (r"", r"[.>]walk[(<]|WalkResult|WalkOrder|walk\.was|os\.walk|ast\.walk", "MLIR's and Python's"),
    (r"", r"[Ww]alk(s|ed)? (over|in program|a function|up|the IR)", "a walk over IR, as in MLIR"),
    (r"vllm", r"_forward_core_fused_norm_packed", "vLLM's name"),
    (r"scripts/check_names\.py$", r'^ +r"\w+: ', "names of cases as they were, and as they are"),
]


def lines():
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *FOLDERS]
    names = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=True).stdout
    for name in filter(None, names.split("\0")):
        path = ROOT / name
        if path.suffix not in SUFFIXES or str(path) == __file__ or name.startswith(LEFT_OUT):
            continue
        for number, line in enumerate(path.read_text().split("\n"), 1):
            yield name, number, line


LINES = list(lines())


@pytest.mark.parametrize("word", OLD)
def test_old_words_stay_away(word):
    pattern = re.compile(OLD[word])
    allowed = [(re.compile(file), re.compile(line)) for file, line, _ in ALLOWED]
    found = [
        f"{name}:{number}: {line.strip()}"
        for name, number, line in LINES
        if pattern.search(line)
        and not any(file.search(name) and text.search(line) for file, text in allowed)
    ]
    assert not found, f"{word}:\n" + "\n".join(found[:20]) + f"\n{len(found)} lines"


def test_patterns_find_what_they_are_for():
    """Each old word, as it stood in the sources before."""
    before = [
        "isMadeTurned(tile)",
        "hideValue(b, loc, x)",
        '"streamed"',
        "packed-units=4097",
        "!gdn_gpu.pending<64x64xf32, #rows>",
        "vector = 4, interleaved = true>",
        "gdn_gpu.share %t, %p",
        "gdn_gpu.fetch transpose %p",
        "copy.getBoxed()",
        "gdn_gpu.begin_copy own %y",
        "@prefill__walk(",
        "the role that feeds, Role::feed",
        "@prefill__prepare(",
        "fused-cuts-9",
        "takePart(block, 2)",
        'the variants "split" of',
        "algorithm.together != 0",
        "store.getPlace().getType()",
        'gdn_tile.beside = "next"',
        "when=256*rows <= tokens",
    ]
    for word, line in zip(OLD, before, strict=True):
        assert re.search(OLD[word], line), word
