// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The layer of Qwen3.5: q, k and v in one projection, head-major, and z, b and a
// on their own. Heads of 128; float32, as the golden activations were recorded.

// Rows of any length; row n continues from the state in slots[n].
func.func @prefill(
    %hk: index {gdn.name = "Hk"},
    %hv: index {gdn.name = "Hv"},
    %qkv: tensor<?x?xf32> {gdn.name = "qkv", gdn.dims = ["T", "256*Hk + 128*Hv"]},
    %z: tensor<?x?xf32> {gdn.name = "z", gdn.dims = ["T", "128*Hv"]},
    %b: tensor<?x?xf32> {gdn.name = "b", gdn.dims = ["T", "Hv"]},
    %a: tensor<?x?xf32> {gdn.name = "a", gdn.dims = ["T", "Hv"]},
    %conv_weight: tensor<?x4xf32> {gdn.name = "conv_weight", gdn.dims = ["256*Hk + 128*Hv", "4"]},
    %a_log: tensor<?xf32> {gdn.name = "A_log", gdn.dims = ["Hv"]},
    %dt_bias: tensor<?xf32> {gdn.name = "dt_bias", gdn.dims = ["Hv"]},
    %norm_weight: tensor<128xf32> {gdn.name = "norm_weight", gdn.dims = ["128"]},
    %cu_seqlens: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %conv_pool: !gdn.pool<?x?x3xf32> {gdn.name = "conv_pool", gdn.dims = ["P", "256*Hk + 128*Hv", "3"]},
    %state_pool: !gdn.pool<?x?x128x128xf32> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "128", "128"]})
    -> (tensor<?x?x128xf32> {gdn.name = "core", gdn.dims = ["T", "Hv", "128"]},
        tensor<?x?x128xf32> {gdn.name = "out", gdn.dims = ["T", "Hv", "128"]})
    attributes {gdn.entry} {
  %q, %k, %v = gdn.unpack "qkv" flat %qkv heads(%hk, %hv)
      : tensor<?x?xf32> -> tensor<?x?x128xf32>, tensor<?x?x128xf32>, tensor<?x?x128xf32>
  %zh = gdn.unpack "z" flat %z heads(%hk, %hv) : tensor<?x?xf32> -> tensor<?x?x128xf32>
  %qc, %kc, %vc = gdn.conv1d %q, %k, %v weight(%conv_weight) silu
      pool(%conv_pool) slots(%slots) sequences(%cu_seqlens)
      : (tensor<?x?x128xf32>, tensor<?x?x128xf32>, tensor<?x?x128xf32>), tensor<?x4xf32>,
        !gdn.pool<?x?x3xf32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?x128xf32>, tensor<?x?x128xf32>, tensor<?x?x128xf32>
  %qn = gdn.l2norm %qc : tensor<?x?x128xf32> -> tensor<?x?x128xf32>
  %kn = gdn.l2norm %kc : tensor<?x?x128xf32> -> tensor<?x?x128xf32>
  %g, %beta = gdn.gates %a, %b, %a_log, %dt_bias
      : tensor<?x?xf32>, tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32> -> tensor<?x?xf32>, tensor<?x?xf32>
  %core = gdn.delta_rule %qn, %kn, %vc gates(%g, %beta)
      pool(%state_pool) slots(%slots) sequences(%cu_seqlens)
      : tensor<?x?x128xf32>, tensor<?x?x128xf32>, tensor<?x?x128xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x128x128xf32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?x128xf32>
  %normed = gdn.gated_rms_norm %core, %zh, %norm_weight silu
      : tensor<?x?x128xf32>, tensor<?x?x128xf32>, tensor<128xf32> -> tensor<?x?x128xf32>
  %out = gdn.mask_sequences %normed of(%state_pool) slots(%slots) sequences(%cu_seqlens)
      : tensor<?x?x128xf32>, !gdn.pool<?x?x128x128xf32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?x128xf32>
  return %core, %out : tensor<?x?x128xf32>, tensor<?x?x128xf32>
}

