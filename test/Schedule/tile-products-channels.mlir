// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The intra-chunk work with a decay per channel: queries and keys are shared,
// and their buffers hold them with their decay afterwards; what comes out as a
// vector is stored last. The same tiles for two uses need a buffer of their own.
//
// RUN: gdn-opt %s -gdn-schedule-tile-products -gdn-gpu-place-barriers -gdn-gpu-check | FileCheck %s
// Products of warpgroups are none of these.
// RUN: gdn-opt %s -gdn-schedule-tile-products=warpgroups -gdn-gpu-use-warpgroups | FileCheck %s --check-prefix=SINGLE

!view = memref<?x?x64xbf16, strided<[?, ?, 1], offset: ?>>
!logs = memref<?x?x64xf32, strided<[?, ?, 1], offset: ?>>
!tiles = memref<?x64x64xf16>
!ends = memref<?x64xf32>

// CHECK-DAG: #[[$LOGS:.+]] = #gdn_gpu.rows<warps = 4, lanes = 16, vector = 4>
// CHECK-DAG: #[[$LINE:.+]] = #gdn_gpu.rows<warps = 4, lanes = 1, vector = 64>
// CHECK-DAG: #[[$LINES:.+]] = #gdn_gpu.rows<warps = 4, lanes = 2, vector = 32>

// CHECK-LABEL: func.func @operands(
//  CHECK-SAME:     threads = 128 : i64
//   CHECK-DAG:   gdn_gpu.begin_copy %{{.+}}, %[[Q:.+]] : {{.+}}<64x64xbf16, swizzled>
//   CHECK-DAG:   gdn_gpu.begin_copy %{{.+}}, %[[K:.+]] : {{.+}}<64x64xbf16, swizzled>
//   CHECK-DAG:   %[[G:.+]] = gdn_gpu.load {{.+}}<64x64xf32, #[[$LOGS]]>
//       CHECK:   gdn_gpu.prefetch {{.+}}<64x64xf32, #[[$LINES]]>
//       CHECK:   gdn_gpu.prefetch {{.+}}<64x64xbf16, #[[$LINE]]>
//       CHECK:   gdn_gpu.prefetch {{.+}}<64x64xbf16, #[[$LINE]]>
//   CHECK-DAG:   %[[OF_Q:.+]] = gdn_gpu.reshape %[[Q]] :
//   CHECK-DAG:   %[[OF_K:.+]] = gdn_gpu.reshape %[[K]] :
//       CHECK:   gdn_gpu.await_copies
//       CHECK:   gdn_gpu.barrier
//  CHECK-NEXT:   gdn_gpu.decay_operands %[[G]], %[[Q]], %[[K]], %[[TE:.+]], %{{.+}}, %[[END:.+]] :
//       CHECK:   gdn_gpu.barrier
//       CHECK:   gdn_gpu.matmul %{{.+}}, %[[TE]]
//   CHECK-DAG:   gdn_gpu.load_shared %[[OF_Q]]
//   CHECK-DAG:   gdn_gpu.load_shared %[[OF_K]]
//       CHECK:   gdn_gpu.warps 0 for 1 {
//       CHECK:     %[[ROW:.+]] = gdn_gpu.load_shared %[[END]]
//       CHECK:     gdn_gpu.store %[[ROW]]
//  SINGLE-NOT:   gdn_gpu.matmul warpgroup
//      SINGLE:   gdn_gpu.matmul %{{.+}}, %{{.+}} :
func.func @operands(%T: index, %q: !view, %k: !view, %g: !logs, %fq: !tiles, %fk: !tiles,
                    %te: !tiles, %ends: !ends)
    attributes {gdn_tile.stage = {grid = ["T"], symbols = ["T"]}} {
  %c0 = arith.constant 0 : index
  %t = gdn_tile.block_id 0
  %log = gdn_tile.load %g[%t, %c0, %c0] dims [0, 2] : !logs, vector<64x64xf32>
  %qb = gdn_tile.load %q[%t, %c0, %c0] dims [0, 2] : !view, vector<64x64xbf16>
  %kb = gdn_tile.load %k[%t, %c0, %c0] dims [0, 2] : !view, vector<64x64xbf16>
  %p, %l, %ofq, %ofk, %toend, %end = gdn_tile.decay_operands %qb, %kb decay(%log)
      : vector<64x64xbf16> -> vector<64x64xf32>, vector<64x64xf16>, vector<64xf32>
  gdn_tile.store %end, %ends[%t, %c0] dims [1] : vector<64xf32>, !ends
  %pn = gdn_tile.map_rows %p : vector<64x64xf32> -> vector<64x64xf16> {
  ^bb0(%i: index, %x: vector<64xf32>):
    %y = arith.truncf %x : vector<64xf32> to vector<64xf16>
    gdn_tile.yield %y : vector<64xf16>
  }
  %w = gdn_tile.matmul %pn, %toend : vector<64x64xf16>, vector<64x64xf16> -> vector<64x64xf32>
  %wn = gdn_tile.map_rows %w : vector<64x64xf32> -> vector<64x64xf16> {
  ^bb0(%i: index, %x: vector<64xf32>):
    %y = arith.truncf %x : vector<64xf32> to vector<64xf16>
    gdn_tile.yield %y : vector<64xf16>
  }
  gdn_tile.store %wn, %te[%t, %c0, %c0] dims [1, 2] : vector<64x64xf16>, !tiles
  gdn_tile.store %ofq, %fq[%t, %c0, %c0] dims [1, 2] : vector<64x64xf16>, !tiles
  gdn_tile.store %ofk, %fk[%t, %c0, %c0] dims [1, 2] : vector<64x64xf16>, !tiles
  return
}

