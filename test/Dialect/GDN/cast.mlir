// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn.cast: parse, print, and print again, in both forms.
//
// RUN: gdn-opt %s | gdn-opt | FileCheck %s
// RUN: gdn-opt -mlir-print-op-generic %s | gdn-opt | FileCheck %s

// CHECK-LABEL: func.func @cast(
//       CHECK:   gdn.cast %{{.+}} : tensor<?x?xf32> -> tensor<?x4xbf16>
//       CHECK:   gdn.cast %{{.+}} : tensor<?x?x128xf16> -> tensor<?x?x128xf32>
func.func @cast(%x: tensor<?x?xf32>, %y: tensor<?x?x128xf16>) -> (tensor<?x4xbf16>, tensor<?x?x128xf32>) {
  %0 = gdn.cast %x : tensor<?x?xf32> -> tensor<?x4xbf16>
  %1 = gdn.cast %y : tensor<?x?x128xf16> -> tensor<?x?x128xf32>
  return %0, %1 : tensor<?x4xbf16>, tensor<?x?x128xf32>
}
