// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn.delta_rule: one case per constraint that the verifier owns.
//
// RUN: gdn-opt %s -split-input-file -verify-diagnostics

func.func @c1_key(%q: tensor<?x?x64xf32>, %k: tensor<?x?x32xf32>, %v: tensor<?x?x64xf32>, %g: tensor<?x?xf32>, %beta: tensor<?x?xf32>,
    %pool: !gdn.pool<?x?x64x64xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.delta_rule' op expects dim 2 of 'key' to be dk = 64, set by dim 2 of 'query', but got 32}}
  %o = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%pool) slots(%slots) sequences(%cu)
      : tensor<?x?x64xf32>, tensor<?x?x32xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?x64xf32>
  return
}

// -----

func.func @c1_key_heads(%q: tensor<?x2x64xf32>, %k: tensor<?x4x64xf32>, %v: tensor<?x?x64xf32>, %g: tensor<?x?xf32>, %beta: tensor<?x?xf32>,
    %pool: !gdn.pool<?x?x64x64xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.delta_rule' op expects dim 1 of 'key' to be Hk = 2, set by dim 1 of 'query', but got 4}}
  %o = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%pool) slots(%slots) sequences(%cu)
      : tensor<?x2x64xf32>, tensor<?x4x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?x64xf32>
  return
}

// -----

func.func @c1_tokens(%q: tensor<5x?x64xf32>, %k: tensor<?x?x64xf32>, %v: tensor<6x?x64xf32>, %g: tensor<?x?xf32>, %beta: tensor<?x?xf32>,
    %pool: !gdn.pool<?x?x64x64xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.delta_rule' op expects dim 0 of 'value' to be T = 5, set by dim 0 of 'query', but got 6}}
  %o = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%pool) slots(%slots) sequences(%cu)
      : tensor<5x?x64xf32>, tensor<?x?x64xf32>, tensor<6x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?x64xf32>
  return
}

// -----

func.func @c1_decay_heads(%q: tensor<?x?x64xf32>, %k: tensor<?x?x64xf32>, %v: tensor<?x4x64xf32>, %g: tensor<?x2xf32>, %beta: tensor<?x?xf32>,
    %pool: !gdn.pool<?x?x64x64xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.delta_rule' op expects dim 1 of 'log_decay' to be Hv = 4, set by dim 1 of 'value', but got 2}}
  %o = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%pool) slots(%slots) sequences(%cu)
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x4x64xf32>, tensor<?x2xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?x64xf32>
  return
}

// -----

func.func @c1_decay_channels(%q: tensor<?x?x64xf32>, %k: tensor<?x?x64xf32>, %v: tensor<?x?x128xf32>, %g: tensor<?x?x128xf32>, %beta: tensor<?x?xf32>,
    %pool: !gdn.pool<?x?x128x64xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.delta_rule' op expects dim 2 of 'log_decay' to be dk = 64, set by dim 2 of 'query', but got 128}}
  %o = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%pool) slots(%slots) sequences(%cu)
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x128xf32>, tensor<?x?x128xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x128x64xf32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?x128xf32>
  return
}

// -----

func.func @c1_beta(%q: tensor<?x?x64xf32>, %k: tensor<?x?x64xf32>, %v: tensor<?x?x64xf32>, %g: tensor<?x4xf32>, %beta: tensor<?x2xf32>,
    %pool: !gdn.pool<?x?x64x64xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.delta_rule' op expects dim 1 of 'beta' to be Hv = 4, set by dim 1 of 'log_decay', but got 2}}
  %o = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%pool) slots(%slots) sequences(%cu)
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x4xf32>, tensor<?x2xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?x64xf32>
  return
}

// -----

func.func @c1_output(%q: tensor<?x?x64xf32>, %k: tensor<?x?x64xf32>, %v: tensor<?x?x64xf32>, %g: tensor<?x?xf32>, %beta: tensor<?x?xf32>,
    %pool: !gdn.pool<?x?x64x64xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.delta_rule' op expects dim 2 of 'output' to be dv = 64, set by dim 2 of 'value', but got 32}}
  %o = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%pool) slots(%slots) sequences(%cu)
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?x32xf32>
  return
}

// -----

func.func @c2_dynamic_key(%q: tensor<?x?x?xf32>, %k: tensor<?x?x64xf32>, %v: tensor<?x?x64xf32>, %g: tensor<?x?xf32>, %beta: tensor<?x?xf32>,
    %pool: !gdn.pool<?x?x64x64xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.delta_rule' op expects dim 2 of 'query', dk, to be static, but got a dynamic size}}
  %o = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%pool) slots(%slots) sequences(%cu)
      : tensor<?x?x?xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?x64xf32>
  return
}

// -----

func.func @c2_dynamic_value(%q: tensor<?x?x64xf32>, %k: tensor<?x?x64xf32>, %v: tensor<?x?x?xf32>, %g: tensor<?x?xf32>, %beta: tensor<?x?xf32>,
    %pool: !gdn.pool<?x?x64x64xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.delta_rule' op expects dim 2 of 'value', dv, to be static, but got a dynamic size}}
  %o = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%pool) slots(%slots) sequences(%cu)
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x?xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?x64xf32>
  return
}

