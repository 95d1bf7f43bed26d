// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The variant "segment-maps" of a prefill of one pass: what each whole sequence does to the state,
// and nothing else.
//
// RUN: gdn-opt %s -convert-gdn-to-tile='tokens=8 chunk=16 segment-maps' -canonicalize -cse | FileCheck %s
// RUN: gdn-opt %s -convert-gdn-to-tile='tokens=8 value-heads segment-maps' | FileCheck %s --check-prefix=NONE
// NONE-NOT: segment_maps

// CHECK-LABEL: func.func @prefill__segment_maps(
//  CHECK-SAME:   %[[STATES:[a-z0-9]+]]: memref<?x?x1x32x32xf32>, %[[MAPS:[a-z0-9]+]]: memref<?x?x1x32x32xf32>)
//  CHECK-SAME:   bits = "segment-maps"
//  CHECK-SAME:   conditions = {{\[\[}}["workers"], ["0"]]]
//  CHECK-SAME:   grid = ["N", "Hk"]
//  CHECK-SAME:   variant = "segment-maps"
//  CHECK-SAME:   workspace = {{\[\[}}"N", "Hv", "1", "32", "32", "4"], ["N", "Hv", "1", "32", "32", "4"]]
// The last chunk has the tokens that are left.
//       CHECK:   scf.for %[[T:.+]] = %{{.+}} to %[[END:.+]] step %c16
//       CHECK:     %[[LEFT:.+]] = arith.subi %[[END]], %[[T]]
//       CHECK:     arith.minui %[[LEFT]], %c16
//   CHECK-NOT:     gdn_tile.store
//       CHECK:     scf.yield
//       CHECK:   gdn_tile.store %{{.+}}, %[[STATES]]
//       CHECK:   gdn_tile.store %{{.+}}, %[[MAPS]]
//   CHECK-NOT:   gdn_tile.store

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
