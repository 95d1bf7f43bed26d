// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Constraints of gdn.accepted_slots.
//
// RUN: gdn-opt %s -split-input-file -verify-diagnostics

func.func @c1_accepted(%table: tensor<3x5xi64>, %accepted: tensor<4xi32>) {
  // expected-error @+1 {{'gdn.accepted_slots' op expects dim 0 of 'num_accepted' to be N = 3, set by dim 0 of 'token_slots', but got 4}}
  %slots = gdn.accepted_slots %table[%accepted] : tensor<3x5xi64>, tensor<4xi32> -> tensor<?xi64>
  return
}

// -----

func.func @c1_result(%table: tensor<?x5xi64>, %accepted: tensor<4xi32>) {
  // expected-error @+1 {{'gdn.accepted_slots' op expects dim 0 of 'result' to be N = 4, set by dim 0 of 'num_accepted', but got 3}}
  %slots = gdn.accepted_slots %table[%accepted] : tensor<?x5xi64>, tensor<4xi32> -> tensor<3xi64>
  return
}

// -----

func.func @c2_element(%table: tensor<?x5xi64>, %accepted: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.accepted_slots' op expects 'result' to have the element type of 'token_slots', 'i64', but got 'i32'}}
  %slots = gdn.accepted_slots %table[%accepted] : tensor<?x5xi64>, tensor<?xi32> -> tensor<?xi32>
  return
}
