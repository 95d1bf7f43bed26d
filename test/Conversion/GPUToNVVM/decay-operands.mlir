// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operands with a decay per channel: slices of 16 channels. Eight queries and
// eight keys are the rows of one product, of tf32. Sums of logs are products with
// matrices of zeros and ones. Decays of 16 bits go by pairs.
//
// RUN: gdn-gpu-opt %s -convert-gdn-gpu-to-nvvm -canonicalize -cse | FileCheck %s
// RUN: sed 's/threads = /stores_matrices, threads = /' %s | gdn-gpu-opt -convert-gdn-gpu-to-nvvm -canonicalize -cse | FileCheck %s --check-prefix=STORES

#logs = #gdn_gpu.rows<warps = 1, lanes = 4, vector = 4>
#rows = #gdn_gpu.rows<warps = 1, lanes = 4, vector = 2>
!tile = !gdn_gpu.shared<16x16xf16, swizzled>
!input = !gdn_gpu.shared<16x16xbf16, swizzled>

// One slice, one warp. Sums over two rows of a lane, then over the lanes with
// the same channels.
// CHECK-LABEL: llvm.func @operands(
// CHECK-COUNT-4: nvvm.shfl.sync bfly %{{.+}}, %{{.+}}, %c4
// CHECK-COUNT-4: nvvm.shfl.sync bfly %{{.+}}, %{{.+}}, %c8
// CHECK-COUNT-4: nvvm.shfl.sync bfly %{{.+}}, %{{.+}}, %c16
//       CHECK: llvm.store %{{.+}} {alignment = 16 : i64} : vector<4xf32>
// Logs in f16, which stay finite, for the warp itself.
//       CHECK: arith.truncf %{{.+}} : vector<2xf32> to vector<2xf16>
//       CHECK: arith.maximumf %{{.+}}, %{{.+}} : vector<2xf16>
//       CHECK: nvvm.bar.warp.sync
//       CHECK: nvvm.barrier
// Words of queries and of keys by one instruction, then logs.
// CHECK-COUNT-2: nvvm.ldmatrix {{.+}} layout = #nvvm.mma_layout<row>
//       CHECK: nvvm.ldmatrix {{.+}} layout = #nvvm.mma_layout<col>
//       CHECK: nvvm.bar.warp.sync
// Logs that count for scores, and their sums from the middle of the 16 tokens;
// decays and their inverses. Scores of the first eight tokens, of the others
// with these, and with themselves, each by eight channels.
// CHECK-COUNT-4: arith.maximumf %{{.+}}, %{{.+}} : vector<2xf16>
// CHECK-COUNT-2: nvvm.mma.sync {{.+}} shape = #nvvm.shape<m = 16, n = 8, k = 16>
// CHECK-COUNT-8: arith.negf
// CHECK-COUNT-16: math.exp2 %{{.+}} fastmath<afn> : f32
// CHECK-COUNT-6: llvm.inline_asm {{.*}}m16n8k8.row.col.f32.tf32.tf32.f32
//   CHECK-NOT: llvm.inline_asm
// From the first token to each, and behind each to the last.
// CHECK-COUNT-2: nvvm.mma.sync {{.+}} shape = #nvvm.shape<m = 16, n = 8, k = 16>
// CHECK-COUNT-8: math.exp2 %{{.+}} fastmath<afn> : f32
// CHECK-COUNT-2: nvvm.mma.sync {{.+}} shape = #nvvm.shape<m = 16, n = 8, k = 16>
// CHECK-COUNT-8: math.exp2 %{{.+}} fastmath<afn> : f32
//   CHECK-NOT: nvvm.mma.sync
//   CHECK-NOT: nvvm.shfl
//       CHECK: llvm.return

