// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_tile.store: parse, print, and print again, in both forms.
//
// RUN: gdn-tile-opt %s | gdn-tile-opt | FileCheck %s
// RUN: gdn-tile-opt -mlir-print-op-generic %s | gdn-tile-opt | FileCheck %s

!pool = memref<?x?x128x64xf32, strided<[?, ?, ?, 1], offset: ?>>

// A whole state.
// CHECK-LABEL: func.func @state
//  CHECK-SAME:   %[[TILE:[a-z0-9]+]]: vector<128x64xf32>, %[[POOL:[a-z0-9]+]]: memref
//       CHECK:   gdn_tile.store %[[TILE]], %[[POOL]][{{.+}}] dims [2, 3]
//  CHECK-SAME:     : vector<128x64xf32>, memref<?x?x128x64xf32, strided<[?, ?, ?, 1], offset: ?>>
func.func @state(%tile: vector<128x64xf32>, %pool: !pool, %slot: index,
                 %h: index) {
  %c0 = arith.constant 0 : index
  gdn_tile.store %tile, %pool[%slot, %h, %c0, %c0] dims [2, 3]
      : vector<128x64xf32>, !pool
  return
}

// Rank 1 and a tail.
// CHECK-LABEL: func.func @tail
//  CHECK-SAME:   %[[N:[a-z0-9]+]]: index) {
//       CHECK:   gdn_tile.store %{{.+}} dims [0] rows(%[[N]]) : vector<16xf16>, memref<?x?xf16>
func.func @tail(%tile: vector<16xf16>, %x: memref<?x?xf16>, %t: index,
                %n: index) {
  gdn_tile.store %tile, %x[%t, %t] dims [0] rows(%n)
      : vector<16xf16>, memref<?x?xf16>
  return
}

// A block of tokens of a loop: the last one alone has fewer.
// CHECK-LABEL: func.func @blocks
//       CHECK:   scf.for
//       CHECK:     gdn_tile.store %{{.+}} dims [0] rows(%{{.+}}) full_until_last : vector<16xf16>, memref<?xf16>
func.func @blocks(%tile: vector<16xf16>, %x: memref<?xf16>, %n: index) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  scf.for %t = %c0 to %n step %c16 {
    %left = arith.subi %n, %t : index
    %rows = arith.minui %left, %c16 : index
    gdn_tile.store %tile, %x[%t] dims [0] rows(%rows) full_until_last
        : vector<16xf16>, memref<?xf16>
  }
  return
}
