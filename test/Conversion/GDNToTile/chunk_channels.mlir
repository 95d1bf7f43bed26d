// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The chunk form with a decay per channel: its products in order, and where
// decay enters.
//
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile="chunk-from=1 chunk=32" -canonicalize -cse | FileCheck %s

// CHECK-LABEL: func.func @prefill
//       CHECK:   scf.for {{.*}} iter_args(%[[S:.+]] = %{{.+}}) -> (vector<16x64xf32>)
//       CHECK:     %[[G:.+]] = gdn_tile.prefix_sum %[[STEP:.+]] : vector<32x16xf32>
//       CHECK:     %[[REST:.+]] = gdn_tile.suffix_sum %[[STEP]] : vector<32x16xf32>
// Decay between two tokens is inside the sum over channels, so it is inverted
// with the triangle.
//       CHECK:     %[[P:.+]], %[[KK:.+]] = gdn_tile.decay_scores %[[Q:.+]], %[[K:.+]] decay(%[[STEP]])
//  CHECK-SAME:       : vector<32x16xf32> -> vector<32x32xf32>
// Decay from the start of the chunk.
//       CHECK:     %[[FADED:.+]]:2 = gdn_tile.map_rows %[[Q]], %[[K]], %[[G]]
//       CHECK:       math.exp %{{.+}} : vector<16xf32>
//       CHECK:     %[[L:.+]] = gdn_tile.map_rows %[[KK]], %[[BETA:.+]] : vector<32x32xf32>, vector<32xf32>
//       CHECK:     %[[A:.+]] = gdn_tile.tri_inverse %[[L]]
//       CHECK:     %[[KNOWN:.+]] = gdn_tile.matmul %[[FADED]]#1, %[[S]]
//       CHECK:     %[[ERROR:.+]] = gdn_tile.map_rows %{{.+}}, %[[KNOWN]], %[[BETA]]
//       CHECK:     %[[X:.+]] = gdn_tile.matmul %[[A]], %[[ERROR]] {lower_lhs}
//       CHECK:     %[[OLD:.+]] = gdn_tile.matmul %[[FADED]]#0, %[[S]]
//       CHECK:     gdn_tile.matmul %[[P]], %[[X]] acc(%[[OLD]] : vector<32x64xf32>) {lower_lhs}
// Decay to the end of the chunk: row d of the state fades with channel d.
//       CHECK:     %[[LAST:.+]] = gdn_tile.extract_row %[[G]][31]
//       CHECK:     %[[TO_END:.+]] = gdn_tile.map_rows %[[K]], %[[REST]]
//       CHECK:     %[[KEPT:.+]] = gdn_tile.map_rows %[[S]], %[[LAST]] : vector<16x64xf32>, vector<16xf32>
//       CHECK:     %[[NEXT:.+]] = gdn_tile.matmul transpose %[[TO_END]], %[[X]] acc(%[[KEPT]] : vector<16x64xf32>)
//       CHECK:     scf.yield %[[NEXT]]
func.func @prefill(
    %q: tensor<?x?x16xf32> {gdn.name = "q", gdn.dims = ["T", "Hk", "16"]},
    %k: tensor<?x?x16xf32> {gdn.name = "k", gdn.dims = ["T", "Hk", "16"]},
    %v: tensor<?x?x64xf32> {gdn.name = "v", gdn.dims = ["T", "Hv", "64"]},
    %g: tensor<?x?x16xf32> {gdn.name = "g", gdn.dims = ["T", "Hv", "16"]},
    %beta: tensor<?x?xf32> {gdn.name = "beta", gdn.dims = ["T", "Hv"]},
    %pool: !gdn.pool<?x?x64x16xf32> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "64", "16"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %cu: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]})
    -> (tensor<?x?x64xf32> {gdn.name = "core", gdn.dims = ["T", "Hv", "64"]})
    attributes {gdn.entry} {
  %o = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%pool) slots(%slots) sequences(%cu)
      : tensor<?x?x16xf32>, tensor<?x?x16xf32>, tensor<?x?x64xf32>, tensor<?x?x16xf32>,
        tensor<?x?xf32>, !gdn.pool<?x?x64x16xf32>, tensor<?xi32>, tensor<?xi32>
        -> tensor<?x?x64xf32>
  return %o : tensor<?x?x64xf32>
}
