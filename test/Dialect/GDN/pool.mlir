// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// !gdn.pool: parse, print, and print again.
//
// RUN: gdn-opt %s | gdn-opt | FileCheck %s
// RUN: gdn-opt -mlir-print-op-generic %s | gdn-opt | FileCheck %s

// CHECK-LABEL: func.func private @pools(
//  CHECK-SAME:   !gdn.pool<?x?x128x64xf32>, !gdn.pool<?x?x3xbf16>, !gdn.pool<?x16x128x128xf16>, !gdn.pool<?x?xf32>
func.func private @pools(!gdn.pool<?x?x128x64xf32>, !gdn.pool<?x?x3xbf16>, !gdn.pool<?x16x128x128xf16>, !gdn.pool<?x?xf32>)
