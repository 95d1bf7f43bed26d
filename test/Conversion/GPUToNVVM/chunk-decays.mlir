// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What roles make of a chunk, with a decay per channel, one after another in one
// block. `test_chunk_decays.py` runs this kernel.
//
// RUN: gdn-gpu-opt %s -convert-gdn-gpu-to-nvvm -canonicalize -cse | FileCheck %s

// Four slices of 16 channels, of two parts each. Sums of logs of both halves of a part are products
// of tf32; exponentials of them are decays: 4 each up to a token, the inverse of that, and behind it.
// CHECK-LABEL: llvm.func @chunk(
//       CHECK: nvvm.barrier
// CHECK-COUNT-4: m16n8k8.row.col.f32.tf32.tf32.f32
//       CHECK: nvvm.vote.sync any
// CHECK-COUNT-12: ex2.approx.ftz.f32
//   CHECK-NOT: ex2
//       CHECK: scf.while
//       CHECK: scf.while
//       CHECK: scf.condition
// A slice: decays of its second part and of the next one's first, sums of the next one's second, and
// whether that forgets almost all.
// CHECK-COUNT-2: nvvm.ldmatrix
// CHECK-COUNT-12: ex2.approx.ftz.f32
// CHECK-COUNT-4: m16n8k8.row.col.f32.tf32.tf32.f32
//   CHECK-NOT: arith.maxnumf
//       CHECK: nvvm.vote.sync any
//       CHECK: nvvm.bar.warp.sync
// Three products of halves for each part.
// CHECK-COUNT-6: m16n8k8.row.col.f32.tf32.tf32.f32
// CHECK-COUNT-3: nvvm.stmatrix
//       CHECK: scf.yield
// Behind that loop, one which forgets almost all: factors of scores are made of bounded logs.
//       CHECK: scf.if {{.+}} -> (i32, i1
// CHECK-COUNT-2: nvvm.ldmatrix
// CHECK-COUNT-12: ex2.approx.ftz.f32
// CHECK-COUNT-4: m16n8k8.row.col.f32.tf32.tf32.f32
// CHECK-COUNT-4: arith.maxnumf
// CHECK-COUNT-2: m16n8k8.row.col.f32.tf32.tf32.f32
// CHECK-COUNT-8: ex2.approx.ftz.f32
// CHECK-COUNT-4: arith.maxnumf
// CHECK-COUNT-2: m16n8k8.row.col.f32.tf32.tf32.f32
// CHECK-COUNT-20: ex2.approx.ftz.f32
//       CHECK: nvvm.vote.sync any
//       CHECK: nvvm.bar.warp.sync
// CHECK-COUNT-6: m16n8k8.row.col.f32.tf32.tf32.f32
// CHECK-COUNT-3: nvvm.stmatrix
//   CHECK-NOT: ex2
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
