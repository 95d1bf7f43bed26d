// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A state of 16 bits on tensor cores. Of each of the lane's two rows four products give
// upper rows and four lower ones; words on the right are computed, so that none has to
// move, and what comes of it has the other sign.
//
// RUN: gdn-gpu-opt %s -convert-gdn-gpu-to-nvvm -canonicalize -cse | FileCheck %s

#rows = #gdn_gpu.rows<warps = 1, lanes = 4, vector = 8>
!view = memref<?x16x128xbf16, strided<[2048, 128, 1]>>
!row = !gdn_gpu.shared<3x128xbf16>
!sums = !gdn_gpu.shared<2x16xf32>

// CHECK-LABEL: llvm.func @products(
// The lane's part of key or query: its 32 columns in four loads.
// CHECK-COUNT-4: llvm.load %{{.+}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
// CHECK-COUNT-16: nvvm.mma.sync
//   CHECK-NOT:   nvvm.mma.sync
//       CHECK:   nvvm.shfl.sync
//       CHECK:   scf.if
//       CHECK:     arith.negf
// CHECK-COUNT-2: llvm.store %{{.+}}, %{{.+}} {alignment = 4 : i64} : f32, !llvm.ptr<3>
//   CHECK-NOT:   llvm.store
//       CHECK: llvm.return
func.func @products(%N: index, %view: !view, %f: memref<?x3x128xbf16, strided<[384, 128, 1]>>)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %x = arith.constant 2.0 : f32
  %n = gdn_gpu.block_id 0
  %state = gdn_gpu.load %view[%n, %c0, %c0] dims [1, 2] : !view, !gdn_gpu.fragment<16x128xbf16, #rows>
  %key = gdn_gpu.alloc : !row
  %to = gdn_gpu.alloc : !sums
  gdn_gpu.begin_copy %f[%n, %c0, %c0] dims [1, 2], %key : memref<?x3x128xbf16, strided<[384, 128, 1]>>, !row
  gdn_gpu.await_copies
  gdn_gpu.barrier
  gdn_gpu.share_part_products %state, %key scaled(%x), %key scaled(%x), %to : !gdn_gpu.fragment<16x128xbf16, #rows>, !row, !sums
  return
}
