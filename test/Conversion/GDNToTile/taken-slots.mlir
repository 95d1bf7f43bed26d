// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sequences of another entry have no tokens for the blocks of this one, so that nothing of
// them is read, written or zeroed. Padding behind the last sequence is zeroed as ever.
//
// RUN: gdn-opt %s -convert-gdn-to-tile -canonicalize -cse | FileCheck %s

// CHECK-LABEL: func.func @prefill(
//       CHECK:   %[[BEGIN:.+]] = arith.maxsi
//       CHECK:   %[[SEQUENCE:.+]]:3 = scf.if
//       CHECK:     %[[LAST:.+]] = arith.maxsi %{{.+}}, %[[BEGIN]]
//       CHECK:     %[[FLAG:.+]] = memref.load %{{.+}} : memref<?xi1,
//       CHECK:     %[[END:.+]] = arith.select %[[FLAG]], %[[LAST]], %[[BEGIN]]
//       CHECK:     scf.yield %[[END]]
//       CHECK:   } else {
//   CHECK-NOT:     memref<?xi1,
//       CHECK:     scf.yield
//       CHECK:   arith.cmpi ult, %[[BEGIN]], %[[SEQUENCE]]#0

// CHECK-LABEL: func.func @verify(
// The flag is asked for together with the bounds.
//       CHECK:   scf.if
//       CHECK:     %[[FIRST:.+]] = arith.index_cast
//       CHECK:     %[[NEXT:.+]] = arith.index_cast
//       CHECK:     %[[FLAG:.+]] = memref.load %{{.+}} : memref<?xi1,
//       CHECK:     arith.select %[[FLAG]], %[[FIRST]], %[[NEXT]]
func.func @prefill(
    %q: tensor<?x?x32xbf16> {gdn.name = "q", gdn.dims = ["T", "Hk", "32"]},
    %k: tensor<?x?x32xbf16> {gdn.name = "k", gdn.dims = ["T", "Hk", "32"]},
    %v: tensor<?x?x64xbf16> {gdn.name = "v", gdn.dims = ["T", "Hv", "64"]},
    %g: tensor<?x?xf32> {gdn.name = "g", gdn.dims = ["T", "Hv"]},
    %beta: tensor<?x?xf32> {gdn.name = "beta", gdn.dims = ["T", "Hv"]},
    %ids: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %flags: tensor<?xi1> {gdn.name = "is_prefill", gdn.dims = ["N"]},
    %sp: !gdn.pool<?x?x64x32xf32> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "64", "32"]},
    %cu: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]})
    -> (tensor<?x?x64xbf16> {gdn.name = "core", gdn.dims = ["T", "Hv", "64"]})
    attributes {gdn.entry} {
  %slots = gdn.taken_slots %ids where(%flags) : tensor<?xi32>, tensor<?xi1>
  %o = gdn.kernel "prefill" {
    %core = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%sp)
        slots(%slots) sequences(%cu)
        : tensor<?x?x32xbf16>, tensor<?x?x32xbf16>, tensor<?x?x64xbf16>,
          tensor<?x?xf32>, tensor<?x?xf32>, !gdn.pool<?x?x64x32xf32>,
          tensor<?xi32>, tensor<?xi32> -> tensor<?x?x64xbf16>
    gdn.yield %core : tensor<?x?x64xbf16>
  } : tensor<?x?x64xbf16>
  return %o : tensor<?x?x64xbf16>
}

func.func @verify(
    %q: tensor<?x?x32xbf16> {gdn.name = "q", gdn.dims = ["T", "Hk", "32"]},
    %k: tensor<?x?x32xbf16> {gdn.name = "k", gdn.dims = ["T", "Hk", "32"]},
    %v: tensor<?x?x64xbf16> {gdn.name = "v", gdn.dims = ["T", "Hv", "64"]},
    %g: tensor<?x?xf32> {gdn.name = "g", gdn.dims = ["T", "Hv"]},
    %beta: tensor<?x?xf32> {gdn.name = "beta", gdn.dims = ["T", "Hv"]},
    %table: tensor<?x?xi32> {gdn.name = "token_slots", gdn.dims = ["N", "S"]},
    %accepted: tensor<?xi32> {gdn.name = "num_accepted", gdn.dims = ["N"]},
    %flags: tensor<?xi1> {gdn.name = "is_prefill", gdn.dims = ["N"]},
    %sp: !gdn.pool<?x?x64x32xf32> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "64", "32"]},
    %cu: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]})
    -> (tensor<?x?x64xbf16> {gdn.name = "core", gdn.dims = ["T", "Hv", "64"]})
    attributes {gdn.entry} {
  %all = gdn.accepted_slots %table[%accepted] sequences(%cu) max_tokens(8)
      : tensor<?x?xi32>, tensor<?xi32>, tensor<?xi32> -> tensor<?xi32>
  %slots = gdn.taken_slots %all where_not(%flags) : tensor<?xi32>, tensor<?xi1>
  %o = gdn.kernel "verify" {
    %core = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%sp)
        slots(%slots) sequences(%cu) token_slots(%table)
        : tensor<?x?x32xbf16>, tensor<?x?x32xbf16>, tensor<?x?x64xbf16>,
          tensor<?x?xf32>, tensor<?x?xf32>, !gdn.pool<?x?x64x32xf32>,
          tensor<?xi32>, tensor<?xi32> token_slots tensor<?x?xi32> -> tensor<?x?x64xbf16>
    gdn.yield %core : tensor<?x?x64xbf16>
  } : tensor<?x?x64xbf16>
  return %o : tensor<?x?x64xbf16>
}
