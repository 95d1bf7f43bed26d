# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests that look at gradients too, without them: gradients are zeros on both sides, so that
outputs and states are what is compared."""

from __future__ import annotations

import torch
import torch._dynamo  # looks at attributes of tensors when it is imported, which operators do


class ForwardOnly:
    """While a test runs. `asked` says whether it asked for a gradient."""

    def __init__(self):
        self.asked = False

    def __enter__(self) -> ForwardOnly:
        self.asked = False
        tensor, autograd = torch.Tensor, torch.autograd
        self._kept = (tensor.backward, tensor.grad, autograd.grad)
        self._mode = torch.no_grad()
        self._mode.__enter__()
        tensor.backward = self._backward
        tensor.grad = property(self._grad, lambda tensor, value: None)
        autograd.grad = self._gradients
        return self

    def __exit__(self, *error) -> None:
        tensor, autograd = torch.Tensor, torch.autograd
        tensor.backward, tensor.grad, autograd.grad = self._kept
        self._mode.__exit__(*error)

    def _backward(self, *arguments, **options) -> None:
        self.asked = True

    def _grad(self, tensor: torch.Tensor) -> torch.Tensor | None:
        return _zeros(tensor) if self.asked else None

    def _gradients(self, outputs, inputs, *arguments, **options):
        self.asked = True
        one = isinstance(inputs, torch.Tensor)
        return tuple(map(_zeros, [inputs] if one else inputs))


def _zeros(tensor: torch.Tensor) -> torch.Tensor:
    return torch.zeros_like(tensor.detach())
