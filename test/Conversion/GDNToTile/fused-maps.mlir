// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A variant that only makes maps of whole sequences, by blocks that prepare their chunks
// themselves: one of two has all rows of H, the other those of P.
//
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile="precision=mixed-io chunk-stages=staged variants=maps:fused=2;maps=alone;when=workers<=0,staged: value-heads" -canonicalize -cse -gdn-tile-fuse-rows -cse | FileCheck %s
// RUN: not gdn-opt %s -gdn-fuse -convert-gdn-to-tile="precision=mixed-io chunk-stages=staged variants=stay:fused=2;blocks=stay,maps:fused=2;maps=alone;when=workers<=0,staged: value-heads" 2>&1 | FileCheck %s --check-prefix=STAY
// STAY: error: 'func.func' op expects no variants of prefill with 'blocks' beside 'maps', which lie where a workspace begins, as counters do, but got 'stay'

// CHECK-LABEL: func.func @prefill__maps_alone(
//  CHECK-SAME:   %[[STATES:[a-z0-9]+]]: memref<?x?x128x128xf32>, %[[MAPS:[a-z0-9]+]]: memref<?x?x128x128xf32>)
//  CHECK-SAME:   bits = "maps"
//  CHECK-SAME:   conditions = {{\[\[}}["workers"], ["0"]]]
//  CHECK-SAME:   grid = ["N", "Hv", "2"]
//   CHECK-NOT:   overlaps
//  CHECK-SAME:   same_chunks = 2
//  CHECK-SAME:   workspace = {{\[\[}}"N", "Hv", "128", "128", "4"], ["N", "Hv", "128", "128", "4"]]
// From nothing or the identity, never from the pool; and no outputs.
//   CHECK-NOT:   gdn_tile.load
//       CHECK:   gdn_tile.map_rows
//   CHECK-NOT:   gdn_tile.load
//       CHECK:   scf.for {{.*}} -> (vector<128x128xf32>)
//       CHECK:     gdn_tile.tri_inverse
//   CHECK-NOT:     gdn_tile.store
//       CHECK:     scf.yield
//       CHECK:   scf.if
//       CHECK:     gdn_tile.store %{{.+}}, %[[MAPS]]
//       CHECK:   } else {
//       CHECK:     gdn_tile.store %{{.+}}, %[[STATES]]
//   CHECK-NOT:   gdn_tile.store
// CHECK-LABEL: func.func @prefill__intra_chunk(

func.func @prefill(
    %q: tensor<?x?x128xbf16> {gdn.name = "q", gdn.dims = ["T", "Hk", "128"]},
    %k: tensor<?x?x128xbf16> {gdn.name = "k", gdn.dims = ["T", "Hk", "128"]},
    %v: tensor<?x?x128xbf16> {gdn.name = "v", gdn.dims = ["T", "Hv", "128"]},
    %g: tensor<?x?xf32> {gdn.name = "log_decay", gdn.dims = ["T", "Hv"]},
    %beta: tensor<?x?xf32> {gdn.name = "beta", gdn.dims = ["T", "Hv"]},
    %cu: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %pool: !gdn.pool<?x?x128x128xf32> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "128", "128"]})
    -> (tensor<?x?x128xbf16> {gdn.name = "core", gdn.dims = ["T", "Hv", "128"]})
    attributes {gdn.entry} {
  %o = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%pool) slots(%slots) sequences(%cu)
      : tensor<?x?x128xbf16>, tensor<?x?x128xbf16>, tensor<?x?x128xbf16>, tensor<?x?xf32>,
        tensor<?x?xf32>, !gdn.pool<?x?x128x128xf32>, tensor<?xi32>, tensor<?xi32>
        -> tensor<?x?x128xbf16>
  return %o : tensor<?x?x128xbf16>
}
