// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Counters in memory, for a stage that runs beside the one ahead of it.
//
// RUN: gdn-tile-opt %s | gdn-tile-opt | FileCheck %s

// CHECK-LABEL: func.func @signal(
//  CHECK-SAME:   %[[X:.+]]: memref<?x?xf32>, %[[I:.+]]: index
//       CHECK:   gdn_tile.signal 64, %[[X]][%[[I]], %[[I]]] : memref<?x?xf32>
//       CHECK:   gdn_tile.await_signals 128, %[[X]][%[[I]], %[[I]]] : memref<?x?xf32>
func.func @signal(%x: memref<?x?xf32>, %i: index) {
  gdn_tile.signal 64, %x[%i, %i] : memref<?x?xf32>
  gdn_tile.await_signals 128, %x[%i, %i] : memref<?x?xf32>
  return
}
