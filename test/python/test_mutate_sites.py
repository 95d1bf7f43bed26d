# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""mutate.py: what is a site of a fault and what is not, that rewritten text compiles and does
what it did, and what a seed draws."""

import re
import shutil
import subprocess
from collections import Counter

import pytest

import mutate
from mutation import draw, judged, rewrite, sites
from mutation.draw import Mutant, MutationError
from mutation.judged import Fixed

HEAD = "// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception\n"


def found(kind, text, path="lib/Schedule/Some.cpp", body=True):
    """Sites of a kind as pairs of what is there and what becomes of it, on one line each."""
    text = HEAD + (f"void f() {{\n{text}\n}}\n" if body else text)
    return [
        (" ".join(site.original.split()), site.mutated)
        for site in sites.find(path, text)
        if site.kind == kind
    ]


RUNTIME = "runtime/src/core/some.cpp"


@pytest.mark.parametrize(
    "kind, text, expected",
    [
        # Masks.
        (
            "mask",
            "Value v = arith::SelectOp::create(b, loc, isInside, x, zero);",
            [("arith::SelectOp::create(b, loc, isInside, x, zero)", "x")],
        ),
        (
            "mask",
            "Value v = arith::SelectOp::create(\n    b, loc, isOver, index(0), next); // wraps",
            [("arith::SelectOp::create( b, loc, isOver, index(0), next)", "next")],
        ),
        ("mask", "use(a.both(first, second));", [("a.both(first, second)", "first")]),
        (
            "mask",
            "auto i = scf::IfOp::create(b, loc, isLive, /*withElse=*/false);",
            [("isLive", "mlir::arith::ConstantOp::create(b, loc, b.getBoolAttr(true))")],
        ),
        ("mask", "scf::IfOp::create(b, loc, types, isLive, true);", []),
        (
            "mask",
            "for (int64_t id : ids) {\n  if (!pool.isLive(id))\n    continue;\n}",
            [("!pool.isLive(id)", "false")],
        ),
        ("mask", "x = y & (group - 1);", [("y & (group - 1)", "y")]),
        ("mask", "use(value &other, &x);", []),
        ("mask", "y = n < m && pool.isLive(id);", [("n < m && pool.isLive(id)", "n < m")]),
        ("mask", "y = status.isOk() && isLive;", []),
        # Bounds.
        (
            "bound",
            "for (int i = 0; i < count + 1; ++i)\n  f(i);",
            [("i < count + 1", "i <= count + 1")],
        ),
        ("bound", "std::vector<int> x;\nauto y = static_cast<int>(z);", []),
        ("bound", "auto x = llvm::map_to_vector<4>(y, z) << 1;", []),
        (
            "bound",
            "x = std::min<int64_t>(16, bytes & -bytes);",
            [("std::min<int64_t>(16, bytes & -bytes)", "bytes & -bytes")],
        ),
        ("bound", "x = std::clamp(row, 0, rows);", [("std::clamp(row, 0, rows)", "row")]),
        ("bound", "x = std::max({a, b, c});", []),
        (
            "bound",
            "Value v = arith::MinUIOp::create(b, loc, left, index(C)).getResult();",
            [("arith::MinUIOp::create(b, loc, left, index(C)).getResult()", "left")],
        ),
        (
            "bound",
            "c(arith::CmpIPredicate::ult, x);",
            [("arith::CmpIPredicate::ult", "arith::CmpIPredicate::ule")],
        ),
        (
            "bound",
            "c = a.isLess(row, a.i32(rows));",
            [
                (
                    "a.isLess(row, a.i32(rows))",
                    "mlir::arith::CmpIOp::create(a.b, a.loc, mlir::arith::CmpIPredicate::sle, "
                    "row, a.i32(rows))",
                )
            ],
        ),
        # Waits.
        ("wait", "gpu::BarrierOp::create(b, loc);", [("gpu::BarrierOp::create(b, loc);", "")]),
        ("wait", "if (isFirst)\n  emitAwait();", [("emitAwait();", "")]),
        (
            "wait",
            "if (!isRole)\n  return (void)NVVM::Barrier0Op::create(b, loc);",
            [("(void)NVVM::Barrier0Op::create(b, loc)", "(void)0")],
        ),
        (
            "wait",
            'emitAssembly(b, loc, Type(), {}, "bar.sync 1;", "~{memory}", true);',
            [('emitAssembly(b, loc, Type(), {}, "bar.sync 1;", "~{memory}", true);', "")],
        ),
        ("wait", 'emitAssembly(b, loc, Type(), x, "prefetch.global.L2 [$0];", "l");', []),
        ("wait", "Value r = gpu::AwaitMatmulOp::create(b, loc, x);", []),
        # Scales.
        ("scale", "x = row * stride + 2;", [("row * stride", "row")]),
        ("scale", "x = 16 * parts;", [("16 * parts", "parts")]),
        ("scale", "int *x = *y;\nfoo(&x, *z);\nType *t(Value *v);", []),
        ("scale", "arrivals *= 2;", [("arrivals *= 2;", "")]),
        ("scale", "for (d = 1; d < n; d *= 2)\n  f(d);", []),
        (
            "scale",
            "v = arith::MulFOp::create(b, loc, x, y);",
            [("arith::MulFOp::create(b, loc, x, y)", "x")],
        ),
        ("scale", "v = a.mul(row, a.i32(bytes));", [("a.mul(row, a.i32(bytes))", "row")]),
        # Indices.
        ("index", "x = sizes[dim];", [("dim", "dim + 1")]),
        ("index", "x = sizes[0] + y;", [("sizes[0] + y", "sizes[0]"), ("0", "1")]),
        ("index", "x = starts[row + 1];", [("row + 1", "row")]),
        ("index", "int64_t words[kMost];\nauto f = [&](int x) { return x; };", []),
        ("index", "x = channels[tile];", []),
        ("index", "x = base - 2;", [("base - 2", "base")]),
        ("index", 'std::string s = "row " + number;\nt = Twine(x) + y;', []),
        ("index", "v = a.add(base, offset);", [("a.add(base, offset)", "base")]),
        (
            "index",
            "v = arith::SubIOp::create(b, loc, count, index(1));",
            [("arith::SubIOp::create(b, loc, count, index(1))", "count")],
        ),
        # Keys.
        (
            "key",
            "return bounds == o.bounds && slots == o.slots;",
            [("bounds == o.bounds && slots == o.slots", "bounds == o.bounds")],
        ),
        (
            "key",
            "x = n.major != m.major || n.minor != m.minor;",
            [("n.major != m.major || n.minor != m.minor", "n.major != m.major")],
        ),
        ("key", "x = isLive && a.size() > 2;", []),
        ("key", "x = a.kind == b.kind && a.rank == 2;", []),
        (
            "key",
            "use(modules_[{image.id(), code.blob}]);",
            [
                ("image.id()", "std::decay_t<decltype(image.id())>{}"),
                ("code.blob", "std::decay_t<decltype(code.blob)>{}"),
            ],
        ),
        (
            "key",
            "x = llvm::find_if(codes, [&](const Code &c) { return c.entry == name; });",
            [("c.entry == name", "true")],
        ),
        (
            "key",
            "for (Code &c : codes)\n  if (c.entry == name)\n    return c;",
            [("c.entry == name", "true")],
        ),
        ("key", "x = llvm::any_of(sizes, [](int64_t s) { return s == 0; });", []),
        # Checks.
        (
            "check",
            'if (dim < 0)\n  return op.emitOpError("expects dim ") << dim - 1;',
            [("dim < 0", "false")],
        ),
        (
            "check",
            'if (dim < 0) {\n  use(dim);\n  return invalid(name, ": expected ", dim * 2);\n}',
            [("dim < 0", "false")],
        ),
        (
            "check",
            "if (Attribute a = op.getAttr())\n  return failure();",
            [("Attribute a = op.getAttr()", "Attribute a = op.getAttr(); false")],
        ),
        (
            "check",
            "if (Status s = checkSizes(entry); !s.isOk())\n  return s;",
            [("!s.isOk()", "false")],
        ),
        ("check", "if (Status s = load(entry); !s.isOk())\n  return s;", []),
        ("check", "if (failed(emit(op)))\n  return failure();", []),
        ("check", "if (isEmpty)\n  return {};", []),
        ("check", "if (x) {\n  use(x);\n  if (failed(y))\n    return failure();\n}", []),
    ],
)
def test_sites(kind, text, expected):
    assert found(kind, text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "static constexpr int64_t bytes = 4 * sizes[2] + 1;",
        "constexpr int f(int x) {\n  if (x < 2)\n    return x * 3;\n  return x + 1;\n}",
        "template <int N = (1 < 2)> struct S {};",
        "static_assert(kMost * 2 < 9);",
        "#define TWICE(X) \\\n  ((X) * 2)\n",
        "struct S {\n  int64_t bytes = 4 * 2;\n  int64_t f(int64_t *x, T &y);\n};",
        "// x = y * sizes[row];\n/* if (a < b)\n continue; */",
        "std::string toString(int x) {\n  return x < 2 ? names[x] : other[x + 1];\n}",
        "bool operator<(const S &other) const;",
    ],
)
def test_what_is_no_code_of_a_release_build_has_no_sites(text):
    assert sites.find("lib/Schedule/Some.cpp", HEAD + text) == []


@pytest.mark.parametrize(
    "text",
    [
        'assert(x * 2 < sizes[row] && "fits");',
        'return op.emitOpError("got ") << sizes[row + 1] * 2;',
        'return invalid(name, ": got ", value ? *value : 0, x * 2);',
        'op->emitRemark() << "of " << total * 2;',
        "if constexpr (sizeof(T) * 2 < 8)\n  f();",
        'auto t = llvm::formatv(" {0}, {1};", barrier * 2, count);',
    ],
)
def test_text_and_assertions_have_no_sites(text):
    assert [site.mutated for site in sites.find("lib/a.cpp", f"void f() {{\n{text}\n}}\n")] == []


def test_waits_of_the_runtime_are_calls_that_wait():
    text = "if (Status s = device.synchronize(stream); !s.isOk())\n  return s;\ncommit();"
    assert found("wait", text, RUNTIME) == [
        ("device.synchronize(stream)", "decltype(device.synchronize(stream)){}")
    ]
    assert found("wait", "Status synchronize(void *stream) override;", RUNTIME) == []


def test_the_operands_of_an_operator():
    text = "x = f<int, 2>(a, b)[c] - y->z * (u + v) % w == -k && !g(h) ? p * q : r;"
    pairs = found("scale", text) + found("index", text)
    assert pairs == [
        ("y->z * (u + v)", "y->z"),
        ("p * q", "p"),
        ("f<int, 2>(a, b)[c] - y->z * (u + v) % w", "f<int, 2>(a, b)[c]"),
        ("c", "c + 1"),
        ("u + v", "u"),
    ]


# Rewriting.

PROGRAM = (
    HEAD
    + """#include <algorithm>
