# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A step of vLLM's layer of Qwen3.5 for gdn.bench.vllm_layer: what its projections gave, calls of
vLLM's class and of gdn's, and errors to float64."""

from functools import partial
from typing import NamedTuple

import numpy as np
import torch

from .. import image_facts, reference
from ..checks import relative_error
from ..integrations.slot_arrays import SlotSizes
from ..integrations.vllm.block_arrays import BlockArrays
from ..kernel_calls import SHORT_TYPES
from .timing import number_of_sets
from .vllm_setup import Sizes, make_layer, make_metadata, make_pools, make_weights

DRAFTS = 3
_MOST_BYTES = 30 << 30
LONG_TYPES = {short: name for name, short in SHORT_TYPES.items()}
LIMITS = {"out": 1.5e-2, "state": 1.5e-2}
#: Of states in one plane, or of which decode reads one.
COARSE = {"out": 6e-2, "state": 3e-2}


class Form(NamedTuple):
    """What an image is for: the type of states, and tokens that stay pending."""

    state: str
    deferred_writes: int = 0
    pending: str = "f32"
    per_channel: bool = False
    decay_bound: float | None = None

    @classmethod
    def of(cls, image) -> "Form":
        facts = image_facts.facts_of(image)["facts"]
        return cls(
            facts["state"],
            facts["deferred_writes"],
            facts["pending"] or "f32",
            facts["decay"] == "channel",
            facts["decay_bound"],
        )

    @property
    def limits(self) -> dict[str, float]:
        return COARSE if self.state in ("i8", "i8x2_upper") else LIMITS

    def arrays(self, sizes: Sizes) -> BlockArrays | None:
        """Of slots, unless these have a window and a state of numbers."""
        if self.state in image_facts.TYPES and not self.deferred_writes:
            return None
        heads = SlotSizes(sizes.key_heads, sizes.value_heads, sizes.value_dim, sizes.key_dim)
        state = LONG_TYPES.get(self.state, self.state)
        return BlockArrays(heads, state, self.deferred_writes, LONG_TYPES[self.pending])


class Case:
    """A step: what the projections gave, and sets of layers with states of their own, whose states
    are then not in a cache."""

    def __init__(self, rows, form: Form, device):
        has_drafts = any(drafts >= 0 for _, _, drafts in rows)
        self.sizes = self.sizes_of(DRAFTS if has_drafts else 0)
        self.rows, self.device, self.form = rows, device, form
        self.arrays = form.arrays(self.sizes)
        name = LONG_TYPES.get(form.state, "float32")
        self.state_dtype = getattr(torch, name)
        self.decodes = all(tokens <= 1 + DRAFTS for _, tokens, _ in rows)
        self.slots = 1 + len(rows) * (1 + self.sizes.drafts)
        self.tokens = sum(tokens for _, tokens, _ in rows)
        window, state = self.sizes.shapes()
        rest = int(np.prod(state)) * self.state_dtype.itemsize
        rest = rest if self.arrays is None else 4 * self.arrays.words
        size = 2 * int(np.prod(window)) + rest
        # With deferred writes most steps write no state.
        self.moved = len(rows) * (2 * size - (rest if form.deferred_writes else 0))
        sets = min(number_of_sets(len(rows) * size), _MOST_BYTES // (2 * self.slots * size))
        self.sets = max(1, sets)
        generator = torch.Generator().manual_seed(3)

        def normal(width):
            return torch.randn(self.tokens, width, generator=generator).bfloat16().to(device)

        self.draw(normal)
        self.builder, self.metadata = make_metadata(rows, self.sizes, device, graphs=self.decodes)

    def sizes_of(self, drafts: int) -> Sizes:
        return Sizes(drafts=drafts)

    def draw(self, normal) -> None:
        """Weights, and what the projections gave; `normal` makes rows of a width."""
        self.weights = make_weights(self.sizes, self.device)
        self.qkvz, self.ba = normal(self.sizes.packed), normal(2 * self.sizes.value_heads)

    @property
    def projected(self) -> torch.Tensor:
        """The inputs of the convolution with what is beside them in a row."""
        return self.qkvz

    def errors(self, before, pools, out) -> dict[str, float]:
        return errors(self, before, pools, out)

    def makers(self, kernels):
        """Calls of a step, by whose they are, from pools and an output."""
        made = {"gdn": partial(gdn_call, self, kernels)}
        if self.arrays is None:
            made["vllm"] = partial(vllm_call, self)
        if self.sizes.drafts and self.decodes:
            made["vllm fused"] = partial(vllm_fused_call, self)
        return made

    def pools(self):
        types = torch.bfloat16, self.state_dtype
        return make_pools(self.sizes, self.slots, self.device, *types, self.arrays)

    def out(self) -> torch.Tensor:
        shape = self.tokens, self.sizes.value_heads, self.sizes.value_dim
        return torch.zeros(shape, dtype=torch.bfloat16, device=self.device)


def gdn_call(case: Case, kernels, pools, out):
    """A step of gdn's layer."""
    from ..integrations.vllm.layer import GdnQwenGatedDeltaNetAttention

    given = case.sizes, case.weights, pools, kernels, case.arrays
    layer = make_layer(GdnQwenGatedDeltaNetAttention, *given)
    return partial(layer._forward_core_fused_norm_packed, case.qkvz, case.ba, out)


