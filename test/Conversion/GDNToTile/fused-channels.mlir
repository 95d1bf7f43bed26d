// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A variant in which blocks prepare the chunks of their recurrence with a decay per channel: chunks of
// 32 tokens, T and P apart, strengths with T. Others have their chunks of 64. It is there for inputs as
// they are in memory, and for whole heads or some values of them.
//
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile="precision=mixed-io chunk-stages=staged variants='fused-channels:fused=1;where=1<=channels,halves:fused=1;v-split=2,heads:fused=2,segments:fused=1;segments=3,staged:' value-heads" -canonicalize -cse -gdn-tile-fuse-rows -cse | FileCheck %s
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile="precision=mixed-io chunk-stages=staged variants='fused-channels:fused=1,staged:' value-heads" | FileCheck %s --check-prefix=NARROW

// NARROW-LABEL: func.func @narrow__intra_chunk(
//   NARROW-NOT: fused

// CHECK-LABEL: func.func @prefill__inter_chunk_fused(
//  CHECK-SAME:   bits = "fused", facts = {chunk = "32",
//  CHECK-SAME:   grid = ["N + 1", "Hv"]
//  CHECK-SAME:   variant = "fused-channels", workspace = []
//       CHECK:   scf.for {{.*}} step %c32 iter_args(%[[S:.+]] = %{{.+}}) -> (vector<128x128xf32>)
//   CHECK-DAG:     %[[K:.+]] = gdn_tile.load %arg6[{{.+}} vector<32x128xbf16>
//   CHECK-DAG:     %[[Q:.+]] = gdn_tile.load %arg5[{{.+}} vector<32x128xbf16>
//   CHECK-DAG:     %[[G:.+]] = gdn_tile.load {{.+}} vector<32x128xf32>
//   CHECK-DAG:     %[[BETA:.+]] = gdn_tile.load {{.+}} vector<32xf32>
//       CHECK:     %[[P:.+]], %[[L:.+]], %[[OF_Q:.+]], %[[OF_K:.+]], %[[TO_END:.+]], %[[END:.+]] = gdn_tile.decay_operands %[[Q]], %[[K]] decay(%[[G]])
//       CHECK:     %[[TRIANGLE:.+]] = gdn_tile.map_rows %[[L]], %[[BETA]]
//       CHECK:     %[[INVERSE:.+]] = gdn_tile.tri_inverse %[[TRIANGLE]]
//       CHECK:     %[[SOLVE:.+]] = gdn_tile.map_rows %[[INVERSE]]
//       CHECK:       arith.mulf %{{.+}}, %[[BETA]] : vector<32xf32>
//       CHECK:     %[[SCORES:.+]] = gdn_tile.map_rows %[[P]]
//       CHECK:     %[[T:.+]] = gdn_tile.transpose %[[SOLVE]]
//       CHECK:     %[[PT:.+]] = gdn_tile.transpose %[[SCORES]]
//       CHECK:     %[[ERROR:.+]] = gdn_tile.map_rows %{{.+}}, %{{.+}} : vector<128x32xbf16>, vector<128x32xf32> -> vector<128x32xf16>
// The state decays beside the product with T.
//       CHECK:     %[[DECAYED:.+]] = gdn_tile.map_rows %[[S]]
//       CHECK:       arith.mulf %{{.+}}, %[[END]] : vector<128xf32>
//       CHECK:     %[[X:.+]] = gdn_tile.matmul %[[ERROR]], %[[T]]
//       CHECK:     %[[WRITTEN:.+]] = gdn_tile.map_rows %[[X]]
//       CHECK:     gdn_tile.matmul %[[WRITTEN]], %[[PT]] acc(
//       CHECK:     gdn_tile.matmul %[[WRITTEN]], %[[TO_END]] acc(%[[DECAYED]]

// CHECK-LABEL: func.func @prefill__inter_chunk_fused_v_split_2(
//  CHECK-SAME:   grid = ["N + 1", "Hv", "2"]
//  CHECK-SAME:   variant = "halves"
//       CHECK:   -> (vector<64x128xf32>)

// CHECK-NOT: variant = "heads"
// CHECK-NOT: variant = "segments"
// CHECK-LABEL: func.func @prefill__intra_chunk(
//  CHECK-SAME:   facts = {chunk = "64",
//  CHECK-SAME:   variant = "staged"
func.func @prefill(
    %q: tensor<?x?x128xbf16> {gdn.name = "q", gdn.dims = ["T", "Hk", "128"]},
    %k: tensor<?x?x128xbf16> {gdn.name = "k", gdn.dims = ["T", "Hk", "128"]},
    %v: tensor<?x?x128xbf16> {gdn.name = "v", gdn.dims = ["T", "Hv", "128"]},
    %g: tensor<?x?x128xf32> {gdn.name = "g", gdn.dims = ["T", "Hv", "128"]},
    %beta: tensor<?x?xf32> {gdn.name = "beta", gdn.dims = ["T", "Hv"]},
    %pool: !gdn.pool<?x?x128x128xf32> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "128", "128"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %cu: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]})
    -> (tensor<?x?x128xbf16> {gdn.name = "core", gdn.dims = ["T", "Hv", "128"]})
    attributes {gdn.entry} {
  %o = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%pool) slots(%slots) sequences(%cu)
      : tensor<?x?x128xbf16>, tensor<?x?x128xbf16>, tensor<?x?x128xbf16>, tensor<?x?x128xf32>,
        tensor<?x?xf32>, !gdn.pool<?x?x128x128xf32>, tensor<?xi32>, tensor<?xi32>
        -> tensor<?x?x128xbf16>
  return %o : tensor<?x?x128xbf16>
}

// Heads of 64 channels have their chunks prepared by a stage.
func.func @narrow(
    %q: tensor<?x?x64xbf16> {gdn.name = "q", gdn.dims = ["T", "Hk", "64"]},
    %k: tensor<?x?x64xbf16> {gdn.name = "k", gdn.dims = ["T", "Hk", "64"]},
    %v: tensor<?x?x128xbf16> {gdn.name = "v", gdn.dims = ["T", "Hv", "128"]},
    %g: tensor<?x?x64xf32> {gdn.name = "g", gdn.dims = ["T", "Hv", "64"]},
    %beta: tensor<?x?xf32> {gdn.name = "beta", gdn.dims = ["T", "Hv"]},
    %pool: !gdn.pool<?x?x128x64xf32> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "128", "64"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %cu: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]})
    -> (tensor<?x?x128xbf16> {gdn.name = "core", gdn.dims = ["T", "Hv", "128"]})
    attributes {gdn.entry} {
  %o = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%pool) slots(%slots) sequences(%cu)
      : tensor<?x?x64xbf16>, tensor<?x?x64xbf16>, tensor<?x?x128xbf16>, tensor<?x?x64xf32>,
        tensor<?x?xf32>, !gdn.pool<?x?x128x64xf32>, tensor<?xi32>, tensor<?xi32>
        -> tensor<?x?x128xbf16>
  return %o : tensor<?x?x128xbf16>
}
