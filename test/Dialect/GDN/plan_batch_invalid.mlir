// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Constraints of gdn.plan_batch.
//
// RUN: gdn-opt %s -split-input-file -verify-diagnostics

func.func @c1_starts(%starts: tensor<3xi32>, %lens: tensor<3xi32>, %table: tensor<3x2xi32>,
    %drafts: tensor<3xi32>, %counts: tensor<3xi32>) {
  // expected-error @+1 {{'gdn.plan_batch' op expects dim 0 of 'query_start_loc' to be N + 1 = 4, N set by dim 0 of 'block_table', but got 3}}
  %plan:6 = gdn.plan_batch sequences(%starts, %lens) table(%table) drafts(%drafts) accepted(%counts)
      : tensor<3xi32>, tensor<3xi32>, tensor<3x2xi32>, tensor<3xi32>, accepted tensor<3xi32>
        -> tensor<3xi1>, tensor<4xi32>, tensor<3xi32>, tensor<3xi32>, tensor<3xi1>, tensor<3xi1>
  return
}

// -----

func.func @c1_cu_seqlens(%starts: tensor<4xi32>, %lens: tensor<3xi32>, %table: tensor<3x2xi32>,
    %drafts: tensor<3xi32>, %counts: tensor<3xi32>) {
  // expected-error @+1 {{'gdn.plan_batch' op expects dim 0 of 'cu_seqlens' to be N + 1 = 4, N set by dim 0 of 'block_table', but got 3}}
  %plan:6 = gdn.plan_batch sequences(%starts, %lens) table(%table) drafts(%drafts) accepted(%counts)
      : tensor<4xi32>, tensor<3xi32>, tensor<3x2xi32>, tensor<3xi32>, accepted tensor<3xi32>
        -> tensor<3xi1>, tensor<3xi32>, tensor<3xi32>, tensor<3xi32>, tensor<3xi1>, tensor<3xi1>
  return
}

// -----

func.func @c1_lens(%starts: tensor<4xi32>, %lens: tensor<4xi32>, %table: tensor<3x2xi32>,
    %drafts: tensor<3xi32>, %counts: tensor<3xi32>) {
  // expected-error @+1 {{'gdn.plan_batch' op expects dim 0 of 'seq_lens' to be N = 3, set by dim 0 of 'block_table', but got 4}}
  %plan:6 = gdn.plan_batch sequences(%starts, %lens) table(%table) drafts(%drafts) accepted(%counts)
      : tensor<4xi32>, tensor<4xi32>, tensor<3x2xi32>, tensor<3xi32>, accepted tensor<3xi32>
        -> tensor<3xi1>, tensor<4xi32>, tensor<3xi32>, tensor<3xi32>, tensor<3xi1>, tensor<3xi1>
  return
}

// -----

func.func @c1_drafts(%starts: tensor<4xi32>, %lens: tensor<3xi32>, %table: tensor<3x2xi32>,
    %drafts: tensor<2xi32>, %counts: tensor<3xi32>) {
  // expected-error @+1 {{'gdn.plan_batch' op expects dim 0 of 'drafts' to be N = 3, set by dim 0 of 'block_table', but got 2}}
  %plan:6 = gdn.plan_batch sequences(%starts, %lens) table(%table) drafts(%drafts) accepted(%counts)
      : tensor<4xi32>, tensor<3xi32>, tensor<3x2xi32>, tensor<2xi32>, accepted tensor<3xi32>
        -> tensor<3xi1>, tensor<4xi32>, tensor<3xi32>, tensor<3xi32>, tensor<3xi1>, tensor<3xi1>
  return
}

// -----

func.func @c1_accepted(%starts: tensor<4xi32>, %lens: tensor<3xi32>, %table: tensor<3x2xi32>,
    %drafts: tensor<3xi32>, %counts: tensor<4xi32>) {
  // expected-error @+1 {{'gdn.plan_batch' op expects dim 0 of 'accepted' to be N = 3, set by dim 0 of 'block_table', but got 4}}
  %plan:6 = gdn.plan_batch sequences(%starts, %lens) table(%table) drafts(%drafts) accepted(%counts)
      : tensor<4xi32>, tensor<3xi32>, tensor<3x2xi32>, tensor<3xi32>, accepted tensor<4xi32>
        -> tensor<3xi1>, tensor<4xi32>, tensor<3xi32>, tensor<3xi32>, tensor<3xi1>, tensor<3xi1>
  return
}

