// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loads: rows that are contiguous in the view move as vectors, columns that lie
// one after another as vectors that are shuffled, others element by element; rows
// past the valid ones become zeros and are not read.
//
// RUN: gdn-tile-opt %s -convert-tile-to-cpu=lanes=8 -canonicalize -cse | FileCheck %s

!view = memref<?x?x32xf32, strided<[?, ?, 1], offset: ?>>

// CHECK-LABEL: func.func @rows
//   CHECK-DAG:   %[[C0:.+]] = arith.constant 0 : index
//   CHECK-DAG:   %[[C4:.+]] = arith.constant 4 : index
//   CHECK-DAG:   %[[ZERO:.+]] = arith.constant dense<0.0{{.*}}> : vector<32xf32>
//       CHECK:   %[[X:.+]] = builtin.unrealized_conversion_cast {{.+}} to memref<?x?x32xf32
//       CHECK:   %[[TILE:.+]] = memref.view %{{.+}} to memref<4x32xf32>
//       CHECK:   scf.for %[[I:.+]] = %[[C0]] to %[[N:.+]] step
//       CHECK:     %[[AT:.+]] = arith.addi %[[N]], %[[I]]
//       CHECK:     %[[ROW:.+]] = vector.load %[[X]][%[[AT]], %[[N]], %[[C0]]] : {{.+}}, vector<32xf32>
//       CHECK:     vector.store %[[ROW]], %[[TILE]][%[[I]], %[[C0]]]
//       CHECK:   scf.for %[[I:.+]] = %[[N]] to %[[C4]] step
//  CHECK-NEXT:     vector.store %[[ZERO]], %[[TILE]][%[[I]], %[[C0]]]
func.func @rows(%n: index, %x: !view)
    attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %t = gdn_tile.load %x[%n, %n, %c0] dims [0, 2] rows(%n)
      : !view, vector<4x32xf32>
  gdn_tile.store %t, %x[%c0, %c0, %c0] dims [0, 2] : vector<4x32xf32>, !view
  return
}

// The last dimension of the tile is not the last of the view: its columns lie one
// after another.
// CHECK-LABEL: func.func @transposed
//       CHECK:   %[[X:.+]] = builtin.unrealized_conversion_cast {{.+}} to memref<?x4xf32>
//       CHECK:   %[[TILE:.+]] = memref.view %{{.+}} to memref<4x32xf32>
//       CHECK:   %[[FLAT:.+]] = memref.reinterpret_cast %[[X]] to offset: [0], sizes: [128], strides: [1]
//       CHECK:   scf.for %[[J:.+]] = {{.+}} to %{{.+}} step
//       CHECK:     %[[AT:.+]] = arith.muli %[[J]], %{{.+}}
//       CHECK:     vector.load %[[FLAT]][%[[AT]]] : {{.+}}, vector<32xf32>
//       CHECK:     vector.shuffle %[[ALL:.+]], %[[ALL]] [0, 4, 8, 12, 16, 20, 24, 28]
//       CHECK:     vector.store %{{.+}}, %[[TILE]][%{{.+}}, %[[J]]] : {{.+}}, vector<8xf32>
//       CHECK:     vector.shuffle %[[ALL]], %[[ALL]] [1, 5, 9, 13, 17, 21, 25, 29]
func.func @transposed(%n: index, %x: memref<?x4xf32>)
    attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %t = gdn_tile.load %x[%c0, %c0] dims [1, 0] : memref<?x4xf32>, vector<4x32xf32>
  gdn_tile.store %t, %x[%c0, %c0] dims [1, 0] : vector<4x32xf32>, memref<?x4xf32>
  return
}

// Strides that nobody knows before the run choose the way: rows, columns, or
// element by element.
// CHECK-LABEL: func.func @by_strides
//       CHECK:   %[[BY_ROWS:.+]] = arith.cmpi eq, %[[COLUMN:.+]], %[[C1:.+]] : index
//       CHECK:   scf.if %[[BY_ROWS]] {
//       CHECK:     vector.load {{.+}}, vector<32xbf16>
//       CHECK:   } else {
//       CHECK:     %[[UNIT:.+]] = arith.cmpi eq, %[[ROW:.+]], %[[C1]] : index
//       CHECK:     %[[DENSE:.+]] = arith.cmpi eq, %[[COLUMN]], %{{.+}} : index
//       CHECK:     %[[BY_COLUMNS:.+]] = arith.andi %[[UNIT]], %[[DENSE]]
//       CHECK:     scf.if %[[BY_COLUMNS]] {
//       CHECK:       vector.shuffle {{.+}} [0, 3, 6, 9, 12, 15, 18, 21] : vector<24xi16>
//       CHECK:     } else {
//       CHECK:       memref.load
func.func @by_strides(%n: index, %x: memref<?x?xbf16, strided<[?, ?], offset: ?>>, %y: memref<3x32xbf16>)
    attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %t = gdn_tile.load %x[%n, %c0] dims [1, 0]
      : memref<?x?xbf16, strided<[?, ?], offset: ?>>, vector<3x32xbf16>
  gdn_tile.store %t, %y[%c0, %c0] dims [0, 1] : vector<3x32xbf16>, memref<3x32xbf16>
  return
}

// A tile of rank 1, and its tail.
// CHECK-LABEL: func.func @column
//   CHECK-DAG:   %[[ZERO:.+]] = arith.constant 0.0{{.*}} : bf16
//       CHECK:   %[[TILE:.+]] = memref.view %{{.+}} to memref<4xbf16>
//       CHECK:   scf.for %[[I:.+]] =
//       CHECK:     %[[E:.+]] = memref.load %{{.+}}[%[[I]], %{{.+}}] : memref<?x?xbf16>
//       CHECK:     memref.store %[[E]], %[[TILE]][%[[I]]]
//       CHECK:   scf.for %[[I:.+]] =
//  CHECK-NEXT:     memref.store %[[ZERO]], %[[TILE]][%[[I]]]
func.func @column(%n: index, %x: memref<?x?xbf16>)
    attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %t = gdn_tile.load %x[%c0, %n] dims [0] rows(%n) : memref<?x?xbf16>, vector<4xbf16>
  gdn_tile.store %t, %x[%c0, %c0] dims [0] : vector<4xbf16>, memref<?x?xbf16>
  return
}