// -----

func.func @c2_multiple_of_8(%q: tensor<?x?x12xf32>, %k: tensor<?x?x12xf32>, %v: tensor<?x?x64xf32>, %g: tensor<?x?xf32>, %beta: tensor<?x?xf32>,
    %pool: !gdn.pool<?x?x64x64xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.delta_rule' op expects dk, set by dim 2 of 'query', to be a multiple of 8 from 8 to 256, but got 12}}
  %o = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%pool) slots(%slots) sequences(%cu)
      : tensor<?x?x12xf32>, tensor<?x?x12xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?x64xf32>
  return
}

// -----

func.func @c2_too_wide(%q: tensor<?x?x64xf32>, %k: tensor<?x?x64xf32>, %v: tensor<?x?x512xf32>, %g: tensor<?x?xf32>, %beta: tensor<?x?xf32>,
    %pool: !gdn.pool<?x?x64x64xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.delta_rule' op expects dv, set by dim 2 of 'value', to be a multiple of 8 from 8 to 256, but got 512}}
  %o = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%pool) slots(%slots) sequences(%cu)
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x512xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?x512xf32>
  return
}

// -----

func.func @c3_heads_do_not_divide(%q: tensor<?x4x64xf32>, %k: tensor<?x?x64xf32>, %v: tensor<?x6x64xf32>, %g: tensor<?x?xf32>, %beta: tensor<?x?xf32>,
    %pool: !gdn.pool<?x?x64x64xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.delta_rule' op expects Hv to be a multiple of Hk, but got Hv = 6, set by dim 1 of 'value', and Hk = 4, set by dim 1 of 'query'}}
  %o = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%pool) slots(%slots) sequences(%cu)
      : tensor<?x4x64xf32>, tensor<?x?x64xf32>, tensor<?x6x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?x64xf32>
  return
}

// -----

func.func @c3_heads_of_pool(%q: tensor<?x?x64xf32>, %k: tensor<?x4x64xf32>, %v: tensor<?x?x64xf32>, %g: tensor<?x?xf32>, %beta: tensor<?x?xf32>,
    %pool: !gdn.pool<?x6x64x64xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.delta_rule' op expects Hv to be a multiple of Hk, but got Hv = 6, set by dim 1 of 'pool', and Hk = 4, set by dim 1 of 'key'}}
  %o = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%pool) slots(%slots) sequences(%cu)
      : tensor<?x?x64xf32>, tensor<?x4x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x6x64x64xf32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?x64xf32>
  return
}

// -----

func.func @c3_no_key_heads(%q: tensor<?x0x64xf32>, %k: tensor<?x?x64xf32>, %v: tensor<?x6x64xf32>, %g: tensor<?x?xf32>, %beta: tensor<?x?xf32>,
    %pool: !gdn.pool<?x?x64x64xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.delta_rule' op expects Hv to be a multiple of Hk, but got Hv = 6, set by dim 1 of 'value', and Hk = 0, set by dim 1 of 'query'}}
  %o = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%pool) slots(%slots) sequences(%cu)
      : tensor<?x0x64xf32>, tensor<?x?x64xf32>, tensor<?x6x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?x64xf32>
  return
}

// -----

func.func @c4_rank(%q: tensor<?x?x64xf32>, %k: tensor<?x?x64xf32>, %v: tensor<?x?x64xf32>, %g: tensor<?x?xf32>, %beta: tensor<?x?xf32>,
    %pool: !gdn.pool<?x?x64xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.delta_rule' op expects 'pool' to have rank 4, P x Hv x dv x dk, but got rank 3}}
  %o = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%pool) slots(%slots) sequences(%cu)
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64xf32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?x64xf32>
  return
}

// -----

func.func @c4_k_major(%q: tensor<?x?x64xf32>, %k: tensor<?x?x64xf32>, %v: tensor<?x?x128xf32>, %g: tensor<?x?xf32>, %beta: tensor<?x?xf32>,
    %pool: !gdn.pool<?x?x64x128xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.delta_rule' op expects dim 2 of 'pool' to be dv = 128, set by dim 2 of 'value', but got 64}}
  %o = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%pool) slots(%slots) sequences(%cu)
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x128xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x128xf32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?x128xf32>
  return
}

// -----

func.func @c4_dynamic(%q: tensor<?x?x64xf32>, %k: tensor<?x?x64xf32>, %v: tensor<?x?x64xf32>, %g: tensor<?x?xf32>, %beta: tensor<?x?xf32>,
    %pool: !gdn.pool<?x?x64x?xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.delta_rule' op expects dim 3 of 'pool', dk, to be static, but got a dynamic size}}
  %o = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%pool) slots(%slots) sequences(%cu)
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x?xf32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?x64xf32>
  return
}

// -----

