# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Images of gdn.delta_rule alone, on ready queries, keys, values and gates.

What is static when code is made is a Variant; one image has an entry for each
of them, in one form of the recurrence.
"""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

MLIR_TYPES = {"float32": "f32", "bfloat16": "bf16", "float16": "f16"}


@dataclass(frozen=True)
class Variant:
    """The static part of an entry. `io` and `state` are NumPy's names of types."""

    dk: int
    dv: int
    io: str = "float32"
    state: str = "float32"
    per_channel: bool = False
    has_initial: bool = False
    write_slots: bool = False
    double_beta: bool = False
    erase: bool = False

    @property
    def name(self) -> str:
        words = [f"d{self.dk}x{self.dv}", self.io, self.state]
        flags = ["per_channel", "has_initial", "write_slots", "double_beta", "erase"]
        return "-".join(words + [flag for flag in flags if getattr(self, flag)])

    @property
    def log_decay_type(self) -> str:
        return f"tensor<?x?x{self.dk}xf32>" if self.per_channel else "tensor<?x?xf32>"


def entry(variant: Variant) -> str:
    """The variant's entry over ragged rows, as text."""
    dk, dv = variant.dk, variant.dv
    io, state = MLIR_TYPES[variant.io], MLIR_TYPES[variant.state]
    keys, values = f"tensor<?x?x{dk}x{io}>", f"tensor<?x?x{dv}x{io}>"
    pool = f"!gdn.pool<?x?x{dv}x{dk}x{state}>"
    arguments = {
        "q": (keys, ["T", "Hk", dk]),
        "k": (keys, ["T", "Hk", dk]),
        "v": (values, ["T", "Hv", dv]),
        "log_decay": (variant.log_decay_type, ["T", "Hv", *([dk] * variant.per_channel)]),
        "beta": ("tensor<?x?xf32>", ["T", "Hv"]),
        "state_pool": (pool, ["P", "Hv", dv, dk]),
        "slots": ("tensor<?xi32>", ["N"]),
        "cu_seqlens": ("tensor<?xi32>", ["N + 1"]),
    }
    if variant.erase:
        arguments["erase"] = (keys, ["T", "Hk", dk])
    if variant.has_initial:
        arguments["has_initial"] = ("tensor<?xi1>", ["N"])
    if variant.write_slots:
        arguments["write_slots"] = ("tensor<?xi32>", ["N"])

    def attributes(name: str, dims: Sequence) -> str:
        forms = ", ".join(f'"{dim}"' for dim in dims)
        return f'{{gdn.name = "{name}", gdn.dims = [{forms}]}}'

    signature = ",\n    ".join(
        f"%{name}: {of} {attributes(name, dims)}" for name, (of, dims) in arguments.items()
    )
    into = " -> %write_slots" if variant.write_slots else ""
    initial = " initial(%has_initial)" if variant.has_initial else ""
    into_type = " into tensor<?xi32>" if variant.write_slots else ""
    initial_type = " initial tensor<?xi1>" if variant.has_initial else ""
    doubled = " {double_beta}" if variant.double_beta else ""
    erase = " erase(%erase)" if variant.erase else ""
    erase_type = f" erase {keys}" if variant.erase else ""
    core = attributes("core", ["T", "Hv", dv])
    return f"""
func.func @"{variant.name}"(
    {signature})
    -> ({values} {core})
    attributes {{gdn.entry}} {{
  %o = gdn.delta_rule %q, %k, %v gates(%log_decay, %beta){erase} pool(%state_pool)
      slots(%slots{into}) sequences(%cu_seqlens){initial}{doubled}
      : {keys}, {keys}, {values}, {variant.log_decay_type}, tensor<?x?xf32>{erase_type},
        {pool}, tensor<?xi32>{into_type}, tensor<?xi32>{initial_type}
        -> {values}
  return %o : {values}
}}
"""


def compile_image(
    gdn_compile: Sequence, folder: Path, variants: Sequence[Variant], options: Sequence[str]
) -> Path:
    """Compiles the entries of `variants` in `folder` by the command `gdn_compile`; the
    image's path."""
    source, image = folder / "entries.mlir", folder / "entries.gdnk"
    source.write_text("".join(map(entry, variants)))
    # Caches of images know a source by its text and the name by which it is given.
    command = [*gdn_compile, source.name, "--target=native", *options, "-o", image]
    done = subprocess.run(command, text=True, capture_output=True, cwd=folder)
    assert done.returncode == 0, done.stderr
    return image
