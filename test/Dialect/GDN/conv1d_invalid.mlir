// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn.conv1d: one case per constraint that the verifier owns (C1 to C6).
//
// RUN: gdn-opt %s -split-input-file -verify-diagnostics

func.func @c1_no_input(%w: tensor<?x4xf32>, %pool: !gdn.pool<?x?x3xf32>, %slots: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.conv1d' op expects at least one input, but got 0}}
  "gdn.conv1d"(%w, %pool, %slots) <{activation = 1 : i32, operandSegmentSizes = array<i32: 0, 1, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>}>
      : (tensor<?x4xf32>, !gdn.pool<?x?x3xf32>, tensor<?xi32>) -> ()
  return
}

// -----

func.func @c1_number_of_results(%x0: tensor<?x?xf32>, %x1: tensor<?x?xf32>, %w: tensor<?x4xf32>, %pool: !gdn.pool<?x?x3xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.conv1d' op expects one result per input, which is 2, but got 1}}
  %r:1 = gdn.conv1d %x0, %x1 weight(%w) silu
      pool(%pool) slots(%slots) sequences(%cu)
      : (tensor<?x?xf32>, tensor<?x?xf32>), tensor<?x4xf32>, !gdn.pool<?x?x3xf32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?xf32>
  return
}

// -----

func.func @c1_element_type(%x0: tensor<?x?xf32>, %x1: tensor<?x?xbf16>, %w: tensor<?x4xf32>, %pool: !gdn.pool<?x?x3xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.conv1d' op expects 'inputs[1]' to have the element type of 'inputs[0]', 'f32', but got 'bf16'}}
  %r:2 = gdn.conv1d %x0, %x1 weight(%w) silu
      pool(%pool) slots(%slots) sequences(%cu)
      : (tensor<?x?xf32>, tensor<?x?xbf16>), tensor<?x4xf32>, !gdn.pool<?x?x3xf32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?xf32>, tensor<?x?xf32>
  return
}

// -----

func.func @c1_tokens(%x0: tensor<5x?xf32>, %x1: tensor<6x?xf32>, %w: tensor<?x4xf32>, %pool: !gdn.pool<?x?x3xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.conv1d' op expects dim 0 of 'inputs[1]' to be T = 5, set by dim 0 of 'inputs[0]', but got 6}}
  %r:2 = gdn.conv1d %x0, %x1 weight(%w) silu
      pool(%pool) slots(%slots) sequences(%cu)
      : (tensor<5x?xf32>, tensor<6x?xf32>), tensor<?x4xf32>, !gdn.pool<?x?x3xf32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?xf32>, tensor<?x?xf32>
  return
}

// -----

func.func @c1_result_rank(%x0: tensor<?x?x64xf32>, %w: tensor<?x4xf32>, %pool: !gdn.pool<?x?x3xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.conv1d' op expects 'results[0]' to have rank 3, set by 'inputs[0]', but got rank 2}}
  %r:1 = gdn.conv1d %x0 weight(%w) silu
      pool(%pool) slots(%slots) sequences(%cu)
      : (tensor<?x?x64xf32>), tensor<?x4xf32>, !gdn.pool<?x?x3xf32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?xf32>
  return
}

// -----

func.func @c1_result_size(%x0: tensor<?x?x64xf32>, %w: tensor<?x4xf32>, %pool: !gdn.pool<?x?x3xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.conv1d' op expects dim 2 of 'results[0]' to be 64, set by dim 2 of 'inputs[0]', but got 32}}
  %r:1 = gdn.conv1d %x0 weight(%w) silu
      pool(%pool) slots(%slots) sequences(%cu)
      : (tensor<?x?x64xf32>), tensor<?x4xf32>, !gdn.pool<?x?x3xf32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?x32xf32>
  return
}

// -----

