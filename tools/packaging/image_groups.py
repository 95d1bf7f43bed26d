# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which images all presets need, and how large they are: presets whose entries are the same
program share one. Writes docs/generated/image-groups.json, of which tools/scripts/docs.py makes
a page. An image has the default entries, inputs and outputs of bf16 and states of f32; wheels
are compressed, so the size after that is recorded too.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import zlib
from pathlib import Path

import inputs

sys.path.insert(0, str(inputs.ROOT / "tools/scripts"))
import image_table
import presets

OPTIONS = ["--io=bf16", "--state=f32"]


def facts_of(program: str) -> dict:
    """What makes one program of a layer differ from another."""
    facts = dict(re.findall(r'(\w+) = "([^"]*)"', re.search(r"gdn\.facts = {(.*?)}", program)[1]))
    value, key = re.search(r"!gdn\.pool<\?x\?x(\d+)x(\d+)x", program).groups()
    per_channel = re.search(r"gdn\.gates .* -> tensor<\?x\?x\d+xf32>", program)
    return {
        "heads": f"{key} x {value}",
        "decay": ("per channel" if per_channel else "per head")
        + (f", at least {facts['decay_bound']}" if "decay_bound" in facts else ""),
        "layout": facts["layout"],
        "gate": facts["output_gate"],
        "strength": "up to 2" if facts["doubled_beta"] == "1" else "up to 1",
        "norm_eps": facts["norm_eps"],
    }


def sizes_of(compile_: presets.Compiler, preset: str, target: str) -> dict[str, int] | None:
    with tempfile.TemporaryDirectory() as folder:
        image = Path(folder) / "layer.gdnk"
        done = compile_(f"--preset={preset}", *OPTIONS, f"--target={target}", "-o", image)
        if done.returncode:
            return None
        data = image.read_bytes()
    return {"bytes": len(data), "compressed": len(zlib.compress(data, 9))}


def main() -> int:
    parser = argparse.ArgumentParser(prog="image_groups", description=__doc__)
    parser.add_argument("--build-dir", type=Path, default=inputs.ROOT / "build/release")
    parser.add_argument("--cache", default="", help="folder of compiled images")
    options = parser.parse_args()
    compile_ = presets.Compiler(options.build_dir, options.cache)
    groups = []
    for names in compile_.groups(*OPTIONS):
        program = compile_(f"--preset={names[0]}", *OPTIONS, "--emit=gdn").stdout
        sizes = {}
        for target in presets.TARGETS:
            sizes[target] = sizes_of(compile_, names[0], target)
            print(names[0], target, sizes[target], flush=True)
        groups.append({"presets": names, **facts_of(program), "sizes": sizes})
    image_table.RECORD.write_text(json.dumps(groups, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
