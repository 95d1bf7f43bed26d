// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Stores: the valid rows alone are written, as vectors where the view allows.
//
// RUN: gdn-tile-opt %s -convert-tile-to-cpu=lanes=8 -canonicalize -cse | FileCheck %s

!view = memref<?x?x32xbf16, strided<[?, ?, 1], offset: ?>>

// CHECK-LABEL: func.func @rows
//       CHECK:   %[[X:.+]] = builtin.unrealized_conversion_cast {{.+}} to memref<?x?x32xbf16
//       CHECK:   %[[TILE:.+]] = memref.view %{{.+}} to memref<4x32xbf16>
//       CHECK:   vector.store %{{.+}}, %[[TILE]]
//       CHECK:   scf.for %[[I:.+]] = %{{.+}} to %[[N:.+]] step
//       CHECK:     %[[ROW:.+]] = vector.load %[[TILE]][%[[I]], %[[C0:.+]]] : {{.+}}, vector<32xbf16>
//       CHECK:     %[[AT:.+]] = arith.addi %[[N]], %[[I]]
//       CHECK:     vector.store %[[ROW]], %[[X]][%[[AT]], %[[N]], %[[C0]]]
//   CHECK-NOT:   vector.store
func.func @rows(%n: index, %x: !view)
    attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : bf16
  %t = gdn_tile.fill %zero : bf16 -> vector<4x32xbf16>
  gdn_tile.store %t, %x[%n, %n, %c0] dims [0, 2] rows(%n) : vector<4x32xbf16>, !view
  return
}

// The strides choose the way at run time: rows, columns that lie one after
// another, or element by element.
// CHECK-LABEL: func.func @window
//       CHECK:   vector.store %{{.+}} : memref<3x32xf32>
//       CHECK:   scf.if
//       CHECK:     vector.store %{{.+}} : memref<32xf32, {{.+}}>, vector<32xf32>
//       CHECK:     scf.if
//       CHECK:       vector.shuffle {{.+}} [0, 8, 16, 1, 9, 17, 2, 10, 18,
//       CHECK:       vector.store %{{.+}} : memref<96xf32, {{.+}}>, vector<24xf32>
//       CHECK:     } else {
//       CHECK:       scf.for %[[I:.+]] =
//       CHECK:         scf.for %[[J:.+]] =
//       CHECK:           %[[E:.+]] = memref.load %{{.+}}[%[[I]], %[[J]]] : memref<3x32xf32>
//       CHECK:           memref.store %[[E]], %{{.+}}[%[[J]], %[[I]]] : memref<?x?xf32, strided<[?, ?], offset: ?>>
func.func @window(%n: index, %x: memref<?x?xf32, strided<[?, ?], offset: ?>>)
    attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %t = gdn_tile.fill %zero : f32 -> vector<3x32xf32>
  gdn_tile.store %t, %x[%c0, %c0] dims [1, 0]
      : vector<3x32xf32>, memref<?x?xf32, strided<[?, ?], offset: ?>>
  return
}
