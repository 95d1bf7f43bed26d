// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies as boxes: the maps behind the words of the parameter, one for each array and size,
// what the launch has to know of them, one thread that asks, and pieces where rows are missing.
// The columns of a group of four warps as a box to memory: one thread of the group asks, and
// waits before the group stores into the tile again.
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
//  CHECK-SAME:   tensor_maps = [{param = 0 : i64, rows = 64 : i64, rows_dim = 0 : i64}, {region = 0 : i64, rows = 64 : i64, rows_dim = 1 : i64, sizes = ["N", "64", "128"]}]
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
    attributes {gdn_gpu.kernel = {threads = 64 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N", "T"],
                                  workspace = [["N", "64", "128", "2"]]}} {
  %c0 = arith.constant 0 : index
  %keys = gdn_gpu.channel : !ring
  %queries = gdn_gpu.channel : !ring with %keys : !ring
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      %i = gdn_gpu.block_id 0
      %key = gdn_gpu.acquire %keys : !ring -> !tile
      %query = gdn_gpu.acquire %queries : !ring -> !tile
      gdn_gpu.begin_copy tensor_map %k[%i, %c0, %c0] dims [0, 2] rows(%t), %key : !view, !tile
      gdn_gpu.begin_copy tensor_map %q[%i, %c0, %c0] dims [1, 2], %query : memref<?x64x128xbf16>, !tile
      gdn_gpu.await_copies
      gdn_gpu.commit %queries : !ring
      gdn_gpu.commit %keys : !ring
    }
    gdn_gpu.warps 1 for 1 {
      %key = gdn_gpu.receive %keys : !ring -> !tile
      %f = gdn_gpu.load_shared %key : !tile -> !gdn_gpu.fragment<64x128xbf16, #rows>
      gdn_gpu.release %keys : !ring
    }
  }
  return
}

// Elements of a box have 16 bits: an f32 of a region is two of them.
// CHECK-LABEL: llvm.func @region_of_f32(
//  CHECK-SAME:   tensor_maps = [{region = 0 : i64, rows = 32 : i64, rows_dim = 1 : i64, sizes = ["N", "32", "256"]}]
//       CHECK:   cp.async.bulk.tensor.4d
func.func @region_of_f32(%n: index, %g: memref<?x32x128xf32>)
    attributes {gdn_gpu.kernel = {threads = 64 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"],
                                  workspace = [["N", "32", "128", "4"]]}} {
  %c0 = arith.constant 0 : index
  %ring = gdn_gpu.channel : !gdn_gpu.channel<32x128xf32, depth = 2, swizzled>
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      %i = gdn_gpu.block_id 0
      %logs = gdn_gpu.acquire %ring : !gdn_gpu.channel<32x128xf32, depth = 2, swizzled> -> !gdn_gpu.shared<32x128xf32, swizzled>
      gdn_gpu.begin_copy tensor_map %g[%i, %c0, %c0] dims [1, 2], %logs : memref<?x32x128xf32>, !gdn_gpu.shared<32x128xf32, swizzled>
      gdn_gpu.await_copies
      gdn_gpu.commit %ring : !gdn_gpu.channel<32x128xf32, depth = 2, swizzled>
    }
    gdn_gpu.warps 1 for 1 {
      %logs = gdn_gpu.receive %ring : !gdn_gpu.channel<32x128xf32, depth = 2, swizzled> -> !gdn_gpu.shared<32x128xf32, swizzled>
      gdn_gpu.release %ring : !gdn_gpu.channel<32x128xf32, depth = 2, swizzled>
    }
  }
  return
}

