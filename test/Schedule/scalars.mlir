// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program that stores elements and has no tiles is a block of one warp, in loops and branches
// too. A program with tiles, or that stores nothing, is left alone.
//
// RUN: gdn-opt %s -gdn-schedule-scalars | FileCheck %s

// CHECK-LABEL: func.func @scalars(
//  CHECK-SAME:     %[[COUNT:[a-z0-9]+]]: index, %[[X:[a-z0-9]+]]: memref<?xi32>, %[[FLAGS:[a-z0-9]+]]: memref<?xi1>
//  CHECK-SAME:     gdn_gpu.kernel = {threads = 32 : i64}
//  CHECK-SAME:     gdn_tile.stage = {grid = ["N"], symbols = ["N"]}
//       CHECK:   %[[N:.+]] = gdn_gpu.block_id 0
//       CHECK:   %[[SUM:.+]] = scf.for %{{.+}} = %{{.+}} to %[[COUNT]] step %{{.+}} iter_args(%[[SO_FAR:.+]] = %{{.+}}) -> (i32) {
//       CHECK:     %[[ELEMENT:.+]] = memref.load %[[X]]
//       CHECK:     %[[MORE:.+]] = arith.addi %[[SO_FAR]], %[[ELEMENT]]
//       CHECK:     scf.yield %[[MORE]]
//       CHECK:   gdn_gpu.store_element %[[SUM]], %[[X]][%[[N]]] : i32, memref<?xi32>
//       CHECK:   scf.if %[[IS:.+]] {
//       CHECK:     gdn_gpu.store_element %[[IS]], %[[FLAGS]][%[[N]]] : i1, memref<?xi1>
//       CHECK:   } else {
//       CHECK:     gdn_gpu.store_element %{{.+}}, %[[FLAGS]][%{{.+}}] : i1, memref<?xi1>
//   CHECK-NOT:   memref.store
//       CHECK:   return
func.func @scalars(%count: index, %x: memref<?xi32>, %flags: memref<?xi1>)
    attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : i32
  %false = arith.constant false
  %n = gdn_tile.block_id 0
  %sum = scf.for %i = %c0 to %count step %c1 iter_args(%so_far = %zero) -> (i32) {
    %element = memref.load %x[%i] : memref<?xi32>
    %more = arith.addi %so_far, %element : i32
    scf.yield %more : i32
  }
  memref.store %sum, %x[%n] : memref<?xi32>
  %is = arith.cmpi sgt, %sum, %zero : i32
  scf.if %is {
    memref.store %is, %flags[%n] : memref<?xi1>
  } else {
    memref.store %false, %flags[%c0] : memref<?xi1>
  }
  return
}

// CHECK-LABEL: func.func @has_tiles(
//   CHECK-NOT:   gdn_gpu
//       CHECK:   memref.store
//       CHECK:   gdn_tile.fill
func.func @has_tiles(%count: index, %x: memref<?xi32>, %y: memref<?xf32>)
    attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i32
  %float = arith.constant 0.0 : f32
  memref.store %zero, %x[%c0] : memref<?xi32>
  %t = gdn_tile.fill %float : f32 -> vector<32xf32>
  gdn_tile.store %t, %y[%c0] dims [0] : vector<32xf32>, memref<?xf32>
  return
}

// CHECK-LABEL: func.func @stores_nothing(
//   CHECK-NOT:   gdn_gpu
//       CHECK:   memref.load
func.func @stores_nothing(%count: index, %x: memref<?xi32>)
    attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %element = memref.load %x[%c0] : memref<?xi32>
  return
}

// No tile program.
// CHECK-LABEL: func.func @other(
//   CHECK-NOT:   gdn_gpu
//       CHECK:   memref.store
func.func @other(%x: memref<?xi32>, %value: i32, %i: index) {
  memref.store %value, %x[%i] : memref<?xi32>
  return
}
