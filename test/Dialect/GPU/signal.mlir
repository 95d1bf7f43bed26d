// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What warps say to another launch.
//
// RUN: gdn-gpu-opt %s | gdn-gpu-opt | FileCheck %s

// CHECK-LABEL: func.func @signal(
//  CHECK-SAME:   %[[X:.+]]: memref<?x?xf32>, %[[I:.+]]: index, %[[N:.+]]: index
//       CHECK:     gdn_gpu.signal 16, %[[X]][%[[I]], %[[I]]] last(%[[N]]) : memref<?x?xf32>
//       CHECK:     gdn_gpu.signal 8, %[[X]][%[[I]], %[[I]]] : memref<?x?xf32>
//       CHECK:     gdn_gpu.await_signals 128, %[[X]][%[[I]], %[[I]]] : memref<?x?xf32>
func.func @signal(%x: memref<?x?xf32>, %i: index, %n: index)
    attributes {gdn_gpu.kernel = {threads = 64 : i64}} {
  gdn_gpu.warps 0 for 2 {
    gdn_gpu.signal 16, %x[%i, %i] last(%n) : memref<?x?xf32>
    gdn_gpu.signal 8, %x[%i, %i] : memref<?x?xf32>
  }
  gdn_gpu.each_warp 0 for 2 {
  ^bb0(%w: index):
    gdn_gpu.await_signals 128, %x[%i, %i] : memref<?x?xf32>
  }
  return
}