func.func @c2_dynamic_width(%x0: tensor<?x?xf32>, %w: tensor<?x?xf32>, %pool: !gdn.pool<?x?x3xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.conv1d' op expects dim 1 of 'weight', K, to be static, but got a dynamic size}}
  %r:1 = gdn.conv1d %x0 weight(%w) silu
      pool(%pool) slots(%slots) sequences(%cu)
      : (tensor<?x?xf32>), tensor<?x?xf32>, !gdn.pool<?x?x3xf32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?xf32>
  return
}

// -----

func.func @c2_narrow(%x0: tensor<?x?xf32>, %w: tensor<?x1xf32>, %pool: !gdn.pool<?x?x3xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.conv1d' op expects K, set by dim 1 of 'weight', to be from 2 to 8, but got 1}}
  %r:1 = gdn.conv1d %x0 weight(%w) silu
      pool(%pool) slots(%slots) sequences(%cu)
      : (tensor<?x?xf32>), tensor<?x1xf32>, !gdn.pool<?x?x3xf32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?xf32>
  return
}

// -----

func.func @c2_wide(%x0: tensor<?x?xf32>, %w: tensor<?x9xf32>, %pool: !gdn.pool<?x?x8xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.conv1d' op expects K, set by dim 1 of 'weight', to be from 2 to 8, but got 9}}
  %r:1 = gdn.conv1d %x0 weight(%w) silu
      pool(%pool) slots(%slots) sequences(%cu)
      : (tensor<?x?xf32>), tensor<?x9xf32>, !gdn.pool<?x?x8xf32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?xf32>
  return
}

// -----

func.func @c2_bias(%x0: tensor<?x?xf32>, %w: tensor<96x4xf32>, %bias: tensor<64xf32>, %pool: !gdn.pool<?x?x3xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.conv1d' op expects dim 0 of 'bias' to be D = 96, set by dim 0 of 'weight', but got 64}}
  %r:1 = gdn.conv1d %x0 weight(%w) bias(%bias) silu
      pool(%pool) slots(%slots) sequences(%cu)
      : (tensor<?x?xf32>), tensor<96x4xf32> bias tensor<64xf32>, !gdn.pool<?x?x3xf32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?xf32>
  return
}

// -----

func.func @c3_rank(%x0: tensor<?x?xf32>, %w: tensor<?x4xf32>, %pool: !gdn.pool<?x?x3x3xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.conv1d' op expects 'pool' to have rank 3, P x D x K - 1, but got rank 4}}
  %r:1 = gdn.conv1d %x0 weight(%w) silu
      pool(%pool) slots(%slots) sequences(%cu)
      : (tensor<?x?xf32>), tensor<?x4xf32>, !gdn.pool<?x?x3x3xf32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?xf32>
  return
}

// -----

func.func @c3_width(%x0: tensor<?x?xf32>, %w: tensor<?x4xf32>, %pool: !gdn.pool<?x?x4xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.conv1d' op expects dim 2 of 'pool' to be K - 1 = 3, K set by dim 1 of 'weight', but got 4}}
  %r:1 = gdn.conv1d %x0 weight(%w) silu
      pool(%pool) slots(%slots) sequences(%cu)
      : (tensor<?x?xf32>), tensor<?x4xf32>, !gdn.pool<?x?x4xf32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?xf32>
  return
}

// -----

func.func @c3_dynamic_width(%x0: tensor<?x?xf32>, %w: tensor<?x4xf32>, %pool: !gdn.pool<?x?x?xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.conv1d' op expects dim 2 of 'pool', K - 1, to be static, but got a dynamic size}}
  %r:1 = gdn.conv1d %x0 weight(%w) silu
      pool(%pool) slots(%slots) sequences(%cu)
      : (tensor<?x?xf32>), tensor<?x4xf32>, !gdn.pool<?x?x?xf32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?xf32>
  return
}

// -----

func.func @c3_channels(%x0: tensor<?x?xf32>, %w: tensor<96x4xf32>, %pool: !gdn.pool<?x64x3xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.conv1d' op expects dim 1 of 'pool' to be D = 96, set by dim 0 of 'weight', but got 64}}
  %r:1 = gdn.conv1d %x0 weight(%w) silu
      pool(%pool) slots(%slots) sequences(%cu)
      : (tensor<?x?xf32>), tensor<96x4xf32>, !gdn.pool<?x64x3xf32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?xf32>
  return
}

