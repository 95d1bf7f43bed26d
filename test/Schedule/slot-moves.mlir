// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A copy of rows in the order of memory by all warps, 16 bytes per lane; one
// across memory by the last warp. Of small pieces a block has as many warps as
// have two accesses a lane. A program that computes is left alone.
//
// RUN: gdn-opt %s -gdn-schedule-slot-moves | FileCheck %s

// CHECK-DAG: #[[$ROWS:.+]] = #gdn_gpu.rows<warps = 8, lanes = 16, vector = 8>
// CHECK-DAG: #[[$FEW:.+]] = #gdn_gpu.rows<warps = 4, lanes = 16, vector = 8>
// CHECK-DAG: #[[$LESS:.+]] = #gdn_gpu.rows<warps = 2, lanes = 8, vector = 4>
// CHECK-DAG: #[[$WARP:.+]] = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>

// CHECK-LABEL: func.func @copy(
//  CHECK-SAME:     %[[STATE:[a-z0-9]+]]: memref<?x?x128x128xbf16, {{.+}}> {gdn_gpu.alignment = 16 : i64}
//  CHECK-SAME:     %[[CONV:[a-z0-9]+]]: memref<?x?x3xbf16, strided<[?, ?, ?]>>
//  CHECK-SAME:     threads = 256
//       CHECK:   %[[H:.+]] = gdn_gpu.block_id 1
//       CHECK:   scf.if
//       CHECK:     %[[T:.+]] = gdn_gpu.load %[[STATE]][%{{.+}}, %[[H]], %c0, %c0] dims [2, 3] aligned 16
//  CHECK-SAME:         <64x128xbf16, #[[$ROWS]]>
//  CHECK-NEXT:     gdn_gpu.store %[[T]], %[[STATE]]{{.*}} aligned 16
//       CHECK:   scf.for
//       CHECK:     gdn_gpu.warps 7 for 1
//       CHECK:       gdn_gpu.load %[[CONV]]{{.*}} dims [2, 1] : {{.*}}<3x128xbf16, #[[$WARP]]>
//       CHECK:       gdn_gpu.store
func.func @copy(%count: index, %heads: index,
    %state: memref<?x?x128x128xbf16, strided<[?, ?, ?, 1]>>,
    %conv: memref<?x?x3xbf16, strided<[?, ?, ?]>>, %slots: memref<?xi32>, %to: index)
    attributes {gdn_tile.stage = {grid = ["N", "Hv"], symbols = ["N", "Hv"]}} {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %n = gdn_tile.block_id 0
  %h = gdn_tile.block_id 1
  %id = memref.load %slots[%n] : memref<?xi32>
  %slot = arith.index_cast %id : i32 to index
  %live = arith.cmpi ne, %slot, %c0 : index
  scf.if %live {
    %t = gdn_tile.load %state[%slot, %h, %c0, %c0] dims [2, 3]
        : memref<?x?x128x128xbf16, strided<[?, ?, ?, 1]>>, vector<64x128xbf16>
    gdn_tile.store %t, %state[%to, %h, %c0, %c0] dims [2, 3]
        : vector<64x128xbf16>, memref<?x?x128x128xbf16, strided<[?, ?, ?, 1]>>
  }
  scf.for %c = %h to %c128 step %heads {
    %t = gdn_tile.load %conv[%slot, %c, %c0] dims [2, 1]
        : memref<?x?x3xbf16, strided<[?, ?, ?]>>, vector<3x128xbf16>
    gdn_tile.store %t, %conv[%to, %c, %c0] dims [2, 1]
        : vector<3x128xbf16>, memref<?x?x3xbf16, strided<[?, ?, ?]>>
  }
  return
}

