// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Slots that are copied and zeroed: pieces of one head's rows, a block each, and
// pieces of the channels, shared by the blocks of a sequence.
//
// RUN: gdn-opt %s -convert-gdn-to-tile -canonicalize -cse | FileCheck %s
// RUN: gdn-opt %s -convert-gdn-to-tile=slot-piece=4096 -canonicalize -cse | FileCheck %s --check-prefix=SMALL
// RUN: gdn-opt %s -convert-gdn-to-tile=slot-piece=1 -canonicalize -cse | FileCheck %s --check-prefix=SINGLE

// Smaller pieces of states, a row at least; those of channels are the same.
// SMALL-LABEL: func.func @copy(
//  SMALL-SAME:     grid = ["N", "Hv", "8"]
//       SMALL:   vector<3x128xbf16>
//       SMALL:   arith.muli %{{.+}}, %c16
//  SMALL-NEXT:   gdn_tile.load {{.*}}vector<16x128xf16>
// SINGLE-LABEL: func.func @copy(
//  SINGLE-SAME:     grid = ["N", "Hv", "128"]
//       SINGLE:   gdn_tile.load {{.*}}vector<1x128xf16>

// Two heads' worth of channels are one piece; 64 rows of 128 f16 are 16 KiB.
// CHECK-LABEL: func.func @copy(
//  CHECK-SAME:     %[[FROM:[a-z0-9]+]]: memref<?xi32, {{.+}}> {gdn.name = "slots"}
//  CHECK-SAME:     %[[TO:[a-z0-9]+]]: memref<?xi64, {{.+}}> {gdn.name = "write_slots"}
//  CHECK-SAME:     %[[CONV:[a-z0-9]+]]: memref<?x?x3xbf16, {{.+}}> {gdn.name = "conv"}
//  CHECK-SAME:     %[[STATE:[a-z0-9]+]]: memref<?x?x128x128xf16, {{.+}}> {gdn.name = "state"}
//  CHECK-SAME:     grid = ["N", "Hv", "2"]
//   CHECK-DAG:   %[[N:.+]] = gdn_tile.block_id 0
//   CHECK-DAG:   %[[H:.+]] = gdn_tile.block_id 1
//   CHECK-DAG:   %[[PART:.+]] = gdn_tile.block_id 2
//       CHECK:   memref.load %[[TO]][%[[N]]]
//       CHECK:   memref.load %[[FROM]][%[[N]]]
//       CHECK:   scf.if
//       CHECK:     scf.for
//       CHECK:       %[[PIECE:.+]] = gdn_tile.load %[[CONV]]{{.*}} dims [2, 1] : {{.*}}vector<3x128xbf16>
//  CHECK-NEXT:       gdn_tile.store %[[PIECE]], %[[CONV]]
//       CHECK:   scf.if
//   CHECK-NOT:     scf.for
//       CHECK:     %[[ROW:.+]] = arith.muli %[[PART]], %c64
//  CHECK-NEXT:     %[[ROWS:.+]] = gdn_tile.load %[[STATE]][%{{.+}}, %[[H]], %[[ROW]], %c0] dims [2, 3] : {{.*}}vector<64x128xf16>
//  CHECK-NEXT:     gdn_tile.store %[[ROWS]], %[[STATE]]
func.func @copy(
    %from: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %to: tensor<?xi64> {gdn.name = "write_slots", gdn.dims = ["N"]},
    %conv: !gdn.pool<?x?x3xbf16> {gdn.name = "conv", gdn.dims = ["P", "256*Hv", "3"]},
    %state: !gdn.pool<?x?x128x128xf16> {gdn.name = "state", gdn.dims = ["P", "Hv", "128", "128"]})
    attributes {gdn.entry} {
  gdn.kernel "copy" {
    gdn.pool_copy %conv[%from] to %conv[%to]
        : !gdn.pool<?x?x3xbf16>, tensor<?xi32> to !gdn.pool<?x?x3xbf16>, tensor<?xi64>
    gdn.pool_copy %state[%from] to %state[%to]
        : !gdn.pool<?x?x128x128xf16>, tensor<?xi32> to !gdn.pool<?x?x128x128xf16>, tensor<?xi64>
    gdn.yield
  }
  return
}

