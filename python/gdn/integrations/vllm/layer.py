# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""vLLM's layer of Qwen3-Next and Qwen3.5 with gdn's kernels between its projections: convolution,
gates, rule and norm in one launch for each kind of sequence, on the engine's own states, in place.
A layer that gdn has no kernel for runs vLLM's own; the reason is logged once.
"""

from __future__ import annotations

import torch
from vllm.forward_context import get_forward_context
from vllm.logger import init_logger
from vllm.model_executor.layers.mamba.gdn.qwen_gdn_linear_attn import QwenGatedDeltaNetAttention
from vllm.model_executor.layers.mamba.mamba_utils import is_conv_state_dim_first
from vllm.platforms import current_platform

from ...devices import device_of
from ...find_or_compile import find_or_compile
from ..pool_options import PoolOptions
from .block_arrays import BlockArrays
from .layer_core import LayerCore, LayerKernels
from .layer_kind import LayerKind
from .page_size import find_model, has_own_sizes, state_page_size
from .warm_up import warm_up_runs

logger = init_logger(__name__)

_kernels: dict[tuple, LayerKernels] = {}


class GdnQwenGatedDeltaNetAttention(QwenGatedDeltaNetAttention):
    """In place of the original, which it is in all but the core of a step, and in what a slot has
    where users ask for states in planes or for deferred writes."""

    gdn_kernels: LayerKernels | None = None
    gdn_core: LayerCore | None = None
    gdn_pools: tuple | None = None
    #: Where a slot has several arrays beside its window.
    gdn_slots: BlockArrays | None = None
    #: The type of states that users ask for.
    gdn_state: torch.dtype | None = None

    def __init__(self, config, vllm_config, prefix: str = "", **options):
        super().__init__(config, vllm_config, prefix, **options)
        # Values that no pool has end the start.
        kind = kind_of(self, vllm_config)
        try:
            reason = kind.find_refusal()
            if reason is None:
                self.gdn_kernels = kernels_of(kind, torch.cuda.current_device())
        except (LookupError, RuntimeError, ValueError, OSError, ImportError) as error:
            reason = f"{type(error).__name__}: {error}"
        if reason is not None:
            logger.warning_once("vLLM's own kernels run, not those of gdn: %s", reason)
            return
        self._declare_slots(kind, vllm_config)
        logger.info_once("Using gdn's kernels for gated delta networks (%s).", str(kind))
        self.gdn_norm_constants = (kind.norm_eps, float(kind.gate == "silu"))
        self.gdn_joins_windows = kind.copies_windows
        # Graphs that vLLM compiled for the original are not taken: its cache goes by this.
        vllm_config.additional_config["gdn_layout"] = kind.layout
        # The kernels' type: a weight of another is converted when it is loaded.
        self.dt_bias.data = self.dt_bias.data.float()
        # The operator that is handed the projections as they are, and gives the norm's result.
        self.enable_fused_gdn_spec_decode = kind.has_norm
        # The scheduler ends prompts at blocks: prefill keeps no states inside of a sequence.
        self._checkpoint_alignment = None

    def get_state_shape(self) -> tuple[tuple[int, ...], ...]:
        """Of a slot: its window and its state; or its window and all else (block_arrays.py)."""
        window, *state = super().get_state_shape()
        return (window, *state) if self.gdn_slots is None else (window, (self.gdn_slots.words,))

    def get_state_dtype(self) -> tuple[torch.dtype, ...]:
        window, state = super().get_state_dtype()
        if self.gdn_slots is not None:
            return window, torch.float32
        return window, self.gdn_state or state

    def _declare_slots(self, kind: LayerKind, vllm_config) -> None:
        """What vLLM makes room for in a block. It copies the first two arrays of a block, and no
        more; so there are two."""
        if kind.has_slot_arrays:
            ranks = self.tp_size
            self.gdn_slots = kind.slot_arrays(self.num_k_heads // ranks, self.num_v_heads // ranks)
        else:
            self.gdn_state = getattr(torch, kind.state)
        if self.get_state_dtype() != super().get_state_dtype() or kind.has_slot_arrays:
            state_page_size(find_model(vllm_config))

    def _forward_core_fused_norm_packed(self, mixed_qkvz, ba, core_attn_out) -> None:
        if self.gdn_kernels is None:
            super()._forward_core_fused_norm_packed(mixed_qkvz, ba, core_attn_out)
        else:
            self._run_gdn({"qkvz": mixed_qkvz, "ba": ba}, core_attn_out)

    def _forward_core(self, mixed_qkv, b, a, core_attn_out) -> None:
        if self.gdn_kernels is None:
            super()._forward_core(mixed_qkv, b, a, core_attn_out)
        else:
            self._run_gdn({"qkv": mixed_qkv, "b": b, "a": a}, core_attn_out)

    def _run_gdn(self, tokens: dict[str, torch.Tensor], out: torch.Tensor) -> None:
        steps = get_forward_context().attn_metadata
        metadata = steps.get(self.prefix) if isinstance(steps, dict) else None
        # In the profile run, which is ahead of the capture of graphs.
        if self.gdn_core is None:
            self.gdn_core = self._new_core()
        if metadata is None:
            self._warm_up_gdn(tokens, out)
            return
        if self.gdn_pools is None or self.gdn_pools[0] is not self.kv_cache:
            self.gdn_pools = self.kv_cache, self._pools_of(*self.kv_cache)
        self.gdn_core.run(metadata.gdn_runs, tokens, self.gdn_pools[1], out)

    def _new_core(self) -> LayerCore:
        """With the weights where they are; graphs hold their addresses, too."""
        conv = self.conv1d.weight.detach()
        constants = torch.tensor(self.gdn_norm_constants, device=conv.device)
        weights = {
            "conv_weight": conv.view(conv.shape[0], conv.shape[-1]),
            "A_log": self.A_log.detach(),
            "dt_bias": self.dt_bias.detach(),
            "norm_weight": self.norm.weight.detach(),
            "norm_constants": constants,
        }
        # Graphs of steps with drafts are padded to so many.
        most = self.vllm_config.scheduler_config.max_num_seqs * (1 + self.num_spec)
        all_true = torch.ones(most, dtype=torch.bool, device=conv.device)
        no_counts = torch.zeros(most, dtype=torch.int32, device=conv.device)
        joins = self.gdn_joins_windows
        return LayerCore(self.gdn_kernels, weights, all_true, joins, no_counts)

    def _pools_of(self, conv: torch.Tensor, state: torch.Tensor) -> dict[str, torch.Tensor]:
        """As kernels have them: [P, D, K - 1], the first positions of windows that may have room
        for drafts, and [P, Hv, dv, dk], or what else slots have; and those windows."""
        windows = conv if is_conv_state_dim_first() else conv.transpose(-1, -2)
        width = self.conv_kernel_size - 1
        pools = {"conv_pool": windows[..., :width], "windows": windows}
        if self.gdn_slots is None:
            return pools | {"state_pool": state}
        return pools | self.gdn_slots.split(state, lambda name: getattr(torch, name))

    def _warm_up_gdn(self, tokens: dict[str, torch.Tensor], out: torch.Tensor) -> None:
        """A profile run: takes the memory that kernels work in, ahead of graphs and while vLLM
        measures what is used, by sequences whose slots are padding."""
        if self.gdn_kernels.is_warm:
            return
        self.gdn_kernels.is_warm = True
        shapes, types = self.get_state_shape(), self.get_state_dtype()
        pools = (
            torch.zeros(1, *shape, dtype=dtype, device=out.device)
            for shape, dtype in zip(shapes, types, strict=True)
        )
        pools = self._pools_of(*pools)
        columns = 1 + self.num_spec
        most = self.vllm_config.scheduler_config.max_num_seqs * columns
        # Slots of several arrays have no drafts.
        columns = columns if self.gdn_slots is None else 0

        def array(values: list) -> torch.Tensor:
            dtype = torch.bool if values[0] is False else torch.int32
            return torch.tensor(values, dtype=dtype, device=out.device)

        for runs in warm_up_runs(out.shape[0], most, columns, array):
            self.gdn_core.run(runs, tokens, pools, out)


def kind_of(layer: QwenGatedDeltaNetAttention, vllm_config) -> LayerKind:
    """What a layer that vLLM has made asks of kernels."""
    conv_state, state = map(_name, layer.get_state_dtype())
    asked = PoolOptions.read(vllm_config.additional_config, "additional_config")
    io = _name(vllm_config.model_config.dtype)
    norm_weight = _name(layer.norm.weight.dtype)
    # forward_cuda hands over whole projections in bf16 alone, and those of all ranks where the
    # projection of b and a is not split.
    packed = io == norm_weight == "bfloat16"
    packed = packed and not (layer.disable_tp_for_ba_proj and layer.tp_size > 1)
    cache = vllm_config.cache_config
    return LayerKind(
        platform="cuda" if current_platform.is_cuda() else current_platform.device_name,
        key_dim=layer.head_k_dim,
        value_dim=layer.head_v_dim,
        conv_width=layer.conv_kernel_size,
        activation=layer.activation,
        gate="sigmoid" if layer.norm.activation == "sigmoid" else "silu",
        norm_eps=layer.layer_norm_epsilon,
        layout=layer.qkvz_layout if packed else "split",
        io=io,
        conv_state=conv_state,
        state=asked.state or state,
        norm_weight=norm_weight,
        num_speculative_tokens=layer.num_spec,
        cache_mode=cache.mamba_cache_mode,
        replays=cache.use_replayssm,
        rounds_at_random=vllm_config.mamba_config.enable_stochastic_rounding,
        deferred_writes=asked.deferred_writes,
        transfers=vllm_config.kv_transfer_config is not None,
        has_own_sizes=asked != PoolOptions() and has_own_sizes(find_model(vllm_config)),
    )


def kernels_of(kind: LayerKind, ordinal: int) -> LayerKernels:
    """Found or compiled, and loaded, once for all layers of a kind."""
    key = (ordinal, tuple(kind.options().items()), tuple(kind.config().items()))
    if key not in _kernels:
        device = device_of(("cuda", ordinal))
        path = find_or_compile(kind.config(), device, engine="vllm", **kind.options())
        _kernels[key] = LayerKernels(device, device._runtime.image(path), kind.entries)
    return _kernels[key]


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
