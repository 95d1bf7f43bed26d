// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A variant that only makes maps of whole sequences with a decay per channel: a stage prepares
// chunks, whose place is behind the maps; of its second, two blocks have rows of H and two of P.
//
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile="precision=mixed-io chunk-stages=staged variants=maps:v-split=2;maps=alone;when=workers<=0,staged: value-heads" -canonicalize -cse -gdn-tile-fuse-rows -cse | FileCheck %s
// RUN: sed 's/x?x128xf32> {gdn.name = "log_decay", gdn.dims = \["T", "Hv", "128"\]/x?xf32> {gdn.name = "log_decay", gdn.dims = ["T", "Hv"]/; s/tensor<?x?x128xbf16>, tensor<?x?x128xf32>,/tensor<?x?x128xbf16>, tensor<?x?xf32>,/' %s | gdn-opt -gdn-fuse -convert-gdn-to-tile="precision=mixed-io chunk-stages=staged variants=maps:v-split=2;maps=alone,staged: value-heads" | FileCheck %s --check-prefix=NONE

// A decay for each head has no such variant: blocks prepare their chunks themselves.
//  NONE-NOT: __maps_alone
//      NONE: func.func @prefill__intra_chunk(
//  NONE-NOT: __maps_alone

// CHECK-LABEL: func.func @prefill__intra_chunk_alone(
//  CHECK-SAME:   bits = "maps"
//  CHECK-SAME:   workspace = {{\[\[}}"N", "Hv", "128", "128", "4"], ["N", "Hv", "128", "128", "4"], ["T floordiv 64 + N", "Hv", "64", "128", "2"]
// CHECK-LABEL: func.func @prefill__maps_alone(
//  CHECK-SAME:   %[[STATES:[a-z0-9]+]]: memref<?x?x128x128xf32>, %[[MAPS:[a-z0-9]+]]: memref<?x?x128x128xf32>
//  CHECK-SAME:   bits = "maps"
//  CHECK-SAME:   conditions = {{\[\[}}["workers"], ["0"]]]
//  CHECK-SAME:   grid = ["N", "Hv", "4"]
//  CHECK-SAME:   workspace = {{\[\[}}"N", "Hv", "128", "128", "4"], ["N", "Hv", "128", "128", "4"], ["T floordiv 64 + N", "Hv", "64", "128", "2"]
//       CHECK:   scf.for {{.*}} -> (vector<64x128xf32>)
// The last chunk may have fewer tokens.
//       CHECK:     arith.minui
//   CHECK-NOT:     gdn_tile.tri_inverse
//       CHECK:     scf.yield
//       CHECK:   scf.if
//       CHECK:     gdn_tile.store %{{.+}}, %[[MAPS]]
//       CHECK:   } else {
//       CHECK:     gdn_tile.store %{{.+}}, %[[STATES]]
//   CHECK-NOT:   gdn_tile.store
// CHECK-LABEL: func.func @prefill__intra_chunk(
//  CHECK-SAME:   workspace = {{\[\[}}"T floordiv 64 + N", "Hv", "64", "128", "2"]

func.func @prefill(
    %q: tensor<?x?x128xbf16> {gdn.name = "q", gdn.dims = ["T", "Hk", "128"]},
    %k: tensor<?x?x128xbf16> {gdn.name = "k", gdn.dims = ["T", "Hk", "128"]},
    %v: tensor<?x?x128xbf16> {gdn.name = "v", gdn.dims = ["T", "Hv", "128"]},
    %g: tensor<?x?x128xf32> {gdn.name = "log_decay", gdn.dims = ["T", "Hv", "128"]},
    %beta: tensor<?x?xf32> {gdn.name = "beta", gdn.dims = ["T", "Hv"]},
    %cu: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %pool: !gdn.pool<?x?x128x128xf32> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "128", "128"]})
    -> (tensor<?x?x128xbf16> {gdn.name = "core", gdn.dims = ["T", "Hv", "128"]})
    attributes {gdn.entry} {
  %o = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%pool) slots(%slots) sequences(%cu)
      : tensor<?x?x128xbf16>, tensor<?x?x128xbf16>, tensor<?x?x128xbf16>, tensor<?x?x128xf32>,
        tensor<?x?xf32>, !gdn.pool<?x?x128x128xf32>, tensor<?xi32>, tensor<?xi32>
        -> tensor<?x?x128xbf16>
  return %o : tensor<?x?x128xbf16>
}
