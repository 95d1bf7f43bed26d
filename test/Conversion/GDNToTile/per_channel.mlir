// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gates of a decay per channel (KDA): a row of log decays per token, the bias of
// the head as one row, the rate of the head as a scalar.
//
// RUN: gdn-opt %s -convert-gdn-to-tile -canonicalize -cse | FileCheck %s

// CHECK-LABEL: func.func @per_channel(
//  CHECK-SAME:   %[[A:[a-z0-9]+]]: memref<?x?x32xbf16, strided<[?, ?, 1], offset: ?>> {gdn.name = "a"}
//  CHECK-SAME:   %[[A_LOG:[a-z0-9]+]]: memref<?xf32, strided<[1], offset: ?>> {gdn.name = "A_log"}
//  CHECK-SAME:   %[[DT:[a-z0-9]+]]: memref<?x32xf32, strided<[?, 1], offset: ?>> {gdn.name = "dt_bias"}
//       CHECK:   %[[A_HEADS:.+]] = memref.expand_shape %[[A]]
//       CHECK:   %[[BIAS:.+]] = gdn_tile.load %[[DT]][%[[HEAD:.+]], %{{.+}}] dims [1] : {{.+}}, vector<32xf32>
//       CHECK:   gdn_tile.load %{{.+}} dims [0, 3] rows(%{{.+}}) : {{.+}}, vector<1x32xbf16>
//       CHECK:   %[[RATE:.+]] = memref.load %[[A_LOG]][%[[HEAD]]]
//       CHECK:   %[[G:.+]] = gdn_tile.map_rows %{{.+}} : vector<1x32xf32> -> vector<1x32xf32> {
//       CHECK:     arith.addf %{{.+}}, %[[BIAS]] : vector<32xf32>
//       CHECK:     math.log1p %{{.+}} : vector<32xf32>
//       CHECK:     math.exp %[[RATE]] : f32
//       CHECK:   gdn_tile.delta_scan %{{.+}} gates(%[[G]], %{{.+}})
//  CHECK-SAME:     : vector<64x32xf32>, vector<1x32xf32>, vector<1x64xf32>, vector<1x32xf32>
func.func @per_channel(
    %q: tensor<?x?x32xbf16> {gdn.name = "q", gdn.dims = ["N", "Hk", "32"]},
    %k: tensor<?x?x32xbf16> {gdn.name = "k", gdn.dims = ["N", "Hk", "32"]},
    %v: tensor<?x?x64xbf16> {gdn.name = "v", gdn.dims = ["N", "Hv", "64"]},
    %a: tensor<?x?x32xbf16> {gdn.name = "a", gdn.dims = ["N", "Hv", "32"]},
    %b: tensor<?x?xbf16> {gdn.name = "b", gdn.dims = ["N", "Hv"]},
    %alog: tensor<?xf32> {gdn.name = "A_log", gdn.dims = ["Hv"]},
    %dt: tensor<?x32xf32> {gdn.name = "dt_bias", gdn.dims = ["Hv", "32"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %sp: !gdn.pool<?x?x64x32xf32> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "64", "32"]})
    -> (tensor<?x?x64xbf16> {gdn.name = "core", gdn.dims = ["N", "Hv", "64"]})
    attributes {gdn.entry} {
  %o = gdn.kernel "per_channel" {
    %g, %beta = gdn.gates %a, %b, %alog, %dt
        : tensor<?x?x32xbf16>, tensor<?x?xbf16>, tensor<?xf32>, tensor<?x32xf32>
          -> tensor<?x?x32xf32>, tensor<?x?xf32>
    %core = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%sp)
        slots(%slots)
        : tensor<?x?x32xbf16>, tensor<?x?x32xbf16>, tensor<?x?x64xbf16>,
          tensor<?x?x32xf32>, tensor<?x?xf32>, !gdn.pool<?x?x64x32xf32>,
          tensor<?xi32> -> tensor<?x?x64xbf16>
    gdn.yield %core : tensor<?x?x64xbf16>
  } : tensor<?x?x64xbf16>
  return %o : tensor<?x?x64xbf16>
}

