// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The layer of OLMo-Hybrid: every projection on its own, heads of 96 and 192,
// beta doubled, norm with eps 1e-5. Float32, as the golden activations were
// recorded.

// Rows of any length; row n continues from the state in slots[n].
func.func @prefill(
    %hk: index {gdn.name = "Hk"},
    %hv: index {gdn.name = "Hv"},
    %q: tensor<?x?xf32> {gdn.name = "q", gdn.dims = ["T", "96*Hk"]},
    %k: tensor<?x?xf32> {gdn.name = "k", gdn.dims = ["T", "96*Hk"]},
    %v: tensor<?x?xf32> {gdn.name = "v", gdn.dims = ["T", "192*Hv"]},
    %z: tensor<?x?xf32> {gdn.name = "z", gdn.dims = ["T", "192*Hv"]},
    %b: tensor<?x?xf32> {gdn.name = "b", gdn.dims = ["T", "Hv"]},
    %a: tensor<?x?xf32> {gdn.name = "a", gdn.dims = ["T", "Hv"]},
    %conv_weight: tensor<?x4xf32> {gdn.name = "conv_weight", gdn.dims = ["192*Hk + 192*Hv", "4"]},
    %a_log: tensor<?xf32> {gdn.name = "A_log", gdn.dims = ["Hv"]},
    %dt_bias: tensor<?xf32> {gdn.name = "dt_bias", gdn.dims = ["Hv"]},
    %norm_weight: tensor<192xf32> {gdn.name = "norm_weight", gdn.dims = ["192"]},
    %cu_seqlens: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %conv_pool: !gdn.pool<?x?x3xf32> {gdn.name = "conv_pool", gdn.dims = ["P", "192*Hk + 192*Hv", "3"]},
    %state_pool: !gdn.pool<?x?x192x96xf32> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "192", "96"]})
    -> (tensor<?x?x192xf32> {gdn.name = "core", gdn.dims = ["T", "Hv", "192"]},
        tensor<?x?x192xf32> {gdn.name = "out", gdn.dims = ["T", "Hv", "192"]})
    attributes {gdn.entry} {
  %qh = gdn.unpack "q" flat %q heads(%hk, %hv) : tensor<?x?xf32> -> tensor<?x?x96xf32>
  %kh = gdn.unpack "k" flat %k heads(%hk, %hv) : tensor<?x?xf32> -> tensor<?x?x96xf32>
  %vh = gdn.unpack "v" flat %v heads(%hk, %hv) : tensor<?x?xf32> -> tensor<?x?x192xf32>
  %zh = gdn.unpack "z" flat %z heads(%hk, %hv) : tensor<?x?xf32> -> tensor<?x?x192xf32>
  %qc, %kc, %vc = gdn.conv1d %qh, %kh, %vh weight(%conv_weight) silu
      pool(%conv_pool) slots(%slots) sequences(%cu_seqlens)
      : (tensor<?x?x96xf32>, tensor<?x?x96xf32>, tensor<?x?x192xf32>), tensor<?x4xf32>,
        !gdn.pool<?x?x3xf32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?x96xf32>, tensor<?x?x96xf32>, tensor<?x?x192xf32>
  %qn = gdn.l2norm %qc : tensor<?x?x96xf32> -> tensor<?x?x96xf32>
  %kn = gdn.l2norm %kc : tensor<?x?x96xf32> -> tensor<?x?x96xf32>
  %g, %beta = gdn.gates %a, %b, %a_log, %dt_bias {double_beta}
      : tensor<?x?xf32>, tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32> -> tensor<?x?xf32>, tensor<?x?xf32>
  %core = gdn.delta_rule %qn, %kn, %vc gates(%g, %beta)
      pool(%state_pool) slots(%slots) sequences(%cu_seqlens)
      : tensor<?x?x96xf32>, tensor<?x?x96xf32>, tensor<?x?x192xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x192x96xf32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?x192xf32>
  %normed = gdn.gated_rms_norm %core, %zh, %norm_weight silu {eps = 1.0e-05 : f32}
      : tensor<?x?x192xf32>, tensor<?x?x192xf32>, tensor<192xf32> -> tensor<?x?x192xf32>
  %out = gdn.mask_sequences %normed of(%state_pool) slots(%slots) sequences(%cu_seqlens)
      : tensor<?x?x192xf32>, !gdn.pool<?x?x192x96xf32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?x192xf32>
  return %core, %out : tensor<?x?x192xf32>, tensor<?x?x192xf32>
}

