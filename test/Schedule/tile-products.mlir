// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A recurrence over chunks: what a turn needs first is copied ahead, the rest while the
// first product runs; left operands stay in registers, right ones are read as they
// lie. Results of 16 bits go to memory in whole pieces of rows. A product of f32 is
// left alone.
//
// RUN: gdn-opt %s -gdn-schedule-tile-products -gdn-gpu-place-barriers -gdn-gpu-check | FileCheck %s

!keys = memref<?x?x128xbf16, strided<[?, ?, 1], offset: ?>>
!maps = memref<?x64x128xf16>
!pool = memref<?x128x128xf32, strided<[?, ?, 1], offset: ?>>

// CHECK-DAG: #[[$ROWS:.+]] = #gdn_gpu.rows<warps = 8, lanes = 4, vector = 2>
// CHECK-DAG: #[[$WIDE:.+]] = #gdn_gpu.rows<warps = 8, lanes = 16, vector = 8>

// CHECK-LABEL: func.func @recurrence(
//  CHECK-SAME:     %[[K:[a-z0-9]+]]: memref<?x?x128xbf16, strided<{{[^>]+}}>> {gdn_gpu.alignment = 16 : i64}
//  CHECK-SAME:     %[[OUT:[a-z0-9]+]]: memref<?x?x128xbf16, strided<{{[^>]+}}>> {gdn_gpu.alignment = 16 : i64}
//  CHECK-SAME:     threads = 256 : i64
//       CHECK:   %[[STATE:.+]] = gdn_gpu.load {{.+}}<128x128xf32, #[[$ROWS]]>
//       CHECK:   gdn_gpu.begin_copy %[[K]]{{.+}}, %[[KEYS:.+]] : {{.+}}<64x128xbf16, swizzled>
//       CHECK:   %[[LAST:.+]] = scf.for %[[T:[a-z0-9]+]] = {{.+}} iter_args(%[[S:.+]] = %[[STATE]]) -> (!gdn_gpu.fragment<128x128xf32, #[[$ROWS]]>)
//       CHECK:     gdn_gpu.await_copies
//  CHECK-NEXT:     gdn_gpu.barrier
//  CHECK-NEXT:     gdn_gpu.begin_copy %{{.+}}, %[[MAPS:.+]] : {{.+}}<64x128xf16, swizzled>
//  CHECK-NEXT:     %[[HELD:.+]] = gdn_gpu.map_rows %[[S]]
//       CHECK:     %[[U:.+]] = gdn_gpu.matmul %[[HELD]], transpose %[[KEYS]] :
//       CHECK:     %[[W:.+]] = gdn_gpu.map_rows %[[U]] : {{.+}} -> !gdn_gpu.fragment<128x64xf16, #[[$ROWS]]>
//       CHECK:     %[[O:.+]] = gdn_gpu.map_rows %[[U]] : {{.+}} -> !gdn_gpu.fragment<128x64xbf16, #[[$ROWS]]>
//       CHECK:     gdn_gpu.store_shared transpose %[[O]], %[[PLACE:.+]] :
//  CHECK-NEXT:     gdn_gpu.barrier
//  CHECK-NEXT:     %[[PIECES:.+]] = gdn_gpu.load_shared %[[PLACE]] : {{.+}}<64x128xbf16, #[[$WIDE]]>
//  CHECK-NEXT:     gdn_gpu.store %[[PIECES]], %[[OUT]]{{.+}} aligned 16
//  CHECK-NEXT:     gdn_gpu.await_copies
//  CHECK-NEXT:     gdn_gpu.barrier
//  CHECK-NEXT:     %[[AHEAD:.+]] = arith.addi %[[T]], %c64
//       CHECK:     gdn_gpu.begin_copy %[[K]][%[[AHEAD]], {{.+}}, %[[KEYS]] :
//       CHECK:     %[[NEXT:.+]] = gdn_gpu.matmul %[[W]], %[[MAPS]] acc(%[[S]] :
//       CHECK:     scf.yield %[[NEXT]]
//       CHECK:   gdn_gpu.store %[[LAST]],
func.func @recurrence(%T: index, %k: !keys, %y: !maps, %pool: !pool, %out: !keys)
    attributes {gdn_tile.stage = {grid = ["T"], symbols = ["T"]}} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %h = gdn_tile.block_id 0
  %s = gdn_tile.load %pool[%h, %c0, %c0] dims [1, 2] : !pool, vector<128x128xf32>
  %last = scf.for %t = %c0 to %T step %c64 iter_args(%m = %s) -> (vector<128x128xf32>) {
    %left = arith.subi %T, %t : index
    %valid = arith.minui %left, %c64 : index
    %chunk = arith.divui %t, %c64 : index
    %keys = gdn_tile.load %k[%t, %h, %c0] dims [0, 2] rows(%valid) : !keys, vector<64x128xbf16>
    %maps = gdn_tile.load %y[%chunk, %c0, %c0] dims [1, 2] : !maps, vector<64x128xf16>
    %held = gdn_tile.map_rows %m : vector<128x128xf32> -> vector<128x128xbf16> {
    ^bb0(%i: index, %row: vector<128xf32>):
      %n = arith.truncf %row : vector<128xf32> to vector<128xbf16>
      gdn_tile.yield %n : vector<128xbf16>
    }
    %transposed = gdn_tile.transpose %keys : vector<64x128xbf16> -> vector<128x64xbf16>
    %u = gdn_tile.matmul %held, %transposed : vector<128x128xbf16>, vector<128x64xbf16> -> vector<128x64xf32>
    %w = gdn_tile.map_rows %u : vector<128x64xf32> -> vector<128x64xf16> {
    ^bb0(%i: index, %row: vector<64xf32>):
      %n = arith.truncf %row : vector<64xf32> to vector<64xf16>
      gdn_tile.yield %n : vector<64xf16>
    }
    %next = gdn_tile.matmul %w, %maps acc(%m : vector<128x128xf32>) : vector<128x64xf16>, vector<64x128xf16> -> vector<128x128xf32>
    %tokens = gdn_tile.transpose %u : vector<128x64xf32> -> vector<64x128xf32>
    %o = gdn_tile.map_rows %tokens : vector<64x128xf32> -> vector<64x128xbf16> {
    ^bb0(%i: index, %row: vector<128xf32>):
      %n = arith.truncf %row : vector<128xf32> to vector<128xbf16>
      gdn_tile.yield %n : vector<128xbf16>
    }
    gdn_tile.store %o, %out[%t, %h, %c0] dims [0, 2] rows(%valid) : vector<64x128xbf16>, !keys
    scf.yield %next : vector<128x128xf32>
  }
  gdn_tile.store %last, %pool[%h, %c0, %c0] dims [1, 2] : vector<128x128xf32>, !pool
  return
}