// -----

func.func @c4_rows(%x0: tensor<?x?xf32>, %w: tensor<?x4xf32>, %pool: !gdn.pool<?x?x3xf32>, %slots: tensor<4xi32>, %cu: tensor<4xi32>) {
  // expected-error @+1 {{'gdn.conv1d' op expects dim 0 of 'cu_seqlens' to be N + 1 = 5, N set by dim 0 of 'slots', but got 4}}
  %r:1 = gdn.conv1d %x0 weight(%w) silu
      pool(%pool) slots(%slots) sequences(%cu)
      : (tensor<?x?xf32>), tensor<?x4xf32>, !gdn.pool<?x?x3xf32>, tensor<4xi32>, tensor<4xi32> -> tensor<?x?xf32>
  return
}

// -----

func.func @c4_no_bounds(%x0: tensor<?x?xf32>, %w: tensor<?x4xf32>, %pool: !gdn.pool<?x?x3xf32>, %slots: tensor<?xi32>, %cu: tensor<0xi32>) {
  // expected-error @+1 {{'gdn.conv1d' op expects dim 0 of 'cu_seqlens', N + 1, to be at least 1, but got 0}}
  %r:1 = gdn.conv1d %x0 weight(%w) silu
      pool(%pool) slots(%slots) sequences(%cu)
      : (tensor<?x?xf32>), tensor<?x4xf32>, !gdn.pool<?x?x3xf32>, tensor<?xi32>, tensor<0xi32> -> tensor<?x?xf32>
  return
}

// -----

func.func @c4_decode(%x0: tensor<5x?xf32>, %w: tensor<?x4xf32>, %pool: !gdn.pool<?x?x3xf32>, %slots: tensor<4xi32>) {
  // expected-error @+1 {{'gdn.conv1d' op expects dim 0 of 'slots' to be T = 5, set by dim 0 of 'inputs[0]', but got 4}}
  %r:1 = gdn.conv1d %x0 weight(%w) silu
      pool(%pool) slots(%slots)
      : (tensor<5x?xf32>), tensor<?x4xf32>, !gdn.pool<?x?x3xf32>, tensor<4xi32> -> tensor<?x?xf32>
  return
}

// -----

func.func @c4_write_slots(%x0: tensor<?x?xf32>, %w: tensor<?x4xf32>, %pool: !gdn.pool<?x?x3xf32>, %slots: tensor<?xi32>, %into: tensor<5xi32>, %cu: tensor<5xi32>) {
  // expected-error @+1 {{'gdn.conv1d' op expects dim 0 of 'write_slots' to be N = 4, set by dim 0 of 'cu_seqlens', but got 5}}
  %r:1 = gdn.conv1d %x0 weight(%w) silu
      pool(%pool) slots(%slots -> %into) sequences(%cu)
      : (tensor<?x?xf32>), tensor<?x4xf32>, !gdn.pool<?x?x3xf32>, tensor<?xi32> into tensor<5xi32>, tensor<5xi32> -> tensor<?x?xf32>
  return
}

// -----

func.func @c4_has_initial(%x0: tensor<?x?xf32>, %w: tensor<?x4xf32>, %pool: !gdn.pool<?x?x3xf32>, %slots: tensor<4xi32>, %cu: tensor<?xi32>, %initial: tensor<5xi1>) {
  // expected-error @+1 {{'gdn.conv1d' op expects dim 0 of 'has_initial' to be N = 4, set by dim 0 of 'slots', but got 5}}
  %r:1 = gdn.conv1d %x0 weight(%w) silu
      pool(%pool) slots(%slots) sequences(%cu) initial(%initial)
      : (tensor<?x?xf32>), tensor<?x4xf32>, !gdn.pool<?x?x3xf32>, tensor<4xi32>, tensor<?xi32> initial tensor<5xi1> -> tensor<?x?xf32>
  return
}

