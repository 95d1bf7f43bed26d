// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products as good as in f32 on tensor cores: 16 steps of 8 columns, three
// products of parts of 11 bits for each 16 rows of the warp's 32. Of up to four rows
// of the shared tiles, or of up to eight, for which the parts of the state are the
// same.
//
// RUN: gdn-gpu-opt %s | gdn-gpu-opt | FileCheck %s --check-prefix=OP
// RUN: gdn-gpu-opt %s -convert-gdn-gpu-to-nvvm -canonicalize -cse | FileCheck %s

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 4>
#row = #gdn_gpu.rows<warps = 4, lanes = 32, vector = 4>
!state = !gdn_gpu.fragment<128x128xf32, #rows>
!keys = !gdn_gpu.shared<8x128xf32>
!sums = !gdn_gpu.shared<8x128xf32>

// OP: gdn_gpu.share_products %{{.+}}, %{{.+}}, %{{.+}} rows(%{{.+}}), %{{.+}}, %{{.+}} : <128x128xf32,

// CHECK-LABEL: llvm.func @products(
//       CHECK: scf.if
// The first 16 bytes of the lane's row of keys or queries.
//       CHECK:   llvm.load %{{.+}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xf32>
//       CHECK:   arith.andi %{{.+}}, %c-8192_i32
//       CHECK:   arith.subf
// CHECK-COUNT-96: mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32
//   CHECK-NOT:   mma.sync
// Of two blocks of 16 rows, four sums of a lane.
// CHECK-COUNT-8: llvm.store %{{.+}}, %{{.+}} {alignment = 4 : i64} : f32, !llvm.ptr<3>
//   CHECK-NOT:   llvm.store
//       CHECK: scf.if
// CHECK-COUNT-192: mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32
//   CHECK-NOT:   mma.sync
// CHECK-COUNT-16: llvm.store %{{.+}}, %{{.+}} {alignment = 4 : i64} : f32, !llvm.ptr<3>
//   CHECK-NOT:   llvm.store
//       CHECK: llvm.return
func.func @products(%N: index, %view: memref<?x128x128xf32, strided<[16384, 128, 1]>>)
    attributes {gdn_gpu.kernel = {threads = 128 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %n = gdn_gpu.block_id 0
  %state = gdn_gpu.load %view[%n, %c0, %c0] dims [1, 2] : memref<?x128x128xf32, strided<[16384, 128, 1]>>, !state
  %keys = gdn_gpu.alloc : !keys
  %queries = gdn_gpu.alloc : !keys
  %known = gdn_gpu.alloc : !sums
  %seen = gdn_gpu.alloc : !sums
  gdn_gpu.begin_copy %view[%n, %c0, %c0] dims [1, 2], %keys : memref<?x128x128xf32, strided<[16384, 128, 1]>>, !keys
  gdn_gpu.begin_copy %view[%n, %c0, %c0] dims [1, 2], %queries : memref<?x128x128xf32, strided<[16384, 128, 1]>>, !keys
  gdn_gpu.await_copies
  gdn_gpu.barrier
  gdn_gpu.share_products %state, %keys, %queries rows(%N), %known, %seen : !state, !keys, !sums
  return
}
