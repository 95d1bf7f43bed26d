// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rows one after another: the words of a narrow row pass through assembly without an
// instruction, then the row is widened, and what it gives passes through some too.
// Where nothing is summed a zero that only the launch knows is mixed in, or ptxas would
// keep what it has widened before.
//
// RUN: gdn-gpu-opt %s -convert-gdn-gpu-to-nvvm -canonicalize -cse | FileCheck %s

#rows = #gdn_gpu.rows<warps = 1, lanes = 8, vector = 8>
!state = !gdn_gpu.fragment<8x64xbf16, #rows>
!row = !gdn_gpu.fragment<8xf32, #gdn_gpu.per_row<#rows>>
!view = memref<?x8x64xbf16, strided<[512, 64, 1]>>

// CHECK-LABEL: llvm.func @twice(
// A row is widened and summed, and the sum passes, before the next one does.
//   CHECK-NOT: nctaid
//       CHECK: arith.extf
//       CHECK: nvvm.shfl.sync
//       CHECK: llvm.inline_asm has_side_effects {{.*}}"=r,0"
//   CHECK-NOT: arith.xori
// CHECK-COUNT-4: llvm.inline_asm asm_dialect {{.*}}"=r,0"
//       CHECK: arith.extf
//       CHECK: nvvm.shfl.sync
//       CHECK: llvm.inline_asm has_side_effects {{.*}}nctaid.z
// Twice: the same words, another way to widen them.
//       CHECK: arith.xori
//  CHECK-NEXT: vector.bitcast
//  CHECK-NEXT: arith.extf
//       CHECK: arith.truncf
// CHECK-COUNT-4: llvm.inline_asm asm_dialect {{.*}}"=r,0"
//       CHECK: arith.xori
//       CHECK: llvm.return
func.func @twice(%N: index, %view: !view)
    attributes {gdn_gpu.kernel = {rows_apart, threads = 32 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %n = gdn_gpu.block_id 0
  %state = gdn_gpu.load %view[%n, %c0, %c0] dims [1, 2] : !view, !state
  %sum = gdn_gpu.map_rows %state : !state -> !row {
  ^bb0(%i: index, %row: vector<64xbf16>):
    %wide = arith.extf %row : vector<64xbf16> to vector<64xf32>
    %s = vector.reduction <add>, %wide fastmath<reassoc> : vector<64xf32> into f32
    gdn_gpu.yield %s : f32
  }
  %next = gdn_gpu.map_rows %state, %sum : !state, !row -> !state {
  ^bb0(%i: index, %row: vector<64xbf16>, %s: f32):
    %wide = arith.extf %row : vector<64xbf16> to vector<64xf32>
    %all = vector.broadcast %s : f32 to vector<64xf32>
    %less = arith.subf %wide, %all : vector<64xf32>
    %narrow = arith.truncf %less : vector<64xf32> to vector<64xbf16>
    gdn_gpu.yield %narrow : vector<64xbf16>
  }
  gdn_gpu.store %next, %view[%n, %c0, %c0] dims [1, 2] : !state, !view
  return
}

#turns = #gdn_gpu.rows<warps = 1, lanes = 8, vector = 8, cyclic = true>
!turns = !gdn_gpu.fragment<8x64xbf16, #turns>
!number = !gdn_gpu.fragment<8xf32, #gdn_gpu.per_row<#turns>>

// Shared sums: what a thread has of a row passes before the next row is widened, and the lanes
// exchange behind the last one; what is computed from a sum comes behind that, row after row.
// CHECK-LABEL: llvm.func @shared(
//       CHECK: arith.extf
//   CHECK-NOT: nvvm.shfl.sync
//       CHECK: llvm.inline_asm has_side_effects {{.*}}"=r,0"
//       CHECK: arith.extf
//   CHECK-NOT: nvvm.shfl.sync
//       CHECK: llvm.inline_asm has_side_effects {{.*}}"=r,0"
//       CHECK: nvvm.shfl.sync bfly
// CHECK-COUNT-2: nvvm.shfl.sync idx
//   CHECK-NOT: nvvm.shfl.sync
//       CHECK: arith.mulf
//       CHECK: llvm.inline_asm has_side_effects {{.*}}"=r,0"
//       CHECK: arith.mulf
//       CHECK: llvm.inline_asm has_side_effects {{.*}}"=r,0"
//       CHECK: llvm.return
func.func @shared(%N: index, %view: !view, %to: memref<?x8xf32, strided<[8, 1]>>)
    attributes {gdn_gpu.kernel = {rows_apart, threads = 32 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %n = gdn_gpu.block_id 0
  %state = gdn_gpu.load %view[%n, %c0, %c0] dims [1, 2] : !view, !turns
  %sum = gdn_gpu.map_rows %state : !turns -> !number {
  ^bb0(%i: index, %row: vector<64xbf16>):
    %wide = arith.extf %row : vector<64xbf16> to vector<64xf32>
    %s = vector.reduction <add>, %wide fastmath<reassoc> : vector<64xf32> into f32
    %square = arith.mulf %s, %s : f32
    gdn_gpu.yield %square : f32
  } {share_sums}
  gdn_gpu.store %sum, %to[%n, %c0] dims [1] : !number, memref<?x8xf32, strided<[8, 1]>>
  return
}

// A shared sum that is given as it is: the sums of both rows, from the lanes that have them.
// CHECK-LABEL: llvm.func @given(
//       CHECK: nvvm.shfl.sync bfly
//       CHECK: %[[FIRST:.+]] = nvvm.shfl.sync idx
//       CHECK: %[[SECOND:.+]] = nvvm.shfl.sync idx
//   CHECK-NOT: vector.reduction
//       CHECK: arith.bitcast %[[FIRST]] : f32 to i32
//       CHECK: arith.bitcast %[[SECOND]] : f32 to i32
//       CHECK: llvm.return
func.func @given(%N: index, %view: !view, %to: memref<?x8xf32, strided<[8, 1]>>)
    attributes {gdn_gpu.kernel = {rows_apart, threads = 32 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %n = gdn_gpu.block_id 0
  %state = gdn_gpu.load %view[%n, %c0, %c0] dims [1, 2] : !view, !turns
  %sum = gdn_gpu.map_rows %state : !turns -> !number {
  ^bb0(%i: index, %row: vector<64xbf16>):
    %wide = arith.extf %row : vector<64xbf16> to vector<64xf32>
    %s = vector.reduction <add>, %wide fastmath<reassoc> : vector<64xf32> into f32
    gdn_gpu.yield %s : f32
  } {share_sums}
  gdn_gpu.store %sum, %to[%n, %c0] dims [1] : !number, memref<?x8xf32, strided<[8, 1]>>
  return
}
