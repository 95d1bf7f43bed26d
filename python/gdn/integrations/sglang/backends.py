# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values of --linear-attn-backend and its siblings that are gdn's, and which of SGLang's other
options go with those that keep more in a slot than SGLang does."""

from __future__ import annotations

from typing import NamedTuple

from ...image_facts import LEAST_DEFERRED, MOST_DEFERRED
from ..slot_arrays import SlotForm

#: For each value the format of states in planes, or None where --mamba-ssm-dtype says the type of
#: states, and whether decode defers writes.
BACKENDS: dict[str, tuple[str | None, bool]] = {
    "gdn": (None, False),
    "gdn_deferred": (None, True),
    "gdn_i8x2": ("i8x2", False),
    "gdn_i8x2_deferred": ("i8x2", True),
    "gdn_i8_deferred": ("i8", True),
}
_PLAIN = "gdn"
_WINDOW = "--linear-replayssm-cache-len"


class Names(NamedTuple):
    """The backend of each phase by SGLang's options (`mamba` of get_exec())."""

    decode: str
    prefill: str
    verify: str


def names_of(options) -> Names:
    """Where none is named for verify, it is that of decode."""
    base = options.linear_attn_backend
    decode = options.linear_attn_decode_backend or base
    verify = options.linear_attn_verify_backend or decode
    return Names(decode, options.linear_attn_prefill_backend or base, verify)


def chosen_phases(options) -> set[str]:
    """Those of decode, prefill and verify whose backend is gdn's."""
    return {phase for phase, name in names_of(options)._asdict().items() if name in BACKENDS}


def chosen_name(options) -> str | None:
    """The backend that keeps more in a slot than SGLang does, or None. Raises ValueError where
    decode and prefill have not the same one."""
    names = names_of(options)
    if not {names.decode, names.prefill} & (BACKENDS.keys() - {_PLAIN}):
        return None
    if names.decode != names.prefill:
        raise ValueError(
            "--linear-attn-decode-backend and --linear-attn-prefill-backend: expected the same"
            f" where one is of {', '.join(BACKENDS.keys() - {_PLAIN})}, got {names.decode} and"
            f" {names.prefill}"
        )
    return names.decode


def form_of(name: str, state_dtype: str, options) -> SlotForm:
    """How slots keep states, where SGLang's own are of `state_dtype`."""
    planes, defers = BACKENDS[name]
    window = int(options.linear_replayssm_cache_len)
    if defers and not LEAST_DEFERRED <= window <= MOST_DEFERRED:
        raise ValueError(
            f"{_WINDOW}: expected {LEAST_DEFERRED} to {MOST_DEFERRED} with --linear-attn-backend"
            f" {name}, got {window}"
        )
    return SlotForm(planes or state_dtype, window if defers else 0)


def check_options(name: str, values: dict[str, object]) -> None:
    """`values` are SGLang's options by their names. Raises ValueError for what reads or writes
    states without what else the slots have."""
    expected = {
        "speculative_algorithm": None,
        "disaggregation_mode": "null",
        "enable_unified_memory": False,
        "enable_page_major_kv_layout": False,
        "enable_int8_mamba_checkpoint": False,
        "enable_unified_cache_external_linker": False,
        "enable_lmcache": False,
        "enable_mis": False,
    }
    if BACKENDS[name][0] is not None:
        expected["enable_mamba_extra_buffer"] = False
    for option, value in expected.items():
        if (found := values[option]) != value and (found or value):
            flag, value, found = _words(option, value, found)
            raise ValueError(
                f"{flag}: expected {value} with --linear-attn-backend {name}, got {found}"
            )


def _words(option: str, value: object, found: object) -> tuple[str, object, object]:
    """As the command line names them."""
    if option == "enable_mamba_extra_buffer":
        return "--mamba-radix-cache-strategy", "no_buffer", "extra_buffer"
    flag = "--" + option.replace("_", "-")
    return flag, "no" if value is None else value, found