// -----

func.func @c1_is_prefill(%starts: tensor<4xi32>, %lens: tensor<3xi32>, %table: tensor<3x2xi32>,
    %drafts: tensor<3xi32>, %counts: tensor<3xi32>) {
  // expected-error @+1 {{'gdn.plan_batch' op expects dim 0 of 'is_prefill' to be N = 3, set by dim 0 of 'block_table', but got 4}}
  %plan:6 = gdn.plan_batch sequences(%starts, %lens) table(%table) drafts(%drafts) accepted(%counts)
      : tensor<4xi32>, tensor<3xi32>, tensor<3x2xi32>, tensor<3xi32>, accepted tensor<3xi32>
        -> tensor<4xi1>, tensor<4xi32>, tensor<3xi32>, tensor<3xi32>, tensor<3xi1>, tensor<3xi1>
  return
}

// -----

func.func @c1_slots(%starts: tensor<4xi32>, %lens: tensor<3xi32>, %table: tensor<3x2xi32>,
    %drafts: tensor<3xi32>, %counts: tensor<3xi32>) {
  // expected-error @+1 {{'gdn.plan_batch' op expects dim 0 of 'slots' to be N = 3, set by dim 0 of 'block_table', but got 2}}
  %plan:6 = gdn.plan_batch sequences(%starts, %lens) table(%table) drafts(%drafts) accepted(%counts)
      : tensor<4xi32>, tensor<3xi32>, tensor<3x2xi32>, tensor<3xi32>, accepted tensor<3xi32>
        -> tensor<3xi1>, tensor<4xi32>, tensor<2xi32>, tensor<3xi32>, tensor<3xi1>, tensor<3xi1>
  return
}

// -----

func.func @c1_write_slots(%starts: tensor<4xi32>, %lens: tensor<3xi32>, %table: tensor<3x2xi32>,
    %drafts: tensor<3xi32>, %counts: tensor<3xi32>) {
  // expected-error @+1 {{'gdn.plan_batch' op expects dim 0 of 'write_slots' to be N = 3, set by dim 0 of 'block_table', but got 4}}
  %plan:6 = gdn.plan_batch sequences(%starts, %lens) table(%table) drafts(%drafts) accepted(%counts)
      : tensor<4xi32>, tensor<3xi32>, tensor<3x2xi32>, tensor<3xi32>, accepted tensor<3xi32>
        -> tensor<3xi1>, tensor<4xi32>, tensor<3xi32>, tensor<4xi32>, tensor<3xi1>, tensor<3xi1>
  return
}

// -----

func.func @c1_has_initial(%starts: tensor<4xi32>, %lens: tensor<3xi32>, %table: tensor<3x2xi32>,
    %drafts: tensor<3xi32>, %counts: tensor<3xi32>) {
  // expected-error @+1 {{'gdn.plan_batch' op expects dim 0 of 'has_initial' to be N = 3, set by dim 0 of 'block_table', but got 4}}
  %plan:6 = gdn.plan_batch sequences(%starts, %lens) table(%table) drafts(%drafts) accepted(%counts)
      : tensor<4xi32>, tensor<3xi32>, tensor<3x2xi32>, tensor<3xi32>, accepted tensor<3xi32>
        -> tensor<3xi1>, tensor<4xi32>, tensor<3xi32>, tensor<3xi32>, tensor<4xi1>, tensor<3xi1>
  return
}

// -----

func.func @c1_taken(%starts: tensor<4xi32>, %lens: tensor<3xi32>, %table: tensor<3x2xi32>,
    %drafts: tensor<3xi32>, %counts: tensor<3xi32>) {
  // expected-error @+1 {{'gdn.plan_batch' op expects dim 0 of 'taken' to be N = 3, set by dim 0 of 'block_table', but got 4}}
  %plan:6 = gdn.plan_batch sequences(%starts, %lens) table(%table) drafts(%drafts) accepted(%counts)
      : tensor<4xi32>, tensor<3xi32>, tensor<3x2xi32>, tensor<3xi32>, accepted tensor<3xi32>
        -> tensor<3xi1>, tensor<4xi32>, tensor<3xi32>, tensor<3xi32>, tensor<3xi1>, tensor<4xi1>
  return
}

