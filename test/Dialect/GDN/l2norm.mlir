// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn.l2norm: parse, print, and print again, in both forms.
//
// RUN: gdn-opt %s | gdn-opt | FileCheck %s
// RUN: gdn-opt -mlir-print-op-generic %s | gdn-opt | FileCheck %s

// CHECK-LABEL: func.func @default_eps(
//       CHECK:   gdn.l2norm %{{.+}} : tensor<?x?x96xbf16> -> tensor<?x?x96xf32>
func.func @default_eps(%x: tensor<?x?x96xbf16>) -> tensor<?x?x96xf32> {
  %y = gdn.l2norm %x : tensor<?x?x96xbf16> -> tensor<?x?x96xf32>
  return %y : tensor<?x?x96xf32>
}

// CHECK-LABEL: func.func @own_eps(
//       CHECK:   gdn.l2norm %{{.+}} {eps = 1.000000e-03 : f32} : tensor<3x2x8xf16> -> tensor<3x2x8xf16>
func.func @own_eps(%x: tensor<3x2x8xf16>) -> tensor<3x2x8xf16> {
  %y = gdn.l2norm %x {eps = 1.0e-3 : f32} : tensor<3x2x8xf16> -> tensor<3x2x8xf16>
  return %y : tensor<3x2x8xf16>
}
