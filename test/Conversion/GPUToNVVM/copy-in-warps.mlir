// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A copy inside gdn_gpu.warps: two of four warps copy 16 rows of 256 bytes, 4 pieces of
// 16 bytes for each of their threads; all threads of the block wait for their own.
//
// RUN: gdn-gpu-opt %s -gdn-gpu-place-barriers -gdn-gpu-check -convert-gdn-gpu-to-nvvm -canonicalize -cse | FileCheck %s

// CHECK-LABEL: llvm.func @copies(
//       CHECK:   %[[FROM_THIRD:.+]] = arith.subi %{{.+}}, %c2_i32
//       CHECK:   %[[IS_HERE:.+]] = arith.cmpi ult, %[[FROM_THIRD]], %c2_i32
//       CHECK:   scf.if %[[IS_HERE]] {
// CHECK-COUNT-4:     nvvm.cp.async.shared.global %{{.+}}, 16, cache = cg
//   CHECK-NOT:     nvvm.cp.async.shared.global
//       CHECK:     nvvm.cp.async.commit.group
//       CHECK:   }
//       CHECK:   nvvm.cp.async.wait.group 0
//       CHECK:   nvvm.barrier
#row = #gdn_gpu.rows<warps = 4, lanes = 32, vector = 4>
func.func @copies(%N: index, %view: memref<?x16x128xf16, strided<[2048, 128, 1]>>)
    attributes {gdn_gpu.kernel = {threads = 128 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %n = gdn_gpu.block_id 0
  %tile = gdn_gpu.alloc : !gdn_gpu.shared<16x128xf16>
  gdn_gpu.warps 2 for 2 {
    gdn_gpu.begin_copy %view[%n, %c0, %c0] dims [1, 2], %tile : memref<?x16x128xf16, strided<[2048, 128, 1]>>, !gdn_gpu.shared<16x128xf16>
  }
  gdn_gpu.await_copies
  gdn_gpu.barrier
  %all = gdn_gpu.load_shared %tile : !gdn_gpu.shared<16x128xf16> -> !gdn_gpu.fragment<16x128xf16, #row>
  gdn_gpu.store %all, %view[%n, %c0, %c0] dims [1, 2] : !gdn_gpu.fragment<16x128xf16, #row>, memref<?x16x128xf16, strided<[2048, 128, 1]>>
  return
}
