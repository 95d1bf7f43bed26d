// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Constraints of gdn.counted_slots.
//
// RUN: gdn-opt %s -split-input-file -verify-diagnostics

func.func @c1_accepted(%slots: tensor<3xi64>, %accepted: tensor<4xi32>, %steps: index) {
  // expected-error @+1 {{'gdn.counted_slots' op expects dim 0 of 'num_accepted' to be N = 3, set by dim 0 of 'slots', but got 4}}
  %rows = gdn.counted_slots %slots[%accepted] up_to(%steps) : tensor<3xi64>, tensor<4xi32>
  return
}

// -----

func.func @c1_bounds(%slots: tensor<3xi64>, %accepted: tensor<3xi32>, %steps: index, %cu: tensor<3xi32>) {
  // expected-error @+1 {{'gdn.counted_slots' op expects dim 0 of 'cu_seqlens' to be N + 1 = 4, N set by dim 0 of 'slots', but got 3}}
  %rows = gdn.counted_slots %slots[%accepted] up_to(%steps) sequences(%cu) max_tokens(8) : tensor<3xi64>, tensor<3xi32>, tensor<3xi32>
  return
}

// -----

func.func @c2_rows_alone(%slots: tensor<3xi64>, %accepted: tensor<3xi32>, %steps: index, %cu: tensor<4xi32>) {
  // expected-error @+1 {{'gdn.counted_slots' op expects 'max_tokens' to be given with 'cu_seqlens', but got 'cu_seqlens' alone}}
  %rows = gdn.counted_slots %slots[%accepted] up_to(%steps) sequences(%cu) : tensor<3xi64>, tensor<3xi32>, tensor<4xi32>
  return
}

// -----

func.func @c2_bound_alone(%slots: tensor<3xi64>, %accepted: tensor<3xi32>, %steps: index) {
  // expected-error @+1 {{'gdn.counted_slots' op expects 'max_tokens' to be given with 'cu_seqlens', but got 'max_tokens' alone}}
  %rows = gdn.counted_slots %slots[%accepted] up_to(%steps) max_tokens(8) : tensor<3xi64>, tensor<3xi32>
  return
}

// -----

func.func @c2_no_token(%slots: tensor<3xi64>, %accepted: tensor<3xi32>, %steps: index, %cu: tensor<4xi32>) {
  // expected-error @+1 {{'gdn.counted_slots' op expects 'max_tokens' to be at least 1, but got 0}}
  %rows = gdn.counted_slots %slots[%accepted] up_to(%steps) sequences(%cu) max_tokens(0) : tensor<3xi64>, tensor<3xi32>, tensor<4xi32>
  return
}
