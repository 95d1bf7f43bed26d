// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A counter of 16 readers: its limit, 15, has the bit already that depends on
// what was read. LLVM folds a bitwise or of the two, and cannot fold a sum.
//
// RUN: gdn-gpu-opt %s -convert-gdn-gpu-to-nvvm -canonicalize -cse | FileCheck %s

#warp = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!one = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#warp>>

// CHECK-LABEL: llvm.func @tickets(
//       CHECK:   %[[ANY:.+]] = nvvm.vote.sync any
//       CHECK:   %[[BIT:.+]] = arith.extui %[[ANY]]
//       CHECK:   %[[LIMIT:.+]] = arith.addi %[[BIT]], %c15{{.*}} : i32
//       CHECK:   atom.relaxed.gpu.global.inc.u32 {{.*}} %[[LIMIT]]
// The last of 16 blocks finds the arrivals of 15.
//       CHECK:   %[[ARRIVED:.+]] = nvvm.shfl.sync idx
//  CHECK-NEXT:   arith.cmpi eq, %[[ARRIVED]], %c15{{.*}} : i32
func.func @tickets(%n: index, %x: memref<?x128xf32>)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %i = gdn_gpu.block_id 0
  gdn_gpu.warps 0 for 1 {
    %t = gdn_gpu.load %x[%i, %c0] dims [1] aligned 16 : memref<?x128xf32>, !one
    %last = gdn_gpu.last_reader %i of %c16 after %t : !one
    scf.if %last {
      gdn_gpu.store %t, %x[%i, %c0] dims [1] aligned 16 : !one, memref<?x128xf32>
    }
  }
  return
}
