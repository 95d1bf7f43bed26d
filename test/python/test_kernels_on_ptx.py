# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""All kernels of kernels.lock on the PTX machine, each variant by name, against the float64
reference: in ./check --full. Chips that get the programs of another are left out, and so are
variants for aligned arrays, which gdn-run does not make: conformance has those."""

import os
import re
import subprocess

import pytest

import kernels_lock
import run_once

TARGETS = [target for target in kernels_lock.TARGETS if target not in kernels_lock.SIBLINGS]
# By the beginning of an entry's name; others take single tokens.
LENGTHS = {"prefill": "lens=70:1:130", "verify": "lens=2:4:3:0", "commit": "lens=2:4:3:0"}


def entries(listing):
    """Entries and their variants, in what gdn-run says of an image."""
    found = {}
    for line in listing.splitlines():
        if entry := re.match(r"(\w+)  \(sm_", line):
            found[entry[1]] = []
        elif variant := re.match(r"  variant (\S+)", line):
            found[list(found)[-1]].append(variant[1])
    return found


def test_entries_of_a_listing():
    listing = "decode  (sm_90a, PTX)\n  fact io: bf16\n  variant rows where 1 <= N\n  variant all\n"
    assert entries(listing + "commit  (sm_90a, PTX)\n") == {"decode": ["rows", "all"], "commit": []}


@pytest.mark.long
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", kernels_lock.KERNEL_SETS)
def test_kernels_of_a_set(build_dir, tool, tmp_path, name, target):
    image = tmp_path / "image.gdnk"
    options = [*kernels_lock.KERNEL_SETS[name], f"--target={target}", "--ptxas=none"]
    if cache := run_once.image_cache(build_dir):
        options.append(f"--cache={cache}")
    done = tool("gdn-compile", *options, "-o", image)
    assert done.returncode == 0, done.stderr
    # A decay per channel has as many heads of keys as of values.
    heads = "Hk=1,Hv=2" if "--preset=qwen3-next-80b-a3b" in options else "Hk=2,Hv=2"
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": str(build_dir / "test/PTX"),
        "GDN_PTX_CHIP": re.sub(r"\D", "", target),
    }
    wrong = []
    for entry, variants in entries(tool("gdn-run", image).stdout).items():
        lengths = next((LENGTHS[of] for of in LENGTHS if entry.startswith(of)), "rows=3")
        command = [build_dir / "bin/gdn-run", image, f"--entry={entry}", "--device=cuda"]
        command += ["--check", "--generate", f"{lengths},{heads},skip=1"]
        for variant in [of for of in variants or [""] if "aligned" not in of]:
            by_name = [f"--variant={variant}"] if variant else []
            done = subprocess.run(
                [*command, *by_name], env=environment, capture_output=True, text=True
            )
            if done.returncode:
                wrong.append(f"{entry} {variant}: {done.stderr or done.stdout}")
    assert not wrong, "\n".join(wrong)
