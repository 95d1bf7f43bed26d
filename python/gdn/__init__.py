# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""gdn: kernels of gated delta networks, made ahead of time, run from Python."""

from . import images
from .arrays import DeviceArray
from .call import Call
from .compiler import CompileError, compile
from .host_tier import HostTier, StateTags
from .images import ImageIndexError, ImageNotFoundError
from .model_config import ConfigError, ModelConfig
from .nccl_exchange import NcclExchange, nccl_id
from .paths import cmake_dir, include_dir, library, pkgconfig_dir
from .runtime import Binding, Code, Device, GdnError, Image, Kernel, Param, Pool, Runtime, Variant
from .state_cache import StateCache, StateCachePolicy
from .state_pool import StatePool, StatePoolShape

__all__ = [
    "Binding",
    "Call",
    "Code",
    "CompileError",
    "ConfigError",
    "Device",
    "DeviceArray",
    "GdnError",
    "HostTier",
    "Image",
    "ImageIndexError",
    "ImageNotFoundError",
    "Kernel",
    "ModelConfig",
    "NcclExchange",
    "Param",
    "Pool",
    "Runtime",
    "StateCache",
    "StateCachePolicy",
    "StatePool",
    "StatePoolShape",
    "StateTags",
    "Variant",
    "cmake_dir",
    "compile",
    "images",
    "include_dir",
    "library",
    "nccl_id",
    "pkgconfig_dir",
]