// A bounded decay: one exponential of the rate times u, and no approximate tanh.
// The rate of the head is finite.
// CHECK-LABEL: func.func @bounded(
//  CHECK-SAME:   %[[A_LOG:[a-z0-9]+]]: memref<?xf32, strided<[1], offset: ?>> {gdn.name = "A_log"}
//   CHECK-DAG:   %[[MOST:.+]] = arith.constant 8.872{{.*}} : f32
//   CHECK-DAG:   %[[BOUND:.+]] = arith.constant dense<-5.000000e+00> : vector<32xf32>
//   CHECK-DAG:   %[[ONE:.+]] = arith.constant dense<1.000000e+00> : vector<32xf32>
//       CHECK:   %[[LOG:.+]] = memref.load %[[A_LOG]]
//       CHECK:   %[[G:.+]] = gdn_tile.map_rows %{{.+}} : vector<1x32xf32> -> vector<1x32xf32> {
//       CHECK:     %[[U:.+]] = arith.addf
//       CHECK:     %[[LARGE:.+]] = arith.cmpf ogt, %[[LOG]], %[[MOST]] : f32
//       CHECK:     %[[FINITE:.+]] = arith.select %[[LARGE]], %[[MOST]], %[[LOG]] : f32
//       CHECK:     %[[EXP:.+]] = math.exp %[[FINITE]] : f32
//       CHECK:     %[[RATE:.+]] = vector.broadcast %[[EXP]]
//       CHECK:     %[[X:.+]] = arith.mulf %[[RATE]], %[[U]]
//       CHECK:     %[[NEGATIVE:.+]] = arith.negf %[[X]]
//       CHECK:     %[[POWER:.+]] = math.exp %[[NEGATIVE]] : vector<32xf32>
//       CHECK:     %[[SUM:.+]] = arith.addf %[[POWER]], %[[ONE]]
//       CHECK:     %[[SIGMOID:.+]] = arith.divf %[[ONE]], %[[SUM]]
//       CHECK:     arith.mulf %[[SIGMOID]], %[[BOUND]]
//   CHECK-NOT:   math.log1p
//       CHECK:   gdn_tile.delta_scan %{{.+}} gates(%[[G]], %{{.+}})
func.func @bounded(
    %q: tensor<?x?x32xbf16> {gdn.name = "q", gdn.dims = ["N", "Hk", "32"]},
    %k: tensor<?x?x32xbf16> {gdn.name = "k", gdn.dims = ["N", "Hk", "32"]},
    %v: tensor<?x?x64xbf16> {gdn.name = "v", gdn.dims = ["N", "Hv", "64"]},
    %a: tensor<?x?x32xbf16> {gdn.name = "a", gdn.dims = ["N", "Hv", "32"]},
    %b: tensor<?x?xbf16> {gdn.name = "b", gdn.dims = ["N", "Hv"]},
    %alog: tensor<?xf32> {gdn.name = "A_log", gdn.dims = ["Hv"]},
    %dt: tensor<?x32xf32> {gdn.name = "dt_bias", gdn.dims = ["Hv", "32"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %sp: !gdn.pool<?x?x64x32xf32> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "64", "32"]})
    -> (tensor<?x?x64xbf16> {gdn.name = "core", gdn.dims = ["N", "Hv", "64"]})
    attributes {gdn.entry} {
  %o = gdn.kernel "bounded" {
    %g, %beta = gdn.gates %a, %b, %alog, %dt {lower_bound = -5.0 : f32}
        : tensor<?x?x32xbf16>, tensor<?x?xbf16>, tensor<?xf32>, tensor<?x32xf32>
          -> tensor<?x?x32xf32>, tensor<?x?xf32>
    %core = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%sp)
        slots(%slots)
        : tensor<?x?x32xbf16>, tensor<?x?x32xbf16>, tensor<?x?x64xbf16>,
          tensor<?x?x32xf32>, tensor<?x?xf32>, !gdn.pool<?x?x64x32xf32>,
          tensor<?xi32> -> tensor<?x?x64xbf16>
    gdn.yield %core : tensor<?x?x64xbf16>
  } : tensor<?x?x64xbf16>
  return %o : tensor<?x?x64xbf16>
}

// CHECK-LABEL: func.func @bounded_without_rate(
//       CHECK:   gdn_tile.map_rows %{{.+}} : vector<1x32xf32> -> vector<1x32xf32> {
//       CHECK:     %[[U:.+]] = arith.addf
//  CHECK-NEXT:     %[[NEGATIVE:.+]] = arith.negf %[[U]]
//  CHECK-NEXT:     math.exp %[[NEGATIVE]] : vector<32xf32>
func.func @bounded_without_rate(
    %q: tensor<?x?x32xbf16> {gdn.name = "q", gdn.dims = ["N", "Hk", "32"]},
    %k: tensor<?x?x32xbf16> {gdn.name = "k", gdn.dims = ["N", "Hk", "32"]},
    %v: tensor<?x?x64xbf16> {gdn.name = "v", gdn.dims = ["N", "Hv", "64"]},
    %a: tensor<?x?x32xbf16> {gdn.name = "a", gdn.dims = ["N", "Hv", "32"]},
    %b: tensor<?x?xbf16> {gdn.name = "b", gdn.dims = ["N", "Hv"]},
    %dt: tensor<?x32xf32> {gdn.name = "dt_bias", gdn.dims = ["Hv", "32"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %sp: !gdn.pool<?x?x64x32xf32> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "64", "32"]})
    -> (tensor<?x?x64xbf16> {gdn.name = "core", gdn.dims = ["N", "Hv", "64"]})
    attributes {gdn.entry} {
  %o = gdn.kernel "bounded_without_rate" {
    %g, %beta = gdn.gates %a, %b, %dt {lower_bound = -5.0 : f32}
        : tensor<?x?x32xbf16>, tensor<?x?xbf16>, tensor<?x32xf32>
          -> tensor<?x?x32xf32>, tensor<?x?xf32>
    %core = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%sp)
        slots(%slots)
        : tensor<?x?x32xbf16>, tensor<?x?x32xbf16>, tensor<?x?x64xbf16>,
          tensor<?x?x32xf32>, tensor<?x?xf32>, !gdn.pool<?x?x64x32xf32>,
          tensor<?xi32> -> tensor<?x?x64xbf16>
    gdn.yield %core : tensor<?x?x64xbf16>
  } : tensor<?x?x64xbf16>
  return %o : tensor<?x?x64xbf16>
}
