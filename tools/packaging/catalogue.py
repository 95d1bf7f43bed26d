# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which images are prebuilt: programs of presets, forms of entries, types and targets.

Presets with equal facts are one program, and a program that two forms share is compiled once:
without the norm, for example, neither its gate nor its epsilon is in the code, and the layout
"split" is the same for layers of every layout. What is compiled in which form, and why so, is in
docs/design/20261126-wheels.md.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from gdn import image_facts

# sm_89 runs the code of sm_86.
TARGETS = ("x86-64-v3", "x86-64-v4", "sm_80", "sm_86", "sm_90a", "sm_100a", "sm_103a", "sm_120a")
# Types of states by the type of inputs and outputs.
STATES = {"bf16": ("f32", "bf16"), "f16": ("f32", "f16")}
# The tokens that deferred writes keep pending, by the type of states; inputs are of bf16.
DEFERRED = {"f32": 16, "bf16": 8, "i8x2": 16, "i8x2_upper": 16, "i8": 16}
# The types of their keys and deltas, by that of states: what is fastest on GPUs, and f32 for the
# format that keeps most digits. All of both would take the wheel to its limit.
PENDING = {"f32": ("f32",), "bf16": ("f32",), "i8x2": ("f16", "f32")}
PENDING |= {"i8x2_upper": ("f16",), "i8": ("f16",)}


@dataclass(frozen=True)
class Form:
    """What entries take and give: an engine of --for, so that each entry has code for each
    target or there is no image, and other options of gdn-compile."""

    name: str
    engine: str
    options: tuple[str, ...] = ()
    # A decay per channel comes in the layouts separate, gated and ready alone. With deferred
    # writes there are no images of it: they would take the wheel to its limit.
    per_channel: bool = True
    # For pools with deferred writes.
    deferred: bool = False


_RULE = ("--layout=ready", "--outputs=core")
FORMS = (
    # For vllm and c: the model's layout, with the norm. The first serves steps without drafts.
    Form("slots", "vllm"),
    Form("tree", "vllm", ("--verify=tree",)),
    Form("buffer", "vllm", ("--verify=buffer",)),
    Form("lazy", "vllm", ("--verify=lazy",)),
    Form("sglang", "sglang", per_channel=False),
    # Without checkpoints, with which some GPUs have fewer variants of prefill.
    Form("pymllm", "pymllm", ("--has-initial", "--write-slots"), per_channel=False),
    # The rule alone.
    Form("rule", "vllm", _RULE),
    Form("rule-l2norm", "vllm", (*_RULE, "--l2norm")),
    # With its gates, as engines' functions of a step of decode take them.
    Form("gated-l2norm", "vllm", ("--layout=gated", "--outputs=core", "--l2norm")),
    # What slots, lazy and pymllm are, for pools with deferred writes.
    Form("deferred", "vllm", per_channel=False, deferred=True),
    Form(
        "deferred-pymllm",
        "pymllm",
        ("--has-initial", "--verify=lazy"),
        per_channel=False,
        deferred=True,
    ),
)
FORM_NAMES = tuple(form.name for form in FORMS)


@dataclass
class Item:
    """One image for each target: what is compiled, and the facts it has to have."""

    name: str
    form: Form
    io: str
    state: str
    facts: dict[str, object]
    verify: str
    parameters: list[str]
    presets: list[str] = field(default_factory=list)

    @property
    def source(self) -> list[str]:
        """The option of gdn-compile that says which layers."""
        return [f"--preset={self.presets[0]}"]

    @property
    def options(self) -> list[str]:
        """Of gdn-compile, without a target."""
        form = [f"--for={self.form.engine}", *self.form.options]
        form += ["--norm-constants"] * (self.facts["norm_eps"] == image_facts.ARGUMENT)
        types = [f"--io={self.io}", f"--state={self.state}"]
        if writes := self.facts["deferred_writes"]:
            types.append(f"--defer-writes={writes}")
        types += [f"--pending={pending}" for pending in [self.facts["pending"]] if pending]
        return [*form, *types, *["--verify-tokens=0"] * self.is_unbounded]

    @property
    def is_unbounded(self) -> bool:
        """States of larger heads than 128 x 128 do not fit the registers of a verify that is
        for few tokens."""
        size = self.facts["key_dim"] * self.facts["value_dim"]
        return self.verify == "slots" and size > 128 * 128

    def file(self, target: str) -> str:
        return f"{self.name}-{target}.gdnk"


