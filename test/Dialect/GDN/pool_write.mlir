// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn.pool_write: parse, print, and print again, in both forms.
//
// RUN: gdn-opt %s | gdn-opt | FileCheck %s
// RUN: gdn-opt -mlir-print-op-generic %s | gdn-opt | FileCheck %s

// CHECK-LABEL: func.func @states(
//       CHECK:   gdn.pool_write %{{.+}}, %{{.+}}[%{{.+}}] : tensor<?x?x128x64xf32>, !gdn.pool<?x?x128x64xbf16>, tensor<?xi32>
func.func @states(%s: tensor<?x?x128x64xf32>, %pool: !gdn.pool<?x?x128x64xbf16>, %slots: tensor<?xi32>) {
  gdn.pool_write %s, %pool[%slots] : tensor<?x?x128x64xf32>, !gdn.pool<?x?x128x64xbf16>, tensor<?xi32>
  return
}
