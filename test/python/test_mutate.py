# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""mutate.py: when a suite has caught a fault, with suites that pretend; what a run takes over from
the one before; the clone."""

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import mutate
from mutation import draw, reach, rewrite, runner, sites
from mutation.draw import Mutant, MutationError
from mutation.judged import Equivalent
from mutation.runner import Runner, Suite

HEAD = "// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception\n"
RUNTIME = "runtime/src/core/some.cpp"

# Suites.


class PretendTree:
    """A clone without a build."""

    def __init__(self, path):
        self.path = self.root = self.build = path
        self.work = path / "work"
        self.work.mkdir()
        self.jobs = 1
        self.made, self.forgotten = [], 0
        self.code = 0
        (path / "LLVM_VERSION").write_text("22\n")

    def make_images(self, mutant, log, _limit_s):
        self.made.append(mutant)
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("[3/9] x\nFAILED: [code=1] runtime/cts/lazy.gdnk\n")
        return self.code

    def restore_images(self):
        self.made.append("restored")

    def forget(self):
        self.forgotten += 1


def pretend(name, fails="()", areas=runner.ALL, **more):
    """A suite that notes that it ran, and fails on the faults with these numbers."""
    script = (
        (
            "import os, sys, time\n"
            "number = os.environ.get('GDN_MUTANT')\n"
            f"with open('ran', 'a') as ran: ran.write(f'{name}:{{number}} ')\n"
            f"if number in {fails}: sys.exit('FAIL: some :: a/test.mlir (1 of 2)')\n"
        )
        .replace("{", "{{")
        .replace("}", "}}")
    )
    command = ("{python}", "-c", script + more.pop("script", ""))
    return Suite(name, areas, command, runner.LIT, **more)


def mutant(number, area="runtime", kind="key"):
    file = {"runtime": RUNTIME, "passes": "lib/Schedule/a.cpp"}.get(area, "lib/Target/a.cpp")
    site = sites.Site(kind, "some", file, number, 0, 9, f"a  * {number}", "a", "(", ")")
    return Mutant(number, area, site)


@pytest.fixture
def campaign(tmp_path):
    """Runs suites on faults; gives what ran, and the record."""
    tree = PretendTree(tmp_path)
    said = []

    def run(suites, mutants, tree=tree, quick=False, **facts):
        facts = {"seed": 1, "drawn": 3, "commit": "c", "sources": "s"} | facts
        record = tmp_path / "mutations.json"
        each = Runner(tree, suites, facts, record, said.append)
        each.resume()
        try:
            each.run(mutants, quick)
        finally:
            ran = tmp_path / "ran"
            run.ran = ran.read_text().split() if ran.exists() else []
            ran.unlink(missing_ok=True)
        return json.loads(record.read_text())

    run.tree, run.said = tree, said
    return run


def by_number(record):
    return {entry["number"]: entry for entry in record["mutants"]}


def test_the_first_suite_that_fails_ends_it(campaign):
    suites = [pretend("one", "('2',)"), pretend("two", "('1', '2')"), pretend("three")]
    record = campaign(suites, [mutant(1), mutant(2), mutant(3)])
    base = ["one:None", "two:None", "three:None"]
    # What fails does so once more, and passes without the fault.
    caught = ["two:1", "two:1", "two:None", "one:2", "one:2", "one:None"]
    assert campaign.ran == [*base, "one:1", *caught, "one:3", "two:3", "three:3"]
    entries = by_number(record)
    assert [entries[n]["caught_by"] for n in (1, 2, 3)] == ["two", "one", None]
    assert entries[1]["test"] == "a/test.mlir" and entries[3]["test"] == ""
    assert entries[1]["original"] == "a * 1" and entries[1]["site"] == f"{RUNTIME}:1"
    totals = [record[name] for name in ("run", "caught", "survived", "equivalent")]
    assert totals == [3, 2, 1, 0] and record["caught_of_100"] == 66.7
    assert list(record)[-1] == "mutants" and set(record["base"]) == {"one", "two", "three"}
    assert campaign.tree.forgotten > 9  # what was made with another fault
    assert "caught by two a/test.mlir" in campaign.said[3] and "SURVIVES" in campaign.said[5]


def test_a_suite_that_does_not_end_has_caught_the_fault(campaign):
    script = "if number: print(flush=True); time.sleep(60)"
    record = campaign([pretend("slow", script=script, limit_s=2)], [mutant(1)])
    entry = by_number(record)[1]
    assert (entry["caught_by"], entry["test"]) == ("slow", "no end")
    assert 1.9 < entry["seconds"] < 30


def test_what_a_stopped_suite_has_started_is_stopped_too(tmp_path):
    child = "import time, pathlib; time.sleep(2); pathlib.Path('late').touch()"
    script = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {child!r}])"
    log = tmp_path / "log"
    script += "; time.sleep(60)"
    assert rewrite.run([sys.executable, "-c", script], tmp_path, log, 1) is None
    wait = "import time; time.sleep(2)"
    assert rewrite.run([sys.executable, "-c", wait], tmp_path, log, 9) == 0
    assert not (tmp_path / "late").exists()


def test_suites_are_those_of_the_area(campaign):
    suites = [pretend("lit", areas=runner.COMPILER), pretend("unit", images=True)]
    campaign(suites, [mutant(1), mutant(2, "passes")])
    ran = [each for each in campaign.ran if not each.endswith("None")]
    assert ran == ["unit:1", "lit:2", "unit:2"]
    # Faults of the compiler have images of their own.
    assert campaign.tree.made == [2, "restored"]


def test_images_that_cannot_be_made_have_caught_the_fault(campaign):
    campaign.tree.code = 1
    suites = [pretend("lit"), pretend("unit", images=True)]
    entry = by_number(campaign(suites, [mutant(1, "emitters")]))[1]
    assert (entry["caught_by"], entry["test"]) == (runner.IMAGES, "runtime/cts/lazy.gdnk")
    assert campaign.ran[2:] == ["lit:1"] and campaign.tree.made == [1, "restored"]


def test_suites_that_fail_without_a_fault_catch_nothing(campaign):
    with pytest.raises(MutationError, match="one fails without a fault: a/test"):
        campaign([pretend("one", "(None,)")], [mutant(1)])
    assert campaign.ran == ["one:None"]


def test_a_run_goes_on_where_it_stopped(campaign, monkeypatch):
    suites = [pretend("one", "('1',)"), pretend("two")]
    mutants = [mutant(1), mutant(2), mutant(3)]
    run_one = Runner.run_one

    def stopped(self, mutant, *rest):
        if mutant.number == 3:
            raise KeyboardInterrupt
        run_one(self, mutant, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(Runner, "run_one", stopped)
        with pytest.raises(KeyboardInterrupt):
            campaign(suites, mutants)
    record = campaign(suites, mutants)
    assert campaign.ran == ["one:3", "two:3"]
    assert [entry["number"] for entry in record["mutants"]] == [1, 2, 3]
    # A suite more: on what has survived.
    campaign([*suites, pretend("three", "('2',)")], mutants)
    assert campaign.ran == ["three:None", "three:2", "three:2", "three:None", "three:3"]
    # Another seed or other sources: from the beginning.
    for other in ({"seed": 2}, {"drawn": 4}, {"sources": "t"}):
        campaign(suites, mutants, **other)
        assert len(campaign.ran) == 9


def test_a_commit_that_changes_tests_runs_survivors_again(campaign):
    suites = [pretend("one", "('1',)"), pretend("two")]
    campaign(suites, [mutant(1), mutant(2), mutant(3)])
    record = campaign([suites[0], pretend("two", "('2',)")], [mutant(2)], commit="d")
    base = ["one:None", "two:None"]
    assert campaign.ran == [*base, "one:2", "two:2", "two:2", "two:None"]
    entries = by_number(record)
    assert [entries[n]["caught_by"] for n in (1, 2, 3)] == ["one", "two", None]
    assert [entries[n]["commit"] for n in (1, 2)] == ["c", "d"]
    assert (record["run"], record["survived"]) == (2, 0)  # 3 has not run at this commit


def test_an_old_suite_runs_on_what_survives_the_others_and_counts_for_nothing(campaign):
    suites = [pretend("before", "('1', '2')", old=True), pretend("new", "('1',)")]
    record = campaign(suites, [mutant(1), mutant(2)])
    ran = [each for each in campaign.ran[2:] if each != "before:None"]
    assert ran == ["new:1", "new:1", "new:None", "new:2", "before:2", "before:2"]
    assert (record["caught"], record["survived"]) == (1, 1)
    assert by_number(record)[2]["caught_by"] == "before"


def test_an_equivalent_fault_does_not_count(campaign, monkeypatch):
    why = Equivalent(RUNTIME, "a * 2", "a", "a is always 0")
    monkeypatch.setattr(runner, "EQUIVALENT", [why])
    record = campaign([pretend("one", "('1',)")], [mutant(1), mutant(2)])
    assert (record["caught"], record["equivalent"], record["survived"]) == (1, 1, 0)
    assert record["caught_of_100"] == 100.0
    assert by_number(record)[2]["equivalent"] == "a is always 0"


def test_what_fails_by_chance_is_not_caught(campaign):
    """A suite that fails once with each fault, and one that fails without a fault then, too."""
    once = (
        "if number == '1':\n"
        "  if os.path.exists('failed'): sys.exit(0)\n"
        "  open('failed', 'w').close()\n"
        "  sys.exit('FAIL: some :: a/test.mlir (1 of 2)')\n"
    )
    record = campaign([pretend("one", script=once)], [mutant(1)])
    assert by_number(record)[1]["caught_by"] is None and record["survived"] == 1
    assert any("fails by chance" in text for text in campaign.said)
    always = "if os.path.exists('failed'): sys.exit('FAIL: some :: a/test.mlir (1 of 2)')\n"
    (campaign.tree.path / "failed").unlink()
    first = "if number == '3': open('failed', 'w').close()\n"
    with pytest.raises(MutationError, match="two fails by chance"):
        campaign([pretend("two", script=first + always)], [mutant(3)])


def test_without_whole_suites_only_what_executes_the_site_runs(campaign):
    record = campaign([pretend("one", "('1',)")], [mutant(1)], quick=True)
    assert campaign.ran == []  # and no test says what it executes
    assert (record["run"], len(record["mutants"])) == (0, 1)


def test_tests_that_are_chosen_run_alone(campaign, monkeypatch):
    script = (
        "if sys.argv[1:] == ['a/new.mlir'] and number == '2': sys.exit('FAIL: a :: a/new.mlir')"
    )
    suites = [pretend("one", script=script + "\n", program="lit")]
    takes = runner.Program(lambda command, tests: [*command, *tests], lambda *_: {})
    monkeypatch.setitem(runner.PROGRAMS, "lit", takes)
    mutants = [mutant(1), mutant(2)]
    assert campaign(suites, mutants)["survived"] == 2
    facts = {"seed": 1, "drawn": 3, "commit": "c", "sources": "s"}
    record = campaign.tree.path / "mutations.json"
    each = Runner(campaign.tree, suites, facts, record, campaign.said.append)
    each.resume()
    each.run_chosen(mutants, ["a/new.mlir", "t.py::b"], "d")
    entries = by_number(json.loads(record.read_text()))
    assert [entries[n]["test"] for n in (1, 2)] == ["", "a/new.mlir"]
    assert [entries[n]["commit"] for n in (1, 2)] == ["c", "d"]


def test_a_number_whose_site_has_changed_starts_anew(campaign):
    suites = [pretend("one", "('1',)")]
    campaign(suites, [mutant(1)])
    record = campaign(suites, [mutant(1, kind="mask")])
    assert [e["kind"] for e in record["mutants"]] == ["mask"]
    assert campaign.ran == ["one:1", "one:1", "one:None"]


def test_what_executes_the_site_runs_first(campaign, monkeypatch):
    """A suite whose tests are numbers: each notes the site, if it may, as the clone does."""
    script = (
        "for test in sys.argv[1:] or ['7', '8']:\n"
        "  folder = os.environ.get('GDN_MUTANT_REACHED')\n"
        "  if folder: open(folder + '/' + '1', 'a').write(test + ' (call)\\n')\n"
        "  with open('ran', 'a') as ran: ran.write(f'{test}:{number} ')\n"
        "  if (test, number) == ('8', '1'): sys.exit('FAIL: some :: a/test.mlir (1 of 2)')\n"
    )
    took = runner.Program(lambda command, tests: [*command, *tests], lambda *_: {"7": 3.0})
    monkeypatch.setitem(runner.PROGRAMS, "numbers", took)
    script = script.replace("{", "{{").replace("}", "}}")
    suites = [pretend("one", script=script, program="numbers")]
    record = campaign(suites, [mutant(1), mutant(2)])
    base = ["one:None", "7:None", "8:None"]
    # 7 is slower. Nothing executes the site of 2, which only the whole suite sees.
    first = [*["one:1", "8:1"] * 2, "one:None", "8:None", "7:None"]
    assert campaign.ran == [*base, *first, *base, "one:2", "7:2", "8:2"]
    assert by_number(record)[1]["caught_by"] == "one"
    # A run that goes on knows which tests those are.
    campaign(suites, [mutant(3)])
    assert campaign.ran == ["one:3", "7:3", "8:3"]
    # Long tests are none of the first.
    brief = [pretend("brief", script=script, program="numbers", brief=("7",))]
    campaign(brief, [mutant(1)], quick=True, seed=2)
    assert campaign.ran == ["brief:None", "7:None", "brief:1", "7:1"]


def test_the_clone_notes_tests(tmp_path):
    header = tmp_path / "gdn_mutant.h"
    header.write_text(rewrite.HEADER)
    program = tmp_path / "a.cpp"
    program.write_text(
        '#include "gdn_mutant.h"\n'
        "int main() {\n"
        '  for (const char *test : {"t.py::a (setup)", "t.py::a (call)", "t.py::b (call)"}) {\n'
        '    setenv("PYTEST_CURRENT_TEST", test, 1);\n'
        "    if (gdn_mutant(4) || gdn_mutant(4)) return 1;\n"
        "  }\n"
        "}\n"
    )
    subprocess.run(["c++", "-std=c++17", "-o", tmp_path / "a", program], check=True)
    folder = tmp_path / "reached" / "pytest"
    log = tmp_path / "log"
    for more in ({}, reach.environment(folder)):
        assert rewrite.run([tmp_path / "a"], tmp_path, log, 60, more=more) == 0
    assert reach.read(folder, {"t.py::a": 2.0}) == {"4": ["t.py::b", "t.py::a"]}
    more = reach.environment(folder) | {reach.TEST: "Decode.Rule"}
    assert rewrite.run([tmp_path / "a"], tmp_path, log, 60, more=more) == 0
    assert reach.read(folder, {}) == {"4": ["Decode.Rule"]}


def test_programs_of_tests():
    names = ["a/b.mlir", "a/b.test", "test/python/test_a.py::test_b[1]", "Rule.a/0"]
    assert [reach.program_of(name) for name in names] == ["lit", "lit", "pytest", "ctest"]


def test_how_programs_are_told_which_tests_to_run(tmp_path):
    assert reach.lit_tests(["lit", "b/test"], ["a.mlir"]) == ["lit", "b/test/a.mlir"]
    assert reach.pytest_tests(["pytest", "test"], ["test/a.py::b"]) == ["pytest", "test/a.py::b"]
    chosen = reach.ctest_tests(["ctest"], ["Rule.a/0", "Rule.(b)"])
    assert chosen == ["ctest", "-R", r"^(Rule\.a/0|Rule\.\(b\))$"]
    log = tmp_path / "log"
    log.write_text("0.25s setup    t.py::a\n1.50s call     t.py::a\n")
    assert reach.pytest_seconds(tmp_path, log) == {"t.py::a": 1.75}


@pytest.mark.parametrize(
    "pattern, log, test",
    [
        (runner.LIT, "PASS: gdn :: a.mlir (1 of 3)\nFAIL: gdn :: b/c.mlir (2 of 3)\n", "b/c.mlir"),
        (
            runner.CTEST,
            " 7/90 Test  #12: Reference.Rule ....***Failed    0.02 sec\n",
            "Reference.Rule",
        ),
        (
            runner.CTEST,
            "1/3 Test #9: cts.gpu ...***Skipped   0.20 sec\n"
            "2/3 Test #1: cts.lazy ...Subprocess aborted***Exception:   0.1 sec\n",
            "cts.lazy",
        ),
        (
            runner.PYTEST,
            "FAILED test/python/test_a.py::test_b[1] - assert 0\n",
            "test/python/test_a.py::test_b[1]",
        ),
    ],
)
def test_the_first_failing_test_of_a_log(pattern, log, test):
    assert re.search(pattern, log, re.MULTILINE)[1] == test


def test_every_suite_names_programs_and_areas():
    names = [suite.name for suite in runner.SUITES]
    assert len(set(names)) == len(names)
    for suite in runner.SUITES:
        assert suite.areas and set(suite.areas) <= set(runner.ALL)
        words = {"build": "b", "python": "p", "lit": "l", "jobs": 1}
        assert all(part.format(**words) for part in suite.command)
        re.compile(suite.test)


# The clone.


def test_the_clone_has_the_commit_and_the_faults(tmp_path):
    root, text = tmp_path / "root", HEAD + "int f(int x) {\n  return x * 3;\n}\n"
    file = root / "lib/Schedule/Some.cpp"
    file.parent.mkdir(parents=True)
    (root / "include").mkdir()
    (root / "include/a.h").write_text(HEAD)
    (root / "test").mkdir()
    (root / "test/lit.cfg.py").write_text("import os\n")
    file.write_text(text)
    for command in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a"],
    ):
        subprocess.run(["git", *command], cwd=root, check=True)
    file.write_text(text + "// not committed\n")
    command = ["git", "rev-parse", "HEAD"]
    done = subprocess.run(command, cwd=root, text=True, capture_output=True, check=True)
    commit = done.stdout.strip()
    texts = draw.sources(root, commit)
    assert texts == {"lib/Schedule/Some.cpp": text}
    tree = rewrite.Tree(root, tmp_path / "work", commit)
    mutants = [Mutant(1, "passes", sites.find("lib/Schedule/Some.cpp", text)[0])]
    for _ in range(2):  # the second time nothing is done
        tree.check_out()
        tree.write(texts, mutants)
    copy = tree.path / "lib/Schedule/Some.cpp"
    assert copy.read_text() == rewrite.rewritten("lib/Schedule/Some.cpp", text, mutants)
    assert "gdn_mutant(1)" in copy.read_text()
    assert (tree.path / rewrite.HEADER_PATH).read_text() == rewrite.HEADER
    config = (tree.path / "test/lit.cfg.py").read_text()
    assert config.count('environment["GDN_MUTANT"]') == 1
    compile(config, "lit.cfg.py", "exec")
    tree.write(texts, [])
    assert copy.read_text() == text
    assert file.read_text().endswith("// not committed\n")


def test_a_run_goes_on_with_the_sources_of_its_record(tmp_path, monkeypatch):
    root = tmp_path / "root"
    file, test = root / "lib/Schedule/Some.cpp", root / "test/a.mlir"
    for each in (file, test):
        each.parent.mkdir(parents=True)

    def commit(text):
        file.write_text(HEAD + text)
        test.write_text(text)
        who = ["-c", "user.name=a", "-c", "user.email=a@b"]
        for command in (["add", "."], [*who, "commit", "-qm", "a"]):
            subprocess.run(["git", *command], cwd=root, check=True)
        return mutate.resolved("HEAD")

    subprocess.run(["git", "init", "-q", root], check=True)
    monkeypatch.setattr(mutate, "ROOT", root)
    old = commit("int a;\n")
    record = tmp_path / "mutations.json"
    digest = mutate.digest_of(draw.sources(root, old))
    record.write_text(json.dumps({"seed": 1, "commit": old, "sources": digest}))
    new = commit("int b;\n")

    def chosen(**more):
        options = {"seed": 1, "commit": None, "again": False} | more
        return mutate.commit_of(argparse.Namespace(**options), record)

    assert chosen() == old
    assert chosen(again=True) == chosen(seed=2) == chosen(commit="HEAD") == new
    with pytest.raises(MutationError, match="expected a commit, got none"):
        chosen(commit="none")
    # Tests of HEAD may come into the clone.
    tree = rewrite.Tree(root, tmp_path / "work", old)
    tree.git("clone", "-q", "--shared", str(root), str(tree.path), cwd=tmp_path)
    tree.git("checkout", "-q", old)
    tree.take(["test/a.mlir"], new)
    assert (tree.path / "test/a.mlir").read_text() == "int b;\n"
    assert "int a;" in (tree.path / "lib/Schedule/Some.cpp").read_text()
    with pytest.raises(MutationError, match=r"Some\.cpp: expected a test"):
        tree.take(["lib/Schedule/Some.cpp"], new)
    # The record's commit may be of another repository.
    record.write_text(json.dumps({"seed": 1, "commit": "1" * 40, "sources": digest}))
    assert chosen() == new


def test_images_are_restored(tmp_path):
    tree = rewrite.Tree(Path(tmp_path), tmp_path / "work", "c")
    image = tree.build / "runtime/cts/lazy.gdnk"
    image.parent.mkdir(parents=True)
    image.write_text("good")
    left = tree.build / "test/Output/a.gdnk"
    left.parent.mkdir(parents=True)
    left.write_text("of a test")
    tree.keep_images()
    image.write_text("bad")
    left.write_text("another")
    tree.restore_images()
    assert (image.read_text(), left.read_text()) == ("good", "another")