func.func @c5_rows(%q: tensor<?x?x64xf32>, %k: tensor<?x?x64xf32>, %v: tensor<?x?x64xf32>, %g: tensor<?x?xf32>, %beta: tensor<?x?xf32>,
    %pool: !gdn.pool<?x?x64x64xf32>, %slots: tensor<4xi32>, %cu: tensor<4xi32>) {
  // expected-error @+1 {{'gdn.delta_rule' op expects dim 0 of 'cu_seqlens' to be N + 1 = 5, N set by dim 0 of 'slots', but got 4}}
  %o = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%pool) slots(%slots) sequences(%cu)
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<4xi32>, tensor<4xi32> -> tensor<?x?x64xf32>
  return
}

// -----

func.func @c5_decode(%q: tensor<5x?x64xf32>, %k: tensor<?x?x64xf32>, %v: tensor<?x?x64xf32>, %g: tensor<?x?xf32>, %beta: tensor<?x?xf32>,
    %pool: !gdn.pool<?x?x64x64xf32>, %slots: tensor<4xi32>) {
  // expected-error @+1 {{'gdn.delta_rule' op expects dim 0 of 'slots' to be T = 5, set by dim 0 of 'query', but got 4}}
  %o = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%pool) slots(%slots)
      : tensor<5x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<4xi32> -> tensor<?x?x64xf32>
  return
}

// -----

func.func @c5_write_slots(%q: tensor<?x?x64xf32>, %k: tensor<?x?x64xf32>, %v: tensor<?x?x64xf32>, %g: tensor<?x?xf32>, %beta: tensor<?x?xf32>,
    %pool: !gdn.pool<?x?x64x64xf32>, %slots: tensor<4xi32>, %into: tensor<5xi32>, %cu: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.delta_rule' op expects dim 0 of 'write_slots' to be N = 4, set by dim 0 of 'slots', but got 5}}
  %o = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%pool) slots(%slots -> %into) sequences(%cu)
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<4xi32> into tensor<5xi32>, tensor<?xi32> -> tensor<?x?x64xf32>
  return
}

// -----

func.func @c5_has_initial(%q: tensor<5x?x64xf32>, %k: tensor<?x?x64xf32>, %v: tensor<?x?x64xf32>, %g: tensor<?x?xf32>, %beta: tensor<?x?xf32>,
    %pool: !gdn.pool<?x?x64x64xf32>, %slots: tensor<?xi32>, %initial: tensor<4xi1>) {
  // expected-error @+1 {{'gdn.delta_rule' op expects dim 0 of 'has_initial' to be T = 5, set by dim 0 of 'query', but got 4}}
  %o = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%pool) slots(%slots) initial(%initial)
      : tensor<5x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<?xi32> initial tensor<4xi1> -> tensor<?x?x64xf32>
  return
}

// -----

func.func @c6_scale(%q: tensor<?x?x64xf32>, %k: tensor<?x?x64xf32>, %v: tensor<?x?x64xf32>, %g: tensor<?x?xf32>, %beta: tensor<?x?xf32>,
    %pool: !gdn.pool<?x?x64x64xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.delta_rule' op expects 'scale' to be finite, but got -Inf}}
  %o = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%pool) slots(%slots) sequences(%cu) {scale = 0xFF800000 : f32}
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?x64xf32>
  return
}

// -----

func.func @c7_bounds(%q: tensor<?x?x64xf32>, %k: tensor<?x?x64xf32>, %v: tensor<?x?x64xf32>, %g: tensor<?x?xf32>, %beta: tensor<?x?xf32>,
    %pool: !gdn.pool<?x?x64x64xf32>, %slots: tensor<?xi32>, %cu: tensor<3xi32>, %cc: tensor<4xi32>, %ct: tensor<?xi32>, %cs: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.delta_rule' op expects dim 0 of 'cu_checkpoints' to be N + 1 = 3, N set by dim 0 of 'cu_seqlens', but got 4}}
  %o = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%pool) slots(%slots) sequences(%cu) checkpoints(%cc, %ct, %cs)
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<?xi32>, tensor<3xi32> checkpoints tensor<4xi32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?x64xf32>
  return
}

// -----

func.func @c7_slots(%q: tensor<?x?x64xf32>, %k: tensor<?x?x64xf32>, %v: tensor<?x?x64xf32>, %g: tensor<?x?xf32>, %beta: tensor<?x?xf32>,
    %pool: !gdn.pool<?x?x64x64xf32>, %slots: tensor<?xi32>, %cu: tensor<3xi32>, %cc: tensor<3xi32>, %ct: tensor<5xi32>, %cs: tensor<4xi32>) {
  // expected-error @+1 {{'gdn.delta_rule' op expects dim 0 of 'checkpoint_slots' to be C = 5, set by dim 0 of 'checkpoint_tokens', but got 4}}
  %o = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%pool) slots(%slots) sequences(%cu) checkpoints(%cc, %ct, %cs)
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<?xi32>, tensor<3xi32> checkpoints tensor<3xi32>, tensor<5xi32>, tensor<4xi32> -> tensor<?x?x64xf32>
  return
}

// -----

