# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Starts a new op, pass or conversion: files that build, to be filled in.

    new.py op gdn.decay_sum --theme TokenOps
    new.py pass gdn-merge-gates
    new.py conversion Tile GPU

CONTRIBUTING.md says what to do with them.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

TEMPLATES = Path(__file__).resolve().parent / "templates"
# Dialect namespace to its folder, its prefix in .td files and its tool.
DIALECTS = {
    "gdn": ("GDN", "GDN", "gdn-opt"),
    "gdn_tile": ("Tile", "Tile", "gdn-tile-opt"),
    "gdn_gpu": ("GPU", "GPU", "gdn-gpu-opt"),
}


class Tree:
    """The edits of one call; refuses to overwrite, and reports what it did."""

    def __init__(self, root: Path, words: dict[str, str]):
        self.root = root
        self.words = words

    def fill(self, template: str) -> str:
        text = (TEMPLATES / template).read_text()
        return re.sub(r"@(\w+)@", lambda m: self.words.get(m[1], m[0]), text)

    def create(self, path: str, template: str) -> None:
        self.write(path, self.fill(template))

    def write(self, path: str, text: str) -> None:
        target = self.root / path
        if target.exists():
            sys.exit(f"new: {path} exists")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        print(f"created {path}")

    def insert(self, path: str, text: str, before: str | None = None) -> None:
        """Inserts before the last line that starts with `before`, or at the end."""
        target = self.root / path
        if not target.exists():
            sys.exit(f"new: expects {path} to exist")
        old = target.read_text()
        at = old.rfind(f"\n{before}") + 1 if before else len(old)
        if before and at == 0:
            sys.exit(f"new: expects a line '{before}' in {path}")
        target.write_text(old[:at] + text + old[at:])
        print(f"changed {path}")

    def add_source(self, path: str, source: str) -> None:
        """Adds a file to the gdn_add_library call of a CMakeLists.txt, in order."""
        target = self.root / path
        lines = target.read_text().splitlines()
        first = next(n for n, line in enumerate(lines) if line.startswith("gdn_add_library("))
        at = first + 1
        while re.match(r"\s+\S+\.cpp$", lines[at]) and lines[at].strip() < source:
            at += 1
        closing = ""
        if at > first + 1 and lines[at - 1].endswith(".cpp)"):
            lines[at - 1], closing = lines[at - 1][:-1], ")"
        lines.insert(at, f"  {source}{closing}")
        target.write_text("\n".join(lines) + "\n")
        print(f"changed {path}")


def camel(name: str) -> str:
    """merge-gates or merge_gates to MergeGates."""
    return "".join(part[:1].upper() + part[1:] for part in re.split(r"[-_]", name))


def new_op(root: Path, mnemonic: str, theme: str) -> None:
    namespace, _, name = mnemonic.partition(".")
    if namespace not in DIALECTS or not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        sys.exit(f"new: expects an op such as gdn.decay_sum, but got '{mnemonic}'")
    folder, prefix, opt = DIALECTS[namespace]
    words = {"mnemonic": mnemonic, "name": name, "Camel": camel(name), "DIALECT": prefix}
    tree = Tree(root, {**words, "opt": opt})
    stem = f"{folder}{theme}" if theme else f"{folder}Ops"
    tree.insert(f"include/gdn/Dialect/{folder}/IR/{stem}.td", tree.fill("op.td"), "#endif")
    tree.insert(f"lib/Dialect/{folder}/IR/{stem}.cpp", tree.fill("op.cpp"))
    tree.create(f"test/Dialect/{folder}/{name}.mlir", "op.mlir")
    tree.create(f"test/Dialect/{folder}/{name}_invalid.mlir", "op_invalid.mlir")
    tree.create(f"docs/spec/{name}.md", "op.md")


def new_pass(root: Path, flag: str) -> None:
    match = re.fullmatch(r"(gdn|gdn-tile)-([a-z][a-z0-9-]*)", flag)
    if not match:
        sys.exit(f"new: expects a pass such as gdn-merge-gates, but got '{flag}'")
    namespace = "gdn_tile" if flag.startswith("gdn-tile-") else "gdn"
    name = flag.removeprefix(namespace.replace("_", "-") + "-")
    folder, _, opt = DIALECTS[namespace]
    base = f"Dialect/{folder}/Transforms"
    test = f"test/{base}/{name}.mlir"
    words = {"flag": flag, "Camel": camel(name), "UPPER": camel(name).upper(), "opt": opt}
    tree = Tree(root, {**words, "test": test, "passes": f"gdn/{base}/Passes"})
    tree.insert(f"include/gdn/{base}/Passes.td", tree.fill("pass.td"), "#endif")
    tree.create(f"lib/{base}/{camel(name)}.cpp", "pass.cpp")
    tree.add_source(f"lib/{base}/CMakeLists.txt", f"{camel(name)}.cpp")
    tree.create(test, "pass.mlir")


def new_conversion(root: Path, source: str, target: str) -> None:
    edge = f"{source}To{target}"
    flag = f"convert-{source}-to-{target}".lower()
    test = f"test/Conversion/{edge}/{edge.lower()}.mlir"
    words = {"flag": flag, "Camel": f"Convert{edge}", "UPPER": f"CONVERT{edge}".upper()}
    tree = Tree(root, {**words, "opt": "gdn-opt", "test": test, "passes": "gdn/Conversion/Passes"})
    tree.insert("include/gdn/Conversion/Passes.td", tree.fill("pass.td"), "#endif")
    tree.create(f"lib/Conversion/{edge}/{edge}.cpp", "pass.cpp")
    spdx = "# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception\n"
    tree.write(
        f"lib/Conversion/{edge}/CMakeLists.txt",
        f"{spdx}gdn_add_library({edge}\n  {edge}.cpp\n  LINK_LIBS GDNDialect TileDialect)\n",
    )
    tree.insert("lib/CMakeLists.txt", f"add_subdirectory(Conversion/{edge})\n")
    tree.create(test, "pass.mlir")
    print(f"left to you: link {edge} into the tools that run it")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    here = Path(__file__).resolve().parents[2]
    parser.add_argument("--root", type=Path, default=here, help="the tree to change")
    kinds = parser.add_subparsers(dest="kind", required=True)
    op = kinds.add_parser("op", help="an op of the gdn, gdn_tile or gdn_gpu dialect")
    op.add_argument("mnemonic", help="for example gdn.decay_sum")
    op.add_argument("--theme", default="", help="the .td it goes to: TokenOps, StateOps, ...")
    kinds.add_parser("pass", help="a pass within a dialect").add_argument("flag")
    conversion = kinds.add_parser("conversion", help="a conversion between two levels")
    conversion.add_argument("source", help="for example Tile")
    conversion.add_argument("target", help="for example GPU")
    options = parser.parse_args()
    if options.kind == "op":
        new_op(options.root, options.mnemonic, options.theme)
    elif options.kind == "pass":
        new_pass(options.root, options.flag)
    else:
        new_conversion(options.root, options.source, options.target)
    print("then: tools/scripts/docs.py, and ./check")
    return 0


if __name__ == "__main__":
    sys.exit(main())
