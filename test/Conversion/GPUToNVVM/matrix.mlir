// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensor cores: four blocks per ldmatrix, transposed or not, two products of 16 x
// 8 x 16 for each; transposed blocks by movmatrix; copies of 16 bytes, of which
// absent rows read none.
//
// RUN: gdn-gpu-opt %s -convert-gdn-gpu-to-nvvm -canonicalize -cse | FileCheck %s

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!keys = !gdn_gpu.shared<64x128xbf16, swizzled>
!view = memref<?x?x128xbf16, strided<[?, ?, 1], offset: ?>>

// A copy: 64 x 16 pieces over 128 threads, eight rows of a panel of 128 bytes each
// time: the last piece is 7 x 8 x 128 bytes behind the first.
// CHECK-LABEL: llvm.func @product(
// CHECK-COUNT-7: nvvm.cp.async.shared.global %{{.+}}, %{{.+}}, 16, cache = cg, %{{.+}} :
//       CHECK: %[[LAST:.+]] = llvm.getelementptr %{{.+}}[7168] : (!llvm.ptr<3>)
//       CHECK: nvvm.cp.async.shared.global %[[LAST]], %{{.+}}, 16, cache = cg, %{{.+}} :
//   CHECK-NOT: nvvm.cp.async.shared
//       CHECK: nvvm.cp.async.commit.group
//       CHECK: nvvm.cp.async.wait.group 0
//       CHECK: nvvm.barrier
// The left operand: 2 x 16 blocks.
// CHECK-COUNT-8: nvvm.ldmatrix %{{.+}} layout = #nvvm.mma_layout<row>, num = 4
// The product: 8 steps of 16 inner, 4 pairs of 16 columns.
// CHECK-COUNT-32: nvvm.ldmatrix %{{.+}} layout = #nvvm.mma_layout<row>, num = 4
//   CHECK-NOT: nvvm.ldmatrix
//       CHECK: llvm.return
func.func @product(%T: index, %k: !view, %out: memref<64x64xf32, strided<[64, 1]>>)
    attributes {gdn_gpu.kernel = {threads = 128 : i64},
                gdn_tile.stage = {grid = ["T"], symbols = ["T"]}} {
  %c0 = arith.constant 0 : index
  %t = gdn_gpu.block_id 0
  %p = gdn_gpu.alloc : !keys
  gdn_gpu.begin_copy %k[%t, %c0, %c0] dims [0, 2] rows(%T), %p : !view, !keys
  gdn_gpu.await_copies
  gdn_gpu.barrier
  %a = gdn_gpu.load_shared %p : !keys -> !gdn_gpu.fragment<64x128xbf16, #rows>
  %s = gdn_gpu.matmul %a, transpose %p : !gdn_gpu.fragment<64x128xbf16, #rows>, !keys -> !gdn_gpu.fragment<64x64xf32, #rows>
  gdn_gpu.store %s, %out[%c0, %c0] dims [0, 1] : !gdn_gpu.fragment<64x64xf32, #rows>, memref<64x64xf32, strided<[64, 1]>>
  return
}

// The same right operand as it lies, 128 columns: transposed by the loads.
// CHECK-LABEL: llvm.func @rows_of_keys(
// CHECK-COUNT-32: nvvm.ldmatrix %{{.+}} layout = #nvvm.mma_layout<col>, num = 4
//   CHECK-NOT: nvvm.ldmatrix
//       CHECK: llvm.return
func.func @rows_of_keys(%T: index, %k: !view, %out: memref<64x128xf32, strided<[128, 1]>>)
    attributes {gdn_gpu.kernel = {threads = 128 : i64},
                gdn_tile.stage = {grid = ["T"], symbols = ["T"]}} {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : bf16
  %t = gdn_gpu.block_id 0
  %p = gdn_gpu.alloc : !keys
  gdn_gpu.begin_copy %k[%t, %c0, %c0] dims [0, 2], %p : !view, !keys
  gdn_gpu.await_copies
  gdn_gpu.barrier
  %a = gdn_gpu.fill %one : bf16 -> !gdn_gpu.fragment<64x64xbf16, #rows>
  %s = gdn_gpu.matmul %a, %p : !gdn_gpu.fragment<64x64xbf16, #rows>, !keys -> !gdn_gpu.fragment<64x128xf32, #rows>
  gdn_gpu.store %s, %out[%c0, %c0] dims [0, 1] : !gdn_gpu.fragment<64x128xf32, #rows>, memref<64x128xf32, strided<[128, 1]>>
  return
}