// Only the generic form can leave one operand out.
func.func @c7_without_rows(%q: tensor<?x?x64xf32>, %g: tensor<?x?xf32>, %pool: !gdn.pool<?x?x64x64xf32>, %slots: tensor<?xi32>, %i: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.delta_rule' op expects 'cu_seqlens' to be given with checkpoints, but got none}}
  %o = "gdn.delta_rule"(%q, %q, %q, %g, %g, %pool, %slots, %i, %i, %i) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>}>
      : (tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>, !gdn.pool<?x?x64x64xf32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>) -> tensor<?x?x64xf32>
  return
}

// -----

// Only the generic form can leave one operand out.
func.func @c7_without_slots(%q: tensor<?x?x64xf32>, %g: tensor<?x?xf32>, %pool: !gdn.pool<?x?x64x64xf32>, %slots: tensor<?xi32>, %i: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.delta_rule' op expects 'checkpoint_slots' to be given with checkpoints, but got none}}
  %o = "gdn.delta_rule"(%q, %q, %q, %g, %g, %pool, %slots, %i, %i, %i) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 0, 1, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>}>
      : (tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>, !gdn.pool<?x?x64x64xf32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>) -> tensor<?x?x64xf32>
  return
}

// -----

func.func @c8_rows(%q: tensor<?x?x64xf32>, %g: tensor<?x?xf32>, %pool: !gdn.pool<?x?x64x64xf32>, %slots: tensor<3xi32>, %cu: tensor<?xi32>, %table: tensor<5x4xi32>) {
  // expected-error @+1 {{'gdn.delta_rule' op expects dim 0 of 'token_slots' to be N = 3, set by dim 0 of 'slots', but got 5}}
  %o = gdn.delta_rule %q, %q, %q gates(%g, %g) pool(%pool) slots(%slots) sequences(%cu) token_slots(%table)
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<3xi32>, tensor<?xi32> token_slots tensor<5x4xi32> -> tensor<?x?x64xf32>
  return
}

// -----

func.func @c8_steps(%q: tensor<?x?x64xf32>, %g: tensor<?x?xf32>, %pool: !gdn.pool<?x?x64x64xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>, %table: tensor<?x9xi32>) {
  // expected-error @+1 {{'gdn.delta_rule' op expects S, set by dim 1 of 'token_slots', to be from 1 to 8, but got 9}}
  %o = gdn.delta_rule %q, %q, %q gates(%g, %g) pool(%pool) slots(%slots) sequences(%cu) token_slots(%table)
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<?xi32>, tensor<?xi32> token_slots tensor<?x9xi32> -> tensor<?x?x64xf32>
  return
}

// -----

func.func @c8_without_rows(%q: tensor<?x?x64xf32>, %g: tensor<?x?xf32>, %pool: !gdn.pool<?x?x64x64xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>, %table: tensor<?x4xi32>) {
  // expected-error @+1 {{'gdn.delta_rule' op expects 'cu_seqlens' to be given with 'token_slots', but got none}}
  %o = gdn.delta_rule %q, %q, %q gates(%g, %g) pool(%pool) slots(%slots) token_slots(%table)
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<?xi32> token_slots tensor<?x4xi32> -> tensor<?x?x64xf32>
  return
}

// -----

func.func @c8_write_slots(%q: tensor<?x?x64xf32>, %g: tensor<?x?xf32>, %pool: !gdn.pool<?x?x64x64xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>, %table: tensor<?x4xi32>) {
  // expected-error @+1 {{'gdn.delta_rule' op expects no 'write_slots' beside 'token_slots', but got some}}
  %o = gdn.delta_rule %q, %q, %q gates(%g, %g) pool(%pool) slots(%slots -> %slots) sequences(%cu) token_slots(%table)
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<?xi32> into tensor<?xi32>, tensor<?xi32> token_slots tensor<?x4xi32> -> tensor<?x?x64xf32>
  return
}

// -----

func.func @c8_checkpoints(%q: tensor<?x?x64xf32>, %g: tensor<?x?xf32>, %pool: !gdn.pool<?x?x64x64xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>, %table: tensor<?x4xi32>) {
  // expected-error @+1 {{'gdn.delta_rule' op expects no 'checkpoints' beside 'token_slots', but got some}}
  %o = gdn.delta_rule %q, %q, %q gates(%g, %g) pool(%pool) slots(%slots) sequences(%cu) checkpoints(%cu, %cu, %cu) token_slots(%table)
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<?xi32>, tensor<?xi32> checkpoints tensor<?xi32>, tensor<?xi32>, tensor<?xi32> token_slots tensor<?x4xi32> -> tensor<?x?x64xf32>
  return
}

// -----

func.func @c9_steps(%q: tensor<?x?x64xf32>, %g: tensor<?x?xf32>, %pool: !gdn.pool<?x?x64x64xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>,
    %table: tensor<?x4xi32>, %parents: tensor<?x5xi32>) {
  // expected-error @+1 {{'gdn.delta_rule' op expects dim 1 of 'parents' to be S = 4, set by dim 1 of 'token_slots', but got 5}}
  %o = gdn.delta_rule %q, %q, %q gates(%g, %g) pool(%pool) slots(%slots) sequences(%cu) token_slots(%table) parents(%parents)
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<?xi32>, tensor<?xi32> token_slots tensor<?x4xi32> parents tensor<?x5xi32> -> tensor<?x?x64xf32>
  return
}

