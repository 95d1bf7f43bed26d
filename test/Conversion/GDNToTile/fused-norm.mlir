// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A gated norm in the recurrence of a variant that does its intra-chunk work itself, where the
// kernel and the variant ask for it. The outputs are rounded as they would be on their way to a
// stage of its own, which only the other variant has. The state takes errors that are multiplied by
// what is left of them, and keys as they are.
//
// RUN: gdn-opt %s -gdn-fuse=norm-with-rule -convert-gdn-to-tile="precision=mixed-io chunk-stages=staged variants=fused:fused=2;norm=with-rule,staged: value-heads" -canonicalize -cse -gdn-tile-fuse-rows -cse | FileCheck %s
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile="precision=mixed-io chunk-stages=staged variants=fused:fused=2;norm=with-rule,staged: value-heads" -canonicalize -cse -gdn-tile-fuse-rows -cse | FileCheck %s --check-prefix=APART
// RUN: gdn-opt %s -gdn-fuse=norm-with-rule -convert-gdn-to-tile="precision=mixed-io chunk-stages=staged variants=fused:fused=2;norm=with-rule value-heads" -canonicalize -cse | FileCheck %s --check-prefix=ALONE
// Keys of bf16 would round errors too far.
// RUN: sed 's/x128xf16/x128xbf16/g' %s | gdn-opt -gdn-fuse=norm-with-rule -convert-gdn-to-tile="precision=mixed-io chunk-stages=staged variants=fused:fused=2;norm=with-rule,staged: value-heads" -canonicalize -cse -gdn-tile-fuse-rows -cse | FileCheck %s --check-prefix=APART

// CHECK-LABEL: func.func @prefill__inter_chunk_fused(
//  CHECK-SAME:   bits = "fused-norm"
//       CHECK:   scf.for
//       CHECK:     %[[KEY:.+]] = gdn_tile.load %{{.+}} vector<64x128xf16>
//       CHECK:     %[[X:.+]] = gdn_tile.matmul %{{.+}} : vector<128x64xf16>, vector<64x64xf16>
//       CHECK:     gdn_tile.map_rows %[[X]] : vector<128x64xf32> -> vector<128x64xf16>
//       CHECK:     %[[FADED:.+]] = gdn_tile.map_rows %[[X]] : vector<128x64xf32> -> vector<128x64xf16>
//       CHECK:     %[[O:.+]] = gdn_tile.matmul {{.+}} acc(
//       CHECK:     gdn_tile.matmul %[[FADED]], %[[KEY]] acc(
//       CHECK:     %[[TOKENS:.+]] = gdn_tile.transpose %[[O]]
//       CHECK:     %[[Z:.+]] = gdn_tile.load
//       CHECK:     %[[Y:.+]] = gdn_tile.map_rows %[[TOKENS]], %[[Z]] {{.+}} -> vector<64x128xbf16>
//       CHECK:       arith.truncf
//       CHECK:       vector.reduction
//       CHECK:     gdn_tile.store %[[Y]]
// CHECK-LABEL: func.func @prefill__norm(
//  CHECK-SAME:   variant = "staged"

// APART-LABEL: func.func @prefill__inter_chunk_fused(
//  APART-SAME:   bits = "fused",
//   APART-NOT:   vector.reduction
// APART-LABEL: func.func @prefill__norm(
//  APART-SAME:   variant = ["fused", "staged"]

//   ALONE-NOT: @prefill__norm

// Of two blocks that share a head each has half of a row, and both add up what they know of it.
// RUN: gdn-opt %s -gdn-fuse=norm-with-rule -convert-gdn-to-tile="precision=mixed-io chunk-stages=staged variants=fused-v-split-2:fused=2;v-split=2;norm=with-rule value-heads" -canonicalize -cse -gdn-tile-fuse-rows -cse | FileCheck %s --check-prefix=HALVES
// HALVES-LABEL: func.func @prefill__inter_chunk_fused_v_split_2(
//  HALVES-SAME:   bits = "fused-norm"
//       HALVES:   %[[FIRST:.+]] = arith.muli %{{.+}}, %c64
//       HALVES:   scf.for
//       HALVES:     gdn_tile.matmul {{.+}} acc(
//       HALVES:     %[[Z:.+]] = gdn_tile.load %{{.+}}, %[[FIRST]]] dims [0, 3] {{.+}} vector<64x64xbf16>
//       HALVES:     gdn_tile.load %{{.+}}[%[[FIRST]]] dims [0] : {{.+}}, vector<64xbf16>
// The gate is not merged with what waits for the other block.
//       HALVES:     %[[PART:.+]] = gdn_tile.map_rows %{{.+}} : vector<64x64xbf16> -> vector<64xf32>
//       HALVES:     %[[GATE:.+]] = gdn_tile.map_rows %[[Z]] : vector<64x64xbf16> -> vector<64x64xf32>
//       HALVES:     %[[SUM:.+]] = gdn_tile.sum_of_pair %[[PART]]
//       HALVES:     gdn_tile.map_rows %{{.+}}, %[[GATE]], %[[SUM]] : {{.+}} -> vector<64x64xbf16>

