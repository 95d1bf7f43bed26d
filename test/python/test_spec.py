# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The gdn dialect's constraints: each stands in ODS, spec page, verifier and a negative test."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ODS = ROOT / "include/gdn/Dialect/GDN/IR"
SPEC = ROOT / "docs/spec"
VERIFIERS = "\n".join(p.read_text() for p in (ROOT / "lib/Dialect/GDN/IR").glob("*.cpp"))
# Ops whose page is that of another one.
SHARED_PAGES = {"yield": "kernel"}


def labels(text: str) -> list[int]:
    """The n of every `- (Cn)` list item, in order."""
    return [int(n) for n in re.findall(r"^\s*- \(C(\d+)\)", text, re.MULTILINE)]


def definitions() -> dict[str, str]:
    """ODS text by op mnemonic, and by type mnemonic for types."""
    found = {}
    for path in sorted(ODS.glob("*.td")):
        for body in re.split(r"^(?=def )", path.read_text(), flags=re.MULTILINE):
            op = re.match(r'def \w+ : GDN_Op<"(\w+)"', body)
            mnemonic = re.search(r'let mnemonic = "(\w+)"', body)
            if op or (body.startswith("def") and mnemonic):
                found[(op or mnemonic)[1]] = body
    return found


DEFINITIONS = definitions()
# Entries have no definition in ODS: their page is the definition.
CONSTRAINTS = {name: labels(text) for name, text in DEFINITIONS.items()}
CONSTRAINTS["entry"] = labels((SPEC / "entry.md").read_text())
CASES = [pytest.param(name, n, id=f"{name}_c{n}") for name, ns in CONSTRAINTS.items() for n in ns]


def test_the_dialect_was_found():
    assert {"delta_rule", "unpack", "kernel", "pool"} <= DEFINITIONS.keys()
    assert len(CASES) > 30


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_page_has_the_same_constraints(name):
    page = (SPEC / f"{SHARED_PAGES.get(name, name)}.md").read_text()
    own = CONSTRAINTS[SHARED_PAGES.get(name, name)]
    assert labels(page) == own
    assert own == list(range(1, len(own) + 1))


@pytest.mark.parametrize("name, n", CASES)
def test_verifier_cites(name, n):
    assert re.search(rf"//.*\b{name}_c{n}\b", VERIFIERS)


@pytest.mark.parametrize("name, n", CASES)
def test_negative_case(name, n):
    text = (ROOT / f"test/Dialect/GDN/{name}_invalid.mlir").read_text()
    assert re.search(rf"^func\.func (private )?@c{n}_", text, re.MULTILINE)


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_round_trip_exists(name):
    assert (ROOT / f"test/Dialect/GDN/{SHARED_PAGES.get(name, name)}.mlir").exists()


def test_verifier_cites_nothing_else():
    cited = re.findall(r"//.*?\b([a-z_0-9]+)_c(\d+)\b", VERIFIERS)
    unknown = {f"{name}_c{n}" for name, n in cited if int(n) not in CONSTRAINTS.get(name, [])}
    assert not unknown


@pytest.mark.parametrize("name", DEFINITIONS)
def test_index_lists(name):
    assert re.search(
        rf"^(\||-).*`!?(gdn\.)?{name}`", (SPEC / "README.md").read_text(), re.MULTILINE
    )
