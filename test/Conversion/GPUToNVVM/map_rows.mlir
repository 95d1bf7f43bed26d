// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Work on rows: each row of a thread, products that are added with one rounding,
// sums over buffers and lanes, and what all rows share.
//
// RUN: gdn-gpu-opt %s -convert-gdn-gpu-to-nvvm -canonicalize -cse | FileCheck %s

#two = #gdn_gpu.rows<warps = 1, lanes = 16, vector = 2>
#cut = #gdn_gpu.rows<warps = 1, lanes = 2, vector = 4>

// Two lanes' rows of four columns each: two rows per thread. A row's product goes
// even buffers first, in two chains; then four exchanges.
// CHECK-LABEL: llvm.func @sums(
//   CHECK-DAG:   %[[C1:.+]] = arith.constant 1 : i32
//   CHECK-DAG:   %[[C8:.+]] = arith.constant 8 : i32
//   CHECK-NOT:   arith.mulf {{.+}} : vector
// CHECK-COUNT-2:   arith.mulf %{{.+}} : f32
//       CHECK:   math.fma %{{.+}} : f32
//       CHECK:   %[[ODD:.+]] = math.fma %{{.+}} : f32
//       CHECK:   %[[SUM:.+]] = arith.addf %{{.+}}, %[[ODD]] : f32
//       CHECK:   %[[NEXT:.+]] = nvvm.shfl.sync bfly %{{.+}}, %[[SUM]], %[[C1]], %{{.+}} : f32 -> f32
//       CHECK:   arith.addf %[[SUM]], %[[NEXT]] : f32
//       CHECK:   nvvm.shfl.sync bfly %{{.+}}, %{{.+}}, %[[C8]], %{{.+}} : f32 -> f32
// CHECK-COUNT-4:   nvvm.shfl.sync bfly
//   CHECK-NOT:   nvvm.shfl.sync
// What comes of columns alone is there once: four exchanges, not eight.
//       CHECK:   arith.mulf %{{.+}}, %{{.+}} : f32
// CHECK-COUNT-4:   nvvm.shfl.sync bfly
//   CHECK-NOT:   nvvm.shfl.sync
//       CHECK:   %[[MINUS:.+]] = arith.negf %{{.+}} : vector<4xf32>
//       CHECK:   math.fma %[[MINUS]], %{{.+}} : vector<4xf32>
func.func @sums(%n: index, %x: memref<4x64xf32>, %k: memref<64xf32>)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %m = gdn_gpu.load %x[%c0, %c0] dims [0, 1] aligned 16 : memref<4x64xf32>, !gdn_gpu.fragment<4x64xf32, #two>
  %c = gdn_gpu.load %k[%c0] dims [0] aligned 16 : memref<64xf32>, !gdn_gpu.fragment<64xf32, #gdn_gpu.per_column<#two>>
  %y = gdn_gpu.map_rows %m, %c : !gdn_gpu.fragment<4x64xf32, #two>, !gdn_gpu.fragment<64xf32, #gdn_gpu.per_column<#two>>
      -> !gdn_gpu.fragment<4x64xf32, #two> {
  ^bb0(%i: index, %row: vector<64xf32>, %key: vector<64xf32>):
    %p = arith.mulf %row, %key : vector<64xf32>
    %s = vector.reduction <add>, %p : vector<64xf32> into f32
    %q = arith.mulf %key, %key : vector<64xf32>
    %t = vector.reduction <add>, %q : vector<64xf32> into f32
    %u = arith.addf %s, %t : f32
    %all = vector.broadcast %u : f32 to vector<64xf32>
    %d = arith.mulf %all, %key : vector<64xf32>
    %new = arith.subf %row, %d : vector<64xf32>
    gdn_gpu.yield %new : vector<64xf32>
  }
  gdn_gpu.store %y, %x[%c0, %c0] dims [0, 1] aligned 16 : !gdn_gpu.fragment<4x64xf32, #two>, memref<4x64xf32>
  return
}

