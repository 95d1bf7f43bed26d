# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""gdn's functions in FLA's package, which has to be importable: its references and its comparison
are the suite's own."""


def install(device: str) -> None:
    import fla.modules.fused_norm_gate
    import fla.ops.gated_delta_rule
    import fla.ops.kda

    from gdn.ops import fla as ours

    for module, names in (
        (
            fla.ops.gated_delta_rule,
            ("chunk_gated_delta_rule", "fused_recurrent_gated_delta_rule"),
        ),
        (fla.ops.kda, ("chunk_kda", "fused_recurrent_kda")),
        (fla.modules.fused_norm_gate, ("rms_norm_gated",)),
    ):
        for name in names:
            setattr(module, name, getattr(ours, name))
    # Strengths of the suite's tests of this option alone reach 2.
    fla.utils.device = device
