# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""gdn as a plugin of vLLM 0.33. It is an entry point of the group vllm.general_plugins, so that
installing gdn is all that there is to do. VLLM_PLUGINS, which vLLM reads, names the plugins that it
loads: a list without "gdn" turns it off.

    VLLM_PLUGINS= vllm serve Qwen/Qwen3.5-4B
"""

from __future__ import annotations

import logging

logger = logging.getLogger(__name__)

#: Versions of vLLM whose layer and metadata the plugin knows.
VERSIONS = ("0.33.",)
LAYER = "QwenGatedDeltaNetAttention"
KDA_LAYER = "KimiGatedDeltaNetAttention"


def register() -> None:
    """Registers gdn's layers in place of vLLM's, and the backend whose metadata they read. A second
    call changes nothing. Another version of vLLM, and one of whose layers another plugin has
    replaced one, is left as it is, with a warning."""
    import vllm

    if not vllm.__version__.startswith(VERSIONS):
        logger.warning(
            "gdn is not used: expected vLLM %s*, found %s", "*, ".join(VERSIONS), vllm.__version__
        )
        return
    from vllm.model_executor.custom_op import PluggableLayer, op_registry_oot
    from vllm.v1.attention.backends.registry import MambaAttentionBackendEnum, register_backend

    from .kda_layer import GdnKimiGatedDeltaNetAttention
    from .layer import GdnQwenGatedDeltaNetAttention

    layers = {LAYER: GdnQwenGatedDeltaNetAttention, KDA_LAYER: GdnKimiGatedDeltaNetAttention}
    for name, layer in layers.items():
        found = op_registry_oot.get(name)
        if found is layer:
            return
        if found is not None:
            logger.warning("gdn is not used: %s is replaced by %s", name, found)
            return
    for name, layer in layers.items():
        PluggableLayer.register_oot(name=name)(layer)
    backend = f"{__name__}.backend.GdnAttentionBackend"
    register_backend(MambaAttentionBackendEnum.GDN_ATTN, backend, is_mamba=True)
