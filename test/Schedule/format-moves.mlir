// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A state on its way from planes to f32, and back: all warps hold rows of it,
// with as many lanes to a row of bytes as to one of numbers.
//
// RUN: gdn-opt %s -gdn-schedule-slot-moves -o %t
// RUN: FileCheck %s < %t
// RUN: gdn-gpu-opt %t -gdn-gpu-check -o /dev/null

// CHECK-LABEL: func.func @widen(
//   CHECK-NOT:   gdn_gpu.barrier
//       CHECK:   %[[BYTES:.+]] = gdn_gpu.load {{.+}} dims [0, 1] aligned 16 : {{.+}}<32x128xi8, #[[ROWS:.+]]>
//       CHECK:   %[[SCALE:.+]] = gdn_gpu.load {{.+}} dims [0] : {{.+}}<32xf32, #gdn_gpu.per_row<#[[ROWS]]>>
//       CHECK:   %[[M:.+]] = gdn_gpu.map_rows %[[BYTES]], %[[SCALE]]
//       CHECK:   gdn_gpu.store %[[M]], {{.+}} dims [0, 1] aligned 16 : <32x128xf32, #[[ROWS]]>
func.func @widen(%n: index, %bytes: memref<32x128xi8>, %scales: memref<32xf32>, %to: memref<32x128xf32>)
    attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %m = gdn_tile.load %bytes[%c0, %c0] dims [0, 1] : memref<32x128xi8>, vector<32x128xi8>
  %s = gdn_tile.load %scales[%c0] dims [0] : memref<32xf32>, vector<32xf32>
  %w = gdn_tile.map_rows %m, %s : vector<32x128xi8>, vector<32xf32> -> vector<32x128xf32> {
  ^bb0(%row: index, %b: vector<128xi8>, %scale: f32):
    %x = arith.uitofp %b : vector<128xi8> to vector<128xf32>
    %f = vector.broadcast %scale : f32 to vector<128xf32>
    %y = arith.mulf %x, %f : vector<128xf32>
    gdn_tile.yield %y : vector<128xf32>
  }
  gdn_tile.store %w, %to[%c0, %c0] dims [0, 1] : vector<32x128xf32>, memref<32x128xf32>
  return
}

// CHECK-LABEL: func.func @round(
//       CHECK:   %[[M:.+]] = gdn_gpu.load {{.+}} dims [0, 1] aligned 16 : {{.+}}<32x128xf32, #[[ROWS:.+]]>
//       CHECK:   %[[MADE:.+]]:2 = gdn_gpu.map_rows %[[M]]
//       CHECK:   gdn_gpu.store %[[MADE]]#0, {{.+}} dims [0, 1] aligned 16 : <32x128xi8, #[[ROWS]]>
//       CHECK:   gdn_gpu.store %[[MADE]]#1, {{.+}} dims [0]
func.func @round(%n: index, %from: memref<32x128xf32>, %bytes: memref<32x128xi8>, %scales: memref<32xf32>)
    attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %m = gdn_tile.load %from[%c0, %c0] dims [0, 1] : memref<32x128xf32>, vector<32x128xf32>
  %b, %s = gdn_tile.map_rows %m : vector<32x128xf32> -> vector<32x128xi8>, vector<32xf32> {
  ^bb0(%row: index, %x: vector<128xf32>):
    %most = vector.reduction <maximumf>, %x : vector<128xf32> into f32
    %y = arith.fptoui %x : vector<128xf32> to vector<128xi8>
    gdn_tile.yield %y, %most : vector<128xi8>, f32
  }
  gdn_tile.store %b, %bytes[%c0, %c0] dims [0, 1] : vector<32x128xi8>, memref<32x128xi8>
  gdn_tile.store %s, %scales[%c0] dims [0] : vector<32xf32>, memref<32xf32>
  return
}
