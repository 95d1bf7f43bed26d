# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The record of what compute-sanitizer found."""

import json

from gdn import sanitizer_tables


def report(tool, errors, failures=(), name="layer/prefill", digest="aa"):
    row = {"name": name, "target": "sm_80", "digest": digest, "failures": list(failures)}
    facts = {"device": "a GPU", "driver": "1.2", "date": "2026-01-02"}
    return facts | {"sanitizers": [row | {"tool": tool, "errors": errors}]}


def test_what_ran_last_counts(tmp_path):
    reports = [
        report("memcheck", None),
        report("memcheck", 0),
        report("synccheck", 0, ["a NaN"]),
        report("racecheck", 2),
        report("initcheck", 0, name="layer/decode"),
    ]
    paths = []
    for number, found in enumerate(reports):
        paths.append(tmp_path / f"{number}.json")
        paths[-1].write_text(json.dumps(found))
    output = tmp_path / "record.json"
    assert sanitizer_tables.main([*map(str, paths), "--output", str(output)]) == 0
    record = json.loads(output.read_text())
    decode, prefill = record["rows"]
    assert (decode["clean"], decode["not_clean"]) == (["initcheck"], [])
    assert (prefill["clean"], prefill["not_clean"]) == (["memcheck"], ["synccheck", "racecheck"])
    text = sanitizer_tables.markdown(record)
    assert "| layer/prefill | sm_80 | clean |  | errors | errors |" in text
    assert "| layer/decode | sm_80 |  | clean |  |  |" in text


def test_another_kernel_of_that_name_is_another_row():
    rows = sanitizer_tables.join([report("memcheck", 0), report("memcheck", 1, digest="bb")])[
        "rows"
    ]
    assert [(row["digest"], row["clean"]) for row in rows] == [("aa", ["memcheck"]), ("bb", [])]
