// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pending tokens of sequences with a bound: a sequence of more tokens is skipped, and the
// recurrence ends at the bound, from which a schedule sees that it has one block of
// tokens.
//
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile=value-heads -canonicalize -cse | FileCheck %s
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile -canonicalize -cse | FileCheck %s

// CHECK-LABEL: func.func @verify(
// The sequence's bounds, and its slot by its count, which are asked for together;
// padding begins where the last sequence ends.
//       CHECK:   %[[SEQUENCE:.+]]:5 = scf.if
//       CHECK:     memref.load %[[CU:.+]][%[[N:.+]]] : memref<?xi32
//       CHECK:     memref.load %[[CU]]
//       CHECK:     memref.load %[[COUNTS:.+]][%[[N]]] : memref<?xi32
//       CHECK:     memref.load %{{.+}}[%[[N]]] : memref<?xi64
//       CHECK:   } else {
//       CHECK:     memref.load %[[CU]][%{{dim.*}}]
//       CHECK:     memref.load %[[CU]][%c0]
//       CHECK:   arith.minsi %[[SEQUENCE]]#0, %[[TOKENS:.+]] : index
//       CHECK:   %[[BEGIN:.+]] = arith.maxsi %{{.+}}, %c0
//       CHECK:   arith.minsi %[[SEQUENCE]]#1, %[[TOKENS]]
//       CHECK:   %[[ROWEND:.+]] = arith.maxsi %{{.+}}, %[[BEGIN]]
//       CHECK:   %[[LENGTH:.+]] = arith.subi %[[ROWEND]], %[[BEGIN]]
//       CHECK:   %[[LONG:.+]] = arith.cmpi sgt, %[[LENGTH]], %c8
//       CHECK:   %[[SLOT:.+]] = arith.select %[[LONG]], %c-1, %[[SEQUENCE]]#2
// P is the same for all pools.
//       CHECK:   arith.cmpi ult, %[[SLOT]], %arg3
//   CHECK-NOT:   arith.cmpi ult, %[[SLOT]]
//       CHECK:   gdn_tile.delta_fold
//       CHECK:   %[[BOUND:.+]] = arith.addi %[[BEGIN]], %c8
//       CHECK:   %[[END:.+]] = arith.minsi %[[ROWEND]], %[[BOUND]]
//       CHECK:   scf.for %{{.+}} = %[[BEGIN]] to %[[END]] step %c8
//       CHECK:     gdn_tile.delta_scan
// Of a sequence that is skipped all outputs are zero.
//       CHECK:   } else {
//       CHECK:     scf.for %{{.+}} = %[[BEGIN]] to %[[ROWEND]] step
//       CHECK:       gdn_tile.fill
func.func @verify(
    %S: index {gdn.name = "S"},
    %q: tensor<?x?x128xbf16> {gdn.name = "q", gdn.dims = ["T", "Hk", "128"]},
    %k: tensor<?x?x128xbf16> {gdn.name = "k", gdn.dims = ["T", "Hk", "128"]},
    %v: tensor<?x?x128xbf16> {gdn.name = "v", gdn.dims = ["T", "Hv", "128"]},
    %w: tensor<?x4xbf16> {gdn.name = "conv_weight", gdn.dims = ["256*Hk + 128*Hv", "4"]},
    %g: tensor<?x?xf32> {gdn.name = "g", gdn.dims = ["T", "Hv"]},
    %beta: tensor<?x?xf32> {gdn.name = "beta", gdn.dims = ["T", "Hv"]},
    %cp: !gdn.pool<?x?x?xbf16> {gdn.name = "conv_pool", gdn.dims = ["P", "256*Hk + 128*Hv", "S + 3"]},
    %pool: !gdn.pool<?x?x128x128xf32> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "128", "128"]},
    %cu: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]},
    %ids: tensor<?xi64> {gdn.name = "slots", gdn.dims = ["N"]},
    %accepted: tensor<?xi32> {gdn.name = "num_accepted", gdn.dims = ["N"]},
    %keys: !gdn.pool<?x?x?x128xf32> {gdn.name = "pending_keys", gdn.dims = ["P", "Hk", "S", "128"]},
    %deltas: !gdn.pool<?x?x?x128xf32> {gdn.name = "pending_deltas", gdn.dims = ["P", "Hv", "S", "128"]},
    %decays: !gdn.pool<?x?x?xf32> {gdn.name = "pending_decays", gdn.dims = ["P", "Hv", "S"]})
    -> (tensor<?x?x128xf32> {gdn.name = "core", gdn.dims = ["T", "Hv", "128"]})
    attributes {gdn.entry} {
  %slots = gdn.counted_slots %ids[%accepted] up_to(%S) sequences(%cu) max_tokens(8)
      : tensor<?xi64>, tensor<?xi32>, tensor<?xi32>
  %c:3 = gdn.conv1d %q, %k, %v weight(%w) silu pool(%cp) slots(%slots) sequences(%cu)
      pending(%accepted)
      : (tensor<?x?x128xbf16>, tensor<?x?x128xbf16>, tensor<?x?x128xbf16>), tensor<?x4xbf16>,
        !gdn.pool<?x?x?xbf16>, tensor<?xi64>, tensor<?xi32> pending tensor<?xi32>
        -> tensor<?x?x128xf32>, tensor<?x?x128xf32>, tensor<?x?x128xf32>
  %o = gdn.delta_rule %c#0, %c#1, %c#2 gates(%g, %beta) pool(%pool) slots(%slots) sequences(%cu)
      accepted(%accepted) pending(%keys, %deltas, %decays)
      : tensor<?x?x128xf32>, tensor<?x?x128xf32>, tensor<?x?x128xf32>, tensor<?x?xf32>,
        tensor<?x?xf32>, !gdn.pool<?x?x128x128xf32>, tensor<?xi64>, tensor<?xi32>
        accepted tensor<?xi32> pending !gdn.pool<?x?x?x128xf32>, !gdn.pool<?x?x?x128xf32>, !gdn.pool<?x?x?xf32>
        -> tensor<?x?x128xf32>
  return %o : tensor<?x?x128xf32>
}
