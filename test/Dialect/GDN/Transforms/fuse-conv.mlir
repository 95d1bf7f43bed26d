// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-fuse with conv-with-rule: which kernels may convolve the rule's values where the rule takes
// them. Without the option none does.
//
// RUN: gdn-opt %s -gdn-fuse=conv-with-rule | FileCheck %s
// RUN: gdn-opt %s -gdn-fuse=conv-with-rule | gdn-opt | FileCheck %s
// RUN: gdn-opt %s -gdn-fuse | FileCheck %s --check-prefix=APART

// APART-NOT: conv_with_rule

// CHECK: gdn.kernel "convolved" conv_with_rule {
func.func @convolved(
    %q: tensor<?x?x64xf32> {gdn.name = "q", gdn.dims = ["T", "Hk", "64"]},
    %v: tensor<?x?x64xf32> {gdn.name = "v", gdn.dims = ["T", "Hv", "64"]},
    %g: tensor<?x?xf32> {gdn.name = "log_decay", gdn.dims = ["T", "Hv"]},
    %beta: tensor<?x?xf32> {gdn.name = "beta", gdn.dims = ["T", "Hv"]},
    %w: tensor<?x4xf32> {gdn.name = "conv_weight", gdn.dims = ["64*Hv", "4"]},
    %windows: !gdn.pool<?x?x3xf32> {gdn.name = "conv_pool", gdn.dims = ["P", "64*Hv", "3"]},
    %pool: !gdn.pool<?x?x64x64xf32> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "64", "64"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %cu: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]})
    -> (tensor<?x?x64xf32> {gdn.name = "out", gdn.dims = ["T", "Hv", "64"]}) attributes {gdn.entry} {
  %values = gdn.conv1d %v weight(%w) silu pool(%windows) slots(%slots) sequences(%cu)
      : (tensor<?x?x64xf32>), tensor<?x4xf32>, !gdn.pool<?x?x3xf32>, tensor<?xi32>, tensor<?xi32>
        -> tensor<?x?x64xf32>
  %o = gdn.delta_rule %q, %q, %values gates(%g, %beta) pool(%pool) slots(%slots) sequences(%cu)
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?x64xf32>
  return %o : tensor<?x?x64xf32>
}

// Values that are ready.
// CHECK: gdn.kernel "ready" {
func.func @ready(
    %q: tensor<?x?x64xf32> {gdn.name = "q", gdn.dims = ["T", "Hk", "64"]},
    %v: tensor<?x?x64xf32> {gdn.name = "v", gdn.dims = ["T", "Hv", "64"]},
    %g: tensor<?x?xf32> {gdn.name = "log_decay", gdn.dims = ["T", "Hv"]},
    %beta: tensor<?x?xf32> {gdn.name = "beta", gdn.dims = ["T", "Hv"]},
    %pool: !gdn.pool<?x?x64x64xf32> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "64", "64"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %cu: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]})
    -> (tensor<?x?x64xf32> {gdn.name = "out", gdn.dims = ["T", "Hv", "64"]}) attributes {gdn.entry} {
  %o = gdn.delta_rule %q, %q, %v gates(%g, %beta) pool(%pool) slots(%slots) sequences(%cu)
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?x64xf32>
  return %o : tensor<?x?x64xf32>
}