// Queries that are stored leave their first panel to the inverse.
// CHECK-LABEL: func.func @inverse_in_panel(
//       CHECK:   gdn_gpu.begin_copy %{{.+}}, %[[Q:.+]] : {{.+}}<64x128xbf16, swizzled>
//       CHECK:   %[[OF_Q:.+]] = gdn_gpu.reshape %[[Q]] :
//       CHECK:   gdn_gpu.decay_operands
//       CHECK:   gdn_gpu.load_shared %[[OF_Q]]
//       CHECK:   %[[PANEL:.+]] = gdn_gpu.reshape %[[OF_Q]] : <64x128xf16, swizzled> to <64x64xf16, swizzled>
//       CHECK:   gdn_gpu.barrier
//  CHECK-NEXT:   gdn_gpu.tri_inverse %{{.+}} in %[[PANEL]]
// It stays there for products.
//  CHECK-NEXT:   gdn_gpu.barrier
//  CHECK-NEXT:   gdn_gpu.load_shared transpose %[[PANEL]]
// Those that are wanted later keep it.
// CHECK-LABEL: func.func @inverse_elsewhere(
//       CHECK:   %[[SCRATCH:.+]] = gdn_gpu.alloc : <64x64xf16, swizzled>
//       CHECK:   gdn_gpu.tri_inverse %{{.+}} in %[[SCRATCH]]
//       CHECK:   gdn_gpu.store_shared
//       CHECK:   gdn_gpu.load_shared transpose
!wide = memref<?x?x128xbf16, strided<[?, ?, 1], offset: ?>>
!wide_logs = memref<?x?x128xf32, strided<[?, ?, 1], offset: ?>>
!wide_tiles = memref<?x64x128xf16>

