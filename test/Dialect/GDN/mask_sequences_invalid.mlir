// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn.mask_sequences: one case per constraint that the verifier owns (C1, C2).
//
// RUN: gdn-opt %s -split-input-file -verify-diagnostics

func.func @c1_rank(%x: tensor<?x?x64xf32>, %pool: !gdn.pool<?x?x3xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.mask_sequences' op expects 'result' to have rank 3, set by 'input', but got rank 2}}
  %y = gdn.mask_sequences %x of(%pool) slots(%slots) sequences(%cu)
      : tensor<?x?x64xf32>, !gdn.pool<?x?x3xf32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?xf32>
  return
}

// -----

func.func @c1_shape(%x: tensor<?x?x64xf32>, %pool: !gdn.pool<?x?x3xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.mask_sequences' op expects dim 2 of 'result' to be 64, set by dim 2 of 'input', but got 32}}
  %y = gdn.mask_sequences %x of(%pool) slots(%slots) sequences(%cu)
      : tensor<?x?x64xf32>, !gdn.pool<?x?x3xf32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?x32xf32>
  return
}

// -----

func.func @c1_element_type(%x: tensor<?x?xf32>, %pool: !gdn.pool<?x?x3xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.mask_sequences' op expects 'result' to have the element type of 'input', 'f32', but got 'bf16'}}
  %y = gdn.mask_sequences %x of(%pool) slots(%slots) sequences(%cu)
      : tensor<?x?xf32>, !gdn.pool<?x?x3xf32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?xbf16>
  return
}

// -----

func.func @c2_rows(%x: tensor<?x?xf32>, %pool: !gdn.pool<?x?x3xf32>, %slots: tensor<4xi32>, %cu: tensor<6xi32>) {
  // expected-error @+1 {{'gdn.mask_sequences' op expects dim 0 of 'cu_seqlens' to be N + 1 = 5, N set by dim 0 of 'slots', but got 6}}
  %y = gdn.mask_sequences %x of(%pool) slots(%slots) sequences(%cu)
      : tensor<?x?xf32>, !gdn.pool<?x?x3xf32>, tensor<4xi32>, tensor<6xi32> -> tensor<?x?xf32>
  return
}

// -----

func.func @c2_decode(%x: tensor<5x?xf32>, %pool: !gdn.pool<?x?x3xf32>, %slots: tensor<4xi32>) {
  // expected-error @+1 {{'gdn.mask_sequences' op expects dim 0 of 'slots' to be T = 5, set by dim 0 of 'input', but got 4}}
  %y = gdn.mask_sequences %x of(%pool) slots(%slots)
      : tensor<5x?xf32>, !gdn.pool<?x?x3xf32>, tensor<4xi32> -> tensor<?x?xf32>
  return
}
