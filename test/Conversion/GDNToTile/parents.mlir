// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A tree of tokens: nothing is carried from token to token. The state comes
// from the slot of the token's parent, the windows from the inputs of its
// ancestors.
//
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile -canonicalize -cse | FileCheck %s

// CHECK-LABEL: func.func @verify(
//  CHECK-SAME:   %[[K:[a-z0-9]+]]: memref<?x?x16xf16, {{[^{]+}} {gdn.name = "k"}
//  CHECK-SAME:   %[[STATES:[a-z0-9]+]]: memref<?x?x64x16xbf16, {{[^{]+}} {gdn.name = "state_pool"}
//  CHECK-SAME:   %[[TABLE:[a-z0-9]+]]: memref<?x?xi64, strided<[?, 1], offset: ?>> {gdn.name = "token_slots"}
//  CHECK-SAME:   %[[PARENTS:[a-z0-9]+]]: memref<?x?xi32, strided<[?, 1], offset: ?>> {gdn.name = "parents"}
//       CHECK:   %[[N:.+]] = gdn_tile.block_id 0
//       CHECK:   scf.for
//       CHECK:   scf.for %[[T:[a-z0-9]+]] = %[[BEGIN:[a-z0-9_#]+]] to %{{.+}} step %c1 {
//       CHECK:     %[[AT:.+]] = arith.subi %[[T]], %[[BEGIN]]
// A parent lies before its token, and its state is kept.
//       CHECK:     %[[P1:.+]] = scf.if %{{.+}} -> (index) {
//       CHECK:       memref.load %[[PARENTS]][%[[N]], %[[AT]]]
//       CHECK:       %[[RAW:.+]] = arith.index_cast
//       CHECK:       %[[BEFORE:.+]] = arith.cmpi ult, %[[RAW]], %[[AT]]
//       CHECK:       scf.if %[[BEFORE]] -> (index) {
//       CHECK:         memref.load %[[TABLE]][%[[N]], %[[RAW]]]
//       CHECK:         arith.select %{{.+}}, %[[RAW]], %c-1
//       CHECK:     memref.load %[[PARENTS]][%[[N]], %[[P1]]]
//       CHECK:     memref.load %[[PARENTS]]
// Three ancestors, each a token or none, the oldest first.
//       CHECK:     gdn_tile.conv1d
//       CHECK:     gdn_tile.conv1d
//       CHECK:     %[[IS:.+]] = arith.cmpi sge, %[[P1]], %c0
//       CHECK:     %[[COUNT:.+]] = arith.index_castui %[[IS]]
//       CHECK:     arith.maxsi %[[P1]], %c0
//       CHECK:     gdn_tile.load {{.*}} rows(%[[COUNT]])
//       CHECK:     %{{.+}}, %[[WINDOW:.+]] = gdn_tile.conv1d {{.*}} valid(%[[COUNT]])
// The sequence's state, or zeros, where there is no parent.
//       CHECK:     %[[ROOT:.+]] = arith.cmpi slt, %{{.+}}, %c0
//       CHECK:     %[[FROM:.+]] = scf.if %[[ROOT]] -> (index) {
//       CHECK:     } else {
//       CHECK:       memref.load %[[TABLE]]
//       CHECK:     %[[ROWS:.+]] = arith.select %[[ROOT]], %{{.+}}, %c64
//       CHECK:     gdn_tile.load %[[STATES]][%[[FROM]], {{.*}} rows(%[[ROWS]])
//       CHECK:     %[[NEXT:.+]], %{{.+}} = gdn_tile.delta_scan
//       CHECK:     %[[ROUNDED:.+]] = gdn_tile.map_rows %[[NEXT]]
//       CHECK:     gdn_tile.store %[[ROUNDED]], %[[STATES]]
//   CHECK-NOT:   gdn_tile.store %{{.+}}, %[[STATES]]
func.func @verify(
    %q: tensor<?x?x16xf16> {gdn.name = "q", gdn.dims = ["T", "Hk", "16"]},
    %k: tensor<?x?x16xf16> {gdn.name = "k", gdn.dims = ["T", "Hk", "16"]},
    %v: tensor<?x?x64xf16> {gdn.name = "v", gdn.dims = ["T", "Hv", "64"]},
    %w: tensor<?x4xf16> {gdn.name = "conv_weight", gdn.dims = ["32*Hk + 64*Hv", "4"]},
    %g: tensor<?x?xf32> {gdn.name = "g", gdn.dims = ["T", "Hv"]},
    %beta: tensor<?x?xf32> {gdn.name = "beta", gdn.dims = ["T", "Hv"]},
    %cp: !gdn.pool<?x?x3xf16> {gdn.name = "conv_pool", gdn.dims = ["P", "32*Hk + 64*Hv", "3"]},
    %pool: !gdn.pool<?x?x64x16xbf16> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "64", "16"]},
    %cu: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]},
    %table: tensor<?x?xi64> {gdn.name = "token_slots", gdn.dims = ["N", "S"]},
    %slots: tensor<?xi64> {gdn.name = "slots", gdn.dims = ["N"]},
    %initial: tensor<?xi1> {gdn.name = "has_initial", gdn.dims = ["N"]},
    %parents: tensor<?x?xi32> {gdn.name = "parents", gdn.dims = ["N", "S"]})
    -> (tensor<?x?x64xf32> {gdn.name = "core", gdn.dims = ["T", "Hv", "64"]})
    attributes {gdn.entry} {
  %c:3 = gdn.conv1d %q, %k, %v weight(%w) silu pool(%cp) slots(%slots) sequences(%cu) initial(%initial)
      token_slots(%table) parents(%parents)
      : (tensor<?x?x16xf16>, tensor<?x?x16xf16>, tensor<?x?x64xf16>), tensor<?x4xf16>,
        !gdn.pool<?x?x3xf16>, tensor<?xi64>, tensor<?xi32> initial tensor<?xi1>
        token_slots tensor<?x?xi64> parents tensor<?x?xi32>
        -> tensor<?x?x16xf32>, tensor<?x?x16xf32>, tensor<?x?x64xf32>
  %o = gdn.delta_rule %c#0, %c#1, %c#2 gates(%g, %beta) pool(%pool) slots(%slots) sequences(%cu) initial(%initial)
      token_slots(%table) parents(%parents)
      : tensor<?x?x16xf32>, tensor<?x?x16xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>,
        tensor<?x?xf32>, !gdn.pool<?x?x64x16xbf16>, tensor<?xi64>, tensor<?xi32> initial tensor<?xi1>
        token_slots tensor<?x?xi64> parents tensor<?x?xi32> -> tensor<?x?x64xf32>
  return %o : tensor<?x?x64xf32>
}
