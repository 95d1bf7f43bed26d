// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Planes that receive pending tokens. Four permutations of bytes make the words of two
// columns of four tokens; bytes become the sums' start by permutations and one addition and
// multiplication each, a product adds sixteen tokens to them, and the planes of the sums
// are permuted from those of four numbers.
//
// RUN: gdn-gpu-opt %s -convert-gdn-gpu-to-nvvm -canonicalize -cse | FileCheck %s

#crossed = #gdn_gpu.rows<warps = 1, lanes = 8, vector = 16, crossed = true>
#rows = #gdn_gpu.rows<warps = 1, lanes = 4, vector = 16>
!planes = memref<?x16x128xi8, strided<[2048, 128, 1]>>
!scales = memref<?x16xf32, strided<[16, 1]>>
!tokens = memref<?x16x128xf16, strided<[2048, 128, 1]>>

// Eight rows are the columns of a product: each has the sums of a lane's two rows.
//
// CHECK-LABEL: llvm.func @eight(
// CHECK-COUNT-4: llvm.load %{{.+}} {alignment = 4 : i64} : !llvm.ptr<3> -> i32
//       CHECK: nvvm.prmt
//       CHECK: llvm.store %{{.+}}, %{{.+}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<3>
//       CHECK: arith.cmpf olt, %{{.+}}, %cst{{.*}} : f32
//       CHECK: nvvm.shfl.sync bfly
// What a row is summed up in: no unit is more than one.
//       CHECK: arith.minnumf
//       CHECK: nvvm.shfl.sync idx
// CHECK-COUNT-4: llvm.load %{{.+}} {alignment = 2 : i64} : !llvm.ptr<3> -> f16
//       CHECK: nvvm.prmt
//       CHECK: math.fma
// Eight pairs of columns, with both parts of deltas.
// CHECK-COUNT-16: nvvm.mma.sync A[%{{.+}}, %{{.+}}, %{{.+}}, %{{.+}}] B[%{{.+}}, %{{.+}}]
//   CHECK-NOT: nvvm.mma.sync
//       CHECK: arith.maximumf
//       CHECK: nvvm.shfl.sync bfly %{{.+}}, %{{.+}}, %c4_i32
//       CHECK: nvvm.shfl.sync bfly %{{.+}}, %{{.+}}, %c8_i32
//       CHECK: nvvm.shfl.sync bfly %{{.+}}, %{{.+}}, %c16_i32
//       CHECK: math.fma
//       CHECK: nvvm.prmt
// The lanes of a row are four apart; the first of them stores its scale.
//       CHECK: arith.cmpi eq, %{{.+}}, %c0_i32
func.func @eight(%N: index, %upper: !planes, %scales: !scales, %low: !planes, %tokens: !tokens)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}, gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %kept = arith.constant 0.5 : f32
  %n = gdn_gpu.block_id 0
  %from = gdn_gpu.alloc : !gdn_gpu.shared<16x128xf16>
  %keys = gdn_gpu.alloc : !gdn_gpu.shared<8x264xf16>
  %deltas = gdn_gpu.alloc : !gdn_gpu.shared<16x8xf16>
  %weights = gdn_gpu.alloc : !gdn_gpu.shared<16xf32>
  gdn_gpu.begin_copy %tokens[%n, %c0, %c0] dims [1, 2], %from : !tokens, !gdn_gpu.shared<16x128xf16>
  gdn_gpu.begin_copy %tokens[%n, %c0, %c0] dims [1, 2], %deltas : !tokens, !gdn_gpu.shared<16x8xf16>
  gdn_gpu.begin_copy %scales[%n, %c0] dims [1], %weights : !scales, !gdn_gpu.shared<16xf32>
  gdn_gpu.await_copies
  gdn_gpu.barrier
  gdn_gpu.share_key_columns left %from, %keys : !gdn_gpu.shared<16x128xf16>, !gdn_gpu.shared<8x264xf16>
  gdn_gpu.barrier
  %unit = gdn_gpu.token_unit %weights : !gdn_gpu.shared<16xf32>
  %u = gdn_gpu.load %upper[%n, %c0, %c0] dims [1, 2] : !planes, !gdn_gpu.fragment<8x128xi8, #crossed>
  %s = gdn_gpu.load %scales[%n, %c0] dims [1] : !scales, !gdn_gpu.fragment<8xf32, #gdn_gpu.per_row<#crossed>>
  %l = gdn_gpu.load %low[%n, %c0, %c0] dims [1, 2] : !planes, !gdn_gpu.fragment<8x128xi8, #crossed>
  %new:3 = gdn_gpu.fold_planes %u low(%l : !gdn_gpu.fragment<8x128xi8, #crossed>) scales(%s) kept(%kept), %deltas[%c0], %weights unit(%unit), %keys
      : !gdn_gpu.fragment<8x128xi8, #crossed>, !gdn_gpu.fragment<8xf32, #gdn_gpu.per_row<#crossed>>, !gdn_gpu.shared<16x8xf16>, !gdn_gpu.shared<16xf32>, !gdn_gpu.shared<8x264xf16>
  gdn_gpu.store %new#0, %upper[%n, %c0, %c0] dims [1, 2] : !gdn_gpu.fragment<8x128xi8, #crossed>, !planes
  gdn_gpu.store %new#1, %scales[%n, %c0] dims [1] : !gdn_gpu.fragment<8xf32, #gdn_gpu.per_row<#crossed>>, !scales
  gdn_gpu.store %new#2, %low[%n, %c0, %c0] dims [1, 2] : !gdn_gpu.fragment<8x128xi8, #crossed>, !planes
  return
}