// -----

func.func @c5_activation(%x0: tensor<?x?xf32>, %w: tensor<?x4xf32>, %pool: !gdn.pool<?x?x3xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.conv1d' op expects the activation to be identity or silu, but got sigmoid}}
  %r:1 = gdn.conv1d %x0 weight(%w) sigmoid
      pool(%pool) slots(%slots) sequences(%cu)
      : (tensor<?x?xf32>), tensor<?x4xf32>, !gdn.pool<?x?x3xf32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?xf32>
  return
}

// -----

func.func @c6_channels(%x0: tensor<?x2x8xf32>, %x1: tensor<?x64xf32>, %w: tensor<96x4xf32>, %pool: !gdn.pool<?x?x3xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.conv1d' op expects the channels of 'inputs' to add up to D = 96, set by dim 0 of 'weight', but got 80}}
  %r:2 = gdn.conv1d %x0, %x1 weight(%w) silu
      pool(%pool) slots(%slots) sequences(%cu)
      : (tensor<?x2x8xf32>, tensor<?x64xf32>), tensor<96x4xf32>, !gdn.pool<?x?x3xf32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x2x8xf32>, tensor<?x?xf32>
  return
}

// -----

func.func @c6_channels_of_pool(%x0: tensor<?x64xf32>, %w: tensor<?x4xf32>, %pool: !gdn.pool<?x96x3xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.conv1d' op expects the channels of 'inputs' to add up to D = 96, set by dim 1 of 'pool', but got 64}}
  %r:1 = gdn.conv1d %x0 weight(%w) silu
      pool(%pool) slots(%slots) sequences(%cu)
      : (tensor<?x64xf32>), tensor<?x4xf32>, !gdn.pool<?x96x3xf32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?xf32>
  return
}

// -----

func.func @c6_channels_overflow(%x0: tensor<?x4611686018427387904x64xf32>, %w: tensor<96x4xf32>, %pool: !gdn.pool<?x?x3xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.conv1d' op expects the channels of 'inputs' to add up to D = 96, set by dim 0 of 'weight', but got more than 64 bits hold}}
  %r:1 = gdn.conv1d %x0 weight(%w) silu
      pool(%pool) slots(%slots) sequences(%cu)
      : (tensor<?x4611686018427387904x64xf32>), tensor<96x4xf32>, !gdn.pool<?x?x3xf32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?x64xf32>
  return
}

// -----

func.func @c7_bounds(%x: tensor<?x64xf32>, %w: tensor<64x4xf32>, %pool: !gdn.pool<?x64x3xf32>, %slots: tensor<?xi32>, %cu: tensor<3xi32>,
    %cc: tensor<4xi32>, %ct: tensor<?xi32>, %cs: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.conv1d' op expects dim 0 of 'cu_checkpoints' to be N + 1 = 3, N set by dim 0 of 'cu_seqlens', but got 4}}
  %y = gdn.conv1d %x weight(%w) silu pool(%pool) slots(%slots) sequences(%cu) checkpoints(%cc, %ct, %cs)
      : (tensor<?x64xf32>), tensor<64x4xf32>, !gdn.pool<?x64x3xf32>, tensor<?xi32>, tensor<3xi32>
        checkpoints tensor<4xi32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x64xf32>
  return
}

// -----

func.func @c7_slots(%x: tensor<?x64xf32>, %w: tensor<64x4xf32>, %pool: !gdn.pool<?x64x3xf32>, %slots: tensor<?xi32>, %cu: tensor<3xi32>,
    %cc: tensor<3xi32>, %ct: tensor<5xi32>, %cs: tensor<4xi32>) {
  // expected-error @+1 {{'gdn.conv1d' op expects dim 0 of 'checkpoint_slots' to be C = 5, set by dim 0 of 'checkpoint_tokens', but got 4}}
  %y = gdn.conv1d %x weight(%w) silu pool(%pool) slots(%slots) sequences(%cu) checkpoints(%cc, %ct, %cs)
      : (tensor<?x64xf32>), tensor<64x4xf32>, !gdn.pool<?x64x3xf32>, tensor<?xi32>, tensor<3xi32>
        checkpoints tensor<3xi32>, tensor<5xi32>, tensor<4xi32> -> tensor<?x64xf32>
  return
}

