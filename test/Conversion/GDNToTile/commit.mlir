// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A commit: one block per sequence and value head, which also moves every Hv-th block
// of 64 channels of the convolution. It does nothing where nothing is accepted.
//
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile -canonicalize -cse | FileCheck %s
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile=value-heads -canonicalize -cse | FileCheck %s

// CHECK-LABEL: func.func @commit(
//  CHECK-SAME:   %[[SLOTS:[a-z0-9]+]]: memref<?xi32, strided<[1], offset: ?>> {gdn.name = "slots"}
//  CHECK-SAME:   %[[ACCEPTED:[a-z0-9]+]]: memref<?xi32, strided<[1], offset: ?>> {gdn.name = "num_accepted"}
//  CHECK-SAME:   %[[CONVS:[a-z0-9]+]]: memref<?x?x?xf16, {{[^{]+}} {gdn.name = "conv_pool"}
//  CHECK-SAME:   %[[STATES:[a-z0-9]+]]: memref<?x?x64x16xbf16, {{[^{]+}} {gdn.name = "state_pool"}
//  CHECK-SAME:   %[[KEYS:[a-z0-9]+]]: memref<?x?x?x16xf32, {{[^{]+}} {gdn.name = "pending_keys"}
//  CHECK-SAME:   grid = ["N", "Hv"]
//  CHECK-SAME:   multiples = ["Hv", "Hk"]
//       CHECK:   %[[N:.+]] = gdn_tile.block_id 0
//       CHECK:   %[[H:.+]] = gdn_tile.block_id 1
//       CHECK:   memref.load %[[SLOTS]][%[[N]]]
//       CHECK:   %[[SLOT:.+]] = arith.index_cast
//       CHECK:   memref.load %[[ACCEPTED]][%[[N]]]
//       CHECK:   %[[A:.+]] = arith.index_cast
//       CHECK:   %[[LAST:.+]] = arith.subi %[[A]], %c1
//       CHECK:   arith.cmpi ult, %[[LAST]], %c8
//       CHECK:   %[[S:.+]] = memref.dim %[[KEYS]], %c2
//       CHECK:   arith.cmpi ult, %[[LAST]], %[[S]]
//       CHECK:   scf.if
//       CHECK:     gdn_tile.load %[[STATES]][%[[SLOT]], %[[H]], %c0, %c0]
//       CHECK:     %[[FOLDED:.+]] = gdn_tile.delta_fold {{.*}} valid(%[[A]])
//       CHECK:     %[[ROUNDED:.+]] = gdn_tile.map_rows %[[FOLDED]] : vector<64x16xf32> -> vector<64x16xbf16>
//       CHECK:     gdn_tile.store %[[ROUNDED]], %[[STATES]][%[[SLOT]], %[[H]], %c0, %c0]
//       CHECK:     scf.for %[[C:.+]] =
//       CHECK:       %[[W:.+]] = gdn_tile.load %[[CONVS]][%[[SLOT]], %[[C]], %[[A]]] dims [1, 2] rows(%[[ROWS:.+]]) : {{.*}} vector<64x3xf16>
//       CHECK:       gdn_tile.store %[[W]], %[[CONVS]][%[[SLOT]], %[[C]], %c0] dims [1, 2] rows(%[[ROWS]])
//   CHECK-NOT:   else
//       CHECK:   return
func.func @commit(
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %accepted: tensor<?xi32> {gdn.name = "num_accepted", gdn.dims = ["N"]},
    %cp: !gdn.pool<?x?x?xf16> {gdn.name = "conv_pool", gdn.dims = ["P", "32*Hk + 64*Hv", "S + 3"]},
    %pool: !gdn.pool<?x?x64x16xbf16> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "64", "16"]},
    %keys: !gdn.pool<?x?x?x16xf32> {gdn.name = "pending_keys", gdn.dims = ["P", "Hk", "S", "16"]},
    %deltas: !gdn.pool<?x?x?x64xf32> {gdn.name = "pending_deltas", gdn.dims = ["P", "Hv", "S", "64"]},
    %decays: !gdn.pool<?x?x?xf32> {gdn.name = "pending_decays", gdn.dims = ["P", "Hv", "S"]})
    attributes {gdn.entry} {
  gdn.commit_conv1d %cp[%slots] accepted(%accepted) window 3
      : !gdn.pool<?x?x?xf16>, tensor<?xi32>, tensor<?xi32>
  gdn.commit_delta_rule %pool[%slots] accepted(%accepted) pending(%keys, %deltas, %decays)
      : !gdn.pool<?x?x64x16xbf16>, tensor<?xi32> accepted tensor<?xi32>
        pending !gdn.pool<?x?x?x16xf32>, !gdn.pool<?x?x?x64xf32>, !gdn.pool<?x?x?xf32>
  return
}

// A convolution alone has no heads.
// CHECK-LABEL: func.func @windows(
//  CHECK-SAME:   grid = ["N", "1"]
//   CHECK-NOT:   delta_fold
//       CHECK:   gdn_tile.store
func.func @windows(
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %accepted: tensor<?xi32> {gdn.name = "num_accepted", gdn.dims = ["N"]},
    %cp: !gdn.pool<?x?x5xf16> {gdn.name = "conv_pool", gdn.dims = ["P", "D", "5"]})
    attributes {gdn.entry} {
  gdn.commit_conv1d %cp[%slots] accepted(%accepted) window 1
      : !gdn.pool<?x?x5xf16>, tensor<?xi32>, tensor<?xi32>
  return
}
