// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops on log decays, and sums over blocks: parse, print, and print again, in both forms.
//
// RUN: gdn-tile-opt %s | gdn-tile-opt | FileCheck %s
// RUN: gdn-tile-opt -mlir-print-op-generic %s | gdn-tile-opt | FileCheck %s

// One decay per token, or one per token and channel.
// CHECK-LABEL: func.func @sums
//       CHECK:   gdn_tile.prefix_sum %{{.+}} : vector<64xf32>
//       CHECK:   gdn_tile.suffix_sum %{{.+}} : vector<64xf32>
//       CHECK:   %[[SUMS:.+]] = gdn_tile.prefix_sum %{{.+}} : vector<16x8xf32>
//       CHECK:   gdn_tile.suffix_sum %{{.+}} : vector<16x8xf32>
//       CHECK:   gdn_tile.extract_row %[[SUMS]][15] : vector<16x8xf32> -> vector<8xf32>
func.func @sums(%g: vector<64xf32>, %c: vector<16x8xf32>)
    -> (vector<64xf32>, vector<64xf32>, vector<16x8xf32>, vector<8xf32>) {
  %p = gdn_tile.prefix_sum %g : vector<64xf32>
  %s = gdn_tile.suffix_sum %g : vector<64xf32>
  %ps = gdn_tile.prefix_sum %c : vector<16x8xf32>
  %ss = gdn_tile.suffix_sum %c : vector<16x8xf32>
  %last = gdn_tile.extract_row %ps[15] : vector<16x8xf32> -> vector<8xf32>
  return %p, %s, %ss, %last
      : vector<64xf32>, vector<64xf32>, vector<16x8xf32>, vector<8xf32>
}

// CHECK-LABEL: func.func @scores
//  CHECK-SAME:   %[[Q:[a-z0-9]+]]: vector<16x8xf32>, %[[K:[a-z0-9]+]]: vector<16x8xf32>, %[[G:[a-z0-9]+]]: vector<16x8xf32>
//       CHECK:   gdn_tile.decay_scores %[[Q]], %[[K]] decay(%[[G]]) : vector<16x8xf32> -> vector<16x16xf32>
func.func @scores(%q: vector<16x8xf32>, %k: vector<16x8xf32>, %g: vector<16x8xf32>)
    -> (vector<16x16xf32>, vector<16x16xf32>) {
  %p, %l = gdn_tile.decay_scores %q, %k decay(%g) : vector<16x8xf32> -> vector<16x16xf32>
  return %p, %l : vector<16x16xf32>, vector<16x16xf32>
}

// CHECK-LABEL: func.func @matrix
//       CHECK:   gdn_tile.decay_matrix %{{.+}} : vector<16xf32> -> vector<16x16xf32>
func.func @matrix(%g: vector<16xf32>) -> vector<16x16xf32> {
  %e = gdn_tile.decay_matrix %g : vector<16xf32> -> vector<16x16xf32>
  return %e : vector<16x16xf32>
}

// CHECK-LABEL: func.func @halves
//       CHECK:   gdn_tile.sum_of_pair %{{.+}} : vector<64xf32>
func.func @halves(%own: vector<64xf32>) -> vector<64xf32>
    attributes {gdn_tile.stage = {grid = ["2"], same_chunks = 2 : i64}} {
  %all = gdn_tile.sum_of_pair %own : vector<64xf32>
  return %all : vector<64xf32>
}

// CHECK-LABEL: func.func @operands
//  CHECK-SAME:   %[[Q:[a-z0-9]+]]: vector<16x32xf16>, %[[K:[a-z0-9]+]]: vector<16x32xf16>, %[[G:[a-z0-9]+]]: vector<16x32xf32>
//       CHECK:   gdn_tile.decay_operands %[[Q]], %[[K]] decay(%[[G]]) : vector<16x32xf16> -> vector<16x16xf32>, vector<16x32xf16>, vector<32xf32>
func.func @operands(%q: vector<16x32xf16>, %k: vector<16x32xf16>, %g: vector<16x32xf32>)
    -> (vector<16x16xf32>, vector<16x32xf16>, vector<32xf32>) {
  %p, %l, %fq, %fk, %te, %end = gdn_tile.decay_operands %q, %k decay(%g)
      : vector<16x32xf16> -> vector<16x16xf32>, vector<16x32xf16>, vector<32xf32>
  return %p, %te, %end : vector<16x16xf32>, vector<16x32xf16>, vector<32xf32>
}