def vllm_call(case: Case, pools, out):
    """A step of vLLM's layer, with what its forward does between projections and core: views of q,
    k, v and z, copies of b and a; and the norm behind."""
    from vllm.model_executor.layers.mamba.gdn import qwen_gdn_linear_attn as module

    layer = make_layer(module.QwenGatedDeltaNetAttention, case.sizes, case.weights, pools)
    object.__setattr__(layer, "chunk_gated_delta_rule", partial(_chunk, module))
    heads = case.sizes.value_heads

    def run():
        mixed, z = case.qkvz.split([case.sizes.channels, out[0].numel()], dim=-1)
        b, a = case.ba.split(heads, dim=-1)
        layer._forward_core(mixed, b.contiguous(), a.contiguous(), out)
        layer._rms_norm_gated_cuda(out, z.reshape(out.shape), out)

    return run


def _chunk(module, *, core_attn_out=None, aiter_prefill_metadata=None, **options):
    return module.fla_chunk_gated_delta_rule(**options)


def vllm_fused_call(case: Case, pools, out):
    """The same for drafts alone, with the step behind the convolution in one kernel, its Triton
    form: the CUDA form needs vLLM's library."""
    from vllm.model_executor.layers.mamba.gdn import qwen_gdn_linear_attn as module

    module.fused_mtp_decode_impl = lambda: module.fused_gdn_decode_post_conv_mtp_triton
    layer = make_layer(module.QwenGatedDeltaNetAttention, case.sizes, case.weights, pools)

    def run():
        mixed, z = case.qkvz.split([case.sizes.channels, out[0].numel()], dim=-1)
        b, a = case.ba.split(case.sizes.value_heads, dim=-1)
        gate = z.reshape(out.shape)
        layer._forward_core_decode_spec_fused_norm(mixed, b, a, gate, out, case.metadata)

    return run


def expected_of(case, before, first: int, tokens: slice, known: int) -> dict[str, np.ndarray]:
    """In float64, of the tokens of a sequence whose first one reads slot `first` of pools as they
    were; the state is that of slot 1."""
    host = {name: float64_of(x) for name, x in case.weights.items()}
    weights = {
        "conv_weight": host["conv"][:, 0],
        "A_log": host["A_log"],
        "dt_bias": host["dt_bias"],
        "norm_weight": host["norm"],
    }
    given = {
        "qkvz": float64_of(case.qkvz[tokens]),
        "ba": float64_of(case.ba[tokens]),
        "conv_pool": float64_of(before[0][[0, first], :3].transpose(1, 2)),
        **states(case, before, [0, first]),
        "slots": np.array([1]),
        "cu_seqlens": np.array([0, tokens.stop - tokens.start]),
        "has_initial": np.array([known > 0]),
    }
    layer = reference.Layer("flat", case.sizes.key_dim, case.sizes.value_dim)
    return reference.evaluate(layer, given | weights)


def errors(
    case, before, pools, out, slots=None, expected=expected_of, heads=slice(None)
) -> dict[str, float]:
    """Of some sequences: outputs, and the state after the last token. `slots` are those of their
    first tokens, by default make_metadata's; `expected` gives numbers of `heads`."""
    starts = np.cumsum([0, *(tokens for _, tokens, _ in case.rows)])
    chosen = sorted({0, len(case.rows) // 2, len(case.rows) - 1})
    got, want = {"out": [], "state": []}, {"out": [], "state": []}
    for row in chosen:
        known, count, drafts = case.rows[row]
        first = 1 + row * (1 + case.sizes.drafts) if slots is None else slots[row]
        last = first + (count - 1 if drafts >= 0 else 0)
        tokens = slice(starts[row], starts[row + 1])
        result = expected(case, before, first, tokens, known)
        want["out"].append(result["out"])
        want["state"].append(result["state_pool"][1])
        got["out"].append(float64_of(out[tokens])[:, heads])
        got["state"].append(reference.whole_states(states(case, pools, [last]))[0][heads])
    return {
        name: relative_error(np.concatenate(got[name]), np.concatenate(want[name])) for name in got
    }


def states(case: Case, pools, slots: list[int]) -> dict[str, np.ndarray]:
    """What chosen slots have beside their windows, as kernels name it."""
    found = {"state_pool": pools[1][slots]}
    if case.arrays is not None:
        found = case.arrays.split(pools[1][slots], lambda name: getattr(torch, name))
    numbers = {name: x.cpu() for name, x in found.items()}
    return {
        name: float64_of(x) if x.is_floating_point() else x.numpy() for name, x in numbers.items()
    }


def float64_of(x: torch.Tensor) -> np.ndarray:
    return x.detach().double().cpu().numpy()
