# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""KimiDeltaAttention as a module of PyTorch: parameters by the checkpoints' names, ranks by
torch.distributed. Everything else is that of kimi_delta_attention."""

from collections.abc import Callable, Mapping

try:
    import torch
except ImportError as error:
    raise ImportError(
        "gdn.layers.attention.torch_kimi_delta_attention: expected PyTorch to be installed; the"
        " layer for NumPy is gdn.layers.attention.KimiDeltaAttention"
    ) from error

from ...runtime import Kernel
from . import kimi_delta_attention
from .layer_config import LONG_TYPES
from .torch_delta_layer import DTYPES, TorchDeltaLayer


class KimiDeltaAttention(TorchDeltaLayer):
    """Arguments are those of kimi_delta_attention.KimiDeltaAttention without weights, which
    load_weights() brings, and the device of the parameters. Ranks are those of `group`."""

    def __init__(
        self,
        config: object,
        kernels: Mapping[str, Kernel],
        *,
        group: object = None,
        device: object = None,
        dtype: torch.dtype | None = None,
        projections: Mapping[str, Callable] | None = None,
        **options,
    ):
        super().__init__(group, options)
        if device is None:
            raise ValueError("device: expected that of the weights, such as 'cuda:0', got none")
        self.kernels, self.projections = dict(kernels), dict(projections or {})
        model = self.model = kimi_delta_attention.kda_model_of(config, self.kernels)
        dtype = dtype or DTYPES[LONG_TYPES[model.io or "bf16"]]
        self.options["model_dtype"] = str(dtype).removeprefix("torch.")
        weights = kimi_delta_attention.kda_weights_of(
            model, self.projections, self.tp_size, self.tp_rank
        )
        types = kimi_delta_attention.kda_weight_types(self.kernels, self.options["model_dtype"])
        self.make_parameters(weights, types, device)

    def _make(self) -> kimi_delta_attention.KimiDeltaAttention:
        return _RankLayer(
            self.model,
            self.kernels,
            own=self._own(),
            tp_size=self.tp_size,
            tp_rank=self.tp_rank,
            projections=self.projections,
            all_reduce=self._all_reduce,
            **self.options,
        )


class _RankLayer(kimi_delta_attention.KimiDeltaAttention):
    """A layer over arrays that are there already."""

    def __init__(self, config, kernels, *, own: dict[str, torch.Tensor], **options):
        self._memory = own
        super().__init__(config, kernels, **options)

    def _make_arrays(self) -> dict[str, torch.Tensor]:
        return self._memory