def facts_of_program(program: str) -> dict[str, object]:
    """The facts of a preset from its entries in the gdn dialect (--emit=gdn)."""
    facts = dict(re.findall(r'(\w+) = "([^"]*)"', re.search(r"gdn\.facts = {(.*?)}", program)[1]))
    value, key = re.search(r"!gdn\.pool<\?x\?x(\d+)x(\d+)x", program).groups()
    window = re.search(r"!gdn\.pool<\?x\?x(\d+)x[a-z]", program)[1]
    per_channel = re.search(r"gdn\.gates .* -> tensor<\?x\?x\d+xf32>", program)
    return {
        "layout": facts["layout"],
        "output_gate": facts["output_gate"],
        "norm_eps": float(facts["norm_eps"]),
        "doubled_beta": facts["doubled_beta"] == "1",
        "decay": "channel" if per_channel else "head",
        "decay_bound": float(facts["decay_bound"]) if "decay_bound" in facts else None,
        "key_dim": int(key),
        "value_dim": int(value),
        "conv_width": int(window) + 1,
        "io": facts["io"],
        "state": facts["state"],
    }


def item_of(
    form: Form, model: Mapping[str, object], io: str, state: str, pending: str = "f32"
) -> Item:
    """The image of a model in a form, with what it has to say of itself."""
    said = dict(option.removeprefix("--").partition("=")[::2] for option in form.options)
    writes = DEFERRED[state] if form.deferred else 0
    engine = image_facts.engine_of(form.engine, state, writes)
    facts = dict(model) | {"io": io, "state": state, "l2norm": "l2norm" in said}
    facts["deferred_writes"], facts["pending"] = writes, pending
    facts["layout"] = said.get("layout") or engine.layout or model["layout"]
    facts["outputs"] = said.get("outputs") or engine.outputs
    facts = image_facts.relevant(facts)
    if _serves_all_norms(facts):
        facts["output_gate"] = facts["norm_eps"] = image_facts.ARGUMENT
    parameters = [p for p in image_facts.PARAMETERS if p in said or p in engine.parameters]
    verify = said.get("verify") or engine.verify
    return Item(_name(form, facts), form, io, state, facts, verify, parameters)


def _serves_all_norms(facts: Mapping[str, object]) -> bool:
    """Layers that differ from those of most models in the gate of the norm alone: their images
    take it, and epsilon, as an argument, and so serve other models with heads like these."""
    return facts["layout"] == "flat" and facts["output_gate"] == "sigmoid"


def _name(form: Form, facts: Mapping[str, object]) -> str:
    """Of the facts that tell programs apart."""
    words = [form.name, f"{facts['key_dim']}x{facts['value_dim']}"]
    words += ["channel"] * (facts["decay"] == "channel") + ["beta2"] * bool(facts["doubled_beta"])
    if facts["decay_bound"] is not None:
        words.append(f"bound{-facts['decay_bound']:g}")
    if facts["outputs"] != "core":
        words.append(facts["layout"])
        if facts["norm_eps"] == image_facts.ARGUMENT:
            words.append("norm")
        else:
            words += [facts["output_gate"], f"eps{facts['norm_eps']:g}"]
    pending = [f"pending_{facts['pending']}"] * (facts["pending"] is not None)
    return "-".join([*words, facts["io"], facts["state"], *pending])


def items(presets: Mapping[str, Mapping[str, object]]) -> list[Item]:
    """The catalogue for presets with these facts."""
    found: dict[str, Item] = {}
    plain = [form for form in FORMS if not form.deferred]
    deferred = [form for form in FORMS if form.deferred]
    forms = [(io, state, "f32", form) for io in STATES for state in STATES[io] for form in plain]
    forms += [
        ("bf16", state, pending, form)
        for state in DEFERRED
        for pending in PENDING[state]
        for form in deferred
    ]
    for (io, state, fastest, form), (preset, model) in itertools.product(forms, presets.items()):
        if model["decay"] == "channel" and not form.per_channel:
            continue
        # In f16 pending tokens expect a strength up to 1.
        pending = "f32" if model["doubled_beta"] else fastest
        new = item_of(form, model, io, state, pending)
        item = found.setdefault(new.name, new)
        if item.facts != new.facts:
            raise ValueError(f"{new.name}: expected one program, got another of {preset}")
        if preset not in item.presets:
            item.presets.append(preset)
    return list(found.values())
