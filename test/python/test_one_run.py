# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""./check's one run of CTest: what becomes a suite, what is not run again, and what is said of
how long it took."""

import json
import subprocess
import sys

import pytest

import check_times
import one_run
import run_once
import suites

OWN = """<testsuite><testcase classname="gdn.A" name="a.mlir" time="2.5"/>
<testcase classname="gdn.A" name="b.mlir" time="1">{}</testcase></testsuite>"""


def ctest_result(*cases: suites.Case) -> suites.Result:
    status = [case.status for case in cases]
    failed = status.count("failed")
    return suites.Result("tests", len(cases) - failed, failed, cases=list(cases))


def test_shards_stand_for_their_cases(tmp_path):
    (tmp_path / "lit.1.xml").write_text(OWN.format(""))
    (tmp_path / "lit.2.xml").write_text(OWN.format("<failure/>").replace("gdn.A", "gdn.B"))
    ran = ctest_result(
        suites.Case("lit.1", "passed", 4.0),
        suites.Case("lit.2", "failed", 5.0),
        suites.Case("A.b", "passed", 0.5),
        suites.Case("A.c", "skipped"),
    )
    lit, unit = one_run.collect(ran, {"lit.1": "lit", "lit.2": "lit", "A.b": "unit"}, tmp_path)
    assert (lit.name, lit.passed, lit.failed, lit.seconds) == ("lit", 3, 1, 9.0)
    assert (unit.name, unit.passed, unit.failed, unit.skipped) == ("unit", 1, 0, 1)
    assert [case.name for case in lit.cases[:2]] == ["gdn.A.a.mlir", "gdn.A.b.mlir"]


def test_a_shard_that_crashed_has_failed(tmp_path):
    """Its file may be whole, or of cases that passed, or not there."""
    (tmp_path / "python.1.xml").write_text(OWN.format(""))
    labels = {"python.1": "pytest", "python.2": "pytest"}
    ran = ctest_result(suites.Case("python.1", "failed"), suites.Case("python.2", "failed"))
    (result,) = one_run.collect(ran, labels, tmp_path)
    assert (result.passed, result.failed) == (2, 2)


def test_shards_that_overlap_have_failed(tmp_path):
    for shard in (1, 2):
        (tmp_path / f"lit.{shard}.xml").write_text(OWN.format(""))
    ran = ctest_result(suites.Case("lit.1", "passed"), suites.Case("lit.2", "passed"))
    (result,) = one_run.collect(ran, {"lit.1": "lit", "lit.2": "lit"}, tmp_path)
    assert (result.passed, result.failed) == (4, 2)


def test_a_run_without_cases_has_failed(tmp_path):
    (result,) = one_run.collect(suites.Result("tests", failed=1), {}, tmp_path)
    assert (result.passed, result.failed) == (0, 1)


@pytest.fixture
def once(tmp_path):
    """Runs a command that counts its runs through run_once.py; exit code, output, runs."""
    count, file = tmp_path / "count", tmp_path / "file"
    file.write_text("one")
    program = f"import sys; open({str(count)!r}, 'a').write('x'); sys.exit(int(sys.argv[1]))"

    def run(code: int = 0, cache: str = str(tmp_path / "cache"), extra: str = ""):
        command = [sys.executable, run_once.__file__, f"--cache={cache}", "--files", file]
        command += ["--", sys.executable, "-c", program, str(code), *([extra] if extra else [])]
        done = subprocess.run(list(map(str, command)), text=True, capture_output=True)
        return done.returncode, done.stdout, len(count.read_text()) if count.exists() else 0

    run.file = file
    return run


def test_what_has_passed_is_not_run_again(once):
    assert once() == (0, "", 1)
    code, said, runs = once()
    assert (code, runs) == (0, 1) and said.startswith(one_run.AGAIN)
    once.file.write_text("two")
    assert once()[2] == 2
    assert once(extra="word")[2] == 3
    once.file.write_text("one")
    assert once()[2] == 3


def test_what_has_failed_or_was_skipped_is_run_again(once):
    for runs in (1, 2):
        assert once(code=1)[::2] == (1, runs)
    for runs in (3, 4):
        assert once(code=77)[::2] == (77, runs)


def test_without_a_cache_all_is_run(once):
    for runs in (1, 2):
        assert once(cache="") == (0, "", runs)


def test_what_was_printed_and_written_is_there_again(tmp_path):
    mark, report, runs = tmp_path / "cache/mark", tmp_path / "report", []

    def run() -> str:
        runs.append(1)
        report.write_text(f"report {len(runs)}")
        return f"run {len(runs)}"

    assert run_once.remembered(mark, run, [report]) == "run 1"
    report.unlink()
    assert run_once.remembered(mark, run, [report]) == "run 1"
    assert report.read_text() == "report 1" and len(runs) == 1
    mark.unlink()
    assert run_once.remembered(mark, run, [report]) == "run 2"
    assert [path.name for path in mark.parent.iterdir()] == ["mark"]

    def fail() -> str:
        raise AssertionError("no")

    mark.unlink()
    with pytest.raises(AssertionError):
        run_once.remembered(mark, fail, [report])
    assert not mark.exists()


def test_what_is_forgotten_is_run_again(once, tmp_path):
    once()
    build = tmp_path / "build"
    build.mkdir()
    run_once.forget(build)
    (build / "CMakeCache.txt").write_text(f"A:PATH=x\nGDN_IMAGE_CACHE:PATH={tmp_path}/cache\n")
    assert run_once.image_cache(build) == tmp_path / "cache"
    assert once()[2] == 1
    run_once.forget(build)
    assert once()[2] == 2


@pytest.fixture
def records(tmp_path, monkeypatch):
    for name in ("LAST", "BEFORE", "RECORD", "DURATIONS"):
        monkeypatch.setattr(check_times, name, tmp_path / f"{name}.json")
    return tmp_path


def facts(seconds: float) -> dict:
    cases = [
        suites.Case("test.python.test_a.test_x[1.5]", "passed", seconds),
        suites.Case("test.python.test_a.test_y", "passed", 0.01),
    ]
    results = [suites.Result("pytest", 2, seconds=seconds + 1, cases=cases)]
    results.append(suites.Result("build", 1, seconds=100.0))
    return check_times.facts_of(results, 60.0, "abc")


def test_runs_are_kept_and_compared(records, capsys):
    assert check_times.show() == 1
    check_times.write(facts(2.0))
    check_times.write(facts(5.0))
    assert list(json.loads(check_times.LAST.read_text())["tests"].values()) == [5.0, 0.01]
    check_times.enter("cold")
    check_times.enter("warm")
    check_times.write(facts(9.0))
    assert check_times.show() == 0
    said = capsys.readouterr().out
    assert said.splitlines()[0].split() == ["this", "run", "cold", "warm"]
    assert "pytest      10.0 s       6.0 s       6.0 s" in said
    assert "5.0 s ->     9.0 s  pytest: test.python.test_a.test_x[1.5]" in said
    record = json.loads(check_times.RECORD.read_text())
    assert list(record) == ["cold", "warm", "commit"]
    assert record["cold"] == {"pytest": 6.0, "build": 100.0, "wall": 60.0}
    durations = json.loads(check_times.DURATIONS.read_text())
    assert durations == {"test/python/test_a.py::test_x[1.5]": 5.0}


def long_facts(name: str, seconds: float) -> dict:
    cases = [suites.Case(f"test.python.test_a.{name}", "passed", seconds)]
    results = [suites.Result("full", 1, seconds=seconds, cases=cases)]
    return check_times.facts_of(results, seconds, "abc")


def test_durations_of_long_tests_are_kept(records):
    """A run without them tells nothing about them; one with them replaces everything."""
    check_times.write(long_facts("test_long", 9.0))
    check_times.enter("full")
    check_times.write(facts(5.0))
    check_times.enter("cold")
    name = "test/python/test_a.py::test_{}".format
    durations = json.loads(check_times.DURATIONS.read_text())
    assert durations == {name("long"): 9.0, name("x[1.5]"): 5.0}
    check_times.write(long_facts("test_longer", 8.0))
    check_times.enter("full")
    assert json.loads(check_times.DURATIONS.read_text()) == {name("longer"): 8.0}


def test_the_record_of_this_tree():
    """The limits, of what has been measured: a quarter of an hour from nothing, six minutes
    after a change to a pass."""
    record = check_times.read(check_times.RECORD)
    for kind, limit in (("cold", 15 * 60), ("warm", 6 * 60)):
        assert record.get(kind, {"wall": 0})["wall"] <= limit
    for kind in ("before", *({"cold", "warm"} & set(record))):
        assert {"build", "kernels.lock", "lit", "pytest", "wall"} <= set(record[kind])
