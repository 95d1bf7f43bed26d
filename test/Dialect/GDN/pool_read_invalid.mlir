// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn.pool_read: one case per way to break the constraint that the verifier
// owns (C1).
//
// RUN: gdn-opt %s -split-input-file -verify-diagnostics

func.func @c1_rank(%pool: !gdn.pool<?x?x128x64xf32>, %slots: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.pool_read' op expects 'result' to have rank 4, set by 'pool', but got rank 3}}
  %s = gdn.pool_read %pool[%slots] : !gdn.pool<?x?x128x64xf32>, tensor<?xi32> -> tensor<?x?x128xf32>
  return
}

// -----

func.func @c1_size(%pool: !gdn.pool<?x?x128x64xf32>, %slots: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.pool_read' op expects dim 2 of 'result' to be 128, set by dim 2 of 'pool', but got 64}}
  %s = gdn.pool_read %pool[%slots] : !gdn.pool<?x?x128x64xf32>, tensor<?xi32> -> tensor<?x?x64x128xf32>
  return
}

// -----

func.func @c1_rows(%pool: !gdn.pool<?x?x128x64xf32>, %slots: tensor<4xi32>) {
  // expected-error @+1 {{'gdn.pool_read' op expects dim 0 of 'result' to be N = 4, set by dim 0 of 'slots', but got 5}}
  %s = gdn.pool_read %pool[%slots] : !gdn.pool<?x?x128x64xf32>, tensor<4xi32> -> tensor<5x?x128x64xf32>
  return
}
