// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn.mask_sequences: parse, print, and print again, in both forms.
//
// RUN: gdn-opt %s | gdn-opt | FileCheck %s
// RUN: gdn-opt -mlir-print-op-generic %s | gdn-opt | FileCheck %s

// Either pool will do, and either rank.
// CHECK-LABEL: func.func @ragged(
//       CHECK:   gdn.mask_sequences %{{.+}} of(%{{.+}}) slots(%{{.+}}) sequences(%{{.+}}) : tensor<?x?x128xf32>, !gdn.pool<?x?x128x128xf32>, tensor<?xi32>, tensor<?xi64> -> tensor<?x?x128xf32>
func.func @ragged(%x: tensor<?x?x128xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi64>, %pool: !gdn.pool<?x?x128x128xf32>) -> tensor<?x?x128xf32> {
  %y = gdn.mask_sequences %x of(%pool) slots(%slots) sequences(%cu)
      : tensor<?x?x128xf32>, !gdn.pool<?x?x128x128xf32>, tensor<?xi32>, tensor<?xi64> -> tensor<?x?x128xf32>
  return %y : tensor<?x?x128xf32>
}

// CHECK-LABEL: func.func @decode(
//       CHECK:   gdn.mask_sequences %{{.+}} of(%{{.+}}) slots(%{{.+}}) : tensor<?x?xbf16>, !gdn.pool<?x?x3xbf16>, tensor<?xi64> -> tensor<?x?xbf16>
func.func @decode(%x: tensor<?x?xbf16>, %slots: tensor<?xi64>, %pool: !gdn.pool<?x?x3xbf16>) -> tensor<?x?xbf16> {
  %y = gdn.mask_sequences %x of(%pool) slots(%slots)
      : tensor<?x?xbf16>, !gdn.pool<?x?x3xbf16>, tensor<?xi64> -> tensor<?x?xbf16>
  return %y : tensor<?x?xbf16>
}