// CHECK-LABEL: llvm.func @transposed(
// CHECK-COUNT-16: llvm.inline_asm has_side_effects {{.*}}"movmatrix.sync.aligned.m8n8.trans.b16
//   CHECK-NOT: movmatrix
//       CHECK: nvvm.barrier
//       CHECK: nvvm.ldmatrix %{{.+}} layout = #nvvm.mma_layout<col>, num = 4
//       CHECK: llvm.return
func.func @transposed(%T: index, %out: memref<64x64xf16, strided<[64, 1]>>)
    attributes {gdn_gpu.kernel = {threads = 128 : i64},
                gdn_tile.stage = {grid = ["T"], symbols = ["T"]}} {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f16
  %p = gdn_gpu.alloc : !gdn_gpu.shared<64x64xf16, swizzled>
  %a = gdn_gpu.fill %one : f16 -> !gdn_gpu.fragment<64x64xf16, #rows>
  gdn_gpu.store_shared transpose %a, %p : !gdn_gpu.fragment<64x64xf16, #rows>, !gdn_gpu.shared<64x64xf16, swizzled>
  gdn_gpu.barrier
  %b = gdn_gpu.load_shared transpose %p : !gdn_gpu.shared<64x64xf16, swizzled> -> !gdn_gpu.fragment<64x64xf16, #rows>
  gdn_gpu.store %b, %out[%c0, %c0] dims [0, 1] : !gdn_gpu.fragment<64x64xf16, #rows>, memref<64x64xf16, strided<[64, 1]>>
  return
}

