// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program of token-wise work: its last axis of four goes to the warps, each with
// the tokens of its own coordinate. A program with a tile of rank 1 is left alone.
//
// RUN: gdn-opt %s -gdn-schedule-token-groups -gdn-gpu-check | FileCheck %s

!inputs = memref<?x?x128xbf16, strided<[?, ?, 1], offset: ?>>

// CHECK-LABEL: func.func @inputs(
//  CHECK-SAME:   %[[X:[a-z0-9]+]]: memref<?x?x128xbf16
//  CHECK-SAME:   gdn_gpu.min_blocks = 4 : i64, gdn_gpu.threads = 128 : i64, gdn_tile.grid = ["T", "H"]
//       CHECK:   gdn_gpu.each_warp 0 for 4 {
//       CHECK:   ^bb0(%[[GROUP:.+]]: index):
//       CHECK:     %[[H:.+]] = gdn_gpu.block_id 1
//       CHECK:     %[[FIRST:.+]] = arith.muli %[[GROUP]], %c8
//       CHECK:     scf.if
//       CHECK:       %[[IN:.+]] = gdn_gpu.load %[[X]][%[[FIRST]], %[[H]], %c0] dims [0, 2] rows(%{{.+}}) : {{.+}}<8x128xbf16, #[[$ROWS:.+]]>
//       CHECK:       %[[Y:.+]], %{{.+}} = gdn_gpu.conv1d
//       CHECK:       %[[UNIT:.+]] = gdn_gpu.map_rows %[[Y]]
//       CHECK:         vector.reduction <add>
//       CHECK:       gdn_gpu.store %[[UNIT]], %{{.+}}[%[[FIRST]], %[[H]], %c0]
func.func @inputs(%T: index, %H: index, %x: !inputs, %w: memref<4x128xf32>, %out: !inputs)
    attributes {gdn_tile.grid = ["T", "H", "4"], gdn_tile.symbols = ["T", "H"]} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  %h = gdn_tile.block_id 1
  %group = gdn_tile.block_id 2
  %first = arith.muli %group, %c8 : index
  %live = arith.cmpi ult, %first, %T : index
  scf.if %live {
    %weight = gdn_tile.load %w[%c0, %c0] dims [0, 1] : memref<4x128xf32>, vector<4x128xf32>
    %window = gdn_tile.fill %zero : f32 -> vector<3x128xf32>
    %in = gdn_tile.load %x[%first, %h, %c0] dims [0, 2] rows(%T) : !inputs, vector<8x128xbf16>
    %wide = gdn_tile.map_rows %in : vector<8x128xbf16> -> vector<8x128xf32> {
    ^bb0(%i: index, %row: vector<128xbf16>):
      %n = arith.extf %row : vector<128xbf16> to vector<128xf32>
      gdn_tile.yield %n : vector<128xf32>
    }
    %y, %next = gdn_tile.conv1d %wide, %window, %weight valid(%c8) : vector<8x128xf32>, vector<3x128xf32>, vector<4x128xf32>
    %unit = gdn_tile.map_rows %y : vector<8x128xf32> -> vector<8x128xbf16> {
    ^bb0(%i: index, %row: vector<128xf32>):
      %squares = arith.mulf %row, %row : vector<128xf32>
      %sum = vector.reduction <add>, %squares fastmath<reassoc> : vector<128xf32> into f32
      %length = math.rsqrt %sum : f32
      %all = vector.broadcast %length : f32 to vector<128xf32>
      %r = arith.mulf %row, %all : vector<128xf32>
      %n = arith.truncf %r : vector<128xf32> to vector<128xbf16>
      gdn_tile.yield %n : vector<128xbf16>
    }
    gdn_tile.store %unit, %out[%first, %h, %c0] dims [0, 2] : vector<8x128xbf16>, !inputs
  }
  return
}

// CHECK-LABEL: func.func @gates(
//  CHECK-SAME:   gdn_tile.grid = ["T", "4"]
//       CHECK:   gdn_tile.map_rows
func.func @gates(%T: index, %x: memref<?x64xf32>)
    attributes {gdn_tile.grid = ["T", "4"], gdn_tile.symbols = ["T"]} {
  %c0 = arith.constant 0 : index
  %t = gdn_tile.block_id 0
  %g = gdn_tile.load %x[%t, %c0] dims [1] : memref<?x64xf32>, vector<64xf32>
  %e = gdn_tile.map_rows %g : vector<64xf32> -> vector<64xf32> {
  ^bb0(%i: index, %v: f32):
    %r = math.exp %v : f32
    gdn_tile.yield %r : f32
  }
  gdn_tile.store %e, %x[%t, %c0] dims [1] : vector<64xf32>, memref<?x64xf32>
  return
}