#include <cstdio>
#include <map>
#include <utility>

int waits = 0;
void commit() { ++waits; }
int failure(int x) { return -x; }
int check(int x, bool isPast) {
  if (isPast) // of what there is
    return failure(x);
  return x;
}
int area(int x, int y) {
  return x *
         y; // both
}
int main() {
  int sizes[] = {3, 5, 7}, sum = 0;
  for (int row = 0; row < 2; ++row) {
    if (row == 0)
      continue;
    sum += area(sizes[row], std::min(sizes[2], 6));
  }
  if (sum)
    commit();
  else
    sum = 1;
  std::map<std::pair<int, int>, int> known;
  int two = 2, three = 3;
  known[{sum, two}] = check(sum, true);
  known[{sum, three}] = 4;
  std::printf("%d %d %zu %d\\n", sum, waits, known.size(), known[{sum, two}]);
}
"""
)


def drawn(text, path="lib/Schedule/Some.cpp"):
    """All sites of a text that do not overlap, numbered from 1."""
    taken = []
    for site in sites.find(path, text):
        if not draw.overlaps(site, taken):
            taken.append(site)
    return [Mutant(number, "passes", site) for number, site in enumerate(taken, 1)]


def test_rewritten_text_keeps_its_lines_and_everything_else():
    mutants = drawn(PROGRAM)
    text = rewrite.rewritten("lib/Schedule/Some.cpp", PROGRAM, mutants)
    before, after = PROGRAM.split("\n"), text.split("\n")
    assert len(before) == len(after)
    assert after[0] == f'#include "../../include/gdn_mutant.h" {before[0]}'
    touched = {
        line
        for mutant in mutants
        for line in range(mutant.site.line, mutant.site.line + 1 + mutant.site.original.count("\n"))
    }
    assert [n for n in range(2, len(before)) if before[n - 1] != after[n - 1]] == sorted(touched)
    assert rewrite.rewritten("lib/other.cpp", PROGRAM, mutants) == PROGRAM


def test_without_a_fault_a_program_does_what_it_did(tmp_path):
    compiler = shutil.which("c++") or shutil.which("clang++") or llvm_compiler()
    if not compiler:
        pytest.skip("there is no compiler of C++")
    mutants = drawn(PROGRAM)
    kinds = {m.site.kind for m in mutants}
    assert kinds == {"mask", "bound", "wait", "scale", "index", "key", "check"}
    source = tmp_path / "lib/Schedule/Some.cpp"
    source.parent.mkdir(parents=True)
    source.write_text(rewrite.rewritten("lib/Schedule/Some.cpp", PROGRAM, mutants))
    header = tmp_path / rewrite.HEADER_PATH
    header.parent.mkdir()
    header.write_text(rewrite.HEADER)
    program = tmp_path / "program"
    command = [compiler, "-std=c++17", "-Werror=dangling-else", source, "-o", program]
    subprocess.run(command, check=True)

    def output(environment):
        done = subprocess.run([program], env=environment, text=True, capture_output=True)
        return done.stdout

    usual = output({})
    assert usual == "30 1 2 -30\n"
    assert output({"GDN_MUTANT": "0"}) == output({"GDN_MUTANT": "999"}) == usual
    other = {m.site.kind for m in mutants if output({"GDN_MUTANT": str(m.number)}) != usual}
    assert other == kinds


def llvm_compiler():
    version = (mutate.ROOT / "LLVM_VERSION").read_text().strip()
    return shutil.which(f"/usr/lib/llvm-{version}/bin/clang++")


def test_what_is_shown():
    text = HEAD + "void f() {\n  int x = row *\n          stride; // bytes\n  emitAwait();\n}\n"
    wait, scale = (s for s in sites.find("lib/a.cpp", text) if s.kind in ("wait", "scale"))
    assert rewrite.shown(scale, text) == [
        "-   int x = row *",
        "-           stride; // bytes",
        "+   int x = row; // bytes",
    ]
    assert rewrite.shown(wait, text) == ["-   emitAwait();", "+   /* skipped */"]


def test_the_nearest_is_blamed_where_none_is_named(tmp_path):
    text = HEAD + "void f() {\n  auto x = a * b;\n\n  x.g();\n\n\n  y = c * d;\n}\n"
    mutants = drawn(text)
    log = "../../lib/Schedule/Some.cpp:5:3: error: no member named 'g'\n"
    found = rewrite.blamed(log, tmp_path, tmp_path / "build/release", mutants)
    assert found == {mutants[0].site.key: "no member named 'g'"}
    log = "../../lib/Other.cpp:5:3: error: no member named 'g'\n"
    assert rewrite.blamed(log, tmp_path, tmp_path / "build/release", mutants) == {}


def test_what_does_not_compile_is_found(tmp_path):
    text = HEAD + "void f() {\n  x = a * b;\n  y = c *\n      d;\n  z = e * g;\n}\n"
    mutants = drawn(text)
    log = """FAILED: lib/x.o
