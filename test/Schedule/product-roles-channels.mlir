// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Roles of a chunk with a decay per channel make its products and inverse by ops of their own. So they
// are there where maps between these are what the roles do, and else a remark says which map is another.
//
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile="precision=mixed-io chunk-stages=staged variants='fused-channels:fused=1,staged:' value-heads" -canonicalize -cse -gdn-tile-fuse-rows -cse -o %t
// RUN: gdn-opt %t -gdn-schedule-tile-products="warps=12 warpgroups" | FileCheck %s
// RUN: sed '/map_rows %%key_scores/,/yield/s/arith.mulf/arith.addf/' %t | gdn-opt -mlir-print-op-on-diagnostic=false -gdn-schedule-tile-products="warps=12 warpgroups" 2>&1 | FileCheck %s --check-prefixes=OTHER,TRIANGLE
// RUN: sed '/tri_inverse/,/yield/s/arith.mulf/arith.addf/' %t | gdn-opt -mlir-print-op-on-diagnostic=false -gdn-schedule-tile-products="warps=12 warpgroups" 2>&1 | FileCheck %s --check-prefixes=OTHER,SOLVE
// RUN: sed '/tri_inverse/,/yield/s/mulf %%\(.*\), %%[0-9]*/mulf %%\1, %%\1/' %t | gdn-opt -mlir-print-op-on-diagnostic=false -gdn-schedule-tile-products="warps=12 warpgroups" 2>&1 | FileCheck %s --check-prefixes=OTHER,SOLVE
// RUN: sed '/map_rows %%query_scores/,/yield/s/arith.mulf/arith.addf/' %t | gdn-opt -mlir-print-op-on-diagnostic=false -gdn-schedule-tile-products="warps=12 warpgroups" 2>&1 | FileCheck %s --check-prefixes=OTHER,SCORES

// TRIANGLE: remark: a chunk with a decay per channel has no roles: expects rows of the scores of keys times strengths, rounded once to f16
//    SOLVE: remark: a chunk with a decay per channel has no roles: expects columns of the inverse times the same strengths, rounded once to f16
//   SCORES: remark: a chunk with a decay per channel has no roles: expects scores of queries times a number, rounded once to f16

// Only from regions of the workspace may they spill, not from arguments that are loaded whole.
// RUN: sed '/gdn_tile.load .*vector<32x128xf32>/s/ rows([^)]*)//' %t | gdn-opt -gdn-schedule-tile-products="warps=12 warpgroups" | FileCheck %s

// CHECK-LABEL: func.func @prefill__inter_chunk_fused(
//   CHECK-NOT:   gdn_gpu.allow
//       CHECK:   gdn_gpu.decay_within
//       CHECK:   gdn_gpu.block_inverses
//    OTHER: remark: 'prefill__inter_chunk_fused' has decays per channel of 32 tokens for 8 warps, which have 16 each without roles

// It stays a tile program, which another variant takes the place of.
// OTHER-LABEL: func.func @prefill__inter_chunk_fused(
//       OTHER:   gdn_tile.decay_operands
//   OTHER-NOT:   gdn_gpu.roles
// OTHER-LABEL: func.func @prefill__intra_chunk(
func.func @prefill(
    %q: tensor<?x?x128xbf16> {gdn.name = "q", gdn.dims = ["T", "Hk", "128"]},
    %k: tensor<?x?x128xbf16> {gdn.name = "k", gdn.dims = ["T", "Hk", "128"]},
    %v: tensor<?x?x128xbf16> {gdn.name = "v", gdn.dims = ["T", "Hv", "128"]},
    %g: tensor<?x?x128xf32> {gdn.name = "g", gdn.dims = ["T", "Hv", "128"]},
    %beta: tensor<?x?xf32> {gdn.name = "beta", gdn.dims = ["T", "Hv"]},
    %pool: !gdn.pool<?x?x128x128xf32> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "128", "128"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %cu: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]})
    -> (tensor<?x?x128xbf16> {gdn.name = "core", gdn.dims = ["T", "Hv", "128"]})
    attributes {gdn.entry} {
  %o = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%pool) slots(%slots) sequences(%cu)
      : tensor<?x?x128xbf16>, tensor<?x?x128xbf16>, tensor<?x?x128xbf16>, tensor<?x?x128xf32>,
        tensor<?x?xf32>, !gdn.pool<?x?x128x128xf32>, tensor<?xi32>, tensor<?xi32>
        -> tensor<?x?x128xbf16>
  return %o : tensor<?x?x128xbf16>
}
