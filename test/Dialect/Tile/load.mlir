// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_tile.load: parse, print, and print again, in both forms.
//
// RUN: gdn-tile-opt %s | gdn-tile-opt | FileCheck %s
// RUN: gdn-tile-opt -mlir-print-op-generic %s | gdn-tile-opt | FileCheck %s

!rows = memref<?x?x128xbf16, strided<[?, ?, 1], offset: ?>>

// A tile whose dimensions are not neighbours in the view, with a tail.
// CHECK-LABEL: func.func @tail
//  CHECK-SAME:   %[[VIEW:[a-z0-9]+]]: memref<?x?x128xbf16, strided<[?, ?, 1], offset: ?>>
//  CHECK-SAME:   %[[T:[a-z0-9]+]]: index, %[[H:[a-z0-9]+]]: index, %[[N:[a-z0-9]+]]: index
//       CHECK:   gdn_tile.load %[[VIEW]][%[[T]], %[[H]], %{{.+}}] dims [0, 2] rows(%[[N]])
//  CHECK-SAME:     : memref<?x?x128xbf16, strided<[?, ?, 1], offset: ?>>, vector<16x128xbf16>
func.func @tail(%x: !rows, %t: index, %h: index, %n: index)
    -> vector<16x128xbf16> {
  %c0 = arith.constant 0 : index
  %tile = gdn_tile.load %x[%t, %h, %c0] dims [0, 2] rows(%n)
      : !rows, vector<16x128xbf16>
  return %tile : vector<16x128xbf16>
}

// Dimensions in reverse: a transposed tile. No rows: all of them.
// CHECK-LABEL: func.func @transposed
//       CHECK:   gdn_tile.load %{{.+}} dims [1, 0] : memref<?x4xf32>, vector<4x64xf32>
func.func @transposed(%w: memref<?x4xf32>, %c: index) -> vector<4x64xf32> {
  %c0 = arith.constant 0 : index
  %tile = gdn_tile.load %w[%c, %c0] dims [1, 0]
      : memref<?x4xf32>, vector<4x64xf32>
  return %tile : vector<4x64xf32>
}

// A tile of rank 1.
// CHECK-LABEL: func.func @column
//       CHECK:   gdn_tile.load %{{.+}} dims [0] : memref<?x?xf32>, vector<16xf32>
func.func @column(%x: memref<?x?xf32>, %t: index, %h: index) -> vector<16xf32> {
  %tile = gdn_tile.load %x[%t, %h] dims [0] : memref<?x?xf32>, vector<16xf32>
  return %tile : vector<16xf32>
}

// None of the rows or all.
// CHECK-LABEL: func.func @whole
//       CHECK:   gdn_tile.load %{{.+}} dims [0, 1] rows(%{{.+}}) whole : memref<?x64xf32>, vector<4x64xf32>
func.func @whole(%x: memref<?x64xf32>, %t: index, %n: index) -> vector<4x64xf32> {
  %c0 = arith.constant 0 : index
  %tile = gdn_tile.load %x[%t, %c0] dims [0, 1] rows(%n) whole
      : memref<?x64xf32>, vector<4x64xf32>
  return %tile : vector<4x64xf32>
}
