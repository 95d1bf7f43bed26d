// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Prefill in stages with a decay per channel: the first stage leaves queries and
// keys with the decay from the start of the chunk, and the decay of the chunk,
// channel by channel. The second one has no decay of tokens.
//
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile="precision=mixed-io chunk-stages=staged" -canonicalize -cse -gdn-tile-fuse-rows -cse | FileCheck %s
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile="precision=mixed chunk-from=1" -canonicalize -cse | FileCheck %s --check-prefix=ONE
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile="precision=mixed-io chunk-stages=staged variants='ahead:copies=ahead;where=1<=channels,other:segments=2;where=channels<=0,staged:'" | FileCheck %s --check-prefix=AHEAD

// Inputs are read as they lie in memory: bf16, and no prologue.
//   CHECK-NOT: prefill__prologue
// CHECK-LABEL: func.func @prefill__intra_chunk
//  CHECK-SAME:   %[[Y:[a-z0-9]+]]: memref<?x?x64x32xf16>, %[[Z:[a-z0-9]+]]: memref<?x?x64x64xf16>, %[[GATES:[a-z0-9]+]]: memref<?x?x4x64xf32>, %[[FQ:[a-z0-9]+]]: memref<?x?x64x32xf16>, %[[FK:[a-z0-9]+]]: memref<?x?x64x32xf16>)
//       CHECK:   %[[G:.+]] = gdn_tile.load {{.+}} vector<64x32xf32>
//       CHECK:   %[[Q:.+]] = gdn_tile.load {{.+}} vector<64x32xbf16>
//       CHECK:   %[[K:.+]] = gdn_tile.load {{.+}} vector<64x32xbf16>
//       CHECK:   %[[P:.+]], %[[L:.+]], %[[OF_Q:.+]], %[[OF_K:.+]], %[[TO_END:.+]], %[[END:.+]] = gdn_tile.decay_operands %[[Q]], %[[K]] decay(%[[G]]) : vector<64x32xbf16> -> vector<64x64xf32>, vector<64x32xf16>, vector<32xf32>
// Queries and keys go at once: their place is free then.
//       CHECK:   gdn_tile.store %[[OF_Q]], %[[FQ]]
//       CHECK:   gdn_tile.store %[[OF_K]], %[[FK]]
//       CHECK:   %[[TRIANGLE:.+]] = gdn_tile.map_rows %[[L]], %[[BETA:.+]] : vector<64x64xf32>, vector<64xf32> -> vector<64x64xf16>
//       CHECK:   %[[T:.+]] = gdn_tile.tri_inverse %[[TRIANGLE]]
//       CHECK:   %[[SCORES:.+]] = gdn_tile.map_rows %[[P]] : vector<64x64xf32> -> vector<64x64xf16>
//       CHECK:   gdn_tile.matmul %[[SCORES]], %[[T]] {lower_lhs}
//       CHECK:   gdn_tile.matmul transpose %[[T]], %[[TO_END]]
// Strength, without a decay; the decay of the chunk has a row of channels.
//       CHECK:   gdn_tile.store %{{.+}}, %[[GATES]][%{{.+}}, %{{.+}}, %c1, %c0] dims [3] : vector<64xf32>
//       CHECK:   gdn_tile.store %[[END]], %[[GATES]][%{{.+}}, %{{.+}}, %c3, %c0] dims [3] : vector<32xf32>

// CHECK-LABEL: func.func @prefill__inter_chunk
//       CHECK:   scf.for {{.*}} iter_args(%[[M:.+]] = %{{.+}}) -> (vector<64x32xf32>)
//       CHECK:     %[[E:.+]] = gdn_tile.load {{.+}} vector<32xf32>
//       CHECK:     gdn_tile.map_rows %[[M]] : vector<64x32xf32> -> vector<64x32xf32> {
//  CHECK-NEXT:     ^bb0(%{{.+}}: index, %[[ROW:.+]]: vector<32xf32>):
//  CHECK-NEXT:       arith.mulf %[[ROW]], %[[E]]

// A recurrence of its own, and the same intra-chunk stage.
// AHEAD-LABEL: func.func @prefill__intra_chunk(
//  AHEAD-SAME:   variant = ["ahead", "staged"]
//   AHEAD-NOT: segments
// AHEAD-LABEL: func.func @prefill__inter_chunk_ahead(
//  AHEAD-SAME:   bits = "staged", copies_ahead = 1 : i64,
//  AHEAD-SAME:   variant = "ahead"
// AHEAD-LABEL: func.func @prefill__inter_chunk(
//   AHEAD-NOT:   copies_ahead
//  AHEAD-SAME:   variant = "staged"

// In one pass the same, of the state's transpose.
// ONE-LABEL: func.func @prefill
//       ONE:   scf.for {{.*}} iter_args(%[[S:.+]] = %{{.+}}) -> (vector<32x64xf32>)
//       ONE:     %{{.+}}, %{{.+}}, %[[FQ:.+]], %[[FK:.+]], %[[TE:.+]], %[[END:.+]] = gdn_tile.decay_operands
//       ONE:     gdn_tile.tri_inverse %{{.+}} : vector<64x64xf16>
//       ONE:     %[[M:.+]] = gdn_tile.transpose %[[S]] : vector<32x64xf32>
//       ONE:     %[[KT:.+]] = gdn_tile.transpose %[[FK]] : vector<64x32xf16>
//       ONE:     gdn_tile.matmul %{{.+}}, %[[KT]] : vector<64x32xf16>, vector<32x64xf16>
//       ONE:     %[[QT:.+]] = gdn_tile.transpose %[[FQ]] : vector<64x32xf16>
//       ONE:     gdn_tile.matmul %{{.+}}, %[[QT]] : vector<64x32xf16>, vector<32x64xf16>
//       ONE:     %[[KEPT:.+]] = gdn_tile.map_rows %[[M]] : vector<64x32xf32>
//       ONE:       arith.mulf %{{.+}}, %[[END]] : vector<32xf32>
//       ONE:     %[[NEXT:.+]] = gdn_tile.matmul %{{.+}}, %{{.+}} acc(%[[KEPT]] : vector<64x32xf32>)
//       ONE:     gdn_tile.transpose %[[NEXT]] : vector<64x32xf32>
func.func @prefill(
    %q: tensor<?x?x32xbf16> {gdn.name = "q", gdn.dims = ["T", "Hk", "32"]},
    %k: tensor<?x?x32xbf16> {gdn.name = "k", gdn.dims = ["T", "Hk", "32"]},
    %v: tensor<?x?x64xbf16> {gdn.name = "v", gdn.dims = ["T", "Hv", "64"]},
    %g: tensor<?x?x32xf32> {gdn.name = "g", gdn.dims = ["T", "Hv", "32"]},
    %beta: tensor<?x?xf32> {gdn.name = "beta", gdn.dims = ["T", "Hv"]},
    %pool: !gdn.pool<?x?x64x32xf32> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "64", "32"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %cu: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]})
    -> (tensor<?x?x64xbf16> {gdn.name = "core", gdn.dims = ["T", "Hv", "64"]})
    attributes {gdn.entry} {
  %o = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%pool) slots(%slots) sequences(%cu)
      : tensor<?x?x32xbf16>, tensor<?x?x32xbf16>, tensor<?x?x64xbf16>, tensor<?x?x32xf32>,
        tensor<?x?xf32>, !gdn.pool<?x?x64x32xf32>, tensor<?xi32>, tensor<?xi32>
        -> tensor<?x?x64xbf16>
  return %o : tensor<?x?x64xbf16>
}
