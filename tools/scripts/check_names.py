# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compares the names of cases of two runs of ./check: which are gone, and which are new.

    check_names.py BEFORE AFTER...

A run is a check-times.json that ./check wrote, or a folder of JUnit files of one; several
behind the first count together, as a short run and a full one do. Names of suites that were
split, or of cases that moved to another file, are in RENAMED: what they are now, by pattern.
Exits with 1 if a case is gone.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path

import suites

# A case of before, and what stands for it now.
RENAMED = {
    r"lit: gdn\.Pipeline\.gpu-prefill-heads\.test": r"lit: .*gpu-prefill-heads-\w+\.test",
    r"lit: gdn\.Pipeline\.gpu-prefill-parts\.test": r"lit: .*gpu-prefill-v-split\.test",
    r"integration: .*ValueParts\.EqualBits": r"integration: .*VSplits\.EqualBits",
    r"integration: .*ChunkSlots\.\w+": r"integration: .*ChunkSlots\.\w*Sequences\w*",
    r"integration: .*SegmentSlots\.\w+": r"integration: .*SegmentSlots\.\w*Sequences\w*",
    r"unit: integration\.cpu\.(behaviour|chunks|configurations)": r"integration: .*",
    r"kernels\.lock: kernels\.lock": r"kernels\.lock: lock\..*",
    r"demo: demo": r"pytest: .*test_demo\.test_on_the_cpu",
    r"pytest: .*test_(engines|targets|the_target)_.*": r"pytest: .*test_image_facts\..*",
    r"pytest: .*test_without_the_package.*": r"pytest: .*test_without_the_package.*-0-.*",
    r"pytest: .*test_wheel\.test_a_wheel_of_images.*": r"pytest: .*test_a_wheel_of_images\[gdn_.*",
    r"pytest: .*test_the_lock_of_this_tree_is_fresh": r"kernels\.lock: lock\..*",
}


def names_of(run: Path) -> set[str]:
    """Suite and name of each case that ran or was skipped."""
    if run.is_file():
        return set(json.loads(run.read_text())["tests"])
    names = set()
    for xml in sorted(run.glob("*.xml")):
        cases = suites.read_cases(xml) or []
        names |= {f"{xml.stem}: {case.name}" for case in cases}
    return names


def gone(before: set[str], after: set[str]) -> list[str]:
    """Names of `before` that neither stand in `after` nor have something that stands for them."""
    lost = []
    for name in sorted(before - after):
        now = [there for was, there in RENAMED.items() if re.fullmatch(was, name)]
        if not any(re.fullmatch(there, case) for there in now for case in after):
            lost.append(name)
    return lost


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path, nargs="+")
    options = parser.parse_args()
    before = names_of(options.before)
    after = set().union(*map(names_of, options.after))
    lost = gone(before, after)
    print(f"{len(before)} cases before, {len(after)} after, {len(after - before)} of them new")
    print(f"{len(lost)} are gone", *lost, sep="\n  ")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