// 6 columns over lanes of 4: buffers 2 and 3 of the second lane hold nothing and do
// not count. A product with two uses is rounded.
// CHECK-LABEL: llvm.func @cut(
//       CHECK:   %[[PRODUCT:.+]] = arith.mulf %{{.+}} : vector<4xf32>
//       CHECK:   %[[INSIDE:.+]] = arith.cmpi slt, %{{.+}}, %{{.+}} : i32
//       CHECK:   arith.select %[[INSIDE]], %{{.+}}, %{{.+}} : f32
//   CHECK-NOT:   math.fma
//       CHECK:   llvm.return
func.func @cut(%n: index, %x: memref<16x6xf32>)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %m = gdn_gpu.load %x[%c0, %c0] dims [0, 1] : memref<16x6xf32>, !gdn_gpu.fragment<16x6xf32, #cut>
  %y = gdn_gpu.map_rows %m : !gdn_gpu.fragment<16x6xf32, #cut> -> !gdn_gpu.fragment<16x6xf32, #cut> {
  ^bb0(%i: index, %row: vector<6xf32>):
    %p = arith.mulf %row, %row : vector<6xf32>
    %s = vector.reduction <add>, %p : vector<6xf32> into f32
    %all = vector.broadcast %s : f32 to vector<6xf32>
    %new = arith.addf %p, %all : vector<6xf32>
    gdn_gpu.yield %new : vector<6xf32>
  }
  gdn_gpu.store %y, %x[%c0, %c0] dims [0, 1] : !gdn_gpu.fragment<16x6xf32, #cut>, memref<16x6xf32>
  return
}

// A number of the row and a multiple of the distance to each column: converted once
// for a row, and an exact sum for each of a lane's 16 columns. Four lanes of two columns
// have eight columns between one pair and the next.
// CHECK-LABEL: llvm.func @distances(
//       CHECK:   arith.sitofp %{{.+}} : i32 to f32
//       CHECK:   %[[FIRST:.+]] = arith.addf %{{.+}}, %{{.+}} : f32
//       CHECK:   arith.addf %[[FIRST]], %{{.+}} : f32
//   CHECK-NOT:   arith.sitofp %{{.+}} : vector
#tile = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
func.func @distances(%T: index, %g: memref<64xf32>, %out: memref<64x64xf32>)
    attributes {gdn_gpu.kernel = {threads = 128 : i64},
                gdn_tile.stage = {grid = ["T"], symbols = ["T"]}} {
  %c0 = arith.constant 0 : index
  %own = gdn_gpu.load %g[%c0] dims [0] : memref<64xf32>,
      !gdn_gpu.fragment<64xf32, #gdn_gpu.per_row<#tile>>
  %bound = gdn_gpu.map_rows %own
      : !gdn_gpu.fragment<64xf32, #gdn_gpu.per_row<#tile>> -> !gdn_gpu.fragment<64x64xf32, #tile> {
  ^bb0(%row: index, %x: f32):
    %columns = vector.step : vector<64xindex>
    %rows = vector.broadcast %row : index to vector<64xindex>
    %distance = arith.subi %columns, %rows : vector<64xindex>
    %narrow = arith.index_cast %distance : vector<64xindex> to vector<64xi32>
    %steep = arith.constant dense<1024> : vector<64xi32>
    %times = arith.muli %narrow, %steep : vector<64xi32>
    %number = arith.sitofp %times : vector<64xi32> to vector<64xf32>
    %start = vector.broadcast %x : f32 to vector<64xf32>
    %y = arith.addf %number, %start : vector<64xf32>
    gdn_gpu.yield %y : vector<64xf32>
  }
  gdn_gpu.store %bound, %out[%c0, %c0] dims [0, 1]
      : !gdn_gpu.fragment<64x64xf32, #tile>, memref<64x64xf32>
  return
}

// The largest of a row: lanes exchange what they have; past the last column
// nothing counts.
// CHECK-LABEL: llvm.func @largest(
//       CHECK:   %[[LEAST:.+]] = arith.constant 0xFF800000 : f32
// CHECK-COUNT-3: arith.maximumf
//       CHECK:   arith.select %{{.+}}, %{{.+}}, %[[LEAST]] : f32
//       CHECK:   %[[OTHER:.+]] = nvvm.shfl.sync bfly
//       CHECK:   arith.maximumf %{{.+}}, %[[OTHER]] : f32
//   CHECK-NOT:   nvvm.shfl.sync
func.func @largest(%n: index, %x: memref<1x12xf32>, %y: memref<1xf32>)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %m = gdn_gpu.load %x[%c0, %c0] dims [0, 1] : memref<1x12xf32>, !gdn_gpu.fragment<1x12xf32, #cut>
  %most = gdn_gpu.map_rows %m : !gdn_gpu.fragment<1x12xf32, #cut>
      -> !gdn_gpu.fragment<1xf32, #gdn_gpu.per_row<#cut>> {
  ^bb0(%i: index, %row: vector<12xf32>):
    %a = vector.reduction <maximumf>, %row : vector<12xf32> into f32
    gdn_gpu.yield %a : f32
  }
  gdn_gpu.store %most, %y[%c0] dims [0] : !gdn_gpu.fragment<1xf32, #gdn_gpu.per_row<#cut>>, memref<1xf32>
  return
}
