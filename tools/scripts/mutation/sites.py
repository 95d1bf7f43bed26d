# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where a fault can be put into C++ text, and what it makes of the text.

Seven kinds, each with a few patterns that follow how this tree is written: C++ that runs,
and C++ that builds the code of kernels. A pattern may find text that does not compile with
its fault; the build tells, and another site takes its place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from mutation.cpp import KEYWORDS, MESSAGES, PRECEDENCE, Source

KINDS = ("mask", "bound", "wait", "scale", "index", "key", "check")
AREAS = {
    "passes": ("lib/Dialect/*/Transforms", "lib/Schedule*", "lib/Conversion/GDNToTile*"),
    "emitters": ("lib/Conversion/GPUToNVVM*", "lib/Conversion/TileToCPU", "lib/Target"),
    "runtime": ("runtime/src/*",),
}
# What asks in the rewritten text whether the fault of a number is on.
ASK = "gdn_mutant({})"


@dataclass(frozen=True)
class Site:
    """A fault: `head`, the question and `tail` take the place of the text from `start` to
    `end`. `mutated` is for people: what stands there with the fault, alone."""

    kind: str
    pattern: str
    file: str
    line: int
    start: int
    end: int
    original: str
    mutated: str
    head: str
    tail: str

    def text(self, number: int) -> str:
        return self.head + ASK.format(number) + self.tail

    @property
    def key(self) -> str:
        """Names the site within one tree."""
        return f"{self.file}:{self.line}:{self.start}-{self.end}:{self.kind}"


def is_fixed(text: str) -> bool:
    """Whether an operand is a constant: a number, its name, or a builder's constant."""
    return bool(
        re.fullmatch(r"-?[\d.]\S*", text)
        or re.fullmatch(r"(\w+::)*(k[A-Z]\w*|[A-Z][A-Z\d_]+)|sizeof\(\w+\)", text)
        or re.fullmatch(r"((\w+\.)?(i32|i64)|(\w+\.)?index|constant)\(.*\)", text)
        or re.fullmatch(r"(zero|one|none|zeros|all|width|most\w*|max\w*|limit)", text)
    )


