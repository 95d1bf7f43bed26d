// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn.pool_zero: parse, print, and print again, in both forms.
//
// RUN: gdn-opt %s | gdn-opt | FileCheck %s
// RUN: gdn-opt -mlir-print-op-generic %s | gdn-opt | FileCheck %s

// CHECK-LABEL: func.func @fresh(
//       CHECK:   gdn.pool_zero %{{.+}}[%{{.+}}] : !gdn.pool<?x?x128x64xbf16>, tensor<?xi64>
func.func @fresh(%pool: !gdn.pool<?x?x128x64xbf16>, %slots: tensor<?xi64>) {
  gdn.pool_zero %pool[%slots] : !gdn.pool<?x?x128x64xbf16>, tensor<?xi64>
  return
}