// Sixteen rows of one plane are the rows of a product, by one part of deltas.
//
// CHECK-LABEL: llvm.func @sixteen(
// CHECK-COUNT-16: nvvm.mma.sync
//   CHECK-NOT: nvvm.mma.sync
func.func @sixteen(%N: index, %upper: !planes, %scales: !scales, %tokens: !tokens)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}, gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %kept = arith.constant 0.5 : f32
  %n = gdn_gpu.block_id 0
  %from = gdn_gpu.alloc : !gdn_gpu.shared<12x128xf16>
  %keys = gdn_gpu.alloc : !gdn_gpu.shared<8x264xf16>
  %deltas = gdn_gpu.alloc : !gdn_gpu.shared<12x16xf16>
  %weights = gdn_gpu.alloc : !gdn_gpu.shared<12xf32>
  gdn_gpu.begin_copy %tokens[%n, %c0, %c0] dims [1, 2], %from : !tokens, !gdn_gpu.shared<12x128xf16>
  gdn_gpu.begin_copy %tokens[%n, %c0, %c0] dims [1, 2], %deltas : !tokens, !gdn_gpu.shared<12x16xf16>
  gdn_gpu.begin_copy %scales[%n, %c0] dims [1], %weights : !scales, !gdn_gpu.shared<12xf32>
  gdn_gpu.await_copies
  gdn_gpu.barrier
  gdn_gpu.share_key_columns %from, %keys : !gdn_gpu.shared<12x128xf16>, !gdn_gpu.shared<8x264xf16>
  gdn_gpu.barrier
  %unit = gdn_gpu.token_unit %weights : !gdn_gpu.shared<12xf32>
  %u = gdn_gpu.load %upper[%n, %c0, %c0] dims [1, 2] : !planes, !gdn_gpu.fragment<16x128xi8, #rows>
  %s = gdn_gpu.load %scales[%n, %c0] dims [1] : !scales, !gdn_gpu.fragment<16xf32, #gdn_gpu.per_row<#rows>>
  %new:2 = gdn_gpu.fold_planes rounded %u low() scales(%s) kept(%kept), %deltas[%c0], %weights unit(%unit), %keys
      : !gdn_gpu.fragment<16x128xi8, #rows>, !gdn_gpu.fragment<16xf32, #gdn_gpu.per_row<#rows>>, !gdn_gpu.shared<12x16xf16>, !gdn_gpu.shared<12xf32>, !gdn_gpu.shared<8x264xf16>
  gdn_gpu.store %new#0, %upper[%n, %c0, %c0] dims [1, 2] : !gdn_gpu.fragment<16x128xi8, #rows>, !planes
  gdn_gpu.store %new#1, %scales[%n, %c0] dims [1] : !gdn_gpu.fragment<16xf32, #gdn_gpu.per_row<#rows>>, !scales
  return
}