// -----

func.func @c2_cu_seqlens(%starts: tensor<4xi32>, %lens: tensor<3xi32>, %table: tensor<3x2xi32>,
    %drafts: tensor<3xi32>, %counts: tensor<3xi32>) {
  // expected-error @+1 {{'gdn.plan_batch' op expects 'cu_seqlens' to have the element type of 'query_start_loc', 'i32', but got 'i64'}}
  %plan:6 = gdn.plan_batch sequences(%starts, %lens) table(%table) drafts(%drafts) accepted(%counts)
      : tensor<4xi32>, tensor<3xi32>, tensor<3x2xi32>, tensor<3xi32>, accepted tensor<3xi32>
        -> tensor<3xi1>, tensor<4xi64>, tensor<3xi32>, tensor<3xi32>, tensor<3xi1>, tensor<3xi1>
  return
}

// -----

func.func @c2_slots(%starts: tensor<4xi32>, %lens: tensor<3xi32>, %table: tensor<3x2xi64>,
    %drafts: tensor<3xi32>, %counts: tensor<3xi32>) {
  // expected-error @+1 {{'gdn.plan_batch' op expects 'slots' to have the element type of 'block_table', 'i64', but got 'i32'}}
  %plan:6 = gdn.plan_batch sequences(%starts, %lens) table(%table) drafts(%drafts) accepted(%counts)
      : tensor<4xi32>, tensor<3xi32>, tensor<3x2xi64>, tensor<3xi32>, accepted tensor<3xi32>
        -> tensor<3xi1>, tensor<4xi32>, tensor<3xi32>, tensor<3xi64>, tensor<3xi1>, tensor<3xi1>
  return
}

// -----

func.func @c2_write_slots(%starts: tensor<4xi32>, %lens: tensor<3xi32>, %table: tensor<3x2xi32>,
    %drafts: tensor<3xi32>, %counts: tensor<3xi32>) {
  // expected-error @+1 {{'gdn.plan_batch' op expects 'write_slots' to have the element type of 'block_table', 'i32', but got 'i64'}}
  %plan:6 = gdn.plan_batch sequences(%starts, %lens) table(%table) drafts(%drafts) accepted(%counts)
      : tensor<4xi32>, tensor<3xi32>, tensor<3x2xi32>, tensor<3xi32>, accepted tensor<3xi32>
        -> tensor<3xi1>, tensor<4xi32>, tensor<3xi32>, tensor<3xi64>, tensor<3xi1>, tensor<3xi1>
  return
}

// -----

func.func @table_has_columns(%starts: tensor<4xi32>, %lens: tensor<3xi32>, %table: tensor<3xi32>,
    %drafts: tensor<3xi32>, %counts: tensor<3xi32>) {
  // expected-error @+1 {{'gdn.plan_batch' op operand #2 must be}}
  %plan:6 = gdn.plan_batch sequences(%starts, %lens) table(%table) drafts(%drafts) accepted(%counts)
      : tensor<4xi32>, tensor<3xi32>, tensor<3xi32>, tensor<3xi32>, accepted tensor<3xi32>
        -> tensor<3xi1>, tensor<4xi32>, tensor<3xi32>, tensor<3xi32>, tensor<3xi1>, tensor<3xi1>
  return
}

// -----

func.func @flags_are_no_numbers(%starts: tensor<4xi32>, %lens: tensor<3xi32>, %table: tensor<3x2xi32>,
    %drafts: tensor<3xi32>, %counts: tensor<3xi32>) {
  // expected-error @+1 {{'gdn.plan_batch' op result #0 must be}}
  %plan:6 = gdn.plan_batch sequences(%starts, %lens) table(%table) drafts(%drafts) accepted(%counts)
      : tensor<4xi32>, tensor<3xi32>, tensor<3x2xi32>, tensor<3xi32>, accepted tensor<3xi32>
        -> tensor<3xi32>, tensor<4xi32>, tensor<3xi32>, tensor<3xi32>, tensor<3xi1>, tensor<3xi1>
  return
}
