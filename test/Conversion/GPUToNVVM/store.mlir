// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Fragments to global memory: whole pieces, and one writer of what several
// lanes hold.
//
// RUN: gdn-gpu-opt %s -convert-gdn-gpu-to-nvvm -canonicalize -cse | FileCheck %s

#state = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>

// CHECK-LABEL: llvm.func @matrix(
//   CHECK-NOT:   scf.if
// CHECK-COUNT-16: llvm.store %{{.+}}, %{{.+}} {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
//   CHECK-NOT:   llvm.store
func.func @matrix(%n: index, %x: memref<128x128xf32>)
    attributes {gdn_gpu.kernel = {threads = 256 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = gdn_gpu.fill %zero : f32 -> !gdn_gpu.fragment<128x128xf32, #state>
  gdn_gpu.store %m, %x[%c0, %c0] dims [0, 1] aligned 16
      : !gdn_gpu.fragment<128x128xf32, #state>, memref<128x128xf32>
  return
}

// The first of the eight lanes of a row.
// CHECK-LABEL: llvm.func @per_row(
//       CHECK:   %[[IN_ROW:.+]] = arith.remui %{{.+}}, %c8{{.*}} : i32
//       CHECK:   %[[FIRST:.+]] = arith.cmpi eq, %[[IN_ROW]], %c0
//       CHECK:   scf.if %[[FIRST]] {
// CHECK-COUNT-4:   llvm.store %{{.+}} : f32, !llvm.ptr<1>
//   CHECK-NOT:     llvm.store
func.func @per_row(%n: index, %x: memref<128xf32>)
    attributes {gdn_gpu.kernel = {threads = 256 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = gdn_gpu.fill %zero : f32 -> !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#state>>
  gdn_gpu.store %m, %x[%c0] dims [0]
      : !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#state>>, memref<128xf32>
  return
}

// The first row of lanes of the first warp.
// CHECK-LABEL: llvm.func @per_column(
//       CHECK:   %[[LANES:.+]] = arith.cmpi slt, %{{.+}}, %c8
//       CHECK:   %[[WARP:.+]] = arith.cmpi eq, %{{.+}}, %c0
//       CHECK:   %[[WRITER:.+]] = arith.andi %[[LANES]], %[[WARP]] : i1
//       CHECK:   scf.if %[[WRITER]] {
// CHECK-COUNT-4:   llvm.store %{{.+}} : vector<4xf32>, !llvm.ptr<1>
func.func @per_column(%n: index, %x: memref<128xf32>)
    attributes {gdn_gpu.kernel = {threads = 256 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = gdn_gpu.fill %zero : f32 -> !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#state>>
  gdn_gpu.store %m, %x[%c0] dims [0] aligned 16
      : !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#state>>, memref<128xf32>
  return
}
