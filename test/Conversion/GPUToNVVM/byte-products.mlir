// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bytes on tensor cores. Of 16 rows a warp has two sets of eight. Of each
// a plane is multiplied four times, of which two products give upper rows and two lower
// ones, behind four that say what the zeros of bytes add. Keys are split by the threads of
// a column, and a fold multiplies parts twice for eight rows and eight columns.
//
// RUN: gdn-gpu-opt %s -convert-gdn-gpu-to-nvvm -canonicalize -cse | FileCheck %s
// RUN: gdn-gpu-opt %s -convert-gdn-gpu-to-nvvm -canonicalize -cse | FileCheck %s --check-prefix=PLACES
// RUN: gdn-gpu-opt %s -convert-gdn-gpu-to-nvvm -canonicalize -cse | FileCheck %s --check-prefix=ROWS

#rows = #gdn_gpu.rows<warps = 1, lanes = 4, vector = 16>
!view = memref<?x16x128xi8, strided<[2048, 128, 1]>>
!bytes = !gdn_gpu.fragment<16x128xi8, #rows>
!numbers = !gdn_gpu.fragment<16xf32, #gdn_gpu.per_row<#rows>>
!row = !gdn_gpu.shared<3x128xi8>
!sums = !gdn_gpu.shared<2x16xf32>

// CHECK-LABEL: llvm.func @products(
// The lane's part of key or query: its 32 columns in two loads.
// CHECK-COUNT-2: llvm.load %{{.+}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
// CHECK-COUNT-4: mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32
// CHECK-COUNT-4: mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32
// What the upper plane gives counts 256 of what the other one does.
//       CHECK:   arith.muli %{{.+}}, %c256_i32
// CHECK-COUNT-8: mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32
//       CHECK:   arith.muli %{{.+}}, %c256_i32
// CHECK-COUNT-4: mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32
//   CHECK-NOT:   mma.sync
//       CHECK:   nvvm.shfl.sync
//       CHECK:   scf.if
// CHECK-COUNT-2: llvm.store %{{.+}}, %{{.+}} {alignment = 4 : i64} : f32, !llvm.ptr<3>
//   CHECK-NOT:   llvm.store
//       CHECK: llvm.return
func.func @products(%N: index, %view: !view, %f: memref<?x3x128xi8, strided<[384, 128, 1]>>)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %x = arith.constant 2.0 : f32
  %n = gdn_gpu.block_id 0
  %upper = gdn_gpu.load %view[%n, %c0, %c0] dims [1, 2] : !view, !bytes
  %low = gdn_gpu.load %view[%n, %c0, %c0] dims [1, 2] : !view, !bytes
  %scales = gdn_gpu.fill %x : f32 -> !numbers
  %key = gdn_gpu.alloc : !row
  %to = gdn_gpu.alloc : !sums
  gdn_gpu.begin_copy %f[%n, %c0, %c0] dims [1, 2], %key : memref<?x3x128xi8, strided<[384, 128, 1]>>, !row
  gdn_gpu.await_copies
  gdn_gpu.barrier
  gdn_gpu.share_byte_products %upper low(%low) scales(%scales), %key scaled(%x) to(%c0), %key scaled(%x) to(%c1), %to : !bytes, !numbers, !row, !sums
  return
}

// The tokens of a thread, the first ones behind the 12th; the column of its pair.
// PLACES-LABEL: llvm.func @fold(
//      PLACES: %[[IS_TOKEN:.+]] = arith.cmpi slt, %[[TOKEN:.+]], %c12_i32
// PLACES-NEXT: arith.select %[[IS_TOKEN]], %[[TOKEN]], %c0_i32
//      PLACES: %[[PAIR:.+]] = arith.divui %[[GROUP:.+]], %c2_i32
// PLACES-NEXT: %[[FIRST:.+]] = arith.muli %[[PAIR]], %c16_i32
// PLACES-NEXT: %[[ODD:.+]] = arith.remui %[[GROUP]], %c2_i32
// PLACES-NEXT: %[[COLUMN:.+]] = arith.addi %[[FIRST]], %[[ODD]]
// PLACES-NEXT: %[[PLACE:.+]] = arith.muli %[[COLUMN]], %c64_i32
// PLACES-NEXT: arith.addi %[[PLACE]], %{{.+}}

