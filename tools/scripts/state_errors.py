# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures what the formats of states cost in accuracy: decode on a CPU beside float64, token after
token, for streams that are hard on a rounded state. Writes docs/generated/state-formats.json, of
which tools/scripts/docs.py makes a page and the table of the guide on pools.

Every format sees the same inputs. Outputs are f32, so that what is measured is the state. The error
of a head is the RMSE of its outputs by the RMS of those of float64, over the last tokens; that of
its state is taken behind the last one, with what is pending. Of the heads of a stream the worst
counts.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

import state_errors_table

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
from gdn import Pool, Runtime  # noqa: E402
from gdn.problems import Sizes, make  # noqa: E402
from gdn.reference import whole_states  # noqa: E402

#: Tokens of a run, and the last of them, whose outputs count.
TOKENS, LAST = 4096, 512
#: Tokens with random contents ahead of those of a stream that begins with them.
RANDOM = 512
HEADS, DIM = 4, 128
#: The type of states and the tokens that deferred writes keep pending, 0: none.
FORMS = (
    *((state, 0) for state in ("f32", "f16", "bf16", "i8x2")),
    *((state, 16) for state in ("f32", "f16", "bf16", "i8x2", "i8x2_upper", "i8")),
)
_SLOWEST = 0.9999


class Stream(NamedTuple):
    """Inputs of a sequence: q, k, v [T, heads, dim], log_decay and beta [T, heads]."""

    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    log_decay: np.ndarray
    beta: np.ndarray


def _unit(x: np.ndarray) -> np.ndarray:
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def _draw(rng: np.random.Generator, tokens: int, decays, alike=0.5) -> Stream:
    """Keys are as `alike` as the cosine of neighbours says, and about half of a value is
    written."""
    key = rng.standard_normal((tokens, HEADS, DIM))
    alike = np.broadcast_to(alike, HEADS)[:, None]
    for t in range(1, tokens):
        key[t] = alike * key[t - 1] + np.sqrt(1 - alike**2) * key[t]
    query, value = (rng.standard_normal((tokens, HEADS, DIM)) for _ in range(2))
    beta = 1 / (1 + np.exp(-rng.standard_normal((tokens, HEADS))))
    log_decay = np.broadcast_to(np.log(decays), (tokens, HEADS))
    return Stream(_unit(query), _unit(key), value, log_decay, beta)


def slow(rng, tokens: int, first: int) -> Stream:
    return _draw(rng, tokens, (_SLOWEST, _SLOWEST, 0.999, 0.99), alike=(0.5, 0.95, 0.8, 0.5))


def repeated_key(rng, tokens: int, first: int) -> Stream:
    drawn = _draw(rng, tokens, _SLOWEST)
    drawn.k[first:] = drawn.k[first]
    drawn.beta[first:] = 1
    return drawn


def repeated_value(rng, tokens: int, first: int) -> Stream:
    drawn = repeated_key(rng, tokens, first)
    drawn.v[first:] = drawn.v[first]
    return drawn


def large_values(rng, tokens: int, first: int) -> Stream:
    drawn = _draw(rng, tokens, _SLOWEST)
    drawn.v[...] = rng.uniform(-1e4, 1e4, drawn.v.shape)
    return drawn


def pure_decay(rng, tokens: int, first: int) -> Stream:
    drawn = _draw(rng, tokens, _SLOWEST)
    drawn.beta[first:] = 0
    return drawn


#: By the name in the record.
STREAMS: dict[str, Callable[..., Stream]] = {
    "slow heads": slow,
    "a key that repeats": repeated_key,
    "values up to 1e4": large_values,
    "pure decay": pure_decay,
    "key and value that repeat": repeated_value,
}


def streams(tokens: int, first: int, seed: int = 36) -> Stream:
    """All streams, as f32 [T, streams, ..]."""
    rng = np.random.default_rng(seed)
    drawn = [make_one(rng, tokens, first) for make_one in STREAMS.values()]
    return Stream(*(np.stack(arrays, 1).astype(np.float32) for arrays in zip(*drawn, strict=True)))


