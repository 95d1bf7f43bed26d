// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn.pool_read: parse, print, and print again, in both forms.
//
// RUN: gdn-opt %s | gdn-opt | FileCheck %s
// RUN: gdn-opt -mlir-print-op-generic %s | gdn-opt | FileCheck %s

// The result need not have the pool's element type.
// CHECK-LABEL: func.func @states(
//       CHECK:   gdn.pool_read %{{.+}}[%{{.+}}] : !gdn.pool<?x?x128x64xbf16>, tensor<?xi32> -> tensor<?x?x128x64xf32>
func.func @states(%pool: !gdn.pool<?x?x128x64xbf16>, %slots: tensor<?xi32>) -> tensor<?x?x128x64xf32> {
  %s = gdn.pool_read %pool[%slots] : !gdn.pool<?x?x128x64xbf16>, tensor<?xi32> -> tensor<?x?x128x64xf32>
  return %s : tensor<?x?x128x64xf32>
}

// CHECK-LABEL: func.func @inputs(
//       CHECK:   gdn.pool_read %{{.+}}[%{{.+}}] : !gdn.pool<?x?x3xf32>, tensor<2xi64> -> tensor<2x?x3xf32>
func.func @inputs(%pool: !gdn.pool<?x?x3xf32>, %slots: tensor<2xi64>) -> tensor<2x?x3xf32> {
  %s = gdn.pool_read %pool[%slots] : !gdn.pool<?x?x3xf32>, tensor<2xi64> -> tensor<2x?x3xf32>
  return %s : tensor<2x?x3xf32>
}
