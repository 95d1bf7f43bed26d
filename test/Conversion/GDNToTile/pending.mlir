// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pending tokens: what the sequence accepts is folded into the state, which is written
// once; the sequence's tokens go to the places of the previous step's. In either form
// the recurrence goes in blocks of tokens, as many as can be pending.
//
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile -canonicalize -cse | FileCheck %s
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile="chunk-from=1 segments=4" -canonicalize -cse | FileCheck %s
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile=value-heads -canonicalize -cse | FileCheck %s --check-prefix=HEADS
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile=tokens=1 -canonicalize -cse | FileCheck %s --check-prefix=ONE

// CHECK-LABEL: func.func @verify(
//  CHECK-SAME:   %[[S:[a-z0-9]+]]: index {gdn.name = "S"}
//  CHECK-SAME:   %[[CONVS:[a-z0-9]+]]: memref<?x?x?xf16, {{[^{]+}} {gdn.name = "conv_pool"}
//  CHECK-SAME:   %[[STATES:[a-z0-9]+]]: memref<?x?x64x16xbf16, {{[^{]+}} {gdn.name = "state_pool"}
//  CHECK-SAME:   %[[SLOTS:[a-z0-9]+]]: memref<?xi64, strided<[1], offset: ?>> {gdn.name = "slots"}
//  CHECK-SAME:   %[[ACCEPTED:[a-z0-9]+]]: memref<?xi32, strided<[1], offset: ?>> {gdn.name = "num_accepted"}
//  CHECK-SAME:   %[[KEYS:[a-z0-9]+]]: memref<?x?x?x16xf32, {{[^{]+}} {gdn.name = "pending_keys"}
//  CHECK-SAME:   %[[DELTAS:[a-z0-9]+]]: memref<?x?x?x64xf32, {{[^{]+}} {gdn.name = "pending_deltas"}
//  CHECK-SAME:   %[[DECAYS:[a-z0-9]+]]: memref<?x?x?xf32, {{[^{]+}} {gdn.name = "pending_decays"}
//  CHECK-SAME:   grid = ["N + 1", "Hk"]
//   CHECK-NOT:   facts
// A sequence is skipped where its count is none.
//       CHECK:   memref.load %[[ACCEPTED]]
//       CHECK:   %[[COUNT:.+]] = arith.index_cast
//       CHECK:   %[[MOST:.+]] = arith.minui %[[S]], %c8
//       CHECK:   %[[OK:.+]] = arith.cmpi ule, %[[COUNT]], %[[MOST]]
//       CHECK:   memref.load %[[SLOTS]]
//       CHECK:   arith.select %[[OK]], %{{.+}}, %c-1
// Windows begin behind what is accepted.
//       CHECK:   memref.load %[[ACCEPTED]]
//       CHECK:   %[[A:.+]] = arith.index_cast
//       CHECK:   gdn_tile.load %[[CONVS]][%[[SLOT:.+]], %{{.+}}, %[[A]]] dims [2, 1] : {{.*}} vector<3x16xf16>
//       CHECK:   gdn_tile.load %[[CONVS]][%[[SLOT]], %{{.+}}, %[[A]]] dims [2, 1]
//       CHECK:   scf.for %[[R:.+]] = %c0
//       CHECK:     gdn_tile.load %[[CONVS]][%[[SLOT]], %{{.+}}, %[[A]]] dims [2, 1]
//       CHECK:     gdn_tile.load %[[STATES]][%[[SLOT]],
//       CHECK:     %[[K:.+]] = gdn_tile.load %[[KEYS]][%[[SLOT]], {{.*}} dims [2, 3] rows(%[[A]]) : {{.*}} vector<8x16xf32>
//       CHECK:     %[[D:.+]] = gdn_tile.load %[[DELTAS]][%[[SLOT]], {{.*}} dims [2, 3] rows(%[[A]])
//       CHECK:     %[[G:.+]] = gdn_tile.load %[[DECAYS]][%[[SLOT]], {{.*}} dims [2] rows(%[[A]])
// The last value head has seen the keys of them all.
//       CHECK:     %[[LAST:.+]] = arith.cmpi eq, %[[R]],
//       CHECK:     scf.if %[[LAST]] {
//       CHECK:       gdn_tile.store %{{.+}}, %[[CONVS]][%[[SLOT]], %{{.+}}, %c0]
//       CHECK:       gdn_tile.store %{{.+}}, %[[CONVS]][%[[SLOT]], %{{.+}}, %c0]
//       CHECK:     }
//       CHECK:     gdn_tile.store %{{.+}}, %[[CONVS]][%[[SLOT]], %{{.+}}, %c0]
//       CHECK:     %[[M:.+]] = gdn_tile.delta_fold %{{.+}}, %[[K]], %[[D]] decay(%[[G]]) valid(%[[A]])
//       CHECK:     %[[STORED:.+]] = gdn_tile.map_rows %[[M]] : vector<64x16xf32> -> vector<64x16xbf16>
//       CHECK:     %[[SOME:.+]] = arith.cmpi ne, %[[A]], %c0
//       CHECK:     scf.if %[[SOME]] {
//       CHECK:       gdn_tile.store %[[STORED]], %[[STATES]][%[[SLOT]],
//       CHECK:     }
// From there on as the slot holds it.
//       CHECK:     %[[START:.+]] = gdn_tile.map_rows %[[STORED]] : vector<64x16xbf16> -> vector<64x16xf32>
//       CHECK:     scf.for %[[T:[a-z0-9]+]] = %[[BEGIN:[a-z0-9_#]+]] to %{{.+}} step %c8 iter_args({{.*}} = %[[START]])
//       CHECK:       scf.if %[[LAST]] {
//       CHECK:         gdn_tile.store %{{.+}}, %[[CONVS]][%[[SLOT]], %{{.+}}, %{{.+}}] dims [2, 1] rows(
//       CHECK:       gdn_tile.delta_scan {{.*}} deltas
//       CHECK:       gdn_tile.store %deltas{{[_0-9]*}}, %[[DELTAS]][%[[SLOT]], {{.*}} dims [2, 3] rows(%[[ROWS:.+]])
//       CHECK:       gdn_tile.store %{{.+}}, %[[DECAYS]][%[[SLOT]], {{.*}} dims [2] rows(%[[ROWS]])
//       CHECK:       scf.if %[[LAST]] {
//       CHECK:         gdn_tile.store %{{.+}}, %[[KEYS]][%[[SLOT]], {{.*}} dims [2, 3] rows(%[[ROWS]])
//       CHECK:       scf.yield
//   CHECK-NOT:   %[[STATES]][
//   CHECK-NOT: func.func

