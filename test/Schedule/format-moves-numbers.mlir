// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A map of rows between two tiles of numbers is no move of a state.
//
// RUN: gdn-opt %s -gdn-schedule-slot-moves | FileCheck %s

// CHECK-LABEL: func.func @numbers(
//       CHECK:   gdn_tile.map_rows
func.func @numbers(%n: index, %from: memref<32x128xf32>, %to: memref<32x128xf32>)
    attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %m = gdn_tile.load %from[%c0, %c0] dims [0, 1] : memref<32x128xf32>, vector<32x128xf32>
  %w = gdn_tile.map_rows %m : vector<32x128xf32> -> vector<32x128xf32> {
  ^bb0(%row: index, %x: vector<128xf32>):
    %y = arith.negf %x : vector<128xf32>
    gdn_tile.yield %y : vector<128xf32>
  }
  gdn_tile.store %w, %to[%c0, %c0] dims [0, 1] : vector<32x128xf32>, memref<32x128xf32>
  return
}
