// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: gdn-opt %s | FileCheck %s
// RUN: gdn-opt %s -mlir-print-op-generic | gdn-opt | FileCheck %s

// CHECK-LABEL: func.func @with_counts(
//       CHECK:   gdn.plan_batch sequences(%{{.+}}, %{{.+}}) table(%{{.+}}) drafts(%{{.+}}) accepted(%{{.+}})
//  CHECK-SAME:     : tensor<?xi32>, tensor<?xi32>, tensor<?x?xi64>, tensor<?xi32>, accepted tensor<?xi32>
//  CHECK-SAME:     -> tensor<?xi1>, tensor<?xi32>, tensor<?xi64>, tensor<?xi64>, tensor<?xi1>, tensor<?xi1>
func.func @with_counts(%starts: tensor<?xi32>, %lens: tensor<?xi32>, %table: tensor<?x?xi64>,
                       %drafts: tensor<?xi32>, %counts: tensor<?xi32>)
    -> (tensor<?xi1>, tensor<?xi32>, tensor<?xi64>, tensor<?xi64>, tensor<?xi1>, tensor<?xi1>) {
  %own, %cu, %slots, %write, %initial, %taken =
      gdn.plan_batch sequences(%starts, %lens) table(%table) drafts(%drafts) accepted(%counts)
      : tensor<?xi32>, tensor<?xi32>, tensor<?x?xi64>, tensor<?xi32>, accepted tensor<?xi32>
        -> tensor<?xi1>, tensor<?xi32>, tensor<?xi64>, tensor<?xi64>, tensor<?xi1>, tensor<?xi1>
  return %own, %cu, %slots, %write, %initial, %taken
      : tensor<?xi1>, tensor<?xi32>, tensor<?xi64>, tensor<?xi64>, tensor<?xi1>, tensor<?xi1>
}

// Sizes that are known, and no counts.
// CHECK-LABEL: func.func @without_counts(
//       CHECK:   gdn.plan_batch sequences(%{{.+}}, %{{.+}}) table(%{{.+}}) drafts(%{{[a-z0-9]+}}) :
//  CHECK-SAME:     tensor<4xi64>, tensor<3xi32>, tensor<3x2xi32>, tensor<3xi32>
//  CHECK-SAME:     -> tensor<3xi1>, tensor<4xi64>, tensor<3xi32>, tensor<3xi32>, tensor<3xi1>, tensor<3xi1>
func.func @without_counts(%starts: tensor<4xi64>, %lens: tensor<3xi32>, %table: tensor<3x2xi32>,
                          %drafts: tensor<3xi32>) -> tensor<4xi64> {
  %own, %cu, %slots, %write, %initial, %taken =
      gdn.plan_batch sequences(%starts, %lens) table(%table) drafts(%drafts)
      : tensor<4xi64>, tensor<3xi32>, tensor<3x2xi32>, tensor<3xi32>
        -> tensor<3xi1>, tensor<4xi64>, tensor<3xi32>, tensor<3xi32>, tensor<3xi1>, tensor<3xi1>
  return %cu : tensor<4xi64>
}

// Nobody asks for the plan.
// CHECK-LABEL: func.func @unused(
//       CHECK:   gdn.plan_batch
func.func @unused(%n: tensor<?xi32>, %starts: tensor<?xi32>, %table: tensor<?x?xi32>) {
  %plan:6 = gdn.plan_batch sequences(%starts, %n) table(%table) drafts(%n)
      : tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32>, tensor<?xi32>
        -> tensor<?xi1>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi1>, tensor<?xi1>
  return
}
