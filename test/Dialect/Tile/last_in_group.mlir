// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_tile.last_in_group: parse, print, and print again, in both forms.
//
// RUN: gdn-tile-opt %s | gdn-tile-opt | FileCheck %s
// RUN: gdn-tile-opt -mlir-print-op-generic %s | gdn-tile-opt | FileCheck %s

// CHECK-LABEL: func.func @turn
//       CHECK:   gdn_tile.last_in_group %{{.+}} of %{{.+}}
func.func @turn(%group: index, %count: index) -> i1
    attributes {gdn_tile.stage = {groups = ["2", "N", "Hk"]}} {
  %last = gdn_tile.last_in_group %group of %count
  return %last : i1
}
