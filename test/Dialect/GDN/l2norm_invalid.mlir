// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn.l2norm: one case per constraint that the verifier owns (C1, C2).
//
// RUN: gdn-opt %s -split-input-file -verify-diagnostics

func.func @c1_dynamic(%x: tensor<?x?x?xf32>) {
  // expected-error @+1 {{'gdn.l2norm' op expects dim 2 of 'input', d, to be static, but got a dynamic size}}
  %y = gdn.l2norm %x : tensor<?x?x?xf32> -> tensor<?x?x96xf32>
  return
}

// -----

func.func @c1_dynamic_result(%x: tensor<?x?x96xf32>) {
  // expected-error @+1 {{'gdn.l2norm' op expects dim 2 of 'result', d, to be static, but got a dynamic size}}
  %y = gdn.l2norm %x : tensor<?x?x96xf32> -> tensor<?x?x?xf32>
  return
}

// -----

func.func @c1_shape(%x: tensor<?x?x96xf32>) {
  // expected-error @+1 {{'gdn.l2norm' op expects dim 2 of 'result' to be d = 96, set by dim 2 of 'input', but got 64}}
  %y = gdn.l2norm %x : tensor<?x?x96xf32> -> tensor<?x?x64xf32>
  return
}

// -----

func.func @c2_eps(%x: tensor<?x?x96xf32>) {
  // expected-error @+1 {{'gdn.l2norm' op expects 'eps' to be positive and finite, but got -0.5}}
  %y = gdn.l2norm %x {eps = -0.5 : f32} : tensor<?x?x96xf32> -> tensor<?x?x96xf32>
  return
}

// -----

func.func @c2_eps_nan(%x: tensor<?x?x96xf32>) {
  // expected-error @+1 {{'gdn.l2norm' op expects 'eps' to be positive and finite, but got NaN}}
  %y = gdn.l2norm %x {eps = 0x7FC00000 : f32} : tensor<?x?x96xf32> -> tensor<?x?x96xf32>
  return
}
