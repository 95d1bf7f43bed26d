// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_tile.delta_scan: parse, print, and print again, in both forms.
//
// RUN: gdn-tile-opt %s | gdn-tile-opt | FileCheck %s
// RUN: gdn-tile-opt -mlir-print-op-generic %s | gdn-tile-opt | FileCheck %s

// One log decay per token.
// CHECK-LABEL: func.func @per_head
//  CHECK-SAME:   %[[M:[a-z0-9]+]]: vector<128x64xf32>, %[[Q:[a-z0-9]+]]: vector<16x64xf32>, %[[K:[a-z0-9]+]]: vector<16x64xf32>, %[[V:[a-z0-9]+]]: vector<16x128xf32>, %[[G:[a-z0-9]+]]: vector<16xf32>, %[[BETA:[a-z0-9]+]]: vector<16xf32>, %[[N:[a-z0-9]+]]: index
//       CHECK:   %[[NEXT:.+]], %[[OUT:.+]] = gdn_tile.delta_scan %[[M]], %[[Q]], %[[K]], %[[V]] gates(%[[G]], %[[BETA]]) valid(%[[N]])
//  CHECK-SAME:     : vector<128x64xf32>, vector<16x64xf32>, vector<16x128xf32>, vector<16xf32>
//       CHECK:   return %[[NEXT]], %[[OUT]] : vector<128x64xf32>, vector<16x128xf32>
func.func @per_head(%m: vector<128x64xf32>, %q: vector<16x64xf32>,
    %k: vector<16x64xf32>, %v: vector<16x128xf32>, %g: vector<16xf32>,
    %beta: vector<16xf32>, %n: index)
    -> (vector<128x64xf32>, vector<16x128xf32>) {
  %m1, %o = gdn_tile.delta_scan %m, %q, %k, %v gates(%g, %beta) valid(%n)
      : vector<128x64xf32>, vector<16x64xf32>, vector<16x128xf32>,
        vector<16xf32>
  return %m1, %o : vector<128x64xf32>, vector<16x128xf32>
}

// One log decay per token and column of the state.
// CHECK-LABEL: func.func @per_channel
//       CHECK:   gdn_tile.delta_scan
//  CHECK-SAME:     : vector<128x64xf32>, vector<16x64xf32>, vector<16x128xf32>, vector<16x64xf32>
func.func @per_channel(%m: vector<128x64xf32>, %q: vector<16x64xf32>,
    %v: vector<16x128xf32>, %g: vector<16x64xf32>, %beta: vector<16xf32>,
    %n: index) -> vector<128x64xf32> {
  %m1, %o = gdn_tile.delta_scan %m, %q, %q, %v gates(%g, %beta) valid(%n)
      : vector<128x64xf32>, vector<16x64xf32>, vector<16x128xf32>,
        vector<16x64xf32>
  return %m1 : vector<128x64xf32>
}

// What each token adds, as a third result.
// CHECK-LABEL: func.func @deltas
//       CHECK:   %{{.+}}, %{{.+}}, %[[D:.+]] = gdn_tile.delta_scan
//  CHECK-SAME:     : vector<128x64xf32>, vector<16x64xf32>, vector<16x128xf32>, vector<16xf32>, deltas
//       CHECK:   return %[[D]] : vector<16x128xf32>
func.func @deltas(%m: vector<128x64xf32>, %q: vector<16x64xf32>,
    %v: vector<16x128xf32>, %g: vector<16xf32>, %n: index) -> vector<16x128xf32> {
  %m1, %o, %d = gdn_tile.delta_scan %m, %q, %q, %v gates(%g, %g) valid(%n)
      : vector<128x64xf32>, vector<16x64xf32>, vector<16x128xf32>,
        vector<16xf32>, deltas
  return %d : vector<16x128xf32>
}

// Gated linear attention: no write strength, so none in either form.
// CHECK-LABEL: func.func @without_beta
//  CHECK-SAME:   %[[M:[a-z0-9]+]]: vector<128x64xf32>, %[[Q:[a-z0-9]+]]: vector<16x64xf32>, %[[V:[a-z0-9]+]]: vector<16x128xf32>, %[[G:[a-z0-9]+]]: vector<16x64xf32>, %[[N:[a-z0-9]+]]: index
//       CHECK:   gdn_tile.delta_scan %[[M]], %[[Q]], %[[Q]], %[[V]] gates(%[[G]]) valid(%[[N]])
//  CHECK-SAME:     : vector<128x64xf32>, vector<16x64xf32>, vector<16x128xf32>, vector<16x64xf32>
func.func @without_beta(%m: vector<128x64xf32>, %q: vector<16x64xf32>,
    %v: vector<16x128xf32>, %g: vector<16x64xf32>, %n: index)
    -> vector<16x128xf32> {
  %m1, %o = gdn_tile.delta_scan %m, %q, %q, %v gates(%g) valid(%n)
      : vector<128x64xf32>, vector<16x64xf32>, vector<16x128xf32>,
        vector<16x64xf32>
  return %o : vector<16x128xf32>
}

// A key to erase along, with the type of the keys.
// CHECK-LABEL: func.func @erase
//  CHECK-SAME:   %[[M:[a-z0-9]+]]: vector<128x64xf32>, %[[K:[a-z0-9]+]]: vector<16x64xf32>, %[[E:[a-z0-9]+]]: vector<16x64xf32>, %[[V:[a-z0-9]+]]: vector<16x128xf32>, %[[G:[a-z0-9]+]]: vector<16xf32>, %[[N:[a-z0-9]+]]: index
//       CHECK:   gdn_tile.delta_scan %[[M]], %[[K]], %[[K]], %[[V]] gates(%[[G]], %[[G]]) erase(%[[E]]) valid(%[[N]])
//  CHECK-SAME:     : vector<128x64xf32>, vector<16x64xf32>, vector<16x128xf32>, vector<16xf32>, deltas
func.func @erase(%m: vector<128x64xf32>, %k: vector<16x64xf32>, %e: vector<16x64xf32>,
    %v: vector<16x128xf32>, %g: vector<16xf32>, %n: index) -> vector<16x128xf32> {
  %m1, %o, %d = gdn_tile.delta_scan %m, %k, %k, %v gates(%g, %g) erase(%e) valid(%n)
      : vector<128x64xf32>, vector<16x64xf32>, vector<16x128xf32>,
        vector<16xf32>, deltas
  return %d : vector<16x128xf32>
}