class Finder:
    """The sites of one file."""

    def __init__(self, source: Source):
        self.source = source

    def site(
        self, kind: str, pattern: str, span: tuple[int, int], mutated: str, head: str, tail: str
    ) -> Site:
        source, (first, last) = self.source, span
        start, end = source.tokens[first].start, source.tokens[last].end
        return Site(
            kind,
            pattern,
            source.path,
            source.line(first),
            start,
            end,
            source.text[start:end],
            mutated,
            head,
            tail,
        )

    def choice(
        self, kind: str, pattern: str, span: tuple[int, int], mutated: str, type_: str = ""
    ) -> Site:
        """An expression that is another with the fault; `type_` is made of both."""
        first, last = span
        source = self.source
        original = source.text[source.tokens[first].start : source.tokens[last].end]
        tail = f" ? {type_}({mutated}) : {type_}({original}))"
        return self.site(kind, pattern, span, mutated, "(", tail)

    def skip(self, kind: str, pattern: str, span: tuple[int, int]) -> Site:
        """A statement, up to its semicolon, that is not run with the fault."""
        first, last = span
        source = self.source
        original = source.text[source.tokens[first].start : source.tokens[last].end]
        return self.site(kind, pattern, span, "", "{ if (!", f") {original} }}")

    def flat(self, span: tuple[int, int]) -> str:
        return self.source.flat(*span)

    def value(self, kind: str, pattern: str, name: int, end: int, kept: str) -> Iterator[Site]:
        """A call that makes an op, or Arithmetic's, with an operand in its place."""
        source = self.source
        first, last = source.start_of(name), source.end_of(end)
        follows = source.flat(end + 1, last)
        if follows in ("", ".getResult()", ".getOut()") and source[first - 1] != "case":
            yield self.choice(kind, pattern, (first, last), kept, "mlir::Value")

    def which(self, lhs: str, rhs: str) -> str:
        """The operand that stays: what is constant goes."""
        return rhs if is_fixed(lhs) and not is_fixed(rhs) else lhs

    def ops(self, names: str) -> Iterator[tuple[int, int, list[tuple[int, int]]]]:
        """`NameOp::create(builder, loc, ..)`: the token create, the closing bracket and the
        arguments."""
        source = self.source
        for name, open_, end in source.calls():
            is_op = source[name] == "create" and source[name - 1] == "::"
            if is_op and re.fullmatch(names, source[name - 2]):
                yield name, end, source.arguments(open_)

    def methods(self, names: str) -> Iterator[tuple[int, int, list[tuple[int, int]]]]:
        """Calls of what is named like that, as a method or alone: name, closing bracket and
        arguments."""
        source = self.source
        for name, open_, end in source.calls():
            if re.fullmatch(names, source[name]) and source[name - 1] != "::":
                before = source.kind(source.start_of(name) - 1)
                if before != "name" or source[source.start_of(name) - 1] in KEYWORDS:
                    yield name, end, source.arguments(open_)

    def binary(self, *texts: str) -> Iterator[tuple[int, tuple[int, int], tuple[int, int]]]:
        """The operator, and the spans of its operands."""
        source = self.source
        for i in range(len(source.tokens)):
            if source[i] in texts and source.code[i] and source.is_binary(i):
                yield i, (source.left(i), i - 1), (i + 1, source.right(i))

    def conditions(self) -> Iterator[tuple[int, tuple[int, int], int, int]]:
        """Of each `if`: its number, the condition behind what it declares, and the first
        token and the end of what it guards."""
        source = self.source
        for i in range(len(source.tokens)):
            if source[i] != "if" or source[i + 1] != "(" or not source.code[i]:
                continue
            end = source.partner.get(i + 1, i + 1)
            first = i + 2
            for at in range(i + 2, end):
                if source[at] == ";" and source.block(at) < i:
                    first = at + 1
            if source[end + 1] == "{":
                yield i, (first, end - 1), end + 2, source.partner.get(end + 1, end + 1)
            elif end + 1 < len(source.tokens):
                yield i, (first, end - 1), end + 1, source.statement(end + 1)[1] + 1

    def never(self, kind: str, pattern: str, number: int, span: tuple[int, int]) -> Iterator[Site]:
        """A condition that never holds with the fault."""
        source, (first, last) = self.source, span
        original = source.text[source.tokens[first].start : source.tokens[last].end]
        declared = [i for i in source.outside(first, last) if source[i] == "="]
        if not declared:
            yield self.site(kind, pattern, span, "false", "!", f" && ({original})")
        elif first == number + 2 and source.kind(declared[0] - 1) == "name":
            # What a condition declares, it declares ahead of the condition now.
            name = source[declared[0] - 1]
            yield self.site(
                kind, pattern, span, f"{self.flat(span)}; false", f"{original}; !", f" && {name}"
            )


Pattern = Callable[[Finder], Iterator[Site]]
PATTERNS: dict[str, list[Pattern]] = {kind: [] for kind in KINDS}


def pattern(kind: str) -> Callable[[Pattern], Pattern]:
    def add(function: Pattern) -> Pattern:
        PATTERNS[kind].append(function)
        return function

    return add


# Masks: what holds for some lanes, rows or slots, for all.


@pattern("mask")
def select(f: Finder) -> Iterator[Site]:
    for name, end, args in f.ops("SelectOp"):
        if len(args) == 5:
            yes, no = f.flat(args[3]), f.flat(args[4])
            kept = no if is_fixed(yes) and not is_fixed(no) else yes
            yield from f.value("mask", "select", name, end, kept)


@pattern("mask")
def both(f: Finder) -> Iterator[Site]:
    for name, end, args in f.ops("AndIOp"):
        if len(args) == 4:
            yield from f.value("mask", "and", name, end, f.which(*map(f.flat, args[2:])))
    for name, end, args in f.methods("both"):
        if len(args) == 2:
            yield from f.value("mask", "and", name, end, f.flat(args[0]))


