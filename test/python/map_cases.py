# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Entries combine_maps and apply_maps of an image on a device against float64: random numbers of
ranks, sequences and segments, with some that are none. `python map_cases.py IMAGE LIBRARY [DRIVER]`
runs them on a GPU, or on a driver of another name, and prints the largest errors."""

import json
import sys

import numpy as np

from gdn import Pool, Runtime

SLOTS, NULL = 6, 3


def draw(rng, dv: int, dk: int, heads: int) -> dict:
    ranks, count = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    lengths = rng.integers(0, 4, count)
    # One segment behind each sequence belongs to none.
    first = np.cumsum([0, *(lengths + 1)[:-1]]).astype(np.int32)
    total = int(first[-1] + lengths[-1] + 1)

    def normal(*shape, scale=1.0):
        return (scale * rng.standard_normal(shape)).astype(np.float32)

    scale = dk**-0.5
    slots = (1 + rng.permutation(SLOTS - 1)[:count]).astype(np.int32)
    targets = slots.copy()
    slots[rng.random(count) < 0.2] = -1
    targets[rng.random(count) < 0.2] = rng.choice([-1, SLOTS, NULL])
    return {
        "maps": np.concatenate(
            [
                normal(ranks, count, heads, dv, dk),
                normal(ranks, count, heads, dk, dk, scale=scale),
            ],
            axis=3,
        ),
        "rank": np.array([rng.integers(0, ranks)], np.int32),
        "constant": normal(total, heads, dv, dk),
        "linear": normal(total, heads, dk, dk, scale=scale),
        "first_segments": first,
        "num_segments": lengths.astype(np.int32),
        "slots": slots,
        "write_slots": targets,
        "state_pool": normal(SLOTS, heads, dv, dk),
    }


def combined(x: dict) -> np.ndarray:
    dv, dk = x["constant"].shape[2:]
    want = []
    for first, count in zip(x["first_segments"], x["num_segments"], strict=True):
        both = np.zeros((x["constant"].shape[1], dv + dk, dk))
        both[:, dv:] = np.eye(dk)
        for m in range(first, first + count):
            both = both @ x["linear"][m].astype(np.float64)
            both[:, :dv] += x["constant"][m]
        want.append(both)
    return np.array(want)


def applied(x: dict) -> tuple[dict, np.ndarray]:
    """States by segment, and the pool."""
    dv = x["constant"].shape[2]
    states, pool = {}, x["state_pool"].astype(np.float64)

    def is_slot(slot):
        return 0 <= slot < SLOTS and slot != NULL

    for n, first in enumerate(x["first_segments"]):
        slot, target = x["slots"][n], x["write_slots"][n]
        state = np.zeros(pool.shape[1:])
        if is_slot(slot):
            state = x["state_pool"][slot].astype(np.float64)
        for r, maps in enumerate(x["maps"][:, n].astype(np.float64)):
            if r == x["rank"][0]:
                before = state
            state = state @ maps[:, dv:] + maps[:, :dv]
        if is_slot(target):
            pool[target] = state
        for m in range(first, first + x["num_segments"][n]):
            states[m] = before
            before = before @ x["linear"][m].astype(np.float64) + x["constant"][m]
    return states, pool


def worst_of(pairs) -> float:
    """The largest error of a matrix, relative to its norm; NaN if there is one."""
    errors = [0.0]
    for got, want in pairs:
        norms = np.linalg.norm(want, axis=(-2, -1))
        off = np.linalg.norm(got - want, axis=(-2, -1))
        errors += (off / np.maximum(norms, 1e-9)).ravel().tolist()
    return float(np.max(errors))


def check(device, image, cases: int, sizes: tuple[int, int, int], dtype=np.float32) -> dict:
    """The largest errors of `cases` cases with `sizes`, dv, dk and heads; `dtype` is that of
    states."""
    kernels = [device.kernel(image, name) for name in ("combine_maps", "apply_maps")]
    rng, worst = np.random.default_rng(7), {"maps": 0.0, "states": 0.0, "pool": 0.0}
    for _ in range(cases):
        x = draw(rng, *sizes)
        x["state_pool"] = x["state_pool"].astype(dtype).astype(np.float32)
        arrays = {name: device.array(array) for name, array in x.items()}
        pool = device.array(x["state_pool"].astype(dtype))
        arrays["state_pool"] = Pool(pool, NULL)
        want = combined(x)
        maps = device.array(np.full(want.shape, np.nan, np.float32))
        states = device.array(np.full(x["constant"].shape, np.nan, np.float32))
        results = {"maps": maps}, {"states": states}
        for kernel, result in zip(kernels, results, strict=True):
            names = [param.name for param in kernel.params]
            given = {name: array for name, array in arrays.items() if name in names}
            kernel.bind(**(given | result)).launch()
        device.synchronize()
        before, after = applied(x)
        found = states.numpy()
        ahead = np.array([m in before for m in range(len(found))])
        assert np.isnan(found[~ahead]).all(), "states of segments of no sequence were written"
        got = pool.numpy().astype(np.float32)
        kept = (after == x["state_pool"]).all(axis=(1, 2, 3))
        assert (got[kept] == x["state_pool"][kept]).all(), "other slots were written"
        errors = {
            "maps": worst_of([(maps.numpy(), want)]),
            "states": worst_of((found[m], state) for m, state in before.items()),
            "pool": worst_of([(got[~kept], after[~kept])]),
        }
        # A NaN stays: no comparison with it is true.
        worst = {k: e if not e <= worst[k] else worst[k] for k, e in errors.items()}
    return worst


if __name__ == "__main__":
    runtime = Runtime(sys.argv[2])
    gpu = runtime.cuda(driver=sys.argv[3]) if len(sys.argv) > 3 else runtime.cuda()
    image = runtime.image(sys.argv[1])
    heads = 1 if len(sys.argv) > 3 else 8
    cases = 4 if len(sys.argv) > 3 else 50
    print(json.dumps(check(gpu, image, cases, (128, 128, heads))))
