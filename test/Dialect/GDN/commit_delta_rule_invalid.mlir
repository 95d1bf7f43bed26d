// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Constraints of gdn.commit_delta_rule.
//
// RUN: gdn-opt %s -split-input-file -verify-diagnostics

func.func @c1_static(%pool: !gdn.pool<?x?x?x128xf32>, %slots: tensor<?xi32>, %keys: !gdn.pool<?x?x4x128xf32>, %decays: !gdn.pool<?x?x4xf32>) {
  // expected-error @+1 {{'gdn.commit_delta_rule' op expects dim 2 of 'pool', dv, to be static, but got a dynamic size}}
  gdn.commit_delta_rule %pool[%slots] accepted(%slots) pending(%keys, %keys, %decays)
      : !gdn.pool<?x?x?x128xf32>, tensor<?xi32> accepted tensor<?xi32> pending !gdn.pool<?x?x4x128xf32>, !gdn.pool<?x?x4x128xf32>, !gdn.pool<?x?x4xf32>
  return
}

// -----

func.func @c2_accepted(%pool: !gdn.pool<?x?x128x128xf32>, %slots: tensor<2xi32>, %accepted: tensor<3xi32>, %keys: !gdn.pool<?x?x4x128xf32>, %decays: !gdn.pool<?x?x4xf32>) {
  // expected-error @+1 {{'gdn.commit_delta_rule' op expects dim 0 of 'num_accepted' to be N = 2, set by dim 0 of 'slots', but got 3}}
  gdn.commit_delta_rule %pool[%slots] accepted(%accepted) pending(%keys, %keys, %decays)
      : !gdn.pool<?x?x128x128xf32>, tensor<2xi32> accepted tensor<3xi32> pending !gdn.pool<?x?x4x128xf32>, !gdn.pool<?x?x4x128xf32>, !gdn.pool<?x?x4xf32>
  return
}

// -----

func.func @c3_elements(%pool: !gdn.pool<?x?x128x128xf32>, %slots: tensor<?xi32>, %keys: !gdn.pool<?x?x4x128xbf16>, %deltas: !gdn.pool<?x?x4x128xf32>, %decays: !gdn.pool<?x?x4xf32>) {
  // expected-error @+1 {{'gdn.commit_delta_rule' op expects the elements of 'keys' to be 'f32', but got 'bf16'}}
  gdn.commit_delta_rule %pool[%slots] accepted(%slots) pending(%keys, %deltas, %decays)
      : !gdn.pool<?x?x128x128xf32>, tensor<?xi32> accepted tensor<?xi32> pending !gdn.pool<?x?x4x128xbf16>, !gdn.pool<?x?x4x128xf32>, !gdn.pool<?x?x4xf32>
  return
}

// -----

func.func @c3_steps(%pool: !gdn.pool<?x?x128x128xf32>, %slots: tensor<?xi32>, %keys: !gdn.pool<?x?x9x128xf32>, %decays: !gdn.pool<?x?x9xf32>) {
  // expected-error @+1 {{'gdn.commit_delta_rule' op expects S, set by dim 2 of 'keys', to be from 1 to 8, but got 9}}
  gdn.commit_delta_rule %pool[%slots] accepted(%slots) pending(%keys, %keys, %decays)
      : !gdn.pool<?x?x128x128xf32>, tensor<?xi32> accepted tensor<?xi32> pending !gdn.pool<?x?x9x128xf32>, !gdn.pool<?x?x9x128xf32>, !gdn.pool<?x?x9xf32>
  return
}

// -----

