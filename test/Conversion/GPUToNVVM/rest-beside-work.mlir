// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A role that has scores between tokens beside its copies: what a box is missing comes piece by
// piece in a loop, and nothing of it is computed ahead.
//
// RUN: gdn-gpu-opt %s -convert-gdn-gpu-to-nvvm -canonicalize -cse | FileCheck %s

!ring = !gdn_gpu.channel<32x128xbf16, depth = 2, swizzled>
!keys = !gdn_gpu.shared<32x128xbf16, swizzled>
!half = !gdn_gpu.shared<32x128xf16, swizzled>
!logs = !gdn_gpu.shared<32x128xf32, swizzled>
!first = !gdn_gpu.shared<16x128xf16, swizzled>
!decays = !gdn_gpu.shared<2x128xf32>
!products = !gdn_gpu.shared<32x64xf16, swizzled>
!end = !gdn_gpu.shared<128xf32>
!view = memref<?x?x128xbf16, strided<[?, ?, 1]>>
#rows = #gdn_gpu.rows<warps = 1, lanes = 4, vector = 2>

// CHECK-LABEL: llvm.func @rest(
//       CHECK:   scf.if
//       CHECK:     cp.async.bulk.tensor.4d
//       CHECK:   } else {
// Two indices that differ from zero, and the lane.
// CHECK-COUNT-3:   llvm.inline_asm has_side_effects asm_dialect = att "", "={{[lr]}},0"
// Sixteen pieces a row, of which 64 threads have one in turn.
//       CHECK:     scf.for %[[PIECE:.+]] = %{{.+}} to %c512_i32 step %c64_i32
//       CHECK:       arith.divui %[[PIECE]], %c16_i32
//       CHECK:       nvvm.cp.async.shared.global
//   CHECK-NOT:     nvvm.cp.async.shared.global
//       CHECK:     nvvm.cp.async.commit.group
func.func @rest(%n: index, %t: index, %k: !view)
    attributes {gdn_gpu.kernel = {threads = 96 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N", "T"]}} {
  %c0 = arith.constant 0 : index
  %scale = arith.constant 0.088388346 : f32
  %loaded = gdn_gpu.channel : !ring
  %query = gdn_gpu.alloc : !half
  %key = gdn_gpu.alloc : !half
  %log = gdn_gpu.alloc : !logs
  %first = gdn_gpu.alloc : !first
  %d = gdn_gpu.alloc : !decays
  %p = gdn_gpu.alloc : !products
  %e = gdn_gpu.alloc : !end
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 2 {
      %i = gdn_gpu.block_id 0
      %tile = gdn_gpu.acquire %loaded : !ring -> !keys
      gdn_gpu.begin_copy tensor_map %k[%i, %i, %c0] dims [0, 2] rows(%t), %tile : !view, !keys
      gdn_gpu.await_copies
      gdn_gpu.commit %loaded : !ring
      gdn_gpu.decay_between %query, %key, %log, %first, %d, %p, %e scale(%scale)
          : !half, !logs, !first, !decays, !products, !end
    }
    gdn_gpu.warps 2 for 1 {
      %tile = gdn_gpu.receive %loaded : !ring -> !keys
      %f = gdn_gpu.load_shared %tile : !keys -> !gdn_gpu.fragment<32x128xbf16, #rows>
      gdn_gpu.release %loaded : !ring
    }
  }
  return
}
