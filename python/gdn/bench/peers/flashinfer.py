# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""FlashInfer's decode: gates, l2norm and rule in one launch, in place. It has no
convolution and no norm: as a step it stands between those of vLLM."""

import torch

from ..inputs import Inputs, Step
from . import vllm
from .peer import Peer


def _launch(step: Step, x: Inputs, q, k, v, output: torch.Tensor, **states):
    from flashinfer.gdn_decode import gated_delta_rule_decode_pretranspose

    a, b = x.a[:, None], x.b[:, None]
    return lambda: gated_delta_rule_decode_pretranspose(
        q,
        k,
        v,
        states.get("state"),
        step.shared["A_log"],
        a,
        step.shared["dt_bias"],
        b,
        output=output,
        use_qk_l2norm=True,
        initial_state=states.get("pool"),
        initial_state_indices=states.get("slots"),
    )


def rule_on_pool(step: Step, x: Inputs) -> Peer:
    """On slots of the pool."""
    q, k, v = x.heads_of(x.convolved)
    output, pool = x.new_output(), step.pools["state_pool"]
    calls = [_launch(step, x, q, k, v, output, pool=pool, slots=slots) for slots in step.slots]
    return Peer(calls, lambda: output[:, 0], step.states_in_slots)


def rule_on_states(step: Step, x: Inputs) -> Peer:
    """On states side by side, without slots."""
    q, k, v = x.heads_of(x.convolved)
    output = x.new_output()
    calls = [_launch(step, x, q, k, v, output, state=state) for state in step.states]
    return Peer(calls, lambda: output[:, 0], lambda: step.states[0], in_slots=False)


def decode_step(step: Step, x: Inputs) -> Peer:
    """The convolution and the norm of vLLM around the rule on slots of the pool."""
    core, output, mixed = x.new_output(), x.new_output(), torch.empty_like(x.mixed)
    norm = vllm.norm(step, x, core, output)
    sizes, keys = step.sizes, step.sizes.key_heads * step.layer.key_dim
    # Views of what the convolution writes; rows are apart, heads side by side.
    q, k, v = mixed.split([keys, keys, mixed.shape[1] - 2 * keys], dim=1)
    q, k = (part.view(sizes.rows, 1, sizes.key_heads, -1) for part in (q, k))
    v = v.view(sizes.rows, 1, sizes.value_heads, -1)

    def call(pools: dict[str, torch.Tensor]):
        convolve = vllm.convolution(step, x, pools, mixed)
        states = {"pool": pools["state_pool"], "slots": pools["slots"]}
        rule = _launch(step, x, q, k, v, core, **states)

        def run():
            convolve()
            rule()
            norm()

        return run

    calls = [call(pools) for pools in step.sets]
    return Peer(calls, lambda: output[:, 0], step.states_in_slots)
