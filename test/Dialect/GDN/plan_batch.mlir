// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: gdn-opt %s | FileCheck %s
// RUN: gdn-opt %s -mlir-print-op-generic | gdn-opt | FileCheck %s

// Results have the types of operands: starts, slots and counts.
// CHECK-LABEL: func.func @counts_of_slots(
//       CHECK:   gdn.plan_batch sequences(%{{[a-z0-9]+}}, %{{[a-z0-9]+}}) table(%{{[a-z0-9]+}}) drafts(%{{[a-z0-9]+}})
//  CHECK-SAME:     limits(%{{[a-z0-9]+}}, %{{[a-z0-9]+}}) accepted(%{{[a-z0-9]+}}) :
//  CHECK-SAME:     tensor<?xi32>, tensor<?xi32>, tensor<?x?xi64>, tensor<?xi32>, accepted tensor<?xi32>{{$}}
func.func @counts_of_slots(%starts: tensor<?xi32>, %lens: tensor<?xi32>, %table: tensor<?x?xi64>,
                           %drafts: tensor<?xi32>, %counts: tensor<?xi32>, %t: index, %s: index)
    -> (tensor<?xi1>, tensor<?xi32>, tensor<?xi64>, tensor<?xi32>,
        tensor<?xi32>, tensor<?xi64>, tensor<?xi64>, tensor<?xi1>, tensor<?xi1>,
        tensor<?xi64>, tensor<?xi32>) {
  %own, %verify:3, %prefill:5, %commit:2 =
      gdn.plan_batch sequences(%starts, %lens) table(%table) drafts(%drafts) limits(%t, %s)
      accepted(%counts)
      : tensor<?xi32>, tensor<?xi32>, tensor<?x?xi64>, tensor<?xi32>, accepted tensor<?xi32>
  return %own, %verify#0, %verify#1, %verify#2,
         %prefill#0, %prefill#1, %prefill#2, %prefill#3, %prefill#4, %commit#0, %commit#1
      : tensor<?xi1>, tensor<?xi32>, tensor<?xi64>, tensor<?xi32>,
        tensor<?xi32>, tensor<?xi64>, tensor<?xi64>, tensor<?xi1>, tensor<?xi1>,
        tensor<?xi64>, tensor<?xi32>
}

// `commits none` is not printed.
// CHECK-LABEL: func.func @nobody_commits(
//       CHECK:   gdn.plan_batch {{.+}} limits(%{{[a-z0-9]+}}, %{{[a-z0-9]+}}) accepted(%{{[a-z0-9]+}}) :
func.func @nobody_commits(%starts: tensor<?xi32>, %n: tensor<?xi32>, %table: tensor<?x?xi32>,
                          %t: index, %s: index) {
  %plan:11 = gdn.plan_batch sequences(%starts, %n) table(%table) drafts(%n) limits(%t, %s)
      accepted(%n) commits none
      : tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32>, tensor<?xi32>, accepted tensor<?xi32>
  return
}

// Types that differ: each result has that of its operand.
// CHECK-LABEL: func.func @counts_of_pending_tokens(
//       CHECK:   gdn.plan_batch {{.+}} limits(%{{[a-z0-9]+}}, %{{[a-z0-9]+}}) accepted(%{{[a-z0-9]+}}) commits prefill :
//  CHECK-SAME:     tensor<?xi64>, tensor<?xi32>, tensor<?x?xi32>, tensor<?xi32>, accepted tensor<?xi64>{{$}}
//       CHECK:   gdn.plan_batch {{.+}} limits(%{{[a-z0-9]+}}, %{{[a-z0-9]+}}) accepted(%{{[a-z0-9]+}}) commits all :
//  CHECK-SAME:     tensor<?xi64>, tensor<?xi32>, tensor<?x?xi32>, tensor<?xi32>, accepted tensor<?xi64>{{$}}
func.func @counts_of_pending_tokens(%starts: tensor<?xi64>, %lens: tensor<?xi32>,
                                    %table: tensor<?x?xi32>, %drafts: tensor<?xi32>,
                                    %counts: tensor<?xi64>, %t: index, %s: index)
    -> (tensor<?xi64>, tensor<?xi32>, tensor<?xi64>, tensor<?xi64>, tensor<?xi32>, tensor<?xi64>) {
  %own, %verify:3, %prefill:5, %commit:2 =
      gdn.plan_batch sequences(%starts, %lens) table(%table) drafts(%drafts) limits(%t, %s)
      accepted(%counts) commits prefill
      : tensor<?xi64>, tensor<?xi32>, tensor<?x?xi32>, tensor<?xi32>, accepted tensor<?xi64>
  %others:11 =
      gdn.plan_batch sequences(%starts, %lens) table(%table) drafts(%drafts) limits(%t, %s)
      accepted(%counts) commits all
      : tensor<?xi64>, tensor<?xi32>, tensor<?x?xi32>, tensor<?xi32>, accepted tensor<?xi64>
  return %verify#0, %verify#1, %verify#2, %prefill#0, %commit#0, %others#10
      : tensor<?xi64>, tensor<?xi32>, tensor<?xi64>, tensor<?xi64>, tensor<?xi32>, tensor<?xi64>
}

