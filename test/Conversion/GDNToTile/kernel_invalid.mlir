// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels that have no tile program. Each is valid gdn.
//
// RUN: gdn-opt %s -split-input-file -o /dev/null
// RUN: gdn-opt %s -split-input-file -convert-gdn-to-tile -verify-diagnostics

func.func @two_rules(
    %q: tensor<?x?x32xf32> {gdn.name = "q", gdn.dims = ["T", "Hk", "32"]},
    %v: tensor<?x?x32xf32> {gdn.name = "v", gdn.dims = ["T", "Hv", "32"]},
    %g: tensor<?x?xf32> {gdn.name = "g", gdn.dims = ["T", "Hv"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["T"]},
    %pool: !gdn.pool<?x?x32x32xf32> {gdn.name = "pool", gdn.dims = ["P", "Hv", "32", "32"]})
    -> (tensor<?x?x32xf32> {gdn.name = "y", gdn.dims = ["T", "Hv", "32"]})
    attributes {gdn.entry} {
  %o = gdn.kernel "k" {
    %a = gdn.delta_rule %q, %q, %v gates(%g, %g) pool(%pool) slots(%slots)
        : tensor<?x?x32xf32>, tensor<?x?x32xf32>, tensor<?x?x32xf32>,
          tensor<?x?xf32>, tensor<?x?xf32>, !gdn.pool<?x?x32x32xf32>,
          tensor<?xi32> -> tensor<?x?x32xf32>
    // expected-error@+1 {{'gdn.delta_rule' op expects to be the only rule of its kernel}}
    %y = gdn.delta_rule %q, %q, %a gates(%g, %g) pool(%pool) slots(%slots)
        : tensor<?x?x32xf32>, tensor<?x?x32xf32>, tensor<?x?x32xf32>,
          tensor<?x?xf32>, tensor<?x?xf32>, !gdn.pool<?x?x32x32xf32>,
          tensor<?xi32> -> tensor<?x?x32xf32>
    gdn.yield %y : tensor<?x?x32xf32>
  } : tensor<?x?x32xf32>
  return %o : tensor<?x?x32xf32>
}

// -----

func.func @rows_differ(
    %w: tensor<?x4xf32> {gdn.name = "w", gdn.dims = ["32*Hv", "4"]},
    %cp: !gdn.pool<?x?x3xf32> {gdn.name = "conv_pool", gdn.dims = ["P", "32*Hv", "3"]},
    %q: tensor<?x?x32xf32> {gdn.name = "q", gdn.dims = ["T", "Hk", "32"]},
    %v: tensor<?x?x32xf32> {gdn.name = "v", gdn.dims = ["T", "Hv", "32"]},
    %g: tensor<?x?xf32> {gdn.name = "g", gdn.dims = ["T", "Hv"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["T"]},
    %pool: !gdn.pool<?x?x32x32xf32> {gdn.name = "pool", gdn.dims = ["P", "Hv", "32", "32"]},
    %other: tensor<?xi32> {gdn.name = "other", gdn.dims = ["T"]})
    -> (tensor<?x?x32xf32> {gdn.name = "y", gdn.dims = ["T", "Hv", "32"]})
    attributes {gdn.entry} {
  %o = gdn.kernel "k" {
    // expected-note@+1 {{other op}}
    %vc = gdn.conv1d %v weight(%w) silu pool(%cp) slots(%slots)
        : (tensor<?x?x32xf32>), tensor<?x4xf32>, !gdn.pool<?x?x3xf32>, tensor<?xi32>
          -> tensor<?x?x32xf32>
    // expected-error@+1 {{'gdn.delta_rule' op expects the slots and sequences of the other ops in its kernel}}
    %y = gdn.delta_rule %q, %q, %vc gates(%g, %g) pool(%pool) slots(%other)
        : tensor<?x?x32xf32>, tensor<?x?x32xf32>, tensor<?x?x32xf32>,
          tensor<?x?xf32>, tensor<?x?xf32>, !gdn.pool<?x?x32x32xf32>,
          tensor<?xi32> -> tensor<?x?x32xf32>
    gdn.yield %y : tensor<?x?x32xf32>
  } : tensor<?x?x32xf32>
  return %o : tensor<?x?x32xf32>
}

// -----

func.func @conv_of_a_computed_value(
    %w: tensor<?x4xf32> {gdn.name = "w", gdn.dims = ["32*Hv", "4"]},
    %cp: !gdn.pool<?x?x3xf32> {gdn.name = "conv_pool", gdn.dims = ["P", "32*Hv", "3"]},
    %q: tensor<?x?x32xf32> {gdn.name = "q", gdn.dims = ["T", "Hk", "32"]},
    %v: tensor<?x?x32xf32> {gdn.name = "v", gdn.dims = ["T", "Hv", "32"]},
    %g: tensor<?x?xf32> {gdn.name = "g", gdn.dims = ["T", "Hv"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["T"]},
    %pool: !gdn.pool<?x?x32x32xf32> {gdn.name = "pool", gdn.dims = ["P", "Hv", "32", "32"]})
    -> (tensor<?x?x32xf32> {gdn.name = "y", gdn.dims = ["T", "Hv", "32"]})
    attributes {gdn.entry} {
  %o = gdn.kernel "k" {
    %n = gdn.l2norm %v : tensor<?x?x32xf32> -> tensor<?x?x32xf32>
    // expected-error@+1 {{'gdn.conv1d' op expects its inputs to be arguments of the entry or parts of one on the way to tiles}}
    %vc = gdn.conv1d %n weight(%w) silu pool(%cp) slots(%slots)
        : (tensor<?x?x32xf32>), tensor<?x4xf32>, !gdn.pool<?x?x3xf32>, tensor<?xi32>
          -> tensor<?x?x32xf32>
    %y = gdn.delta_rule %q, %q, %vc gates(%g, %g) pool(%pool) slots(%slots)
        : tensor<?x?x32xf32>, tensor<?x?x32xf32>, tensor<?x?x32xf32>,
          tensor<?x?xf32>, tensor<?x?xf32>, !gdn.pool<?x?x32x32xf32>,
          tensor<?xi32> -> tensor<?x?x32xf32>
    gdn.yield %y : tensor<?x?x32xf32>
  } : tensor<?x?x32xf32>
  return %o : tensor<?x?x32xf32>
}

// -----

func.func @conv_of_all_channels(
    %w: tensor<?x4xf32> {gdn.name = "w", gdn.dims = ["32*Hv", "4"]},
    %cp: !gdn.pool<?x?x3xf32> {gdn.name = "conv_pool", gdn.dims = ["P", "32*Hv", "3"]},
    %q: tensor<?x?x32xf32> {gdn.name = "q", gdn.dims = ["T", "Hk", "32"]},
    %v: tensor<?x?x32xf32> {gdn.name = "v", gdn.dims = ["T", "Hv", "32"]},
    %g: tensor<?x?xf32> {gdn.name = "g", gdn.dims = ["T", "Hv"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["T"]},
    %pool: !gdn.pool<?x?x32x32xf32> {gdn.name = "pool", gdn.dims = ["P", "Hv", "32", "32"]},
    %x: tensor<?x?xf32> {gdn.name = "x", gdn.dims = ["T", "32*Hv"]})
    -> (tensor<?x?x32xf32> {gdn.name = "y", gdn.dims = ["T", "Hv", "32"]})
    attributes {gdn.entry} {
  %o = gdn.kernel "k" {
    // expected-error@+1 {{'gdn.conv1d' op expects inputs T x H x d on the way to tiles; put gdn.unpack before gdn.conv1d}}
    %c = gdn.conv1d %x weight(%w) silu pool(%cp) slots(%slots)
        : (tensor<?x?xf32>), tensor<?x4xf32>, !gdn.pool<?x?x3xf32>, tensor<?xi32>
          -> tensor<?x?xf32>
    %y = gdn.delta_rule %q, %q, %v gates(%g, %g) pool(%pool) slots(%slots)
        : tensor<?x?x32xf32>, tensor<?x?x32xf32>, tensor<?x?x32xf32>,
          tensor<?x?xf32>, tensor<?x?xf32>, !gdn.pool<?x?x32x32xf32>,
          tensor<?xi32> -> tensor<?x?x32xf32>
    gdn.yield %y : tensor<?x?x32xf32>
  } : tensor<?x?x32xf32>
  return %o : tensor<?x?x32xf32>
}

// -----

func.func @pool_read(
    %q: tensor<?x?x32xf32> {gdn.name = "q", gdn.dims = ["T", "Hk", "32"]},
    %v: tensor<?x?x32xf32> {gdn.name = "v", gdn.dims = ["T", "Hv", "32"]},
    %g: tensor<?x?xf32> {gdn.name = "g", gdn.dims = ["T", "Hv"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["T"]},
    %pool: !gdn.pool<?x?x32x32xf32> {gdn.name = "pool", gdn.dims = ["P", "Hv", "32", "32"]})
    -> (tensor<?x?x32xf32> {gdn.name = "y", gdn.dims = ["T", "Hv", "32"]})
    attributes {gdn.entry} {
  %o = gdn.kernel "k" {
    // expected-error@+1 {{'gdn.pool_read' op has no tile program inside a fused kernel}}
    %s = gdn.pool_read %pool[%slots]
        : !gdn.pool<?x?x32x32xf32>, tensor<?xi32> -> tensor<?x?x32x32xf32>
    %y = gdn.delta_rule %q, %q, %v gates(%g, %g) pool(%pool) slots(%slots)
        : tensor<?x?x32xf32>, tensor<?x?x32xf32>, tensor<?x?x32xf32>,
          tensor<?x?xf32>, tensor<?x?xf32>, !gdn.pool<?x?x32x32xf32>,
          tensor<?xi32> -> tensor<?x?x32xf32>
    gdn.yield %y : tensor<?x?x32xf32>
  } : tensor<?x?x32xf32>
  return %o : tensor<?x?x32xf32>
}

// -----

func.func @not_zero_in_skipped_rows(
    %q: tensor<?x?x32xf32> {gdn.name = "q", gdn.dims = ["T", "Hk", "32"]},
    %v: tensor<?x?x32xf32> {gdn.name = "v", gdn.dims = ["T", "Hv", "32"]},
    %g: tensor<?x?xf32> {gdn.name = "g", gdn.dims = ["T", "Hv"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["T"]},
    %pool: !gdn.pool<?x?x32x32xf32> {gdn.name = "pool", gdn.dims = ["P", "Hv", "32", "32"]})
    -> (tensor<?x?x32xf32> {gdn.name = "y", gdn.dims = ["T", "Hv", "32"]})
    attributes {gdn.entry} {
  %o = gdn.kernel "k" {
    %a = gdn.delta_rule %q, %q, %v gates(%g, %g) pool(%pool) slots(%slots)
        : tensor<?x?x32xf32>, tensor<?x?x32xf32>, tensor<?x?x32xf32>,
          tensor<?x?xf32>, tensor<?x?xf32>, !gdn.pool<?x?x32x32xf32>,
          tensor<?xi32> -> tensor<?x?x32xf32>
    %y = gdn.l2norm %a : tensor<?x?x32xf32> -> tensor<?x?x32xf32>
    // expected-error@+1 {{'gdn.yield' op expects operand 0 to be zero in skipped sequences: the result of gdn.delta_rule, gdn.conv1d or gdn.mask_sequences}}
    gdn.yield %y : tensor<?x?x32xf32>
  } : tensor<?x?x32xf32>
  return %o : tensor<?x?x32xf32>
}

// -----

func.func @result_with_key_heads(
    %q: tensor<?x?x32xf32> {gdn.name = "q", gdn.dims = ["T", "Hk", "32"]},
    %v: tensor<?x?x32xf32> {gdn.name = "v", gdn.dims = ["T", "Hv", "32"]},
    %g: tensor<?x?xf32> {gdn.name = "g", gdn.dims = ["T", "Hv"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["T"]},
    %pool: !gdn.pool<?x?x32x32xf32> {gdn.name = "pool", gdn.dims = ["P", "Hv", "32", "32"]})
    -> (tensor<?x?x32xf32> {gdn.name = "y", gdn.dims = ["T", "Hv", "32"]})
    attributes {gdn.entry} {
  // expected-error@+1 {{'gdn.kernel' op expects Hv heads, those of its values, in result 0 of the entry, but got Hk}}
  %o = gdn.kernel "k" {
    %a = gdn.delta_rule %q, %q, %v gates(%g, %g) pool(%pool) slots(%slots)
        : tensor<?x?x32xf32>, tensor<?x?x32xf32>, tensor<?x?x32xf32>,
          tensor<?x?xf32>, tensor<?x?xf32>, !gdn.pool<?x?x32x32xf32>,
          tensor<?xi32> -> tensor<?x?x32xf32>
    %n = gdn.l2norm %q : tensor<?x?x32xf32> -> tensor<?x?x32xf32>
    %y = gdn.mask_sequences %n of(%pool) slots(%slots)
        : tensor<?x?x32xf32>, !gdn.pool<?x?x32x32xf32>, tensor<?xi32>
          -> tensor<?x?x32xf32>
    gdn.yield %y : tensor<?x?x32xf32>
  } : tensor<?x?x32xf32>
  return %o : tensor<?x?x32xf32>
}

// -----

func.func @section_with_other_heads(
    %w: tensor<?x4xf32> {gdn.name = "w", gdn.dims = ["32*Hg", "4"]},
    %cp: !gdn.pool<?x?x3xf32> {gdn.name = "conv_pool", gdn.dims = ["P", "32*Hg", "3"]},
    %q: tensor<?x?x32xf32> {gdn.name = "q", gdn.dims = ["T", "Hk", "32"]},
    %v: tensor<?x?x32xf32> {gdn.name = "v", gdn.dims = ["T", "Hv", "32"]},
    %g: tensor<?x?xf32> {gdn.name = "g", gdn.dims = ["T", "Hv"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["T"]},
    %pool: !gdn.pool<?x?x32x32xf32> {gdn.name = "pool", gdn.dims = ["P", "Hv", "32", "32"]},
    %x: tensor<?x?x32xf32> {gdn.name = "x", gdn.dims = ["T", "Hg", "32"]})
    -> (tensor<?x?x32xf32> {gdn.name = "y", gdn.dims = ["T", "Hv", "32"]})
    attributes {gdn.entry} {
  %o = gdn.kernel "k" {
    // expected-error@+1 {{'gdn.conv1d' op expects Hv heads, those of the values of its kernel, in operand 0, but got Hg}}
    %c = gdn.conv1d %x weight(%w) silu pool(%cp) slots(%slots)
        : (tensor<?x?x32xf32>), tensor<?x4xf32>, !gdn.pool<?x?x3xf32>, tensor<?xi32>
          -> tensor<?x?x32xf32>
    %y = gdn.delta_rule %q, %q, %v gates(%g, %g) pool(%pool) slots(%slots)
        : tensor<?x?x32xf32>, tensor<?x?x32xf32>, tensor<?x?x32xf32>,
          tensor<?x?xf32>, tensor<?x?xf32>, !gdn.pool<?x?x32x32xf32>,
          tensor<?xi32> -> tensor<?x?x32xf32>
    gdn.yield %y : tensor<?x?x32xf32>
  } : tensor<?x?x32xf32>
  return %o : tensor<?x?x32xf32>
}

// -----

func.func @constant_slots(
    %q: tensor<?x?x32xf32> {gdn.name = "q", gdn.dims = ["T", "Hk", "32"]},
    %v: tensor<?x?x32xf32> {gdn.name = "v", gdn.dims = ["T", "Hv", "32"]},
    %g: tensor<?x?xf32> {gdn.name = "g", gdn.dims = ["T", "Hv"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["T"]},
    %pool: !gdn.pool<?x?x32x32xf32> {gdn.name = "pool", gdn.dims = ["P", "Hv", "32", "32"]})
    -> (tensor<?x?x32xf32> {gdn.name = "y", gdn.dims = ["T", "Hv", "32"]})
    attributes {gdn.entry} {
  %one = arith.constant dense<1> : tensor<8xi32>
  %o = gdn.kernel "k" {
    // expected-error@+1 {{'gdn.delta_rule' op expects operand 6 to be an argument of the entry on the way to tiles}}
    %y = gdn.delta_rule %q, %q, %v gates(%g, %g) pool(%pool) slots(%one)
        : tensor<?x?x32xf32>, tensor<?x?x32xf32>, tensor<?x?x32xf32>,
          tensor<?x?xf32>, tensor<?x?xf32>, !gdn.pool<?x?x32x32xf32>,
          tensor<8xi32> -> tensor<?x?x32xf32>
    gdn.yield %y : tensor<?x?x32xf32>
  } : tensor<?x?x32xf32>
  return %o : tensor<?x?x32xf32>
}

// -----

func.func @checkpoints_differ(
    %w: tensor<?x4xf32> {gdn.name = "w", gdn.dims = ["32*Hv", "4"]},
    %cp: !gdn.pool<?x?x3xf32> {gdn.name = "conv_pool", gdn.dims = ["P", "32*Hv", "3"]},
    %q: tensor<?x?x32xf32> {gdn.name = "q", gdn.dims = ["T", "Hk", "32"]},
    %v: tensor<?x?x32xf32> {gdn.name = "v", gdn.dims = ["T", "Hv", "32"]},
    %g: tensor<?x?xf32> {gdn.name = "g", gdn.dims = ["T", "Hv"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %cu: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]},
    %n: tensor<?xi32> {gdn.name = "tokens", gdn.dims = ["C"]},
    %to: tensor<?xi32> {gdn.name = "to", gdn.dims = ["C"]},
    %other: tensor<?xi32> {gdn.name = "other", gdn.dims = ["C"]},
    %pool: !gdn.pool<?x?x32x32xf32> {gdn.name = "pool", gdn.dims = ["P", "Hv", "32", "32"]})
    -> (tensor<?x?x32xf32> {gdn.name = "y", gdn.dims = ["T", "Hv", "32"]})
    attributes {gdn.entry} {
  %o = gdn.kernel "k" {
    // expected-note@+1 {{other op}}
    %vc = gdn.conv1d %v weight(%w) silu pool(%cp) slots(%slots) sequences(%cu)
        checkpoints(%cu, %n, %to)
        : (tensor<?x?x32xf32>), tensor<?x4xf32>, !gdn.pool<?x?x3xf32>, tensor<?xi32>, tensor<?xi32>
          checkpoints tensor<?xi32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?x32xf32>
    // expected-error@+1 {{'gdn.delta_rule' op expects the checkpoints of the other ops in its kernel}}
    %y = gdn.delta_rule %q, %q, %vc gates(%g, %g) pool(%pool) slots(%slots) sequences(%cu)
        checkpoints(%cu, %n, %other)
        : tensor<?x?x32xf32>, tensor<?x?x32xf32>, tensor<?x?x32xf32>,
          tensor<?x?xf32>, tensor<?x?xf32>, !gdn.pool<?x?x32x32xf32>,
          tensor<?xi32>, tensor<?xi32> checkpoints tensor<?xi32>, tensor<?xi32>, tensor<?xi32>
          -> tensor<?x?x32xf32>
    gdn.yield %y : tensor<?x?x32xf32>
  } : tensor<?x?x32xf32>
  return %o : tensor<?x?x32xf32>
}

// -----

func.func @token_slots_differ(
    %w: tensor<?x4xf32> {gdn.name = "w", gdn.dims = ["32*Hv", "4"]},
    %cp: !gdn.pool<?x?x3xf32> {gdn.name = "conv_pool", gdn.dims = ["P", "32*Hv", "3"]},
    %q: tensor<?x?x32xf32> {gdn.name = "q", gdn.dims = ["T", "Hk", "32"]},
    %v: tensor<?x?x32xf32> {gdn.name = "v", gdn.dims = ["T", "Hv", "32"]},
    %g: tensor<?x?xf32> {gdn.name = "g", gdn.dims = ["T", "Hv"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %cu: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]},
    %a: tensor<?x4xi32> {gdn.name = "a", gdn.dims = ["N", "4"]},
    %b: tensor<?x4xi32> {gdn.name = "b", gdn.dims = ["N", "4"]},
    %pool: !gdn.pool<?x?x32x32xf32> {gdn.name = "pool", gdn.dims = ["P", "Hv", "32", "32"]})
    -> (tensor<?x?x32xf32> {gdn.name = "y", gdn.dims = ["T", "Hv", "32"]})
    attributes {gdn.entry} {
  %o = gdn.kernel "k" {
    // expected-note@+1 {{other op}}
    %vc = gdn.conv1d %v weight(%w) silu pool(%cp) slots(%slots) sequences(%cu) token_slots(%a)
        : (tensor<?x?x32xf32>), tensor<?x4xf32>, !gdn.pool<?x?x3xf32>, tensor<?xi32>, tensor<?xi32>
          token_slots tensor<?x4xi32> -> tensor<?x?x32xf32>
    // expected-error@+1 {{'gdn.delta_rule' op expects the token slots of the other ops in its kernel}}
    %y = gdn.delta_rule %q, %q, %vc gates(%g, %g) pool(%pool) slots(%slots) sequences(%cu) token_slots(%b)
        : tensor<?x?x32xf32>, tensor<?x?x32xf32>, tensor<?x?x32xf32>,
          tensor<?x?xf32>, tensor<?x?xf32>, !gdn.pool<?x?x32x32xf32>,
          tensor<?xi32>, tensor<?xi32> token_slots tensor<?x4xi32> -> tensor<?x?x32xf32>
    gdn.yield %y : tensor<?x?x32xf32>
  } : tensor<?x?x32xf32>
  return %o : tensor<?x?x32xf32>
}

// -----

func.func @token_slots_beside_checkpoints(
    %w: tensor<?x4xf32> {gdn.name = "w", gdn.dims = ["32*Hv", "4"]},
    %cp: !gdn.pool<?x?x3xf32> {gdn.name = "conv_pool", gdn.dims = ["P", "32*Hv", "3"]},
    %q: tensor<?x?x32xf32> {gdn.name = "q", gdn.dims = ["T", "Hk", "32"]},
    %v: tensor<?x?x32xf32> {gdn.name = "v", gdn.dims = ["T", "Hv", "32"]},
    %g: tensor<?x?xf32> {gdn.name = "g", gdn.dims = ["T", "Hv"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %cu: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]},
    %a: tensor<?x4xi32> {gdn.name = "a", gdn.dims = ["N", "4"]},
    %b: tensor<?x4xi32> {gdn.name = "b", gdn.dims = ["N", "4"]},
    %pool: !gdn.pool<?x?x32x32xf32> {gdn.name = "pool", gdn.dims = ["P", "Hv", "32", "32"]})
    -> (tensor<?x?x32xf32> {gdn.name = "y", gdn.dims = ["T", "Hv", "32"]})
    attributes {gdn.entry} {
  %o = gdn.kernel "k" {
    // expected-note@+1 {{other op}}
    %vc = gdn.conv1d %v weight(%w) silu pool(%cp) slots(%slots) sequences(%cu) checkpoints(%cu, %cu, %cu)
        : (tensor<?x?x32xf32>), tensor<?x4xf32>, !gdn.pool<?x?x3xf32>, tensor<?xi32>, tensor<?xi32>
          checkpoints tensor<?xi32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?x32xf32>
    // expected-error@+1 {{'gdn.delta_rule' op expects no checkpoints beside 'token_slots' in its kernel}}
    %y = gdn.delta_rule %q, %q, %vc gates(%g, %g) pool(%pool) slots(%slots) sequences(%cu) token_slots(%a)
        : tensor<?x?x32xf32>, tensor<?x?x32xf32>, tensor<?x?x32xf32>,
          tensor<?x?xf32>, tensor<?x?xf32>, !gdn.pool<?x?x32x32xf32>,
          tensor<?xi32>, tensor<?xi32> token_slots tensor<?x4xi32> -> tensor<?x?x32xf32>
    gdn.yield %y : tensor<?x?x32xf32>
  } : tensor<?x?x32xf32>
  return %o : tensor<?x?x32xf32>
}

// -----

func.func @checkpoints_beside_token_slots(
    %w: tensor<?x4xf32> {gdn.name = "w", gdn.dims = ["32*Hv", "4"]},
    %cp: !gdn.pool<?x?x3xf32> {gdn.name = "conv_pool", gdn.dims = ["P", "32*Hv", "3"]},
    %q: tensor<?x?x32xf32> {gdn.name = "q", gdn.dims = ["T", "Hk", "32"]},
    %v: tensor<?x?x32xf32> {gdn.name = "v", gdn.dims = ["T", "Hv", "32"]},
    %g: tensor<?x?xf32> {gdn.name = "g", gdn.dims = ["T", "Hv"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %cu: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]},
    %a: tensor<?x4xi32> {gdn.name = "a", gdn.dims = ["N", "4"]},
    %b: tensor<?x4xi32> {gdn.name = "b", gdn.dims = ["N", "4"]},
    %pool: !gdn.pool<?x?x32x32xf32> {gdn.name = "pool", gdn.dims = ["P", "Hv", "32", "32"]})
    -> (tensor<?x?x32xf32> {gdn.name = "y", gdn.dims = ["T", "Hv", "32"]})
    attributes {gdn.entry} {
  %o = gdn.kernel "k" {
    // expected-note@+1 {{other op}}
    %vc = gdn.conv1d %v weight(%w) silu pool(%cp) slots(%slots) sequences(%cu) token_slots(%a)
        : (tensor<?x?x32xf32>), tensor<?x4xf32>, !gdn.pool<?x?x3xf32>, tensor<?xi32>, tensor<?xi32>
          token_slots tensor<?x4xi32> -> tensor<?x?x32xf32>
    // expected-error@+1 {{'gdn.delta_rule' op expects no checkpoints beside 'token_slots' in its kernel}}
    %y = gdn.delta_rule %q, %q, %vc gates(%g, %g) pool(%pool) slots(%slots) sequences(%cu) checkpoints(%cu, %cu, %cu)
        : tensor<?x?x32xf32>, tensor<?x?x32xf32>, tensor<?x?x32xf32>,
          tensor<?x?xf32>, tensor<?x?xf32>, !gdn.pool<?x?x32x32xf32>,
          tensor<?xi32>, tensor<?xi32> checkpoints tensor<?xi32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?x32xf32>
    gdn.yield %y : tensor<?x?x32xf32>
  } : tensor<?x?x32xf32>
  return %o : tensor<?x?x32xf32>
}

// -----

func.func @parents_of_one(
    %w: tensor<?x4xf32> {gdn.name = "w", gdn.dims = ["32*Hv", "4"]},
    %cp: !gdn.pool<?x?x3xf32> {gdn.name = "conv_pool", gdn.dims = ["P", "32*Hv", "3"]},
    %q: tensor<?x?x32xf32> {gdn.name = "q", gdn.dims = ["T", "Hk", "32"]},
    %v: tensor<?x?x32xf32> {gdn.name = "v", gdn.dims = ["T", "Hv", "32"]},
    %g: tensor<?x?xf32> {gdn.name = "g", gdn.dims = ["T", "Hv"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %cu: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]},
    %a: tensor<?x4xi32> {gdn.name = "a", gdn.dims = ["N", "4"]},
    %b: tensor<?x4xi32> {gdn.name = "b", gdn.dims = ["N", "4"]},
    %pool: !gdn.pool<?x?x32x32xf32> {gdn.name = "pool", gdn.dims = ["P", "Hv", "32", "32"]})
    -> (tensor<?x?x32xf32> {gdn.name = "y", gdn.dims = ["T", "Hv", "32"]})
    attributes {gdn.entry} {
  %o = gdn.kernel "k" {
    // expected-note@+1 {{other op}}
    %vc = gdn.conv1d %v weight(%w) silu pool(%cp) slots(%slots) sequences(%cu) token_slots(%a)
        : (tensor<?x?x32xf32>), tensor<?x4xf32>, !gdn.pool<?x?x3xf32>, tensor<?xi32>, tensor<?xi32>
          token_slots tensor<?x4xi32> -> tensor<?x?x32xf32>
    // expected-error@+1 {{'gdn.delta_rule' op expects the token slots of the other ops in its kernel}}
    %y = gdn.delta_rule %q, %q, %vc gates(%g, %g) pool(%pool) slots(%slots) sequences(%cu) token_slots(%a) parents(%b)
        : tensor<?x?x32xf32>, tensor<?x?x32xf32>, tensor<?x?x32xf32>,
          tensor<?x?xf32>, tensor<?x?xf32>, !gdn.pool<?x?x32x32xf32>,
          tensor<?xi32>, tensor<?xi32> token_slots tensor<?x4xi32> parents tensor<?x4xi32> -> tensor<?x?x32xf32>
    gdn.yield %y : tensor<?x?x32xf32>
  } : tensor<?x?x32xf32>
  return %o : tensor<?x?x32xf32>
}

// -----

func.func @move_beside_a_rule(
    %q: tensor<?x?x32xf32> {gdn.name = "q", gdn.dims = ["T", "Hk", "32"]},
    %v: tensor<?x?x32xf32> {gdn.name = "v", gdn.dims = ["T", "Hv", "32"]},
    %g: tensor<?x?xf32> {gdn.name = "g", gdn.dims = ["T", "Hv"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["T"]},
    %pool: !gdn.pool<?x?x32x32xf32> {gdn.name = "pool", gdn.dims = ["P", "Hv", "32", "32"]})
    -> (tensor<?x?x32xf32> {gdn.name = "y", gdn.dims = ["T", "Hv", "32"]})
    attributes {gdn.entry} {
  %o = gdn.kernel "k" {
    gdn.pool_zero %pool[%slots] : !gdn.pool<?x?x32x32xf32>, tensor<?xi32>
    // expected-error@+1 {{'gdn.delta_rule' op has no tile program beside ops that move slots}}
    %y = gdn.delta_rule %q, %q, %v gates(%g, %g) pool(%pool) slots(%slots)
        : tensor<?x?x32xf32>, tensor<?x?x32xf32>, tensor<?x?x32xf32>,
          tensor<?x?xf32>, tensor<?x?xf32>, !gdn.pool<?x?x32x32xf32>,
          tensor<?xi32> -> tensor<?x?x32xf32>
    gdn.yield %y : tensor<?x?x32xf32>
  } : tensor<?x?x32xf32>
  return %o : tensor<?x?x32xf32>
}

// -----

func.func @moves_of_other_rows(
    %a: tensor<?xi32> {gdn.name = "a", gdn.dims = ["N"]},
    %b: tensor<?xi32> {gdn.name = "b", gdn.dims = ["M"]},
    %pool: !gdn.pool<?x?x3xf32> {gdn.name = "pool", gdn.dims = ["P", "D", "3"]})
    attributes {gdn.entry} {
  gdn.kernel "k" {
    gdn.pool_zero %pool[%a] : !gdn.pool<?x?x3xf32>, tensor<?xi32>
    // expected-error@+1 {{'gdn.pool_zero' op expects the N sequences of its kernel, but got M}}
    gdn.pool_zero %pool[%b] : !gdn.pool<?x?x3xf32>, tensor<?xi32>
    gdn.yield
  }
  return
}

// -----

func.func @copy_of_other_rows(
    %a: tensor<?xi32> {gdn.name = "a", gdn.dims = ["N"]},
    %b: tensor<?xi32> {gdn.name = "b", gdn.dims = ["M"]},
    %pool: !gdn.pool<?x?x3xf32> {gdn.name = "pool", gdn.dims = ["P", "D", "3"]})
    attributes {gdn.entry} {
  gdn.kernel "k" {
    // expected-error@+1 {{'gdn.pool_copy' op expects 'write_slots' to be N, as 'slots' are, but got M}}
    gdn.pool_copy %pool[%a] to %pool[%b] : !gdn.pool<?x?x3xf32>, tensor<?xi32> to !gdn.pool<?x?x3xf32>, tensor<?xi32>
    gdn.yield
  }
  return
}

// -----

func.func @copy_of_other_heads(
    %a: tensor<?xi32> {gdn.name = "a", gdn.dims = ["N"]},
    %p: !gdn.pool<?x?x8x8xf32> {gdn.name = "p", gdn.dims = ["P", "Hk", "8", "8"]},
    %r: !gdn.pool<?x?x8x8xf32> {gdn.name = "r", gdn.dims = ["P", "Hv", "8", "8"]})
    attributes {gdn.entry} {
  gdn.kernel "k" {
    // expected-error@+1 {{'gdn.pool_copy' op expects dim 1 of 'target' to be Hk, that of 'source', but got Hv}}
    gdn.pool_copy %p[%a] to %r[%a] : !gdn.pool<?x?x8x8xf32>, tensor<?xi32> to !gdn.pool<?x?x8x8xf32>, tensor<?xi32>
    gdn.yield
  }
  return
}

// -----

func.func @move_of_rank_2(
    %a: tensor<?xi32> {gdn.name = "a", gdn.dims = ["N"]},
    %pool: !gdn.pool<?x8xf32> {gdn.name = "pool", gdn.dims = ["P", "8"]})
    attributes {gdn.entry} {
  gdn.kernel "k" {
    // expected-error@+1 {{'gdn.pool_zero' op expects a pool of rank 3 or 4 with static dimensions from 2 on, but got '!gdn.pool<?x8xf32>'}}
    gdn.pool_zero %pool[%a] : !gdn.pool<?x8xf32>, tensor<?xi32>
    gdn.yield
  }
  return
}

// -----

func.func @buffer_of_a_tree(
    %q: tensor<?x?x32xf32> {gdn.name = "q", gdn.dims = ["T", "H", "32"]},
    %g: tensor<?x?xf32> {gdn.name = "g", gdn.dims = ["T", "H"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %cu: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]},
    %a: tensor<?x4xi32> {gdn.name = "a", gdn.dims = ["N", "4"]},
    %pool: !gdn.pool<?x?x32x32xf32> {gdn.name = "pool", gdn.dims = ["P", "H", "32", "32"]},
    %buffer: !gdn.pool<?x?x32x32xf32> {gdn.name = "buffer", gdn.dims = ["B", "H", "32", "32"]})
    -> (tensor<?x?x32xf32> {gdn.name = "y", gdn.dims = ["T", "H", "32"]})
    attributes {gdn.entry} {
  %o = gdn.kernel "k" {
    // expected-error@+1 {{'gdn.delta_rule' op expects no 'token_pool' beside 'parents' on the way to tiles}}
    %y = gdn.delta_rule %q, %q, %q gates(%g, %g) pool(%pool) slots(%slots) sequences(%cu) token_slots(%a) parents(%a) token_pool(%buffer)
        : tensor<?x?x32xf32>, tensor<?x?x32xf32>, tensor<?x?x32xf32>,
          tensor<?x?xf32>, tensor<?x?xf32>, !gdn.pool<?x?x32x32xf32>,
          tensor<?xi32>, tensor<?xi32> token_slots tensor<?x4xi32> parents tensor<?x4xi32> token_pool !gdn.pool<?x?x32x32xf32> -> tensor<?x?x32xf32>
    gdn.yield %y : tensor<?x?x32xf32>
  } : tensor<?x?x32xf32>
  return %o : tensor<?x?x32xf32>
}
