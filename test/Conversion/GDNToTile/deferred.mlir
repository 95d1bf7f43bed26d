// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tokens that are pending over several steps, token by token: the count of the
// key head, the state without them, the branch that writes it, and the last
// value head that writes keys and count.
//
// RUN: gdn-opt %s -convert-gdn-to-tile | FileCheck %s

// CHECK-LABEL: func.func @decode(
//  CHECK-SAME:   grid = ["N", "Hk"]
//       CHECK:   scf.if %{{.+}} {
//       CHECK:     memref.load %{{.+}}[%[[SLOT:.+]], %[[H:.+]]] : memref<?x?xi32, strided<[?, ?], offset: ?>>
//       CHECK:     %[[M:.+]] = arith.minui
//       CHECK:     %[[FULL:.+]] = arith.cmpi ugt
//       CHECK:     %[[FIRST:.+]] = arith.select %[[FULL]], %{{.+}}, %[[M]]
//       CHECK:     scf.for %{{.+}} {
//       CHECK:       %[[LAST:.+]] = arith.cmpi eq
//       CHECK:       %[[PK:.+]] = gdn_tile.load {{.*}} rows(%[[M]]) : {{.*}} vector<16x32xf32>
//       CHECK:       %[[PD:.+]] = gdn_tile.load {{.*}} rows(%[[M]]) : {{.*}} vector<16x64xf32>
//       CHECK:       %[[PG:.+]] = gdn_tile.load {{.*}} rows(%[[M]]) : {{.*}} vector<16xf32>
//       CHECK:       %[[STATE:.+]] = gdn_tile.load {{.*}} vector<64x32xbf16>
//       CHECK:       %[[NEW:.+]], %[[OUT:.+]], %[[DELTAS:.+]] = gdn_tile.delta_replay %[[STATE]] pending(%[[PK]], %[[PD]], %[[PG]]) count(%[[M]]) commit(%[[FULL]])
//       CHECK:       scf.if %[[FULL]] {
//  CHECK-NEXT:         gdn_tile.store %[[NEW]]
//       CHECK:       arith.addi %{{.+}}, %[[FIRST]]
//       CHECK:       gdn_tile.store %[[DELTAS]]
//       CHECK:       scf.if %[[LAST]] {
//       CHECK:         gdn_tile.store {{.*}} : vector<1x32xf32>, memref<?x?x16x32xf32
//       CHECK:         arith.addi %[[FIRST]]
//       CHECK:         memref.store %{{.+}}, %{{.+}}[%[[SLOT]], %[[H]]] : memref<?x?xi32
//       CHECK:       gdn_tile.store %[[OUT]]
func.func @decode(
    %q: tensor<?x?x32xf32> {gdn.name = "q", gdn.dims = ["N", "Hk", "32"]},
    %k: tensor<?x?x32xf32> {gdn.name = "k", gdn.dims = ["N", "Hk", "32"]},
    %v: tensor<?x?x64xf32> {gdn.name = "v", gdn.dims = ["N", "Hv", "64"]},
    %g: tensor<?x?xf32> {gdn.name = "g", gdn.dims = ["N", "Hv"]},
    %b: tensor<?x?xf32> {gdn.name = "b", gdn.dims = ["N", "Hv"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %pool: !gdn.pool<?x?x64x32xbf16> {gdn.name = "pool", gdn.dims = ["P", "Hv", "64", "32"]},
    %keys: !gdn.pool<?x?x16x32xf32> {gdn.name = "keys", gdn.dims = ["P", "Hk", "16", "32"]},
    %deltas: !gdn.pool<?x?x16x64xf32> {gdn.name = "deltas", gdn.dims = ["P", "Hv", "16", "64"]},
    %decays: !gdn.pool<?x?x16xf32> {gdn.name = "decays", gdn.dims = ["P", "Hv", "16"]},
    %counts: !gdn.pool<?x?xi32> {gdn.name = "counts", gdn.dims = ["P", "Hk"]})
    -> (tensor<?x?x64xf32> {gdn.name = "y", gdn.dims = ["N", "Hv", "64"]})
    attributes {gdn.entry} {
  %o = gdn.kernel "k" {
    %y = gdn.delta_rule %q, %k, %v gates(%g, %b) pool(%pool) slots(%slots)
        pending(%keys, %deltas, %decays) counts(%counts)
        : tensor<?x?x32xf32>, tensor<?x?x32xf32>, tensor<?x?x64xf32>,
          tensor<?x?xf32>, tensor<?x?xf32>, !gdn.pool<?x?x64x32xbf16>,
          tensor<?xi32> pending !gdn.pool<?x?x16x32xf32>, !gdn.pool<?x?x16x64xf32>,
          !gdn.pool<?x?x16xf32> counts !gdn.pool<?x?xi32> -> tensor<?x?x64xf32>
    gdn.yield %y : tensor<?x?x64xf32>
  } : tensor<?x?x64xf32>
  return %o : tensor<?x?x64xf32>
}


// All value heads of a key head, and its count.
// CHECK-LABEL: func.func @commit(
//  CHECK-SAME:   grid = ["N", "Hk"]
//       CHECK:   scf.if %{{.+}} {
//       CHECK:     memref.load %{{.+}}[%[[SLOT:.+]], %[[H:.+]]] : memref<?x?xi32
//       CHECK:     %[[M:.+]] = arith.minui
//       CHECK:     scf.for %{{.+}} {
//       CHECK:       gdn_tile.delta_fold {{.*}} valid(%[[M]])
//       CHECK:       gdn_tile.store
//       CHECK:     }
//       CHECK:     %[[NONE:.+]] = arith.constant 0 : i32
//       CHECK:     memref.store %[[NONE]], %{{.+}}[%[[SLOT]], %[[H]]] : memref<?x?xi32
func.func @commit(
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %pool: !gdn.pool<?x?x64x32xf32> {gdn.name = "pool", gdn.dims = ["P", "Hv", "64", "32"]},
    %keys: !gdn.pool<?x?x16x32xf32> {gdn.name = "keys", gdn.dims = ["P", "Hk", "16", "32"]},
    %deltas: !gdn.pool<?x?x16x64xf32> {gdn.name = "deltas", gdn.dims = ["P", "Hv", "16", "64"]},
    %decays: !gdn.pool<?x?x16xf32> {gdn.name = "decays", gdn.dims = ["P", "Hv", "16"]},
    %counts: !gdn.pool<?x?xi32> {gdn.name = "counts", gdn.dims = ["P", "Hk"]})
    attributes {gdn.entry} {
  gdn.kernel "k" {
    gdn.commit_delta_rule %pool[%slots] pending(%keys, %deltas, %decays) counts(%counts)
        : !gdn.pool<?x?x64x32xf32>, tensor<?xi32> pending !gdn.pool<?x?x16x32xf32>,
          !gdn.pool<?x?x16x64xf32>, !gdn.pool<?x?x16xf32> counts !gdn.pool<?x?xi32>
  }
  return
}

// Drafts: the count stays what it was, the state with all that is pending goes
// from token to token.
// CHECK-LABEL: func.func @verify(
//       CHECK:   scf.if %{{.+}} {
//       CHECK:     %[[OLD:.+]] = memref.load %{{.+}}[%[[SLOT:.+]], %[[H:.+]]] : memref<?x?xi32
//       CHECK:     %[[M:.+]] = arith.minui
//       CHECK:     %[[FULL:.+]] = arith.cmpi ugt
//       CHECK:     %[[FIRST:.+]] = arith.select %[[FULL]], %{{.+}}, %[[M]]
//       CHECK:     scf.for %{{.+}} {
//       CHECK:       %[[LAST:.+]] = arith.cmpi eq
//       CHECK:       %[[NEW:.+]], %[[WHOLE:.+]] = gdn_tile.delta_catch_up %{{.+}} count(%[[M]]) commit(%[[FULL]])
//       CHECK:       scf.if %[[FULL]] {
//  CHECK-NEXT:         gdn_tile.store %[[NEW]]
//       CHECK:       scf.if %[[LAST]] {
//       CHECK:         %[[STORED:.+]] = arith.index_cast %[[FIRST]]
//       CHECK:         memref.store %[[STORED]], %{{.+}}[%[[SLOT]], %[[H]]] : memref<?x?xi32
//       CHECK:       scf.for {{.*}} iter_args(%[[STATE:.+]] = %[[WHOLE]])
//       CHECK:         %{{.+}}, %{{.+}}, %[[DELTAS:.+]] = gdn_tile.delta_scan %[[STATE]]
//       CHECK:         arith.addi %{{.+}}, %[[FIRST]]
//       CHECK:         gdn_tile.store %[[DELTAS]]
//       CHECK:         scf.if %[[LAST]] {
//       CHECK:           gdn_tile.store {{.*}} memref<?x?x16x32xf32
//   CHECK-NOT:           memref.store
func.func @verify(
    %q: tensor<?x?x32xf32> {gdn.name = "q", gdn.dims = ["T", "Hk", "32"]},
    %k: tensor<?x?x32xf32> {gdn.name = "k", gdn.dims = ["T", "Hk", "32"]},
    %v: tensor<?x?x64xf32> {gdn.name = "v", gdn.dims = ["T", "Hv", "64"]},
    %g: tensor<?x?xf32> {gdn.name = "g", gdn.dims = ["T", "Hv"]},
    %b: tensor<?x?xf32> {gdn.name = "b", gdn.dims = ["T", "Hv"]},
    %cu: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %accepted: tensor<?xi32> {gdn.name = "num_accepted", gdn.dims = ["N"]},
    %pool: !gdn.pool<?x?x64x32xbf16> {gdn.name = "pool", gdn.dims = ["P", "Hv", "64", "32"]},
    %keys: !gdn.pool<?x?x16x32xf32> {gdn.name = "keys", gdn.dims = ["P", "Hk", "16", "32"]},
    %deltas: !gdn.pool<?x?x16x64xf32> {gdn.name = "deltas", gdn.dims = ["P", "Hv", "16", "64"]},
    %decays: !gdn.pool<?x?x16xf32> {gdn.name = "decays", gdn.dims = ["P", "Hv", "16"]},
    %counts: !gdn.pool<?x?xi32> {gdn.name = "counts", gdn.dims = ["P", "Hk"]})
    -> (tensor<?x?x64xf32> {gdn.name = "y", gdn.dims = ["T", "Hv", "64"]})
    attributes {gdn.entry} {
  %S = arith.constant 4 : index
  %rows = gdn.counted_slots %slots[%accepted] up_to(%S) sequences(%cu) max_tokens(8)
      : tensor<?xi32>, tensor<?xi32>, tensor<?xi32>
  %o = gdn.kernel "k" {
    %y = gdn.delta_rule %q, %k, %v gates(%g, %b) pool(%pool) slots(%rows) sequences(%cu)
        accepted(%accepted) pending(%keys, %deltas, %decays) counts(%counts)
        : tensor<?x?x32xf32>, tensor<?x?x32xf32>, tensor<?x?x64xf32>,
          tensor<?x?xf32>, tensor<?x?xf32>, !gdn.pool<?x?x64x32xbf16>,
          tensor<?xi32>, tensor<?xi32> accepted tensor<?xi32>
          pending !gdn.pool<?x?x16x32xf32>, !gdn.pool<?x?x16x64xf32>,
          !gdn.pool<?x?x16xf32> counts !gdn.pool<?x?xi32> -> tensor<?x?x64xf32>
    gdn.yield %y : tensor<?x?x64xf32>
  } : tensor<?x?x64xf32>
  return %o : tensor<?x?x64xf32>
}

// Keys and deltas in f16: they are widened as they are loaded, deltas times their scales; and a
// delta is rounded with the power of two of its largest element.
// CHECK-LABEL: func.func @narrow(
//       CHECK:       %[[PK:.+]] = gdn_tile.load {{.*}} rows(%[[M:.+]]) : {{.*}} vector<16x32xf16>
//       CHECK:       %[[KEYS:.+]] = gdn_tile.map_rows %[[PK]] : vector<16x32xf16> -> vector<16x32xf32>
//       CHECK:         arith.extf
//       CHECK:       %[[PD:.+]] = gdn_tile.load {{.*}} rows(%[[M]]) : {{.*}} vector<16x64xf16>
//       CHECK:       %[[PS:.+]] = gdn_tile.load {{.*}} rows(%[[M]]) : {{.*}} vector<16xf32>
//       CHECK:       %[[SCALED:.+]] = gdn_tile.map_rows %[[PD]], %[[PS]] : vector<16x64xf16>, vector<16xf32> -> vector<16x64xf32>
//       CHECK:         %[[WIDE:.+]] = arith.extf
//       CHECK:         %[[SCALE:.+]] = vector.broadcast
//       CHECK:         arith.mulf %[[WIDE]], %[[SCALE]]
//       CHECK:       %{{.+}}, %{{.+}}, %[[DELTAS:.+]] = gdn_tile.delta_replay %{{.+}} pending(%[[KEYS]], %[[SCALED]], %{{.+}}) count(%[[M]])
//       CHECK:       %[[MADE:.+]]:2 = gdn_tile.map_rows %[[DELTAS]] : vector<1x64xf32> -> vector<1x64xf16>, vector<1xf32>
//       CHECK:         vector.reduction <maximumf>
//       CHECK:         %[[POWER:.+]] = arith.shrui
//       CHECK:         arith.maxui %[[POWER]], %c1_i32
//       CHECK:         arith.minui %{{.+}}, %c253_i32
//       CHECK:         arith.truncf
//       CHECK:       gdn_tile.store %[[MADE]]#0
//       CHECK:       gdn_tile.store %[[MADE]]#1
//       CHECK:       %[[KEY:.+]] = gdn_tile.map_rows {{.*}} -> vector<1x32xf16>
//       CHECK:       scf.if %{{.+}} {
//       CHECK:         gdn_tile.store %[[KEY]]
func.func @narrow(
    %q: tensor<?x?x32xf32> {gdn.name = "q", gdn.dims = ["N", "Hk", "32"]},
    %k: tensor<?x?x32xf32> {gdn.name = "k", gdn.dims = ["N", "Hk", "32"]},
    %v: tensor<?x?x64xf32> {gdn.name = "v", gdn.dims = ["N", "Hv", "64"]},
    %g: tensor<?x?xf32> {gdn.name = "g", gdn.dims = ["N", "Hv"]},
    %b: tensor<?x?xf32> {gdn.name = "b", gdn.dims = ["N", "Hv"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %pool: !gdn.pool<?x?x64x32xbf16> {gdn.name = "pool", gdn.dims = ["P", "Hv", "64", "32"]},
    %keys: !gdn.pool<?x?x16x32xf16> {gdn.name = "keys", gdn.dims = ["P", "Hk", "16", "32"]},
    %deltas: !gdn.pool<?x?x16x64xf16> {gdn.name = "deltas", gdn.dims = ["P", "Hv", "16", "64"]},
    %decays: !gdn.pool<?x?x16xf32> {gdn.name = "decays", gdn.dims = ["P", "Hv", "16"]},
    %counts: !gdn.pool<?x?xi32> {gdn.name = "counts", gdn.dims = ["P", "Hk"]},
    %scales: !gdn.pool<?x?x16xf32> {gdn.name = "scales", gdn.dims = ["P", "Hv", "16"]})
    -> (tensor<?x?x64xf32> {gdn.name = "y", gdn.dims = ["N", "Hv", "64"]})
    attributes {gdn.entry} {
  %o = gdn.kernel "k" {
    %y = gdn.delta_rule %q, %k, %v gates(%g, %b) pool(%pool) slots(%slots)
        pending(%keys, %deltas, %decays) counts(%counts) delta_scales(%scales)
        : tensor<?x?x32xf32>, tensor<?x?x32xf32>, tensor<?x?x64xf32>,
          tensor<?x?xf32>, tensor<?x?xf32>, !gdn.pool<?x?x64x32xbf16>,
          tensor<?xi32> pending !gdn.pool<?x?x16x32xf16>, !gdn.pool<?x?x16x64xf16>,
          !gdn.pool<?x?x16xf32> counts !gdn.pool<?x?xi32> delta_scales !gdn.pool<?x?x16xf32>
          -> tensor<?x?x64xf32>
    gdn.yield %y : tensor<?x?x64xf32>
  } : tensor<?x?x64xf32>
  return %o : tensor<?x?x64xf32>
}