@pattern("mask")
def branch(f: Finder) -> Iterator[Site]:
    """A branch of the emitted code that is always taken."""
    for _, _, args in f.ops("IfOp"):
        if len(args) != 4 or f.flat(args[3]) != "false":
            continue
        b, loc = f.flat(args[0]), f.flat(args[1])
        true = f"mlir::arith::ConstantOp::create({b}, {loc}, {b}.getBoolAttr(true))"
        yield f.choice("mask", "branch", args[2], true, "mlir::Value")


@pattern("mask")
def skipped(f: Finder) -> Iterator[Site]:
    """Rows, slots or parameters that are left out, and are not."""
    for i, span, then, _ in f.conditions():
        if f.source[then] == "continue":
            yield from f.never("mask", "continue", i, span)


@pattern("mask")
def bits(f: Finder) -> Iterator[Site]:
    for _, lhs, rhs in f.binary("&"):
        yield f.choice("mask", "bits", (lhs[0], rhs[1]), f.which(f.flat(lhs), f.flat(rhs)))


@pattern("mask")
def guard(f: Finder) -> Iterator[Site]:
    """One of two conditions, which says of what is asked, is not asked."""
    guards = r"!?([\w.>()-]*\b)?(is[A-Z]\w*|has[A-Z]\w*|present|live|valid|mask\w*)\b.*"
    for _, lhs, rhs in f.binary("&&"):
        left, right = f.flat(lhs), f.flat(rhs)
        if "isOk()" in left + right:
            continue
        if re.fullmatch(guards, right):
            yield f.choice("mask", "guard", (lhs[0], rhs[1]), left)
        elif re.fullmatch(guards, left) and not f.source.operators(*lhs):
            yield f.choice("mask", "guard", (lhs[0], rhs[1]), right)


# Bounds: by one, or not there.


@pattern("bound")
def compare(f: Finder) -> Iterator[Site]:
    other = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
    for i, lhs, rhs in f.binary(*other):
        mutated = f"{f.flat(lhs)} {other[f.source[i]]} {f.flat(rhs)}"
        yield f.choice("bound", "compare", (lhs[0], rhs[1]), mutated)


@pattern("bound")
def clamp(f: Finder) -> Iterator[Site]:
    source = f.source
    for name, open_, end in source.calls():
        is_std = source[name - 1] == "::" and source[name - 2] == "std"
        if not is_std or source[name] not in ("min", "max", "clamp"):
            continue
        args = [f.flat(span) for span in source.arguments(open_)]
        if len(args) < 2 or args[0].startswith("{"):
            continue
        kept = args[0] if source[name] == "clamp" else f.which(args[0], args[1])
        yield f.choice("bound", "clamp", (source.start_of(name), end), kept)


@pattern("bound")
def emitted_clamp(f: Finder) -> Iterator[Site]:
    for name, end, args in f.ops("(Min|Max)[US]IOp|(Min|Max)imumFOp"):
        if len(args) == 4:
            kept = f.which(*map(f.flat, args[2:]))
            yield from f.value("bound", "emitted clamp", name, end, kept)
    for name, end, args in f.methods("clamp"):
        if len(args) == 2:
            yield from f.value("bound", "emitted clamp", name, end, f.flat(args[0]))


@pattern("bound")
def predicate(f: Finder) -> Iterator[Site]:
    other = {"lt": "le", "le": "lt", "gt": "ge", "ge": "gt"}
    source = f.source
    for i in range(2, len(source.tokens)):
        found = re.fullmatch(r"([us])(lt|le|gt|ge)", source[i])
        if found and source[i - 1] == "::" and source.code[i] and source[i + 1] != ":":
            first = source.start_of(i)
            mutated = source.flat(first, i - 1) + found[1] + other[found[2]]
            yield f.choice("bound", "predicate", (first, i), mutated)


