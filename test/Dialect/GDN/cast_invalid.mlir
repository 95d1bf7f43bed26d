// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn.cast: one case per way to break the constraint that the verifier owns
// (C1).
//
// RUN: gdn-opt %s -split-input-file -verify-diagnostics

func.func @c1_rank(%x: tensor<?x?xf32>) {
  // expected-error @+1 {{'gdn.cast' op expects 'result' to have rank 2, set by 'input', but got rank 3}}
  %y = gdn.cast %x : tensor<?x?xf32> -> tensor<?x?x8xf32>
  return
}

// -----

func.func @c1_size(%x: tensor<?x4xf32>) {
  // expected-error @+1 {{'gdn.cast' op expects dim 1 of 'result' to be 4, set by dim 1 of 'input', but got 8}}
  %y = gdn.cast %x : tensor<?x4xf32> -> tensor<?x8xbf16>
  return
}
