// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn.gated_rms_norm: one case per constraint that the verifier owns (C1 to
// C4).
//
// RUN: gdn-opt %s -split-input-file -verify-diagnostics

func.func @c1_dynamic(%x: tensor<?x?x?xf32>, %z: tensor<?x?x128xf32>, %w: tensor<128xf32>) {
  // expected-error @+1 {{'gdn.gated_rms_norm' op expects dim 2 of 'input', dv, to be static, but got a dynamic size}}
  %y = gdn.gated_rms_norm %x, %z, %w silu : tensor<?x?x?xf32>, tensor<?x?x128xf32>, tensor<128xf32> -> tensor<?x?x128xf32>
  return
}

// -----

func.func @c1_gate(%x: tensor<?x4x128xf32>, %z: tensor<?x8x128xf32>, %w: tensor<128xf32>) {
  // expected-error @+1 {{'gdn.gated_rms_norm' op expects dim 1 of 'gate' to be Hv = 4, set by dim 1 of 'input', but got 8}}
  %y = gdn.gated_rms_norm %x, %z, %w silu : tensor<?x4x128xf32>, tensor<?x8x128xf32>, tensor<128xf32> -> tensor<?x?x128xf32>
  return
}

// -----

func.func @c1_result(%x: tensor<?x?x128xf32>, %z: tensor<?x?x128xf32>, %w: tensor<128xf32>) {
  // expected-error @+1 {{'gdn.gated_rms_norm' op expects dim 2 of 'result' to be dv = 128, set by dim 2 of 'input', but got 64}}
  %y = gdn.gated_rms_norm %x, %z, %w silu : tensor<?x?x128xf32>, tensor<?x?x128xf32>, tensor<128xf32> -> tensor<?x?x64xf32>
  return
}

// -----

func.func @c2_weight(%x: tensor<?x?x128xf32>, %z: tensor<?x?x128xf32>, %w: tensor<256xf32>) {
  // expected-error @+1 {{'gdn.gated_rms_norm' op expects dim 0 of 'weight' to be dv = 128, set by dim 2 of 'input', but got 256}}
  %y = gdn.gated_rms_norm %x, %z, %w silu : tensor<?x?x128xf32>, tensor<?x?x128xf32>, tensor<256xf32> -> tensor<?x?x128xf32>
  return
}

// -----

func.func @c3_activation(%x: tensor<?x?x128xf32>, %z: tensor<?x?x128xf32>, %w: tensor<128xf32>) {
  // expected-error @+1 {{'gdn.gated_rms_norm' op expects the activation to be silu or sigmoid, but got identity}}
  %y = gdn.gated_rms_norm %x, %z, %w identity : tensor<?x?x128xf32>, tensor<?x?x128xf32>, tensor<128xf32> -> tensor<?x?x128xf32>
  return
}

// -----

func.func @c4_eps(%x: tensor<?x?x128xf32>, %z: tensor<?x?x128xf32>, %w: tensor<128xf32>) {
  // expected-error @+1 {{'gdn.gated_rms_norm' op expects 'eps' to be positive and finite, but got 0}}
  %y = gdn.gated_rms_norm %x, %z, %w silu {eps = 0.0 : f32} : tensor<?x?x128xf32>, tensor<?x?x128xf32>, tensor<128xf32> -> tensor<?x?x128xf32>
  return
}

// -----

func.func @c3_neither(%x: tensor<?x?x128xf32>, %z: tensor<?x?x128xf32>, %w: tensor<128xf32>) {
  // expected-error @+1 {{'gdn.gated_rms_norm' op expects an activation or 'constants', but got neither}}
  %y = gdn.gated_rms_norm %x, %z, %w : tensor<?x?x128xf32>, tensor<?x?x128xf32>, tensor<128xf32> -> tensor<?x?x128xf32>
  return
}

// -----

func.func @c3_both(%x: tensor<?x?x128xf32>, %z: tensor<?x?x128xf32>, %w: tensor<128xf32>, %c: tensor<2xf32>) {
  // expected-error @+1 {{'gdn.gated_rms_norm' op expects an activation or 'constants', but got both}}
  %y = gdn.gated_rms_norm %x, %z, %w silu constants(%c : tensor<2xf32>) : tensor<?x?x128xf32>, tensor<?x?x128xf32>, tensor<128xf32> -> tensor<?x?x128xf32>
  return
}

// -----

func.func @c5_size(%x: tensor<?x?x128xf32>, %z: tensor<?x?x128xf32>, %w: tensor<128xf32>, %c: tensor<3xf32>) {
  // expected-error @+1 {{'gdn.gated_rms_norm' op expects 'constants' to have 2 elements, but got 'tensor<3xf32>'}}
  %y = gdn.gated_rms_norm %x, %z, %w constants(%c : tensor<3xf32>) : tensor<?x?x128xf32>, tensor<?x?x128xf32>, tensor<128xf32> -> tensor<?x?x128xf32>
  return
}
