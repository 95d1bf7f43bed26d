// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Entries that have no tile program: what is wrong with their arguments, results
// and token-wise operands. Each is valid gdn.
//
// RUN: gdn-opt %s -split-input-file -o /dev/null
// RUN: gdn-opt %s -split-input-file -convert-gdn-to-tile -verify-diagnostics

// expected-error@+1 {{'func.func' op expects a gdn.kernel in the entry}}
func.func @no_kernel(%x: tensor<?x?x32xf32> {gdn.name = "x", gdn.dims = ["T", "H", "32"]}) -> (tensor<?x?x32xf32> {gdn.name = "y", gdn.dims = ["T", "H", "32"]})
    attributes {gdn.entry} {
  return %x : tensor<?x?x32xf32>
}

// -----

func.func @two_kernels(%x: tensor<?x?x32xf32> {gdn.name = "x", gdn.dims = ["T", "H", "32"]}) -> (tensor<?x?x32xf32> {gdn.name = "y", gdn.dims = ["T", "H", "32"]})
    attributes {gdn.entry} {
  // expected-note@+1 {{first kernel}}
  %y = gdn.kernel "norm" {
    %n = gdn.l2norm %x : tensor<?x?x32xf32> -> tensor<?x?x32xf32>
    gdn.yield %n : tensor<?x?x32xf32>
  } : tensor<?x?x32xf32>
  // expected-error@+1 {{'gdn.kernel' op expects to be the only kernel of its entry: results passed between kernels need a workspace, which this target lacks}}
  %z = gdn.kernel "norm" {
    %n = gdn.l2norm %y : tensor<?x?x32xf32> -> tensor<?x?x32xf32>
    gdn.yield %n : tensor<?x?x32xf32>
  } : tensor<?x?x32xf32>
  return %z : tensor<?x?x32xf32>
}

// -----

func.func @outside_a_kernel(%x: tensor<?x?x32xf32> {gdn.name = "x", gdn.dims = ["T", "H", "32"]}) -> (tensor<?x?x32xf32> {gdn.name = "y", gdn.dims = ["T", "H", "32"]})
    attributes {gdn.entry} {
  // expected-error@+1 {{'gdn.l2norm' op expects to be inside a gdn.kernel; run gdn-fuse before convert-gdn-to-tile}}
  %y = gdn.l2norm %x : tensor<?x?x32xf32> -> tensor<?x?x32xf32>
  return %y : tensor<?x?x32xf32>
}

// -----

func.func @returns_an_argument(%x: tensor<?x?x32xf32> {gdn.name = "x", gdn.dims = ["T", "H", "32"]}) -> (tensor<?x?x32xf32> {gdn.name = "y", gdn.dims = ["T", "H", "32"]})
    attributes {gdn.entry} {
  %y = gdn.kernel "norm" {
    %n = gdn.l2norm %x : tensor<?x?x32xf32> -> tensor<?x?x32xf32>
    gdn.yield %n : tensor<?x?x32xf32>
  } : tensor<?x?x32xf32>
  // expected-error@+1 {{'func.return' op expects operand 0 to be a result of the entry's kernel}}
  return %x : tensor<?x?x32xf32>
}

// -----

func.func @yields_an_argument(%x: tensor<?x?x32xf32> {gdn.name = "x", gdn.dims = ["T", "H", "32"]}) -> (tensor<?x?x32xf32> {gdn.name = "y", gdn.dims = ["T", "H", "32"]})
    attributes {gdn.entry} {
  %y = gdn.kernel "norm" {
    // expected-error@+1 {{'gdn.yield' op expects operand 0 to be computed in the kernel}}
    gdn.yield %x : tensor<?x?x32xf32>
  } : tensor<?x?x32xf32>
  return %y : tensor<?x?x32xf32>
}

// -----

func.func @returns_nothing(%x: tensor<?x?x32xf32> {gdn.name = "x", gdn.dims = ["T", "H", "32"]}) attributes {gdn.entry} {
  // expected-error@+1 {{'gdn.kernel' op expects the entry to return a result of it}}
  %y = gdn.kernel "norm" {
    %n = gdn.l2norm %x : tensor<?x?x32xf32> -> tensor<?x?x32xf32>
    gdn.yield %n : tensor<?x?x32xf32>
  } : tensor<?x?x32xf32>
  return
}