@pattern("bound")
def is_less(f: Finder) -> Iterator[Site]:
    source = f.source
    for name, end, args in f.methods("isLess"):
        if len(args) != 2 or source[name - 1] != ".":
            continue
        owner = source.flat(source.start_of(name), name - 2)
        mutated = (
            f"mlir::arith::CmpIOp::create({owner}.b, {owner}.loc, "
            f"mlir::arith::CmpIPredicate::sle, {f.flat(args[0])}, {f.flat(args[1])})"
        )
        yield from f.value("bound", "isLess", name, end, mutated)


# Waits: barriers, fences, commits and arrivals that are not there.

WAITS = (
    r"(Barrier0?|SyncWarp|Await\w+|Arrive|Commit|Release\w*|CpAsync\w*(Commit|Wait)\w*"
    r"|Wgmma(Fence|Commit|Wait)\w*|Fence\w*|MBarrier\w*)Op"
)
WAITING_CALLS = (
    r"emit(Await\w*|Barrier|ClusterBarrier|ReleaseLaunch)|awaitCopies|arrive|commit\w*"
    r"|release\w*|wait\w*|synchronize|streamSynchronize"
)
WAITING_ASSEMBLY = (
    r"[ \";](bar\.|barrier\.|fence\.|griddepcontrol\.|mbarrier\."
    r"|cp\.async\S*\.(commit|wait)|wgmma\.(fence|commit|wait))"
)


@pattern("wait")
def emitted_wait(f: Finder) -> Iterator[Site]:
    source = f.source
    for name, end, _ in f.ops(WAITS):
        yield from statement(f, "op", source.start_of(name), end)


@pattern("wait")
def waiting_call(f: Finder) -> Iterator[Site]:
    """Calls of what emits a wait; in the runtime, those that wait."""
    source = f.source
    is_runtime = source.path.startswith("runtime/")
    for name, open_, end in source.calls():
        first = source.start_of(name)
        if is_runtime and source[name] in ("synchronize", "streamSynchronize"):
            call = f.flat((first, end))
            if source.kind(first - 1) != "name" or source[first - 1] in KEYWORDS:
                yield f.choice("wait", "call", (first, end), f"decltype({call}){{}}")
        elif not is_runtime and re.fullmatch(WAITING_CALLS, source[name]):
            yield from statement(f, "call", first, end)
        elif not is_runtime and source[name] == "emitAssembly":
            texts = " ".join(source[i] for i in range(open_, end) if source.kind(i) == "string")
            if re.search(WAITING_ASSEMBLY, texts):
                yield from statement(f, "assembly", first, end)


def statement(f: Finder, pattern: str, first: int, end: int) -> Iterator[Site]:
    """A call that is a statement, or all that a function without a result returns."""
    source = f.source
    if source[end + 1] != ";":
        return
    if source.flat(first - 3, first - 1) == "(void)":
        yield f.choice("wait", pattern, (first - 3, end), "(void)0")
    elif source.starts_statement(first):
        yield f.skip("wait", pattern, (first, end + 1))


# Scales: factors that are not there.


@pattern("scale")
def factor(f: Finder) -> Iterator[Site]:
    for _, lhs, rhs in f.binary("*"):
        sides = f.flat(lhs), f.flat(rhs)
        if not all(map(is_fixed, sides)):
            yield f.choice("scale", "factor", (lhs[0], rhs[1]), f.which(*sides))


@pattern("scale")
def scaled_by(f: Finder) -> Iterator[Site]:
    source = f.source
    for i in range(len(source.tokens)):
        if source[i] == "*=" and source.code[i]:
            first, last = source.statement(i)
            if source.start_of(i - 1) == first and source[last] == ";":
                yield f.skip("scale", "factor", (first, last))


@pattern("scale")
def product(f: Finder) -> Iterator[Site]:
    for name, end, args in f.ops("Mul[FI]Op"):
        if len(args) >= 4:
            kept = f.which(*map(f.flat, args[2:4]))
            yield from f.value("scale", "product", name, end, kept)


