// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Carried tiles that change places: one of them waits in scratch while the other
// moves.
//
// RUN: gdn-tile-opt %s -convert-tile-to-cpu=lanes=8 -canonicalize -cse | FileCheck %s

// CHECK-LABEL: func.func @swap
//       CHECK:   %[[PARKED:.+]] = memref.view %{{.+}} to memref<4x8xf32>
//       CHECK:   %[[B:.+]] = memref.view %{{.+}} to memref<4x8xf32>
//       CHECK:   %[[A:.+]] = memref.view %{{.+}} to memref<4x8xf32>
//       CHECK:   vector.store %{{.+}}, %[[A]]
//       CHECK:   vector.store %{{.+}}, %[[B]]
//       CHECK:   %[[ROW:.+]] = vector.load %[[B]]
//       CHECK:   vector.store %[[ROW]], %[[PARKED]]
//       CHECK:   %[[ROW:.+]] = vector.load %[[A]]
//       CHECK:   vector.store %[[ROW]], %[[B]]
//       CHECK:   %[[ROW:.+]] = vector.load %[[PARKED]]
//       CHECK:   vector.store %[[ROW]], %[[A]]
func.func @swap(%n: index, %x: memref<4x8xf32>, %y: memref<4x8xf32>)
    attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = gdn_tile.load %x[%c0, %c0] dims [0, 1] : memref<4x8xf32>, vector<4x8xf32>
  %b = gdn_tile.load %y[%c0, %c0] dims [0, 1] : memref<4x8xf32>, vector<4x8xf32>
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%p = %a, %q = %b)
      -> (vector<4x8xf32>, vector<4x8xf32>) {
    scf.yield %q, %p : vector<4x8xf32>, vector<4x8xf32>
  }
  gdn_tile.store %r#0, %x[%c0, %c0] dims [0, 1] : vector<4x8xf32>, memref<4x8xf32>
  gdn_tile.store %r#1, %y[%c0, %c0] dims [0, 1] : vector<4x8xf32>, memref<4x8xf32>
  return
}
