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

// -----

func.func @c1_rows(%table: tensor<3x5xi64>, %accepted: tensor<?xi32>, %cu: tensor<3xi32>) {
  // expected-error @+1 {{'gdn.accepted_slots' op expects dim 0 of 'cu_seqlens' to be N + 1 = 4, N set by dim 0 of 'token_slots', but got 3}}
  %slots = gdn.accepted_slots %table[%accepted] sequences(%cu) max_tokens(8) : tensor<3x5xi64>, tensor<?xi32>, tensor<3xi32> -> tensor<3xi64>
  return
}

// -----

func.func @c3_rows_alone(%table: tensor<3x5xi64>, %accepted: tensor<?xi32>, %cu: tensor<4xi32>) {
  // expected-error @+1 {{'gdn.accepted_slots' op expects 'max_tokens' to be given with 'cu_seqlens', but got 'cu_seqlens' alone}}
  %slots = gdn.accepted_slots %table[%accepted] sequences(%cu) : tensor<3x5xi64>, tensor<?xi32>, tensor<4xi32> -> tensor<3xi64>
  return
}

// -----

func.func @c3_bound_alone(%table: tensor<3x5xi64>, %accepted: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.accepted_slots' op expects 'max_tokens' to be given with 'cu_seqlens', but got 'max_tokens' alone}}
  %slots = gdn.accepted_slots %table[%accepted] max_tokens(8) : tensor<3x5xi64>, tensor<?xi32> -> tensor<3xi64>
  return
}

// -----

func.func @c3_no_tokens(%table: tensor<3x5xi64>, %accepted: tensor<?xi32>, %cu: tensor<4xi32>) {
  // expected-error @+1 {{'gdn.accepted_slots' op expects 'max_tokens' to be at least 1, but got 0}}
  %slots = gdn.accepted_slots %table[%accepted] sequences(%cu) max_tokens(0) : tensor<3x5xi64>, tensor<?xi32>, tensor<4xi32> -> tensor<3xi64>
  return
}
