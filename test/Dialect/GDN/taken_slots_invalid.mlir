// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Constraints of gdn.taken_slots.
//
// RUN: gdn-opt %s -split-input-file -verify-diagnostics

func.func @c1_flags(%slots: tensor<3xi64>, %flags: tensor<4xi1>) {
  // expected-error @+1 {{'gdn.taken_slots' op expects dim 0 of 'flags' to be N = 3, set by dim 0 of 'slots', but got 4}}
  %own = gdn.taken_slots %slots where(%flags) : tensor<3xi64>, tensor<4xi1>
  return
}

// -----

func.func @flags_are_no_numbers(%slots: tensor<3xi64>, %flags: tensor<3xi32>) {
  // expected-error @+1 {{'gdn.taken_slots' op operand #1 must be}}
  %own = gdn.taken_slots %slots where(%flags) : tensor<3xi64>, tensor<3xi32>
  return
}