// -----

func.func @heads_of_results_differ(
    %x: tensor<?x?x32xf32> {gdn.name = "x", gdn.dims = ["T", "H", "32"]},
    %z: tensor<?x?x32xf32> {gdn.name = "z", gdn.dims = ["T", "G", "32"]})
    -> (tensor<?x?x32xf32> {gdn.name = "y", gdn.dims = ["T", "H", "32"]},
        tensor<?x?x32xf32> {gdn.name = "w", gdn.dims = ["T", "G", "32"]})
    attributes {gdn.entry} {
  // expected-error@+1 {{'gdn.kernel' op expects H heads, those of its first result, in result 1 of the entry, but got G}}
  %y, %w = gdn.kernel "norm" {
    %n = gdn.l2norm %x : tensor<?x?x32xf32> -> tensor<?x?x32xf32>
    %m = gdn.l2norm %z : tensor<?x?x32xf32> -> tensor<?x?x32xf32>
    gdn.yield %n, %m : tensor<?x?x32xf32>, tensor<?x?x32xf32>
  } : tensor<?x?x32xf32>, tensor<?x?x32xf32>
  return %y, %w : tensor<?x?x32xf32>, tensor<?x?x32xf32>
}

// -----

func.func @heads_of_operands_differ(
    %x: tensor<?x?x32xf32> {gdn.name = "x", gdn.dims = ["T", "H", "32"]},
    %z: tensor<?x?x32xf32> {gdn.name = "z", gdn.dims = ["T", "G", "32"]},
    %w: tensor<32xf32> {gdn.name = "w", gdn.dims = ["32"]})
    -> (tensor<?x?x32xf32> {gdn.name = "y", gdn.dims = ["T", "H", "32"]})
    attributes {gdn.entry} {
  %y = gdn.kernel "norm" {
    // expected-error@+1 {{'gdn.gated_rms_norm' op expects H heads, those of the values of its kernel, in operand 1, but got G}}
    %n = gdn.gated_rms_norm %x, %z, %w silu
        : tensor<?x?x32xf32>, tensor<?x?x32xf32>, tensor<32xf32>
          -> tensor<?x?x32xf32>
    gdn.yield %n : tensor<?x?x32xf32>
  } : tensor<?x?x32xf32>
  return %y : tensor<?x?x32xf32>
}

// -----

func.func @constant_operand(%x: tensor<?x?x32xf32> {gdn.name = "x", gdn.dims = ["T", "H", "32"]}) -> (tensor<?x?x32xf32> {gdn.name = "y", gdn.dims = ["T", "H", "32"]})
    attributes {gdn.entry} {
  %one = arith.constant dense<1.0> : tensor<8x4x32xf32>
  %y = gdn.kernel "norm" {
    // expected-error@+1 {{'gdn.l2norm' op expects operand 0 to be an argument of the entry, or a part of one, on the way to tiles}}
    %n = gdn.l2norm %one : tensor<8x4x32xf32> -> tensor<?x?x32xf32>
    gdn.yield %n : tensor<?x?x32xf32>
  } : tensor<?x?x32xf32>
  return %y : tensor<?x?x32xf32>
}

// -----

func.func @unpack_of_a_constant(
    %hk: index {gdn.name = "Hk"},
    %x: tensor<?x?x32xf32> {gdn.name = "x", gdn.dims = ["T", "Hk", "32"]})
    -> (tensor<?x?x32xf32> {gdn.name = "y", gdn.dims = ["T", "Hk", "32"]})
    attributes {gdn.entry} {
  %packed = arith.constant dense<1.0> : tensor<8x128xf32>
  // expected-error@+1 {{'gdn.unpack' op expects 'packed' to be an argument of the entry on the way to tiles}}
  %q, %k = gdn.unpack "qk" flat %packed heads(%hk, %hk)
      : tensor<8x128xf32> -> tensor<?x?x32xf32>, tensor<?x?x32xf32>
  %y = gdn.kernel "norm" {
    %n = gdn.l2norm %q : tensor<?x?x32xf32> -> tensor<?x?x32xf32>
    gdn.yield %n : tensor<?x?x32xf32>
  } : tensor<?x?x32xf32>
  return %y : tensor<?x?x32xf32>
}
