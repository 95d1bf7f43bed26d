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
