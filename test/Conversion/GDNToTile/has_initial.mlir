// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sequences that start from nothing: their load of the state reads no row of it, so
// what the slot holds does not matter. Of states in planes it reads no scale, and a
// row whose scale is 0 is zero whatever its bytes are.
//
// RUN: gdn-opt %s -convert-gdn-to-tile -canonicalize -cse | FileCheck %s

// CHECK-LABEL: func.func @has_initial(
//  CHECK-SAME:   %[[STATES:[a-z0-9]+]]: memref<?x?x64x32xf32, {{.+}}> {gdn.name = "state_pool"}
//  CHECK-SAME:   %[[FLAGS:[a-z0-9]+]]: memref<?xi1, strided<[1], offset: ?>> {gdn.name = "has_initial"}
//   CHECK-DAG:   %[[C0:.+]] = arith.constant 0 : index
//   CHECK-DAG:   %[[ALL:.+]] = arith.constant 64 : index
//       CHECK:   %[[N:.+]] = gdn_tile.block_id 0
//       CHECK:   %[[FLAG:.+]] = memref.load %[[FLAGS]][%[[N]]]
//       CHECK:   %[[ROWS:.+]] = arith.select %[[FLAG]], %[[ALL]], %[[C0]]
//       CHECK:   gdn_tile.load %[[STATES]][{{.+}}] dims [2, 3] rows(%[[ROWS]])
func.func @has_initial(
    %q: tensor<?x?x32xbf16> {gdn.name = "q", gdn.dims = ["T", "Hk", "32"]},
    %k: tensor<?x?x32xbf16> {gdn.name = "k", gdn.dims = ["T", "Hk", "32"]},
    %v: tensor<?x?x64xbf16> {gdn.name = "v", gdn.dims = ["T", "Hv", "64"]},
    %g: tensor<?x?xf32> {gdn.name = "g", gdn.dims = ["T", "Hv"]},
    %beta: tensor<?x?xf32> {gdn.name = "beta", gdn.dims = ["T", "Hv"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %sp: !gdn.pool<?x?x64x32xf32> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "64", "32"]},
    %cu: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]},
    %init: tensor<?xi1> {gdn.name = "has_initial", gdn.dims = ["N"]})
    -> (tensor<?x?x64xbf16> {gdn.name = "core", gdn.dims = ["T", "Hv", "64"]})
    attributes {gdn.entry} {
  %o = gdn.kernel "has_initial" {
    %core = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%sp)
        slots(%slots) sequences(%cu) initial(%init)
        : tensor<?x?x32xbf16>, tensor<?x?x32xbf16>, tensor<?x?x64xbf16>,
          tensor<?x?xf32>, tensor<?x?xf32>, !gdn.pool<?x?x64x32xf32>,
          tensor<?xi32>, tensor<?xi32> initial tensor<?xi1> -> tensor<?x?x64xbf16>
    gdn.yield %core : tensor<?x?x64xbf16>
  } : tensor<?x?x64xbf16>
  return %o : tensor<?x?x64xbf16>
}

// CHECK-LABEL: func.func @has_initial_of_planes(
//  CHECK-SAME:   %[[FLAGS:[a-z0-9]+]]: memref<?xi1, strided<[1], offset: ?>> {gdn.name = "has_initial"}
//  CHECK-SAME:   %[[UPPER:[a-z0-9]+]]: memref<?x?x64x32xi8, {{.+}}> {gdn.name = "state_pool"}
//  CHECK-SAME:   %[[SCALES:[a-z0-9]+]]: memref<?x?x64xf32, {{.+}}> {gdn.name = "state_scales"}
//  CHECK-SAME:   %[[LOW:[a-z0-9]+]]: memref<?x?x64x32xi8, {{.+}}> {gdn.name = "state_low"}
//       CHECK:   %[[FLAG:.+]] = memref.load %[[FLAGS]]
//       CHECK:   %[[ROWS:.+]] = arith.select %[[FLAG]], %{{.+}}, %{{.+}}
//       CHECK:   gdn_tile.load %[[UPPER]][{{[^]]+}}] dims [2, 3] :
//       CHECK:   gdn_tile.load %[[SCALES]][{{[^]]+}}] dims [2] rows(%[[ROWS]])
//       CHECK:   gdn_tile.load %[[LOW]][{{[^]]+}}] dims [2, 3] :
func.func @has_initial_of_planes(
    %q: tensor<?x?x32xbf16> {gdn.name = "q", gdn.dims = ["T", "Hk", "32"]},
    %k: tensor<?x?x32xbf16> {gdn.name = "k", gdn.dims = ["T", "Hk", "32"]},
    %v: tensor<?x?x64xbf16> {gdn.name = "v", gdn.dims = ["T", "Hv", "64"]},
    %g: tensor<?x?xf32> {gdn.name = "g", gdn.dims = ["T", "Hv"]},
    %beta: tensor<?x?xf32> {gdn.name = "beta", gdn.dims = ["T", "Hv"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %cu: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]},
    %init: tensor<?xi1> {gdn.name = "has_initial", gdn.dims = ["N"]},
    %sp: !gdn.pool<?x?x64x32xi8> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "64", "32"]},
    %scales: !gdn.pool<?x?x64xf32> {gdn.name = "state_scales", gdn.dims = ["P", "Hv", "64"]},
    %low: !gdn.pool<?x?x64x32xi8> {gdn.name = "state_low", gdn.dims = ["P", "Hv", "64", "32"]})
    -> (tensor<?x?x64xbf16> {gdn.name = "core", gdn.dims = ["T", "Hv", "64"]})
    attributes {gdn.entry} {
  %o = gdn.kernel "has_initial_of_planes" {
    %core = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%sp)
        slots(%slots) sequences(%cu) initial(%init) scales(%scales) low(%low)
        : tensor<?x?x32xbf16>, tensor<?x?x32xbf16>, tensor<?x?x64xbf16>,
          tensor<?x?xf32>, tensor<?x?xf32>, !gdn.pool<?x?x64x32xi8>,
          tensor<?xi32>, tensor<?xi32> initial tensor<?xi1>
          scales !gdn.pool<?x?x64xf32> low !gdn.pool<?x?x64x32xi8> -> tensor<?x?x64xbf16>
    gdn.yield %core : tensor<?x?x64xbf16>
  } : tensor<?x?x64xbf16>
  return %o : tensor<?x?x64xbf16>
}