// Keys that every turn reads keep their place: no result of a turn gets it.
// CHECK-LABEL: func.func @kept(
//       CHECK:   scf.for
//       CHECK:     gdn_gpu.matmul %{{.+}}, transpose %[[KEYS:[a-z0-9]+]] :
//   CHECK-NOT:     gdn_gpu.store_shared transpose %{{.+}}, %[[KEYS]] :
//       CHECK:     gdn_gpu.load_shared %{{.+}}<64x128xbf16

func.func @kept(%T: index, %k: !keys, %y: !maps, %pool: !pool, %out: !keys)
    attributes {gdn_tile.stage = {grid = ["T"], symbols = ["T"]}} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %h = gdn_tile.block_id 0
  %s = gdn_tile.load %pool[%h, %c0, %c0] dims [1, 2] : !pool, vector<128x128xf32>
  %keys = gdn_tile.load %k[%c0, %h, %c0] dims [0, 2] : !keys, vector<64x128xbf16>
  %last = scf.for %t = %c0 to %T step %c64 iter_args(%m = %s) -> (vector<128x128xf32>) {
    %left = arith.subi %T, %t : index
    %valid = arith.minui %left, %c64 : index
    %chunk = arith.divui %t, %c64 : index
    %maps = gdn_tile.load %y[%chunk, %c0, %c0] dims [1, 2] : !maps, vector<64x128xf16>
    %held = gdn_tile.map_rows %m : vector<128x128xf32> -> vector<128x128xbf16> {
    ^bb0(%i: index, %row: vector<128xf32>):
      %n = arith.truncf %row : vector<128xf32> to vector<128xbf16>
      gdn_tile.yield %n : vector<128xbf16>
    }
    %transposed = gdn_tile.transpose %keys : vector<64x128xbf16> -> vector<128x64xbf16>
    %u = gdn_tile.matmul %held, %transposed : vector<128x128xbf16>, vector<128x64xbf16> -> vector<128x64xf32>
    %w = gdn_tile.map_rows %u : vector<128x64xf32> -> vector<128x64xf16> {
    ^bb0(%i: index, %row: vector<64xf32>):
      %n = arith.truncf %row : vector<64xf32> to vector<64xf16>
      gdn_tile.yield %n : vector<64xf16>
    }
    %next = gdn_tile.matmul %w, %maps acc(%m : vector<128x128xf32>) : vector<128x64xf16>, vector<64x128xf16> -> vector<128x128xf32>
    %tokens = gdn_tile.transpose %u : vector<128x64xf32> -> vector<64x128xf32>
    %o = gdn_tile.map_rows %tokens : vector<64x128xf32> -> vector<64x128xbf16> {
    ^bb0(%i: index, %row: vector<128xf32>):
      %n = arith.truncf %row : vector<128xf32> to vector<128xbf16>
      gdn_tile.yield %n : vector<128xbf16>
    }
    gdn_tile.store %o, %out[%t, %h, %c0] dims [0, 2] rows(%valid) : vector<64x128xbf16>, !keys
    scf.yield %next : vector<128x128xf32>
  }
  gdn_tile.store %last, %pool[%h, %c0, %c0] dims [1, 2] : vector<128x128xf32>, !pool
  return
}

