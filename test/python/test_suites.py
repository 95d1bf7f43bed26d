# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How ./check counts: what three runners write, and what must count as failed."""

import json
import sys

import pytest

import check
import suites

LIT = """<testsuites time="1.0"><testsuite name="gdn" tests="4" failures="1" skipped="1">
<testcase classname="gdn.Dialect" name="a.mlir" time="0.1"/>
<testcase classname="gdn.Dialect" name="b.mlir" time="0.1"/>
<testcase classname="gdn.Dialect" name="c.mlir" time="0.1"><failure>text</failure></testcase>
<testcase classname="gdn.Dialect" name="d.mlir"><skipped message="Missing: cuda"/></testcase>
</testsuite></testsuites>"""
CTEST = """<testsuite name="(empty)" tests="2" failures="1" disabled="0" skipped="0">
<testcase name="A.b" classname="A.b" time="0.1" status="run"><system-out/></testcase>
<testcase name="A.c" classname="A.c" time="0.1" status="fail"><failure message=""/></testcase>
</testsuite>"""
PYTEST = """<testsuites><testsuite errors="1" failures="0" skipped="0" tests="2">
<testcase classname="t" name="x"/><testcase classname="t" name="y"><error message="e"/></testcase>
</testsuite></testsuites>"""
NONE = '<testsuite name="empty" tests="0"/>'


@pytest.mark.parametrize(
    "text, expected",
    [(LIT, (2, 1, 1)), (CTEST, (1, 1, 0)), (PYTEST, (1, 1, 0)), (NONE, (0, 0, 0))],
    ids=["lit", "ctest", "pytest", "none"],
)
def test_count(tmp_path, text, expected):
    xml = tmp_path / "r.xml"
    xml.write_text(text)
    assert suites.count(xml) == expected


def test_unreadable_counts_as_failed(tmp_path):
    (tmp_path / "cut.xml").write_text(LIT[:100])
    assert suites.count(tmp_path / "cut.xml") == (0, 1, 0)
    assert suites.count(tmp_path / "absent.xml") == (0, 1, 0)


def test_no_case_counts_as_failed(tmp_path):
    (tmp_path / "r.xml").write_text(NONE)
    assert suites.judge("s", 0, tmp_path / "r.xml").failed == 1


def test_crash_after_success_counts_as_failed(tmp_path):
    (tmp_path / "r.xml").write_text(CTEST.replace('<failure message=""/>', ""))
    result = suites.judge("s", -11, tmp_path / "r.xml")
    assert (result.passed, result.failed) == (2, 1)


def test_run_reports_exit_codes_and_missing_programs(tmp_path):
    assert suites.run("ok", [sys.executable, "-c", ""]).passed == 1
    assert suites.run("bad", [sys.executable, "-c", "raise SystemExit(3)"]).failed == 1
    assert suites.run("absent", [tmp_path / "no-such-program"]).failed == 1
    slow = [sys.executable, "-c", "import time; time.sleep(60)"]
    assert suites.run("slow", slow, limit_s=0.2).failed == 1


def test_run_ignores_an_old_xml(tmp_path):
    (tmp_path / "r.xml").write_text(LIT)
    result = suites.run("s", [sys.executable, "-c", ""], tmp_path / "r.xml")
    assert (result.passed, result.failed) == (0, 1)


def test_output_that_is_kept_is_printed_at_the_end(tmp_path, capfd):
    log = tmp_path / "results/s.log"
    command = [sys.executable, "-c", "import sys; print('one'); print('two', file=sys.stderr)"]
    assert suites.run("s", command, log=log).passed == 1
    assert sorted(log.read_text().split()) == ["one", "two"]
    assert sorted(capfd.readouterr().out.split()) == ["==", "one", "s", "two"]


def test_parts_take_their_place_in_the_record(tmp_path, monkeypatch):
    record = check.ROOT / "docs/generated/check-full.json"
    path = tmp_path / "docs/generated/check-full.json"
    path.parent.mkdir(parents=True)
    path.write_text(record.read_text())
    monkeypatch.setattr(check, "ROOT", tmp_path)
    monkeypatch.setattr(check, "RECORD", path)
    monkeypatch.setattr(check, "git", lambda *_: "abc")
    before = json.loads(path.read_text())
    for passed, failed in ((7, 0), (6, 1)):
        check.record_parts([suites.Result("part", passed, failed)])
        facts = json.loads(path.read_text())
        (entry,) = [each for each in facts["suites"] if each["name"] == "part"]
        assert (entry["passed"], entry["failed"], entry["commit"]) == (passed, failed, "abc")
        assert facts["passed"] == before["passed"] + passed
        assert facts["failed"] == before["failed"] + failed


def test_a_full_run_records_after_each_part(tmp_path, monkeypatch):
    path = tmp_path / "docs/generated/check-full.json"
    monkeypatch.setattr(check, "ROOT", tmp_path)
    monkeypatch.setattr(check, "RECORD", path)
    monkeypatch.setattr(check, "git", lambda *_: "abc")
    seen = []

    def part(name):
        def run(*_, **__):
            if path.exists():
                facts = json.loads(path.read_text())
                seen.append((name, facts["whole"], [each["name"] for each in facts["suites"]]))
            return [suites.Result(name, 1)]

        return run

    monkeypatch.setenv("ASAN_OPTIONS", "")
    monkeypatch.setattr(check, "tests", part("long"))
    monkeypatch.setattr(check, "one_after_the_other", part("wheels"))
    monkeypatch.setattr(check, "build", lambda *_: suites.Result("build asan", 1))
    monkeypatch.setattr(check, "thread_sanitizer", part("threads"))
    monkeypatch.setattr(check, "asan_tests", part("asan"))
    monkeypatch.setattr(check, "fuzz", part("fuzz"))
    results = [suites.Result("unit", 1)]
    check.long_suites(results)
    first = ["unit", "long"]
    assert ("wheels", False, first) in seen
    assert ("asan", False, [*first, "wheels", "build asan", "threads"]) in seen
    facts = json.loads(path.read_text())
    assert facts["whole"] and facts["passed"] == len(facts["suites"]) == 7
