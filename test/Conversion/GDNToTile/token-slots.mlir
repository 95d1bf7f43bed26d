// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// States after every token: the slot to read is that of the last accepted token,
// the sequence is computed token by token, in either form of the recurrence, and every
// carried tile is written on the way, none behind the last token.
//
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile -canonicalize -cse | FileCheck %s
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile="chunk-from=1 segments=4" -canonicalize -cse | FileCheck %s
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile=value-heads -canonicalize -cse | FileCheck %s --check-prefix=HEADS

// CHECK-LABEL: func.func @verify(
//  CHECK-SAME:   %[[CONVS:[a-z0-9]+]]: memref<?x?x3xf16, {{[^{]+}} {gdn.name = "conv_pool"}
//  CHECK-SAME:   %[[STATES:[a-z0-9]+]]: memref<?x?x64x16xbf16, {{[^{]+}} {gdn.name = "state_pool"}
//  CHECK-SAME:   %[[TABLE:[a-z0-9]+]]: memref<?x?xi64, strided<[?, 1], offset: ?>> {gdn.name = "token_slots"}
//  CHECK-SAME:   %[[ACCEPTED:[a-z0-9]+]]: memref<?xi32, strided<[1], offset: ?>> {gdn.name = "num_accepted"}
//  CHECK-SAME:   grid = ["N + 1", "Hk"]
//       CHECK:   %[[N:.+]] = gdn_tile.block_id 0
// A count below 1 is past every end.
//       CHECK:   memref.load %[[ACCEPTED]][%[[N]]]
//       CHECK:   %[[COUNT:.+]] = arith.index_cast
//       CHECK:   %[[AT:.+]] = arith.subi %[[COUNT]], %c1
//       CHECK:   %[[S:.+]] = memref.dim %[[TABLE]], %c1
//       CHECK:   %[[OK:.+]] = arith.cmpi ult, %[[AT]], %[[S]]
//       CHECK:   scf.if %[[OK]] -> (index) {
//       CHECK:     memref.load %[[TABLE]][%[[N]], %[[AT]]]
//       CHECK:   } else {
//       CHECK:     scf.yield %c-1
//       CHECK:   scf.for %[[R:.+]] = %c0
//       CHECK:     %[[IS0:.+]] = arith.cmpi eq, %[[R]], %c0
//       CHECK:     %{{.+}}:4 = scf.for %[[T:[a-z0-9]+]] = %[[BEGIN:[a-z0-9_#]+]] to %{{.+}} step %c1 iter_args(
//       CHECK:       %[[NEXT:.+]], %{{.+}} = gdn_tile.delta_scan
//       CHECK:       %[[I:.+]] = arith.subi %[[T]], %[[BEGIN]]
//       CHECK:       %[[INSIDE:.+]] = arith.cmpi ult, %[[I]],
//       CHECK:       %[[TO:.+]] = scf.if %[[INSIDE]] -> (index) {
//       CHECK:         memref.load %[[TABLE]][%[[N]], %[[I]]]
// Windows of q and k once per key head, v and the state for each value head.
//       CHECK:       arith.andi %{{.+}}, %[[IS0]]
//       CHECK:       scf.if
//       CHECK:         gdn_tile.store %{{.+}}, %[[CONVS]][%[[TO]],
//       CHECK:       scf.if
//       CHECK:         gdn_tile.store %{{.+}}, %[[CONVS]][%[[TO]],
//       CHECK:       scf.if
//       CHECK:         gdn_tile.store %{{.+}}, %[[CONVS]][%[[TO]],
//       CHECK:       scf.if
//       CHECK:         %[[ROUNDED:.+]] = gdn_tile.map_rows %[[NEXT]] : vector<64x16xf32> -> vector<64x16xbf16>
//       CHECK:         gdn_tile.store %[[ROUNDED]], %[[STATES]][%[[TO]],
//       CHECK:       scf.yield
//   CHECK-NOT:   gdn_tile.store %{{.+}}, %[[CONVS]]
//   CHECK-NOT:   gdn_tile.store %{{.+}}, %[[STATES]]
//   CHECK-NOT: func.func

// A block per value head: who writes the windows of q and k is settled before
// the first write, when all blocks of the key head have read them.
// HEADS-LABEL: func.func @verify(
//  HEADS-SAME:   groups = ["2", "N + 1", "Hk"]
//       HEADS:   %[[Q:.+]] = gdn_tile.last_in_group
//       HEADS:   %[[K:.+]] = gdn_tile.last_in_group
//       HEADS:   scf.for {{.*}} step %c1
//       HEADS:     gdn_tile.delta_scan
//       HEADS:     arith.andi %{{.+}}, %[[Q]]
//       HEADS:     arith.andi %{{.+}}, %[[K]]
//   HEADS-NOT:   gdn_tile.last_in_group
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
    %accepted: tensor<?xi32> {gdn.name = "num_accepted", gdn.dims = ["N"]})
    -> (tensor<?x?x64xf32> {gdn.name = "core", gdn.dims = ["T", "Hv", "64"]})
    attributes {gdn.entry} {
  %slots = gdn.accepted_slots %table[%accepted] : tensor<?x?xi64>, tensor<?xi32> -> tensor<?xi64>
  %c:3 = gdn.conv1d %q, %k, %v weight(%w) silu pool(%cp) slots(%slots) sequences(%cu)
      token_slots(%table)
      : (tensor<?x?x16xf16>, tensor<?x?x16xf16>, tensor<?x?x64xf16>), tensor<?x4xf16>,
        !gdn.pool<?x?x3xf16>, tensor<?xi64>, tensor<?xi32> token_slots tensor<?x?xi64>
        -> tensor<?x?x16xf32>, tensor<?x?x16xf32>, tensor<?x?x64xf32>
  %o = gdn.delta_rule %c#0, %c#1, %c#2 gates(%g, %beta) pool(%pool) slots(%slots) sequences(%cu)
      token_slots(%table)
      : tensor<?x?x16xf32>, tensor<?x?x16xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>,
        tensor<?x?xf32>, !gdn.pool<?x?x64x16xbf16>, tensor<?xi64>, tensor<?xi32>
        token_slots tensor<?x?xi64> -> tensor<?x?x64xf32>
  return %o : tensor<?x?x64xf32>
}