// -----

// Only the generic form can leave one operand out.
func.func @c7_without_bounds(%x: tensor<?x64xf32>, %w: tensor<64x4xf32>, %pool: !gdn.pool<?x64x3xf32>, %slots: tensor<?xi32>, %i: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.conv1d' op expects 'cu_checkpoints' to be given with checkpoints, but got none}}
  %o = "gdn.conv1d"(%x, %w, %pool, %slots, %i, %i, %i) <{activation = 1 : i32, operandSegmentSizes = array<i32: 1, 1, 0, 1, 1, 0, 1, 0, 0, 1, 1, 0, 0, 0, 0>}>
      : (tensor<?x64xf32>, tensor<64x4xf32>, !gdn.pool<?x64x3xf32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>) -> tensor<?x64xf32>
  return
}

// -----

// Only the generic form can leave one operand out.
func.func @c7_without_tokens(%x: tensor<?x64xf32>, %w: tensor<64x4xf32>, %pool: !gdn.pool<?x64x3xf32>, %slots: tensor<?xi32>, %i: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.conv1d' op expects 'checkpoint_tokens' to be given with checkpoints, but got none}}
  %o = "gdn.conv1d"(%x, %w, %pool, %slots, %i, %i, %i) <{activation = 1 : i32, operandSegmentSizes = array<i32: 1, 1, 0, 1, 1, 0, 1, 0, 1, 0, 1, 0, 0, 0, 0>}>
      : (tensor<?x64xf32>, tensor<64x4xf32>, !gdn.pool<?x64x3xf32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>) -> tensor<?x64xf32>
  return
}

// -----

func.func @c8_rows(%x: tensor<?x64xf32>, %w: tensor<64x4xf32>, %pool: !gdn.pool<?x64x3xf32>, %slots: tensor<3xi32>, %cu: tensor<?xi32>,
    %table: tensor<5x4xi32>) {
  // expected-error @+1 {{'gdn.conv1d' op expects dim 0 of 'token_slots' to be N = 3, set by dim 0 of 'slots', but got 5}}
  %y = gdn.conv1d %x weight(%w) silu pool(%pool) slots(%slots) sequences(%cu) token_slots(%table)
      : (tensor<?x64xf32>), tensor<64x4xf32>, !gdn.pool<?x64x3xf32>, tensor<3xi32>, tensor<?xi32> token_slots tensor<5x4xi32> -> tensor<?x64xf32>
  return
}

// -----

func.func @c8_steps(%x: tensor<?x64xf32>, %w: tensor<64x4xf32>, %pool: !gdn.pool<?x64x3xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>,
    %table: tensor<?x9xi32>) {
  // expected-error @+1 {{'gdn.conv1d' op expects S, set by dim 1 of 'token_slots', to be from 1 to 8, but got 9}}
  %y = gdn.conv1d %x weight(%w) silu pool(%pool) slots(%slots) sequences(%cu) token_slots(%table)
      : (tensor<?x64xf32>), tensor<64x4xf32>, !gdn.pool<?x64x3xf32>, tensor<?xi32>, tensor<?xi32> token_slots tensor<?x9xi32> -> tensor<?x64xf32>
  return
}

// -----

func.func @c8_without_rows(%x: tensor<?x64xf32>, %w: tensor<64x4xf32>, %pool: !gdn.pool<?x64x3xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>,
    %table: tensor<?x4xi32>) {
  // expected-error @+1 {{'gdn.conv1d' op expects 'cu_seqlens' to be given with 'token_slots', but got none}}
  %y = gdn.conv1d %x weight(%w) silu pool(%pool) slots(%slots) token_slots(%table)
      : (tensor<?x64xf32>), tensor<64x4xf32>, !gdn.pool<?x64x3xf32>, tensor<?xi32> token_slots tensor<?x4xi32> -> tensor<?x64xf32>
  return
}