// -----

func.func @c9_without_slots(%q: tensor<?x?x64xf32>, %g: tensor<?x?xf32>, %pool: !gdn.pool<?x?x64x64xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>,
    %table: tensor<?x4xi32>, %parents: tensor<?x4xi32>) {
  // expected-error @+1 {{'gdn.delta_rule' op expects 'token_slots' to be given with 'parents', but got none}}
  %o = gdn.delta_rule %q, %q, %q gates(%g, %g) pool(%pool) slots(%slots) sequences(%cu) parents(%parents)
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<?xi32>, tensor<?xi32> parents tensor<?x4xi32> -> tensor<?x?x64xf32>
  return
}

// -----

func.func @c10_together(%q: tensor<?x?x64xf32>, %g: tensor<?x?xf32>, %pool: !gdn.pool<?x?x64x64xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>,
    %keys: !gdn.pool<?x?x4x64xf32>, %decays: !gdn.pool<?x?x4xf32>) {
  // expected-error @+1 {{'gdn.delta_rule' op expects 'pending_decays' to be given with 'pending_keys', but got none}}
  %o = "gdn.delta_rule"(%q, %q, %q, %g, %g, %pool, %slots, %cu, %slots, %keys, %keys) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0>}>
      : (tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>, !gdn.pool<?x?x64x64xf32>, tensor<?xi32>, tensor<?xi32>,
         tensor<?xi32>, !gdn.pool<?x?x4x64xf32>, !gdn.pool<?x?x4x64xf32>) -> tensor<?x?x64xf32>
  return
}

// -----

func.func @c10_without_rows(%q: tensor<?x?x64xf32>, %g: tensor<?x?xf32>, %pool: !gdn.pool<?x?x64x64xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>,
    %keys: !gdn.pool<?x?x4x64xf32>, %decays: !gdn.pool<?x?x4xf32>) {
  // expected-error @+1 {{'gdn.delta_rule' op expects 'cu_seqlens' to be given with 'num_accepted', but got none}}
  %o = gdn.delta_rule %q, %q, %q gates(%g, %g) pool(%pool) slots(%slots) accepted(%slots) pending(%keys, %keys, %decays)
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<?xi32> accepted tensor<?xi32> pending !gdn.pool<?x?x4x64xf32>, !gdn.pool<?x?x4x64xf32>, !gdn.pool<?x?x4xf32> -> tensor<?x?x64xf32>
  return
}

// -----

func.func @c10_write_slots(%q: tensor<?x?x64xf32>, %g: tensor<?x?xf32>, %pool: !gdn.pool<?x?x64x64xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>,
    %keys: !gdn.pool<?x?x4x64xf32>, %decays: !gdn.pool<?x?x4xf32>) {
  // expected-error @+1 {{'gdn.delta_rule' op expects no 'write_slots' beside 'pending', but got some}}
  %o = gdn.delta_rule %q, %q, %q gates(%g, %g) pool(%pool) slots(%slots -> %slots) sequences(%cu) accepted(%slots) pending(%keys, %keys, %decays)
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<?xi32> into tensor<?xi32>, tensor<?xi32> accepted tensor<?xi32> pending !gdn.pool<?x?x4x64xf32>, !gdn.pool<?x?x4x64xf32>, !gdn.pool<?x?x4xf32> -> tensor<?x?x64xf32>
  return
}

// -----

func.func @c10_count(%q: tensor<?x?x64xf32>, %g: tensor<?x?xf32>, %pool: !gdn.pool<?x?x64x64xf32>, %slots: tensor<3xi32>, %cu: tensor<?xi32>, %count: tensor<4xi32>,
    %keys: !gdn.pool<?x?x4x64xf32>, %decays: !gdn.pool<?x?x4xf32>) {
  // expected-error @+1 {{'gdn.delta_rule' op expects dim 0 of 'num_accepted' to be N = 3, set by dim 0 of 'slots', but got 4}}
  %o = gdn.delta_rule %q, %q, %q gates(%g, %g) pool(%pool) slots(%slots) sequences(%cu) accepted(%count) pending(%keys, %keys, %decays)
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<3xi32>, tensor<?xi32> accepted tensor<4xi32> pending !gdn.pool<?x?x4x64xf32>, !gdn.pool<?x?x4x64xf32>, !gdn.pool<?x?x4xf32> -> tensor<?x?x64xf32>
  return
}

// -----

func.func @c10_decays(%q: tensor<?x?x64xf32>, %g: tensor<?x?xf32>, %pool: !gdn.pool<?x?x64x64xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>,
    %keys: !gdn.pool<?x?x4x64xf32>) {
  // expected-error @+1 {{'gdn.delta_rule' op expects 'pending_decays' to have rank 3, set by 'log_decay', but got rank 4}}
  %o = gdn.delta_rule %q, %q, %q gates(%g, %g) pool(%pool) slots(%slots) sequences(%cu) accepted(%slots) pending(%keys, %keys, %keys)
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<?xi32>, tensor<?xi32> accepted tensor<?xi32> pending !gdn.pool<?x?x4x64xf32>, !gdn.pool<?x?x4x64xf32>, !gdn.pool<?x?x4x64xf32> -> tensor<?x?x64xf32>
  return
}

