// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A gated norm of outputs that registers hold transposed: its rows become
// columns, its sum one over columns, and what it is gated with is read the other
// way round from shared memory, which then takes the result. The weights are
// loaded once. Tiles of few rows, a window, are the work of the first warp.
//
// RUN: gdn-opt %s -gdn-schedule-tile-products -gdn-gpu-place-barriers -gdn-gpu-check | FileCheck %s

!keys = memref<?x?x128xbf16, strided<[?, ?, 1], offset: ?>>
!pool = memref<?x128x3xbf16, strided<[?, ?, ?], offset: ?>>

// CHECK-DAG: #[[$ROWS:.+]] = #gdn_gpu.rows<warps = 8, lanes = 4, vector = 2>

// CHECK-LABEL: func.func @recurrence(
//       CHECK:   gdn_gpu.begin_copy %{{.+}}[%c0] dims [0], %[[WEIGHT:.+]] : memref<128xf32>
//       CHECK:   scf.for
//       CHECK:     gdn_gpu.begin_copy %{{.+}}, %[[GATE:.+]] : {{.+}}<64x128xbf16, swizzled>
//       CHECK:     %[[O:.+]] = gdn_gpu.matmul {{.+}} -> <128x64xf32, #[[$ROWS]]>
//       CHECK:     %[[Z:.+]] = gdn_gpu.load_shared transpose %[[GATE]] : {{.+}} -> <128x64xbf16, #[[$ROWS]]>
//       CHECK:     %[[W:.+]] = gdn_gpu.load_shared %[[WEIGHT]] : {{.+}}#gdn_gpu.per_row<#[[$ROWS]]>>
//       CHECK:     %[[SQUARES:.+]] = gdn_gpu.map_rows %[[O]], %[[Z]], %[[W]] :
//       CHECK:     %[[SUM:.+]] = gdn_gpu.column_sum %[[SQUARES]], %{{.+}} : {{.+}}<8x64xf32> -> <64xf32, #gdn_gpu.per_column<#[[$ROWS]]>>
//       CHECK:     %[[RESULT:.+]] = gdn_gpu.map_rows %[[O]], %[[Z]], %[[W]], %[[SUM]] :{{.+}} -> !gdn_gpu.fragment<128x64xbf16, #[[$ROWS]]>
//       CHECK:     gdn_gpu.store_shared transpose %[[RESULT]], %[[GATE]] :
//  CHECK-NEXT:     gdn_gpu.barrier
//  CHECK-NEXT:     gdn_gpu.load_shared %[[GATE]]
//       CHECK:   gdn_gpu.warps 0 for 1 {
//  CHECK-NEXT:     %[[OLD:.+]] = gdn_gpu.load %{{.+}} dims [2, 1] rows(%{{.+}}) : {{.+}}<3x128xbf16
//  CHECK-NEXT:     gdn_gpu.store %[[OLD]]
func.func @recurrence(%T: index, %k: !keys, %z: !keys, %weight: memref<128xf32>, %pool: !pool, %out: !keys)
    attributes {gdn_tile.stage = {grid = ["T"], symbols = ["T"]}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : bf16
  %h = gdn_tile.block_id 0
  scf.for %t = %c0 to %T step %c64 {
    %state = gdn_tile.fill %zero : bf16 -> vector<128x128xbf16>
    %left = arith.subi %T, %t : index
    %valid = arith.minui %left, %c64 : index
    %keys = gdn_tile.load %k[%t, %h, %c0] dims [0, 2] rows(%valid) : !keys, vector<64x128xbf16>
    %gate = gdn_tile.load %z[%t, %h, %c0] dims [0, 2] rows(%valid) : !keys, vector<64x128xbf16>
    %w = gdn_tile.load %weight[%c0] dims [0] : memref<128xf32>, vector<128xf32>
    %transposed = gdn_tile.transpose %keys : vector<64x128xbf16> -> vector<128x64xbf16>
    %u = gdn_tile.matmul %state, %transposed : vector<128x128xbf16>, vector<128x64xbf16> -> vector<128x64xf32>
    %tokens = gdn_tile.transpose %u : vector<128x64xf32> -> vector<64x128xf32>
    %o = gdn_tile.map_rows %tokens, %gate : vector<64x128xf32>, vector<64x128xbf16> -> vector<64x128xbf16> {
    ^bb0(%i: index, %row: vector<128xf32>, %g: vector<128xbf16>):
      %squares = arith.mulf %row, %row : vector<128xf32>
      %sum = vector.reduction <add>, %squares fastmath<reassoc> : vector<128xf32> into f32
      %length = math.rsqrt %sum : f32
      %all = vector.broadcast %length : f32 to vector<128xf32>
      %unit = arith.mulf %row, %all : vector<128xf32>
      %weighted = arith.mulf %unit, %w : vector<128xf32>
      %wide = arith.extf %g : vector<128xbf16> to vector<128xf32>
      %r = arith.mulf %weighted, %wide : vector<128xf32>
      %n = arith.truncf %r : vector<128xf32> to vector<128xbf16>
      gdn_tile.yield %n : vector<128xbf16>
    }
    gdn_tile.store %o, %out[%t, %h, %c0] dims [0, 2] rows(%valid) : vector<64x128xbf16>, !keys
  }
  %old = gdn_tile.load %pool[%h, %c0, %c1] dims [2, 1] rows(%T) : !pool, vector<3x128xbf16>
  gdn_tile.store %old, %pool[%h, %c0, %c0] dims [2, 1] rows(%T) : vector<3x128xbf16>, !pool
  return
}
