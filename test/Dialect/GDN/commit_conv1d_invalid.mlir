// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Constraints of gdn.commit_conv1d.
//
// RUN: gdn-opt %s -split-input-file -verify-diagnostics

func.func @c1_rank(%pool: !gdn.pool<?x?x7x7xf32>, %slots: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.commit_conv1d' op expects 'pool' to have rank 3, P x D x columns, but got rank 4}}
  gdn.commit_conv1d %pool[%slots] accepted(%slots) window 3 : !gdn.pool<?x?x7x7xf32>, tensor<?xi32>, tensor<?xi32>
  return
}

// -----

func.func @c1_columns(%pool: !gdn.pool<?x?x3xf32>, %slots: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.commit_conv1d' op expects dim 2 of 'pool' to be 3 + S with S from 1 to 8, but got 3}}
  gdn.commit_conv1d %pool[%slots] accepted(%slots) window 3 : !gdn.pool<?x?x3xf32>, tensor<?xi32>, tensor<?xi32>
  return
}

// -----

func.func @c1_too_many(%pool: !gdn.pool<?x?x12xf32>, %slots: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.commit_conv1d' op expects dim 2 of 'pool' to be 3 + S with S from 1 to 8, but got 12}}
  gdn.commit_conv1d %pool[%slots] accepted(%slots) window 3 : !gdn.pool<?x?x12xf32>, tensor<?xi32>, tensor<?xi32>
  return
}

// -----

func.func @c2_accepted(%pool: !gdn.pool<?x?x7xf32>, %slots: tensor<5xi32>, %accepted: tensor<4xi32>) {
  // expected-error @+1 {{'gdn.commit_conv1d' op expects dim 0 of 'num_accepted' to be N = 5, set by dim 0 of 'slots', but got 4}}
  gdn.commit_conv1d %pool[%slots] accepted(%accepted) window 3 : !gdn.pool<?x?x7xf32>, tensor<5xi32>, tensor<4xi32>
  return
}

// -----

func.func @c3_window(%pool: !gdn.pool<?x?x?xf32>, %slots: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.commit_conv1d' op expects 'window' to be from 1 to 7, but got 0}}
  gdn.commit_conv1d %pool[%slots] accepted(%slots) window 0 : !gdn.pool<?x?x?xf32>, tensor<?xi32>, tensor<?xi32>
  return
}
