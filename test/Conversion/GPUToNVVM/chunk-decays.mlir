// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What roles make of a chunk, with a decay per channel, one after another in one
// block. `test_chunk_decays.py` runs this kernel.
//
// RUN: gdn-gpu-opt %s -convert-gdn-gpu-to-nvvm -canonicalize -cse | FileCheck %s

// Four slices of 16 channels, two in a turn of a loop. Sums of logs of both halves, of eight
// channels each, are products of tf32; exponentials of them are decays: 8 each up to a token,
// behind it, and from the middle.
// CHECK-LABEL: llvm.func @chunk(
//       CHECK: nvvm.barrier
// CHECK-COUNT-4: m16n8k8.row.col.f32.tf32.tf32.f32
//       CHECK: scf.for %{{.+}} = %c0_i32 to %c2_i32 step %c1_i32
// A slice: sums of the next one are on their way.
// CHECK-COUNT-2: nvvm.ldmatrix
// CHECK-COUNT-24: ex2.approx.ftz.f32
// CHECK-COUNT-4: m16n8k8.row.col.f32.tf32.tf32.f32
//       CHECK: nvvm.vote.sync any
// Only where one of the decays is very small are the factors of scores made again, of
// bounded logs.
//       CHECK: scf.if
// CHECK-COUNT-8: arith.maxnumf
// CHECK-COUNT-4: m16n8k8.row.col.f32.tf32.tf32.f32
// CHECK-COUNT-16: ex2.approx.ftz.f32
//       CHECK: } else {
//       CHECK: nvvm.bar.warp.sync
// Three products of halves for eight channels each.
// CHECK-COUNT-6: m16n8k8.row.col.f32.tf32.tf32.f32
// CHECK-COUNT-3: nvvm.stmatrix
//       CHECK: nvvm.vote.sync any
//   CHECK-NOT: nvvm.vote.sync any
//       CHECK: nvvm.barrier
// Eight slices of the second 16 tokens with keys of the first, of which four get decays, too.
// What the next slice multiplies is loaded first.
// CHECK-COUNT-4: nvvm.ldmatrix
// CHECK-COUNT-2: nvvm.mma.sync {{.+}} shape = #nvvm.shape<m = 16, n = 8, k = 16>
//       CHECK: nvvm.bar.warp.sync
// CHECK-COUNT-2: nvvm.stmatrix
// CHECK-COUNT-12: nvvm.ldmatrix
//   CHECK-NOT: nvvm.ldmatrix
//       CHECK: nvvm.barrier
// Scores of both blocks, then substitution: a lane has a column of 16.
// CHECK-COUNT-2: nvvm.stmatrix
// CHECK-COUNT-120: math.fma
//   CHECK-NOT: math.fma
//       CHECK: nvvm.barrier
// CHECK-COUNT-3: nvvm.ldmatrix
// CHECK-COUNT-4: nvvm.mma.sync {{.+}} shape = #nvvm.shape<m = 16, n = 8, k = 16>
//       CHECK: nvvm.stmatrix
//       CHECK: nvvm.barrier

