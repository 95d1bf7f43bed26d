// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A tile of which warps take rows (`gdn_tile.extract_rows`) is the block's: all threads copy it to
// shared memory. What a program finds by loading numbers, one warp finds for all. What depends on
// the piece each warp does by itself, behind the copy; what all of them load the same, beside it.
//
// RUN: gdn-opt %s -gdn-schedule-token-groups -canonicalize -gdn-gpu-place-barriers -gdn-gpu-check | FileCheck %s

!inputs = memref<?x128xbf16, strided<[?, 1], offset: ?>>

// CHECK-LABEL: func.func @pieces(
//  CHECK-SAME:   %[[X:[a-z0-9]+]]: memref<?x128xbf16
//  CHECK-SAME:   min_blocks = 20 : i64, threads = 64 : i64}, gdn_tile.stage = {grid = ["N"], symbols = ["N"]}
//   CHECK-DAG:   %[[CHUNK:.+]] = gdn_gpu.alloc : <35x128xbf16>
//   CHECK-DAG:   %[[FIRST:.+]] = gdn_gpu.alloc : <1xi32>
//       CHECK:   gdn_gpu.warps 0 for 1 {
//       CHECK:     memref.load
//       CHECK:     gdn_gpu.store_shared %{{.+}}, %[[FIRST]]
//       CHECK:   gdn_gpu.barrier
//       CHECK:   %[[WORD:.+]] = gdn_gpu.load_shared_element %[[FIRST]]
//       CHECK:   %[[AT:.+]] = arith.index_cast %[[WORD]]
//       CHECK:   scf.if
//       CHECK:     gdn_gpu.begin_copy any_alignment %[[X]][%[[AT]], %c0] dims [0, 1] rows(%{{.+}}), %[[CHUNK]]
//       CHECK:     %[[WEIGHT:.+]] = gdn_gpu.each_warp 0 for 2 -> !gdn_gpu.fragment<128xbf16
//       CHECK:       gdn_gpu.load
//       CHECK:     gdn_gpu.await_copies
//       CHECK:     gdn_gpu.barrier
//       CHECK:     gdn_gpu.each_warp 0 for 2 {
//       CHECK:     ^bb0(%[[PIECE:.+]]: index):
//       CHECK:       %[[ROW:.+]] = arith.muli %[[PIECE]], %c16
//       CHECK:       gdn_gpu.load_shared %[[CHUNK]] row(%[[ROW]]) : <35x128xbf16> -> <4x128xbf16
//       CHECK:       scf.if {{.+}} -> (!gdn_gpu.fragment<3x128xbf16
//       CHECK:         gdn_gpu.load_shared %[[CHUNK]]
//       CHECK:       else
//       CHECK:         gdn_gpu.fill
//       CHECK:       gdn_gpu.map_rows %{{.+}}, %[[WEIGHT]]
//       CHECK:       gdn_gpu.store
func.func @pieces(%N: index, %x: !inputs, %bounds: memref<?xi32>, %w: memref<128xbf16>, %out: memref<?x128xbf16>)
    attributes {gdn_tile.stage = {grid = ["N", "2"], symbols = ["N"], token_pieces = 2}} {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %c16 = arith.constant 16 : index
  %n = gdn_tile.block_id 0
  %word = memref.load %bounds[%n] : memref<?xi32>
  %first = arith.index_cast %word : i32 to index
  %live = arith.cmpi ult, %first, %N : index
  scf.if %live {
    %rows = arith.subi %N, %first : index
    %piece = gdn_tile.block_id 1
    %at = arith.muli %piece, %c16 : index
    %chunk = gdn_tile.load %x[%first, %c0] dims [0, 1] rows(%rows) : !inputs, vector<35x128xbf16>
    %weight = gdn_tile.load %w[%c0] dims [0] : memref<128xbf16>, vector<128xbf16>
    %group = gdn_tile.extract_rows %chunk[%at] : vector<35x128xbf16> -> vector<4x128xbf16>
    %some = arith.cmpi ne, %piece, %c0 : index
    %three = arith.select %some, %c3, %c0 : index
    %window = gdn_tile.extract_rows %chunk[%at] rows(%three) : vector<35x128xbf16> -> vector<3x128xbf16>
    %y = gdn_tile.map_rows %group : vector<4x128xbf16> -> vector<4x128xbf16> {
    ^bb0(%i: index, %row: vector<128xbf16>):
      %r = arith.mulf %row, %weight : vector<128xbf16>
      gdn_tile.yield %r : vector<128xbf16>
    }
    gdn_tile.store %y, %out[%at, %c0] dims [0, 1] : vector<4x128xbf16>, memref<?x128xbf16>
    gdn_tile.store %window, %out[%first, %c0] dims [0, 1] : vector<3x128xbf16>, memref<?x128xbf16>
  }
  return
}