// -----

func.func @c8_write_slots(%x: tensor<?x64xf32>, %w: tensor<64x4xf32>, %pool: !gdn.pool<?x64x3xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>,
    %table: tensor<?x4xi32>) {
  // expected-error @+1 {{'gdn.conv1d' op expects no 'write_slots' beside 'token_slots', but got some}}
  %y = gdn.conv1d %x weight(%w) silu pool(%pool) slots(%slots -> %slots) sequences(%cu) token_slots(%table)
      : (tensor<?x64xf32>), tensor<64x4xf32>, !gdn.pool<?x64x3xf32>, tensor<?xi32> into tensor<?xi32>, tensor<?xi32> token_slots tensor<?x4xi32> -> tensor<?x64xf32>
  return
}

// -----

func.func @c8_checkpoints(%x: tensor<?x64xf32>, %w: tensor<64x4xf32>, %pool: !gdn.pool<?x64x3xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>,
    %table: tensor<?x4xi32>) {
  // expected-error @+1 {{'gdn.conv1d' op expects no 'checkpoints' beside 'token_slots', but got some}}
  %y = gdn.conv1d %x weight(%w) silu pool(%pool) slots(%slots) sequences(%cu) checkpoints(%cu, %cu, %cu) token_slots(%table)
      : (tensor<?x64xf32>), tensor<64x4xf32>, !gdn.pool<?x64x3xf32>, tensor<?xi32>, tensor<?xi32> checkpoints tensor<?xi32>, tensor<?xi32>, tensor<?xi32> token_slots tensor<?x4xi32> -> tensor<?x64xf32>
  return
}

// -----

func.func @c9_steps(%x: tensor<?x64xf32>, %w: tensor<64x4xf32>, %pool: !gdn.pool<?x64x3xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>,
    %table: tensor<?x4xi32>, %parents: tensor<?x5xi32>) {
  // expected-error @+1 {{'gdn.conv1d' op expects dim 1 of 'parents' to be S = 4, set by dim 1 of 'token_slots', but got 5}}
  %y = gdn.conv1d %x weight(%w) silu pool(%pool) slots(%slots) sequences(%cu) token_slots(%table) parents(%parents)
      : (tensor<?x64xf32>), tensor<64x4xf32>, !gdn.pool<?x64x3xf32>, tensor<?xi32>, tensor<?xi32> token_slots tensor<?x4xi32> parents tensor<?x5xi32> -> tensor<?x64xf32>
  return
}

// -----

func.func @c9_without_slots(%x: tensor<?x64xf32>, %w: tensor<64x4xf32>, %pool: !gdn.pool<?x64x3xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>,
    %table: tensor<?x4xi32>, %parents: tensor<?x4xi32>) {
  // expected-error @+1 {{'gdn.conv1d' op expects 'token_slots' to be given with 'parents', but got none}}
  %y = gdn.conv1d %x weight(%w) silu pool(%pool) slots(%slots) sequences(%cu) parents(%parents)
      : (tensor<?x64xf32>), tensor<64x4xf32>, !gdn.pool<?x64x3xf32>, tensor<?xi32>, tensor<?xi32> parents tensor<?x4xi32> -> tensor<?x64xf32>
  return
}

// -----

func.func @c10_columns(%x: tensor<?x64xf32>, %w: tensor<64x4xf32>, %pool: !gdn.pool<?x64x12xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.conv1d' op expects dim 2 of 'pool' to be 3 + S with S from 1 to 8, but got 12}}
  %y = gdn.conv1d %x weight(%w) silu pool(%pool) slots(%slots) sequences(%cu) pending(%slots)
      : (tensor<?x64xf32>), tensor<64x4xf32>, !gdn.pool<?x64x12xf32>, tensor<?xi32>, tensor<?xi32> pending tensor<?xi32> -> tensor<?x64xf32>
  return
}

