# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The record of images that all presets need is of today's presets, and they fit into a wheel."""

import json

import image_groups
import image_table
import presets
import wheels

GROUPS = json.loads(image_table.RECORD.read_text())


def test_groups_are_those_of_today(build_dir, unsanitized):
    compile_ = presets.Compiler(build_dir, "")
    assert [group["presets"] for group in GROUPS] == compile_.groups(*image_groups.OPTIONS)
    for group in GROUPS:
        name = f"--preset={group['presets'][0]}"
        program = compile_(name, *image_groups.OPTIONS, "--emit=gdn").stdout
        facts = image_groups.facts_of(program)
        assert facts == {key: group[key] for key in facts}
        assert list(group["sizes"]) == presets.TARGETS


def test_no_two_groups_have_the_same_facts():
    """So that facts alone find an image."""
    facts = [tuple(v for k, v in group.items() if isinstance(v, str)) for group in GROUPS]
    assert len(set(facts)) == len(facts)


def test_the_default_entries_of_all_presets_fit_into_a_wheel():
    sizes = [image_table.total(list(group["sizes"].values())) for group in GROUPS]
    assert image_table.total(sizes)["compressed"] < wheels.MOST_BYTES
