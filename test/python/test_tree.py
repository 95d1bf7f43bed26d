# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules for every tracked file: licence line, no tabs, no strays, readable sizes."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SPDX = "SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception"
CODE = {".cpp", ".h", ".c", ".td", ".py", ".sh", ".mlir", ".cmake", ".fbs", ".in", ".test"}
TOP_LEVEL = {"include", "lib", "tools", "test", "runtime", "python", "docs"}
# Of C++, C and TableGen; tests of the IR and scripts may have some more.
MOST_LINES, MOST_OTHER_LINES = 500, 600
COUNTED = (".cpp", ".h", ".c", ".td")


def tracked() -> list[Path]:
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=True).stdout
    return [p for name in names.split("\0") if name and (p := ROOT / name).is_file()]


FILES = tracked()
TEXTS = {}
for _path in FILES:
    try:
        TEXTS[_path] = _path.read_text()
    except UnicodeDecodeError:
        continue


def sources() -> list[Path]:
    """Code of all kinds, less the templates of new.py, which are parts of files."""
    return [
        p
        for p in TEXTS
        if (p.suffix in CODE or p.name == "CMakeLists.txt" or TEXTS[p].startswith("#!"))
        and not p.is_relative_to(ROOT / "tools/scripts/templates")
    ]


def complain(found: list) -> None:
    assert not found, "\n".join(str(f) for f in found)


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_spdx_line():
    """In the first three lines: a shebang or a file type line may come before."""
    heads = {p: "\n".join(TEXTS[p].split("\n", 3)[:3]) for p in sources() if TEXTS[p].strip()}
    complain([name(p) for p, head in heads.items() if SPDX not in head])


def test_files_of_cpp_say_what_they_do():
    """Behind the SPDX line, but for tests of gtest and templates."""
    found = [
        name(p)
        for p in sources()
        if p.suffix in (".cpp", ".h")
        and not name(p).startswith("tools/scripts/templates/")
        and not re.match(r"/[/*] SPDX[^\n]*\n(//|/\*| \*)", TEXTS[p])
    ]
    complain(found)


def test_no_tabs_and_no_trailing_space():
    found = [
        f"{name(p)}:{n}"
        for p in sources()
        for n, line in enumerate(TEXTS[p].split("\n"), 1)
        if "\t" in line or line != line.rstrip()
    ]
    complain(found)


def test_files_end_with_one_newline():
    complain([name(p) for p in sources() if TEXTS[p] and not re.search(r"[^\n]\n\Z", TEXTS[p])])


def test_todo_names_an_issue():
    todo = re.compile(r"\b(TODO|FIXME|XXX)\b(?!\(#\d+\))")
    found = [
        f"{name(p)}:{n}"
        for p in sources()
        if p != Path(__file__).resolve()
        for n, line in enumerate(TEXTS[p].split("\n"), 1)
        if todo.search(line)
    ]
    complain(found)


def test_no_machine_paths():
    """Nothing may lean on where one machine keeps its home or work folders."""
    stray = re.compile(r"(?<![\w.$}])/(work|home|root|Users)/")
    found = [
        f"{name(p)}:{n}"
        for p in TEXTS
        if p != Path(__file__).resolve()
        for n, line in enumerate(TEXTS[p].split("\n"), 1)
        if stray.search(line)
    ]
    complain(found)


def test_sizes():
    """A long file says in its head what generated it."""
    most = {p: MOST_LINES if p.suffix in COUNTED else MOST_OTHER_LINES for p in sources()}
    long = [p for p, lines in most.items() if TEXTS[p].count("\n") > lines]
    heads = {p: "\n".join(TEXTS[p].split("\n", 10)[:10]).lower() for p in long}
    complain([name(p) for p, head in heads.items() if "generated" not in head])


