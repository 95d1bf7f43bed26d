# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What layers of vLLM that gdn runs have in common: kernels that are found once for all layers of a
kind, or the reason why there are none; a step on the engine's own states, in place; and the profile
run, in which kernels take the memory that they work in."""

from __future__ import annotations

import torch
from vllm.forward_context import get_forward_context
from vllm.logger import init_logger
from vllm.model_executor.layers.mamba.mamba_utils import is_conv_state_dim_first
from vllm.platforms import current_platform

from ...devices import device_of
from ...find_or_compile import find_or_compile
from .block_arrays import BlockArrays
from .layer_core import LayerCore, LayerKernels
from .layer_kind import LayerKind
from .warm_up import warm_up_runs

logger = init_logger(__name__)

_kernels: dict[tuple, LayerKernels] = {}


class LayerSteps:
    """Ahead of vLLM's class among the bases of one of gdn's. That has `vllm_config`, `num_spec`,
    the weights `conv1d`, `A_log` and `dt_bias`, and `gdn_norm_constants`: eps, and 1.0 for the gate
    silu or 0.0 for sigmoid."""

    gdn_kernels: LayerKernels | None = None
    gdn_core: LayerCore | None = None
    gdn_pools: tuple | None = None
    #: Where a slot has several arrays beside its window.
    gdn_slots: BlockArrays | None = None
    #: Whether vLLM copies windows of sequences with drafts.
    gdn_joins_windows = False

    def _gdn_weights(self) -> dict[str, torch.Tensor]:
        """Those of kernels that vLLM's classes have by several names or in several shapes."""
        raise NotImplementedError

    def _take_gdn_kernels(self, kind: LayerKind, vllm_config) -> bool:
        """Whether there are kernels. If not, the log says why, once."""
        try:
            reason = kind.find_refusal()
            if reason is None:
                self.gdn_kernels = kernels_of(kind, torch.cuda.current_device())
        except (LookupError, RuntimeError, ValueError, OSError, ImportError) as error:
            reason = f"{type(error).__name__}: {error}"
        if reason is not None:
            logger.warning_once("vLLM's own kernels run, not those of gdn: %s", reason)
            return False
        logger.info_once("Using gdn's kernels for gated delta networks (%s).", str(kind))
        self.gdn_joins_windows = kind.copies_windows
        # Graphs that vLLM compiled for the original are not taken: its cache goes by this.
        vllm_config.additional_config["gdn_layout"] = kind.layout
        return True

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
            "norm_constants": constants,
        }
        # Graphs of steps with drafts are padded to so many.
        most = self.vllm_config.scheduler_config.max_num_seqs * (1 + self.num_spec)
        all_true = torch.ones(most, dtype=torch.bool, device=conv.device)
        no_counts = torch.zeros(most, dtype=torch.int32, device=conv.device)
        weights |= self._gdn_weights()
        return LayerCore(self.gdn_kernels, weights, all_true, self.gdn_joins_windows, no_counts)

    def _pools_of(self, conv: torch.Tensor, state: torch.Tensor) -> dict[str, torch.Tensor]:
        """As kernels have them: [P, D, K - 1], the first positions of windows that may have room
        for drafts, and [P, Hv, dv, dk], or what else slots have; and those windows."""
        windows = conv if is_conv_state_dim_first() else conv.transpose(-1, -2)
        width = self.conv1d.weight.shape[-1] - 1
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


def kernels_of(kind: LayerKind, ordinal: int) -> LayerKernels:
    """Found or compiled, and loaded, once for all layers of a kind."""
    key = (ordinal, tuple(kind.options().items()), tuple(kind.config().items()))
    if key not in _kernels:
        device = device_of(("cuda", ordinal))
        forms = {"options": kind.compile_options, **kind.options()}
        path = find_or_compile(kind.config(), device, engine="vllm", **forms)
        _kernels[key] = LayerKernels(device, device._runtime.image(path), kind.entries)
    return _kernels[key]


def platform_name() -> str:
    """LayerKind.platform"""
    return "cuda" if current_platform.is_cuda() else current_platform.device_name


def name_of(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
