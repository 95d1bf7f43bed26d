// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A state that is read from one slot and written to another: the slot read
// decides whether the sequence is live, the slot written whether it is stored.
//
// RUN: gdn-opt %s -convert-gdn-to-tile -canonicalize -cse | FileCheck %s

// CHECK-LABEL: func.func @write_slots(
//  CHECK-SAME:   %[[SLOTS:[a-z0-9]+]]: memref<?xi32, strided<[1], offset: ?>> {gdn.name = "slots"}
//  CHECK-SAME:   %[[STATES:[a-z0-9]+]]: memref<?x?x64x32xf32, {{.+}}> {gdn.name = "state_pool"}, %[[NULL:[a-z0-9]+]]: index
//  CHECK-SAME:   %[[INTO:[a-z0-9]+]]: memref<?xi64, strided<[1], offset: ?>> {gdn.name = "into"}
//       CHECK:   %[[N:.+]] = gdn_tile.block_id 0
//       CHECK:   memref.load %[[SLOTS]][%[[N]]]
//       CHECK:   %[[SIZE:.+]] = memref.dim %[[STATES]]
//       CHECK:   scf.if
//       CHECK:     gdn_tile.store %{{.+}} : vector<1x64xbf16>
//       CHECK:     %[[ID:.+]] = memref.load %[[INTO]][%[[N]]]
//       CHECK:     %[[TO:.+]] = arith.index_cast %[[ID]] : i64 to index
//       CHECK:     %[[INSIDE:.+]] = arith.cmpi ult, %[[TO]], %[[SIZE]]
//       CHECK:     %[[REAL:.+]] = arith.cmpi ne, %[[TO]], %[[NULL]]
//       CHECK:     %[[LIVE:.+]] = arith.andi %[[INSIDE]], %[[REAL]]
//       CHECK:     scf.if %[[LIVE]] {
//  CHECK-NEXT:       gdn_tile.store %{{.+}}, %[[STATES]][%[[TO]],
//  CHECK-NEXT:     }
func.func @write_slots(
    %q: tensor<?x?x32xbf16> {gdn.name = "q", gdn.dims = ["N", "Hk", "32"]},
    %k: tensor<?x?x32xbf16> {gdn.name = "k", gdn.dims = ["N", "Hk", "32"]},
    %v: tensor<?x?x64xbf16> {gdn.name = "v", gdn.dims = ["N", "Hv", "64"]},
    %g: tensor<?x?xf32> {gdn.name = "g", gdn.dims = ["N", "Hv"]},
    %beta: tensor<?x?xf32> {gdn.name = "beta", gdn.dims = ["N", "Hv"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %sp: !gdn.pool<?x?x64x32xf32> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "64", "32"]},
    %into: tensor<?xi64> {gdn.name = "into", gdn.dims = ["N"]})
    -> (tensor<?x?x64xbf16> {gdn.name = "core", gdn.dims = ["N", "Hv", "64"]})
    attributes {gdn.entry} {
  %o = gdn.kernel "write_slots" {
    %core = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%sp)
        slots(%slots -> %into)
        : tensor<?x?x32xbf16>, tensor<?x?x32xbf16>, tensor<?x?x64xbf16>,
          tensor<?x?xf32>, tensor<?x?xf32>, !gdn.pool<?x?x64x32xf32>,
          tensor<?xi32> into tensor<?xi64> -> tensor<?x?x64xbf16>
    gdn.yield %core : tensor<?x?x64xbf16>
  } : tensor<?x?x64xbf16>
  return %o : tensor<?x?x64xbf16>
}
