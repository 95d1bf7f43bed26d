// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_tile.block_id: parse, print, and print again, in both forms.
//
// RUN: gdn-tile-opt %s | gdn-tile-opt | FileCheck %s
// RUN: gdn-tile-opt -mlir-print-op-generic %s | gdn-tile-opt | FileCheck %s

// One coordinate per axis of the grid.
// CHECK-LABEL: func.func @both_axes
//       CHECK:   gdn_tile.block_id 0
//       CHECK:   gdn_tile.block_id 1
func.func @both_axes() -> (index, index)
    attributes {gdn_tile.stage = {grid = ["N + 1", "Hk"]}} {
  %n = gdn_tile.block_id 0
  %h = gdn_tile.block_id 1
  return %n, %h : index, index
}
