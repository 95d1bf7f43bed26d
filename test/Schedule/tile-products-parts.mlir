// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operands in two parts: the products of each add up, and where there are such a few words
// may be spilled. What a turn needs first is copied ahead only if nothing behind the late
// copies uses it, which would find the next turn's.
//
// RUN: gdn-opt %s -gdn-schedule-tile-products -gdn-gpu-place-barriers -gdn-gpu-check | FileCheck %s

!keys = memref<?x?x128xf16, strided<[?, ?, 1], offset: ?>>
!pool = memref<?x128x128xf32, strided<[?, ?, 1], offset: ?>>

// The first part is not used again once the second is there.
// CHECK-LABEL: func.func @first_part_first(
//  CHECK-SAME:     %[[HIGH:[a-z0-9]+]]: memref<?x?x128xf16, strided<{{[^>]+}}>> {gdn_gpu.alignment = 16 : i64}
//  CHECK-SAME:     %[[LOW:[a-z0-9]+]]: memref<?x?x128xf16, strided<{{[^>]+}}>> {gdn_gpu.alignment = 16 : i64}
//  CHECK-SAME:     gdn_gpu.allow = "spills up to 96 bytes
//       CHECK:   gdn_gpu.begin_copy %[[HIGH]]
//       CHECK:   scf.for
//       CHECK:     gdn_gpu.await_copies
//       CHECK:     gdn_gpu.begin_copy %[[LOW]]{{.+}}, %[[B:[0-9a-z_]+]] :
//       CHECK:     %[[U:.+]] = gdn_gpu.matmul %[[M:.+]], transpose %[[A:[^ ]+]] :
//       CHECK:     gdn_gpu.await_copies
//       CHECK:     gdn_gpu.begin_copy %[[HIGH]]{{.+}}, %[[A]] :
//   CHECK-NOT:     transpose %[[A]]
//       CHECK:     gdn_gpu.matmul %[[M]], transpose %[[B]] acc(%[[U]] :
//   CHECK-NOT:     transpose %[[A]]
func.func @first_part_first(%T: index, %k: !keys, %l: !keys, %pool: !pool, %out: memref<?x128x64xf32>)
    attributes {gdn_tile.stage = {grid = ["T"], symbols = ["T"]}} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %h = gdn_tile.block_id 0
  %s = gdn_tile.load %pool[%h, %c0, %c0] dims [1, 2] : !pool, vector<128x128xf32>
  %m = gdn_tile.map_rows %s : vector<128x128xf32> -> vector<128x128xf16> {
  ^bb0(%i: index, %row: vector<128xf32>):
    %n = arith.truncf %row : vector<128xf32> to vector<128xf16>
    gdn_tile.yield %n : vector<128xf16>
  }
  scf.for %t = %c0 to %T step %c64 {
    %chunk = arith.divui %t, %c64 : index
    %high = gdn_tile.load %k[%t, %h, %c0] dims [0, 2] : !keys, vector<64x128xf16>
    %low = gdn_tile.load %l[%t, %h, %c0] dims [0, 2] : !keys, vector<64x128xf16>
    %a = gdn_tile.transpose %high : vector<64x128xf16> -> vector<128x64xf16>
    %b = gdn_tile.transpose %low : vector<64x128xf16> -> vector<128x64xf16>
    %u = gdn_tile.matmul %m, %a : vector<128x128xf16>, vector<128x64xf16> -> vector<128x64xf32>
    %v = gdn_tile.matmul %m, %b acc(%u : vector<128x64xf32>) : vector<128x128xf16>, vector<128x64xf16> -> vector<128x64xf32>
    gdn_tile.store %v, %out[%chunk, %c0, %c0] dims [1, 2] : vector<128x64xf32>, memref<?x128x64xf32>
  }
  return
}

// Here it is, so it is copied in its own turn.
// CHECK-LABEL: func.func @first_part_again(
//  CHECK-SAME:     %[[HIGH:[a-z0-9]+]]: memref<?x?x128xf16, strided<{{[^>]+}}>> {gdn_gpu.alignment = 16 : i64}
//   CHECK-NOT:   gdn_gpu.begin_copy %[[HIGH]]
//       CHECK:   scf.for
//       CHECK:     gdn_gpu.begin_copy %[[HIGH]]{{.+}}, %[[A:[0-9a-z_]+]] :
//       CHECK:     gdn_gpu.await_copies
//       CHECK:     gdn_gpu.matmul %{{.+}}, transpose %[[A]]
//   CHECK-NOT:     gdn_gpu.begin_copy
//       CHECK:     gdn_gpu.matmul %{{.+}}, transpose %[[A]]
//   CHECK-NOT:     gdn_gpu.begin_copy
//       CHECK:   return
func.func @first_part_again(%T: index, %k: !keys, %l: !keys, %pool: !pool, %out: memref<?x128x64xf32>)
    attributes {gdn_tile.stage = {grid = ["T"], symbols = ["T"]}} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %h = gdn_tile.block_id 0
  %s = gdn_tile.load %pool[%h, %c0, %c0] dims [1, 2] : !pool, vector<128x128xf32>
  %m = gdn_tile.map_rows %s : vector<128x128xf32> -> vector<128x128xf16> {
  ^bb0(%i: index, %row: vector<128xf32>):
    %n = arith.truncf %row : vector<128xf32> to vector<128xf16>
    gdn_tile.yield %n : vector<128xf16>
  }
  scf.for %t = %c0 to %T step %c64 {
    %chunk = arith.divui %t, %c64 : index
    %high = gdn_tile.load %k[%t, %h, %c0] dims [0, 2] : !keys, vector<64x128xf16>
    %low = gdn_tile.load %l[%t, %h, %c0] dims [0, 2] : !keys, vector<64x128xf16>
    %a = gdn_tile.transpose %high : vector<64x128xf16> -> vector<128x64xf16>
    %b = gdn_tile.transpose %low : vector<64x128xf16> -> vector<128x64xf16>
    %u = gdn_tile.matmul %m, %a : vector<128x128xf16>, vector<128x64xf16> -> vector<128x64xf32>
    %v = gdn_tile.matmul %m, %b acc(%u : vector<128x64xf32>) : vector<128x128xf16>, vector<128x64xf16> -> vector<128x64xf32>
    %w = gdn_tile.matmul %m, %a acc(%v : vector<128x64xf32>) : vector<128x128xf16>, vector<128x64xf16> -> vector<128x64xf32>
    gdn_tile.store %w, %out[%chunk, %c0, %c0] dims [1, 2] : vector<128x64xf32>, memref<?x128x64xf32>
  }
  return
}
