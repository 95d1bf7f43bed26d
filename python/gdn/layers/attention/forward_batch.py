# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A step as pymllm's scheduler describes it: its mode, and a slot for each request."""

from dataclasses import dataclass
from enum import Enum


class ForwardMode(Enum):
    """What a batch does; the values are those of gdnrt_forward_mode. DECODE is a token of each
    request, EXTEND are tokens of prompts, MIXED both, which goes as EXTEND, and IDLE is a batch
    without requests."""

    EXTEND = 0
    DECODE = 1
    MIXED = 2
    IDLE = 3

    def is_extend(self) -> bool:
        return self in (ForwardMode.EXTEND, ForwardMode.MIXED)

    def is_decode(self) -> bool:
        return self is ForwardMode.DECODE

    def is_idle(self) -> bool:
        return self is ForwardMode.IDLE

    def is_decode_or_idle(self) -> bool:
        return self in (ForwardMode.DECODE, ForwardMode.IDLE)


def mode_of(mode: object) -> ForwardMode:
    """The mode of this name. An engine's own enumeration gives its modes other numbers, and may
    have more of them: ValueError for one that is not here."""
    if isinstance(mode, ForwardMode):
        return mode
    name = getattr(mode, "name", None)
    if not isinstance(name, str) or name not in ForwardMode.__members__:
        known = ", ".join(ForwardMode.__members__)
        raise ValueError(f"forward_mode: expected one of {known}, got {mode!r}")
    return ForwardMode[name]


@dataclass
class ForwardBatch:
    """Arrays are NumPy's or tensors. `*_cpu` are copies on the host: where there is one, it
    is read, and nothing waits for a GPU."""

    forward_mode: ForwardMode
    batch_size: int
    input_ids: object = None
    req_pool_indices: object = None
    """[batch_size]: the slot of each request, and its row of req_to_token"""
    seq_lens: object = None
    """[batch_size] i32: tokens of the request with those of the step"""
    seq_lens_cpu: object = None
    seq_lens_sum: int = 0
    out_cache_loc: object = None
    """[tokens] i64: where keys and values go"""
    positions: object = None
    extend_num_tokens: int | None = None
    extend_seq_lens: object = None
    """[batch_size]: tokens of the step"""
    extend_prefix_lens: object = None
    """[batch_size]: tokens before"""
    extend_start_loc: object = None
    extend_seq_lens_cpu: object = None
    extend_prefix_lens_cpu: object = None
    extend_start_loc_cpu: object = None
    req_pool_indices_cpu: object = None
    req_to_token_pool: object = None
    token_to_kv_pool: object = None
    attn_backend: object = None
    stream: object = None
    """Of the launches; None: PyTorch's current one for its tensors, else the null stream"""