// 4 KiB are four warps, 3 KiB two; a window beside them is the last one's.
// CHECK-LABEL: func.func @small(
//  CHECK-SAME:     threads = 128
//       CHECK:   gdn_gpu.load {{.*}}<16x128xbf16, #[[$FEW]]>
//       CHECK:   gdn_gpu.warps 3 for 1
func.func @small(%count: index, %heads: index,
    %state: memref<?x?x128x128xbf16, strided<[?, ?, ?, 1]>>,
    %conv: memref<?x?x3xbf16, strided<[?, ?, ?]>>)
    attributes {gdn_tile.stage = {grid = ["N", "Hv"], symbols = ["N", "Hv"]}} {
  %c0 = arith.constant 0 : index
  %n = gdn_tile.block_id 0
  %h = gdn_tile.block_id 1
  %t = gdn_tile.load %state[%n, %h, %c0, %c0] dims [2, 3]
      : memref<?x?x128x128xbf16, strided<[?, ?, ?, 1]>>, vector<16x128xbf16>
  gdn_tile.store %t, %state[%h, %n, %c0, %c0] dims [2, 3]
      : vector<16x128xbf16>, memref<?x?x128x128xbf16, strided<[?, ?, ?, 1]>>
  %w = gdn_tile.load %conv[%n, %c0, %c0] dims [2, 1]
      : memref<?x?x3xbf16, strided<[?, ?, ?]>>, vector<3x128xbf16>
  gdn_tile.store %w, %conv[%h, %c0, %c0] dims [2, 1]
      : vector<3x128xbf16>, memref<?x?x3xbf16, strided<[?, ?, ?]>>
  return
}

// CHECK-LABEL: func.func @odd(
//  CHECK-SAME:     threads = 64
//       CHECK:   gdn_gpu.load {{.*}}<8x96xf32, #[[$LESS]]>
func.func @odd(%count: index, %heads: index,
    %state: memref<?x?x192x96xf32, strided<[?, ?, ?, 1]>>)
    attributes {gdn_tile.stage = {grid = ["N", "Hv"], symbols = ["N", "Hv"]}} {
  %c0 = arith.constant 0 : index
  %n = gdn_tile.block_id 0
  %h = gdn_tile.block_id 1
  %t = gdn_tile.load %state[%n, %h, %c0, %c0] dims [2, 3]
      : memref<?x?x192x96xf32, strided<[?, ?, ?, 1]>>, vector<8x96xf32>
  gdn_tile.store %t, %state[%h, %n, %c0, %c0] dims [2, 3]
      : vector<8x96xf32>, memref<?x?x192x96xf32, strided<[?, ?, ?, 1]>>
  return
}

// CHECK-LABEL: func.func @computes(
//   CHECK-NOT:   gdn_gpu
//       CHECK:   gdn_tile.map_rows
func.func @computes(%rows: index, %x: memref<?x64xf32>)
    attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %t = gdn_tile.load %x[%c0, %c0] dims [0, 1] : memref<?x64xf32>, vector<4x64xf32>
  %u = gdn_tile.map_rows %t : vector<4x64xf32> -> vector<4x64xf32> {
  ^bb0(%i: index, %row: vector<64xf32>):
    %sum = arith.addf %row, %row : vector<64xf32>
    gdn_tile.yield %sum : vector<64xf32>
  }
  gdn_tile.store %u, %x[%c0, %c0] dims [0, 1] : vector<4x64xf32>, memref<?x64xf32>
  return
}

// A count that all threads have read is reset by one.
// CHECK-LABEL: func.func @reset(
//       CHECK:   memref.load
//       CHECK:   gdn_gpu.store
//       CHECK:   gdn_gpu.barrier
//  CHECK-NEXT:   gdn_gpu.store_element %{{.+}} : i32, memref<?xi32>
func.func @reset(%state: memref<?x64x64xf32>, %counts: memref<?xi32>)
    attributes {gdn_tile.stage = {grid = ["N"]}} {
  %c0 = arith.constant 0 : index
  %none = arith.constant 0 : i32
  %n = gdn_tile.block_id 0
  %count = memref.load %counts[%n] : memref<?xi32>
  %from = arith.index_cast %count : i32 to index
  %t = gdn_tile.load %state[%from, %c0, %c0] dims [1, 2] : memref<?x64x64xf32>, vector<64x64xf32>
  gdn_tile.store %t, %state[%n, %c0, %c0] dims [1, 2] : vector<64x64xf32>, memref<?x64x64xf32>
  memref.store %none, %counts[%n] : memref<?xi32>
  return
}
