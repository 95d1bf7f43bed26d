# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What vLLM's layer of Kimi Delta Attention hands over, by the names of the kernels' parameters.
Arrays are NumPy's, or tensors of PyTorch."""


def kda_tokens(qkv, decay, gate, beta, head_dim: int) -> dict[str, object]:
    """Views of `qkv` [T, 3 H d], the inputs of the convolution, part after part, and of raw gates:
    `decay` and `gate` [T, H, d] and `beta` [T, H]. Rows may be parts of wider ones."""
    count, size = beta.shape
    parts = (qkv[:, i * size * head_dim : (i + 1) * size * head_dim] for i in range(3))
    q, k, v = (part.reshape(count, size, head_dim) for part in parts)
    return {"q": q, "k": k, "v": v, "z": gate, "b": beta, "a": decay}