# Files that have nothing but what came for a decay per channel with operands of 16 bits; the page
# docs/design/20261128-channels-on-tensor-cores.md says what else there is.
OF_CHANNELS = {
    "lib/Conversion/GPUToNVVM/Products": "BlockDecays BlockInverses ChunkCode ChunkOps DecayBetween"
    " DecayOperands DecayWithin TokenDecays",
    "include/gdn/Dialect/GPU/IR": "GPUDecayOps",
    "lib/Dialect/GPU/IR": "GPUDecayOps",
    "lib/Schedule/Products": "ChannelChunk ChannelRoles",
    "lib/Conversion/TileToCPU": "ExpandDecayOperands",
    "lib/Conversion/GDNToTile/Chunks": "ChunkFormRoundedChannels",
    "lib/Dialect/GPU/Transforms": "CheckHandedOn CheckInPlace",
}


def test_lines_of_a_decay_per_channel():
    """Of code, and of the documents of ops: neither comments nor blank lines."""
    wanted = {f"{folder}/{stem}" for folder, stems in OF_CHANNELS.items() for stem in stems.split()}
    found = [p for p in TEXTS if name(p.with_suffix("")) in wanted]
    assert {name(p.with_suffix("")) for p in found} == wanted
    lines = [line.strip() for p in found for line in TEXTS[p].split("\n")]
    assert sum(1 for line in lines if line and not line.startswith("//")) < 2500


def test_top_level_folders():
    top = {p.relative_to(ROOT).parts[0] for p in FILES if len(p.relative_to(ROOT).parts) > 1}
    complain(sorted(t for t in top if t not in TOP_LEVEL and not t.startswith(".")))


def test_lit_tests_run_something():
    """Every .mlir below test/ has a RUN line, unless it is data of another test."""
    tests = [p for p in TEXTS if p.suffix == ".mlir" and p.is_relative_to(ROOT / "test")]
    tests = [p for p in tests if not {"Inputs", "data"} & set(p.parts)]
    complain([name(p) for p in tests if "RUN:" not in TEXTS[p]])


def test_every_source_is_built():
    """A test that no program has never fails."""
    lists = {p.parent: TEXTS[p] for p in TEXTS if p.name == "CMakeLists.txt"}
    rest = "".join(TEXTS[p] for p in TEXTS if p.suffix == ".cmake")
    found = []
    for path in TEXTS:
        if path.suffix not in (".cpp", ".c") or path.is_relative_to(ROOT / "tools/scripts"):
            continue
        owner = next(folder for folder in path.parents if folder in lists)
        # Benchmarks are named by a loop, without what is common to their names.
        words = (str(path.relative_to(owner)), "${bench}" + path.name[path.name.rfind("_") :])
        if not any(word in lists[owner] for word in words) and name(path) not in rest:
            found.append(name(path))
    complain(found)


# A function of a class, where it is defined.
MEMBER = re.compile(
    r"^(?:[\w:<>,&* ]+[\s&*])?(\w+)::(?:~?\w+|operator\S+)\([^;{}]*\)[^;{}()]*"
    r"(?::[^;{]*(?:\([^)]*\)|\{[^}]*\})[^;{]*)?\{",
    re.MULTILINE,
)


def test_a_class_is_in_two_files_at_most():
    """Whoever reads a class finds its functions in its .cpp, and perhaps one more."""
    classes = set()
    for path, text in TEXTS.items():
        if path.suffix in {".h", ".cpp"}:
            classes |= set(re.findall(r"^(?:class|struct) (\w+)", text, re.MULTILINE))
    places: dict[tuple[str, Path], set[str]] = {}
    for path, text in TEXTS.items():
        if path.suffix != ".cpp":
            continue
        # Classes of one name in two libraries are two classes.
        library = Path(*path.relative_to(ROOT).parts[:2])
        for found in MEMBER.findall(text):
            if found in classes:
                places.setdefault((found, library), set()).add(name(path))
    complain([f"{c}: {sorted(p)}" for (c, _), p in sorted(places.items()) if len(p) > 2])