// Four warps: a block of 16 each by substitution, 3 products of blocks, and 6
// down a column; a product of blocks is two of 16 x 8 x 16.
// CHECK-LABEL: llvm.func @inverse(
// CHECK-COUNT-20: nvvm.mma.sync
//   CHECK-NOT: nvvm.mma.sync
//       CHECK: llvm.return
func.func @inverse(%T: index, %out: memref<64x64xf16, strided<[64, 1]>>)
    attributes {gdn_gpu.kernel = {threads = 128 : i64},
                gdn_tile.stage = {grid = ["T"], symbols = ["T"]}} {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f16
  %p = gdn_gpu.alloc : !gdn_gpu.shared<64x64xf16, swizzled>
  %a = gdn_gpu.fill %one : f16 -> !gdn_gpu.fragment<64x64xf16, #rows>
  %b = gdn_gpu.tri_inverse %a in %p : (!gdn_gpu.fragment<64x64xf16, #rows>, !gdn_gpu.shared<64x64xf16, swizzled>) -> !gdn_gpu.fragment<64x64xf16, #rows>
  gdn_gpu.store %b, %out[%c0, %c0] dims [0, 1] : !gdn_gpu.fragment<64x64xf16, #rows>, memref<64x64xf16, strided<[64, 1]>>
  return
}

// What is taken from the scratch tile is not loaded, and stored by matrices of 8 x 8 if the
// kernel may: the tile itself, three products and four blocks of a column.
// CHECK-LABEL: llvm.func @inverse_in_place(
// CHECK-COUNT-7: nvvm.stmatrix
//   CHECK-NOT: nvvm.stmatrix
//   CHECK-NOT: nvvm.barrier
//       CHECK: nvvm.barrier
// CHECK-COUNT-6: nvvm.mma.sync
//       CHECK: nvvm.barrier
// CHECK-COUNT-4: nvvm.stmatrix {{.+}} layout = #nvvm.mma_layout<col>
//   CHECK-NOT: nvvm.ldmatrix
//       CHECK: nvvm.barrier
//       CHECK: nvvm.ldmatrix
func.func @inverse_in_place(%T: index, %out: memref<64x64xf16, strided<[64, 1]>>)
    attributes {gdn_gpu.kernel = {stores_matrices, threads = 128 : i64},
                gdn_tile.stage = {grid = ["T"], symbols = ["T"]}} {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f16
  %p = gdn_gpu.alloc : !gdn_gpu.shared<64x64xf16, swizzled>
  %a = gdn_gpu.fill %one : f16 -> !gdn_gpu.fragment<64x64xf16, #rows>
  %b = gdn_gpu.tri_inverse %a in %p : (!gdn_gpu.fragment<64x64xf16, #rows>, !gdn_gpu.shared<64x64xf16, swizzled>) -> !gdn_gpu.fragment<64x64xf16, #rows>
  gdn_gpu.barrier
  %c = gdn_gpu.load_shared transpose %p : !gdn_gpu.shared<64x64xf16, swizzled> -> !gdn_gpu.fragment<64x64xf16, #rows>
  gdn_gpu.store %c, %out[%c0, %c0] dims [0, 1] : !gdn_gpu.fragment<64x64xf16, #rows>, memref<64x64xf16, strided<[64, 1]>>
  return
}

// Two: the blocks and products of both, then for the upper warps 6 down each column; for the
// lower ones what is left of them, one.
// CHECK-LABEL: llvm.func @inverses(
// CHECK-COUNT-16: nvvm.mma.sync
//   CHECK-NOT: nvvm.mma.sync
//       CHECK: %[[UPPER:.+]] = arith.cmpi slt, %{{.+}}, %c2_i32
//       CHECK: scf.if %[[UPPER]] -> (i32
// CHECK-COUNT-24: nvvm.mma.sync
//   CHECK-NOT: nvvm.mma.sync
//       CHECK: } else {
// CHECK-COUNT-4: nvvm.mma.sync
//   CHECK-NOT: nvvm.mma.sync
//       CHECK: llvm.return
func.func @inverses(%T: index, %out: memref<64x64xf16, strided<[64, 1]>>)
    attributes {gdn_gpu.kernel = {threads = 128 : i64},
                gdn_tile.stage = {grid = ["T"], symbols = ["T"]}} {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f16
  %p = gdn_gpu.alloc : !gdn_gpu.shared<80x64xf16, swizzled>
  %a = gdn_gpu.fill %one : f16 -> !gdn_gpu.fragment<64x64xf16, #rows>
  %b:2 = gdn_gpu.tri_inverse transposed %a, %a in %p : (!gdn_gpu.fragment<64x64xf16, #rows>, !gdn_gpu.fragment<64x64xf16, #rows>, !gdn_gpu.shared<80x64xf16, swizzled>) -> (!gdn_gpu.fragment<64x64xf16, #rows>, !gdn_gpu.fragment<64x64xf16, #rows>)
  gdn_gpu.store %b#0, %out[%c0, %c0] dims [0, 1] : !gdn_gpu.fragment<64x64xf16, #rows>, memref<64x64xf16, strided<[64, 1]>>
  gdn_gpu.store %b#1, %out[%c0, %c0] dims [0, 1] : !gdn_gpu.fragment<64x64xf16, #rows>, memref<64x64xf16, strided<[64, 1]>>
  return
}

// Sums over lanes in five steps, up for prefixes and down for suffixes.
#one = #gdn_gpu.rows<warps = 1, lanes = 1, vector = 1>
// CHECK-LABEL: llvm.func @sums(
// CHECK-COUNT-5: nvvm.shfl.sync up
//       CHECK: nvvm.shfl.sync idx
// CHECK-COUNT-6: nvvm.shfl.sync down
//       CHECK: llvm.return
func.func @sums(%T: index, %g: memref<?xf32, strided<[1]>>)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {grid = ["T"], symbols = ["T"]}} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %a = gdn_gpu.load %g[%c0] dims [0] : memref<?xf32, strided<[1]>>, !gdn_gpu.fragment<32xf32, #gdn_gpu.per_row<#one>>
  %p = gdn_gpu.running_sum %a : !gdn_gpu.fragment<32xf32, #gdn_gpu.per_row<#one>>
  %q = gdn_gpu.running_sum suffix %p : !gdn_gpu.fragment<32xf32, #gdn_gpu.per_row<#one>>
  gdn_gpu.store %q, %g[%c32] dims [0] : !gdn_gpu.fragment<32xf32, #gdn_gpu.per_row<#one>>, memref<?xf32, strided<[1]>>
  return
}

// Two products of a warpgroup: four steps each, on registers and a descriptor; the
// first is awaited with the second under way. Threads tell the tensor cores of
// what they wrote before they meet.
// CHECK-LABEL: llvm.func @groups(
//   CHECK-NOT: 262143
//       CHECK: llvm.inline_asm {{.*}}fence.proxy.async.shared::cta
//  CHECK-NEXT: nvvm.barrier
//       CHECK: nvvm.wgmma.fence.aligned
//       CHECK: wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {{.+}}, 0, 1, 1, 1;
// CHECK-COUNT-3: wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {{.+}}, 1, 1, 1, 1;
//   CHECK-NOT: wgmma.mma_async
//       CHECK: nvvm.wgmma.commit.group.sync.aligned
//       CHECK: wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {{.+}}, 0, 1, 1, 0;
// CHECK-COUNT-3: wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {{.+}}, 1, 1, 1, 0;
//       CHECK: nvvm.wgmma.commit.group.sync.aligned
//       CHECK: wgmma.wait_group.sync.aligned 1;
//       CHECK: wgmma.wait_group.sync.aligned 0;
func.func @groups(%T: index, %out: memref<64x64xf32, strided<[64, 1]>>)
    attributes {gdn_gpu.kernel = {threads = 128 : i64, warpgroups},
                gdn_tile.stage = {grid = ["T"], symbols = ["T"]}} {
  %c0 = arith.constant 0 : index
  %h = arith.constant 5.0e-01 : f16
  %t = gdn_gpu.fill %h : f16 -> !gdn_gpu.fragment<64x64xf16, #rows>
  %p = gdn_gpu.alloc : !gdn_gpu.shared<64x64xf16, swizzled>
  gdn_gpu.store_shared %t, %p : !gdn_gpu.fragment<64x64xf16, #rows>, !gdn_gpu.shared<64x64xf16, swizzled>
  gdn_gpu.barrier
  %a = gdn_gpu.start_matmul %t, %p : !gdn_gpu.fragment<64x64xf16, #rows>, !gdn_gpu.shared<64x64xf16, swizzled>
      -> !gdn_gpu.async_token<64x64xf32, #rows>
  %b = gdn_gpu.start_matmul %t, transpose %p : !gdn_gpu.fragment<64x64xf16, #rows>, !gdn_gpu.shared<64x64xf16, swizzled>
      -> !gdn_gpu.async_token<64x64xf32, #rows>
  %first = gdn_gpu.await_matmul %a : !gdn_gpu.async_token<64x64xf32, #rows>
  gdn_gpu.store %first, %out[%c0, %c0] dims [0, 1] : !gdn_gpu.fragment<64x64xf32, #rows>, memref<64x64xf32, strided<[64, 1]>>
  %second = gdn_gpu.await_matmul %b : !gdn_gpu.async_token<64x64xf32, #rows>
  gdn_gpu.store %second, %out[%c0, %c0] dims [0, 1] : !gdn_gpu.fragment<64x64xf32, #rows>, memref<64x64xf32, strided<[64, 1]>>
  return
}

// In a cluster an address has the block's rank above the bits that a descriptor has room
// for; alone it has none, and none is cleared.
// CHECK-LABEL: llvm.func @group_of_pair(
//  CHECK-SAME:   nvvm.cluster_dim = array<i32: 2, 1, 1>
//       CHECK:   %[[MASK:.+]] = arith.constant 262143 : i32
//       CHECK:   %[[ADDRESS:.+]] = arith.andi %{{.+}}, %[[MASK]] : i32
//       CHECK:   %[[WIDE:.+]] = arith.extui %[[ADDRESS]] : i32 to i64
//       CHECK:   arith.shrui %[[WIDE]], %{{.+}}
//       CHECK:   wgmma.mma_async
func.func @group_of_pair(%T: index, %out: memref<64x64xf32, strided<[64, 1]>>)
    attributes {gdn_gpu.kernel = {cluster = 2 : i64, threads = 128 : i64, warpgroups},
                gdn_tile.stage = {grid = ["T", "2"], symbols = ["T"]}} {
  %c0 = arith.constant 0 : index
  %h = arith.constant 5.0e-01 : f16
  %t = gdn_gpu.fill %h : f16 -> !gdn_gpu.fragment<64x64xf16, #rows>
  %p = gdn_gpu.alloc : !gdn_gpu.shared<64x64xf16, swizzled>
  gdn_gpu.store_shared %t, %p : !gdn_gpu.fragment<64x64xf16, #rows>, !gdn_gpu.shared<64x64xf16, swizzled>
  gdn_gpu.barrier
  %a = gdn_gpu.start_matmul %t, %p : !gdn_gpu.fragment<64x64xf16, #rows>, !gdn_gpu.shared<64x64xf16, swizzled>
      -> !gdn_gpu.async_token<64x64xf32, #rows>
  %first = gdn_gpu.await_matmul %a : !gdn_gpu.async_token<64x64xf32, #rows>
  gdn_gpu.store %first, %out[%c0, %c0] dims [0, 1] : !gdn_gpu.fragment<64x64xf32, #rows>, memref<64x64xf32, strided<[64, 1]>>
  return
}

// A lane adds its two rows of 16 columns, eight lanes meet in three steps, and the
// four warps by way of shared memory.
// CHECK-LABEL: llvm.func @columns(
// CHECK-COUNT-48: nvvm.shfl.sync bfly
//   CHECK-NOT: nvvm.shfl.sync
// CHECK-COUNT-8: llvm.store %{{.+}}, %{{.+}} {alignment = 8 : i64} : vector<2xf32>, !llvm.ptr<3>
//       CHECK: nvvm.barrier
// CHECK-COUNT-32: llvm.load %{{.+}} {alignment = 8 : i64} : !llvm.ptr<3> -> vector<2xf32>
//       CHECK: llvm.return
func.func @columns(%T: index, %g: memref<?x64xf32, strided<[64, 1]>>)
    attributes {gdn_gpu.kernel = {threads = 128 : i64},
                gdn_tile.stage = {grid = ["T"], symbols = ["T"]}} {
  %c0 = arith.constant 0 : index
  %p = gdn_gpu.alloc : !gdn_gpu.shared<4x64xf32>
  %a = gdn_gpu.load %g[%c0, %c0] dims [0, 1] : memref<?x64xf32, strided<[64, 1]>>, !gdn_gpu.fragment<64x64xf32, #rows>
  %s = gdn_gpu.column_sum %a, %p : !gdn_gpu.fragment<64x64xf32, #rows>, !gdn_gpu.shared<4x64xf32>
      -> !gdn_gpu.fragment<64xf32, #gdn_gpu.per_column<#rows>>
  gdn_gpu.store %s, %g[%c0, %c0] dims [1] : !gdn_gpu.fragment<64xf32, #gdn_gpu.per_column<#rows>>, memref<?x64xf32, strided<[64, 1]>>
  return
}

// Products before a barrier behind which copies go on are done there: stores, in
// no unit, of what the last two instructions give. Not where none are awaited.
// CHECK-LABEL: llvm.func @finished(
//       CHECK: nvvm.cp.async.wait.group 0
//   CHECK-NOT: llvm.inline_asm
//       CHECK: nvvm.cp.async.wait.group 0
//       CHECK: llvm.inline_asm has_side_effects
//  CHECK-SAME: setp.ge.u32 never, $0, $1; @never st.shared.b32 [$2], $3; @never st.shared.b32 [$2], $4; }
//  CHECK-NEXT: nvvm.barrier
//   CHECK-NOT: @never
//       CHECK: llvm.return
func.func @finished(%T: index, %k: !view, %out: memref<64x64xf32, strided<[64, 1]>>)
    attributes {gdn_gpu.kernel = {threads = 128 : i64, finish_products},
                gdn_tile.stage = {grid = ["T"], symbols = ["T"]}} {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : bf16
  %t = gdn_gpu.block_id 0
  %p = gdn_gpu.alloc : !keys
  gdn_gpu.begin_copy %k[%t, %c0, %c0] dims [0, 2], %p : !view, !keys
  gdn_gpu.await_copies
  gdn_gpu.barrier
  %a = gdn_gpu.fill %one : bf16 -> !gdn_gpu.fragment<64x128xbf16, #rows>
  %s = gdn_gpu.matmul %a, transpose %p : !gdn_gpu.fragment<64x128xbf16, #rows>, !keys -> !gdn_gpu.fragment<64x64xf32, #rows>
  gdn_gpu.await_copies
  gdn_gpu.barrier
  %u = gdn_gpu.matmul %a, transpose %p : !gdn_gpu.fragment<64x128xbf16, #rows>, !keys -> !gdn_gpu.fragment<64x64xf32, #rows>
  gdn_gpu.barrier
  gdn_gpu.store %s, %out[%c0, %c0] dims [0, 1] : !gdn_gpu.fragment<64x64xf32, #rows>, memref<64x64xf32, strided<[64, 1]>>
  gdn_gpu.store %u, %out[%c0, %c0] dims [0, 1] : !gdn_gpu.fragment<64x64xf32, #rows>, memref<64x64xf32, strided<[64, 1]>>
  return
}
