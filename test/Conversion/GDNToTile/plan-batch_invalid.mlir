// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Plans that have no tile program. Each is valid gdn.
//
// RUN: gdn-opt %s -split-input-file -o /dev/null
// RUN: gdn-opt %s -split-input-file -convert-gdn-to-tile -verify-diagnostics

func.func @of_computed_numbers(
    %starts: tensor<?xi32> {gdn.name = "query_start_loc", gdn.dims = ["N + 1"]},
    %n: tensor<?xi32> {gdn.name = "seq_lens", gdn.dims = ["N"]},
    %table: tensor<?x?xi32> {gdn.name = "block_table", gdn.dims = ["N", "B"]})
    -> (tensor<?xi1> {gdn.name = "is_prefill", gdn.dims = ["N"]})
    attributes {gdn.entry} {
  %drafts = gdn.accepted_slots %table[%n] : tensor<?x?xi32>, tensor<?xi32> -> tensor<?xi32>
  %plan = gdn.kernel "plan" {
    // expected-error@+1 {{'gdn.plan_batch' op expects operand 3 to be an argument of the entry on the way to tiles}}
    %own:6 = gdn.plan_batch sequences(%starts, %n) table(%table) drafts(%drafts)
        : tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32>, tensor<?xi32>
          -> tensor<?xi1>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi1>, tensor<?xi1>
    gdn.yield %own#0 : tensor<?xi1>
  } : tensor<?xi1>
  return %plan : tensor<?xi1>
}

// -----

func.func @beside_another(
    %starts: tensor<?xi32> {gdn.name = "query_start_loc", gdn.dims = ["N + 1"]},
    %n: tensor<?xi32> {gdn.name = "seq_lens", gdn.dims = ["N"]},
    %table: tensor<?x?xi32> {gdn.name = "block_table", gdn.dims = ["N", "B"]})
    -> (tensor<?xi1> {gdn.name = "is_prefill", gdn.dims = ["N"]})
    attributes {gdn.entry} {
  %plan = gdn.kernel "plan" {
    // expected-error@+1 {{'gdn.plan_batch' op expects to be the only op of its kernel}}
    %own:6 = gdn.plan_batch sequences(%starts, %n) table(%table) drafts(%n)
        : tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32>, tensor<?xi32>
          -> tensor<?xi1>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi1>, tensor<?xi1>
    %other:6 = gdn.plan_batch sequences(%starts, %n) table(%table) drafts(%n)
        : tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32>, tensor<?xi32>
          -> tensor<?xi1>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi1>, tensor<?xi1>
    gdn.yield %other#0 : tensor<?xi1>
  } : tensor<?xi1>
  return %plan : tensor<?xi1>
}
