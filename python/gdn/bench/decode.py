# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Our decode kernel's calls, and the errors of anybody's results against float64."""

from collections.abc import Callable

import numpy as np
import torch

from .. import reference
from ..checks import relative_error
from ..runtime import Kernel, Pool
from .inputs import Inputs, Step, to_host

_WEIGHTS = ("A_log", "dt_bias", "conv_weight", "norm_weight")


def bindings(kernel: Kernel, step: Step, dependent: bool) -> list:
    """Our kernel bound to each set. All share one workspace, as layers of a model do."""
    bound, workspace = [], None
    pools = {name: Pool(pool) for name, pool in step.pools.items()}
    for slots in step.slots:
        binding = kernel.bind(**step.shared, **pools, slots=slots)
        if binding.workspace_bytes:
            if workspace is None:
                size = binding.workspace_bytes
                workspace = torch.zeros(size, dtype=torch.uint8, device="cuda")
            # Zeroed on the default stream, which everything here follows.
            binding.set_workspace(workspace, stream=torch.cuda.current_stream())
        binding.allow_dependent_launch(dependent)
        bound.append(binding)
    torch.cuda.synchronize()
    return bound


def calls(bound: list) -> list[Callable[[], object]]:
    """Launches on the stream that is current when they are made."""
    return [lambda b=b: b.launch(torch.cuda.current_stream()) for b in bound]


def output_of(step: Step) -> torch.Tensor:
    """What our entry writes, [rows, Hv, dv]."""
    return step.shared["out" if "out" in step.shared else "core"]


def step_errors(
    step: Step,
    run: Callable[[], object],
    output: Callable,
    states: Callable,
    in_slots: bool = True,
) -> tuple[float, float]:
    """Errors of the picked rows after `run` has made a step on the first set, with states
    in slots or side by side."""
    rows = step.picked
    before = {
        name: to_host(value if name in _WEIGHTS else value[rows])
        for name, value in step.shared.items()
    }
    picked = torch.cat([torch.zeros(1).long().to("cuda"), step.slots_of(in_slots)[rows]])
    for name, pool in step.pools.items():
        before[name] = to_host(pool[picked])
    before["slots"] = np.arange(1, len(rows) + 1)
    want = reference.evaluate(step.layer, before)
    run()
    torch.cuda.synchronize()
    return (
        relative_error(to_host(output()[rows]), want["out" if "out" in step.shared else "core"]),
        relative_error(to_host(states()[rows]), want["state_pool"][1:]),
    )


def rule_errors(
    x: Inputs,
    run: Callable[[], object],
    output: Callable,
    states: Callable,
    in_slots: bool = True,
    has_norm: bool = False,
) -> tuple[float, float]:
    """Errors of the picked rows after `run` has applied the rule, or with `has_norm` the rule and
    the gated norm, to what the convolution gave and the states of the first set."""
    step, rows = x.step, x.step.picked
    a_log, dt_bias = (to_host(step.shared[name]) for name in ("A_log", "dt_bias"))
    mixed, a, b = (to_host(value[rows])[:, None] for value in (x.convolved, x.a, x.b))
    before = to_host(step.pools["state_pool"][step.slots_of(in_slots)[rows]])
    want = [
        reference.delta_rule(step.layer, mixed[i], before[i], a_log, dt_bias, a[i], b[i])
        for i in range(len(rows))
    ]
    core = np.stack([core for core, _ in want])
    if has_norm:
        weights = {"norm_weight": to_host(step.shared["norm_weight"])}
        core = reference.gated_norm(step.layer, core, to_host(x.z[rows])[:, None], weights)
    run()
    torch.cuda.synchronize()
    return (
        relative_error(to_host(output()[rows]), core[:, 0]),
        relative_error(to_host(states()[rows]), np.stack([state for _, state in want])),
    )
