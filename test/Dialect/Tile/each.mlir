// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_tile.each: parse, print, and print again, in both forms.
//
// RUN: gdn-tile-opt %s | gdn-tile-opt | FileCheck %s
// RUN: gdn-tile-opt -mlir-print-op-generic %s | gdn-tile-opt | FileCheck %s

// CHECK-LABEL: func.func @solve
//  CHECK-SAME:   %[[A:[a-z0-9]+]]: vector<64x64xf16>, %[[B:[a-z0-9]+]]: vector<64x64xf16>
//       CHECK:   %[[T:.+]]:2 = gdn_tile.each 2 of %[[A]], %[[B]] : vector<64x64xf16>, vector<64x64xf16> -> vector<64x64xf16>, vector<64x64xf16> {
//  CHECK-NEXT:   ^bb0(%{{.+}}: index, %[[M:.+]]: vector<64x64xf16>):
//  CHECK-NEXT:     %[[I:.+]] = gdn_tile.tri_inverse %[[M]]
//  CHECK-NEXT:     gdn_tile.yield %[[I]] : vector<64x64xf16>
//       CHECK:   return %[[T]]#0, %[[T]]#1
func.func @solve(%a: vector<64x64xf16>, %b: vector<64x64xf16>)
    -> (vector<64x64xf16>, vector<64x64xf16>) {
  %t:2 = gdn_tile.each 2 of %a, %b : vector<64x64xf16>, vector<64x64xf16>
      -> vector<64x64xf16>, vector<64x64xf16> {
  ^bb0(%i: index, %m: vector<64x64xf16>):
    %inverse = gdn_tile.tri_inverse %m : vector<64x64xf16>
    gdn_tile.yield %inverse : vector<64x64xf16>
  }
  return %t#0, %t#1 : vector<64x64xf16>, vector<64x64xf16>
}

// Nothing in, nothing out: what is done is what the body stores.
// CHECK-LABEL: func.func @zeros
//       CHECK:   gdn_tile.each 4 {
//  CHECK-NEXT:   ^bb0(%[[I:.+]]: index):
//       CHECK:     gdn_tile.store %{{.+}}, %{{.+}}[%[[I]],
func.func @zeros(%x: memref<4x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  gdn_tile.each 4 {
  ^bb0(%i: index):
    %t = gdn_tile.fill %zero : f32 -> vector<8xf32>
    gdn_tile.store %t, %x[%i, %c0] dims [1] : vector<8xf32>, memref<4x8xf32>
  }
  return
}
