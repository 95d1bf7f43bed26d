// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The convolution of values in the recurrence of a variant that does its intra-chunk work itself,
// where the kernel and the variant ask for it. The loop over chunks carries the window in front of a
// chunk, which begins with the pool's. The prologue of such a variant has queries and keys alone.
//
// RUN: gdn-opt %s -gdn-fuse=conv-with-rule -convert-gdn-to-tile="precision=mixed-io chunk-stages=staged variants=fused:fused=2;conv=with-rule,staged: value-heads" -canonicalize -cse -gdn-tile-fuse-rows -cse | FileCheck %s
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile="precision=mixed-io chunk-stages=staged variants=fused:fused=2;conv=with-rule,staged: value-heads" -canonicalize -cse -gdn-tile-fuse-rows -cse | FileCheck %s --check-prefix=APART
// RUN: gdn-opt %s -gdn-fuse=conv-with-rule -convert-gdn-to-tile="precision=mixed-io chunk-stages=staged variants=halves:fused=2;v-split=2;conv=with-rule value-heads" -canonicalize -cse -gdn-tile-fuse-rows -cse | FileCheck %s --check-prefix=HALVES
// RUN: not gdn-opt %s -gdn-fuse=conv-with-rule -convert-gdn-to-tile="precision=mixed-io chunk-stages=staged variants=first:fused=2;v-split=2,second:fused=2;conv=with-rule value-heads" 2>&1 | FileCheck %s --check-prefix=ORDER

// ORDER: expects variants of prefill with 'conv' ahead of those without, 'by-lengths' first, but got 'second' behind 'first'

// RUN: not gdn-opt %s -gdn-fuse=conv-with-rule -convert-gdn-to-tile="precision=mixed-io chunk-stages=staged variants=second:fused=2;conv=with-rule,first:fused=2;conv=with-rule;by-lengths=165/132 value-heads" 2>&1 | FileCheck %s --check-prefix=AHEAD

// AHEAD: expects variants of prefill with 'conv' ahead of those without, 'by-lengths' first, but got 'first' behind 'second'

// RUN: gdn-opt %s -gdn-fuse=conv-with-rule -convert-gdn-to-tile="precision=mixed-io chunk-stages=staged variants=lengths:fused=2;conv=with-rule;by-lengths=165/132,fused:fused=2;conv=with-rule,staged: value-heads" -canonicalize -cse -gdn-tile-fuse-rows -cse | FileCheck %s --check-prefix=LENGTHS

// Of two recurrences, of whole heads and of halves, the first convolves values, and a stage of few
// blocks, each of which goes through pieces, does so for the other: both ask the lengths.
// LENGTHS-LABEL: func.func @prefill__values_by_lengths(
//  LENGTHS-SAME:   grid = ["1848", "1", "2"]
//  LENGTHS-SAME:   variant = "lengths"
//       LENGTHS:   scf.for {{.+}} -> (index, index, index, index) {
//       LENGTHS:   %[[ISHALF:.+]] = arith.cmpi ult,
//  LENGTHS-NEXT:   scf.if %[[ISHALF]] {
//       LENGTHS:     scf.for %{{.+}} = %{{.+}} to %{{.+}} step %c1848
//       LENGTHS:       gdn_tile.conv1d
// LENGTHS-LABEL: func.func @prefill__prologue_by_lengths(
//  LENGTHS-SAME:   grid = ["T floordiv 64 + N", "Hk + Hk", "2"]
//  LENGTHS-SAME:   variant = "lengths"
// LENGTHS-LABEL: func.func @prefill__prologue_keys(
//  LENGTHS-SAME:   variant = "fused"
// LENGTHS-LABEL: func.func @prefill__prologue(
//  LENGTHS-SAME:   variant = "staged"
// LENGTHS-LABEL: func.func @prefill__inter_chunk_by_lengths_1(
//       LENGTHS:   gdn_tile.conv1d
// LENGTHS-LABEL: func.func @prefill__inter_chunk_by_lengths_2(
//   LENGTHS-NOT:   gdn_tile.conv1d
// LENGTHS-LABEL: func.func @prefill__inter_chunk_fused(