// From a pool that is read after a number of accepted tokens; heads of another
// count than the first pool's are moved.
// CHECK-LABEL: func.func @commit(
//  CHECK-SAME:     grid = ["N", "Hv", "1"]
//       CHECK:   scf.if
//       CHECK:     memref.load
//       CHECK:   scf.if
//   CHECK-NOT:     scf.for
//       CHECK:     gdn_tile.load {{.*}}vector<32x32xf32>
//       CHECK:   scf.if
//       CHECK:     scf.for
//       CHECK:       gdn_tile.load {{.*}}vector<32x32xf32>
func.func @commit(
    %table: tensor<?x?xi32> {gdn.name = "token_slots", gdn.dims = ["N", "S"]},
    %count: tensor<?xi32> {gdn.name = "num_accepted", gdn.dims = ["N"]},
    %to: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %buffer: !gdn.pool<?x?x32x32xf32> {gdn.name = "buffer", gdn.dims = ["B", "Hv", "32", "32"]},
    %state: !gdn.pool<?x?x32x32xf32> {gdn.name = "state", gdn.dims = ["P", "Hv", "32", "32"]},
    %buffer2: !gdn.pool<?x?x32x32xf32> {gdn.name = "buffer2", gdn.dims = ["B", "Hk", "32", "32"]},
    %state2: !gdn.pool<?x?x32x32xf32> {gdn.name = "state2", gdn.dims = ["P", "Hk", "32", "32"]})
    attributes {gdn.entry} {
  %from = gdn.accepted_slots %table[%count] : tensor<?x?xi32>, tensor<?xi32> -> tensor<?xi32>
  gdn.kernel "commit" {
    gdn.pool_copy %buffer[%from] to %state[%to]
        : !gdn.pool<?x?x32x32xf32>, tensor<?xi32> to !gdn.pool<?x?x32x32xf32>, tensor<?xi32>
    gdn.pool_copy %buffer2[%from] to %state2[%to]
        : !gdn.pool<?x?x32x32xf32>, tensor<?xi32> to !gdn.pool<?x?x32x32xf32>, tensor<?xi32>
    gdn.yield
  }
  return
}

// Without states, some blocks per sequence. 7 channels are one piece.
// CHECK-LABEL: func.func @zero(
//  CHECK-SAME:     grid = ["N", "8"]
//       CHECK:   scf.if
//       CHECK:     scf.for
//       CHECK:       %[[ZERO:.+]] = gdn_tile.fill %{{.+}} : f32 -> vector<3x7xf32>
//  CHECK-NEXT:       gdn_tile.store %[[ZERO]]
func.func @zero(
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %conv: !gdn.pool<?x?x3xf32> {gdn.name = "conv", gdn.dims = ["P", "7*C", "3"]})
    attributes {gdn.entry} {
  gdn.kernel "zero" {
    gdn.pool_zero %conv[%slots] : !gdn.pool<?x?x3xf32>, tensor<?xi32>
    gdn.yield
  }
  return
}

// Scales of a state in planes are moved as they lie: a row of a head.
// CHECK-LABEL: func.func @scales(
//       CHECK:   scf.if
//       CHECK:     gdn_tile.load {{.*}} dims [1, 2] : {{.*}}vector<1x128xf32>
//  CHECK-NEXT:     gdn_tile.store {{.*}} dims [1, 2]
func.func @scales(
    %from: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %to: tensor<?xi32> {gdn.name = "write_slots", gdn.dims = ["N"]},
    %scales: !gdn.pool<?x?x128xf32> {gdn.name = "scales", gdn.dims = ["P", "Hv", "128"]})
    attributes {gdn.entry} {
  gdn.kernel "copy" {
    gdn.pool_copy %scales[%from] to %scales[%to]
        : !gdn.pool<?x?x128xf32>, tensor<?xi32> to !gdn.pool<?x?x128xf32>, tensor<?xi32>
    gdn.yield
  }
  return
}