// The first warp sums; the matrix of decays is made where it is used; the inverse
// has a tile of its own; a left operand that is transposed goes by way of shared
// memory.
// CHECK-LABEL: func.func @chunk(
//  CHECK-SAME:   threads = 128 : i64
//       CHECK:   gdn_gpu.warps 0 for 1 {
//       CHECK:     %[[G:.+]] = gdn_gpu.load
//       CHECK:     %[[BOUNDED:.+]] = gdn_gpu.map_rows %[[G]]
//       CHECK:       arith.maximumf
//       CHECK:     %[[SUMS:.+]] = gdn_gpu.running_sum %[[BOUNDED]]
//       CHECK:     %[[POWERS:.+]] = gdn_gpu.map_rows %[[SUMS]]
//       CHECK:       arith.mulf
//       CHECK:     gdn_gpu.store_shared %[[POWERS]]
//       CHECK:   gdn_gpu.barrier
//       CHECK:   %[[E:.+]] = gdn_gpu.map_rows
//       CHECK:     %[[DISTANCE:.+]] = arith.sitofp
//       CHECK:     %[[BOUND:.+]] = arith.addf %[[DISTANCE]]
//       CHECK:     arith.maximumf %{{.+}}, %[[BOUND]]
//       CHECK:     math.exp2
//       CHECK:   %[[A:.+]] = gdn_gpu.map_rows %[[E]]
//       CHECK:   %[[R:.+]] = gdn_gpu.tri_inverse %[[A]] in %[[SCRATCH:.+]] :
//       CHECK:   gdn_gpu.store_shared %[[R]], %[[INVERSE:.+]] :
//       CHECK:   %[[RT:.+]] = gdn_gpu.load_shared transpose %[[INVERSE]]
//       CHECK:   gdn_gpu.matmul %[[RT]], %[[INVERSE]]
func.func @chunk(%T: index, %g: memref<?x?xf32, strided<[?, 1]>>, %out: memref<?x64x64xf32>)
    attributes {gdn_tile.stage = {grid = ["T"], symbols = ["T"]}} {
  %c0 = arith.constant 0 : index
  %t = gdn_tile.block_id 0
  %decay = gdn_tile.load %g[%t, %c0] dims [0] : memref<?x?xf32, strided<[?, 1]>>, vector<64xf32>
  %e = gdn_tile.decay_matrix %decay : vector<64xf32> -> vector<64x64xf32>
  %a = gdn_tile.map_rows %e : vector<64x64xf32> -> vector<64x64xf16> {
  ^bb0(%i: index, %row: vector<64xf32>):
    %n = arith.truncf %row : vector<64xf32> to vector<64xf16>
    gdn_tile.yield %n : vector<64xf16>
  }
  %r = gdn_tile.tri_inverse %a : vector<64x64xf16>
  %p = gdn_tile.matmul transpose %r, %r : vector<64x64xf16>, vector<64x64xf16> -> vector<64x64xf32>
  gdn_tile.store %p, %out[%t, %c0, %c0] dims [1, 2] : vector<64x64xf32>, memref<?x64x64xf32>
  return
}

// CHECK-LABEL: func.func @f32(
//   CHECK-NOT:   threads
//       CHECK:   gdn_tile.matmul
func.func @f32(%T: index, %v: memref<?x64x64xf32>)
    attributes {gdn_tile.stage = {grid = ["T"], symbols = ["T"]}} {
  %c0 = arith.constant 0 : index
  %t = gdn_tile.block_id 0
  %a = gdn_tile.load %v[%t, %c0, %c0] dims [1, 2] : memref<?x64x64xf32>, vector<64x64xf32>
  %p = gdn_tile.matmul %a, %a : vector<64x64xf32>, vector<64x64xf32> -> vector<64x64xf32>
  gdn_tile.store %p, %v[%t, %c0, %c0] dims [1, 2] : vector<64x64xf32>, memref<?x64x64xf32>
  return
}

// CHECK-LABEL: func.func @conv(
//   CHECK-NOT:   threads
//       CHECK:   gdn_tile.matmul
func.func @conv(%T: index, %v: memref<?x64x64xf16>, %w: memref<4x64xf32>)
    attributes {gdn_tile.stage = {grid = ["T"], symbols = ["T"]}} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %t = gdn_tile.block_id 0
  %a = gdn_tile.load %v[%t, %c0, %c0] dims [1, 2] : memref<?x64x64xf16>, vector<64x64xf16>
  %p = gdn_tile.matmul %a, %a : vector<64x64xf16>, vector<64x64xf16> -> vector<64x64xf32>
  %x = gdn_tile.load %w[%c0, %c0] dims [0, 1] : memref<4x64xf32>, vector<4x64xf32>
  %h = gdn_tile.load %w[%c0, %c0] dims [0, 1] rows(%c4) : memref<4x64xf32>, vector<3x64xf32>
  %y, %n = gdn_tile.conv1d %x, %h, %x valid(%c4) : vector<4x64xf32>, vector<3x64xf32>, vector<4x64xf32>
  gdn_tile.store %y, %w[%c0, %c0] dims [0, 1] : vector<4x64xf32>, memref<4x64xf32>
  return
}