// -----

func.func @c10_count(%x: tensor<?x64xf32>, %w: tensor<64x4xf32>, %pool: !gdn.pool<?x64x7xf32>, %slots: tensor<3xi32>, %cu: tensor<?xi32>, %count: tensor<2xi32>) {
  // expected-error @+1 {{'gdn.conv1d' op expects dim 0 of 'num_accepted' to be N = 3, set by dim 0 of 'slots', but got 2}}
  %y = gdn.conv1d %x weight(%w) silu pool(%pool) slots(%slots) sequences(%cu) pending(%count)
      : (tensor<?x64xf32>), tensor<64x4xf32>, !gdn.pool<?x64x7xf32>, tensor<3xi32>, tensor<?xi32> pending tensor<2xi32> -> tensor<?x64xf32>
  return
}

// -----

func.func @c10_without_rows(%x: tensor<?x64xf32>, %w: tensor<64x4xf32>, %pool: !gdn.pool<?x64x7xf32>, %slots: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.conv1d' op expects 'cu_seqlens' to be given with 'num_accepted', but got none}}
  %y = gdn.conv1d %x weight(%w) silu pool(%pool) slots(%slots) pending(%slots)
      : (tensor<?x64xf32>), tensor<64x4xf32>, !gdn.pool<?x64x7xf32>, tensor<?xi32> pending tensor<?xi32> -> tensor<?x64xf32>
  return
}

// -----

func.func @c10_has_initial(%x: tensor<?x64xf32>, %w: tensor<64x4xf32>, %pool: !gdn.pool<?x64x7xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>, %flags: tensor<?xi1>) {
  // expected-error @+1 {{'gdn.conv1d' op expects no 'has_initial' beside 'pending', but got some}}
  %y = gdn.conv1d %x weight(%w) silu pool(%pool) slots(%slots) sequences(%cu) initial(%flags) pending(%slots)
      : (tensor<?x64xf32>), tensor<64x4xf32>, !gdn.pool<?x64x7xf32>, tensor<?xi32>, tensor<?xi32> initial tensor<?xi1> pending tensor<?xi32> -> tensor<?x64xf32>
  return
}

// -----

func.func @c10_token_slots(%x: tensor<?x64xf32>, %w: tensor<64x4xf32>, %pool: !gdn.pool<?x64x7xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>, %table: tensor<?x4xi32>) {
  // expected-error @+1 {{'gdn.conv1d' op expects no 'token_slots' beside 'pending', but got some}}
  %y = gdn.conv1d %x weight(%w) silu pool(%pool) slots(%slots) sequences(%cu) token_slots(%table) pending(%slots)
      : (tensor<?x64xf32>), tensor<64x4xf32>, !gdn.pool<?x64x7xf32>, tensor<?xi32>, tensor<?xi32> token_slots tensor<?x4xi32> pending tensor<?xi32> -> tensor<?x64xf32>
  return
}

// -----

func.func @c11_shape(%x: tensor<?x64xf32>, %w: tensor<64x4xf32>, %pool: !gdn.pool<?x64x3xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>, %table: tensor<?x4xi32>, %buffer: !gdn.pool<?x32x3xf32>) {
  // expected-error @+1 {{'gdn.conv1d' op expects dim 1 of 'token_pool' to be 64, set by dim 1 of 'pool', but got 32}}
  %y = gdn.conv1d %x weight(%w) silu pool(%pool) slots(%slots) sequences(%cu) token_slots(%table) token_pool(%buffer)
      : (tensor<?x64xf32>), tensor<64x4xf32>, !gdn.pool<?x64x3xf32>, tensor<?xi32>, tensor<?xi32> token_slots tensor<?x4xi32> token_pool !gdn.pool<?x32x3xf32> -> tensor<?x64xf32>
  return
}
