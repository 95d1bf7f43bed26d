# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Maps of runs of tokens on a GPU against float64: `segment_maps_on_gpu IMAGE LIBRARY` prints the
largest errors, of H relative to its norm and of P to that of the identity."""

import json
import sys

import ml_dtypes
import numpy as np

from gdn import Runtime
from gdn.runtime import Pool
from gdn.segment_maps import VARIANT

D, HEADS, STARTS = 128, 2, np.array([0, 1, 65, 195], np.int32)


def main(image: str, library: str) -> None:
    rng = np.random.default_rng(0)
    rows, runs = int(STARTS[-1]), len(STARTS) - 1
    key = rng.standard_normal((2, rows, 1, D))
    q, k = (key / np.linalg.norm(key, axis=-1, keepdims=True)).astype(ml_dtypes.bfloat16)
    v = rng.standard_normal((rows, HEADS, D)).astype(ml_dtypes.bfloat16)
    log_decay = -0.01 * rng.random((rows, HEADS), np.float32)
    beta, slots = rng.random((rows, HEADS), np.float32), np.arange(runs, dtype=np.int32)
    runtime = Runtime(library)
    device = runtime.cuda()
    kernel = device.kernel(runtime.image(image), "prefill")
    given = {"q": q, "k": k, "v": v, "log_decay": log_decay, "beta": beta, "cu_seqlens": STARTS}
    given |= {"slots": slots, "write_slots": slots, "has_initial": np.ones(runs, bool)}
    names = [param.name for param in kernel.params]
    arrays = {name: device.array(array) for name, array in given.items() if name in names}
    states = device.array(np.full((runs, HEADS, D, D), np.nan, np.float32))
    out = device.array(np.full((rows, HEADS, D), np.nan, ml_dtypes.bfloat16))
    space = device.array(np.full(8 * runs * HEADS * D * D, 255, np.uint8))
    binding = kernel.bind(**arrays, state_pool=Pool(states, -1), core=out)
    names = [one.name for one in kernel.variants if one.name.startswith(VARIANT)]
    binding.force_variant(names[0])
    binding.set_workspace(space)
    binding.launch()
    device.synchronize()
    assert np.isnan(out.numpy().astype(np.float32)).all() and np.isnan(states.numpy()).all()
    found = space.numpy().view(np.float32).reshape(2, runs, HEADS, D, D)
    worst = {"constant": 0.0, "linear": 0.0, "runs": runs}
    k, v = k.astype(np.float64), v.astype(np.float64)
    for i in range(runs):
        for h in range(HEADS):
            constant, linear = np.zeros((D, D)), np.eye(D)
            for t in range(STARTS[i], STARTS[i + 1]):
                for part, value in ((constant, v[t, h]), (linear, 0)):
                    part *= np.exp(float(log_decay[t, h]))
                    part += beta[t, h] * np.outer(value - part @ k[t, 0], k[t, 0])
            for name, one, want, norm in (
                ("constant", found[0, i, h], constant, np.linalg.norm(constant)),
                ("linear", found[1, i, h], linear, D**0.5),
            ):
                # A NaN stays: no comparison with it is true.
                error = float(np.linalg.norm(one - want) / norm)
                worst[name] = error if not error <= worst[name] else worst[name]
    print(json.dumps(worst))


if __name__ == "__main__":
    main(*sys.argv[1:])