// The same bits with the norm as a stage: keys as they are, and sums in the order of a lane's eight
// values.
// RUN: gdn-opt %s -gdn-fuse=norm-with-rule -convert-gdn-to-tile="precision=mixed-io chunk-stages=staged variants=fused:fused=2;norm=with-rule,fused-v-split-2:fused=2;v-split=2;norm=behind,staged: value-heads" -canonicalize -cse -gdn-tile-fuse-rows -cse | FileCheck %s --check-prefix=BEHIND
// BEHIND-LABEL: func.func @prefill__inter_chunk_fused_v_split_2(
//  BEHIND-SAME:   bits = "fused-norm"
//       BEHIND:   %[[X:.+]] = gdn_tile.matmul %{{.+}} : vector<64x64xf16>, vector<64x64xf16>
//       BEHIND:   gdn_tile.map_rows %[[X]] : vector<64x64xf32> -> vector<64x64xf16>
//       BEHIND:   gdn_tile.map_rows %[[X]] : vector<64x64xf32> -> vector<64x64xf16>
//   BEHIND-NOT:   vector.reduction
// BEHIND-LABEL: func.func @prefill__norm(
//  BEHIND-SAME:   row_values = 8 : i64
//  BEHIND-SAME:   variant = ["fused-v-split-2", "staged"]
//       BEHIND:   vector.reduction

// Where lengths of sequences choose, halves leave the norm to a stage that looks at them, too. It has
// few blocks, which end at once where whole heads are chosen, and else go through pieces.
// RUN: gdn-opt %s -gdn-fuse=norm-with-rule -convert-gdn-to-tile="precision=mixed-io chunk-stages=staged variants=lengths:fused=2;norm=with-rule;by-lengths=165/132,staged: value-heads" -canonicalize -cse -gdn-tile-fuse-rows -cse | FileCheck %s --check-prefix=LENGTHS
// LENGTHS-LABEL: func.func @prefill__inter_chunk_by_lengths_1(
//  LENGTHS-SAME:   bits = "fused-norm"
//       LENGTHS:   vector.reduction
// LENGTHS-LABEL: func.func @prefill__inter_chunk_by_lengths_2(
//  LENGTHS-SAME:   bits = "fused-norm"
//   LENGTHS-NOT:   vector.reduction
// LENGTHS-LABEL: func.func @prefill__norm_by_lengths(
//  LENGTHS-SAME:   grid = ["1848", "1", "2"]
//  LENGTHS-SAME:   row_values = 8 : i64
//  LENGTHS-SAME:   variant = "lengths"
//       LENGTHS:   %[[LIMIT:.+]] = arith.muli %{{.+}}, %c165
//       LENGTHS:   %[[SHARES:.+]] = arith.cmpi ult, %{{.+}}, %[[LIMIT]]
//       LENGTHS:   scf.if %[[SHARES]]
//       LENGTHS:     scf.for %{{.+}} = %{{.+}} to %{{.+}} step %c1848
//       LENGTHS:       vector.reduction
// LENGTHS-LABEL: func.func @prefill__norm(
//  LENGTHS-SAME:   variant = "staged"

// No norm follows where values lie in memory as the rule takes them: no stage would clear signals.
// RUN: gdn-opt %s -gdn-fuse=norm-with-rule -convert-gdn-to-tile="precision=mixed-io chunk-stages=staged variants=fused-v-split-2-followed:fused=2;v-split=2;norm=follows,staged: value-heads" -canonicalize -cse -gdn-tile-fuse-rows -cse | FileCheck %s --check-prefix=READY
// READY-NOT: followed
func.func @prefill(
    %q: tensor<?x?x128xf16> {gdn.name = "q", gdn.dims = ["T", "Hk", "128"]},
    %k: tensor<?x?x128xf16> {gdn.name = "k", gdn.dims = ["T", "Hk", "128"]},
    %v: tensor<?x?x128xf16> {gdn.name = "v", gdn.dims = ["T", "Hv", "128"]},
    %g: tensor<?x?xf32> {gdn.name = "log_decay", gdn.dims = ["T", "Hv"]},
    %beta: tensor<?x?xf32> {gdn.name = "beta", gdn.dims = ["T", "Hv"]},
    %z: tensor<?x?x128xbf16> {gdn.name = "z", gdn.dims = ["T", "Hv", "128"]},
    %w: tensor<128xbf16> {gdn.name = "norm_weight", gdn.dims = ["128"]},
    %cu: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %pool: !gdn.pool<?x?x128x128xf32> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "128", "128"]})
    -> (tensor<?x?x128xbf16> {gdn.name = "out", gdn.dims = ["T", "Hv", "128"]})
    attributes {gdn.entry} {
  %o = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%pool) slots(%slots) sequences(%cu)
      : tensor<?x?x128xf16>, tensor<?x?x128xf16>, tensor<?x?x128xf16>, tensor<?x?xf32>,
        tensor<?x?xf32>, !gdn.pool<?x?x128x128xf32>, tensor<?xi32>, tensor<?xi32>
        -> tensor<?x?x128xf32>
  %y = gdn.gated_rms_norm %o, %z, %w silu
      : tensor<?x?x128xf32>, tensor<?x?x128xbf16>, tensor<128xbf16> -> tensor<?x?x128xbf16>
  %out = gdn.mask_sequences %y of(%pool) slots(%slots) sequences(%cu)
      : tensor<?x?x128xbf16>, !gdn.pool<?x?x128x128xf32>, tensor<?xi32>, tensor<?xi32>
        -> tensor<?x?x128xbf16>
  return %out : tensor<?x?x128xbf16>
}
