// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Beside a stage with a decay per channel no load is `whole`.
//
// RUN: gdn-opt %s -gdn-schedule-token-groups=whole-loads=true | FileCheck %s

// CHECK-LABEL: func.func @groups(
//       CHECK:   gdn_gpu.load {{.+}} rows(%{{[a-z0-9]+}}) : {{.+}}<2x64xf32
func.func @groups(%T: index, %x: memref<?x64xf32>, %y: memref<?x64xf32>)
    attributes {gdn_tile.stage = {grid = ["T", "2"], symbols = ["T"], token_pieces = 2}} {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %t = gdn_tile.block_id 0
  %piece = gdn_tile.block_id 1
  %live = arith.cmpi ne, %piece, %c0 : index
  %some = arith.select %live, %c2, %c0 : index
  %group = gdn_tile.load %x[%t, %c0] dims [0, 1] rows(%some) : memref<?x64xf32>, vector<2x64xf32>
  gdn_tile.store %group, %y[%t, %c0] dims [0, 1] : vector<2x64xf32>, memref<?x64xf32>
  return
}

func.func @scores(%query: vector<16x64xf32>, %key: vector<16x64xf32>, %log_decay: vector<16x64xf32>)
    -> (vector<16x16xf32>, vector<16x16xf32>) {
  %q, %k = gdn_tile.decay_scores %query, %key decay(%log_decay) : vector<16x64xf32> -> vector<16x16xf32>
  return %q, %k : vector<16x16xf32>, vector<16x16xf32>
}
