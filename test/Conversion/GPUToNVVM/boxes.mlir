// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies as boxes: the maps behind the words of the parameter, one for each array and size,
// what the launch has to know of them, one thread that asks, and pieces where rows are missing.
//
// RUN: gdn-gpu-opt %s -convert-gdn-gpu-to-nvvm -canonicalize -cse | FileCheck %s

!ring = !gdn_gpu.channel<64x128xbf16, depth = 2, swizzled>
!tile = !gdn_gpu.shared<64x128xbf16, swizzled>
!view = memref<?x?x128xbf16, strided<[?, ?, 1]>>
#rows = #gdn_gpu.rows<warps = 1, lanes = 4, vector = 2>

// 1 + 2 * 3 words of the view, 2 symbols, one region, the workspace and the units are 12; maps
// begin at the 17th, two of 16 words each.
// CHECK-LABEL: llvm.func @boxes(
//  CHECK-SAME:   llvm.align = 64 : i64, llvm.byval = !llvm.array<48 x i64>
//  CHECK-SAME:   boxes = [{param = 0 : i64, rows = 64 : i64, rows_dim = 0 : i64}, {region = 0 : i64, rows = 64 : i64, rows_dim = 1 : i64, sizes = ["N", "64", "128"]}]
// All rows: bytes that are to come, then the box, by one thread.
//       CHECK:   %[[WHOLE:.+]] = arith.cmpi sge, %{{.+}}, %c64
//       CHECK:   scf.if %[[WHOLE]]
//   CHECK-NOT:     nvvm.cp.async
//       CHECK:     scf.if
//       CHECK:       llvm.inline_asm has_side_effects {{.*}}"mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [$0], $1;", "r,r,~{memory}" %[[BARRIER:.+]], %c16384
//       CHECK:       llvm.inline_asm has_side_effects {{.*}}"cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [$0], [$1, {$3, $4, $5, $6}], [$2];", "r,l,r,r,r,r,r,~{memory}" %{{.+}}, %{{.+}}, %[[BARRIER]], %c0
//       CHECK:   } else {
//       CHECK:     nvvm.cp.async.shared.global
//       CHECK:     nvvm.cp.async.commit.group
// Of a region that is always whole.
//   CHECK-NOT:   arith.cmpi sge
//       CHECK:   cp.async.bulk.tensor.4d
//   CHECK-NOT:   nvvm.cp.async.shared.global
func.func @boxes(%n: index, %t: index, %k: !view, %q: memref<?x64x128xbf16>)
    attributes {gdn_gpu.threads = 64 : i64, gdn_tile.grid = ["N"], gdn_tile.symbols = ["N", "T"],
                gdn_tile.workspace = [["N", "64", "128", "2"]]} {
  %c0 = arith.constant 0 : index
  %keys = gdn_gpu.channel : !ring
  %queries = gdn_gpu.channel : !ring with %keys : !ring
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      %i = gdn_gpu.block_id 0
      %key = gdn_gpu.acquire %keys : !ring -> !tile
      %query = gdn_gpu.acquire %queries : !ring -> !tile
      gdn_gpu.begin_copy boxed %k[%i, %c0, %c0] dims [0, 2] rows(%t), %key : !view, !tile
      gdn_gpu.begin_copy boxed %q[%i, %c0, %c0] dims [1, 2], %query : memref<?x64x128xbf16>, !tile
      gdn_gpu.await_copies
      gdn_gpu.commit %queries : !ring
      gdn_gpu.commit %keys : !ring
    }
    gdn_gpu.warps 1 for 1 {
      %key = gdn_gpu.receive %keys : !ring -> !tile
      %f = gdn_gpu.fetch %key : !tile -> !gdn_gpu.fragment<64x128xbf16, #rows>
      gdn_gpu.release %keys : !ring
    }
  }
  return
}