// One token per row.
func.func @decode(
    %hk: index {gdn.name = "Hk"},
    %hv: index {gdn.name = "Hv"},
    %qkv: tensor<?x?xf32> {gdn.name = "qkv", gdn.dims = ["N", "256*Hk + 128*Hv"]},
    %z: tensor<?x?xf32> {gdn.name = "z", gdn.dims = ["N", "128*Hv"]},
    %b: tensor<?x?xf32> {gdn.name = "b", gdn.dims = ["N", "Hv"]},
    %a: tensor<?x?xf32> {gdn.name = "a", gdn.dims = ["N", "Hv"]},
    %conv_weight: tensor<?x4xf32> {gdn.name = "conv_weight", gdn.dims = ["256*Hk + 128*Hv", "4"]},
    %a_log: tensor<?xf32> {gdn.name = "A_log", gdn.dims = ["Hv"]},
    %dt_bias: tensor<?xf32> {gdn.name = "dt_bias", gdn.dims = ["Hv"]},
    %norm_weight: tensor<128xf32> {gdn.name = "norm_weight", gdn.dims = ["128"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %conv_pool: !gdn.pool<?x?x3xf32> {gdn.name = "conv_pool", gdn.dims = ["P", "256*Hk + 128*Hv", "3"]},
    %state_pool: !gdn.pool<?x?x128x128xf32> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "128", "128"]})
    -> (tensor<?x?x128xf32> {gdn.name = "core", gdn.dims = ["N", "Hv", "128"]},
        tensor<?x?x128xf32> {gdn.name = "out", gdn.dims = ["N", "Hv", "128"]})
    attributes {gdn.entry} {
  %q, %k, %v = gdn.unpack "qkv" flat %qkv heads(%hk, %hv)
      : tensor<?x?xf32> -> tensor<?x?x128xf32>, tensor<?x?x128xf32>, tensor<?x?x128xf32>
  %zh = gdn.unpack "z" flat %z heads(%hk, %hv) : tensor<?x?xf32> -> tensor<?x?x128xf32>
  %qc, %kc, %vc = gdn.conv1d %q, %k, %v weight(%conv_weight) silu
      pool(%conv_pool) slots(%slots)
      : (tensor<?x?x128xf32>, tensor<?x?x128xf32>, tensor<?x?x128xf32>), tensor<?x4xf32>,
        !gdn.pool<?x?x3xf32>, tensor<?xi32> -> tensor<?x?x128xf32>, tensor<?x?x128xf32>, tensor<?x?x128xf32>
  %qn = gdn.l2norm %qc : tensor<?x?x128xf32> -> tensor<?x?x128xf32>
  %kn = gdn.l2norm %kc : tensor<?x?x128xf32> -> tensor<?x?x128xf32>
  %g, %beta = gdn.gates %a, %b, %a_log, %dt_bias
      : tensor<?x?xf32>, tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32> -> tensor<?x?xf32>, tensor<?x?xf32>
  %core = gdn.delta_rule %qn, %kn, %vc gates(%g, %beta)
      pool(%state_pool) slots(%slots)
      : tensor<?x?x128xf32>, tensor<?x?x128xf32>, tensor<?x?x128xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x128x128xf32>, tensor<?xi32> -> tensor<?x?x128xf32>
  %normed = gdn.gated_rms_norm %core, %zh, %norm_weight silu
      : tensor<?x?x128xf32>, tensor<?x?x128xf32>, tensor<128xf32> -> tensor<?x?x128xf32>
  %out = gdn.mask_sequences %normed of(%state_pool) slots(%slots)
      : tensor<?x?x128xf32>, !gdn.pool<?x?x128x128xf32>, tensor<?xi32> -> tensor<?x?x128xf32>
  return %core, %out : tensor<?x?x128xf32>, tensor<?x?x128xf32>
}
