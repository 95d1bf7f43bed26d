// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_tile.tokens, of a loop over the tokens of a sequence: one by one, several at once where
// deltas are kept, and with a bound.
//
// RUN: gdn-tile-opt %s | gdn-tile-opt | FileCheck %s
// RUN: gdn-tile-opt -mlir-print-op-generic %s | gdn-tile-opt | FileCheck %s

// CHECK-LABEL: func.func @one_by_one(
//       CHECK:   } {gdn_tile.tokens}
func.func @one_by_one(%m: vector<16x16xf32>, %k: vector<1x16xf32>, %g: vector<1xf32>,
                      %begin: index, %end: index) {
  %c1 = arith.constant 1 : index
  %last = scf.for %t = %begin to %end step %c1 iter_args(%s = %m) -> (vector<16x16xf32>) {
    %new, %o = gdn_tile.delta_scan %s, %k, %k, %k gates(%g, %g) valid(%c1)
        : vector<16x16xf32>, vector<1x16xf32>, vector<1x16xf32>, vector<1xf32>
    scf.yield %new : vector<16x16xf32>
  } {gdn_tile.tokens}
  return
}

// The end is the smaller of that of the sequence and of the bound.
// CHECK-LABEL: func.func @at_most_eight(
//       CHECK:   } {gdn_tile.tokens = 8 : i64}
func.func @at_most_eight(%m: vector<16x16xf32>, %k: vector<8x16xf32>, %g: vector<8xf32>,
                         %begin: index, %end: index) {
  %c8 = arith.constant 8 : index
  %bound = arith.addi %begin, %c8 : index
  %to = arith.minsi %end, %bound : index
  scf.for %t = %begin to %to step %c8 {
    %new, %o, %d = gdn_tile.delta_scan %m, %k, %k, %k gates(%g, %g) valid(%c8)
        : vector<16x16xf32>, vector<8x16xf32>, vector<8x16xf32>, vector<8xf32>, deltas
  } {gdn_tile.tokens = 8 : i64}
  return
}

// What the bounds are cannot be seen, or is less than was said.
// CHECK-LABEL: func.func @bounds(
// CHECK-COUNT-2:   } {gdn_tile.tokens = 8 : i64}
func.func @bounds(%begin: index, %end: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %t = %begin to %end step %c1 {
  } {gdn_tile.tokens = 8 : i64}
  scf.for %t = %c0 to %c4 step %c1 {
  } {gdn_tile.tokens = 8 : i64}
  return
}
