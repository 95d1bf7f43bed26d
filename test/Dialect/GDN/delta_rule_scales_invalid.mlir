// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn.delta_rule: constraints of pending tokens in f16 (C10).
//
// RUN: gdn-opt %s -split-input-file -verify-diagnostics

func.func @c10_scales_alone(%q: tensor<?x?x64xf32>, %g: tensor<?x?xf32>, %pool: !gdn.pool<?x?x64x64xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>,
    %keys: !gdn.pool<?x?x8x64xf16>, %deltas: !gdn.pool<?x?x8x64xf16>, %decays: !gdn.pool<?x?x8xf32>, %counts: !gdn.pool<?x?xi32>, %scales: !gdn.pool<?x?x8xf32>) {
  // expected-error @+1 {{'gdn.delta_rule' op expects 'pending' to be given with 'delta_scales', but got none}}
  %o = gdn.delta_rule %q, %q, %q gates(%g, %g) pool(%pool) slots(%slots) delta_scales(%scales)
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<?xi32> delta_scales !gdn.pool<?x?x8xf32> -> tensor<?x?x64xf32>
  return
}

// -----

func.func @c10_scales_without_counts(%q: tensor<?x?x64xf32>, %g: tensor<?x?xf32>, %pool: !gdn.pool<?x?x64x64xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>,
    %keys: !gdn.pool<?x?x8x64xf16>, %deltas: !gdn.pool<?x?x8x64xf16>, %decays: !gdn.pool<?x?x8xf32>, %counts: !gdn.pool<?x?xi32>, %scales: !gdn.pool<?x?x8xf32>) {
  // expected-error @+1 {{'gdn.delta_rule' op expects 'pending_counts' to be given with 'pending_scales', but got none}}
  %o = gdn.delta_rule %q, %q, %q gates(%g, %g) pool(%pool) slots(%slots) sequences(%cu) accepted(%slots) pending(%keys, %deltas, %decays) delta_scales(%scales)
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<?xi32>, tensor<?xi32> accepted tensor<?xi32> pending !gdn.pool<?x?x8x64xf16>, !gdn.pool<?x?x8x64xf16>, !gdn.pool<?x?x8xf32> delta_scales !gdn.pool<?x?x8xf32> -> tensor<?x?x64xf32>
  return
}

// -----

func.func @c10_scaled_keys(%q: tensor<?x?x64xf32>, %g: tensor<?x?xf32>, %pool: !gdn.pool<?x?x64x64xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>,
    %keys: !gdn.pool<?x?x8x64xf32>, %deltas: !gdn.pool<?x?x8x64xf16>, %decays: !gdn.pool<?x?x8xf32>, %counts: !gdn.pool<?x?xi32>, %scales: !gdn.pool<?x?x8xf32>) {
  // expected-error @+1 {{'gdn.delta_rule' op expects the elements of 'pending_keys' to be 'f16' beside 'pending_scales', but got 'f32'}}
  %o = gdn.delta_rule %q, %q, %q gates(%g, %g) pool(%pool) slots(%slots) pending(%keys, %deltas, %decays) counts(%counts) delta_scales(%scales)
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<?xi32> pending !gdn.pool<?x?x8x64xf32>, !gdn.pool<?x?x8x64xf16>, !gdn.pool<?x?x8xf32> counts !gdn.pool<?x?xi32> delta_scales !gdn.pool<?x?x8xf32> -> tensor<?x?x64xf32>
  return
}

// -----

