// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn.gates: one case per constraint that the verifier owns (C1 to C6),
// and a type that no operand has.
//
// RUN: gdn-opt %s -split-input-file -verify-diagnostics

func.func @c1_bias_rank(%a: tensor<?x?xf32>, %b: tensor<?x?xf32>, %a_log: tensor<?xf32>, %dt_bias: tensor<?x?xf32>) {
  // expected-error @+1 {{'gdn.gates' op expects 'dt_bias' to have rank 1, Hv, but got rank 2}}
  %g, %beta = gdn.gates %a, %b, %a_log, %dt_bias
      : tensor<?x?xf32>, tensor<?x?xf32>, tensor<?xf32>, tensor<?x?xf32> -> tensor<?x?xf32>, tensor<?x?xf32>
  return
}

// -----

func.func @c1_bias_channels(%a: tensor<?x?x64xf32>, %b: tensor<?x?xf32>, %a_log: tensor<?xf32>, %dt_bias: tensor<?x32xf32>) {
  // expected-error @+1 {{'gdn.gates' op expects dim 1 of 'dt_bias' to be dk = 64, set by dim 2 of 'a', but got 32}}
  %g, %beta = gdn.gates %a, %b, %a_log, %dt_bias
      : tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?xf32>, tensor<?x32xf32> -> tensor<?x?x64xf32>, tensor<?x?xf32>
  return
}

// -----

func.func @c2_tokens(%a: tensor<5x4xf32>, %b: tensor<6x4xf32>, %a_log: tensor<?xf32>, %dt_bias: tensor<?xf32>) {
  // expected-error @+1 {{'gdn.gates' op expects dim 0 of 'b' to be T = 5, set by dim 0 of 'a', but got 6}}
  %g, %beta = gdn.gates %a, %b, %a_log, %dt_bias
      : tensor<5x4xf32>, tensor<6x4xf32>, tensor<?xf32>, tensor<?xf32> -> tensor<?x?xf32>, tensor<?x?xf32>
  return
}

// -----

func.func @c2_heads(%a: tensor<5x4xf32>, %b: tensor<5x4xf32>, %a_log: tensor<8xf32>, %dt_bias: tensor<?xf32>) {
  // expected-error @+1 {{'gdn.gates' op expects dim 0 of 'a_log' to be Hv = 4, set by dim 1 of 'a', but got 8}}
  %g, %beta = gdn.gates %a, %b, %a_log, %dt_bias
      : tensor<5x4xf32>, tensor<5x4xf32>, tensor<8xf32>, tensor<?xf32> -> tensor<?x?xf32>, tensor<?x?xf32>
  return
}

// -----

func.func @c3_decay_rank(%a: tensor<?x?x64xf32>, %b: tensor<?x?xf32>, %a_log: tensor<?xf32>, %dt_bias: tensor<?x64xf32>) {
  // expected-error @+1 {{'gdn.gates' op expects 'log_decay' to have rank 3, T x Hv x dk, but got rank 2}}
  %g, %beta = gdn.gates %a, %b, %a_log, %dt_bias
      : tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?xf32>, tensor<?x64xf32> -> tensor<?x?xf32>, tensor<?x?xf32>
  return
}

// -----

func.func @c3_decay_heads(%a: tensor<5x4xf32>, %b: tensor<5x4xf32>, %a_log: tensor<?xf32>, %dt_bias: tensor<?xf32>) {
  // expected-error @+1 {{'gdn.gates' op expects dim 1 of 'log_decay' to be Hv = 4, set by dim 1 of 'a', but got 2}}
  %g, %beta = gdn.gates %a, %b, %a_log, %dt_bias
      : tensor<5x4xf32>, tensor<5x4xf32>, tensor<?xf32>, tensor<?xf32> -> tensor<5x2xf32>, tensor<?x?xf32>
  return
}

// -----

func.func @c3_beta_heads(%a: tensor<?x?xf32>, %b: tensor<?x?xf32>, %a_log: tensor<4xf32>, %dt_bias: tensor<?xf32>) {
  // expected-error @+1 {{'gdn.gates' op expects dim 1 of 'beta' to be Hv = 4, set by dim 0 of 'a_log', but got 2}}
  %g, %beta = gdn.gates %a, %b, %a_log, %dt_bias
      : tensor<?x?xf32>, tensor<?x?xf32>, tensor<4xf32>, tensor<?xf32> -> tensor<?x?xf32>, tensor<5x2xf32>
  return
}

// -----

func.func @c4_threshold_zero(%a: tensor<?x?xf32>, %b: tensor<?x?xf32>, %a_log: tensor<?xf32>, %dt_bias: tensor<?xf32>) {
  // expected-error @+1 {{'gdn.gates' op expects 'softplus_threshold' to be positive and finite, but got 0}}
  %g, %beta = gdn.gates %a, %b, %a_log, %dt_bias {softplus_threshold = 0.0 : f32}
      : tensor<?x?xf32>, tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32> -> tensor<?x?xf32>, tensor<?x?xf32>
  return
}

