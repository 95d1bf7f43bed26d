// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Plans that have no tile program. Each is valid gdn.
//
// RUN: gdn-opt %s -split-input-file -o /dev/null
// RUN: gdn-opt %s -split-input-file -convert-gdn-to-tile -verify-diagnostics

func.func @of_computed_numbers(
    %t: index {gdn.name = "T"}, %s: index {gdn.name = "S"},
    %starts: tensor<?xi32> {gdn.name = "query_start_loc", gdn.dims = ["N + 1"]},
    %n: tensor<?xi32> {gdn.name = "seq_lens", gdn.dims = ["N"]},
    %table: tensor<?x?xi32> {gdn.name = "block_table", gdn.dims = ["N", "B"]},
    %limits: tensor<?x?xi1> {gdn.name = "limits", gdn.dims = ["T", "S"]})
    -> (tensor<?xi1> {gdn.name = "is_prefill", gdn.dims = ["N"]})
    attributes {gdn.entry} {
  %drafts = gdn.accepted_slots %table[%n] : tensor<?x?xi32>, tensor<?xi32> -> tensor<?xi32>
  %plan = gdn.kernel "plan" {
    // expected-error@+1 {{'gdn.plan_batch' op expects operand 3 to be an argument of the entry on the way to tiles}}
    %own:11 = gdn.plan_batch sequences(%starts, %n) table(%table) drafts(%drafts) limits(%t, %s)
        : tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32>, tensor<?xi32>
    gdn.yield %own#0 : tensor<?xi1>
  } : tensor<?xi1>
  return %plan : tensor<?xi1>
}

// -----

// Limits may be constants, arrays may not.
func.func @of_constant_arrays(
    %t: index {gdn.name = "T"}, %s: index {gdn.name = "S"},
    %starts: tensor<4xi32> {gdn.name = "query_start_loc", gdn.dims = ["4"]},
    %n: tensor<3xi32> {gdn.name = "seq_lens", gdn.dims = ["3"]},
    %table: tensor<3x?xi32> {gdn.name = "block_table", gdn.dims = ["3", "B"]},
    %limits: tensor<?x?xi1> {gdn.name = "limits", gdn.dims = ["T", "S"]})
    -> (tensor<3xi1> {gdn.name = "is_prefill", gdn.dims = ["3"]})
    attributes {gdn.entry} {
  %drafts = arith.constant dense<-1> : tensor<3xi32>
  %plan = gdn.kernel "plan" {
    // expected-error@+1 {{'gdn.plan_batch' op expects operand 3 to be an argument of the entry on the way to tiles}}
    %own:11 = gdn.plan_batch sequences(%starts, %n) table(%table) drafts(%drafts) limits(%t, %s)
        : tensor<4xi32>, tensor<3xi32>, tensor<3x?xi32>, tensor<3xi32>
    gdn.yield %own#0 : tensor<3xi1>
  } : tensor<3xi1>
  return %plan : tensor<3xi1>
}

// -----

// No kernel has ops of other dialects, so that this never gets to a plan.
func.func @of_computed_tokens(
    %t: index {gdn.name = "T"}, %s: index {gdn.name = "S"},
    %starts: tensor<?xi32> {gdn.name = "query_start_loc", gdn.dims = ["N + 1"]},
    %n: tensor<?xi32> {gdn.name = "seq_lens", gdn.dims = ["N"]},
    %table: tensor<?x?xi32> {gdn.name = "block_table", gdn.dims = ["N", "B"]},
    %limits: tensor<?x?xi1> {gdn.name = "limits", gdn.dims = ["T", "S"]})
    -> (tensor<?xi1> {gdn.name = "is_prefill", gdn.dims = ["N"]})
    attributes {gdn.entry} {
  // expected-error@+1 {{'arith.addi' op expects to be inside a gdn.kernel; run gdn-fuse before convert-gdn-to-tile}}
  %both = arith.addi %t, %s : index
  %plan = gdn.kernel "plan" {
    %own:11 = gdn.plan_batch sequences(%starts, %n) table(%table) drafts(%n) limits(%both, %s)
        : tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32>, tensor<?xi32>
    gdn.yield %own#0 : tensor<?xi1>
  } : tensor<?xi1>
  return %plan : tensor<?xi1>
}

// -----

func.func @beside_another(
    %t: index {gdn.name = "B"},
    %starts: tensor<?xi32> {gdn.name = "query_start_loc", gdn.dims = ["N + 1"]},
    %n: tensor<?xi32> {gdn.name = "seq_lens", gdn.dims = ["N"]},
    %table: tensor<?x?xi32> {gdn.name = "block_table", gdn.dims = ["N", "B"]})
    -> (tensor<?xi1> {gdn.name = "is_prefill", gdn.dims = ["N"]})
    attributes {gdn.entry} {
  %plan = gdn.kernel "plan" {
    // expected-error@+1 {{'gdn.plan_batch' op expects to be the only op of its kernel}}
    %own:11 = gdn.plan_batch sequences(%starts, %n) table(%table) drafts(%n) limits(%t, %t)
        : tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32>, tensor<?xi32>
    %other:11 = gdn.plan_batch sequences(%starts, %n) table(%table) drafts(%n) limits(%t, %t)
        : tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32>, tensor<?xi32>
    gdn.yield %other#0 : tensor<?xi1>
  } : tensor<?xi1>
  return %plan : tensor<?xi1>
}
