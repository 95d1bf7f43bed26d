// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Views of a flat packing: each part starts where the heads of the parts
// before it end, and its heads follow each other.
//
// RUN: gdn-opt %s -convert-gdn-to-tile -canonicalize -cse | FileCheck %s

// CHECK-LABEL: func.func @core(
//  CHECK-SAME:   %[[HK:[a-z0-9]+]]: index {gdn.name = "Hk"}, %[[HV:[a-z0-9]+]]: index {gdn.name = "Hv"}
//  CHECK-SAME:   %[[QKV:[a-z0-9]+]]: memref<?x?xbf16, strided<[?, 1], offset: ?>> {gdn.name = "qkv"}
//   CHECK-DAG:   %[[C32:.+]] = arith.constant 32 : index
//   CHECK-DAG:   %[[C64:.+]] = arith.constant 64 : index
//       CHECK:   %[[R:.+]] = arith.divui %[[HV]], %[[HK]]
//       CHECK:   %{{.+}}, %[[START:.+]], %{{.+}}:2, %[[TOKEN:.+]]:2 = memref.extract_strided_metadata %[[QKV]]
//       CHECK:   memref.reinterpret_cast %[[QKV]] to offset: [%[[START]]], sizes: [%{{.+}}, %[[HK]], 32], strides: [%[[TOKEN]]#0, 32, 1]
//       CHECK:   %[[KEYS:.+]] = arith.muli %[[HK]], %[[C32]]
//       CHECK:   %[[K_START:.+]] = arith.addi %[[START]], %[[KEYS]]
//       CHECK:   memref.reinterpret_cast %[[QKV]] to offset: [%[[K_START]]], sizes: [%{{.+}}, %[[HK]], 32], strides: [%[[TOKEN]]#0, 32, 1]
//       CHECK:   %[[BOTH:.+]] = arith.addi %[[KEYS]], %[[KEYS]]
//       CHECK:   %[[GROUP:.+]] = arith.muli %[[R]], %[[C64]]
//       CHECK:   %[[V_START:.+]] = arith.addi %[[START]], %[[BOTH]]
//       CHECK:   memref.reinterpret_cast %[[QKV]] to offset: [%[[V_START]]], sizes: [%{{.+}}, %[[HK]], %[[R]], 64], strides: [%[[TOKEN]]#0, %[[GROUP]], 64, 1]
func.func @core(
    %hk: index {gdn.name = "Hk"}, %hv: index {gdn.name = "Hv"},
    %qkv: tensor<?x?xbf16> {gdn.name = "qkv", gdn.dims = ["N", "64*Hk + 64*Hv"]},
    %g: tensor<?x?xf32> {gdn.name = "g", gdn.dims = ["N", "Hv"]},
    %beta: tensor<?x?xf32> {gdn.name = "beta", gdn.dims = ["N", "Hv"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %sp: !gdn.pool<?x?x64x32xf32> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "64", "32"]})
    -> (tensor<?x?x64xbf16> {gdn.name = "core", gdn.dims = ["N", "Hv", "64"]})
    attributes {gdn.entry} {
  %q, %k, %v = gdn.unpack "qkv" flat %qkv heads(%hk, %hv)
      : tensor<?x?xbf16> -> tensor<?x?x32xbf16>, tensor<?x?x32xbf16>,
        tensor<?x?x64xbf16>
  %o = gdn.kernel "core" {
    %core = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%sp) slots(%slots)
        : tensor<?x?x32xbf16>, tensor<?x?x32xbf16>, tensor<?x?x64xbf16>,
          tensor<?x?xf32>, tensor<?x?xf32>, !gdn.pool<?x?x64x32xf32>,
          tensor<?xi32> -> tensor<?x?x64xbf16>
    gdn.yield %core : tensor<?x?x64xbf16>
  } : tensor<?x?x64xbf16>
  return %o : tensor<?x?x64xbf16>
}