// -----

func.func @c4_threshold_infinite(%a: tensor<?x?xf32>, %b: tensor<?x?xf32>, %a_log: tensor<?xf32>, %dt_bias: tensor<?xf32>) {
  // expected-error @+1 {{'gdn.gates' op expects 'softplus_threshold' to be positive and finite, but got +Inf}}
  %g, %beta = gdn.gates %a, %b, %a_log, %dt_bias {softplus_threshold = 0x7F800000 : f32}
      : tensor<?x?xf32>, tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32> -> tensor<?x?xf32>, tensor<?x?xf32>
  return
}

// -----

func.func @c5_bound_positive(%a: tensor<?x?x64xf32>, %b: tensor<?x?xf32>, %a_log: tensor<?xf32>, %dt_bias: tensor<?x64xf32>) {
  // expected-error @+1 {{'gdn.gates' op expects 'lower_bound' to be negative and finite, but got 5}}
  %g, %beta = gdn.gates %a, %b, %a_log, %dt_bias {lower_bound = 5.0 : f32}
      : tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?xf32>, tensor<?x64xf32> -> tensor<?x?x64xf32>, tensor<?x?xf32>
  return
}

// -----

func.func @c5_bound_zero(%a: tensor<?x?x64xf32>, %b: tensor<?x?xf32>, %a_log: tensor<?xf32>, %dt_bias: tensor<?x64xf32>) {
  // expected-error @+1 {{'gdn.gates' op expects 'lower_bound' to be negative and finite, but got 0}}
  %g, %beta = gdn.gates %a, %b, %a_log, %dt_bias {lower_bound = 0.0 : f32}
      : tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?xf32>, tensor<?x64xf32> -> tensor<?x?x64xf32>, tensor<?x?xf32>
  return
}

// -----

func.func @c5_bound_negative_zero(%a: tensor<?x?x64xf32>, %b: tensor<?x?xf32>, %a_log: tensor<?xf32>, %dt_bias: tensor<?x64xf32>) {
  // expected-error @+1 {{'gdn.gates' op expects 'lower_bound' to be negative and finite, but got -0}}
  %g, %beta = gdn.gates %a, %b, %a_log, %dt_bias {lower_bound = -0.0 : f32}
      : tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?xf32>, tensor<?x64xf32> -> tensor<?x?x64xf32>, tensor<?x?xf32>
  return
}

// -----

func.func @c5_bound_infinite(%a: tensor<?x?x64xf32>, %b: tensor<?x?xf32>, %a_log: tensor<?xf32>, %dt_bias: tensor<?x64xf32>) {
  // expected-error @+1 {{'gdn.gates' op expects 'lower_bound' to be negative and finite, but got -Inf}}
  %g, %beta = gdn.gates %a, %b, %a_log, %dt_bias {lower_bound = 0xFF800000 : f32}
      : tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?xf32>, tensor<?x64xf32> -> tensor<?x?x64xf32>, tensor<?x?xf32>
  return
}

// -----

func.func @c5_bound_nan(%a: tensor<?x?x64xf32>, %b: tensor<?x?xf32>, %a_log: tensor<?xf32>, %dt_bias: tensor<?x64xf32>) {
  // expected-error @+1 {{'gdn.gates' op expects 'lower_bound' to be negative and finite, but got NaN}}
  %g, %beta = gdn.gates %a, %b, %a_log, %dt_bias {lower_bound = 0xFFC00000 : f32}
      : tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?xf32>, tensor<?x64xf32> -> tensor<?x?x64xf32>, tensor<?x?xf32>
  return
}

// -----

func.func @c6_no_rate(%a: tensor<?x?xf32>, %b: tensor<?x?xf32>, %dt_bias: tensor<?xf32>) {
  // expected-error @+1 {{'gdn.gates' op expects an 'a_log' without 'lower_bound', but got neither}}
  %g, %beta = gdn.gates %a, %b, %dt_bias
      : tensor<?x?xf32>, tensor<?x?xf32>, tensor<?xf32> -> tensor<?x?xf32>, tensor<?x?xf32>
  return
}

// -----

func.func @type_without_operand(%a: tensor<?x?xf32>, %b: tensor<?x?xf32>, %dt_bias: tensor<?xf32>) {
  // expected-error @+1 {{'gdn.gates' number of operands and types do not match: got 0 operands and 1 types}}
  %g, %beta = gdn.gates %a, %b, %dt_bias {lower_bound = -5.0 : f32}
      : tensor<?x?xf32>, tensor<?x?xf32>, tensor<?xf32>, tensor<?xf32> -> tensor<?x?xf32>, tensor<?x?xf32>
  return
}