func.func @inverse_in_panel(%T: index, %q: !wide, %k: !wide, %g: !wide_logs, %fq: !wide_tiles,
                  %fk: !wide_tiles, %te: !wide_tiles)
    attributes {gdn_tile.stage = {grid = ["T"], symbols = ["T"]}} {
  %c0 = arith.constant 0 : index
  %t = gdn_tile.block_id 0
  %log = gdn_tile.load %g[%t, %c0, %c0] dims [0, 2] : !wide_logs, vector<64x128xf32>
  %qb = gdn_tile.load %q[%t, %c0, %c0] dims [0, 2] : !wide, vector<64x128xbf16>
  %kb = gdn_tile.load %k[%t, %c0, %c0] dims [0, 2] : !wide, vector<64x128xbf16>
  %p, %l, %ofq, %ofk, %toend, %end = gdn_tile.decay_operands %qb, %kb decay(%log)
      : vector<64x128xbf16> -> vector<64x64xf32>, vector<64x128xf16>, vector<128xf32>
  gdn_tile.store %ofq, %fq[%t, %c0, %c0] dims [1, 2] : vector<64x128xf16>, !wide_tiles
  gdn_tile.store %ofk, %fk[%t, %c0, %c0] dims [1, 2] : vector<64x128xf16>, !wide_tiles
  %ln = gdn_tile.map_rows %l : vector<64x64xf32> -> vector<64x64xf16> {
  ^bb0(%i: index, %x: vector<64xf32>):
    %y = arith.truncf %x : vector<64xf32> to vector<64xf16>
    gdn_tile.yield %y : vector<64xf16>
  }
  %s = gdn_tile.tri_inverse %ln : vector<64x64xf16>
  %w = gdn_tile.matmul transpose %s, %toend : vector<64x64xf16>, vector<64x128xf16> -> vector<64x128xf32>
  %wn = gdn_tile.map_rows %w : vector<64x128xf32> -> vector<64x128xf16> {
  ^bb0(%i: index, %x: vector<128xf32>):
    %y = arith.truncf %x : vector<128xf32> to vector<128xf16>
    gdn_tile.yield %y : vector<128xf16>
  }
  gdn_tile.store %wn, %te[%t, %c0, %c0] dims [1, 2] : vector<64x128xf16>, !wide_tiles
  return
}

func.func @inverse_elsewhere(%T: index, %q: !wide, %k: !wide, %g: !wide_logs, %fq: !wide_tiles,
                  %fk: !wide_tiles, %te: !wide_tiles)
    attributes {gdn_tile.stage = {grid = ["T"], symbols = ["T"]}} {
  %c0 = arith.constant 0 : index
  %t = gdn_tile.block_id 0
  %log = gdn_tile.load %g[%t, %c0, %c0] dims [0, 2] : !wide_logs, vector<64x128xf32>
  %qb = gdn_tile.load %q[%t, %c0, %c0] dims [0, 2] : !wide, vector<64x128xbf16>
  %kb = gdn_tile.load %k[%t, %c0, %c0] dims [0, 2] : !wide, vector<64x128xbf16>
  %p, %l, %ofq, %ofk, %toend, %end = gdn_tile.decay_operands %qb, %kb decay(%log)
      : vector<64x128xbf16> -> vector<64x64xf32>, vector<64x128xf16>, vector<128xf32>
  %ln = gdn_tile.map_rows %l : vector<64x64xf32> -> vector<64x64xf16> {
  ^bb0(%i: index, %x: vector<64xf32>):
    %y = arith.truncf %x : vector<64xf32> to vector<64xf16>
    gdn_tile.yield %y : vector<64xf16>
  }
  %s = gdn_tile.tri_inverse %ln : vector<64x64xf16>
  %w = gdn_tile.matmul transpose %s, %toend : vector<64x64xf16>, vector<64x128xf16> -> vector<64x128xf32>
  %wn = gdn_tile.map_rows %w : vector<64x128xf32> -> vector<64x128xf16> {
  ^bb0(%i: index, %x: vector<128xf32>):
    %y = arith.truncf %x : vector<128xf32> to vector<128xf16>
    gdn_tile.yield %y : vector<128xf16>
  }
  gdn_tile.store %wn, %te[%t, %c0, %c0] dims [1, 2] : vector<64x128xf16>, !wide_tiles
  gdn_tile.store %ofq, %fq[%t, %c0, %c0] dims [1, 2] : vector<64x128xf16>, !wide_tiles
  gdn_tile.store %ofk, %fk[%t, %c0, %c0] dims [1, 2] : vector<64x128xf16>, !wide_tiles
  return
}
