# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How large vLLM makes blocks. It asks the model's class, which knows no layers: once these are
made, and ahead of all memory for blocks. Where a layer of gdn's declares other arrays than vLLM's,
the class has to answer with those."""

from __future__ import annotations

#: The class methods, by the layer's method whose answer they give.
_METHODS = {
    "get_state_shape": "get_mamba_state_shape_from_config",
    "get_state_dtype": "get_mamba_state_dtype_from_config",
}
#: A class that has this says the sizes of all its blocks itself.
_OWN_SIZES = "get_mamba_specs_from_config"


def find_model(vllm_config) -> type:
    """The class that vLLM asks."""
    from vllm.model_executor.models import ModelRegistry

    config = vllm_config.model_config
    found, _ = ModelRegistry.resolve_model_cls(config.architecture, model_config=config)
    return found


def has_own_sizes(model: type) -> bool:
    """Whether a model has blocks of several sizes, and does not ask layers for them."""
    return hasattr(model, _OWN_SIZES)


def state_page_size(model: type) -> None:
    """From now on the class answers with what the first layer of a configuration declares that has
    arrays of gdn's, and else as before. A second call changes nothing."""
    for of_layer, of_model in _METHODS.items():
        original = getattr(model, of_model)
        if not hasattr(original, "gdn_original"):
            setattr(model, of_model, classmethod(_answer(of_layer, original)))


def _answer(of_layer: str, original):
    def answer(_model, vllm_config):
        for layer in vllm_config.compilation_config.static_forward_context.values():
            if getattr(layer, "gdn_kernels", None) is not None:
                return getattr(layer, of_layer)()
        return original(vllm_config)

    answer.gdn_original = original
    return answer
