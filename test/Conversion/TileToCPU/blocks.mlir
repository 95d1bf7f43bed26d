// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tiles whose columns are contiguous in the view, such as states that lie as [dk, dv]: blocks of
// eight columns and eight rows are transposed, and the code does not grow with the tile.
//
// RUN: gdn-tile-opt %s -convert-tile-to-cpu=lanes=8 -canonicalize -cse | FileCheck %s

!view = memref<?x64x32xf32, strided<[?, 1, ?], offset: ?>>

// CHECK-LABEL: func.func @states
//   CHECK-DAG:   %[[C8:.+]] = arith.constant 8 : index
//   CHECK-DAG:   %[[C32:.+]] = arith.constant 32 : index
//   CHECK-DAG:   %[[C64:.+]] = arith.constant 64 : index
//       CHECK:   scf.for %[[COLUMN:.+]] = %{{.+}} to %[[C32]] step %[[C8]]
//       CHECK:     scf.for %[[ROW:.+]] = %{{.+}} to %[[C64]] step %[[C8]]
// CHECK-COUNT-8:       vector.load %{{.+}} : memref<8xf32, strided<[1], offset: ?>>, vector<8xf32>
//   CHECK-NOT:       vector.load
// CHECK-COUNT-8:       vector.store %{{.+}} : memref<64x32xf32{{.*}}>, vector<8xf32>
//   CHECK-NOT:       vector.store
//       CHECK:   scf.for %{{.+}} = %{{.+}} to %[[C32]] step %[[C8]]
//       CHECK:     scf.for %{{.+}} = %{{.+}} to %[[C64]] step %[[C8]]
// CHECK-COUNT-8:       vector.load %{{.+}} : memref<64x32xf32{{.*}}>, vector<8xf32>
// CHECK-COUNT-8:       vector.store %{{.+}} : memref<8xf32, strided<[1], offset: ?>>, vector<8xf32>
func.func @states(%n: index, %x: !view)
    attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %t = gdn_tile.load %x[%n, %c0, %c0] dims [1, 2] : !view, vector<64x32xf32>
  gdn_tile.store %t, %x[%c0, %c0, %c0] dims [1, 2] : vector<64x32xf32>, !view
  return
}
