// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_tile.map_rows and gdn_tile.yield: parse, print, and print again, in both forms.
//
// RUN: gdn-tile-opt %s | gdn-tile-opt | FileCheck %s
// RUN: gdn-tile-opt -mlir-print-op-generic %s | gdn-tile-opt | FileCheck %s

// Rows are vectors for a rank-2 tile, scalars for a rank-1 tile; a value from
// outside is used.
// CHECK-LABEL: func.func @mixed_ranks
//  CHECK-SAME:   %[[X:[a-z0-9]+]]: vector<16x128xf32>, %[[S:[a-z0-9]+]]: vector<16xf32>, %[[BIAS:[a-z0-9]+]]: vector<128xf32>
//       CHECK:   gdn_tile.map_rows %[[X]], %[[S]] : vector<16x128xf32>, vector<16xf32>
//  CHECK-SAME:     -> vector<16x128xf32>, vector<16xf32> {
//       CHECK:   ^bb0(%{{.+}}: index, %[[ROW:.+]]: vector<128xf32>, %[[FACTOR:.+]]: f32):
//       CHECK:     %[[SUM:.+]] = arith.addf %[[ROW]], %[[BIAS]]
//       CHECK:     gdn_tile.yield %[[SUM]], %[[FACTOR]] : vector<128xf32>, f32
func.func @mixed_ranks(%x: vector<16x128xf32>, %s: vector<16xf32>,
                       %bias: vector<128xf32>)
    -> (vector<16x128xf32>, vector<16xf32>) {
  %y:2 = gdn_tile.map_rows %x, %s : vector<16x128xf32>, vector<16xf32>
      -> vector<16x128xf32>, vector<16xf32> {
  ^bb0(%i: index, %row: vector<128xf32>, %factor: f32):
    %sum = arith.addf %row, %bias : vector<128xf32>
    gdn_tile.yield %sum, %factor : vector<128xf32>, f32
  }
  return %y#0, %y#1 : vector<16x128xf32>, vector<16xf32>
}

// No input: rows from their number.
// CHECK-LABEL: func.func @no_input
//       CHECK:   gdn_tile.map_rows -> vector<4xf32> {
//       CHECK:   ^bb0(%{{.+}}: index):
func.func @no_input() -> vector<4xf32> {
  %y = gdn_tile.map_rows -> vector<4xf32> {
  ^bb0(%i: index):
    %n = arith.index_cast %i : index to i32
    %f = arith.sitofp %n : i32 to f32
    gdn_tile.yield %f : f32
  }
  return %y : vector<4xf32>
}