// One token per row.
func.func @decode(
    %hk: index {gdn.name = "Hk"},
    %hv: index {gdn.name = "Hv"},
    %q: tensor<?x?xf32> {gdn.name = "q", gdn.dims = ["N", "96*Hk"]},
    %k: tensor<?x?xf32> {gdn.name = "k", gdn.dims = ["N", "96*Hk"]},
    %v: tensor<?x?xf32> {gdn.name = "v", gdn.dims = ["N", "192*Hv"]},
    %z: tensor<?x?xf32> {gdn.name = "z", gdn.dims = ["N", "192*Hv"]},
    %b: tensor<?x?xf32> {gdn.name = "b", gdn.dims = ["N", "Hv"]},
    %a: tensor<?x?xf32> {gdn.name = "a", gdn.dims = ["N", "Hv"]},
    %conv_weight: tensor<?x4xf32> {gdn.name = "conv_weight", gdn.dims = ["192*Hk + 192*Hv", "4"]},
    %a_log: tensor<?xf32> {gdn.name = "A_log", gdn.dims = ["Hv"]},
    %dt_bias: tensor<?xf32> {gdn.name = "dt_bias", gdn.dims = ["Hv"]},
    %norm_weight: tensor<192xf32> {gdn.name = "norm_weight", gdn.dims = ["192"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %conv_pool: !gdn.pool<?x?x3xf32> {gdn.name = "conv_pool", gdn.dims = ["P", "192*Hk + 192*Hv", "3"]},
    %state_pool: !gdn.pool<?x?x192x96xf32> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "192", "96"]})
    -> (tensor<?x?x192xf32> {gdn.name = "core", gdn.dims = ["N", "Hv", "192"]},
        tensor<?x?x192xf32> {gdn.name = "out", gdn.dims = ["N", "Hv", "192"]})
    attributes {gdn.entry} {
  %qh = gdn.unpack "q" flat %q heads(%hk, %hv) : tensor<?x?xf32> -> tensor<?x?x96xf32>
  %kh = gdn.unpack "k" flat %k heads(%hk, %hv) : tensor<?x?xf32> -> tensor<?x?x96xf32>
  %vh = gdn.unpack "v" flat %v heads(%hk, %hv) : tensor<?x?xf32> -> tensor<?x?x192xf32>
  %zh = gdn.unpack "z" flat %z heads(%hk, %hv) : tensor<?x?xf32> -> tensor<?x?x192xf32>
  %qc, %kc, %vc = gdn.conv1d %qh, %kh, %vh weight(%conv_weight) silu
      pool(%conv_pool) slots(%slots)
      : (tensor<?x?x96xf32>, tensor<?x?x96xf32>, tensor<?x?x192xf32>), tensor<?x4xf32>,
        !gdn.pool<?x?x3xf32>, tensor<?xi32> -> tensor<?x?x96xf32>, tensor<?x?x96xf32>, tensor<?x?x192xf32>
  %qn = gdn.l2norm %qc : tensor<?x?x96xf32> -> tensor<?x?x96xf32>
  %kn = gdn.l2norm %kc : tensor<?x?x96xf32> -> tensor<?x?x96xf32>
  %g, %beta = gdn.gates %a, %b, %a_log, %dt_bias {double_beta}
      : tensor<?x?xf32>, tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32> -> tensor<?x?xf32>, tensor<?x?xf32>
  %core = gdn.delta_rule %qn, %kn, %vc gates(%g, %beta)
      pool(%state_pool) slots(%slots)
      : tensor<?x?x96xf32>, tensor<?x?x96xf32>, tensor<?x?x192xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x192x96xf32>, tensor<?xi32> -> tensor<?x?x192xf32>
  %normed = gdn.gated_rms_norm %core, %zh, %norm_weight silu {eps = 1.0e-05 : f32}
      : tensor<?x?x192xf32>, tensor<?x?x192xf32>, tensor<192xf32> -> tensor<?x?x192xf32>
  %out = gdn.mask_sequences %normed of(%state_pool) slots(%slots)
      : tensor<?x?x192xf32>, !gdn.pool<?x?x192x96xf32>, tensor<?xi32> -> tensor<?x?x192xf32>
  return %core, %out : tensor<?x?x192xf32>, tensor<?x?x192xf32>
}
