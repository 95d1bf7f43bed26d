// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The outside of a kernel: words as one parameter, the block's number as a unit,
// what a launch has to know; and the same for blocks that stay.
//
// RUN: gdn-gpu-opt %s -convert-gdn-gpu-to-nvvm -canonicalize -cse | FileCheck %s

#rows = #gdn_gpu.rows<warps = 2, lanes = 32, vector = 4>

// 13 words: a memref of rank 2 (5), its null slot, a memref of rank 1 (3), the
// symbols N and H, the workspace and the number of units, and nothing else.
// CHECK-LABEL: llvm.func @words(
//  CHECK-SAME:   %[[WORDS:[a-z0-9]+]]: !llvm.ptr {llvm.align = 8 : i64, llvm.byval = !llvm.array<13 x i64>, nvvm.grid_constant})
//  CHECK-SAME:   gdn_gpu.alignments = array<i64: 16, 0>
//  CHECK-SAME:   gdn_gpu.launch = {blocks_per_sm = 0 : i32, cluster = 1 : i32, counters = ["2", "N"], dependent = false, shared_bytes = 0 : i64, threads = 64 : i32}
//  CHECK-SAME:   grid = ["N", "H"]
//  CHECK-SAME:   nvvm.kernel, nvvm.minctasm = 3 : i32, nvvm.reqntid = array<i32: 64>
//       CHECK:   llvm.getelementptr %[[WORDS]][10] : (!llvm.ptr) -> !llvm.ptr, i64
//       CHECK:   %[[H_WORD:.+]] = llvm.load
//       CHECK:   %[[H_INDEX:.+]] = arith.index_cast %[[H_WORD]] : i64 to index
//       CHECK:   %[[UNIT:.+]] = nvvm.read.ptx.sreg.ctaid.x : i32
//       CHECK:   %[[H:.+]] = arith.index_cast %[[H_INDEX]] : index to i32
//   CHECK-DAG:   arith.remui %[[UNIT]], %[[H]] : i32
//   CHECK-DAG:   arith.divui %[[UNIT]], %[[H]] : i32
//   CHECK-NOT:   scf.for
//       CHECK:   llvm.return
func.func @words(%n: index, %h: index, %x: memref<?x?xf32, strided<[?, 1]>> {gdn_gpu.alignment = 16 : i64},
                 %null: index, %y: memref<?xf32, strided<[?]>>)
    attributes {gdn_gpu.kernel = {threads = 64 : i64, min_blocks = 3 : i64, counters = ["2", "N"]},
                gdn_tile.stage = {grid = ["N", "H"], symbols = ["N", "H"]}} {
  %row = gdn_gpu.block_id 0
  %column = gdn_gpu.block_id 1
  %v = memref.load %y[%row] : memref<?xf32, strided<[?]>>
  %t = gdn_gpu.fill %v : f32 -> !gdn_gpu.fragment<2x128xf32, #rows>
  gdn_gpu.store %t, %x[%row, %column] dims [0, 1]
      : !gdn_gpu.fragment<2x128xf32, #rows>, memref<?x?xf32, strided<[?, 1]>>
  return
}

// A block does every gridDim-th unit; all meet before shared tiles are reused.
// CHECK-LABEL: llvm.func @stays(
//  CHECK-SAME:   blocks_per_sm = 2 : i32
//       CHECK:   %[[FIRST:.+]] = nvvm.read.ptx.sreg.ctaid.x : i32
//       CHECK:   %[[STEP:.+]] = nvvm.read.ptx.sreg.nctaid.x : i32
//       CHECK:   scf.for %{{.+}} = %[[FIRST]] to %{{.+}} step %[[STEP]] : i32 {
//       CHECK:     nvvm.barrier0
//  CHECK-NEXT:   }
//  CHECK-NEXT:   llvm.return
func.func @stays(%n: index, %x: memref<?xf32, strided<[?]>>)
    attributes {gdn_gpu.kernel = {threads = 64 : i64, blocks_per_sm = 2 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %row = gdn_gpu.block_id 0
  %c = arith.constant 1.0 : f32
  %t = gdn_gpu.fill %c : f32 -> !gdn_gpu.fragment<1xf32, #gdn_gpu.per_row<#rows>>
  gdn_gpu.store %t, %x[%row] dims [0] : !gdn_gpu.fragment<1xf32, #gdn_gpu.per_row<#rows>>, memref<?xf32, strided<[?]>>
  return
}

// Axes of the grid and what divides them are below 2^31: their divisions take 32
// bits. P may be anything.
// CHECK-LABEL: llvm.func @divisions(
//       CHECK:   arith.divui %{{.+}}, %{{.+}} : i32
//       CHECK:   arith.remui %{{.+}}, %{{.+}} : i32
//       CHECK:   arith.divui %{{.+}}, %{{.+}} : index
func.func @divisions(%h: index, %k: index, %p: index, %x: memref<?x?xf32>)
    attributes {gdn_gpu.kernel = {threads = 64 : i64},
                gdn_tile.stage = {grid = ["H"], symbols = ["H", "K", "P"],
                                  multiples = ["H", "K"]}} {
  %i = gdn_gpu.block_id 0
  %ratio = arith.divui %h, %k : index
  %r = arith.remui %i, %ratio : index
  %q = arith.divui %p, %ratio : index
  %c = arith.constant 1.0 : f32
  %t = gdn_gpu.fill %c : f32 -> !gdn_gpu.fragment<1xf32, #gdn_gpu.per_row<#rows>>
  gdn_gpu.store %t, %x[%q, %r] dims [0] : !gdn_gpu.fragment<1xf32, #gdn_gpu.per_row<#rows>>, memref<?x?xf32>
  return
}