// -----

func.func @c10_steps(%q: tensor<?x?x64xf32>, %g: tensor<?x?xf32>, %pool: !gdn.pool<?x?x64x64xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>,
    %keys: !gdn.pool<?x?x4x64xf32>, %deltas: !gdn.pool<?x?x5x64xf32>, %decays: !gdn.pool<?x?x4xf32>) {
  // expected-error @+1 {{'gdn.delta_rule' op expects dim 2 of 'pending_deltas' to be S = 4, set by dim 2 of 'pending_keys', but got 5}}
  %o = gdn.delta_rule %q, %q, %q gates(%g, %g) pool(%pool) slots(%slots) sequences(%cu) accepted(%slots) pending(%keys, %deltas, %decays)
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<?xi32>, tensor<?xi32> accepted tensor<?xi32> pending !gdn.pool<?x?x4x64xf32>, !gdn.pool<?x?x5x64xf32>, !gdn.pool<?x?x4xf32> -> tensor<?x?x64xf32>
  return
}

// -----

func.func @c10_elements(%q: tensor<?x?x64xf32>, %g: tensor<?x?xf32>, %pool: !gdn.pool<?x?x64x64xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>,
    %keys: !gdn.pool<?x?x4x64xf32>, %decays: !gdn.pool<?x?x4xf16>) {
  // expected-error @+1 {{'gdn.delta_rule' op expects the elements of 'pending_decays' to be 'f32', but got 'f16'}}
  %o = gdn.delta_rule %q, %q, %q gates(%g, %g) pool(%pool) slots(%slots) sequences(%cu) accepted(%slots) pending(%keys, %keys, %decays)
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<?xi32>, tensor<?xi32> accepted tensor<?xi32> pending !gdn.pool<?x?x4x64xf32>, !gdn.pool<?x?x4x64xf32>, !gdn.pool<?x?x4xf16> -> tensor<?x?x64xf32>
  return
}

// -----

func.func @c10_neither(%q: tensor<?x?x64xf32>, %g: tensor<?x?xf32>, %pool: !gdn.pool<?x?x64x64xf32>, %slots: tensor<?xi32>,
    %keys: !gdn.pool<?x?x4x64xf32>, %decays: !gdn.pool<?x?x4xf32>) {
  // expected-error @+1 {{'gdn.delta_rule' op expects 'accepted' or 'counts' to be given with 'pending', but got neither}}
  %o = gdn.delta_rule %q, %q, %q gates(%g, %g) pool(%pool) slots(%slots) pending(%keys, %keys, %decays)
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<?xi32> pending !gdn.pool<?x?x4x64xf32>, !gdn.pool<?x?x4x64xf32>, !gdn.pool<?x?x4xf32> -> tensor<?x?x64xf32>
  return
}

// -----

func.func @c10_counts_alone(%q: tensor<?x?x64xf32>, %g: tensor<?x?xf32>, %pool: !gdn.pool<?x?x64x64xf32>, %slots: tensor<?xi32>,
    %counts: !gdn.pool<?x?xi32>) {
  // expected-error @+1 {{'gdn.delta_rule' op expects 'pending' to be given with 'counts', but got none}}
  %o = gdn.delta_rule %q, %q, %q gates(%g, %g) pool(%pool) slots(%slots) counts(%counts)
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<?xi32> counts !gdn.pool<?x?xi32> -> tensor<?x?x64xf32>
  return
}

// -----

func.func @c10_counts_elements(%q: tensor<?x?x64xf32>, %g: tensor<?x?xf32>, %pool: !gdn.pool<?x?x64x64xf32>, %slots: tensor<?xi32>,
    %keys: !gdn.pool<?x?x4x64xf32>, %decays: !gdn.pool<?x?x4xf32>, %counts: !gdn.pool<?x?xf32>) {
  // expected-error @+1 {{'gdn.delta_rule' op expects the elements of 'pending_counts' to be 'i32', but got 'f32'}}
  %o = gdn.delta_rule %q, %q, %q gates(%g, %g) pool(%pool) slots(%slots) pending(%keys, %keys, %decays) counts(%counts)
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<?xi32> pending !gdn.pool<?x?x4x64xf32>, !gdn.pool<?x?x4x64xf32>, !gdn.pool<?x?x4xf32> counts !gdn.pool<?x?xf32> -> tensor<?x?x64xf32>
  return
}

// -----

func.func @c10_counts_heads(%q: tensor<?x?x64xf32>, %g: tensor<?x?xf32>, %pool: !gdn.pool<?x?x64x64xf32>, %slots: tensor<?xi32>,
    %keys: !gdn.pool<?x4x4x64xf32>, %deltas: !gdn.pool<?x?x4x64xf32>, %decays: !gdn.pool<?x?x4xf32>, %counts: !gdn.pool<?x8xi32>) {
  // expected-error @+1 {{'gdn.delta_rule' op expects dim 1 of 'pending_counts' to be Hk = 4, set by dim 1 of 'pending_keys', but got 8}}
  %o = gdn.delta_rule %q, %q, %q gates(%g, %g) pool(%pool) slots(%slots) pending(%keys, %deltas, %decays) counts(%counts)
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<?xi32> pending !gdn.pool<?x4x4x64xf32>, !gdn.pool<?x?x4x64xf32>, !gdn.pool<?x?x4xf32> counts !gdn.pool<?x8xi32> -> tensor<?x?x64xf32>
  return
}

