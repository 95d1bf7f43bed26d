// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A copy of rows at any alignment: where 16 bytes divide the address and the stride of rows, each
// of 128 threads has a column of 16 bytes and every eighth of 19 rows; else the block goes through
// elements. Rows that are not read are zero.
//
// RUN: gdn-gpu-opt %s -gdn-gpu-check -convert-gdn-gpu-to-nvvm -canonicalize -cse | FileCheck %s

// CHECK-LABEL: llvm.func @rows(
//       CHECK:   %[[ADDRESS:.+]] = llvm.ptrtoint
//       CHECK:   %[[BOTH:.+]] = arith.ori %[[ADDRESS]], %{{.+}} : i64
//       CHECK:   %[[PAST:.+]] = arith.andi %[[BOTH]], %c15_i64
//       CHECK:   %[[IS_ALIGNED:.+]] = arith.cmpi eq, %[[PAST]], %c0_i64
//       CHECK:   scf.if %[[IS_ALIGNED]] {
// CHECK-COUNT-2:     nvvm.cp.async.shared.global %{{.+}}, 16, cache = cg, %{{.+}}
//       CHECK:     scf.if
//       CHECK:       nvvm.cp.async.shared.global
//   CHECK-NOT:     nvvm.cp.async.shared.global
//       CHECK:   } else {
//       CHECK:     scf.for
//       CHECK:       scf.if %{{.+}} -> (i16) {
//       CHECK:         llvm.load
//       CHECK:       llvm.store
//       CHECK:   nvvm.cp.async.commit.group
func.func @rows(%N: index, %view: memref<?x128xf16, strided<[?, 1]>>, %out: memref<?x128xf16>)
    attributes {gdn_gpu.kernel = {threads = 128 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %n = gdn_gpu.block_id 0
  %tile = gdn_gpu.alloc : !gdn_gpu.shared<19x128xf16>
  gdn_gpu.begin_copy any_alignment %view[%n, %c0] dims [0, 1] rows(%N), %tile : memref<?x128xf16, strided<[?, 1]>>, !gdn_gpu.shared<19x128xf16>
  gdn_gpu.await_copies
  gdn_gpu.barrier
  gdn_gpu.warps 0 for 1 {
    %all = gdn_gpu.load_shared %tile : !gdn_gpu.shared<19x128xf16> -> !gdn_gpu.fragment<19x128xf16, #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>>
    gdn_gpu.store %all, %out[%n, %c0] dims [0, 1] : !gdn_gpu.fragment<19x128xf16, #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>>, memref<?x128xf16>
  }
  return
}
