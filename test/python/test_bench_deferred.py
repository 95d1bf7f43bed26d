# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rows of the hand-written kernels of decode with deferred writes, from what they printed."""

import sys

from conftest import ROOT

sys.path.insert(0, str(ROOT / "python"))
from gdn.bench.deferred_prototype import errors_of, prototype_rows

REPLAY = """state,ring,W,Hk,Hv,N,kernel,pdl,us,us_min,us_max
fp32,-,1,16,32,64,A,0,101.0,100.5,102.0
fp32,k32 d32,16,16,32,64,A,0,66.0,65.0,67.0
fp32,k32 d32,16,16,32,64,R rows8 st4 nb2,0,64.0,63.5,64.5
fp32,k32 d16,16,16,32,64,R rows8 st4 nb3,0,60.0,59.5,60.5
fp32,r0 stag,16,16,32,64,R rows8 st4 nb2,1,59.5,59.0,60.0
fp32,k32 d32,16,16,32,64,R rows8 st4 nb2 DIAG1,0,50.0,49.0,51.0
fp32,k32 d32,32,16,32,64,A,0,40.0,39.0,41.0
"""
PLANES = """format,W,Hk,Hv,N,kernel,pdl,us,MB,TBs
fp32,1,16,32,64,A in place,0,101.5,276.8,2.8
fp32,16,16,32,64,R W16 k32d32,1,60.5,161.0,2.7
fp32,16,16,32,64,R W16 k32d16,1,58.5,155.0,2.7
A,16,16,32,64,ctl read only,0,13.3,34.0,2.6
A,16,16,32,64,R st2 nb4 ng4,0,32.6,57.0,1.9
A,16,16,32,64,R st3 nb3 ng3 DIAG2,0,22.6,57.0,1.9
A stag,16,16,32,64,R st3 nb3 ng3,1,26.3,57.0,1.9
B,16,16,32,64,R st3 nb3 ng3,1,37.9,88.4,2.3
i8,16,2,8,64,R st3 nb3 ng3,1,9.0,8.0,1.0
"""
CHECKS = """check fp32  ring k32 d32 W16 A                    ok  o(all steps) 1.67e-03  \
o(worst step) 1.88e-03  o(last) 1.75e-03  state 1.83e-07
check fp32  ring k32 d32 W16 R rows8 st4 nb2      ok  o(all steps) 1.69e-03  \
o(worst step) 1.88e-03  o(last) 1.75e-03  state 1.78e-07
check fp32  ring k32 d16 W16 A                    ok  o(all steps) 1.96e-03  \
o(worst step) 2.31e-03  o(last) 1.92e-03  state 1.60e-03
check bf16  ring k32 d32 W16 IN-PLACE A           ok  o(all steps) 2.24e-03  \
o(worst step) 2.80e-03  o(last) 1.96e-03  state 2.60e-03
check A  W16 R st2 nb4 ng4                ok  o f32 2.29e-03 (worst step 5.01e-03)  \
o bf16 2.85e-03  state hi+lo 3.78e-04  hi only 3.46e-03
checks ALL OK
"""


def measured(window: int) -> dict:
    config = {"Hk": 16, "Hv": 32, "N": 64} | ({"W": window} if window else {})
    return {"suite": "decode", "impl": "gdn", "config": config}


def rows_of(tmp_path, text: str) -> dict[tuple, dict]:
    times, checks = tmp_path / "times.csv", tmp_path / "checks.txt"
    times.write_text(text)
    checks.write_text(CHECKS)
    rows = prototype_rows(times, [checks], [measured(0), measured(16)])
    return {(r["impl"], r["config"]["state"], r["config"]["variant"]): r for r in rows}


def test_states_in_one_array(tmp_path):
    rows = rows_of(tmp_path, REPLAY)
    best = ("prototype", "float32", "R rows8 st4 nb2")
    apart = ("prototype pdl", "float32", "R rows8 st4 nb2 staggered")
    # Neither other types of pending tokens, nor parts of kernels, nor another W.
    assert set(rows) == {("prototype", "float32", "A"), best, apart}
    assert rows["prototype", "float32", "A"]["config"]["form"] == "in place"
    assert rows[best]["us"] == 64 and rows[best]["us_max"] == 64.5
    assert rows[best]["config"]["W"] == 16
    assert (rows[best]["error_o"], rows[best]["error_state"]) == (1.69e-3, 1.83e-7)


def test_states_in_planes(tmp_path):
    rows = rows_of(tmp_path, PLANES)
    upper = rows["prototype", "i8x2-upper", "R st2 nb4 ng4"]
    assert upper["us"] == upper["us_min"] == 32.6 and upper["error_state"] == 3.78e-4
    assert upper["config"]["pending"] == "float16" and upper["config"]["form"] == "deferred"
    assert ("prototype pdl", "i8x2-upper", "R st3 nb3 ng3 staggered") in rows
    # Another size, controls, and pending tokens in other types are left out.
    assert {(impl, state) for impl, state, _ in rows} == {
        ("prototype", "float32"),
        ("prototype pdl", "float32"),
        ("prototype", "i8x2-upper"),
        ("prototype pdl", "i8x2-upper"),
        ("prototype pdl", "i8x2"),
    }
    assert rows["prototype pdl", "float32", "R W16 k32d32"]["us"] == 60.5
    assert "error_o" not in rows["prototype pdl", "i8x2", "R st3 nb3 ng3"]


def test_errors_are_the_largest_of_a_format(tmp_path):
    checks = tmp_path / "checks.txt"
    checks.write_text(CHECKS)
    errors = errors_of([checks])
    assert errors["bfloat16", 0] == {"error_o": 2.24e-3, "error_state": 2.6e-3}
    assert set(errors) == {("float32", 16), ("bfloat16", 0), ("i8x2-upper", 16)}