func.func @c3_deltas(%pool: !gdn.pool<?x?x64x128xf32>, %slots: tensor<?xi32>, %keys: !gdn.pool<?x?x4x128xf32>, %decays: !gdn.pool<?x?x4xf32>) {
  // expected-error @+1 {{'gdn.commit_delta_rule' op expects dim 3 of 'deltas' to be dv = 64, set by dim 2 of 'pool', but got 128}}
  gdn.commit_delta_rule %pool[%slots] accepted(%slots) pending(%keys, %keys, %decays)
      : !gdn.pool<?x?x64x128xf32>, tensor<?xi32> accepted tensor<?xi32> pending !gdn.pool<?x?x4x128xf32>, !gdn.pool<?x?x4x128xf32>, !gdn.pool<?x?x4xf32>
  return
}

// -----

func.func @c1_bytes_alone(%pool: !gdn.pool<?x?x64x128xi8>, %slots: tensor<?xi32>, %keys: !gdn.pool<?x?x16x128xf32>,
    %deltas: !gdn.pool<?x?x16x64xf32>, %decays: !gdn.pool<?x?x16xf32>, %counts: !gdn.pool<?x?xi32>,
    %scales: !gdn.pool<?x?x64xf32>, %low: !gdn.pool<?x?x64x128xi8>) {
  // expected-error@+1 {{'gdn.commit_delta_rule' op expects the elements of 'pool' to be floats, but got 'i8'}}
  gdn.commit_delta_rule %pool[%slots] pending(%keys, %deltas, %decays) counts(%counts)
      : !gdn.pool<?x?x64x128xi8>, tensor<?xi32> pending !gdn.pool<?x?x16x128xf32>, !gdn.pool<?x?x16x64xf32>,
        !gdn.pool<?x?x16xf32> counts !gdn.pool<?x?xi32>
  return
}

// -----

func.func @c1_low_alone(%pool: !gdn.pool<?x?x64x128xi8>, %slots: tensor<?xi32>, %keys: !gdn.pool<?x?x16x128xf32>,
    %deltas: !gdn.pool<?x?x16x64xf32>, %decays: !gdn.pool<?x?x16xf32>, %counts: !gdn.pool<?x?xi32>,
    %scales: !gdn.pool<?x?x64xf32>, %low: !gdn.pool<?x?x64x128xi8>) {
  // expected-error@+1 {{'gdn.commit_delta_rule' op expects 'state_scales' to be given with 'state_low', but got none}}
  gdn.commit_delta_rule %pool[%slots] pending(%keys, %deltas, %decays) counts(%counts) low(%low)
      : !gdn.pool<?x?x64x128xi8>, tensor<?xi32> pending !gdn.pool<?x?x16x128xf32>, !gdn.pool<?x?x16x64xf32>,
        !gdn.pool<?x?x16xf32> counts !gdn.pool<?x?xi32> low !gdn.pool<?x?x64x128xi8>
  return
}

// -----

func.func @c1_floats_with_scales(%pool: !gdn.pool<?x?x64x128xf32>, %slots: tensor<?xi32>, %keys: !gdn.pool<?x?x16x128xf32>,
    %deltas: !gdn.pool<?x?x16x64xf32>, %decays: !gdn.pool<?x?x16xf32>, %counts: !gdn.pool<?x?xi32>,
    %scales: !gdn.pool<?x?x64xf32>, %low: !gdn.pool<?x?x64x128xi8>) {
  // expected-error@+1 {{'gdn.commit_delta_rule' op expects the elements of 'pool' to be 'i8' beside 'state_scales', but got 'f32'}}
  gdn.commit_delta_rule %pool[%slots] pending(%keys, %deltas, %decays) counts(%counts) scales(%scales)
      : !gdn.pool<?x?x64x128xf32>, tensor<?xi32> pending !gdn.pool<?x?x16x128xf32>, !gdn.pool<?x?x16x64xf32>,
        !gdn.pool<?x?x16xf32> counts !gdn.pool<?x?xi32> scales !gdn.pool<?x?x64xf32>
  return
}

// -----