// CHECK-LABEL: func.func @prefill__prologue_keys(
//  CHECK-SAME:   grid = ["T floordiv 64 + N", "Hk + Hk", "2"]
//  CHECK-SAME:   variant = "fused"
//  CHECK-SAME:   workspace = {{\[\[}}"T floordiv 64 + N", "Hk", "64", "128", "2"], ["T floordiv 64 + N", "Hk", "64", "128", "2"]]
// CHECK-LABEL: func.func @prefill__prologue(
//  CHECK-SAME:   grid = ["T floordiv 64 + N", "Hv + Hk + Hk", "2"]
//  CHECK-SAME:   variant = "staged"
// CHECK-LABEL: func.func @prefill__inter_chunk_fused(
//       CHECK:   %[[WEIGHT:.+]] = gdn_tile.load %{{.+}} dims [1, 0] {{.+}}, vector<4x128xbf16>
//       CHECK:   %[[WEIGHTS:.+]] = gdn_tile.map_rows %[[WEIGHT]]
//       CHECK:   %[[POOL:.+]] = gdn_tile.load %{{.+}} dims [2, 1] {{.+}}, vector<3x128xbf16>
//       CHECK:   %[[FIRST:.+]] = gdn_tile.map_rows %[[POOL]]
//       CHECK:   scf.for {{.+}} iter_args(%{{.+}} = %{{.+}}, %[[WINDOW:.+]] = %[[FIRST]])
//       CHECK:     %[[IN:.+]] = gdn_tile.load %{{.+}} dims [0, 3] rows({{.+}}) {{.+}}, vector<64x128xbf16>
//       CHECK:     %[[WIDE:.+]] = gdn_tile.map_rows %[[IN]]
//       CHECK:     %[[SUMS:.+]], %[[NEXT:.+]] = gdn_tile.conv1d %[[WIDE]], %[[WINDOW]], %[[WEIGHTS]] valid(%c64)
//       CHECK:     %[[VALUES:.+]] = gdn_tile.map_rows %[[SUMS]] : vector<64x128xf32> -> vector<64x128xf16>
//       CHECK:       math.exp %{{.+}} fastmath<afn>
//       CHECK:       arith.truncf
//       CHECK:     gdn_tile.transpose %[[VALUES]]
//       CHECK:     scf.yield %{{.+}}, %[[NEXT]]

// APART-NOT: @prefill__prologue_keys
// APART-LABEL: func.func @prefill__prologue(
//  APART-SAME:   variant = ["fused", "staged"]
// APART-LABEL: func.func @prefill__inter_chunk_fused(
//   APART-NOT:   gdn_tile.conv1d
// APART-LABEL: func.func @prefill__intra_chunk(

// Each block of a V-split has the channels of its values, and writes their window.
// HALVES-LABEL: func.func @prefill__inter_chunk_fused_v_split_2(
//       HALVES:   %[[PART:.+]] = gdn_tile.block_id 2
//       HALVES:   %[[VALUE:.+]] = arith.muli %[[PART]], %c64
//       HALVES:   scf.if
//       HALVES:   %[[CHANNEL:.+]] = arith.addi %{{.+}}, %[[VALUE]]
//       HALVES:   gdn_tile.load %{{.+}}[%[[CHANNEL]], %c0] dims [1, 0] {{.+}}, vector<4x64xbf16>
//       HALVES:   gdn_tile.load %{{.+}}[%{{.+}}, %[[CHANNEL]], %c0] dims [2, 1] {{.+}}, vector<3x64xbf16>
//       HALVES:   gdn_tile.conv1d
//       HALVES:   gdn_tile.store %{{.+}}, %{{.+}}[%{{.+}}, %[[CHANNEL]], %{{.+}}] dims [2, 1] rows({{.+}}) : vector<3x64xbf16>
func.func @prefill(
    %Hk: index {gdn.name = "Hk"}, %Hv: index {gdn.name = "Hv"},
    %qkv: tensor<?x?xbf16> {gdn.name = "qkv", gdn.dims = ["T", "256*Hk + 128*Hv"]},
    %g: tensor<?x?xf32> {gdn.name = "log_decay", gdn.dims = ["T", "Hv"]},
    %beta: tensor<?x?xf32> {gdn.name = "beta", gdn.dims = ["T", "Hv"]},
    %w: tensor<?x4xbf16> {gdn.name = "conv_weight", gdn.dims = ["256*Hk + 128*Hv", "4"]},
    %cu: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %windows: !gdn.pool<?x?x3xbf16> {gdn.name = "conv_pool", gdn.dims = ["P", "256*Hk + 128*Hv", "3"]},
    %states: !gdn.pool<?x?x128x128xf32> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "128", "128"]})
    -> (tensor<?x?x128xbf16> {gdn.name = "out", gdn.dims = ["T", "Hv", "128"]})
    attributes {gdn.entry} {
  %parts:3 = gdn.unpack "qkv" flat %qkv heads(%Hk, %Hv)
      : tensor<?x?xbf16> -> tensor<?x?x128xbf16>, tensor<?x?x128xbf16>, tensor<?x?x128xbf16>
  %conv:3 = gdn.conv1d %parts#0, %parts#1, %parts#2 weight(%w) silu pool(%windows) slots(%slots)
      sequences(%cu)
      : (tensor<?x?x128xbf16>, tensor<?x?x128xbf16>, tensor<?x?x128xbf16>), tensor<?x4xbf16>,
        !gdn.pool<?x?x3xbf16>, tensor<?xi32>, tensor<?xi32>
        -> tensor<?x?x128xf32>, tensor<?x?x128xf32>, tensor<?x?x128xf32>
  %q = gdn.l2norm %conv#0 : tensor<?x?x128xf32> -> tensor<?x?x128xf32>
  %k = gdn.l2norm %conv#1 : tensor<?x?x128xf32> -> tensor<?x?x128xf32>
  %o = gdn.delta_rule %q, %k, %conv#2 gates(%g, %beta) pool(%states) slots(%slots) sequences(%cu)
      : tensor<?x?x128xf32>, tensor<?x?x128xf32>, tensor<?x?x128xf32>, tensor<?x?xf32>,
        tensor<?x?xf32>, !gdn.pool<?x?x128x128xf32>, tensor<?xi32>, tensor<?xi32>
        -> tensor<?x?x128xbf16>
  return %o : tensor<?x?x128xbf16>
}
