# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers, states and metadata of vLLM without an engine: what its classes read."""

from dataclasses import dataclass
from types import SimpleNamespace

import torch

PREFIX = "model.layers.0.linear_attn"


def make_config(drafts: int = 0, graphs: bool = False, mode: str = "none", most: int = 256):
    """What builders of metadata read of a configuration."""
    speculation = SimpleNamespace(
        num_speculative_tokens=drafts,
        parallel_drafting=False,
        use_eagle_block_drop=lambda: False,
    )
    return SimpleNamespace(
        additional_config={},
        kv_transfer_config=None,
        cache_config=SimpleNamespace(
            mamba_cache_mode=mode,
            hash_block_size=64,
            cache_hit_alignment_tokens=64,
            use_replayssm=False,
        ),
        compilation_config=SimpleNamespace(
            cudagraph_mode=SimpleNamespace(has_full_cudagraphs=lambda: graphs),
            max_cudagraph_capture_size=most,
        ),
        mamba_config=SimpleNamespace(enable_stochastic_rounding=False),
        model_config=SimpleNamespace(
            dtype=torch.bfloat16,
            hf_text_config=SimpleNamespace(linear_key_head_dim=128, linear_value_head_dim=128),
        ),
        num_hash_lookahead_tokens=0,
        num_speculative_tokens=drafts,
        parallel_config=SimpleNamespace(decode_context_parallel_size=1),
        scheduler_config=SimpleNamespace(max_num_seqs=256, max_num_batched_tokens=8192),
        speculative_config=speculation if drafts else None,
        use_v2_model_runner=False,
    )


@dataclass(frozen=True)
class Sizes:
    """One rank's part of a layer."""

    key_heads: int = 16
    value_heads: int = 32
    key_dim: int = 128
    value_dim: int = 128
    drafts: int = 0

    @property
    def channels(self) -> int:
        return 2 * self.key_heads * self.key_dim + self.value_heads * self.value_dim

    @property
    def packed(self) -> int:
        """Of the projection of q, k, v and z."""
        return self.channels + self.value_heads * self.value_dim

    def shapes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Of a slot: the window of the convolution, and the state."""
        window = (3 + self.drafts, self.channels)
        return window, (self.value_heads, self.value_dim, self.key_dim)


def make_weights(sizes: Sizes, device, dtype=torch.bfloat16) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)

    def normal(*shape):
        return torch.randn(*shape, generator=generator)

    made = {
        "conv": (0.5 * normal(sizes.channels, 1, 4)).to(dtype),
        "A_log": torch.rand(sizes.value_heads, generator=generator).mul(15).add(1).log(),
        "dt_bias": normal(sizes.value_heads) - 3,
        "norm": (1 + 0.2 * normal(sizes.value_dim)).to(dtype),
    }
    return {name: x.to(device) for name, x in made.items()}


def make_pools(sizes: Sizes, slots: int, device, dtype, state_dtype, arrays=None):
    """Windows and states in pages of one block each, as vLLM has them. Slot 0 is padding. With
    `arrays`, BlockArrays, slots have these beside the window."""
    shapes = sizes.shapes()
    generator = torch.Generator(device).manual_seed(2)

    def normal(shape, kind, scale):
        values = torch.randn(slots, *shape, generator=generator, device=device)
        return values.mul_(scale).to(kind)

    values = [normal(shapes[0], dtype, 1.0)]
    if arrays is None:
        values.append(normal(shapes[1], state_dtype, 0.1))
    else:
        words = torch.zeros(slots, arrays.words, device=device)
        parts = arrays.split(words, lambda name: getattr(torch, name))
        for name, part in parts.items():
            most = parts["pending_decays"].shape[2] if name == "pending_counts" else 0
            part.copy_(_values_of(name, part, generator, most))
        values.append(words)
    bytes_of = [x[0].numel() * x.element_size() for x in values]
    pages = torch.empty(slots, sum(bytes_of), dtype=torch.uint8, device=device)
    views, offset = [], 0
    for value, size in zip(values, bytes_of, strict=True):
        view = pages[:, offset : offset + size].view(value.dtype).view(value.shape)
        views.append(view.copy_(value))
        offset += size
    return tuple(views)


def _values_of(name: str, like: torch.Tensor, generator, most: int) -> torch.Tensor:
    """Of one array of slots, for states like those of make_pools with up to `most` tokens pending.
    All heads of a slot have as many."""
    shape, options = like.shape, {"generator": generator, "device": like.device}
    if like.dtype == torch.uint8:
        return torch.randint(1, 256, shape, **options)
    if name == "state_scales":
        return torch.full(shape, 0.3 / 127, device=like.device)
    if name == "pending_counts":
        return torch.randint(0, 1 + most, (shape[0], 1), **options).expand(shape)
    if name == "pending_scales":
        return torch.full(shape, 0.25, device=like.device)
    if name == "pending_decays":
        return -0.1 * torch.rand(shape, **options)
    return torch.randn(shape, **options).mul_(0.1)


def make_layer(cls, sizes: Sizes, weights, pools, kernels=None, arrays=None):
    """A layer of vLLM's class or gdn's, without projections; `kernels` are gdn's, and `arrays` what
    their slots have beside the window."""
    layer = object.__new__(cls)
    values = {
        "prefix": PREFIX,
        "tp_size": 1,
        "num_k_heads": sizes.key_heads,
        "num_v_heads": sizes.value_heads,
        "head_k_dim": sizes.key_dim,
        "head_v_dim": sizes.value_dim,
        "key_dim": sizes.key_heads * sizes.key_dim,
        "value_dim": sizes.value_heads * sizes.value_dim,
        "conv_kernel_size": 4,
        "activation": "silu",
        "layer_norm_epsilon": 1e-6,
        "A_log": weights["A_log"],
        "dt_bias": weights["dt_bias"],
        "conv1d": SimpleNamespace(weight=weights["conv"], bias=None),
        "norm": SimpleNamespace(
            weight=weights["norm"],
            bias=None,
            eps=1e-6,
            group_size=None,
            norm_before_gate=True,
            activation="silu",
        ),
        "kv_cache": pools,
        "num_spec": sizes.drafts,
        "vllm_config": make_config(sizes.drafts),
        "enable_packed_recurrent_decode": True,
        "gdn_kernels": kernels,
        "gdn_slots": arrays,
        "gdn_norm_constants": (1e-6, 1.0),
        "gdn_joins_windows": False,
    }
    for name, value in values.items():
        object.__setattr__(layer, name, value)
    return layer


def make_kda_weights(sizes: Sizes, device, dtype=torch.bfloat16) -> dict[str, torch.Tensor]:
    """Of a layer of Kimi Delta Attention, whose convolution has weights of f32 in vLLM; `dtype` is
    that of the norm's."""
    generator = torch.Generator().manual_seed(1)

    def normal(*shape):
        return torch.randn(*shape, generator=generator)

    made = {
        "conv": 0.5 * normal(sizes.channels, 1, 4),
        "A_log": torch.rand(sizes.value_heads, generator=generator).mul(15).add(1).log(),
        "dt_bias": normal(sizes.value_heads * sizes.key_dim) - 3,
        "norm": (1 + 0.2 * normal(sizes.value_dim)).to(dtype),
    }
    return {name: x.to(device) for name, x in made.items()}


