# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tables of prefill with a decay per channel, from a small report."""

from gdn.bench import channel_tables


def row(impl: str, variant: str, heads: int, gates: str, us: float, **config) -> dict:
    place = {"Hk": heads, "Hv": heads, "dk": 128, "dv": 128, "set": "1x8192", "gates": gates}
    return {
        "suite": "prefill-channels",
        "impl": impl,
        "config": place | {"variant": variant} | config,
        "us": us,
        "limit_us": 20.0,
    }


REPORT = {
    "device": "GPU <1>",
    "driver": "580.1",
    "date": "2026-12-01",
    "ceilings": {"copy_TBps": 4.0},
    "rows": [
        row("gdn", "staged", 64, "bench", 40.0),
        row("gdn", "fused", 64, "bench", 60.0, part="batch-invariant"),
        row("gdn", "other", 64, "bench", 1.0, part="forced"),
        row("fla", "any gate", 64, "bench", 80.0),
        row("gdn", "staged", 32, "bench", 25.0),
        row("fla", "any gate", 32, "bench", 200.0),
        row("gdn", "staged", 64, "resets", 50.0),
        row("cudnn", "fused", 64, "resets", 25.0),
    ],
}


def test_ratios_are_of_places_that_both_have():
    found = channel_tables.groups(REPORT)
    assert sorted(channel_tables.ratios(found, "fla, any gate")) == [
        (2.0, "64 heads, 1x8192, bench"),
        (8.0, "32 heads, 1x8192, bench"),
    ]
    assert channel_tables.ratios(found, "fla, any gate", "resets") == []


def test_page():
    text = channel_tables.markdown(REPORT)
    assert "Limits: 4.00 TB/s of a copy." in text
    mean = "| fla, any gate / gdn | all | 2 | 4.00 | 2.00 | 64 heads, 1x8192, bench | 8.00 |"
    assert mean in text
    assert "| cudnn, fused / gdn | resets | 1 | 0.50 |" in text
    # By heads; what was forced is left out, what is asked for has a column.
    names = "| heads, lengths | gdn | gdn batch-invariant | fla, any gate | cudnn, fused |"
    assert text.count(names) == 2
    few, many = (
        "| 32 heads, 1x8192 | 25.0 |  | 200.0 |  | 20.0 | 80 % | staged |",
        ("| 64 heads, 1x8192 | 40.0 | 60.0 | 80.0 |  | 20.0 | 50 % | staged |"),
    )
    assert 0 < text.index(few) < text.index(many)


def test_gates_inside_are_compared_with_gates_inside():
    """A peer with gates inside has a line beside each of our rows of its place."""
    inside = row("gdn", "fused", 64, "bench", 50.0, part=channel_tables.GATES_INSIDE)
    peer = row("flashkda", channel_tables.GATES_INSIDE, 64, "bench", 100.0)
    text = channel_tables.markdown(REPORT | {"rows": [*REPORT["rows"], inside, peer]})
    assert "| flashkda, gates inside / gdn | bench | 1 | 2.50 |" in text
    assert "| flashkda, gates inside / gdn gates inside | bench | 1 | 2.00 |" in text


def test_another_report_has_no_page():
    other = REPORT | {"rows": [row("gdn", "staged", 64, "bench", 40.0) | {"suite": "prefill"}]}
    assert channel_tables.markdown(other) == ""
