# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A layer of Kimi Delta Attention, its pool and its batches as SGLang has them, without a server:
what its classes read."""

from __future__ import annotations

import functools
from types import SimpleNamespace

import torch

from .sglang_files import Server

HEADS, DIM, TAPS = 32, 128, 4
CHANNELS = 3 * HEADS * DIM
#: Tokens of a sequence that its slot's state has already.
KNOWN = 512


class Pool:
    """Requests' slots, and what a layer keeps in each: slot 0 is padding. Behind those of `count`
    requests are as many for states that the prefix cache keeps."""

    def __init__(self, count: int, drafts: int, device: str, generator: torch.Generator):
        self.size, slots = count, 1 + 2 * count

        def normal(*sizes, dtype=torch.float32, scale=1.0):
            values = torch.randn(*sizes, generator=generator, device=generator.device)
            return values.mul_(scale).to(device, dtype)

        members = {
            "conv": [normal(slots, TAPS - 1, CHANNELS, dtype=torch.bfloat16)],
            "temporal": normal(slots, HEADS, DIM, DIM, scale=0.1),
        }
        if drafts:
            nothing = functools.partial(torch.full, fill_value=torch.nan, device=device)
            window = count + 1, drafts, TAPS - 1, CHANNELS
            members["intermediate_ssm"] = nothing((count + 1, drafts, HEADS, DIM, DIM))
            members["intermediate_conv_window"] = [nothing(window, dtype=torch.bfloat16)]
        self.cache = SimpleNamespace(**members)
        self.mamba_pool = SimpleNamespace(mamba_cache=self.cache, enable_linear_replayssm=False)
        self.slots = torch.arange(1, 1 + count, dtype=torch.int32, device=device)
        self.kept_slots = self.slots.long() + count

    def mamba2_layer_cache(self, _layer: int) -> SimpleNamespace:
        return self.cache

    def get_mamba_indices(self, requests: torch.Tensor) -> torch.Tensor:
        return self.slots[requests]

    def translate_mamba_indices(self, indices: torch.Tensor) -> torch.Tensor:
        return indices

    def poison(self) -> None:
        """Fills all that a call has to write anew with what is no number."""
        self.cache.temporal[self.kept_slots] = torch.nan
        for name in ("intermediate_ssm", "intermediate_conv_window"):
            for array in torch.utils._pytree.tree_leaves(getattr(self.cache, name, [])):
                array.fill_(torch.nan)


def make_backend(server: Server, pool: Pool, device: str, *, ours: bool, fused_verify: bool):
    """SGLang's backend for this layer, with gdn's kernels or its own, in one for all layers."""
    from sglang.srt.layers.attention.hybrid_linear_attn_backend import HybridLinearAttnBackend
    from sglang.srt.layers.attention.linear.kda_backend import KDAAttnBackend
    from sglang.srt.layers.attention.linear.utils import resolve_linear_attn_backends

    server.backend, server.fused_verify = "gdn" if ours else "triton", fused_verify
    _hook()
    runner = SimpleNamespace(
        server_args=SimpleNamespace(enable_mis=False),
        device=device,
        is_draft_worker=False,
        req_to_token_pool=pool,
        token_to_kv_pool=None,
        model_config=SimpleNamespace(hf_text_config=SimpleNamespace()),
        linear_attn_backends=resolve_linear_attn_backends(),
    )
    full = SimpleNamespace(
        token_to_kv_pool=None,
        req_to_token_pool=pool,
        kv_index_translator=None,
        needs_cpu_seq_lens=False,
    )
    return HybridLinearAttnBackend(full, KDAAttnBackend(runner), full_attn_layers=[])


@functools.cache
def _hook() -> None:
    """What gdn's plugin asks SGLang's registry of hooks for."""
    from sglang.srt.layers.attention.linear.kda_backend import KDAKernelDispatcher

    from ..integrations.sglang.dispatcher import make_kda_dispatcher

    original = KDAKernelDispatcher.__init__

    def make(self, *backends):
        make_kda_dispatcher(original, self, *backends)

    KDAKernelDispatcher.__init__ = make


def make_layer(weights: dict[str, torch.Tensor], bound: float | None):
    from sglang.srt.layers.radix_linear_attention import RadixLinearAttention

    sizes = {"num_q_heads": HEADS, "num_k_heads": HEADS, "num_v_heads": HEADS}
    sizes |= {"head_q_dim": DIM, "head_k_dim": DIM, "head_v_dim": DIM}
    return RadixLinearAttention(0, **sizes, **weights, lower_bound=bound)


def prefill_batch(lengths: list[int], kept: int | None, pool: Pool, device: str):
    """Each sequence goes on behind KNOWN tokens; the state after `kept` of those of this batch is
    kept, if this is not None. One token more is what SGLang asks for a state inside."""
    from sglang.srt.model_executor.forward_batch_info import ForwardBatch, ForwardMode

    count = len(lengths)
    integers = functools.partial(torch.tensor, dtype=torch.int32, device=device)
    given = _common(ForwardMode.EXTEND, count, sum(lengths), device) | {
        "extend_seq_lens": integers(lengths),
        "extend_seq_lens_cpu": lengths,
        "extend_start_loc": integers([sum(lengths[:n]) for n in range(count)]),
        "extend_prefix_lens": integers([KNOWN] * count),
        "extend_prefix_lens_cpu": [KNOWN] * count,
        "tbo_parent_token_range": None,
    }
    if kept is not None:
        tracked = [KNOWN + kept + 1] * count
        given |= {
            "mamba_track_indices": pool.kept_slots,
            "mamba_track_mask": torch.ones(count, dtype=torch.bool, device=device),
            "mamba_prefill_track_mask_cpu": [True] * count,
            "mamba_track_seqlens": integers(tracked),
            "mamba_track_seqlens_cpu": tracked,
        }
    batch = SimpleNamespace(**given)
    batch.mamba_track_aligned_lens = lambda: ForwardBatch.mamba_track_aligned_lens(batch)
    return batch


def verify_batch(count: int, drafts: int, device: str):
    """A step of speculation: chains of `drafts` tokens."""
    from sglang.srt.model_executor.forward_batch_info import ForwardMode

    batch = SimpleNamespace(**_common(ForwardMode.TARGET_VERIFY, count, count * drafts, device))
    batch.spec_info = SimpleNamespace(draft_token_num=drafts, ragged_verify_layout=None)
    return batch


def _common(mode, count: int, tokens: int, device: str) -> dict[str, object]:
    names = ("mamba_track_indices", "mamba_track_mask", "mamba_track_seqlens")
    names += ("mamba_prefill_track_mask_cpu", "mamba_track_seqlens_cpu")
    names += ("extend_seq_lens", "extend_start_loc", "extend_seq_lens_cpu")
    names += ("extend_prefix_lens", "extend_prefix_lens_cpu", "spec_info")
    return dict.fromkeys(names) | {
        "forward_mode": mode,
        "logical_forward_mode": mode,
        "batch_size": count,
        "req_pool_indices": torch.arange(count, device=device),
        "input_ids": torch.zeros(tokens, dtype=torch.int64, device=device),
        "global_num_token_non_padded_cpu": tokens,
    }