class KdaNorm:
    """vLLM's FusedRMSNormGated without its base: its kernel, and what gdn's layer reads."""

    def __init__(self, weight: torch.Tensor, eps: float, activation: str = "sigmoid"):
        self.weight, self.eps, self.activation = weight, eps, activation

    def __call__(self, x: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
        from vllm.third_party.flash_linear_attention.ops.kda import rms_norm_gated

        return rms_norm_gated(x, gate, self.weight, None, self.activation, eps=self.eps)


def make_kda_layer(
    cls, sizes: Sizes, weights, pools, kernels=None, bound: float | None = None, eps: float = 1e-5
):
    """The same of Kimi Delta Attention; decays are bounded by `bound`, if there is one."""
    layer = object.__new__(cls)
    channels = sizes.key_heads * sizes.key_dim
    values = {
        "prefix": PREFIX,
        "tp_size": 1,
        "head_dim": sizes.key_dim,
        "num_heads": sizes.key_heads,
        "local_num_heads": sizes.key_heads,
        "projection_size": channels,
        "local_projection_size": channels,
        "conv_size": 4,
        "gate_lower_bound": bound,
        "A_log": weights["A_log"],
        "dt_bias": weights["dt_bias"],
        "conv1d": SimpleNamespace(weight=weights["conv"], bias=None),
        "o_norm": KdaNorm(weights["norm"], eps),
        "kv_cache": pools,
        "num_spec": sizes.drafts,
        "vllm_config": make_config(sizes.drafts),
        "gdn_kernels": kernels,
        "gdn_joins_windows": False,
    }
    for name, value in values.items():
        object.__setattr__(layer, name, value)
    return layer


def make_metadata(rows, sizes: Sizes, device, *, graphs: bool, table=None):
    """From gdn's builder: `rows` are (tokens before, tokens, drafts; -1 for none) of sequences, in
    vLLM's order. The slots of sequence i are 1 + i (1 + drafts) and those behind, or what `table`
    says."""
    from vllm.v1.attention.backend import CommonAttentionMetadata
    from vllm.v1.kv_cache_interface import MambaSpec

    from ..integrations.vllm.backend import GdnMetadataBuilder

    config = make_config(sizes.drafts, graphs, most=4096)
    config.scheduler_config.max_num_seqs = len(rows)
    spec = MambaSpec(
        block_size=1 << 20, shapes=sizes.shapes(), dtypes=(torch.bfloat16, torch.float32)
    )
    builder = GdnMetadataBuilder(spec, ["layer"], config, torch.device(device))
    before, queries, drafts = (torch.tensor(x, dtype=torch.int32) for x in zip(*rows, strict=True))
    starts = torch.zeros(len(rows) + 1, dtype=torch.int32)
    starts[1:] = queries.cumsum(0)
    columns = 1 + sizes.drafts
    if table is None:
        table = torch.arange(1, 1 + len(rows) * columns).view(-1, columns)
    table = torch.as_tensor(table, dtype=torch.int32)
    lengths = before + queries
    common = CommonAttentionMetadata(
        query_start_loc=starts.to(device),
        query_start_loc_cpu=starts,
        seq_lens=lengths.to(device),
        seq_lens_cpu_upper_bound=lengths,
        num_reqs=len(rows),
        num_actual_tokens=int(starts[-1]),
        max_query_len=int(queries.max()),
        max_seq_len=int(lengths.max()),
        block_table_tensor=table.to(device),
        slot_mapping=torch.zeros(int(starts[-1]), dtype=torch.int64, device=device),
        is_prefilling=(before == 0) | (queries > columns),
    )
    given = {}
    if sizes.drafts:
        accepted = torch.ones(len(rows), dtype=torch.int32, device=device)
        given = {"num_accepted_tokens": accepted, "num_decode_draft_tokens_cpu": drafts}
    # The builder's arrays are the metadata's.
    return builder, builder.build(0, common, **given)
