// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops on whole matrices: parse, print, and print again, in both forms.
//
// RUN: gdn-tile-opt %s | gdn-tile-opt | FileCheck %s
// RUN: gdn-tile-opt -mlir-print-op-generic %s | gdn-tile-opt | FileCheck %s

// CHECK-LABEL: func.func @products
//  CHECK-SAME:   %[[K:[a-z0-9]+]]: vector<64x128xf32>, %[[X:[a-z0-9]+]]: vector<64x32xf32>, %[[S:[a-z0-9]+]]: vector<128x32xf32>
//       CHECK:   %[[KS:.+]] = gdn_tile.matmul %[[K]], %[[S]] : vector<64x128xf32>, vector<128x32xf32> -> vector<64x32xf32>
//       CHECK:   gdn_tile.matmul transpose %[[K]], %[[KS]] acc(%[[S]] : vector<128x32xf32>)
//  CHECK-SAME:     : vector<64x128xf32>, vector<64x32xf32> -> vector<128x32xf32>
func.func @products(%k: vector<64x128xf32>, %x: vector<64x32xf32>,
                    %s: vector<128x32xf32>) -> vector<128x32xf32> {
  %ks = gdn_tile.matmul %k, %s
      : vector<64x128xf32>, vector<128x32xf32> -> vector<64x32xf32>
  %next = gdn_tile.matmul transpose %k, %ks acc(%s : vector<128x32xf32>)
      : vector<64x128xf32>, vector<64x32xf32> -> vector<128x32xf32>
  return %next : vector<128x32xf32>
}

// Operands may be narrow; sums are f32.
// CHECK-LABEL: func.func @narrow
//       CHECK:   gdn_tile.matmul %{{.+}}, %{{.+}} : vector<16x8xbf16>, vector<8x16xbf16> -> vector<16x16xf32>
func.func @narrow(%a: vector<16x8xbf16>, %b: vector<8x16xbf16>) -> vector<16x16xf32> {
  %c = gdn_tile.matmul %a, %b
      : vector<16x8xbf16>, vector<8x16xbf16> -> vector<16x16xf32>
  return %c : vector<16x16xf32>
}

// Where a triangle makes half of the work needless.
// CHECK-LABEL: func.func @triangles
//       CHECK:   %[[P:.+]] = gdn_tile.matmul %{{.+}}, %{{.+}} {lower_result}
//       CHECK:   gdn_tile.matmul %[[P]], %{{.+}} {lower_lhs}
func.func @triangles(%a: vector<16x8xf32>, %b: vector<8x16xf32>, %x: vector<16x8xf32>)
    -> vector<16x8xf32> {
  %p = gdn_tile.matmul %a, %b {lower_result}
      : vector<16x8xf32>, vector<8x16xf32> -> vector<16x16xf32>
  %y = gdn_tile.matmul %p, %x {lower_lhs}
      : vector<16x16xf32>, vector<16x8xf32> -> vector<16x8xf32>
  return %y : vector<16x8xf32>
}

// CHECK-LABEL: func.func @others
//       CHECK:   gdn_tile.transpose %{{.+}} : vector<16x8xf16> -> vector<8x16xf16>
//       CHECK:   gdn_tile.tri_inverse %{{.+}} : vector<64x64xf32>
func.func @others(%a: vector<16x8xf16>, %l: vector<64x64xf32>)
    -> (vector<8x16xf16>, vector<64x64xf32>) {
  %t = gdn_tile.transpose %a : vector<16x8xf16> -> vector<8x16xf16>
  %i = gdn_tile.tri_inverse %l : vector<64x64xf32>
  return %t, %i : vector<8x16xf16>, vector<64x64xf32>
}

// CHECK-LABEL: func.func @narrow_inverse
//       CHECK:   gdn_tile.tri_inverse %{{.+}} : vector<32x32xf16>
func.func @narrow_inverse(%l: vector<32x32xf16>) -> vector<32x32xf16> {
  %i = gdn_tile.tri_inverse %l : vector<32x32xf16>
  return %i : vector<32x32xf16>
}
