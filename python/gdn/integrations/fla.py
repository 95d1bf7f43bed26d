# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""gdn as a backend of flash-linear-attention (fla-core 0.6): whatever calls FLA's
chunk_gated_delta_rule or chunk_kda gets gdn's kernels where they can serve the call.

    import gdn.integrations.fla
    gdn.integrations.fla.register()

Calls that need a backward, a kernel that is not there, or an argument that gdn does not have go to
FLA as before; FLA logs the reason once. FLA_GDN=0 in the environment, which FLA reads, turns the
backend off.

FLA's calls do not say how large strengths are, and gdn's fast kernels are for strengths up to 1. A
model whose strengths reach 2 (OLMo-Hybrid doubles them ahead of the call) must not be served:
register(strengths_up_to_one=False) leaves calls to FLA that do not make the strengths themselves.
"""

from __future__ import annotations

import torch
from fla import backends

from ..kernel_calls import find_refusal
from ..ops import chunk_gated_delta_rule, chunk_kda
from ..ops.arguments import refusal_of
from ..rule_kernels import kind_of, unit_of


class GdnBackend(backends.BaseBackend):
    """See BaseBackend of FLA."""

    backend_type = "gdn"
    package_name = "gdn"
    env_var = "FLA_GDN"
    strengths_up_to_one = True

    def chunk_gated_delta_rule_verifier(self, q, k, v, g, beta, *arguments, **options):
        """Whether gdn serves the call, and why not."""
        given = dict(zip(_NAMES, arguments, strict=False)) | options
        return self._verify("chunk_gated_delta_rule", _TAKEN, q, k, v, g, beta, given)

    def chunk_gated_delta_rule(self, *arguments, **options):
        given = dict(zip(("q", "k", "v", "g", "beta", *_NAMES), arguments, strict=False)) | options
        return chunk_gated_delta_rule(**given)

    def chunk_kda_verifier(self, q, k, v, g, beta, *arguments, **options):
        """Whether gdn serves the call, and why not."""
        given = dict(zip(_KDA_NAMES, arguments, strict=False)) | options
        if given.get("return_intermediate_states"):
            return False, "gdn makes states inside of sequences one chunk after the other"
        return self._verify("chunk_kda", _KDA_TAKEN, q, k, v, g, beta, given)

    def chunk_kda(self, *arguments, **options):
        names = ("q", "k", "v", "g", "beta", *_KDA_NAMES)
        return chunk_kda(**dict(zip(names, arguments, strict=False)) | options)

    def _verify(
        self, function: str, taken: frozenset[str], q, k, v, g, beta, given: dict[str, object]
    ) -> tuple[bool, str | None]:
        arrays = (q, k, v, g, beta, *(given.get(name) for name in _MAY_HAVE_GRADIENTS))
        if torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in arrays):
            return False, "gdn has no backward, and an input requires a gradient"
        others = {name: value for name, value in given.items() if name not in taken}
        if reason := refusal_of(function, others):
            return False, reason
        if not q.dtype == k.dtype == v.dtype:
            return False, f"gdn expects q, k and v of one type, got {q.dtype}, {k.dtype}, {v.dtype}"
        in_kernel = bool(given.get("use_beta_sigmoid_in_kernel"))
        if given.get("allow_neg_eigval") and not in_kernel:
            return False, "allow_neg_eigval goes with use_beta_sigmoid_in_kernel"
        if not in_kernel and not self.strengths_up_to_one:
            return False, "strengths may be above 1"
        if q.shape[1] < 2 and given.get("cu_seqlens") is None:
            return False, "gdn has no faster kernel for steps of one token"
        per_channel = function == "chunk_kda"
        if per_channel and q.shape[-1] != v.shape[-1]:
            sizes = f"{q.shape[-1]} and {v.shape[-1]}"
            return False, f"gdn expects heads of q and v of one size, got {sizes}"
        device = q.device.type, q.device.index or 0
        kind = kind_of(
            q.shape[-1],
            v.shape[-1],
            unit=unit_of("prefill", device),
            per_channel=per_channel,
            doubled_beta=bool(given.get("allow_neg_eigval")),
            l2norm=bool(given.get("use_qk_l2norm_in_kernel")),
            io=str(v.dtype).removeprefix("torch."),
        )
        if kind.doubled_beta and q.is_cuda:
            return False, "gdn goes token by token on GPUs where strengths may be above 1"
        reason = find_refusal(kind, device)
        return reason is None, reason


# The original's arguments behind beta, in its order, and what gdn takes of them.
_NAMES = (
    "scale",
    "initial_state",
    "output_final_state",
    "use_qk_l2norm_in_kernel",
    "use_beta_sigmoid_in_kernel",
    "allow_neg_eigval",
    "state_v_first",
    "cu_seqlens",
    "cu_seqlens_cpu",
    "chunk_indices",
    "cp_context",
)
_TAKEN = frozenset((*_NAMES[:8], "use_gate_in_kernel", "A_log", "dt_bias"))
_KDA_NAMES = (
    "scale",
    "initial_state",
    "output_final_state",
    "use_qk_l2norm_in_kernel",
    "use_gate_in_kernel",
    "use_beta_sigmoid_in_kernel",
    "allow_neg_eigval",
    "safe_gate",
    "lower_bound",
    "disable_recompute",
    "return_intermediate_states",
    "state_v_first",
    "cu_seqlens",
    "cu_seqlens_cpu",
    "cp_context",
    "use_graph",
    "max_num_seqs",
)
_KDA_TAKEN = frozenset((*_KDA_NAMES[:14], "A_log", "dt_bias"))
_MAY_HAVE_GRADIENTS = ("initial_state", "A_log", "dt_bias")


def register(priority: int = 2, *, strengths_up_to_one: bool = True) -> None:
    """Puts the backend into FLA's registries. Of several, FLA asks the one with the lowest priority
    first; those of FlashQLA and FlashKDA are 3. `strengths_up_to_one` says that no model hands over
    strengths above 1. A second call replaces the first."""
    import fla.ops.gated_delta_rule.backends  # FLA's own come first
    import fla.ops.kda

    options = {"priority": priority, "strengths_up_to_one": strengths_up_to_one}
    backend = type("GdnBackend", (GdnBackend,), options)
    backends.register("gated_delta_rule")(backend)
    backends.register(fla.ops.kda.chunk_kda)(backend)
