// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn.unpack: parse, print, and print again, in both forms.
//
// RUN: gdn-opt %s | gdn-opt | FileCheck %s
// RUN: gdn-opt -mlir-print-op-generic %s | gdn-opt | FileCheck %s

// Two results of rank 2 beside four of rank 3, one block per key head.
// CHECK-LABEL: func.func @interleaved(
//  CHECK-SAME:   %[[X:.+]]: tensor<?x?xbf16>, %[[Y:.+]]: tensor<?x?xbf16>, %[[HK:.+]]: index, %[[HV:.+]]: index
//       CHECK:   gdn.unpack "qkvz" interleaved %[[X]] heads(%[[HK]], %[[HV]]) : tensor<?x?xbf16> -> tensor<?x?x96xbf16>, tensor<?x?x96xbf16>, tensor<?x?x192xbf16>, tensor<?x?x192xbf16>
//       CHECK:   gdn.unpack "ba" interleaved %[[Y]] heads(%[[HK]], %[[HV]]) : tensor<?x?xbf16> -> tensor<?x?xbf16>, tensor<?x?xbf16>
func.func @interleaved(%x: tensor<?x?xbf16>, %y: tensor<?x?xbf16>, %hk: index, %hv: index)
    -> (tensor<?x?x96xbf16>, tensor<?x?xbf16>) {
  %q, %k, %v, %z = gdn.unpack "qkvz" interleaved %x heads(%hk, %hv)
      : tensor<?x?xbf16> -> tensor<?x?x96xbf16>, tensor<?x?x96xbf16>, tensor<?x?x192xbf16>, tensor<?x?x192xbf16>
  %b, %a = gdn.unpack "ba" interleaved %y heads(%hk, %hv)
      : tensor<?x?xbf16> -> tensor<?x?xbf16>, tensor<?x?xbf16>
  return %q, %a : tensor<?x?x96xbf16>, tensor<?x?xbf16>
}

// Static head counts whose columns add up: 2*2*8 + 4*16 + 2*4 = 104.
// CHECK-LABEL: func.func @flat_static(
//       CHECK:   gdn.unpack "qkvab" flat
func.func @flat_static(%x: tensor<5x104xf32>, %hk: index, %hv: index) -> tensor<5x4x16xf32> {
  %q, %k, %v, %a, %b = gdn.unpack "qkvab" flat %x heads(%hk, %hv)
      : tensor<5x104xf32> -> tensor<5x2x8xf32>, tensor<5x2x8xf32>, tensor<5x4x16xf32>, tensor<5x4xf32>, tensor<5x4xf32>
  return %v : tensor<5x4x16xf32>
}

// One part is a reshape by heads.
// CHECK-LABEL: func.func @one_part(
//       CHECK:   gdn.unpack "z" flat
func.func @one_part(%x: tensor<?x?xf16>, %hk: index, %hv: index) -> tensor<?x?x128xf16> {
  %z = gdn.unpack "z" flat %x heads(%hk, %hv) : tensor<?x?xf16> -> tensor<?x?x128xf16>
  return %z : tensor<?x?x128xf16>
}
