// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The recurrence alone, from ready gates: nothing is loaded but its operands, the
// query is scaled, the output is rounded at its store.
//
// RUN: gdn-opt %s -convert-gdn-to-tile -canonicalize -cse | FileCheck %s

// CHECK-LABEL: func.func @core_only(
//   CHECK-DAG:   %[[SCALE:.+]] = arith.constant dense<0.176776692> : vector<32xf32>
//   CHECK-NOT:   math.
// The value heads of a key head stand side by side.
//       CHECK:   scf.for %[[R:[a-z0-9]+]] = %{{.+}} to %[[RATIO:[a-z0-9]+]] step
//  CHECK-NEXT:     %[[FIRST:.+]] = arith.muli %{{.+}}, %[[RATIO]]
//  CHECK-NEXT:     %[[HEAD:.+]] = arith.addi %[[FIRST]], %[[R]]
//       CHECK:   %[[STATE:.+]] = gdn_tile.load %{{.+}}[%{{[^,]+}}, %[[HEAD]], {{.+}}, vector<64x32xf32>
//       CHECK:   %[[Q:.+]] = gdn_tile.map_rows %{{.+}} : vector<1x32xf32> -> vector<1x32xf32> {
//       CHECK:     arith.mulf %{{.+}}, %[[SCALE]]
//       CHECK:   %[[G:.+]] = gdn_tile.load {{.+}}, vector<1xf32>
//       CHECK:   %[[BETA:.+]] = gdn_tile.load {{.+}}, vector<1xf32>
//       CHECK:   %{{.+}}, %[[OUT:.+]] = gdn_tile.delta_scan %[[STATE]], %[[Q]], %{{.+}} gates(%[[G]], %[[BETA]])
//       CHECK:   %[[ROUNDED:.+]] = gdn_tile.map_rows %[[OUT]] : vector<1x64xf32> -> vector<1x64xbf16>
//       CHECK:   gdn_tile.store %[[ROUNDED]]
//   CHECK-NOT:   math.
func.func @core_only(
    %q: tensor<?x?x32xbf16> {gdn.name = "q", gdn.dims = ["N", "Hk", "32"]},
    %k: tensor<?x?x32xbf16> {gdn.name = "k", gdn.dims = ["N", "Hk", "32"]},
    %v: tensor<?x?x64xbf16> {gdn.name = "v", gdn.dims = ["N", "Hv", "64"]},
    %g: tensor<?x?xf32> {gdn.name = "g", gdn.dims = ["N", "Hv"]},
    %beta: tensor<?x?xf32> {gdn.name = "beta", gdn.dims = ["N", "Hv"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %sp: !gdn.pool<?x?x64x32xf32> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "64", "32"]})
    -> (tensor<?x?x64xbf16> {gdn.name = "core", gdn.dims = ["N", "Hv", "64"]})
    attributes {gdn.entry} {
  %o = gdn.kernel "core_only" {
    %core = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%sp)
        slots(%slots)
        : tensor<?x?x32xbf16>, tensor<?x?x32xbf16>, tensor<?x?x64xbf16>,
          tensor<?x?xf32>, tensor<?x?xf32>, !gdn.pool<?x?x64x32xf32>,
          tensor<?xi32> -> tensor<?x?x64xbf16>
    gdn.yield %core : tensor<?x?x64xbf16>
  } : tensor<?x?x64xbf16>
  return %o : tensor<?x?x64xbf16>
}
