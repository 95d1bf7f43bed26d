// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A prefill entry over separate projections: bounds of the sequence, a loop over
// blocks of tokens that carries windows and state as f32 tiles, one block more
// than sequences for the padding, and a state that is rounded once, at its store.
//
// RUN: gdn-opt %s -convert-gdn-to-tile=tokens=8 -canonicalize -cse | FileCheck %s

// CHECK-LABEL: func.func @prefill(
//  CHECK-SAME:   %[[Q:[a-z0-9]+]]: memref<?x?x32xbf16, strided<[?, ?, 1], offset: ?>> {gdn.name = "q"}
//  CHECK-SAME:   %[[V:[a-z0-9]+]]: memref<?x?x32xbf16, strided<[?, ?, 1], offset: ?>> {gdn.name = "v"}
//  CHECK-SAME:   %[[CU:[a-z0-9]+]]: memref<?xi32, strided<[1], offset: ?>> {gdn.name = "cu_seqlens"}
//  CHECK-SAME:   %[[STATES:[a-z0-9]+]]: memref<?x?x32x32xbf16, strided<[?, ?, ?, 1], offset: ?>> {gdn.name = "state_pool"}
//  CHECK-SAME:   grid = ["N + 1", "Hk"]

//   CHECK-DAG:   %[[NO_SLOT:.+]] = arith.constant -1 : index
//   CHECK-DAG:   %[[C0:.+]] = arith.constant 0 : index
//   CHECK-DAG:   %[[C8:.+]] = arith.constant 8 : index

// Value heads are grouped by the key head that they share.
//       CHECK:   %[[HEADS:.+]] = memref.dim %[[V]], %c1
//       CHECK:   %[[R:.+]] = arith.divui %[[HEADS]], %{{.+}} : index
//       CHECK:   %[[GROUPS:.+]] = arith.divui %[[HEADS]], %[[R]] : index
//       CHECK:   memref.expand_shape %[[V]] {{\[\[}}0], [1, 2], [3]] output_shape [%{{.+}}, %[[GROUPS]], %[[R]], 32]

// The bounds lie inside the tokens, whatever cu_seqlens holds.
//       CHECK:   %[[N:.+]] = gdn_tile.block_id 0
//       CHECK:   %[[IS_SEQUENCE:.+]] = arith.cmpi ult, %[[N]]
//       CHECK:   %[[RAW:.+]] = memref.load %[[CU]][%[[N]]]
//       CHECK:   %[[FROM:.+]] = arith.index_cast %[[RAW]]
//       CHECK:   %[[CAPPED:.+]] = arith.minsi %[[FROM]], %[[TOKENS:.+]] : index
//       CHECK:   %[[BEGIN:.+]] = arith.maxsi %[[CAPPED]], %[[C0]]
//       CHECK:   %[[SEQUENCE:.+]]:3 = scf.if %[[IS_SEQUENCE]] -> (index, index, index) {
//       CHECK:     arith.maxsi %{{.+}}, %[[BEGIN]]
//       CHECK:   } else {
//       CHECK:     %[[LEAD:.+]] = arith.maxsi
//       CHECK:     scf.yield %[[TOKENS]], %[[NO_SLOT]], %[[LEAD]]
//       CHECK:   arith.cmpi ult, %[[BEGIN]], %[[SEQUENCE]]#0
//       CHECK:   scf.if
// The channels of a head are side by side.
//       CHECK:       %[[CHANNEL:.+]] = arith.muli %{{.+}}, %c32 : index
//  CHECK-NEXT:       gdn_tile.load %{{.+}}[%[[SEQUENCE]]#1, %[[CHANNEL]], %[[C0]]] dims [2, 1]