// CHECK-LABEL: llvm.func @fold(
// Four columns of a thread, with four tokens in a store, and none behind the 12th.
// CHECK-COUNT-12: llvm.load %{{.+}} {alignment = 4 : i64} : !llvm.ptr<3> -> f32
//       CHECK:   arith.truncf %{{.+}} : vector<2xf32> to vector<2xbf16>
// CHECK-COUNT-3: llvm.store %{{.+}}, %{{.+}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<3>
//       CHECK:   nvvm.barrier
// CHECK-COUNT-64: nvvm.mma.sync
//   CHECK-NOT:   nvvm.mma.sync
//       CHECK: llvm.return
//
// Two rows of a lane go together: of four pairs of columns what does not depend on a
// product comes first, each part of the left side by itself, with no token's word twice.
//
// ROWS-LABEL: llvm.func @fold(
//       ROWS: %[[Z:.+]] = arith.constant 0.000000e+00 : f32
//       ROWS: nvvm.barrier
// ROWS-COUNT-4: llvm.load %{{.+}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
//       ROWS: nvvm.mma.sync A[%[[A0:.+]], %[[A1:.+]], %[[A2:.+]], %[[A3:.+]]] B[%[[B0:.+]], %[[B1:.+]]]
//       ROWS: nvvm.mma.sync A[%[[L0:.+]], %[[L1:.+]], %[[L2:.+]], %[[L3:.+]]] B[%[[B0]], %[[B1]]]
//       ROWS: nvvm.mma.sync A[%[[A0]], %[[A1]], %[[A2]], %[[A3]]]
func.func @fold(%N: index, %view: memref<?x16x128xf32, strided<[2048, 128, 1]>>)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %c12 = arith.constant 12 : index
  %n = gdn_gpu.block_id 0
  %state = gdn_gpu.load %view[%n, %c0, %c0] dims [1, 2] : memref<?x16x128xf32, strided<[2048, 128, 1]>>, !gdn_gpu.fragment<16x128xf32, #rows>
  %keys = gdn_gpu.alloc : !gdn_gpu.shared<12x128xf32>
  %deltas = gdn_gpu.alloc : !gdn_gpu.shared<12x16xf32>
  %weights = gdn_gpu.alloc : !gdn_gpu.shared<12xf32>
  %parts = gdn_gpu.alloc : !gdn_gpu.shared<128x32xbf16>
  gdn_gpu.begin_copy %view[%n, %c0, %c0] dims [1, 2] rows(%c12), %keys : memref<?x16x128xf32, strided<[2048, 128, 1]>>, !gdn_gpu.shared<12x128xf32>
  gdn_gpu.begin_copy %view[%n, %c0, %c0] dims [1, 2] rows(%c12), %deltas : memref<?x16x128xf32, strided<[2048, 128, 1]>>, !gdn_gpu.shared<12x16xf32>
  gdn_gpu.begin_copy %view[%n, %c0, %c0] dims [2], %weights : memref<?x16x128xf32, strided<[2048, 128, 1]>>, !gdn_gpu.shared<12xf32>
  gdn_gpu.await_copies
  gdn_gpu.barrier
  gdn_gpu.share_column_parts %keys, %parts : !gdn_gpu.shared<12x128xf32>, !gdn_gpu.shared<128x32xbf16>
  gdn_gpu.barrier
  %new = gdn_gpu.add_part_products %state, %deltas[%c0], %weights, %parts : !gdn_gpu.fragment<16x128xf32, #rows>, !gdn_gpu.shared<12x16xf32>, !gdn_gpu.shared<12xf32>, !gdn_gpu.shared<128x32xbf16>
  gdn_gpu.store %new, %view[%n, %c0, %c0] dims [1, 2] : !gdn_gpu.fragment<16x128xf32, #rows>, memref<?x16x128xf32, strided<[2048, 128, 1]>>
  return
}

// Two threads share a column: eight tokens each.
//
// CHECK-LABEL: llvm.func @spread(
//       CHECK:   arith.remui %{{.+}}, %c128_i32
//       CHECK:   arith.divui %{{.+}}, %c128_i32
// CHECK-COUNT-4: llvm.load %{{.+}} {alignment = 4 : i64} : !llvm.ptr<3> -> f32
//       CHECK:   llvm.store %{{.+}}, %{{.+}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<3>
// CHECK-COUNT-4: llvm.load %{{.+}} {alignment = 4 : i64} : !llvm.ptr<3> -> f32
//       CHECK:   llvm.store %{{.+}}, %{{.+}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<3>
//   CHECK-NOT:   llvm.store
//       CHECK:   llvm.return
func.func @spread(%N: index, %view: memref<?x16x128xf32, strided<[2048, 128, 1]>>)
    attributes {gdn_gpu.kernel = {threads = 256 : i64},
                gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %n = gdn_gpu.block_id 0
  %keys = gdn_gpu.alloc : !gdn_gpu.shared<16x128xf32>
  %parts = gdn_gpu.alloc : !gdn_gpu.shared<128x32xbf16>
  gdn_gpu.begin_copy %view[%n, %c0, %c0] dims [1, 2], %keys : memref<?x16x128xf32, strided<[2048, 128, 1]>>, !gdn_gpu.shared<16x128xf32>
  gdn_gpu.await_copies
  gdn_gpu.barrier
  gdn_gpu.share_column_parts spread %keys, %parts : !gdn_gpu.shared<16x128xf32>, !gdn_gpu.shared<128x32xbf16>
  return
}