def expected(given: Stream) -> tuple[np.ndarray, np.ndarray]:
    """Outputs [T, streams, heads, dim] and the last states [streams, heads, dim, dim] in
    float64."""
    q, k, v, log_decay, beta = (x.astype(np.float64) for x in given)
    state = np.zeros((*v.shape[1:], DIM))
    out = np.empty(v.shape)
    for t in range(len(v)):
        state *= np.exp(log_decay[t])[..., None, None]
        known = np.matmul(state, k[t][..., None])[..., 0]
        delta = beta[t][..., None] * (v[t] - known)
        state += delta[..., None] * k[t][..., None, :]
        out[t] = np.matmul(state, q[t][..., None])[..., 0] * DIM**-0.5
    return out, state


def compile_image(tool: list[str], folder: Path, state: str, writes: int) -> Path:
    path = folder / f"{state}-{writes}.gdnk"
    command = [*tool, "--preset=qwen3.5-4b", "--layout=ready", "--outputs=core", "--io=f32"]
    command += [f"--state={state}", f"--defer-writes={writes}", "--only=decode"]
    command += ["--target=x86-64-v3", "-o", str(path)]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return path


def run(runtime: Runtime, image: Path, given: Stream) -> tuple[np.ndarray, np.ndarray]:
    """What expected() gives, by decode on this CPU."""
    decode = runtime.device().kernel(runtime.image(image), "decode")
    count = given.v.shape[1]
    arrays = make(decode.params, Sizes(key_heads=HEADS, value_heads=HEADS, lengths=(1,) * count))
    pools = {param.name for param in decode.params if param.kind == "pool"}
    for name in pools:
        # Zeros are a state of zeros, in planes too, with nothing pending.
        arrays[name][...] = 0
    arrays["slots"][...] = 1 + np.arange(count)
    bound = {name: Pool(x) if name in pools else x for name, x in arrays.items()}
    binding = decode.bind(**bound)
    out = np.empty(given.v.shape, np.float32)
    for t in range(len(out)):
        for name, values in given._asdict().items():
            arrays[name][...] = values[t]
        binding.launch()
        out[t] = arrays["core"]
    return out, whole_states(arrays)[1 : 1 + count]


def error_of(got: np.ndarray, want: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """RMSE by RMS over some axes; infinite where something is not finite."""
    with np.errstate(invalid="ignore", over="ignore"):
        errors = np.sqrt(((got - want) ** 2).mean(axes) / (want**2).mean(axes))
    return np.where(np.isfinite(errors), errors, np.inf)


def measure(
    runtime: Runtime,
    tool: list[str],
    *,
    tokens: int = TOKENS,
    last: int = LAST,
    first: int = RANDOM,
    forms=FORMS,
) -> list[dict[str, object]]:
    """A row for each form, with the worst error of outputs and of states in each stream."""
    given = streams(tokens, first)
    want, want_state = expected(given)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for state, writes in forms:
            image = compile_image(tool, Path(folder), state, writes)
            got, got_state = run(runtime, image, given)
            outputs = error_of(got[-last:], want[-last:], (0, 3)).max(1)
            states = error_of(got_state, want_state, (2, 3)).max(1)
            row = {"state": state, "deferred_writes": writes}
            row |= {
                name: [float(f"{error:.2g}") for error in pair]
                for name, *pair in zip(STREAMS, outputs, states, strict=True)
            }
            rows.append(row)
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="state_errors", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--build-dir", type=Path, default=ROOT / "build/release")
    build = parser.parse_args().build_dir
    rows = measure(Runtime(build / "lib/libgdnrt.so"), [str(build / "bin/gdn-compile")])
    record = {"tokens": TOKENS, "last": LAST, "heads": HEADS, "dim": DIM, "rows": rows}
    state_errors_table.RECORD.write_text(json.dumps(record, indent=1) + "\n")
    print("\n".join(state_errors_table.table(record)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
