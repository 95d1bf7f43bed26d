// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Units that a block takes when it has room for one: round trip, both forms, and a
// program that gdn-gpu-check lets pass.
//
// RUN: gdn-gpu-opt %s | gdn-gpu-opt | FileCheck %s
// RUN: gdn-gpu-opt %s -mlir-print-op-generic | gdn-gpu-opt | FileCheck %s
// RUN: gdn-gpu-opt %s -gdn-gpu-check -o /dev/null

// CHECK-LABEL: func.func @taken(
//       CHECK:   gdn_gpu.warps 0 for 1 {
//  CHECK-NEXT:     gdn_gpu.units taken {
//  CHECK-NEXT:       %[[NEXT:.+]] = gdn_gpu.take_unit
//       CHECK:       gdn_gpu.commit
//  CHECK-NEXT:       gdn_gpu.yield %[[NEXT]] : index
//       CHECK:   gdn_gpu.warps 1 for 1 {
//  CHECK-NEXT:     gdn_gpu.units taken {
//       CHECK:       gdn_gpu.yield %{{.+}} : index
#one = #gdn_gpu.rows<warps = 1, lanes = 1, vector = 1>
!numbers = !gdn_gpu.channel<1xf32, depth = 1>
!number = !gdn_gpu.fragment<1xf32, #gdn_gpu.per_row<#one>>

func.func @taken(%n: index, %x: memref<?xf32>)
    attributes {gdn_gpu.kernel = {threads = 64 : i64, blocks_per_sm = 1 : i64, counters = ["1"]},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %numbers = gdn_gpu.channel : !numbers
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      gdn_gpu.units taken {
        %next = gdn_gpu.take_unit
        %word = arith.index_cast %next : index to i32
        %bits = arith.bitcast %word : i32 to f32
        %t = gdn_gpu.fill %bits : f32 -> !number
        %place = gdn_gpu.acquire %numbers : !numbers -> !gdn_gpu.shared<1xf32>
        gdn_gpu.store_shared %t, %place : !number, !gdn_gpu.shared<1xf32>
        gdn_gpu.commit %numbers : !numbers
        gdn_gpu.yield %next : index
      }
    }
    gdn_gpu.warps 1 for 1 {
      gdn_gpu.units taken {
        %i = gdn_gpu.block_id 0
        %word = arith.index_cast %i : index to i32
        %own = arith.sitofp %word : i32 to f32
        %t = gdn_gpu.fill %own : f32 -> !number
        gdn_gpu.store %t, %x[%i] dims [0] : !number, memref<?xf32>
        %tile = gdn_gpu.receive %numbers : !numbers -> !gdn_gpu.shared<1xf32>
        %bits = gdn_gpu.load_shared_element %tile[%c0] : !gdn_gpu.shared<1xf32> -> f32
        gdn_gpu.release %numbers : !numbers
        %next_word = arith.bitcast %bits : f32 to i32
        %next = arith.index_cast %next_word : i32 to index
        gdn_gpu.yield %next : index
      }
    }
  }
  return
}
