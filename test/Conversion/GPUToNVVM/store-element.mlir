// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An element to global memory: the first thread of those that run the op stores it, a truth
// value as a byte. What the program stores so is not read as memory that stays as it is.
//
// RUN: gdn-gpu-opt %s -convert-gdn-gpu-to-nvvm -canonicalize -cse | FileCheck %s

// CHECK-LABEL: llvm.func @one_thread(
//   CHECK-DAG:   %[[LANE:.+]] = arith.andi %{{.+}}, %c31
//   CHECK-DAG:   %[[WARP:.+]] = arith.shrui %{{.+}}, %c5
//       CHECK:   %[[THREAD:.+]] = arith.ori %[[LANE]], %[[WARP]] : i32
//       CHECK:   %[[FIRST:.+]] = arith.cmpi eq, %[[THREAD]], %c0
//       CHECK:   scf.if %[[FIRST]] {
//       CHECK:     llvm.store %{{.+}}, %{{.+}} {alignment = 4 : i64} : i32, !llvm.ptr<1>
//       CHECK:   scf.if %[[FIRST]] {
//       CHECK:     llvm.store %{{.+}}, %{{.+}} {alignment = 8 : i64} : i64, !llvm.ptr<1>
//       CHECK:   scf.if %[[FIRST]] {
//       CHECK:     %[[BYTE:.+]] = arith.extui %{{.+}} : i1 to i8
//       CHECK:     llvm.store %[[BYTE]], %{{.+}} {alignment = 1 : i64} : i8, !llvm.ptr<1>
//   CHECK-NOT:   llvm.store
func.func @one_thread(%n: index, %x: memref<?xi32>, %y: memref<?xi64>, %z: memref<?xi1>)
    attributes {gdn_gpu.kernel = {threads = 64 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %i = gdn_gpu.block_id 0
  %id = arith.index_cast %i : index to i32
  %wide = arith.index_cast %i : index to i64
  %is = arith.cmpi slt, %i, %n : index
  gdn_gpu.store_element %id, %x[%i] : i32, memref<?xi32>
  gdn_gpu.store_element %wide, %y[%i] : i64, memref<?xi64>
  gdn_gpu.store_element %is, %z[%i] : i1, memref<?xi1>
  return
}

// Both views are read; one of them is stored, in a branch.
// CHECK-LABEL: llvm.func @reads(
//       CHECK:   %[[KEPT:.+]] = llvm.load %{{.+}} invariant {alignment = 4 : i64} : !llvm.ptr<1> -> i32
//       CHECK:   %[[OLD:.+]] = llvm.load %{{.+}} {alignment = 4 : i64} : !llvm.ptr<1> -> i32
//       CHECK:   arith.addi %[[KEPT]], %[[OLD]]
func.func @reads(%n: index, %x: memref<?xi32>, %y: memref<?xi32>)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %i = gdn_gpu.block_id 0
  %kept = memref.load %x[%i] : memref<?xi32>
  %old = memref.load %y[%i] : memref<?xi32>
  %sum = arith.addi %kept, %old : i32
  %is = arith.cmpi ne, %sum, %old : i32
  gdn_gpu.barrier
  scf.if %is {
    gdn_gpu.store_element %sum, %y[%i] : i32, memref<?xi32>
  }
  return
}

// Of some warps, the first one's first lane.
// CHECK-LABEL: llvm.func @warps(
//       CHECK:   %[[OWN:.+]] = arith.subi %{{.+}}, %c2
//       CHECK:   arith.ori %{{.+}}, %[[OWN]]
//       CHECK:   llvm.store
func.func @warps(%n: index, %x: memref<?xi32>)
    attributes {gdn_gpu.kernel = {threads = 128 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %i = gdn_gpu.block_id 0
  %id = arith.index_cast %i : index to i32
  gdn_gpu.warps 2 for 2 {
    gdn_gpu.store_element %id, %x[%i] : i32, memref<?xi32>
  }
  return
}
