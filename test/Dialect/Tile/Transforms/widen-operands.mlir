// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-tile-widen-operands: products of 16-bit operands take f32, each tile is
// widened once, and a transpose moves behind the widening.
//
// RUN: gdn-tile-opt %s -gdn-tile-widen-operands -cse | FileCheck %s
// RUN: gdn-tile-opt %s -gdn-tile-widen-operands -gdn-tile-fuse-rows -cse | FileCheck %s --check-prefix=FUSED

// CHECK-LABEL: func.func @scores
//  CHECK-SAME:   %[[Q:[a-z0-9]+]]: vector<16x8xbf16>, %[[K:[a-z0-9]+]]: vector<16x8xbf16>
//   CHECK-DAG:   %[[QW:.+]] = gdn_tile.map_rows %[[Q]] : vector<16x8xbf16> -> vector<16x8xf32>
//   CHECK-DAG:   %[[KW:.+]] = gdn_tile.map_rows %[[K]] : vector<16x8xbf16> -> vector<16x8xf32>
//   CHECK-DAG:   %[[KT:.+]] = gdn_tile.transpose %[[KW]] : vector<16x8xf32> -> vector<8x16xf32>
//       CHECK:   gdn_tile.matmul %[[QW]], %[[KT]] : vector<16x8xf32>, vector<8x16xf32> -> vector<16x16xf32>
//       CHECK:   gdn_tile.matmul %[[KW]], %[[KT]] : vector<16x8xf32>, vector<8x16xf32> -> vector<16x16xf32>
func.func @scores(%q: vector<16x8xbf16>, %k: vector<16x8xbf16>)
    -> (vector<16x16xf32>, vector<16x16xf32>) {
  %kt = gdn_tile.transpose %k : vector<16x8xbf16> -> vector<8x16xbf16>
  %qk = gdn_tile.matmul %q, %kt : vector<16x8xbf16>, vector<8x16xbf16> -> vector<16x16xf32>
  %kk = gdn_tile.matmul %k, %kt : vector<16x8xbf16>, vector<8x16xbf16> -> vector<16x16xf32>
  return %qk, %kk : vector<16x16xf32>, vector<16x16xf32>
}

// The rounding stays, in one pass with the widening.
// FUSED-LABEL: func.func @rounded
//       FUSED:   gdn_tile.map_rows %{{.+}} : vector<16x16xf32> -> vector<16x16xf32>
//       FUSED:     arith.truncf %{{.+}} : vector<16xf32> to vector<16xf16>
//       FUSED:     arith.extf %{{.+}} : vector<16xf16> to vector<16xf32>
//       FUSED:   gdn_tile.matmul %{{.+}} : vector<16x16xf32>, vector<16x16xf32> -> vector<16x16xf32>
func.func @rounded(%x: vector<16x16xf32>) -> vector<16x16xf32> {
  %n = gdn_tile.map_rows %x : vector<16x16xf32> -> vector<16x16xf16> {
  ^bb0(%i: index, %row: vector<16xf32>):
    %r = arith.truncf %row : vector<16xf32> to vector<16xf16>
    gdn_tile.yield %r : vector<16xf16>
  }
  %y = gdn_tile.matmul %n, %n : vector<16x16xf16>, vector<16x16xf16> -> vector<16x16xf32>
  return %y : vector<16x16xf32>
}

// What is f32 stays as it is.
// CHECK-LABEL: func.func @wide
//   CHECK-NOT:   map_rows
func.func @wide(%x: vector<16x16xf32>) -> vector<16x16xf32> {
  %y = gdn_tile.matmul %x, %x : vector<16x16xf32>, vector<16x16xf32> -> vector<16x16xf32>
  return %y : vector<16x16xf32>
}
