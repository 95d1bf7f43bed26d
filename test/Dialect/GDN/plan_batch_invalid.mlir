// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Constraints of gdn.plan_batch.
//
// RUN: gdn-opt %s -split-input-file -verify-diagnostics

func.func @c1_starts(%starts: tensor<3xi32>, %lens: tensor<3xi32>, %table: tensor<3x2xi32>,
    %drafts: tensor<3xi32>, %counts: tensor<3xi32>, %t: index, %s: index) {
  // expected-error @+1 {{'gdn.plan_batch' op expects dim 0 of 'query_start_loc' to be N + 1 = 4, N set by dim 0 of 'block_table', but got 3}}
  %plan:11 = gdn.plan_batch sequences(%starts, %lens) table(%table) drafts(%drafts) limits(%t, %s)
      accepted(%counts)
      : tensor<3xi32>, tensor<3xi32>, tensor<3x2xi32>, tensor<3xi32>, accepted tensor<3xi32>
  return
}

// -----

func.func @c1_lens(%starts: tensor<4xi32>, %lens: tensor<4xi32>, %table: tensor<3x2xi32>,
    %drafts: tensor<3xi32>, %counts: tensor<3xi32>, %t: index, %s: index) {
  // expected-error @+1 {{'gdn.plan_batch' op expects dim 0 of 'seq_lens' to be N = 3, set by dim 0 of 'block_table', but got 4}}
  %plan:11 = gdn.plan_batch sequences(%starts, %lens) table(%table) drafts(%drafts) limits(%t, %s)
      accepted(%counts)
      : tensor<4xi32>, tensor<4xi32>, tensor<3x2xi32>, tensor<3xi32>, accepted tensor<3xi32>
  return
}

// -----

func.func @c1_drafts(%starts: tensor<4xi32>, %lens: tensor<3xi32>, %table: tensor<3x2xi32>,
    %drafts: tensor<2xi32>, %counts: tensor<3xi32>, %t: index, %s: index) {
  // expected-error @+1 {{'gdn.plan_batch' op expects dim 0 of 'drafts' to be N = 3, set by dim 0 of 'block_table', but got 2}}
  %plan:11 = gdn.plan_batch sequences(%starts, %lens) table(%table) drafts(%drafts) limits(%t, %s)
      accepted(%counts)
      : tensor<4xi32>, tensor<3xi32>, tensor<3x2xi32>, tensor<2xi32>, accepted tensor<3xi32>
  return
}

// -----

func.func @c1_accepted(%starts: tensor<4xi32>, %lens: tensor<3xi32>, %table: tensor<3x2xi32>,
    %drafts: tensor<3xi32>, %counts: tensor<4xi32>, %t: index, %s: index) {
  // expected-error @+1 {{'gdn.plan_batch' op expects dim 0 of 'accepted' to be N = 3, set by dim 0 of 'block_table', but got 4}}
  %plan:11 = gdn.plan_batch sequences(%starts, %lens) table(%table) drafts(%drafts) limits(%t, %s)
      accepted(%counts)
      : tensor<4xi32>, tensor<3xi32>, tensor<3x2xi32>, tensor<3xi32>, accepted tensor<4xi32>
  return
}

// -----

func.func @c2_prefill(%starts: tensor<4xi32>, %lens: tensor<3xi32>, %table: tensor<3x2xi32>,
    %drafts: tensor<3xi32>, %t: index, %s: index) {
  // expected-error @+1 {{'gdn.plan_batch' op expects 'commits' to be none without 'accepted', but got prefill}}
  %plan:11 = gdn.plan_batch sequences(%starts, %lens) table(%table) drafts(%drafts) limits(%t, %s)
      commits prefill
      : tensor<4xi32>, tensor<3xi32>, tensor<3x2xi32>, tensor<3xi32>
  return
}

// -----

func.func @c2_all(%starts: tensor<4xi32>, %lens: tensor<3xi32>, %table: tensor<3x2xi32>,
    %drafts: tensor<3xi32>, %t: index, %s: index) {
  // expected-error @+1 {{'gdn.plan_batch' op expects 'commits' to be none without 'accepted', but got all}}
  %plan:11 = gdn.plan_batch sequences(%starts, %lens) table(%table) drafts(%drafts) limits(%t, %s)
      commits all
      : tensor<4xi32>, tensor<3xi32>, tensor<3x2xi32>, tensor<3xi32>
  return
}

