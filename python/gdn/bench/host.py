# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a launch from Python costs the host, in each way to make one."""

import torch

from ..call import Call
from ..runtime import Kernel, Pool
from .inputs import Step
from .timing import host_times


def tensors(kernel: Kernel, step: Step, index: int) -> list[torch.Tensor]:
    """The arguments of a set, in the order of the parameters."""
    arguments = step.shared | step.sets[index]
    return [arguments[param.name] for param in kernel.params]


def measure(kernel: Kernel, step: Step) -> dict[str, dict[str, float]]:
    """Ways to their times. `step` has two sets at least."""
    first, second = (tensors(kernel, step, index) for index in (0, 1))
    # Other pools too, as those of another layer are.
    second = [value.clone() for value in second]
    pools = {param.name for param in kernel.params if param.kind == "pool"}
    names = [param.name for param in kernel.params]

    stream = torch.cuda.current_stream()
    memory = torch.empty(1 << 20, dtype=torch.uint8, device="cuda")

    def bind():
        values = dict(zip(names, first, strict=True))
        bound = kernel.bind(**{n: Pool(v) if n in pools else v for n, v in values.items()})
        if bound.workspace_bytes:
            bound.set_workspace(memory, stream)
        return bound

    bound, call = bind(), Call(kernel)
    ways = {
        "Binding.launch": [lambda: bound.launch(stream)],
        "Call, the same tensors": [lambda: call(*first)],
        "Call, other tensors each time": [lambda: call(*first), lambda: call(*second)],
        "Call, by name": [lambda: call(**dict(zip(names, first, strict=True)))],
        "Kernel.bind and Binding.launch": [lambda: bind().launch(stream)],
    }
    return {way: host_times(calls, launches=200) for way, calls in ways.items()}


def rows(kernel: Kernel, step: Step, config: dict) -> list[dict]:
    """Rows of the report."""
    return [
        {"suite": "host", "impl": "gdn", "config": config | {"variant": way}} | times
        for way, times in measure(kernel, step).items()
    ]
