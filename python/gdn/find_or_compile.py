# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An image for callers of PyTorch's libraries: a prebuilt one, or one that is compiled, once, into
the user's cache, where gdn-compile is installed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from . import compiler, images, targets
from .runtime import Device


def find_or_compile(
    config: Mapping[str, object],
    device: Device,
    *,
    engine: str,
    io: str,
    state: str,
    layout: str,
    outputs: str,
    l2norm: bool = False,
    verify: str | None = None,
    deferred_writes: int = 0,
    pending: str | None = None,
    state_layout: str = "vk",
    conv_weight: str | None = None,
    segment_maps: bool = False,
    compiled_for: str | None = None,
    options: Iterable[str] = (),
) -> Path:
    """The path of an image; arguments are those of gdn.images.find, whose errors are raised where
    there is neither an image nor a compiler. One that is compiled is for `compiled_for`, by default
    `engine`, with further `options` of gdn-compile. No prebuilt image has states of another
    `state_layout` than "vk", weights of the convolution of a type of their own, `conv_weight`, or
    the variant `segment-maps`.
    CompileError where the compiler refuses."""
    types = {"io": io, "state": state, "verify": verify}

    def compile_it() -> Path:
        forms = [f"--layout={layout}", f"--outputs={outputs}", *["--l2norm"] * l2norm]
        forms += [f"--state-layout={state_layout}"] * (state_layout != "vk")
        forms += [f"--conv-weight={conv_weight}"] * (conv_weight is not None)
        forms += ["--segment-maps"] * segment_maps
        forms += [f"--defer-writes={deferred_writes}"] * (deferred_writes != 0)
        forms += [f"--pending={pending}"] * (pending is not None)
        return compiler.compile(
            config,
            targets.run_by(device)[0],
            engine=compiled_for or engine,
            options=[*forms, *options],
            **types,
        )

    if state_layout != "vk" or conv_weight is not None or segment_maps:
        return compile_it()
    try:
        return images.find(
            config,
            device,
            engine=engine,
            layout=layout,
            outputs=outputs,
            l2norm=l2norm,
            deferred_writes=deferred_writes,
            pending=pending,
            **types,
        )
    except images.ImageNotFoundError:
        try:
            compiler.find_tool()
        except compiler.CompileError:
            pass
        else:
            return compile_it()
        raise