// Panels that lie apart have a box each; bytes of what is between them do not come.
// CHECK-LABEL: llvm.func @panels_apart(
//  CHECK-SAME:   tensor_maps = [{pieces = 1 : i64, region = 0 : i64, rows = 32 : i64, rows_dim = 1 : i64, sizes = ["N", "32", "128"]}]
//       CHECK:   "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [$0], $1;", "r,r,~{memory}" %[[BARRIER:.+]], %c8192
//       CHECK:   "cp.async.bulk.tensor.4d.{{.+}} %[[TO:.+]], %{{.+}}, %[[BARRIER]], %c0_i32, %c0_i32, %c0_i32, %{{.+}} :
//       CHECK:   %[[NEXT:.+]] = arith.addi %[[TO]], %c8192
//       CHECK:   "cp.async.bulk.tensor.4d.{{.+}} %[[NEXT]], %{{.+}}, %[[BARRIER]], %c0_i32, %c0_i32, %c1_i32, %{{.+}} :
//   CHECK-NOT:   cp.async.bulk.tensor
!apart = !gdn_gpu.channel<32x128xf16, depth = 2, swizzled, apart = 2>
!panels = !gdn_gpu.shared<32x128xf16, swizzled, apart = 2>
func.func @panels_apart(%n: index, %g: memref<?x32x128xf16>)
    attributes {gdn_gpu.kernel = {threads = 64 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"],
                                  workspace = [["N", "32", "128", "2"]]}} {
  %c0 = arith.constant 0 : index
  %ring = gdn_gpu.channel : !apart
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      %i = gdn_gpu.block_id 0
      %logs = gdn_gpu.acquire %ring : !apart -> !panels
      gdn_gpu.begin_copy tensor_map %g[%i, %c0, %c0] dims [1, 2], %logs : memref<?x32x128xf16>, !panels
      gdn_gpu.await_copies
      gdn_gpu.commit %ring : !apart
    }
    gdn_gpu.warps 1 for 1 {
      %logs = gdn_gpu.receive %ring : !apart -> !panels
      gdn_gpu.release %ring : !apart
    }
  }
  return
}

#state = #gdn_gpu.rows<warps = 8, lanes = 4, vector = 2>

// CHECK-LABEL: llvm.func @stores(
//  CHECK-SAME:   tensor_maps = [{param = 0 : i64, pieces = 1 : i64, rows = 64 : i64, rows_dim = 0 : i64}]
//       CHECK:   %[[IN_GROUP:.+]] = arith.remui %[[WARP:.+]], %c4_i32
//       CHECK:   %[[FIRST_WARP:.+]] = arith.cmpi eq, %[[IN_GROUP]], %c0_i32
//       CHECK:   %[[FIRST:.+]] = arith.andi %[[FIRST_WARP]], %{{.+}}
//       CHECK:   %[[GROUP:.+]] = arith.divui %[[WARP]], %c4_i32
//       CHECK:   scf.for
// What all threads of the group have shared, unless there are no rows.
//       CHECK:     "fence.proxy.async.shared::cta;"
//  CHECK-NEXT:     nvvm.barrier id = %[[BARRIER:.+]] number_of_threads = %c128_i32
//       CHECK:     %[[ANY:.+]] = arith.cmpi sgt, %{{.+}}, %c0
//       CHECK:     %[[ASKS:.+]] = arith.andi %[[FIRST]], %[[ANY]]
//       CHECK:     scf.if %[[ASKS]] {
//       CHECK:       %[[PANEL:.+]] = arith.muli %[[GROUP]], %c8192_i32
//       CHECK:       %[[FROM:.+]] = arith.addi %{{.+}}, %[[PANEL]]
//       CHECK:       "cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [$1, {$2, $3, $4, $5}], [$0]; cp.async.bulk.commit_group;", "r,l,r,r,r,r,~{memory}" %[[FROM]], %{{.+}}, %c0_i32, %{{.+}}, %[[GROUP]], %{{.+}} :
//       CHECK:     }
//  CHECK-NEXT:     scf.if %[[FIRST]] {
//  CHECK-NEXT:       llvm.inline_asm has_side_effects {{.*}}"cp.async.bulk.wait_group.read 0;"
//       CHECK:     nvvm.barrier id = %[[BARRIER]] number_of_threads = %c128_i32
//       CHECK:     nvvm.stmatrix
func.func @stores(%n: index, %t: index, %o: !view)
    attributes {gdn_gpu.kernel = {threads = 256 : i64, warpgroups},
                gdn_tile.stage = {grid = ["N"], symbols = ["N", "T"]}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : bf16
  %i = gdn_gpu.block_id 0
  %p = gdn_gpu.alloc : !tile
  %f = gdn_gpu.fill %one : bf16 -> !gdn_gpu.fragment<128x64xbf16, #state>
  gdn_gpu.store_shared transpose %f, %p : !gdn_gpu.fragment<128x64xbf16, #state>, !tile
  scf.for %turn = %c0 to %n step %c1 {
    gdn_gpu.copy_out tensor_map %p, %o[%turn, %i, %c0] dims [0, 2] rows(%t) : !tile, !view
    gdn_gpu.store_shared transpose %f, %p : !gdn_gpu.fragment<128x64xbf16, #state>, !tile
  }
  return
}
