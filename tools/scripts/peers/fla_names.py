# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""gdn's functions in FLA's package, which has to be importable: its references and its comparison
are the suite's own."""

import torch


def install(device: str) -> None:
    import fla.modules.fused_norm_gate
    import fla.ops.gated_delta_rule
    import fla.ops.gated_delta_rule.gate
    import fla.ops.kda
    import fla.ops.kda.gate
    import fla.ops.kda.naive

    from gdn.ops import fla as ours

    for module, names in (
        (
            fla.ops.gated_delta_rule,
            ("chunk_gated_delta_rule", "fused_recurrent_gated_delta_rule"),
        ),
        (fla.ops.kda, ("chunk_kda", "fused_recurrent_kda")),
        (fla.ops.gated_delta_rule.gate, ("fused_gdn_gate",)),
        (fla.ops.kda.gate, ("fused_kda_gate",)),
        (
            fla.modules.fused_norm_gate,
            (
                "layer_norm_gated",
                "layer_norm_swish_gate_linear",
                "rms_norm_gated",
                "rms_norm_swish_gate_linear",
            ),
        ),
    ):
        for name in names:
            setattr(module, name, getattr(ours, name))
    # A form in chunks of PyTorch's operations, which the suite compares with the recurrence.
    fla.ops.kda.naive.naive_chunk_kda = ours.chunk_kda
    fla.utils.device = device
    # What tests of large offsets are skipped without; they take some 65 GB.
    if device == "cuda":
        memory = torch.cuda.get_device_properties(0).total_memory
        fla.utils.IS_NVIDIA_BLACKWELL = memory > 100e9
