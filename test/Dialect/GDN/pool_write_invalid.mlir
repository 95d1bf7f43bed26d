// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn.pool_write: one case per way to break the constraint that the verifier
// owns (C1).
//
// RUN: gdn-opt %s -split-input-file -verify-diagnostics

func.func @c1_rank(%s: tensor<?x?x128xf32>, %pool: !gdn.pool<?x?x128x64xf32>, %slots: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.pool_write' op expects 'value' to have rank 4, set by 'pool', but got rank 3}}
  gdn.pool_write %s, %pool[%slots] : tensor<?x?x128xf32>, !gdn.pool<?x?x128x64xf32>, tensor<?xi32>
  return
}

// -----

func.func @c1_size(%s: tensor<?x?x128x32xf32>, %pool: !gdn.pool<?x?x128x64xf32>, %slots: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.pool_write' op expects dim 3 of 'value' to be 64, set by dim 3 of 'pool', but got 32}}
  gdn.pool_write %s, %pool[%slots] : tensor<?x?x128x32xf32>, !gdn.pool<?x?x128x64xf32>, tensor<?xi32>
  return
}

// -----

func.func @c1_rows(%s: tensor<5x?x128x64xf32>, %pool: !gdn.pool<?x?x128x64xf32>, %slots: tensor<4xi32>) {
  // expected-error @+1 {{'gdn.pool_write' op expects dim 0 of 'value' to be N = 4, set by dim 0 of 'slots', but got 5}}
  gdn.pool_write %s, %pool[%slots] : tensor<5x?x128x64xf32>, !gdn.pool<?x?x128x64xf32>, tensor<4xi32>
  return
}
