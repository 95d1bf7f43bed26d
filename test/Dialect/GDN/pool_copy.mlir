// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn.pool_copy: parse, print, and print again, in both forms.
//
// RUN: gdn-opt %s | gdn-opt | FileCheck %s
// RUN: gdn-opt -mlir-print-op-generic %s | gdn-opt | FileCheck %s

// CHECK-LABEL: func.func @fork(
//       CHECK:   gdn.pool_copy %[[POOL:.+]][%{{.+}}] to %[[POOL]][%{{.+}}] : !gdn.pool<?x?x128x64xbf16>, tensor<?xi32> to !gdn.pool<?x?x128x64xbf16>, tensor<?xi64>
func.func @fork(%pool: !gdn.pool<?x?x128x64xbf16>, %from: tensor<?xi32>, %to: tensor<?xi64>) {
  gdn.pool_copy %pool[%from] to %pool[%to]
      : !gdn.pool<?x?x128x64xbf16>, tensor<?xi32> to !gdn.pool<?x?x128x64xbf16>, tensor<?xi64>
  return
}

// CHECK-LABEL: func.func @between(
//       CHECK:   gdn.pool_copy %{{.+}}[%{{.+}}] to %{{.+}}[%{{.+}}] : !gdn.pool<?x?x3xf32>, tensor<2xi32> to !gdn.pool<?x8x3xf32>, tensor<2xi32>
func.func @between(%a: !gdn.pool<?x?x3xf32>, %b: !gdn.pool<?x8x3xf32>, %slots: tensor<2xi32>) {
  gdn.pool_copy %a[%slots] to %b[%slots]
      : !gdn.pool<?x?x3xf32>, tensor<2xi32> to !gdn.pool<?x8x3xf32>, tensor<2xi32>
  return
}