#one = #gdn_gpu.rows<warps = 1, lanes = 1, vector = 1>
!tile = !gdn_gpu.shared<32x128xbf16, swizzled>
!half = !gdn_gpu.shared<32x128xf16, swizzled>
!logs = !gdn_gpu.shared<32x128xf32, swizzled>
!first = !gdn_gpu.shared<16x128xf16, swizzled>
!decays = !gdn_gpu.shared<2x128xf32>
!products = !gdn_gpu.shared<32x64xf16, swizzled>
!end = !gdn_gpu.shared<128xf32>
!in = memref<32x128xbf16, strided<[128, 1]>>
!inf = memref<32x128xf32, strided<[128, 1]>>
#wide = #gdn_gpu.rows<warps = 4, lanes = 16, vector = 8>
#narrow = #gdn_gpu.rows<warps = 4, lanes = 8, vector = 8>
#wide4 = #gdn_gpu.rows<warps = 4, lanes = 32, vector = 4>
func.func @chunk(%T: index, %q: !in, %k: !in, %g: !inf, %b: memref<32xf32, strided<[1]>>,
    %oq: memref<32x128xf16, strided<[128, 1]>>, %ok: memref<32x128xf16, strided<[128, 1]>>, %og: !inf,
    %op: memref<32x64xf16, strided<[64, 1]>>, %oe: memref<128xf32, strided<[1]>>)
    attributes {gdn_gpu.kernel = {threads = 128 : i64},
                gdn_tile.stage = {grid = ["T"], symbols = ["T"]}} {
  %c0 = arith.constant 0 : index
  %query = gdn_gpu.alloc : !tile
  %key = gdn_gpu.alloc : !tile
  %log = gdn_gpu.alloc : !logs
  %keys = gdn_gpu.alloc : !first
  %d = gdn_gpu.alloc : !decays
  %p = gdn_gpu.alloc : !products
  %e = gdn_gpu.alloc : !end
  %scale = arith.constant 0.088388346 : f32
  %zero = arith.constant 0.0 : f16
  gdn_gpu.begin_copy %q[%c0, %c0] dims [0, 1], %query : !in, !tile
  gdn_gpu.begin_copy %k[%c0, %c0] dims [0, 1], %key : !in, !tile
  gdn_gpu.begin_copy %g[%c0, %c0] dims [0, 1], %log : !inf, !logs
  %z = gdn_gpu.fill %zero : f16 -> !gdn_gpu.fragment<32x64xf16, #narrow>
  gdn_gpu.store_shared %z, %p : !gdn_gpu.fragment<32x64xf16, #narrow>, !products
  gdn_gpu.await_copies
  gdn_gpu.barrier
  gdn_gpu.decay_within %query, %key, %log, %keys, %d : !tile, !logs, !first, !decays
  gdn_gpu.barrier
  %qh = gdn_gpu.reshape %query : !tile to !half
  %kh = gdn_gpu.reshape %key : !tile to !half
  gdn_gpu.warps 0 for 2 {
    gdn_gpu.decay_between %qh, %kh, %log, %keys, %d, %p, %e scale(%scale) : !half, !logs, !first, !decays, !products, !end
  }
  gdn_gpu.barrier
  gdn_gpu.warps 2 for 1 {
    %beta = gdn_gpu.load %b[%c0] dims [0] : memref<32xf32, strided<[1]>>, !gdn_gpu.fragment<32xf32, #gdn_gpu.per_row<#one>>
    gdn_gpu.block_inverses %log, %p, %beta scale(%scale) : !logs, !products, !gdn_gpu.fragment<32xf32, #gdn_gpu.per_row<#one>>
  }
  gdn_gpu.barrier
  gdn_gpu.warps 2 for 1 {
    gdn_gpu.join_inverses %log, %p : !logs, !products
  }
  gdn_gpu.barrier
  %rq = gdn_gpu.load_shared %qh : !half -> !gdn_gpu.fragment<32x128xf16, #wide>
  %rk = gdn_gpu.load_shared %kh : !half -> !gdn_gpu.fragment<32x128xf16, #wide>
  %rp = gdn_gpu.load_shared %p : !products -> !gdn_gpu.fragment<32x64xf16, #narrow>
  %raw = gdn_gpu.reshape %log : !logs to !gdn_gpu.shared<32x128xf32>
  %rg = gdn_gpu.load_shared %raw : !gdn_gpu.shared<32x128xf32> -> !gdn_gpu.fragment<32x128xf32, #wide4>
  %re = gdn_gpu.load_shared %e : !end -> !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#wide4>>
  gdn_gpu.store %rq, %oq[%c0, %c0] dims [0, 1] : !gdn_gpu.fragment<32x128xf16, #wide>, memref<32x128xf16, strided<[128, 1]>>
  gdn_gpu.store %rk, %ok[%c0, %c0] dims [0, 1] : !gdn_gpu.fragment<32x128xf16, #wide>, memref<32x128xf16, strided<[128, 1]>>
  gdn_gpu.store %rp, %op[%c0, %c0] dims [0, 1] : !gdn_gpu.fragment<32x64xf16, #narrow>, memref<32x64xf16, strided<[64, 1]>>
  gdn_gpu.store %rg, %og[%c0, %c0] dims [0, 1] : !gdn_gpu.fragment<32x128xf32, #wide4>, !inf
  gdn_gpu.store %re, %oe[%c0] dims [0] : !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#wide4>>, memref<128xf32, strided<[1]>>
  return
}
