// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What roles of different warps keep shares registers: the second role hands on
// what the first one has, in words. Roles with a warp in common do not share.
//
// RUN: gdn-gpu-opt %s -convert-gdn-gpu-to-nvvm -canonicalize -cse | FileCheck %s

#warp = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 2>
!half = !gdn_gpu.fragment<1x64xbf16, #warp>
!float = !gdn_gpu.fragment<1x32xf32, #gdn_gpu.rows<warps = 1, lanes = 32, vector = 1>>

// CHECK-LABEL: llvm.func @keep(
//       CHECK:   %[[NOTHING:.+]] = llvm.mlir.poison : i32
//       CHECK:   %[[FIRST:.+]] = scf.if %{{.+}} -> (i32) {
//       CHECK:   } else {
//  CHECK-NEXT:     scf.yield %[[NOTHING]] : i32
//       CHECK:   %[[BOTH:.+]] = scf.if %{{.+}} -> (i32) {
//       CHECK:     llvm.load %{{.+}} -> f32
//       CHECK:   } else {
//  CHECK-NEXT:     scf.yield %[[FIRST]] : i32
//       CHECK:   %[[AGAIN:.+]] = scf.if %{{.+}} -> (i32) {
//       CHECK:   } else {
//  CHECK-NEXT:     scf.yield %[[NOTHING]] : i32
//       CHECK:   scf.if
//       CHECK:     vector.broadcast %[[BOTH]] : i32 to vector<1xi32>
//       CHECK:   scf.if
//       CHECK:     vector.broadcast %[[BOTH]] : i32 to vector<1xi32>
//       CHECK:     vector.broadcast %[[AGAIN]] : i32 to vector<1xi32>
func.func @keep(%n: index, %x: memref<1x64xbf16>, %y: memref<1x32xf32>)
    attributes {gdn_gpu.threads = 64 : i64, gdn_tile.grid = ["N"], gdn_tile.symbols = ["N"]} {
  %c0 = arith.constant 0 : index
  %a = gdn_gpu.warps 0 for 1 -> !half {
    %t = gdn_gpu.load %x[%c0, %c0] dims [0, 1] aligned 16 : memref<1x64xbf16>, !half
    gdn_gpu.yield %t : !half
  }
  %b = gdn_gpu.warps 1 for 1 -> !float {
    %t = gdn_gpu.load %y[%c0, %c0] dims [0, 1] aligned 16 : memref<1x32xf32>, !float
    gdn_gpu.yield %t : !float
  }
  %c = gdn_gpu.warps 1 for 1 -> !float {
    %t = gdn_gpu.load %y[%c0, %c0] dims [0, 1] aligned 16 : memref<1x32xf32>, !float
    gdn_gpu.yield %t : !float
  }
  gdn_gpu.barrier
  gdn_gpu.warps 0 for 1 {
    gdn_gpu.store %a, %x[%c0, %c0] dims [0, 1] aligned 16 : !half, memref<1x64xbf16>
  }
  gdn_gpu.warps 1 for 1 {
    %s = gdn_gpu.map_rows %b, %c : !float, !float -> !float {
    ^bb0(%i: index, %u: vector<32xf32>, %v: vector<32xf32>):
      %w = arith.addf %u, %v : vector<32xf32>
      gdn_gpu.yield %w : vector<32xf32>
    }
    gdn_gpu.store %s, %y[%c0, %c0] dims [0, 1] aligned 16 : !float, memref<1x32xf32>
  }
  return
}