// Sizes that are known, and no counts: those of results are i32.
// CHECK-LABEL: func.func @without_counts(
//       CHECK:   gdn.plan_batch sequences(%{{[a-z0-9]+}}, %{{[a-z0-9]+}}) table(%{{[a-z0-9]+}}) drafts(%{{[a-z0-9]+}})
//  CHECK-SAME:     limits(%c16{{.*}}, %c4{{.*}}) : tensor<4xi64>, tensor<3xi64>, tensor<3x2xi64>, tensor<3xi64>{{$}}
func.func @without_counts(%starts: tensor<4xi64>, %lens: tensor<3xi64>, %table: tensor<3x2xi64>,
                          %drafts: tensor<3xi64>)
    -> (tensor<3xi1>, tensor<4xi64>, tensor<3xi64>, tensor<3xi32>,
        tensor<4xi64>, tensor<3xi64>, tensor<3xi64>, tensor<3xi1>, tensor<3xi1>,
        tensor<3xi64>, tensor<3xi32>) {
  %t = arith.constant 16 : index
  %s = arith.constant 4 : index
  %own, %verify:3, %prefill:5, %commit:2 =
      gdn.plan_batch sequences(%starts, %lens) table(%table) drafts(%drafts) limits(%t, %s)
      : tensor<4xi64>, tensor<3xi64>, tensor<3x2xi64>, tensor<3xi64>
  return %own, %verify#0, %verify#1, %verify#2,
         %prefill#0, %prefill#1, %prefill#2, %prefill#3, %prefill#4, %commit#0, %commit#1
      : tensor<3xi1>, tensor<4xi64>, tensor<3xi64>, tensor<3xi32>,
        tensor<4xi64>, tensor<3xi64>, tensor<3xi64>, tensor<3xi1>, tensor<3xi1>,
        tensor<3xi64>, tensor<3xi32>
}

// Slots count pending tokens.
// CHECK-LABEL: func.func @counts_in_slots(
//       CHECK:   gdn.plan_batch {{.+}} accepted(%{{[a-z0-9]+}}) commits counted :
func.func @counts_in_slots(%starts: tensor<?xi32>, %n: tensor<?xi32>, %table: tensor<?x?xi32>,
                           %t: index, %s: index) {
  %plan:11 = gdn.plan_batch sequences(%starts, %n) table(%table) drafts(%n) limits(%t, %s)
      accepted(%n) commits counted
      : tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32>, tensor<?xi32>, accepted tensor<?xi32>
  return
}

// Attributes beside `commits` are kept.
// CHECK-LABEL: func.func @other_attributes(
//       CHECK:   gdn.plan_batch {{.+}} accepted(%{{[a-z0-9]+}}) commits all {mine = 1 : i32} :
func.func @other_attributes(%starts: tensor<?xi32>, %n: tensor<?xi32>, %table: tensor<?x?xi32>,
                            %t: index, %s: index) {
  %plan:11 = gdn.plan_batch sequences(%starts, %n) table(%table) drafts(%n) limits(%t, %s)
      accepted(%n) commits all {mine = 1 : i32}
      : tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32>, tensor<?xi32>, accepted tensor<?xi32>
  return
}