// -----

func.func @table_has_columns(%starts: tensor<4xi32>, %lens: tensor<3xi32>, %table: tensor<3xi32>,
    %drafts: tensor<3xi32>, %counts: tensor<3xi32>, %t: index, %s: index) {
  // expected-error @+1 {{'gdn.plan_batch' op operand #2 must be}}
  %plan:11 = gdn.plan_batch sequences(%starts, %lens) table(%table) drafts(%drafts) limits(%t, %s)
      accepted(%counts)
      : tensor<4xi32>, tensor<3xi32>, tensor<3xi32>, tensor<3xi32>, accepted tensor<3xi32>
  return
}

// -----

func.func @counts_are_no_flags(%starts: tensor<4xi32>, %lens: tensor<3xi32>, %table: tensor<3x2xi32>,
    %drafts: tensor<3xi32>, %counts: tensor<3xi1>, %t: index, %s: index) {
  // expected-error @+1 {{'gdn.plan_batch' op operand #6 must be}}
  %plan:11 = gdn.plan_batch sequences(%starts, %lens) table(%table) drafts(%drafts) limits(%t, %s)
      accepted(%counts)
      : tensor<4xi32>, tensor<3xi32>, tensor<3x2xi32>, tensor<3xi32>, accepted tensor<3xi1>
  return
}

// -----

func.func @commits_of_nobody(%starts: tensor<4xi32>, %lens: tensor<3xi32>, %table: tensor<3x2xi32>,
    %drafts: tensor<3xi32>, %counts: tensor<3xi32>, %t: index, %s: index) {
  // expected-error @+2 {{[none, prefill, all, counted]}}
  %plan:11 = gdn.plan_batch sequences(%starts, %lens) table(%table) drafts(%drafts) limits(%t, %s)
      accepted(%counts) commits verify
      : tensor<4xi32>, tensor<3xi32>, tensor<3x2xi32>, tensor<3xi32>, accepted tensor<3xi32>
  return
}

// -----

func.func @types_of_results(%starts: tensor<4xi32>, %n: tensor<3xi32>, %table: tensor<3x2xi64>,
    %t: index, %s: index) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{'gdn.plan_batch' op inferred type(s)}}
  %plan:11 = "gdn.plan_batch"(%starts, %n, %table, %n, %t, %s)
      : (tensor<4xi32>, tensor<3xi32>, tensor<3x2xi64>, tensor<3xi32>, index, index)
      -> (tensor<3xi1>, tensor<4xi32>, tensor<3xi32>, tensor<3xi32>, tensor<4xi32>, tensor<3xi64>,
          tensor<3xi64>, tensor<3xi1>, tensor<3xi1>, tensor<3xi64>, tensor<3xi32>)
  return
}

// -----

func.func @limits_are_indices(%starts: tensor<4xi32>, %n: tensor<3xi32>, %table: tensor<3x2xi32>,
    %t: index, %s: i32) {
  // expected-error @+1 {{'gdn.plan_batch' op operand #5 must be index, but got 'i32'}}
  %plan:11 = "gdn.plan_batch"(%starts, %n, %table, %n, %t, %s)
      : (tensor<4xi32>, tensor<3xi32>, tensor<3x2xi32>, tensor<3xi32>, index, i32)
      -> (tensor<3xi1>, tensor<4xi32>, tensor<3xi32>, tensor<3xi32>, tensor<4xi32>, tensor<3xi32>,
          tensor<3xi32>, tensor<3xi1>, tensor<3xi1>, tensor<3xi32>, tensor<3xi32>)
  return
}

// -----

func.func @lists_have_a_rank(%starts: tensor<4xi32>, %n: tensor<*xi32>, %table: tensor<3x2xi32>,
    %t: index, %s: index) {
  // expected-error @+1 {{'gdn.plan_batch' op operand #1 must be}}
  %plan:11 = "gdn.plan_batch"(%starts, %n, %table, %n, %t, %s)
      : (tensor<4xi32>, tensor<*xi32>, tensor<3x2xi32>, tensor<*xi32>, index, index)
      -> (tensor<3xi1>, tensor<4xi32>, tensor<3xi32>, tensor<3xi32>, tensor<4xi32>, tensor<3xi32>,
          tensor<3xi32>, tensor<3xi1>, tensor<3xi1>, tensor<3xi32>, tensor<3xi32>)
  return
}
