// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn.kernel and gdn.yield: parse, print, and print again, in both forms.
//
// RUN: gdn-opt %s | gdn-opt | FileCheck %s
// RUN: gdn-opt -mlir-print-op-generic %s | gdn-opt | FileCheck %s

// The body uses values from outside; one of its two values is a result.
// CHECK-LABEL: func.func @one_result(
//       CHECK:   %[[R:.+]] = gdn.kernel "normalise" {
//       CHECK:     %[[Y:.+]] = gdn.l2norm
//       CHECK:     %[[Z:.+]] = gdn.cast %[[Y]]
//       CHECK:     gdn.yield %[[Z]] : tensor<?x?x128xbf16>
//       CHECK:   } : tensor<?x?x128xbf16>
//       CHECK:   return %[[R]]
func.func @one_result(%x: tensor<?x?x128xbf16>) -> tensor<?x?x128xbf16> {
  %0 = gdn.kernel "normalise" {
    %y = gdn.l2norm %x : tensor<?x?x128xbf16> -> tensor<?x?x128xf32>
    %z = gdn.cast %y : tensor<?x?x128xf32> -> tensor<?x?x128xbf16>
    gdn.yield %z : tensor<?x?x128xbf16>
  } : tensor<?x?x128xbf16>
  return %0 : tensor<?x?x128xbf16>
}

// A kernel for its effects only.
// CHECK-LABEL: func.func @no_result(
//       CHECK:   gdn.kernel "scatter" {
//  CHECK-NEXT:     gdn.pool_write
//  CHECK-NEXT:   }
func.func @no_result(%s: tensor<?x?x8xf32>, %pool: !gdn.pool<?x?x8xf32>, %slots: tensor<?xi32>) {
  gdn.kernel "scatter" {
    gdn.pool_write %s, %pool[%slots] : tensor<?x?x8xf32>, !gdn.pool<?x?x8xf32>, tensor<?xi32>
  }
  return
}
