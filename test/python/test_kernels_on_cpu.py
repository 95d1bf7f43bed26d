# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""All kernels of kernels.lock run on the PTX machine, which reports races, and give the numbers
of the float64 reference: one family in each run, all with --long.

Chips whose PTX is the same but for its target are run once."""

import json
import os
import re
import subprocess

import pytest

import kernels_lock

# Tokens of each sequence, by what an entry is for. Each tile has a tail, one sequence has no
# tokens, and one is skipped; decode has more rows than a persistent kernel has blocks in flight.
LENGTHS = {
    "prefill": "lens=200:1:0:70",
    "decode": "rows=5",
    "verify": "lens=2:4:3:0:1",
    "commit": "lens=2:4:3:0:1",
    "copy_slots": "rows=3",
    "zero_slots": "rows=3",
}
HEADS = "Hk=1,Hv=2,skip=1"
MANY = {"persistent": "rows=40", "persistent-aligned": "rows=40"}


def targets_of(gdn_compile, name):
    """The first target of each text, which the others have, too."""
    first = {}
    for target in kernels_lock.TARGETS:
        command = [*gdn_compile, *kernels_lock.KERNEL_SETS[name], f"--target={target}"]
        done = subprocess.run([*command, "--emit=ptx"], capture_output=True, text=True, check=True)
        text = re.sub(r"(?m)^\.(target|version) .*$", "", done.stdout)
        first.setdefault(text, target)
    return list(first.values())


def launches_of(listing):
    """Entries with their variants, from what gdn-run says of an image; "" where there is one."""
    found = {}
    for line in listing.splitlines():
        if entry := re.match(r"(\w+)  \(", line):
            variants = found.setdefault(entry[1], [])
        elif variant := re.match(r"  variant (\S+)", line):
            variants.append(variant[1])
    return [(entry, variant) for entry, known in found.items() for variant in known or [""]]


def is_rounded(name, done):
    """Whether states of a tree are off by what each token of a way rounds, not one alone."""
    if "--verify=tree" not in kernels_lock.KERNEL_SETS[name] or done.returncode != 2:
        return False
    wrong = [each for each in json.loads(done.stdout)["comparisons"] if not each["ok"]]
    return all(each["tensor"] == "state_pool" and each["relative_rmse"] < 4e-3 for each in wrong)


def run_all(name, target, gdn_compile, build_dir, ptx_driver, folder, seed, more=()):
    """Runs each variant of each entry of a set in the schedule of a seed; gives how many, and what
    was found."""
    image = folder / "image.gdnk"
    options = [*kernels_lock.KERNEL_SETS[name], f"--target={target}", "--ptxas=none", *more]
    subprocess.run([*gdn_compile, *options, "-o", image], check=True, capture_output=True)
    program = [build_dir / "bin/gdn-run", image]
    listed = subprocess.run(program, check=True, capture_output=True, text=True)
    is_lazy = "--verify=lazy" in kernels_lock.KERNEL_SETS[name]
    environment = {
        **os.environ,
        # Rows behind the last one, whose products nobody uses.
        "GDN_PTX_UNWRITTEN": "0" if is_lazy else "1",
        "LD_LIBRARY_PATH": str(ptx_driver),
        "GDN_PTX_SEED": str(seed),
        "GDN_PTX_CHIP": re.search(r"\d+", target)[0],
    }
    count, failed = 0, []
    for entry, variant in launches_of(listed.stdout):
        (lengths,) = [of for kind, of in LENGTHS.items() if entry.startswith(kind)]
        made_up = f"{MANY.get(variant, lengths)},{HEADS}"
        options = [f"--entry={entry}", "--device=cuda", "--check", "--json"]
        options += [f"--variant={variant}"] if variant else []
        options += ["--windows-by-position"] if variant.endswith("aligned") else []
        command = [*program, *options, "--generate", made_up]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        count += 1
        if done.returncode and not is_rounded(name, done):
            failed.append(f"{name} {target} {entry} {variant}: {done.stderr or done.stdout}")
    return count, failed


def test_launches():
    listing = "decode  (sm_90a, PTX)\n  fact io: bf16\n  variant rows\nzero_slots  (cpu)\n"
    assert launches_of(f"{listing}  in   slots: i32[N]\n") == [
        ("decode", "rows"),
        ("zero_slots", ""),
    ]


def test_a_set_has_no_races(gdn_compile, build_dir, ptx_driver, tmp_path):
    name = "d128-verify-buffer"
    for seed in range(3):
        count, failed = run_all(name, "sm_80", gdn_compile, build_dir, ptx_driver, tmp_path, seed)
        assert count >= 4 and not failed, "\n".join(failed)


def test_each_thread_arrives(gdn_compile, build_dir, ptx_driver, tmp_path):
    # Images for compute-sanitizer: lanes that go on alone arrive, too.
    more = ["--every-thread-arrives", "--only=decode"]
    count, failed = run_all(
        "d128-f32", "sm_90a", gdn_compile, build_dir, ptx_driver, tmp_path, 0, more
    )
    assert count >= 3 and not failed, "\n".join(failed)


@pytest.mark.long
@pytest.mark.parametrize("name", kernels_lock.KERNEL_SETS)
def test_all_kernels_have_no_races(name, gdn_compile, build_dir, ptx_driver, tmp_path):
    found = [
        run_all(name, target, gdn_compile, build_dir, ptx_driver, tmp_path, seed)
        for target in targets_of(gdn_compile, name)
        for seed in range(2)
    ]
    failed = [text for _, texts in found for text in texts]
    assert all(count for count, _ in found) and not failed, "\n".join(failed)