@pattern("scale")
def mul(f: Finder) -> Iterator[Site]:
    for name, end, args in f.methods("mul"):
        if len(args) == 2:
            yield from f.value("scale", "mul", name, end, f.which(*map(f.flat, args)))


# Indices: by one, or without an offset.


# What is an index of its own, as far as its name says.
NUMBER = re.compile(
    r"(\w+(\.|->))*([a-z]|\d+|at|size\(\)|count|variant|\w*([rR]ow|[iI]ndex|[pP]lace|[sS]lot"
    r"|[dD]im|[nN]umber|[pP]aram|[gG]roup|[sS]tage|[sS]tep|[fF]irst|[lL]ast))"
)


@pattern("index")
def subscript(f: Finder) -> Iterator[Site]:
    source = f.source
    for i in range(1, len(source.tokens)):
        end = source.partner.get(i, i)
        if source[i] != "[" or end <= i + 1 or not source.code[i]:
            continue
        before = source.kind(i - 1) == "name" and source[i - 1] not in KEYWORDS
        if not before and source[i - 1] not in (")", "]"):
            continue
        first = source.start_of(i - 1)
        if source.kind(first - 1) == "name" and source[first - 1] not in KEYWORDS:
            continue  # an array is declared
        span = (i + 1, end - 1)
        index, operators = f.flat(span), source.operators(*span)
        sums = [at for at in operators if source[at] in ("+", "-")]
        if sums:
            mutated = f.flat((span[0], sums[-1] - 1))
        elif not operators and NUMBER.fullmatch(index):
            mutated = f"{index} + 1"
            if index.isdigit():
                mutated = "1" if index == "0" else str(int(index) - 1)
        else:
            continue
        yield f.choice("index", "subscript", span, mutated)


@pattern("index")
def sum_(f: Finder) -> Iterator[Site]:
    """An offset that is not added; sums of text are not indices."""
    source = f.source
    text = re.compile(r'"|\bTwine\b|\bstr\(|to_string|string\b|\b(name|what|text|prefix|of)\b')
    for i, lhs, rhs in f.binary("+", "-"):
        left, right = f.flat(lhs), f.flat(rhs)
        first, last = source.statement(i)
        around = f.flat((max(first, lhs[0] - 4), min(last, rhs[1] + 4)))
        if text.search(left + " " + right) or '"' in around or right.endswith("begin()"):
            continue
        kept = right if source[i] == "+" and is_fixed(left) and not is_fixed(right) else left
        yield f.choice("index", "offset", (lhs[0], rhs[1]), kept)


@pattern("index")
def emitted_sum(f: Finder) -> Iterator[Site]:
    for name, end, args in f.ops("(Add|Sub)IOp"):
        if len(args) == 4:
            is_sum = f.source[name - 2] == "AddIOp"
            lhs, rhs = f.flat(args[2]), f.flat(args[3])
            kept = f.which(lhs, rhs) if is_sum else lhs
            yield from f.value("index", "emitted offset", name, end, kept)


@pattern("index")
def add(f: Finder) -> Iterator[Site]:
    for name, end, args in f.methods("add|sub"):
        if len(args) == 2:
            lhs, rhs = map(f.flat, args)
            kept = f.which(lhs, rhs) if f.source[name] == "add" else lhs
            yield from f.value("index", "add", name, end, kept)


# Keys: a part of what has to be equal that is not compared.


def is_equality(f: Finder, span: tuple[int, int], text: str, names: bool = False) -> bool:
    """Whether a span is one comparison; with `names`, not one with a number or nothing."""
    source = f.source
    found = [at for at in source.operators(*span) if PRECEDENCE[source[at]] <= 6]
    if len(found) != 1 or source[found[0]] != text:
        return False
    sides = f.flat((span[0], found[0] - 1)), f.flat((found[0] + 1, span[1]))
    return not names or not any(is_fixed(side) or side == "nullptr" for side in sides)


