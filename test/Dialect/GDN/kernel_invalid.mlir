// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn.kernel: one case per constraint that the verifier owns (C1 to C4).
//
// RUN: gdn-opt %s -split-input-file -verify-diagnostics

func.func @c1_number_of_values(%x: tensor<?x?x8xf32>) {
  %0 = gdn.kernel "k" {
    // expected-error @+1 {{'gdn.yield' op expects one operand per result of the kernel, which is 1, but got 2}}
    gdn.yield %x, %x : tensor<?x?x8xf32>, tensor<?x?x8xf32>
  } : tensor<?x?x8xf32>
  return
}

// -----

func.func @c1_type(%x: tensor<?x?x8xf32>) {
  %0 = gdn.kernel "k" {
    // expected-error @+1 {{'gdn.yield' op expects operand 0 to be 'tensor<?x?x8xbf16>', set by result 0 of the kernel, but got 'tensor<?x?x8xf32>'}}
    gdn.yield %x : tensor<?x?x8xf32>
  } : tensor<?x?x8xbf16>
  return
}

// -----

func.func @c2_other_dialect() {
  // expected-error @+1 {{'gdn.kernel' op expects gdn ops only in its body, but got 'arith.constant'}}
  gdn.kernel "k" {
    %0 = arith.constant 1 : index
  }
  return
}

// -----

func.func @c2_nested() {
  // expected-error @+1 {{'gdn.kernel' op expects no other kernel in its body, but got "inner"}}
  gdn.kernel "outer" {
    gdn.kernel "inner" {
    }
  }
  return
}

// -----

// Of what the rule gives, the norm has to be all that is used.
func.func @c3_no_norm(%x: tensor<?x?x8xf32>) {
  // expected-error @+1 {{'gdn.kernel' op expects one rule, and one gdn.gated_rms_norm that alone uses its output, with 'norm_with_rule'}}
  %0 = gdn.kernel "k" norm_with_rule {
    %y = gdn.l2norm %x : tensor<?x?x8xf32> -> tensor<?x?x8xf32>
    gdn.yield %y : tensor<?x?x8xf32>
  } : tensor<?x?x8xf32>
  return
}

// -----

func.func @c3_used_twice(
    %q: tensor<?x?x8xf32>, %z: tensor<?x?x8xbf16>, %w: tensor<8xbf16>, %g: tensor<?x?xf32>,
    %pool: !gdn.pool<?x?x8x8xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.kernel' op expects one rule, and one gdn.gated_rms_norm that alone uses its output, with 'norm_with_rule'}}
  %0:2 = gdn.kernel "k" norm_with_rule {
    %o = gdn.delta_rule %q, %q, %q gates(%g, %g) pool(%pool) slots(%slots) sequences(%cu)
        : tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
          !gdn.pool<?x?x8x8xf32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?x8xf32>
    %y = gdn.gated_rms_norm %o, %z, %w silu
        : tensor<?x?x8xf32>, tensor<?x?x8xbf16>, tensor<8xbf16> -> tensor<?x?x8xbf16>
    gdn.yield %o, %y : tensor<?x?x8xf32>, tensor<?x?x8xbf16>
  } : tensor<?x?x8xf32>, tensor<?x?x8xbf16>
  return
}

// -----

// Values that no convolution makes.
func.func @c4_no_conv(
    %q: tensor<?x?x8xf32>, %g: tensor<?x?xf32>, %pool: !gdn.pool<?x?x8x8xf32>,
    %slots: tensor<?xi32>, %cu: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.kernel' op expects one rule, whose values are a result of a gdn.conv1d that nothing else uses, with 'conv_with_rule'}}
  %0 = gdn.kernel "k" conv_with_rule {
    %o = gdn.delta_rule %q, %q, %q gates(%g, %g) pool(%pool) slots(%slots) sequences(%cu)
        : tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
          !gdn.pool<?x?x8x8xf32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?x8xf32>
    gdn.yield %o : tensor<?x?x8xf32>
  } : tensor<?x?x8xf32>
  return
}

// -----

func.func @c4_used_twice(
    %q: tensor<?x?x8xf32>, %g: tensor<?x?xf32>, %w: tensor<?x4xf32>, %windows: !gdn.pool<?x?x3xf32>,
    %pool: !gdn.pool<?x?x8x8xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>) {
  // expected-error @+1 {{'gdn.kernel' op expects one rule, whose values are a result of a gdn.conv1d that nothing else uses, with 'conv_with_rule'}}
  %0:2 = gdn.kernel "k" conv_with_rule {
    %v = gdn.conv1d %q weight(%w) silu pool(%windows) slots(%slots) sequences(%cu)
        : (tensor<?x?x8xf32>), tensor<?x4xf32>, !gdn.pool<?x?x3xf32>, tensor<?xi32>, tensor<?xi32>
          -> tensor<?x?x8xf32>
    %o = gdn.delta_rule %q, %q, %v gates(%g, %g) pool(%pool) slots(%slots) sequences(%cu)
        : tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
          !gdn.pool<?x?x8x8xf32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?x8xf32>
    gdn.yield %o, %v : tensor<?x?x8xf32>, tensor<?x?x8xf32>
  } : tensor<?x?x8xf32>, tensor<?x?x8xf32>
  return
}