// Per value head: the state is widened, carried, and rounded at the end.
//       CHECK:       %[[STORED:.+]] = gdn_tile.load %[[STATES]][%[[SEQUENCE]]#1, %[[HEAD:.+]], %[[C0]], %[[C0]]] dims [2, 3]
//       CHECK:       %[[WIDE:.+]] = gdn_tile.map_rows %[[STORED]]
//       CHECK:         arith.extf
//       CHECK:       %[[LAST:.+]]:4 = scf.for %[[T:.+]] = %[[BEGIN]] to %[[SEQUENCE]]#0 step %[[C8]] iter_args(%[[WQ:.+]] = %{{.+}}, %[[WK:.+]] = %{{.+}}, %[[WV:.+]] = %{{.+}}, %[[STATE:.+]] = %[[WIDE]])
//       CHECK:         %[[LEFT:.+]] = arith.subi %[[SEQUENCE]]#0, %[[T]]
//       CHECK:         %[[VALID:.+]] = arith.minui %[[LEFT]], %[[C8]]
//       CHECK:         gdn_tile.load %[[Q]][%[[T]], %{{.+}}, %[[C0]]] dims [0, 2] rows(%[[VALID]])
//       CHECK:         %{{.+}}, %[[NEXT_WQ:.+]] = gdn_tile.conv1d %{{.+}}, %[[WQ]], %{{.+}} valid(%[[VALID]])
//       CHECK:         %{{.+}}, %[[NEXT_WK:.+]] = gdn_tile.conv1d %{{.+}}, %[[WK]], %{{.+}} valid(%[[VALID]])
//       CHECK:         %{{.+}}, %[[NEXT_WV:.+]] = gdn_tile.conv1d %{{.+}}, %[[WV]], %{{.+}} valid(%[[VALID]])
//   CHECK-NOT:         arith.truncf
//       CHECK:         %[[NEXT:.+]], %[[O:.+]] = gdn_tile.delta_scan %[[STATE]], {{.+}} valid(%[[VALID]])
//       CHECK:         %[[ROUNDED:.+]] = gdn_tile.map_rows %[[O]]
//       CHECK:           arith.truncf
//       CHECK:         gdn_tile.store %[[ROUNDED]], %{{.+}} rows(%[[VALID]])
//       CHECK:         scf.yield %[[NEXT_WQ]], %[[NEXT_WK]], %[[NEXT_WV]], %[[NEXT]]
//       CHECK:       %[[NARROW:.+]] = gdn_tile.map_rows %[[LAST]]#3
//       CHECK:       gdn_tile.store %[[NARROW]], %[[STATES]][%[[SEQUENCE]]#1, %[[HEAD]], %[[C0]], %[[C0]]] dims [2, 3]

// Padding and skipped sequences: zeros from the same bounds, and to the tokens
// before the first sequence.
//       CHECK:   } else {
//       CHECK:     scf.for %{{.+}} = %[[BEGIN]] to %[[SEQUENCE]]#0 step %[[C8]]
//       CHECK:       gdn_tile.fill
//       CHECK:       gdn_tile.store
//       CHECK:     scf.for %{{.+}} = %[[C0]] to %[[SEQUENCE]]#2 step %[[C8]]
//       CHECK:       gdn_tile.fill
//       CHECK:       gdn_tile.store
func.func @prefill(
    %q: tensor<?x?x32xbf16> {gdn.name = "q", gdn.dims = ["T", "Hk", "32"]},
    %k: tensor<?x?x32xbf16> {gdn.name = "k", gdn.dims = ["T", "Hk", "32"]},
    %v: tensor<?x?x32xbf16> {gdn.name = "v", gdn.dims = ["T", "Hv", "32"]},
    %g: tensor<?x?xf32> {gdn.name = "g", gdn.dims = ["T", "Hv"]},
    %beta: tensor<?x?xf32> {gdn.name = "beta", gdn.dims = ["T", "Hv"]},
    %w: tensor<?x4xbf16> {gdn.name = "conv_weight", gdn.dims = ["64*Hk + 32*Hv", "4"]},
    %cu: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %cp: !gdn.pool<?x?x3xbf16> {gdn.name = "conv_pool", gdn.dims = ["P", "64*Hk + 32*Hv", "3"]},
    %sp: !gdn.pool<?x?x32x32xbf16> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "32", "32"]})
    -> (tensor<?x?x32xbf16> {gdn.name = "core", gdn.dims = ["T", "Hv", "32"]})
    attributes {gdn.entry} {
  %o = gdn.kernel "prefill" {
    %qc, %kc, %vc = gdn.conv1d %q, %k, %v weight(%w) silu pool(%cp)
        slots(%slots) sequences(%cu)
        : (tensor<?x?x32xbf16>, tensor<?x?x32xbf16>, tensor<?x?x32xbf16>),
          tensor<?x4xbf16>, !gdn.pool<?x?x3xbf16>, tensor<?xi32>, tensor<?xi32>
          -> tensor<?x?x32xf32>, tensor<?x?x32xf32>, tensor<?x?x32xf32>
    %core = gdn.delta_rule %qc, %kc, %vc gates(%g, %beta) pool(%sp)
        slots(%slots) sequences(%cu)
        : tensor<?x?x32xf32>, tensor<?x?x32xf32>, tensor<?x?x32xf32>,
          tensor<?x?xf32>, tensor<?x?xf32>, !gdn.pool<?x?x32x32xbf16>,
          tensor<?xi32>, tensor<?xi32> -> tensor<?x?x32xbf16>
    gdn.yield %core : tensor<?x?x32xbf16>
  } : tensor<?x?x32xbf16>
  return %o : tensor<?x?x32xbf16>
}