@pattern("key")
def conjunct(f: Finder) -> Iterator[Site]:
    """One of two comparisons, `a == b && c == d` or `a != b || c != d`."""
    source = f.source
    for i, lhs, rhs in f.binary("&&", "||"):
        text = "==" if source[i] == "&&" else "!="
        chain = [at for at in source.operators(*lhs) if source[at] == source[i]]
        last = (chain[-1] + 1 if chain else lhs[0], lhs[1])
        if is_equality(f, rhs, text, names=True) and is_equality(f, last, text):
            yield f.choice("key", "conjunct", (lhs[0], rhs[1]), f.flat(lhs))


@pattern("key")
def component(f: Finder) -> Iterator[Site]:
    """A part of the key of a map, which is always the same."""
    source = f.source
    for i in range(2, len(source.tokens)):
        if source[i] != "{" or not source.code[i] or i not in source.partner:
            continue
        asks = ("lookup", "find", "contains", "count")
        if source[i - 1] == "[" or (source[i - 1] == "(" and source[i - 2] in asks):
            yield from components(f, source.arguments(i))
    for name, open_, end in source.calls():
        if source[name] in ("tie", "hash_combine") and source[end + 1] != "=":
            yield from components(f, source.arguments(open_))


def components(f: Finder, args: list[tuple[int, int]]) -> Iterator[Site]:
    if len(args) < 2:
        return
    for span in args:
        part = f.flat(span)
        if not is_fixed(part) and not re.match(r'[&{"]', part):
            yield f.choice("key", "component", span, f"std::decay_t<decltype({part})>{{}}")


@pattern("key")
def found_by(f: Finder) -> Iterator[Site]:
    """A search that takes the first there is: a comparison that is all of a lambda, or all
    that a loop asks before it returns."""
    source = f.source
    for i in range(len(source.tokens)):
        if source[i] == "return" and source.code[i]:
            span = (i + 1, source.statement(i)[1] - 1)
            is_lambda = source[i - 1] == "{" and source.is_lambda(i - 1)
            if is_lambda and is_equality(f, span, "==", names=True):
                yield f.choice("key", "found by", span, "true")
    for i, span, then, _ in f.conditions():
        before = source.partner.get(i - 1, 0) if source[i - 1] == ")" else 0
        is_search = source[before - 1] == "for" and source[then] == "return"
        if is_search and is_equality(f, span, "==", names=True):
            yield f.choice("key", "found by", span, "true")


# Checks: what is refused, and is not.


@pattern("check")
def refusal(f: Finder) -> Iterator[Site]:
    """`if (..) return` with a message, or with the status of what has checked."""
    source = f.source
    for i, span, then, end in f.conditions():
        at = last_statement(source, then, end)
        if source[at] != "return":
            continue
        returned = source.names(at, source.statement(at)[1])
        condition = f.flat(span)
        asked = source.names(i, span[1])
        if returned & MESSAGES and not re.search(r"\bfailed\(", condition):
            name = "refusal" if source[at + 3] != ")" else "mismatch"
            yield from f.never("check", name, i, span)
        elif re.search(r"isOk\(\)", condition) and any(
            re.match(r"(check|refuse|verify|validate|expect|require)", name) for name in asked
        ):
            yield from f.never("check", "status", i, span)


def last_statement(source: Source, then: int, end: int) -> int:
    """The first token of the last statement of what a branch holds, if that always runs."""
    if source[then] == "return" or source[end - 1] != ";":
        return then
    first = source.statement(end - 1)[0]
    return first if source[first - 1] in (";", "{", "}") else then


def find(path: str, text: str) -> list[Site]:
    """The sites of a file, in order of kinds and places, each text once for a kind."""
    finder = Finder(Source(path, text))
    found: dict[tuple[str, int, int], Site] = {}
    for kind, patterns in PATTERNS.items():
        for each in patterns:
            for site in each(finder):
                found.setdefault((kind, site.start, site.end), site)
    return sorted(found.values(), key=lambda site: (KINDS.index(site.kind), site.start, site.end))
