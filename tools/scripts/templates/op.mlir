// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// @mnemonic@: parse, print, and print again, in both forms.
//
// RUN: @opt@ %s | @opt@ | FileCheck %s
// RUN: @opt@ -mlir-print-op-generic %s | @opt@ | FileCheck %s

// CHECK-LABEL: func.func @static_sizes(
//       CHECK:   %[[RESULT:.+]] = @mnemonic@
//       CHECK:   return %[[RESULT]]
func.func @static_sizes(%x: tensor<4x2x128xf32>) -> tensor<4x2x128xf32> {
  %y = @mnemonic@ %x : tensor<4x2x128xf32>
  return %y : tensor<4x2x128xf32>
}
