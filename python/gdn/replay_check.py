# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Replays recorded activations of a layer on this machine's device, without a compiler:
`python -m gdn.replay_check IMAGE RECORDING`, as `gdn-run --replay` does with one.

Recordings are those of test/data: safetensors of projections, weights, outputs and states of a
prefill and of steps of decode. Results are held against float64 from the same rounded inputs, and,
of images whose inputs are f32, against what the model itself computed. Exits with 1 if an error is
out of bounds or a file is missing or does not fit, with 77 if there is no such device.
"""

import argparse
import datetime
import json
import math
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from . import checks, problems, reference
from .runtime import Device, GdnError, Image, Kernel, Runtime

_SKIPPED = 77  # the exit code where there is no such device
# Slots of a pool: a null slot, the layer's, and one that is left alone; NaN but for the layer's.
_SLOTS = 3
_SLOT = 1

# The modules whose outputs, side by side, make a parameter: the first that were recorded.
_PROJECTIONS = {
    "qkvz": (
        ("in_proj_qkvz",),
        ("in_proj_qkv", "in_proj_z"),
        ("q_proj", "k_proj", "v_proj", "g_proj"),
    ),
    "ba": (("in_proj_ba",), ("in_proj_b", "in_proj_a"), ("b_proj", "a_proj")),
    "qkv": (("in_proj_qkv",), ("q_proj", "k_proj", "v_proj")),
    "q": (("q_proj",),),
    "k": (("k_proj",),),
    "v": (("v_proj",),),
    "z": (("in_proj_z",), ("g_proj",), ("g_b_proj",)),
    "b": (("in_proj_b",), ("b_proj",)),
    "a": (("in_proj_a",), ("a_proj",), ("f_proj",), ("f_b_proj",)),
}
_WEIGHTS = {
    "conv_weight": ("conv1d.weight",),
    "A_log": ("A_log",),
    "dt_bias": ("dt_bias",),
    "norm_weight": ("norm.weight", "o_norm.weight"),
}
_RECORDED = {
    "core": "core_pre_norm",
    "out": "post_norm",
    "conv_pool": "conv_states",
    "state_pool": "recurrent_states",
}
# Relative RMSE allowed; windows of the convolution have to be equal. Of states the second number
# is for GPUs, whose chunks go through matrix units.
_F32, _NARROW, _STATE = 1e-5, 5e-3, (1e-5, 2e-3)


class RecordingError(ValueError):
    """A recording that is not what an image takes."""


def read(path: Path) -> dict[str, np.ndarray]:
    """The tensors of a file of safetensors, of f32 and integers."""
    dtypes = {"F32": np.float32, "I64": np.int64, "I32": np.int32}
    try:
        content = path.read_bytes()
    except OSError as error:
        raise RecordingError(f"{path}: cannot read: {error.strerror}") from error
    try:
        size = int.from_bytes(content[:8], "little")
        header = json.loads(content[8 : 8 + size])
        header.pop("__metadata__", None)
        found = {}
        for name, entry in header.items():
            first, last = (8 + size + offset for offset in entry["data_offsets"])
            values = np.frombuffer(content[first:last], dtypes[entry["dtype"]])
            found[name] = values.reshape(entry["shape"])
    except (
        AttributeError,
        KeyError,
        TypeError,
        ValueError,
        ArithmeticError,
        RecursionError,
    ) as error:
        raise RecordingError(f"{path}: expected safetensors of f32 and integers") from error
    return found


@dataclass(frozen=True)
class Recording:
    """The tensors of a file by name."""

    path: Path
    tensors: dict[str, np.ndarray]

    @classmethod
    def load(cls, path: Path) -> "Recording":
        recording = cls(path, read(path))
        if not recording.layers():
            raise RecordingError(
                f"{path}: expected recorded activations (prefill.<layer>.core_pre_norm and others),"
                " but found none"
            )
        return recording

    def layers(self) -> list[str]:
        names = [name.split(".") for name in self.tensors]
        return sorted(n[1] for n in names if n[0] == "prefill" and n[2:] == ["core_pre_norm"])

    def phases(self, layer: str) -> list[str]:
        """The prefill, and the steps behind it."""
        steps = sum(
            name.startswith("decode") and name.endswith(f".{layer}.core_pre_norm")
            for name in self.tensors
        )
        return ["prefill", *(f"decode{step}" for step in range(steps))]

    def argument(self, phase: str, layer: str, name: str) -> np.ndarray:
        """What was recorded for a parameter of an entry: a weight, or projections side by side,
        [tokens, columns]."""
        for weight in _WEIGHTS.get(name, ()):
            if f"weights.{layer}.{weight}" in self.tensors:
                return self.tensors[f"weights.{layer}.{weight}"]
        for modules in _PROJECTIONS.get(name, ()):
            parts = [self.tensors.get(f"{phase}.{layer}.{module}") for module in modules]
            if all(part is not None for part in parts):
                return np.concatenate([p.reshape(-1, p.shape[-1]) for p in parts], axis=1)
        raise RecordingError(
            f"{self.path}: {phase}.{layer}: nothing was recorded for the parameter {name!r}"
        )

    def result(self, phase: str, layer: str, name: str) -> np.ndarray | None:
        """What the model computed for a parameter that an entry writes, in the order that entries
        have; of K inputs of a convolution the last K - 1 are its window."""
        found = self.tensors.get(f"{phase}.{layer}.{_RECORDED[name]}")
        if found is None or name in checks.OUTPUTS:
            return found
        return found[0, :, 1:] if name == "conv_pool" else found[0].swapaxes(1, 2)


@dataclass
class Row:
    """One tensor after one step of one layer; errors are relative RMSE."""

    layer: str
    phase: str
    tensor: str
    float64: float
    transformers: float | None
    limit: float

    @property
    def holds(self) -> bool:
        """NaN holds nothing."""
        errors = (e for e in (self.float64, self.transformers) if e is not None)
        return all(error <= self.limit for error in errors)


def arguments_of(
    kernel: Kernel, recording: Recording, phase: str, layer: str, pools: dict[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """All arguments of a step, in the types of the entry."""
    dims = {param.name: param.dims for param in kernel.params}
    value_dim, key_dim = (int(dim) for dim in dims["state_pool"][2:])
    heads = recording.argument(phase, layer, "A_log").size
    channels = len(recording.argument(phase, layer, "conv_weight"))
    rows = recording.tensors[f"{phase}.{layer}.core_pre_norm"].size
    key_heads = (channels - heads * value_dim) // (2 * key_dim)
    tokens = rows // (heads * value_dim)
    sequences = 1 if phase == "prefill" else tokens
    symbols = {"T": tokens, "N": sequences, "P": _SLOTS, "Hk": key_heads, "Hv": heads}
    integers = {
        "cu_seqlens": np.array([0, tokens]),
        "slots": np.array([_SLOT]),
        "write_slots": np.array([_SLOT]),
        "has_initial": np.array([False]),
    }
    arguments = {}
    for param in kernel.params:
        shape = problems.shape_of(param.dims, symbols)
        if param.kind == "pool" and param.name in pools:
            values = pools[param.name]
        elif param.kind == "pool":
            values = np.full(shape, np.nan, np.float32)
            values[_SLOT] = 0
        elif param.access == "write":
            values = np.full(shape, np.nan, np.float32)
        elif param.name in integers:
            values = integers[param.name]
        else:
            values = recording.argument(phase, layer, param.name)
        if values.size != math.prod(shape):
            raise RecordingError(
                f"{recording.path}: {phase}.{layer}: expected {list(shape)} elements for the "
                f"parameter {param.name!r}, but found {list(values.shape)}"
            )
        arguments[param.name] = values.reshape(shape).astype(problems.numpy_dtype(param.dtype))
    return arguments


def limit_of(kernel: Kernel, tensor: str) -> float:
    if tensor == "conv_pool":
        return 0.0
    if checks.takes_f32(kernel):
        return _F32
    return _STATE[checks.device_code(kernel)] if tensor == "state_pool" else _NARROW


def replay(device: Device, image: Image, recording: Recording) -> list[Row]:
    """The prefill of each layer and each step of decode behind it, on states that carry over. In
    float64 they have states of their own."""
    entries = {name: device.kernel(image, name) for name in ("prefill", "decode")}
    meanings = {name: reference.Layer.of(image.attributes(name)) for name in entries}
    rows = []
    for layer in recording.layers():
        pools, exact = {}, {}
        for phase in recording.phases(layer):
            entry = "prefill" if phase == "prefill" else "decode"
            before = arguments_of(entries[entry], recording, phase, layer, pools)
            after = checks.run(device, entries[entry], before)
            want = reference.evaluate(meanings[entry], before | exact)
            pools = {name: after[name] for name in checks.POOLS if name in after}
            exact = {name: want[name] for name in pools}
            rows += compare(entries[entry], recording, (layer, phase), after, want)
    return rows


def compare(kernel: Kernel, recording: Recording, step: tuple[str, str], after, want) -> list[Row]:
    layer, phase = step
    rows = []
    for name in (n for n in _RECORDED if n in after):
        is_pool = name not in checks.OUTPUTS
        got, exact = (x[name][_SLOT] if is_pool else x[name] for x in (after, want))
        got = got.astype(np.float64)
        if name == "conv_pool":  # raw inputs, bit for bit
            exact = exact.astype(after[name].dtype).astype(np.float64)
        model = None
        if checks.takes_f32(kernel):
            recorded = recording.result(phase, layer, name)
            if recorded is not None:
                wanted = recorded.astype(np.float64).reshape(got.shape)
                model = checks.relative_error(got, wanted)
        error = checks.relative_error(got, exact)
        rows.append(Row(layer, phase, name, error, model, limit_of(kernel, name)))
    return rows


def table(rows: list[Row]) -> list[str]:
    """A line for each tensor of a layer: the prefill, and the worst step of decode."""
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        kind = "prefill" if row.phase == "prefill" else "decode"
        groups.setdefault((row.layer, kind, row.tensor), []).append(row)
    lines = []
    for (layer, kind, tensor), group in groups.items():
        model = [row.transformers for row in group if row.transformers is not None]
        errors = [f"float64 {max(row.float64 for row in group):.1e}"]
        errors += [f"transformers {max(model):.1e}"] if model else []
        verdict = "ok" if all(row.holds for row in group) else "OUT OF BOUNDS"
        lines.append(f"{layer} {kind} x {len(group)} {tensor}: {', '.join(errors)}  {verdict}")
    return lines


def _failed(error: object) -> int:
    print(f"replay_check: {error}", file=sys.stderr)
    return 1


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="replay_check", description=__doc__)
    parser.add_argument("image", type=Path, help="with prefill and decode")
    parser.add_argument("recording", type=Path)
    parser.add_argument("--library", help="libgdnrt, else the installed one")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--output", type=Path, help="write the rows as JSON")
    options = parser.parse_args(arguments)
    runtime = Runtime(options.library)
    try:
        device = runtime.device() if options.device == "cpu" else runtime.cuda()
    except GdnError as error:
        print(f"no device: {error}")
        return _SKIPPED
    try:
        image = runtime.image(options.image)
    except GdnError as error:  # names the file
        return _failed(error)
    try:
        rows = replay(device, image, Recording.load(options.recording))
    except RecordingError as error:
        return _failed(error)
    except GdnError as error:
        return _failed(f"{options.image}: {error}")
    bad = [row for row in rows if not row.holds]
    print("\n".join(table(rows)))
    print(f"{device.name}: {options.recording.name}: {len(bad)} of {len(rows)} out of bounds")
    if options.output:
        report = {"device": device.name, "date": datetime.date.today().isoformat()}
        report |= {"recording": options.recording.name, "rows": [asdict(row) for row in rows]}
        options.output.write_text(json.dumps(report, indent=1) + "\n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