In file included from ../../lib/Schedule/User.cpp:3:
../../lib/Schedule/Some.cpp:3:7: error: no such operator
../../lib/Other.h:5:1: note: a candidate
../../lib/Schedule/Some.cpp:6:7: warning: of no interest
/usr/include/c++/map:7:3: error: static assertion failed
../../lib/Schedule/Some.cpp:5:7: note: in instantiation of what is here
"""
    found = rewrite.blamed(log, tmp_path, tmp_path / "build/release", mutants)
    assert found == {
        mutants[0].site.key: "no such operator",
        mutants[1].site.key: "static assertion failed",
    }


# What is drawn.


@pytest.fixture(scope="module")
def texts():
    return draw.sources(mutate.ROOT, "HEAD")


@pytest.fixture(scope="module")
def tree_sites(texts):
    return draw.all_sites(texts)


def test_a_seed_draws_the_same_sites(tree_sites):
    first = draw.draw(tree_sites, 5, 60, 8)
    assert first == draw.draw(list(reversed(tree_sites)), 5, 60, 8)
    other = draw.draw(tree_sites, 6, 60, 8)
    assert len({m.site.key for m in first} & {m.site.key for m in other}) < 30


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_what_is_drawn_of_the_tree(tree_sites, texts, seed):
    mutants = draw.draw(tree_sites, seed, 60, 8)
    assert [m.number for m in mutants] == list(range(1, 61))
    of_kind = Counter(m.site.kind for m in mutants)
    assert set(of_kind) == set(sites.KINDS) and min(of_kind.values()) >= 8
    of_area = Counter(m.area for m in mutants)
    assert set(of_area) == set(sites.AREAS) and min(of_area.values()) >= 19
    both = Counter((m.site.kind, m.area) for m in mutants)
    assert len(both) == 21 and min(both.values()) >= 2
    assert len({m.site.file for m in mutants}) >= 40
    for mutant in mutants:
        others = [m.site for m in mutants if m is not mutant]
        assert not draw.overlaps(mutant.site, others)
        site = mutant.site
        assert texts[site.file][site.start : site.end] == site.original


def test_what_does_not_compile_leaves_its_number_to_another(tree_sites):
    first = draw.draw(tree_sites, 1, 60, 8)
    gone = first[30]
    second = draw.draw(tree_sites, 1, 60, 8, {gone.site.key})
    changed = [(a, b) for a, b in zip(first, second, strict=True) if a != b]
    assert [a.number for a, _ in changed] == [31]
    assert changed[0][1].site.kind == gone.site.kind and changed[0][1].area == gone.area


def test_where_an_area_has_too_few_others_help_out():
    text = HEAD + "void f() {\n" + "x = a * b;\n" * 20 + "}\n"
    found = [s for path in ("lib/Target/A.cpp", RUNTIME) for s in sites.find(path, text)]
    counts = {("scale", "passes"): 3, ("scale", "runtime"): 2}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(draw, "counts", lambda *_: counts)
        assert Counter(m.area for m in draw.draw(found, 1, 5, 0)) == {"emitters": 3, "runtime": 2}
        with pytest.raises(MutationError, match="expected 3 sites of scale in passes"):
            draw.draw(found, 1, 5, 0, {site.key for site in found})


def test_too_few_for_the_kinds():
    with pytest.raises(MutationError, match="at least 56, 8 of each kind, got 50"):
        draw.counts(50, 8)


def test_faults_written_by_hand_are_of_this_tree(texts):
    mutants = draw.fixed(texts, 61)
    assert [m.number for m in mutants] == list(range(61, 61 + len(judged.FIXED)))
    assert {m.site.kind for m in mutants} >= {"key", "bound"}
    for mutant, each in zip(mutants, judged.FIXED, strict=True):
        assert mutant.site.original == each.original and mutant.name == each.name


def test_a_fault_written_by_hand_that_has_lost_its_text():
    fault = Fixed("some", "key", RUNTIME, "f(x, y)", "y", "0")
    (mutant,) = draw.fixed({RUNTIME: HEAD + "void g() {\n  f(x, y);\n}\n"}, 1, [fault])
    assert mutant.site.text(7) == "(gdn_mutant(7) ? (0) : (y))"
    for text in ("", "f(x, y); f(x, y);"):
        with pytest.raises(MutationError, match=re.escape("some: expected the text once in")):
            draw.fixed({RUNTIME: text}, 1, [fault])
