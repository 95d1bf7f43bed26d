// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// @mnemonic@: one case per constraint, with its whole message.
//
// RUN: @opt@ %s -split-input-file -verify-diagnostics

func.func @c1_types_differ(%x: tensor<4x2x128xf32>) -> tensor<4x2x64xf32> {
  // expected-error @+1 {{failed to verify that all of {input, result} have same type}}
  %y = "@mnemonic@"(%x) : (tensor<4x2x128xf32>) -> tensor<4x2x64xf32>
  return %y : tensor<4x2x64xf32>
}
