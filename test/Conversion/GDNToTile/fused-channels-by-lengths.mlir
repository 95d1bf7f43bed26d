// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// With a decay per channel, stages or blocks that prepare their chunks, as lengths of sequences say: where
// the longest has no more than a part of all tokens of all heads. Stages of both look at the sequence bounds,
// and the blocks of one form end.
//
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile="precision=mixed-io chunk-stages=staged variants='either:fused=1;by-lengths=5000/132;when=2<=sequences,staged:' value-heads" -canonicalize -cse | FileCheck %s

// CHECK-LABEL: func.func @prefill__intra_chunk_by_lengths(
//  CHECK-SAME:   bits = "either", conditions = {{\[\[}}["2"], ["N"]]], facts = {chunk = "64",
//  CHECK-SAME:   grid = ["T floordiv 64 + N", "Hv"]
//       CHECK:   %[[ALL:.+]]:4 = scf.for %{{.+}} = %c0 to %{{.+}} step %c1
//   CHECK-DAG:   %[[LONGEST:.+]] = arith.muli %[[ALL]]#1, %c5000
//   CHECK-DAG:   %[[HEADS:.+]] = arith.muli %{{.+}}, %[[ALL]]#2
//   CHECK-DAG:   %[[TOKENS:.+]] = arith.muli %[[HEADS]], %c100
//       CHECK:   %[[STAGES:.+]] = arith.cmpi ugt, %[[LONGEST]], %[[TOKENS]]
//       CHECK:   scf.if %[[STAGES]] {
//       CHECK:     gdn_tile.decay_operands {{.+}} : vector<64x128xbf16>

// CHECK-LABEL: func.func @prefill__inter_chunk_by_lengths_2(
//  CHECK-SAME:   grid = ["N + 1", "Hv", "2"]
//   CHECK-NOT:   overlaps
//       CHECK:   muli %{{.+}}, %c5000
//       CHECK:   %[[STAGES:.+]] = arith.cmpi ugt
//       CHECK:   arith.andi %{{.+}}, %[[STAGES]]
//       CHECK:   -> (vector<64x128xf32>)

// CHECK-LABEL: func.func @prefill__inter_chunk_by_lengths_1(
//  CHECK-SAME:   bits = "either", conditions = {{.+}} facts = {chunk = "32",
//  CHECK-SAME:   grid = ["N + 1", "Hv"]
//       CHECK:   muli %{{.+}}, %c5000
//       CHECK:   %[[BLOCKS:.+]] = arith.cmpi ule
//       CHECK:   %[[LIVE:.+]] = arith.andi %{{.+}}, %[[BLOCKS]]
//       CHECK:   scf.if %[[LIVE]]
//       CHECK:     gdn_tile.decay_operands {{.+}} : vector<32x128xbf16>

// CHECK-LABEL: func.func @prefill__intra_chunk(
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