// -----

func.func @c10_counts_steps(%q: tensor<?x?x64xf32>, %g: tensor<?x?xf32>, %pool: !gdn.pool<?x?x64x64xf32>, %slots: tensor<?xi32>,
    %keys: !gdn.pool<?x?x33x64xf32>, %decays: !gdn.pool<?x?x33xf32>, %counts: !gdn.pool<?x?xi32>) {
  // expected-error @+1 {{'gdn.delta_rule' op expects S, set by dim 2 of 'pending_keys', to be from 1 to 32, but got 33}}
  %o = gdn.delta_rule %q, %q, %q gates(%g, %g) pool(%pool) slots(%slots) pending(%keys, %keys, %decays) counts(%counts)
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<?xi32> pending !gdn.pool<?x?x33x64xf32>, !gdn.pool<?x?x33x64xf32>, !gdn.pool<?x?x33xf32> counts !gdn.pool<?x?xi32> -> tensor<?x?x64xf32>
  return
}

// -----

func.func @c11_elements(%q: tensor<?x?x64xf32>, %g: tensor<?x?xf32>, %pool: !gdn.pool<?x?x64x64xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>,
    %table: tensor<?x4xi32>, %buffer: !gdn.pool<?x?x64x64xbf16>) {
  // expected-error @+1 {{'gdn.delta_rule' op expects 'token_pool' to have the element type of 'pool', 'f32', but got 'bf16'}}
  %o = gdn.delta_rule %q, %q, %q gates(%g, %g) pool(%pool) slots(%slots) sequences(%cu) token_slots(%table) token_pool(%buffer)
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<?xi32>, tensor<?xi32> token_slots tensor<?x4xi32> token_pool !gdn.pool<?x?x64x64xbf16> -> tensor<?x?x64xf32>
  return
}

// -----

func.func @c11_without_slots(%q: tensor<?x?x64xf32>, %g: tensor<?x?xf32>, %pool: !gdn.pool<?x?x64x64xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.delta_rule' op expects 'token_slots' to be given with 'token_pool', but got none}}
  %o = gdn.delta_rule %q, %q, %q gates(%g, %g) pool(%pool) slots(%slots) sequences(%cu) token_pool(%pool)
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<?xi32>, tensor<?xi32> token_pool !gdn.pool<?x?x64x64xf32> -> tensor<?x?x64xf32>
  return
}

// -----

func.func @c12_token_slots(%q: tensor<?x?x64xf32>, %g: tensor<?x?xf32>, %pool: !gdn.pool<?x?x64x64xi8>, %slots: tensor<?xi32>, %cu: tensor<?xi32>,
    %table: tensor<?x4xi32>, %scales: !gdn.pool<?x?x64xf32>) {
  // expected-error @+1 {{'gdn.delta_rule' op expects no 'token_slots' beside 'state_scales'}}
  %o = gdn.delta_rule %q, %q, %q gates(%g, %g) pool(%pool) slots(%slots) sequences(%cu) token_slots(%table) scales(%scales)
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xi8>, tensor<?xi32>, tensor<?xi32> token_slots tensor<?x4xi32> scales !gdn.pool<?x?x64xf32> -> tensor<?x?x64xf32>
  return
}

// -----

func.func @c13_low(%q: tensor<?x?x64xf32>, %g: tensor<?x?xf32>, %pool: !gdn.pool<?x?x64x64xi8>, %slots: tensor<?xi32>,
    %scales: !gdn.pool<?x?x64xf32>, %keys: !gdn.pool<?x?x8x64xf32>, %decays: !gdn.pool<?x?x8xf32>, %counts: !gdn.pool<?x?xi32>, %n: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.delta_rule' op expects 'low' and 'counts' to be given with 'reads_upper', but got no 'low'}}
  %o = gdn.delta_rule %q, %q, %q gates(%g, %g) pool(%pool) slots(%slots) scales(%scales) pending(%keys, %keys, %decays) counts(%counts) {reads_upper}
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xi8>, tensor<?xi32> scales !gdn.pool<?x?x64xf32> pending !gdn.pool<?x?x8x64xf32>, !gdn.pool<?x?x8x64xf32>, !gdn.pool<?x?x8xf32> counts !gdn.pool<?x?xi32> -> tensor<?x?x64xf32>
  return
}

// -----