func.func @c1_scales(%pool: !gdn.pool<?x?x64x128xi8>, %slots: tensor<?xi32>, %keys: !gdn.pool<?x?x16x128xf32>,
    %deltas: !gdn.pool<?x?x16x64xf32>, %decays: !gdn.pool<?x?x16xf32>, %counts: !gdn.pool<?x?xi32>,
    %scales: !gdn.pool<?x?x64xbf16>, %low: !gdn.pool<?x?x64x128xi8>) {
  // expected-error@+1 {{'gdn.commit_delta_rule' op expects the elements of 'state_scales' to be 'f32', but got 'bf16'}}
  gdn.commit_delta_rule %pool[%slots] pending(%keys, %deltas, %decays) counts(%counts) scales(%scales)
      : !gdn.pool<?x?x64x128xi8>, tensor<?xi32> pending !gdn.pool<?x?x16x128xf32>, !gdn.pool<?x?x16x64xf32>,
        !gdn.pool<?x?x16xf32> counts !gdn.pool<?x?xi32> scales !gdn.pool<?x?x64xbf16>
  return
}

// -----

func.func @c1_low(%pool: !gdn.pool<?x?x64x128xi8>, %slots: tensor<?xi32>, %keys: !gdn.pool<?x?x16x128xf32>,
    %deltas: !gdn.pool<?x?x16x64xf32>, %decays: !gdn.pool<?x?x16xf32>, %counts: !gdn.pool<?x?xi32>,
    %scales: !gdn.pool<?x?x64xf32>, %low: !gdn.pool<?x?x64x128xf32>) {
  // expected-error@+1 {{'gdn.commit_delta_rule' op expects the elements of 'state_low' to be 'i8', but got 'f32'}}
  gdn.commit_delta_rule %pool[%slots] pending(%keys, %deltas, %decays) counts(%counts) scales(%scales) low(%low)
      : !gdn.pool<?x?x64x128xi8>, tensor<?xi32> pending !gdn.pool<?x?x16x128xf32>, !gdn.pool<?x?x16x64xf32>,
        !gdn.pool<?x?x16xf32> counts !gdn.pool<?x?xi32> scales !gdn.pool<?x?x64xf32> low !gdn.pool<?x?x64x128xf32>
  return
}

// -----

func.func @c3_without_scales(%pool: !gdn.pool<?x?x64x128xf32>, %slots: tensor<?xi32>, %keys: !gdn.pool<?x?x16x128xf16>,
    %deltas: !gdn.pool<?x?x16x64xf16>, %decays: !gdn.pool<?x?x16xf32>, %counts: !gdn.pool<?x?xi32>) {
  // expected-error@+1 {{'gdn.commit_delta_rule' op expects the elements of 'keys' to be 'f32', but got 'f16'}}
  gdn.commit_delta_rule %pool[%slots] pending(%keys, %deltas, %decays) counts(%counts)
      : !gdn.pool<?x?x64x128xf32>, tensor<?xi32> pending !gdn.pool<?x?x16x128xf16>, !gdn.pool<?x?x16x64xf16>,
        !gdn.pool<?x?x16xf32> counts !gdn.pool<?x?xi32>
  return
}

// -----

func.func @c3_scales_without_counts(%pool: !gdn.pool<?x?x64x128xf32>, %slots: tensor<?xi32>, %keys: !gdn.pool<?x?x8x128xf16>,
    %deltas: !gdn.pool<?x?x8x64xf16>, %decays: !gdn.pool<?x?x8xf32>, %scales: !gdn.pool<?x?x8xf32>) {
  // expected-error@+1 {{'gdn.commit_delta_rule' op expects 'counts' to be given with 'pending_scales', but got none}}
  gdn.commit_delta_rule %pool[%slots] accepted(%slots) pending(%keys, %deltas, %decays) delta_scales(%scales)
      : !gdn.pool<?x?x64x128xf32>, tensor<?xi32> accepted tensor<?xi32> pending !gdn.pool<?x?x8x128xf16>, !gdn.pool<?x?x8x64xf16>,
        !gdn.pool<?x?x8xf32> delta_scales !gdn.pool<?x?x8xf32>
  return
}
