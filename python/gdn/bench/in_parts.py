# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prefill whose operands have two parts, strengths up to 2 and inputs of f32: whole layers in the
variant that a launch takes and token by token, beside FLA's chain on the same inputs.

    python3 -m gdn.bench.in_parts IMAGE:KEY_HEADS:VALUE_HEADS .. --commit C --output in-parts.json

Images have a prefill of packed projections with --layout=separate. Errors are those of outputs,
beside float64.
"""

import argparse
import datetime
import importlib.metadata
import json
from functools import partial
from pathlib import Path

import numpy as np
import torch

from .. import problems, reference
from ..checks import relative_error
from ..problems import Sizes
from ..runtime import Runtime
from .packed import pools_of
from .peers.packed import convolve, gated_norm
from .prefill import bind_each
from .timing import time_calls

CHECKED = (130, 70)
SETS = ((256,), (1024,) * 2, (8192,), (2048,) * 4, (1024,) * 8, (512,) * 32)


def to_gpu(array: np.ndarray) -> torch.Tensor:
    if array.dtype.name == "bfloat16":
        bits = torch.from_numpy(array.view(np.int16).copy())
        return bits.view(torch.bfloat16).cuda()
    return torch.from_numpy(np.ascontiguousarray(array)).cuda()


def launch(bound) -> None:
    bound.launch(torch.cuda.current_stream())


def fla_chain(layer: reference.Layer, x: dict[str, torch.Tensor]):
    """A call of FLA's kernels for the layer, which gives its outputs [T, Hv, dv]."""
    from fla.ops.gated_delta_rule import chunk_gated_delta_rule

    bounds, slots = x["cu_seqlens"].long(), x["slots"].long()
    sections = [x[name].flatten(1) for name in "qkv"]
    edges = np.cumsum([0, *(part.shape[1] for part in sections)])
    kept = torch.nn.functional.pad(x["conv_pool"][slots], (1, 0))
    parts = [
        (part, x["conv_weight"][a:b].contiguous(), kept[:, a:b].contiguous())
        for part, a, b in zip(sections, edges[:-1], edges[1:], strict=True)
    ]
    state = x["state_pool"][slots].float()

    def call() -> torch.Tensor:
        with torch.no_grad():
            q, k, v = (convolve(*part, bounds)[0] for part in parts)
            q, k = (y.view(*y.shape[:2], -1, layer.key_dim) for y in (q, k))
            v = v.view(*v.shape[:2], -1, layer.value_dim)
            beta = x["b"][None].float().sigmoid() * (2 if layer.double_beta else 1)
            core, _ = chunk_gated_delta_rule(
                q,
                k,
                v,
                g=x["a"][None],
                beta=beta.to(v.dtype),
                initial_state=state,
                output_final_state=True,
                use_qk_l2norm_in_kernel=True,
                use_gate_in_kernel=True,
                A_log=x["A_log"],
                dt_bias=x["dt_bias"],
                state_v_first=True,
                cu_seqlens=bounds,
            )
            z = x["z"].view(core.shape)
            return gated_norm(core, z, x["norm_weight"], layer.gate, layer.norm_eps)[0]

    return call


def measure(kernel, layer: reference.Layer, heads: tuple[int, int], lengths, checked: bool) -> dict:
    arrays = problems.make(kernel.params, Sizes(*heads, lengths, seed=5))
    io = next(param.dtype for param in kernel.params if param.name == "out")
    config = {"heads": [layer.key_dim, layer.value_dim], "number": list(heads), "io": io}
    config |= {"double_beta": layer.double_beta, "sequences": len(lengths), "tokens": lengths[0]}
    row = {"suite": "prefill-in-parts", "impl": "gdn", "config": config}
    x = {name: to_gpu(array) for name, array in arrays.items()}
    chain = fla_chain(layer, x)
    if checked:
        want = reference.evaluate(layer, arrays)["out"]
        (bound,) = bind_each(kernel, [pools_of(dict(x))], None)
        theirs = relative_error(chain().double().cpu().numpy(), want)
        launch(bound)
        row |= {"error": relative_error(x["out"].double().cpu().numpy(), want), "fla_error": theirs}
        return row
    for name, variant in (("us", None), ("us_token_by_token", "rows")):
        (bound,) = bind_each(kernel, [pools_of(x)], variant)
        call = partial(launch, bound)
        row[name] = time_calls([call], repeats=9)["us"]
        row["config"].setdefault("variant", bound.variant)
    row["fla_us"] = time_calls([chain], repeats=9)["us"]
    row["ratio"] = row["fla_us"] / row["us"]
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("images", nargs="+", help="a path and the numbers of heads")
    parser.add_argument("--commit", required=True, help="that the images are of")
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    runtime, rows = Runtime(), []
    device = runtime.cuda()
    for text in options.images:
        path, keys, values = text.rsplit(":", 2)
        image = runtime.image(path)
        kernel = device.kernel(image, "prefill")
        layer = reference.Layer.of(image.attributes("prefill"))
        for lengths in (CHECKED, *SETS):
            checked = lengths is CHECKED
            rows.append(measure(kernel, layer, (int(keys), int(values)), lengths, checked))
            print(json.dumps(rows[-1]), flush=True)
    report = {
        "device": torch.cuda.get_device_name(),
        "date": datetime.date.today().isoformat(),
        "commit": options.commit,
        "versions": {
            "torch": torch.__version__,
            "flash-linear-attention": importlib.metadata.version("flash-linear-attention"),
        },
        "rows": rows,
    }
    options.output.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
