# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Facts that tell images of layers apart: those that an image has, and those that a model and an
engine ask for. `gdn.images.find` compares the two.

A fact that does not change an image's code is None: there is no gate and no epsilon without the
norm, no width of a convolution where the inputs are ready. A fact that entries take as an argument
(--norm-constants) is ARGUMENT, and serves every value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .runtime import Image

#: The value of a fact that is an argument of the entries.
ARGUMENT = "argument"
#: In the order in which messages name them.
FACTS = (
    "decay",
    "decay_bound",
    "key_dim",
    "value_dim",
    "layout",
    "outputs",
    "output_gate",
    "norm_eps",
    "doubled_beta",
    "conv_width",
    "l2norm",
    "io",
    "state",
    "deferred_writes",
    "pending",
)
#: Parameters that entries may have, by the option of gdn-compile.
PARAMETERS = ("has-initial", "decode-initial", "write-slots", "checkpoints")
VERIFY = ("none", "slots", "tree", "buffer", "lazy")
TYPES = ("bf16", "f16", "f32")
#: Those of states: numbers, or integers of eight bits in planes with scales. Pools of "i8x2_upper"
#: are those of "i8x2": decode reads the upper plane alone.
STATES = (*TYPES, "i8x2", "i8x2_upper", "i8")
#: Those that decode cannot write at each token.
_ONLY_DEFERRED = ("i8x2_upper", "i8")
#: Those of keys and deltas of tokens that deferred writes keep pending.
PENDING = ("f32", "f16")
#: The fewest and the most tokens that deferred writes keep pending in a slot.
LEAST_DEFERRED, MOST_DEFERRED = 2, 32
LAYOUTS = ("interleaved", "flat", "split", "separate", "gated", "ready")
#: Those of the rule alone, without a convolution ahead of it.
BARE_LAYOUTS = ("gated", "ready")
OUTPUTS = ("core", "norm", "both")


@dataclass(frozen=True)
class _Engine:
    parameters: tuple[str, ...]
    verify: str = "none"
    layout: str | None = None  # None: the model's
    outputs: str = "norm"

    def pending(self, defers_writes: bool) -> _Engine:
        """The same where no states after tokens are written: drafts stay pending, and with
        deferred writes a row writes the slot that it reads."""
        gone = ("decode-initial", "write-slots") if defers_writes else ()
        parameters = tuple(p for p in self.parameters if p not in gone)
        verify = self.verify if self.verify == "none" else "lazy"
        return _Engine(parameters, verify, self.layout, self.outputs)


#: What `gdn-compile --for` sets (lib/Model/Engine.cpp).
ENGINES = {
    "vllm": _Engine(("has-initial", "decode-initial", "write-slots"), "slots"),
    "sglang": _Engine(("has-initial", "checkpoints"), "buffer", "split", "core"),
    "pymllm": _Engine((), "none", "split", "core"),
    "c": _Engine(("has-initial", "write-slots")),
}


@dataclass(frozen=True)
class Request:
    """What an image has to have. One with more parameters serves as well, and where nothing is
    verified, one with any kind of verify: layers pass what kernels ask for."""

    facts: Mapping[str, object]
    parameters: frozenset[str]
    verify: str

    def differences(self, image: Mapping[str, object]) -> dict[str, tuple[object, object]]:
        """By fact: what the image has, and what is asked for. Empty if it serves."""
        found = {
            name: (image["facts"].get(name), wanted)
            for name, wanted in self.facts.items()
            if image["facts"].get(name) not in (wanted, ARGUMENT)
        }
        if self.verify not in ("none", image["verify"]):
            found["verify"] = image["verify"], self.verify
        if missing := self.parameters - set(image["parameters"]):
            had = ", ".join(sorted(image["parameters"])) or "none"
            found["parameters"] = had, ", ".join(sorted(missing))
        return found

    def surplus(self, image: Mapping[str, object]) -> tuple:
        """How much more an image has than is asked for; the smallest is taken. Checkpoints are
        the dearest: with them some GPUs have fewer variants of prefill. Then arguments, which
        take a few percent of a decode step of one sequence."""
        more = set(image["parameters"]) - self.parameters
        arguments = sum(value == ARGUMENT for value in image["facts"].values())
        verifies = image["verify"] != self.verify
        return "checkpoints" in more, arguments, verifies, len(more)


def relevant(facts: Mapping[str, object]) -> dict[str, object]:
    """Facts with None for those that do not change the code."""
    found = {name: facts.get(name) for name in FACTS}
    if found["pending"] == "f32":
        found["pending"] = None
    if found["outputs"] == "core":
        found["output_gate"] = found["norm_eps"] = None
    if found["layout"] in BARE_LAYOUTS:
        found["conv_width"] = None
        found["l2norm"] = bool(found["l2norm"])
        if found["layout"] == "ready":
            found["decay_bound"] = None
    else:
        found["l2norm"] = None
    return found


def engine_of(engine: str, state: str, deferred_writes: int) -> _Engine:
    """What `gdn-compile --for` sets for pools of states of a type, with writes that are deferred
    by so many tokens, or by none (0)."""
    chosen = ENGINES[engine]
    keeps_pending = deferred_writes > 0 or state not in TYPES
    return chosen.pending(deferred_writes > 0) if keeps_pending else chosen