func.func @c10_scaled_deltas(%q: tensor<?x?x64xf32>, %g: tensor<?x?xf32>, %pool: !gdn.pool<?x?x64x64xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>,
    %keys: !gdn.pool<?x?x8x64xf16>, %deltas: !gdn.pool<?x?x8x64xbf16>, %decays: !gdn.pool<?x?x8xf32>, %counts: !gdn.pool<?x?xi32>, %scales: !gdn.pool<?x?x8xf32>) {
  // expected-error @+1 {{'gdn.delta_rule' op expects the elements of 'pending_deltas' to be 'f16' beside 'pending_scales', but got 'bf16'}}
  %o = gdn.delta_rule %q, %q, %q gates(%g, %g) pool(%pool) slots(%slots) pending(%keys, %deltas, %decays) counts(%counts) delta_scales(%scales)
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<?xi32> pending !gdn.pool<?x?x8x64xf16>, !gdn.pool<?x?x8x64xbf16>, !gdn.pool<?x?x8xf32> counts !gdn.pool<?x?xi32> delta_scales !gdn.pool<?x?x8xf32> -> tensor<?x?x64xf32>
  return
}

// -----

func.func @c10_without_scales(%q: tensor<?x?x64xf32>, %g: tensor<?x?xf32>, %pool: !gdn.pool<?x?x64x64xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>,
    %keys: !gdn.pool<?x?x8x64xf16>, %deltas: !gdn.pool<?x?x8x64xf16>, %decays: !gdn.pool<?x?x8xf32>, %counts: !gdn.pool<?x?xi32>, %scales: !gdn.pool<?x?x8xf32>) {
  // expected-error @+1 {{'gdn.delta_rule' op expects the elements of 'pending_keys' to be 'f32', but got 'f16'}}
  %o = gdn.delta_rule %q, %q, %q gates(%g, %g) pool(%pool) slots(%slots) pending(%keys, %deltas, %decays) counts(%counts)
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<?xi32> pending !gdn.pool<?x?x8x64xf16>, !gdn.pool<?x?x8x64xf16>, !gdn.pool<?x?x8xf32> counts !gdn.pool<?x?xi32> -> tensor<?x?x64xf32>
  return
}

// -----

func.func @c10_scales_elements(%q: tensor<?x?x64xf32>, %g: tensor<?x?xf32>, %pool: !gdn.pool<?x?x64x64xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>,
    %keys: !gdn.pool<?x?x8x64xf16>, %deltas: !gdn.pool<?x?x8x64xf16>, %decays: !gdn.pool<?x?x8xf32>, %counts: !gdn.pool<?x?xi32>, %scales: !gdn.pool<?x?x8xf16>) {
  // expected-error @+1 {{'gdn.delta_rule' op expects the elements of 'pending_scales' to be 'f32', but got 'f16'}}
  %o = gdn.delta_rule %q, %q, %q gates(%g, %g) pool(%pool) slots(%slots) pending(%keys, %deltas, %decays) counts(%counts) delta_scales(%scales)
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<?xi32> pending !gdn.pool<?x?x8x64xf16>, !gdn.pool<?x?x8x64xf16>, !gdn.pool<?x?x8xf32> counts !gdn.pool<?x?xi32> delta_scales !gdn.pool<?x?x8xf16> -> tensor<?x?x64xf32>
  return
}

// -----

func.func @c10_scales_steps(%q: tensor<?x?x64xf32>, %g: tensor<?x?xf32>, %pool: !gdn.pool<?x?x64x64xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>,
    %keys: !gdn.pool<?x?x8x64xf16>, %deltas: !gdn.pool<?x?x8x64xf16>, %decays: !gdn.pool<?x?x8xf32>, %counts: !gdn.pool<?x?xi32>, %scales: !gdn.pool<?x?x4xf32>) {
  // expected-error @+1 {{'gdn.delta_rule' op expects dim 2 of 'pending_scales' to be S = 8, set by dim 2 of 'pending_keys', but got 4}}
  %o = gdn.delta_rule %q, %q, %q gates(%g, %g) pool(%pool) slots(%slots) pending(%keys, %deltas, %decays) counts(%counts) delta_scales(%scales)
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<?xi32> pending !gdn.pool<?x?x8x64xf16>, !gdn.pool<?x?x8x64xf16>, !gdn.pool<?x?x8xf32> counts !gdn.pool<?x?xi32> delta_scales !gdn.pool<?x?x4xf32> -> tensor<?x?x64xf32>
  return
}
