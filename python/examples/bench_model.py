# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times the linear-attention layers of a model: steps of decode and of prefill.

    python python/examples/bench_model.py qwen3.5-4b
    python python/examples/bench_model.py qwen3.5-4b --device cuda --decode 1 64 --prefill 8x1024

Every layer has states of its own, as in the model; inputs are made up. Projections, full attention
and the rest of the model are not part of it. The image is a prebuilt one, or gdn-compile makes it.
"""

import argparse
import statistics
import sys
import time

import gdn
from gdn.cuda_driver import Driver, time_launches
from gdn.problems import Sizes, make

#: Key heads, value heads and layers of linear attention, by preset.
PRESETS = {
    "qwen3-next-80b-a3b": (16, 32, 36),
    "qwen3.5-0.8b": (16, 16, 18),
    "qwen3.5-2b": (16, 16, 18),
    "qwen3.5-4b": (16, 32, 24),
    "qwen3.5-9b": (16, 32, 24),
    "qwen3.5-27b": (16, 48, 48),
    "qwen3.5-35b-a3b": (16, 32, 30),
    "qwen3.5-122b-a10b": (16, 64, 36),
    "qwen3.5-397b-a17b": (16, 64, 45),
    "qwen3.6-27b": (16, 48, 48),
    "qwen3.6-35b-a3b": (16, 32, 30),
    "qwen3.8-flash-next": (16, 48, 36),
    "olmo-hybrid-7b": (30, 30, 24),
    "kimi-linear-48b-a3b": (32, 32, 20),
    "kimi-k3": (96, 96, 69),
    "glm-5.3-flash": (64, 64, 34),
    "ling-3.0-flash": (32, 32, 35),
    "ling-3.0-tiny": (16, 16, 18),
}


def sizes_of(model: str) -> tuple[int, int, int]:
    """The same for the name of a preset, or the path of a config.json or of its folder."""
    if model in PRESETS:
        return PRESETS[model]
    config = gdn.ModelConfig.from_config(model)
    return config.key_heads, config.value_heads, config.num_gdn_layers


def image_for(model: str, device: gdn.Device) -> str:
    """The path of a prebuilt image, or of one that is compiled now or was before."""
    try:
        return str(gdn.images.find(model, device))
    except gdn.ImageNotFoundError:
        target = gdn.targets.run_by(device)[0]
        options = ["--only=decode,prefill"]
        return str(gdn.compile(model, target, engine="c", options=options))


def bind_layers(device: gdn.Device, kernel: gdn.Kernel, sizes: Sizes, layers: int) -> list:
    """A call of the kernel for each layer, with pools of its own."""
    arrays = make(kernel.params, sizes)
    pools = {param.name for param in kernel.params if param.kind == "pool"}
    shared = {name: device.array(a) for name, a in arrays.items() if name not in pools}
    bindings = []
    for _ in range(layers):
        own = {name: gdn.Pool(device.array(arrays[name])) for name in pools}
        bindings.append(kernel.bind(**shared, **own))
        if bindings[-1].workspace_bytes:
            bindings[-1].set_workspace()
    return bindings


def microseconds(driver: Driver | None, bindings: list, repeats: int) -> float:
    """Of one layer: the median over passes through all layers, on a GPU as a graph."""
    if driver is not None:
        driver.synchronize()  # the arrays are there
        return time_launches(driver, [binding.launch for binding in bindings], repeats)["us"]
    times = []
    for _ in range(repeats + 1):  # the first one finds memory that was never read
        start = time.perf_counter()
        for binding in bindings:
            binding.launch()
        times.append((time.perf_counter() - start) * 1e6 / len(bindings))
    return statistics.median(times[1:])


def prompts(text: str) -> tuple[int, ...]:
    """ "8x1024": the lengths of 8 prompts of 1024 tokens."""
    count, _, length = text.rpartition("x")
    return (int(length),) * int(count or 1)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("model", help=f"a config.json, its folder, or {', '.join(PRESETS)}")
    parser.add_argument("--decode", type=int, nargs="*", default=[1, 4], help="sequences")
    parser.add_argument(
        "--prefill", type=prompts, nargs="*", default=[(512,)], help="prompts: 512, 8x1024, ..."
    )
    parser.add_argument("--layers", type=int, help="so many, if there is no memory for all")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args(arguments)
    runtime = gdn.Runtime()
    device = runtime.cuda() if options.device == "cuda" else runtime.device(num_workers=0)
    driver = Driver(device.ordinal) if options.device == "cuda" else None
    key_heads, value_heads, layers = sizes_of(options.model)
    image = runtime.image(image_for(options.model, device))
    print(f"{options.model}: {layers} layers, {key_heads} and {value_heads} heads, {device.name}")
    print("step     sequences  tokens  us of a layer  ms of all layers  tokens/s")
    steps = [("decode", (1,) * count) for count in options.decode]
    steps += [("prefill", lengths) for lengths in options.prefill]
    kernels = {step: device.kernel(image, image.find(step)) for step in ("decode", "prefill")}
    for step, lengths in steps:
        sizes = Sizes(key_heads, value_heads, lengths)
        bindings = bind_layers(device, kernels[step], sizes, options.layers or layers)
        us, tokens = microseconds(driver, bindings, options.repeats), sum(lengths)
        ms = us * layers / 1e3
        rate = tokens / ms * 1e3
        print(
            f"{step:7}  {len(lengths):9}  {tokens:6}  {us:13.1f}  {ms:16.2f}  {rate:8.0f}",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