def check_deferred(deferred_writes: int, state: str, verify: str | None) -> None:
    """Raises ValueError for a number of tokens that cannot be pending, and for a type of states
    and a kind of verify (None: any) that do not go with it."""
    tokens = f"{LEAST_DEFERRED} to {MOST_DEFERRED} tokens"
    if deferred_writes and not LEAST_DEFERRED <= deferred_writes <= MOST_DEFERRED:
        raise ValueError(f"deferred_writes: expected 0 or {tokens}, got {deferred_writes}")
    if state in _ONLY_DEFERRED and not deferred_writes:
        raise ValueError(f"deferred_writes: expected {tokens} with states of {state}, got 0")
    if verify in (None, "none", "lazy"):
        return
    if deferred_writes or state not in TYPES:
        why = "deferred writes" if deferred_writes else "states in planes"
        raise ValueError(f"verify: expected none or lazy with {why}, got {verify!r}")


def request(
    model: Mapping[str, object],
    engine: str,
    *,
    io: str | None = None,
    state: str | None = None,
    verify: str | None = None,
    layout: str | None = None,
    outputs: str | None = None,
    pending: str | None = None,
    l2norm: bool = False,
    deferred_writes: int = 0,
) -> Request:
    """What the layers of a model (ModelConfig.facts) need in an engine; the other arguments
    override what these say, as options of gdn-compile override those of --for. Raises ValueError
    for what no image can be."""
    for name, value, known in (
        ("engine", engine, tuple(ENGINES)),
        ("io", io, TYPES),
        ("state", state, STATES),
        ("verify", verify, VERIFY),
        ("layout", layout, LAYOUTS),
        ("outputs", outputs, OUTPUTS),
        ("pending", pending, PENDING),
    ):
        if value not in known and (value is not None or name == "engine"):
            raise ValueError(f"{name}: expected one of {', '.join(known)}, got {value!r}")
    facts = dict(model)
    facts["io"], facts["state"] = io or facts["io"], state or facts["state"]
    check_deferred(deferred_writes, facts["state"], verify)
    chosen = engine_of(engine, facts["state"], deferred_writes)
    if pending == "f16" and not deferred_writes:
        raise ValueError("pending: expected f32 without deferred writes, got 'f16'")
    facts["deferred_writes"], facts["pending"] = deferred_writes, pending
    facts["layout"] = layout or chosen.layout or facts["layout"]
    facts["outputs"] = outputs or chosen.outputs
    facts["l2norm"] = l2norm
    layout = facts["layout"]
    if facts["decay"] == "channel" and layout not in ("separate", *BARE_LAYOUTS):
        raise ValueError(
            f"layout: a decay per channel expects separate, gated or ready, got {layout}"
        )
    if layout in BARE_LAYOUTS and facts["outputs"] != "core":
        raise ValueError(f"outputs: the layout {layout} expects core, got {facts['outputs']}")
    if l2norm and layout not in BARE_LAYOUTS:
        raise ValueError(f"l2norm: expected the layout gated or ready, got {layout}")
    return Request(relevant(facts), frozenset(chosen.parameters), verify or chosen.verify)


def facts_of(image: Image) -> dict[str, object]:
    """What an image says of itself: `facts`, `verify`, `verify_tokens` (the most tokens of a
    sequence of verify; 0: any number), `parameters` and `entries`. For images with prefill and
    decode for one pair of types."""
    entries = image.entries
    params = {entry: {p.name: p for p in image.params(entry)} for entry in entries}
    prefill, decode = params["prefill"], params["decode"]
    said = image.attributes("prefill")
    *_, value_dim, key_dim = prefill["state_pool"].dims
    is_ready = "log_decay" in prefill
    per_channel = (
        len(prefill["log_decay"].dims) == 3 if is_ready else len(prefill["dt_bias"].dims) == 2
    )
    conv = prefill.get("conv_weight")
    facts = {
        "io": said["io"],
        "state": said["state"],
        "layout": said["layout"],
        "outputs": said["outputs"],
        "output_gate": said["output_gate"],
        "norm_eps": said["norm_eps"] if said["norm_eps"] == ARGUMENT else float(said["norm_eps"]),
        "doubled_beta": said["doubled_beta"] == "1",
        "decay": "channel" if per_channel else "head",
        "decay_bound": float(said["decay_bound"]) if "decay_bound" in said else None,
        "key_dim": int(key_dim),
        "value_dim": int(value_dim),
        "conv_width": int(conv.dims[1]) if conv else None,
        "l2norm": "gdn.l2norm" in said["gdn.source"],
        "deferred_writes": int(decode["pending_keys"].dims[2]) if "pending_counts" in decode else 0,
        "pending": "f16" if "pending_scales" in decode else "f32",
    }
    has = {
        "has-initial": "has_initial" in prefill,
        "decode-initial": "has_initial" in decode,
        "write-slots": "write_slots" in prefill,
        "checkpoints": "cu_checkpoints" in prefill,
    }
    verify, tokens = params.get("verify"), 0
    if verify is not None:
        tokens = int(image.attributes("verify").get("gdn.max_tokens", 0))
    return {
        "facts": relevant(facts),
        "verify": _kind_of(verify),
        "verify_tokens": tokens,
        "parameters": [name for name in PARAMETERS if has[name]],
        "entries": entries,
    }


def _kind_of(verify: Mapping[str, object] | None) -> str:
    """By the parameters of the entry, as layers of the runtime see it."""
    if verify is None:
        return "none"
    for parameter, kind in (
        ("parents", "tree"),
        ("token_state_pool", "buffer"),
        ("pending_keys", "lazy"),
    ):
        if parameter in verify:
            return kind
    return "slots"