func.func @c13_counts(%q: tensor<?x?x64xf32>, %g: tensor<?x?xf32>, %pool: !gdn.pool<?x?x64x64xi8>, %slots: tensor<?xi32>,
    %scales: !gdn.pool<?x?x64xf32>, %keys: !gdn.pool<?x?x8x64xf32>, %decays: !gdn.pool<?x?x8xf32>, %counts: !gdn.pool<?x?xi32>, %n: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.delta_rule' op expects 'low' and 'counts' to be given with 'reads_upper', but got no 'counts'}}
  %o = gdn.delta_rule %q, %q, %q gates(%g, %g) pool(%pool) slots(%slots) scales(%scales) low(%pool) {reads_upper}
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xi8>, tensor<?xi32> scales !gdn.pool<?x?x64xf32> low !gdn.pool<?x?x64x64xi8> -> tensor<?x?x64xf32>
  return
}

// -----

func.func @c13_accepted(%q: tensor<?x?x64xf32>, %g: tensor<?x?xf32>, %pool: !gdn.pool<?x?x64x64xi8>, %slots: tensor<?xi32>, %cu: tensor<?xi32>,
    %scales: !gdn.pool<?x?x64xf32>, %keys: !gdn.pool<?x?x8x64xf32>, %decays: !gdn.pool<?x?x8xf32>, %counts: !gdn.pool<?x?xi32>, %n: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.delta_rule' op expects no 'accepted' with 'reads_upper'}}
  %o = gdn.delta_rule %q, %q, %q gates(%g, %g) pool(%pool) slots(%slots) sequences(%cu) scales(%scales) low(%pool) accepted(%n) pending(%keys, %keys, %decays) counts(%counts) {reads_upper}
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xi8>, tensor<?xi32>, tensor<?xi32> scales !gdn.pool<?x?x64xf32> low !gdn.pool<?x?x64x64xi8> accepted tensor<?xi32> pending !gdn.pool<?x?x8x64xf32>, !gdn.pool<?x?x8x64xf32>, !gdn.pool<?x?x8xf32> counts !gdn.pool<?x?xi32> -> tensor<?x?x64xf32>
  return
}

// -----

func.func @c14_heads(%q: tensor<?x2x64xf32>, %g: tensor<?x?xf32>, %e: tensor<?x4x64xf32>, %pool: !gdn.pool<?x?x64x64xf32>, %slots: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.delta_rule' op expects dim 1 of 'erase' to be Hk = 2, set by dim 1 of 'query', but got 4}}
  %o = gdn.delta_rule %q, %q, %q gates(%g, %g) erase(%e) pool(%pool) slots(%slots)
      : tensor<?x2x64xf32>, tensor<?x2x64xf32>, tensor<?x2x64xf32>, tensor<?x?xf32>, tensor<?x?xf32> erase tensor<?x4x64xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<?xi32> -> tensor<?x2x64xf32>
  return
}

// -----

func.func @c14_channels(%q: tensor<?x2x64xf32>, %g: tensor<?x?xf32>, %e: tensor<?x2x32xf32>, %pool: !gdn.pool<?x?x64x64xf32>, %slots: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.delta_rule' op expects dim 2 of 'erase' to be dk = 64, set by dim 2 of 'query', but got 32}}
  %o = gdn.delta_rule %q, %q, %q gates(%g, %g) erase(%e) pool(%pool) slots(%slots)
      : tensor<?x2x64xf32>, tensor<?x2x64xf32>, tensor<?x2x64xf32>, tensor<?x?xf32>, tensor<?x?xf32> erase tensor<?x2x32xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<?xi32> -> tensor<?x2x64xf32>
  return
}

// -----

func.func @c14_counts(%q: tensor<?x2x64xf32>, %g: tensor<?x?xf32>, %e: tensor<?x2x64xf32>, %pool: !gdn.pool<?x?x64x64xf32>, %slots: tensor<?xi32>,
    %keys: !gdn.pool<?x?x8x64xf32>, %decays: !gdn.pool<?x?x8xf32>, %counts: !gdn.pool<?x?xi32>) {
  // expected-error @+1 {{'gdn.delta_rule' op expects no 'counts' beside 'erase'}}
  %o = gdn.delta_rule %q, %q, %q gates(%g, %g) erase(%e) pool(%pool) slots(%slots) pending(%keys, %keys, %decays) counts(%counts)
      : tensor<?x2x64xf32>, tensor<?x2x64xf32>, tensor<?x2x64xf32>, tensor<?x?xf32>, tensor<?x?xf32> erase tensor<?x2x64xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<?xi32> pending !gdn.pool<?x?x8x64xf32>, !gdn.pool<?x?x8x64xf32>, !gdn.pool<?x?x8xf32> counts !gdn.pool<?x?xi32> -> tensor<?x2x64xf32>
  return
}

// -----

func.func @c14_double_beta(%q: tensor<?x2x64xf32>, %g: tensor<?x?xf32>, %e: tensor<?x2x64xf32>, %pool: !gdn.pool<?x?x64x64xf32>, %slots: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.delta_rule' op expects no 'double_beta' beside 'erase'}}
  %o = gdn.delta_rule %q, %q, %q gates(%g, %g) erase(%e) pool(%pool) slots(%slots) {double_beta}
      : tensor<?x2x64xf32>, tensor<?x2x64xf32>, tensor<?x2x64xf32>, tensor<?x?xf32>, tensor<?x?xf32> erase tensor<?x2x64xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<?xi32> -> tensor<?x2x64xf32>
  return
}
