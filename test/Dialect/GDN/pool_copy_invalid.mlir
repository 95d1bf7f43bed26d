// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn.pool_copy: one case per way to break a constraint that the verifier owns.
//
// RUN: gdn-opt %s -split-input-file -verify-diagnostics

func.func @c1_rank(%a: !gdn.pool<?x?x128x64xf32>, %b: !gdn.pool<?x?x3xf32>, %slots: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.pool_copy' op expects 'target' to have rank 4, set by 'source', but got rank 3}}
  gdn.pool_copy %a[%slots] to %b[%slots] : !gdn.pool<?x?x128x64xf32>, tensor<?xi32> to !gdn.pool<?x?x3xf32>, tensor<?xi32>
  return
}

// -----

func.func @c1_size(%a: !gdn.pool<?x?x128x64xf32>, %b: !gdn.pool<?x?x64x64xf32>, %slots: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.pool_copy' op expects dim 2 of 'target' to be 128, set by dim 2 of 'source', but got 64}}
  gdn.pool_copy %a[%slots] to %b[%slots] : !gdn.pool<?x?x128x64xf32>, tensor<?xi32> to !gdn.pool<?x?x64x64xf32>, tensor<?xi32>
  return
}

// -----

func.func @c2_element_type(%a: !gdn.pool<?x?x3xf32>, %b: !gdn.pool<?x?x3xbf16>, %slots: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.pool_copy' op expects 'target' to have the element type of 'source', 'f32', but got 'bf16'}}
  gdn.pool_copy %a[%slots] to %b[%slots] : !gdn.pool<?x?x3xf32>, tensor<?xi32> to !gdn.pool<?x?x3xbf16>, tensor<?xi32>
  return
}

// -----

func.func @c3_rows(%a: !gdn.pool<?x?x3xf32>, %from: tensor<4xi32>, %to: tensor<5xi32>) {
  // expected-error @+1 {{'gdn.pool_copy' op expects dim 0 of 'write_slots' to be N = 4, set by dim 0 of 'slots', but got 5}}
  gdn.pool_copy %a[%from] to %a[%to] : !gdn.pool<?x?x3xf32>, tensor<4xi32> to !gdn.pool<?x?x3xf32>, tensor<5xi32>
  return
}
