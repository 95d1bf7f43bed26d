# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What operators do with tensors without memory: fake ones of a tracer are given the shapes of
results, and those on PyTorch's device meta are refused, of which no state would be written."""

from collections.abc import Callable

from torch import Tensor

from ..call_options import refuse_meta


def register_fake(operator, results: Callable[..., object] | None = None) -> None:
    """`results` of the operator's arguments makes its results; without it there are none."""
    names = [argument.name for argument in operator._opoverload._schema.arguments]

    def fake(*arguments):
        for name, value in zip(names, arguments, strict=False):
            if isinstance(value, Tensor):
                refuse_meta(f"{operator._name}: {name}", value)
            elif isinstance(value, list | tuple):
                for tensor in value:
                    refuse_meta(f"{operator._name}: {name}", tensor)
        return None if results is None else results(*arguments)

    operator.register_fake(fake)