// STORES-LABEL: llvm.func @operands(
//  STORES-NOT: nvvm.stmatrix
//      STORES: nvvm.barrier
// No warp stands before or behind it.
// STORES-COUNT-3: nvvm.stmatrix
//  STORES-NOT: nvvm.stmatrix
func.func @operands(%T: index, %in: memref<16x16xf32, strided<[16, 1]>>,
                    %q: memref<?x?x16xbf16, strided<[?, ?, 1], offset: ?>>,
                    %out: memref<16x16xf32, strided<[16, 1]>>)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {grid = ["T"], symbols = ["T"]}} {
  %c0 = arith.constant 0 : index
  %t = gdn_gpu.block_id 0
  %query = gdn_gpu.alloc : !input
  %key = gdn_gpu.alloc : !input
  %toend = gdn_gpu.alloc : !tile
  %sums = gdn_gpu.alloc : !gdn_gpu.shared<2x16xf32>
  %end = gdn_gpu.alloc : !gdn_gpu.shared<16xf32>
  gdn_gpu.begin_copy %q[%t, %c0, %c0] dims [0, 2] rows(%T), %query
      : memref<?x?x16xbf16, strided<[?, ?, 1], offset: ?>>, !input
  gdn_gpu.begin_copy %q[%t, %c0, %c0] dims [0, 2] rows(%T), %key
      : memref<?x?x16xbf16, strided<[?, ?, 1], offset: ?>>, !input
  %g = gdn_gpu.load %in[%c0, %c0] dims [0, 1] : memref<16x16xf32, strided<[16, 1]>>, !gdn_gpu.fragment<16x16xf32, #logs>
  gdn_gpu.await_copies
  gdn_gpu.barrier
  %p, %l = gdn_gpu.decay_operands %g, %query, %key, %toend, %sums, %end
      : !gdn_gpu.fragment<16x16xf32, #logs>, !input, !tile, !gdn_gpu.shared<2x16xf32>,
        !gdn_gpu.shared<16xf32> -> !gdn_gpu.fragment<16x16xf32, #rows>
  gdn_gpu.store %p, %out[%c0, %c0] dims [0, 1] : !gdn_gpu.fragment<16x16xf32, #rows>, memref<16x16xf32, strided<[16, 1]>>
  return
}

// Two warps. The second has the tokens of the first before it: a slice's queries
// and keys, then keys of the first, scaled to its end; and then stores the former
// with the decay before its block. Keys to the end have a block behind them in
// the first warp alone.
// STORES-LABEL: llvm.func @two_warps(
//       STORES: nvvm.barrier
//       STORES: scf.for
// STORES-COUNT-3: nvvm.stmatrix
//       STORES: nvvm.barrier
//       STORES: scf.if
//       STORES: scf.for
// STORES-COUNT-3: nvvm.ldmatrix
// STORES-COUNT-4: nvvm.mma.sync
//       STORES: nvvm.bar.warp.sync
// STORES-COUNT-2: nvvm.stmatrix
//       STORES: nvvm.barrier
//       STORES: scf.if
//       STORES: scf.for
//       STORES: nvvm.ldmatrix
//       STORES: nvvm.bar.warp.sync
//       STORES: nvvm.stmatrix
//   STORES-NOT: nvvm.stmatrix
//       STORES: llvm.return
#logs2 = #gdn_gpu.rows<warps = 2, lanes = 8, vector = 4>
#rows2 = #gdn_gpu.rows<warps = 2, lanes = 4, vector = 2>
!tile2 = !gdn_gpu.shared<32x32xf16, swizzled>
func.func @two_warps(%T: index, %in: memref<32x32xf32, strided<[32, 1]>>,
                     %out: memref<32x32xf32, strided<[32, 1]>>)
    attributes {gdn_gpu.kernel = {threads = 64 : i64},
                gdn_tile.stage = {grid = ["T"], symbols = ["T"]}} {
  %c0 = arith.constant 0 : index
  %query = gdn_gpu.alloc : !tile2
  %key = gdn_gpu.alloc : !tile2
  %toend = gdn_gpu.alloc : !tile2
  %sums = gdn_gpu.alloc : !gdn_gpu.shared<5x32xf32>
  %end = gdn_gpu.alloc : !gdn_gpu.shared<32xf32>
  %g = gdn_gpu.load %in[%c0, %c0] dims [0, 1] : memref<32x32xf32, strided<[32, 1]>>, !gdn_gpu.fragment<32x32xf32, #logs2>
  %p, %l = gdn_gpu.decay_operands %g, %query, %key, %toend, %sums, %end
      : !gdn_gpu.fragment<32x32xf32, #logs2>, !tile2, !tile2, !gdn_gpu.shared<5x32xf32>,
        !gdn_gpu.shared<32xf32> -> !gdn_gpu.fragment<32x32xf32, #rows2>
  gdn_gpu.store %p, %out[%c0, %c0] dims [0, 1] : !gdn_gpu.fragment<32x32xf32, #rows2>, memref<32x32xf32, strided<[32, 1]>>
  return
}