// A block per value head: who writes what the key head has is settled when all of
// its blocks have read, by one question.
// HEADS-LABEL: func.func @verify(
//  HEADS-SAME:   groups = ["2", "N + 1", "Hk"]
//       HEADS:   rows(%{{.+}}) : {{.*}} vector<8x16xf32>
//       HEADS:   %[[LAST:.+]] = gdn_tile.last_in_group
//   HEADS-NOT:   gdn_tile.last_in_group
//       HEADS:   scf.if %[[LAST]]
//       HEADS:   gdn_tile.delta_fold
//       HEADS:   scf.for {{.*}} step %c8
//       HEADS:     scf.if %[[LAST]]
//       HEADS:     gdn_tile.delta_scan
//       HEADS:     scf.if %[[LAST]]

// ONE-LABEL: func.func @verify(
//       ONE:   gdn_tile.delta_fold {{.*}} vector<8x16xf32>
//       ONE:   scf.for {{.*}} step %c1 iter_args
//       ONE:     gdn_tile.delta_scan {{.*}} vector<1x16xf32>, vector<1x64xf32>, vector<1xf32>, deltas
func.func @verify(
    %S: index {gdn.name = "S"},
    %q: tensor<?x?x16xf16> {gdn.name = "q", gdn.dims = ["T", "Hk", "16"]},
    %k: tensor<?x?x16xf16> {gdn.name = "k", gdn.dims = ["T", "Hk", "16"]},
    %v: tensor<?x?x64xf16> {gdn.name = "v", gdn.dims = ["T", "Hv", "64"]},
    %w: tensor<?x4xf16> {gdn.name = "conv_weight", gdn.dims = ["32*Hk + 64*Hv", "4"]},
    %g: tensor<?x?xf32> {gdn.name = "g", gdn.dims = ["T", "Hv"]},
    %beta: tensor<?x?xf32> {gdn.name = "beta", gdn.dims = ["T", "Hv"]},
    %cp: !gdn.pool<?x?x?xf16> {gdn.name = "conv_pool", gdn.dims = ["P", "32*Hk + 64*Hv", "S + 3"]},
    %pool: !gdn.pool<?x?x64x16xbf16> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "64", "16"]},
    %cu: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]},
    %ids: tensor<?xi64> {gdn.name = "slots", gdn.dims = ["N"]},
    %accepted: tensor<?xi32> {gdn.name = "num_accepted", gdn.dims = ["N"]},
    %keys: !gdn.pool<?x?x?x16xf32> {gdn.name = "pending_keys", gdn.dims = ["P", "Hk", "S", "16"]},
    %deltas: !gdn.pool<?x?x?x64xf32> {gdn.name = "pending_deltas", gdn.dims = ["P", "Hv", "S", "64"]},
    %decays: !gdn.pool<?x?x?xf32> {gdn.name = "pending_decays", gdn.dims = ["P", "Hv", "S"]})
    -> (tensor<?x?x64xf32> {gdn.name = "core", gdn.dims = ["T", "Hv", "64"]})
    attributes {gdn.entry} {
  %slots = gdn.counted_slots %ids[%accepted] up_to(%S) : tensor<?xi64>, tensor<?xi32>
  %c:3 = gdn.conv1d %q, %k, %v weight(%w) silu pool(%cp) slots(%slots) sequences(%cu)
      pending(%accepted)
      : (tensor<?x?x16xf16>, tensor<?x?x16xf16>, tensor<?x?x64xf16>), tensor<?x4xf16>,
        !gdn.pool<?x?x?xf16>, tensor<?xi64>, tensor<?xi32> pending tensor<?xi32>
        -> tensor<?x?x16xf32>, tensor<?x?x16xf32>, tensor<?x?x64xf32>
  %o = gdn.delta_rule %c#0, %c#1, %c#2 gates(%g, %beta) pool(%pool) slots(%slots) sequences(%cu)
      accepted(%accepted) pending(%keys, %deltas, %decays)
      : tensor<?x?x16xf32>, tensor<?x?x16xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>,
        tensor<?x?xf32>, !gdn.pool<?x?x64x16xbf16>, tensor<?xi64>, tensor<?xi32>
        accepted tensor<?xi32> pending !gdn.pool<?x?x?x16xf32>, !gdn.pool<?x?x?x64xf32>, !gdn.pool<?x?x?xf32>
        -> tensor<?x?x64xf32>
  return %o : tensor<?x?x64xf32>
}
