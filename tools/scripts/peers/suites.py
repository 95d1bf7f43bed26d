# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The suites: their files, the names that are swapped, and the tests that cannot be expressed."""

from __future__ import annotations

from dataclasses import dataclass

INTERNAL = "framework internals: "


@dataclass(frozen=True)
class Suite:
    """Tests of one library about functions that gdn.ops has.

    `names` is the module of this package that puts gdn's functions under the library's names.
    `tests` are the files. `inexpressible` has patterns of tests, by name and parameters, that are
    not run, and why; `on_gpus` has those that only GPUs do not run. `reasons` has patterns of the
    suite's own reasons to skip, likewise: a suite that skips a case for another reason skips it.
    `on` is "cpu" or "cuda" for tests of one device, or None."""

    source: str
    names: str
    tests: tuple[str, ...]
    inexpressible: tuple[tuple[str, str], ...] = ()
    reasons: tuple[tuple[str, str], ...] = ()
    on: str | None = None
    on_gpus: tuple[tuple[str, str], ...] = ()

    def left_out(self, device: str) -> tuple[tuple[str, str], ...]:
        """Patterns of tests that do not run on a device, and why."""
        return self.inexpressible + (self.on_gpus if device == "cuda" else ())


_DECODE = "tests/gdn/test_decode_delta_rule.py"
_PREFILL = ("tests/gdn/test_prefill_delta_rule.py", "tests/gdn/test_prefill_state_indices.py")
_POOLS = (
    "tests/gdn/test_decode_pretranspose_bf16_padded_pool.py",
    "tests/gdn/test_decode_pretranspose_noncontiguous_pool.py",
)
_CHUNKS_OF_KDA = "hardware: chunk_kda is refused by name on GPUs until its kernel exists"
_REASONS = ((r"kernel (is )?(not available|unavailable)", INTERNAL + "FlashInfer's own kernels"),)

SUITES = {
    "FLA gated delta rule": Suite(
        "fla",
        "fla_names",
        ("tests/ops/test_gdn.py",),
        (
            (r"test_(prepare_wy_repr|flash_qla)", INTERNAL + "FLA's own kernels"),
            (r"triton_guard", INTERNAL + "FLA's own kernels"),
        ),
    ),
    "FLA KDA": Suite(
        "fla",
        "fla_names",
        ("tests/ops/test_kda.py",),
        (
            (r"test_(flash_kda|triton_ascend)", INTERNAL + "FLA's own kernels"),
            (r"vllm_decode", INTERNAL + "arguments of FLA's kernel"),
        ),
        on_gpus=((r"test_(chunk|naive)", _CHUNKS_OF_KDA),),
    ),
    "FLA gated norm": Suite(
        "fla",
        "fla_names",
        ("tests/modules/test_layernorm_gated.py",),
    ),
    "causal-conv1d": Suite(
        "causal-conv1d",
        "causal_conv1d_names",
        ("tests/test_causal_conv1d.py",),
        ((r"_bwd_", "backward"), (r"race_condition", INTERNAL + "atomics of its backward")),
    ),
    "FlashInfer decode and MTP": Suite(
        "flashinfer",
        "flashinfer_names",
        (_DECODE,),
        (
            (r"reuses_compile|compile_cache", INTERNAL + "FlashInfer's cache of compilations"),
            (r"wide_vec|wy_output_only", INTERNAL + "FlashInfer's choice of a kernel"),
            (r"recovery|per_request_k", INTERNAL + "arguments of FlashInfer's kernel alone"),
            (r"bf16_padding_indices", INTERNAL + "padding has to write slot 0"),
            (r"fp16_inputs_are_converted", INTERNAL + "f16 rounded to bf16"),
            (r"fla_scatter_validation", INTERNAL + "assertions of FlashInfer's kernel"),
        ),
        _REASONS,
    ),
    "FlashInfer prefill": Suite(
        "flashinfer",
        "flashinfer_names",
        _PREFILL,
        ((r"kernel_state_dtype.*state_dtype[23]", "fp8 states"),),
    ),
    "FlashInfer strided pools": Suite(
        "flashinfer",
        "flashinfer_names",
        _POOLS,
        ((r"compile|cache_keeps|misaligned", INTERNAL + "FlashInfer's kernel and its cache"),),
        _REASONS,
    ),
    "vLLM convolutions": Suite(
        "vllm", "vllm_names", ("tests/kernels/mamba/test_causal_conv1d.py",)
    ),
    "vLLM decode": Suite(
        "vllm",
        "vllm_names",
        (
            "tests/kernels/fla/test_fused_recurrent_packed_decode.py",
            "tests/kernels/fla/test_fused_sigmoid_gating_delta_rule.py",
            "tests/kernels/fla/test_fused_gdn_post_conv.py",
        ),
    ),
    "vLLM CPU operators": Suite(
        "vllm",
        "vllm_cpu_names",
        ("tests/kernels/mamba/cpu/test_cpu_gdn_ops.py",),
        (
            (
                r"preserves_sd_state|routing|materializes|spec_forward|ds_adapter|unpacked_conv"
                r"|weight_pack_roundtrip|batch_memcpy",
                INTERNAL + "vLLM's layer on a CPU",
            ),
            (r"rejects_invalid_accepted", INTERNAL + "values are not read by the host"),
        ),
        on="cpu",
    ),
}
