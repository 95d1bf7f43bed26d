# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The PTX machine notices when an edge is taken out of a kernel, or names the ones that order
the same accesses: decode in each run, all families with --long."""

import pytest

import edges_table
import remove_edges
from remove_edges import Edge, Run, edges_of, judge

ROLES = ["roles", "v-split", "segments", "clusters"]
PTX = """\
.visible .entry other(
\tbar.sync \t0;
.visible .entry kernel(
\tmov.b32 \t%r1, 0;
\t@%p1 mbarrier.init.shared::cta.b64 [%r1], %r2;
\tfence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta;
mbarrier.try_wait.parity.shared::cta.b64 done, [%r1], %r2;
\tcp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [%r1]; cp.async.bulk.commit_group;
\tsetmaxnreg.inc.sync.aligned.u32 232;
\t// bar.sync 0;
"""


def test_edges_of_a_kernel():
    found = {edge.name: (edge.text.split()[0], edge.without) for edge in edges_of(PTX, "kernel")}
    bulk = "cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [%r1];"
    assert found == {
        "5": ("@%p1", ""),
        "6": ("fence.mbarrier_init.release.cluster", "fence.proxy.async.shared::cta;"),
        "6.1": ("fence.proxy.async.shared::cta", "fence.mbarrier_init.release.cluster;"),
        "7": ("mbarrier.try_wait.parity.shared::cta.b64", "setp.eq.u32 done, 0, 0;"),
        "8.1": ("cp.async.bulk.commit_group", bulk),
    }


def run_of(pairs, end=""):
    """A run in which pairs of lines were ordered by paths, and told by other edges."""
    run = Run()
    run.end = end
    for lines, (paths, told) in pairs.items():
        run.pairs[lines] = [{"paths": paths, "told": told}]
        run.runs.update(name for path in paths for name in path)
        run.runs.update(told)
    return run


@pytest.mark.parametrize(
    "name, without, expected",
    [
        # Another barrier orders what the first one orders.
        ("2", {(1, 9): ([["3"]], [])}, {"is": "covered", "by": ["3 three"]}),
        ("2", {(1, 9): ([["launch"]], [])}, {"is": "covered", "by": ["the order of launches"]}),
        # What it tells was known.
        ("3", {(1, 9): ([["2"]], [])}, {"is": "covered", "by": ["2 two"]}),
        ("4", {(1, 9): ([["2"]], ["3"])}, {"is": "unexplained", "why": "no call reaches it"}),
        ("2", {}, {"is": "unexplained", "why": "the accesses that it orders are gone"}),
    ],
)
def test_what_covers_an_edge(name, without, expected):
    whole = run_of({(1, 9): ([["2"]], ["3"])})
    fact = judge(
        Edge(int(name), 0, "bar.sync 0", ""), whole, run_of(without), ["", "two;", "three;"]
    )
    assert {key: fact[key] for key in expected} == expected


def test_an_edge_on_which_nothing_relies():
    whole = run_of({(1, 9): ([["2"]], [])})
    whole.runs.update(["4", "5"])
    whole.runs.update(["6"])
    whole.repeats.update([("4", "3"), ("2", "3"), ("6", "launch")])
    lines = ["", "two;", "three;"]
    fact = judge(Edge(4, 0, "bar.sync 0", ""), whole, whole, lines)
    assert (fact["is"], fact["by"]) == ("repeated", ["3 three"])
    fact = judge(Edge(5, 0, "cp.async.commit_group", ""), whole, whole, lines)
    assert (fact["is"], fact["why"]) == ("idle", "it tells nothing")
    assert judge(Edge(6, 0, "bar.sync 0", ""), whole, whole, lines)["is"] == "idle"


def test_an_edge_that_is_missed_is_caught():
    whole = run_of({(1, 9): ([["2"]], [])})
    fact = judge(Edge(2, 0, "bar.sync 0", ""), whole, run_of({}, end="reads_write"), [])
    assert (fact["is"], fact["by"]) == ("caught", "reads_write")


def check(build_dir, name):
    facts = remove_edges.examine(build_dir, name, jobs=2)
    return facts, remove_edges.summary(name, facts)


def test_decode_cannot_do_without_an_edge(build_dir, unsanitized):
    facts, summary = check(build_dir, "decode-resident")
    assert summary["caught"] and not summary["unexplained"] and not summary["idle"], facts
    missed = {fact["text"] for fact in facts if fact["is"] != "caught"}
    # Without it the next launch begins when this one has ended.
    assert missed == {"griddepcontrol.launch_dependents"}, facts


@pytest.mark.long
@pytest.mark.parametrize("name", ["decode-persistent", *(f"prefill-{of}" for of in ROLES)])
def test_roles_may_be_ahead_or_behind(build_dir, tmp_path, name):
    """Each warp alone, by as much as the barriers of the rings allow."""
    machine = remove_edges.Machine(build_dir, tmp_path, remove_edges.FAMILIES[name])
    every = (1 << machine.warps()) - 1
    assert every > 1
    for warp in range(machine.warps()):
        for late in (1 << warp, every ^ 1 << warp):
            run = machine.run(late=late)
            assert not run.end, f"late: {late:#x}: {run.said}"


@pytest.mark.long
def test_edges_of_all_families(build_dir, unsanitized):
    found = {name: check(build_dir, name)[1] for name in remove_edges.FAMILIES}
    assert not [family["unexplained"] for family in found.values() if family["unexplained"]]
    named, listed = edges_table.share(found)
    assert named >= remove_edges.ENOUGH * listed, found
