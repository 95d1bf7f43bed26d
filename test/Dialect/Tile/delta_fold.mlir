// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_tile.delta_fold: parse, print, and print again, in both forms.
//
// RUN: gdn-tile-opt %s | gdn-tile-opt | FileCheck %s
// RUN: gdn-tile-opt -mlir-print-op-generic %s | gdn-tile-opt | FileCheck %s

// CHECK-LABEL: func.func @per_head
//  CHECK-SAME:   %[[M:[a-z0-9]+]]: vector<128x64xf32>, %[[K:[a-z0-9]+]]: vector<8x64xf32>, %[[D:[a-z0-9]+]]: vector<8x128xf32>, %[[G:[a-z0-9]+]]: vector<8xf32>, %[[N:[a-z0-9]+]]: index
//       CHECK:   gdn_tile.delta_fold %[[M]], %[[K]], %[[D]] decay(%[[G]]) valid(%[[N]]) : vector<128x64xf32>, vector<8x64xf32>, vector<8x128xf32>, vector<8xf32>
func.func @per_head(%m: vector<128x64xf32>, %k: vector<8x64xf32>,
    %d: vector<8x128xf32>, %g: vector<8xf32>, %n: index) -> vector<128x64xf32> {
  %m1 = gdn_tile.delta_fold %m, %k, %d decay(%g) valid(%n)
      : vector<128x64xf32>, vector<8x64xf32>, vector<8x128xf32>, vector<8xf32>
  return %m1 : vector<128x64xf32>
}

// CHECK-LABEL: func.func @per_channel
//       CHECK:   gdn_tile.delta_fold {{.*}} : vector<128x64xf32>, vector<4x64xf32>, vector<4x128xf32>, vector<4x64xf32>
func.func @per_channel(%m: vector<128x64xf32>, %k: vector<4x64xf32>,
    %d: vector<4x128xf32>, %n: index) -> vector<128x64xf32> {
  %m1 = gdn_tile.delta_fold %m, %k, %d decay(%k) valid(%n)
      : vector<128x64xf32>, vector<4x64xf32>, vector<4x128xf32>, vector<4x64xf32>
  return %m1 : vector<128x64xf32>
}
