// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-fuse with norm-with-rule: which kernels have their gated norm where the
// outputs of the rule are made. Without the option none has.
//
// RUN: gdn-opt %s -gdn-fuse=norm-with-rule | FileCheck %s
// RUN: gdn-opt %s -gdn-fuse | FileCheck %s --check-prefix=APART

// APART-NOT: norm_with_rule

// Casts may stand between the two.
// CHECK: gdn.kernel "alone" norm_with_rule {
func.func @alone(
    %q: tensor<?x?x64xbf16> {gdn.name = "q", gdn.dims = ["T", "Hk", "64"]},
    %k: tensor<?x?x64xbf16> {gdn.name = "k", gdn.dims = ["T", "Hk", "64"]},
    %v: tensor<?x?x64xbf16> {gdn.name = "v", gdn.dims = ["T", "Hv", "64"]},
    %g: tensor<?x?xf32> {gdn.name = "log_decay", gdn.dims = ["T", "Hv"]},
    %beta: tensor<?x?xf32> {gdn.name = "beta", gdn.dims = ["T", "Hv"]},
    %z: tensor<?x?x64xbf16> {gdn.name = "z", gdn.dims = ["T", "Hv", "64"]},
    %w: tensor<64xbf16> {gdn.name = "norm_weight", gdn.dims = ["64"]},
    %pool: !gdn.pool<?x?x64x64xf32> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "64", "64"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %cu: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]})
    -> (tensor<?x?x64xbf16> {gdn.name = "out", gdn.dims = ["T", "Hv", "64"]}) attributes {gdn.entry} {
  %o = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%pool) slots(%slots) sequences(%cu)
      : tensor<?x?x64xbf16>, tensor<?x?x64xbf16>, tensor<?x?x64xbf16>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?x64xf32>
  %c = gdn.cast %o : tensor<?x?x64xf32> -> tensor<?x?x64xbf16>
  %y = gdn.gated_rms_norm %c, %z, %w silu
      : tensor<?x?x64xbf16>, tensor<?x?x64xbf16>, tensor<64xbf16> -> tensor<?x?x64xbf16>
  %out = gdn.mask_sequences %y of(%pool) slots(%slots) sequences(%cu)
      : tensor<?x?x64xbf16>, !gdn.pool<?x?x64x64xf32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?x64xbf16>
  return %out : tensor<?x?x64xbf16>
}

// The output is a result as well: it goes to memory anyway.
// CHECK: gdn.kernel "both" {
func.func @both(
    %q: tensor<?x?x64xbf16> {gdn.name = "q", gdn.dims = ["T", "Hk", "64"]},
    %k: tensor<?x?x64xbf16> {gdn.name = "k", gdn.dims = ["T", "Hk", "64"]},
    %v: tensor<?x?x64xbf16> {gdn.name = "v", gdn.dims = ["T", "Hv", "64"]},
    %g: tensor<?x?xf32> {gdn.name = "log_decay", gdn.dims = ["T", "Hv"]},
    %beta: tensor<?x?xf32> {gdn.name = "beta", gdn.dims = ["T", "Hv"]},
    %z: tensor<?x?x64xbf16> {gdn.name = "z", gdn.dims = ["T", "Hv", "64"]},
    %w: tensor<64xbf16> {gdn.name = "norm_weight", gdn.dims = ["64"]},
    %pool: !gdn.pool<?x?x64x64xf32> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "64", "64"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %cu: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]})
    -> (tensor<?x?x64xbf16> {gdn.name = "core", gdn.dims = ["T", "Hv", "64"]},
        tensor<?x?x64xbf16> {gdn.name = "out", gdn.dims = ["T", "Hv", "64"]}) attributes {gdn.entry} {
  %o = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%pool) slots(%slots) sequences(%cu)
      : tensor<?x?x64xbf16>, tensor<?x?x64xbf16>, tensor<?x?x64xbf16>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?x64xbf16>
  %y = gdn.gated_rms_norm %o, %z, %w silu
      : tensor<?x?x64xbf16>, tensor<?x?x64xbf16>, tensor<64xbf16> -> tensor<?x?x64xbf16>
  return %o, %y : tensor<?x?x64xbf16>, tensor<?x?x64xbf16>
}

// What the output is rounded to on its way would be f32, which has no place.
// CHECK: gdn.kernel "wide" {
func.func @wide(
    %q: tensor<?x?x64xbf16> {gdn.name = "q", gdn.dims = ["T", "Hk", "64"]},
    %k: tensor<?x?x64xbf16> {gdn.name = "k", gdn.dims = ["T", "Hk", "64"]},
    %v: tensor<?x?x64xbf16> {gdn.name = "v", gdn.dims = ["T", "Hv", "64"]},
    %g: tensor<?x?xf32> {gdn.name = "log_decay", gdn.dims = ["T", "Hv"]},
    %beta: tensor<?x?xf32> {gdn.name = "beta", gdn.dims = ["T", "Hv"]},
    %z: tensor<?x?x64xbf16> {gdn.name = "z", gdn.dims = ["T", "Hv", "64"]},
    %w: tensor<64xbf16> {gdn.name = "norm_weight", gdn.dims = ["64"]},
    %pool: !gdn.pool<?x?x64x64xf32> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "64", "64"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %cu: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]})
    -> (tensor<?x?x64xf32> {gdn.name = "out", gdn.dims = ["T", "Hv", "64"]}) attributes {gdn.entry} {
  %o = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%pool) slots(%slots) sequences(%cu)
      : tensor<?x?x64xbf16>, tensor<?x?x64xbf16>, tensor<?x?x64xbf16>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?x64xf32>
  %y = gdn.gated_rms_norm %o, %z, %w silu
      : tensor<?x?x64xf32>, tensor<?x?x64xbf16>, tensor<64xbf16> -> tensor<?x?x64xf32>
  return %y : tensor<?x?x64xf32>
}
