# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares the C interface, as the headers of gdn-c say it, with runtime/abi/gdnrt.abi.

Without options: fails if anything differs, with what abidiff of libabigail says of it.
--update renews the baseline; what breaks programs that were built before is refused,
unless --breaking comes with it.

What may differ without breaking them: functions and values of enums that are new,
members that are new at the end of structs which carry their size, behind padding, and a
name for a member `reserved`, which had to be 0.

No library with debug information is needed: the declarations of the headers, with empty
bodies, are compiled to one. That the library exports those functions and no others is
test runtime.exported_symbols.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from itertools import zip_longest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
INCLUDE = ROOT / "include"
BASELINE = ROOT / "runtime/abi/gdnrt.abi"
DECLARATION = re.compile(r'(__attribute__\(\(visibility\("default"\)\)\)[^;{}]*);')


def preprocessed(include: Path) -> str:
    """All headers of gdn-c, with the mark of exported functions."""
    headers = sorted((include / "gdn-c").glob("*.h"))
    source = "".join(f'#include "gdn-c/{header.name}"\n' for header in headers)
    command = ["cc", "-E", "-P", "-std=c11", "-DGDNRT_BUILDING", f"-I{include}", "-xc", "-"]
    return subprocess.run(command, input=source, text=True, capture_output=True, check=True).stdout


def dump(include: Path = INCLUDE) -> str:
    """The interface as libabigail writes it."""
    text = preprocessed(include)
    # A variable of each enum: functions take values of most of them as numbers.
    enums = re.findall(r"typedef enum (\w+) \{", text)
    source = DECLARATION.sub(r"\1 { __builtin_trap(); }", text)
    source += "".join(f"{enum} value_of_{enum};\n" for enum in enums)
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "libgdnrt.so"
        compile_ = ["cc", "-std=c11", "-w", "-g", "-fPIC", "-shared", "-nostdlib", "-xc", "-"]
        subprocess.run([*compile_, "-o", library], input=source, text=True, check=True)
        flags = ["--no-corpus-path", "--no-comp-dir-path", "--no-show-locs"]
        flags += ["--drop-private-types", "--type-id-style", "hash"]
        return subprocess.run(
            ["abidw", *flags, library], text=True, capture_output=True, check=True
        ).stdout


def abidiff(old: str, new: str) -> str:
    """What abidiff says of a difference; empty where there is none."""
    with tempfile.TemporaryDirectory() as folder:
        before, after = Path(folder) / "old.abi", Path(folder) / "new.abi"
        before.write_text(old)
        after.write_text(new)
        done = subprocess.run(
            ["abidiff", "--harmless", before, after], text=True, capture_output=True
        )
    if done.returncode & 3:
        raise RuntimeError(f"abidiff: {done.stderr or done.stdout}")
    return done.stdout if done.returncode else ""


class Interface:
    """An interface that libabigail wrote: types as C would spell them, by what has them."""

    def __init__(self, text: str):
        root = ElementTree.fromstring(text)
        self.by_id = {e.get("id"): e for e in root.iter() if e.get("id")}
        #: Members of each struct: name, offset and size in bytes, type.
        self.structs = {
            e.get("name"): [self._member(m) for m in e.iter("data-member")]
            for e in root.iter("class-decl")
            if e.get("size-in-bits") and e.get("is-declaration-only") != "yes"
        }
        #: Bytes of each struct.
        self.sizes = {
            e.get("name"): int(e.get("size-in-bits")) // 8
            for e in root.iter("class-decl")
            if e.get("size-in-bits")
        }
        self.enums = {
            e.get("name"): {v.get("name"): v.get("value") for v in e.iter("enumerator")}
            for e in root.iter("enum-decl")
        }
        #: Result and parameters of each function, as ids of types.
        self.functions = {
            e.get("name"): [
                e.find("return").get("type-id"),
                *(p.get("type-id") or "..." for p in e.findall("parameter")),
            ]
            for e in root.iter("function-decl")
        }

    def _member(self, member: ElementTree.Element) -> tuple[str, int, str]:
        variable = member.find("var-decl")
        offset = int(member.get("layout-offset-in-bits")) // 8
        return variable.get("name"), offset, self.spell(variable.get("type-id"))

    def spell(self, of: str) -> str:
        """A type by its names; what structs have inside is not in it."""
        e = self.by_id.get(of)
        if e is None:
            return of
        if e.tag == "pointer-type-def":
            return self.spell(e.get("type-id")) + "*"
        if e.tag == "qualified-type-def":
            return ("const " if e.get("const") else "") + self.spell(e.get("type-id"))
        if e.tag == "array-type-def":
            lengths = "".join(f"[{s.get('length')}]" for s in e.iter("subrange"))
            return self.spell(e.get("type-id")) + lengths
        if e.tag == "function-type":
            parts = [p.get("type-id") for p in [e.find("return"), *e.findall("parameter")]]
            return f"function({', '.join(map(self.spell, parts))})"
        return e.get("name")

    def signature(self, function: str) -> str:
        result, *parameters = map(self.spell, self.functions[function])
        return f"{result} {function}({', '.join(parameters)})"


def breaks(old: str, new: str) -> list[str]:
    """What of a difference breaks programs that were built before, one line each."""
    before, after = Interface(old), Interface(new)
    found = []
    for name in before.functions:
        was = before.signature(name)
        now = after.signature(name) if name in after.functions else "gone"
        if was != now:
            found.append(f"{name}: was {was}, is {now}")
    for name, values in before.enums.items():
        for value, number in values.items():
            now = after.enums.get(name, {}).get(value, "gone")
            if number != now:
                found.append(f"{name}: {value} was {number}, is {now}")
    for name, members in before.structs.items():
        now = after.structs.get(name, [])
        members = [renamed(*pair) for pair in zip_longest(members, now[: len(members)])]
        if members != now[: len(members)]:
            pairs = zip_longest(members, now[: len(members)])
            was, differs = next(pair for pair in pairs if pair[0] != pair[1])
            found.append(f"{name}: was {was}, is {differs or 'gone'}")
        elif len(now) > len(members):
            if members[0][0] != "struct_size":
                found.append(f"{name}: never changes, and has {now[len(members)][0]} now")
            elif now[len(members)][1] < before.sizes[name]:
                found.append(f"{name}: {now[len(members)][0]} lies in what was padding")
    return found


def renamed(was: tuple | None, now: tuple | None) -> tuple | None:
    """A member as it is now if it was reserved: callers left 0 there."""
    is_named = was and now and was[0] == "reserved" and was[1:] == now[1:]
    return now if is_named else was


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="abi.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--update", action="store_true", help="renew the baseline")
    parser.add_argument("--breaking", action="store_true", help="also where that breaks callers")
    options = parser.parse_args()
    now = dump()
    before = BASELINE.read_text() if BASELINE.exists() else now
    broken = breaks(before, now)
    if options.update:
        if broken and not options.breaking:
            print(*broken, "abi: this breaks programs that were built before", sep="\n")
            return 1
        BASELINE.write_text(now)
        return 0
    different = abidiff(before, now)
    if not BASELINE.exists() or different:
        print(different, *broken, sep="\n")
        print(
            "abi: the headers differ from runtime/abi/gdnrt.abi, and",
            "programs that were built before break"
            if broken
            else "programs that were built before go on: tools/scripts/abi.py --update",
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
