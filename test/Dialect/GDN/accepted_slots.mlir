// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn.accepted_slots: parse, print, and print again, in both forms.
//
// RUN: gdn-opt %s | gdn-opt | FileCheck %s
// RUN: gdn-opt -mlir-print-op-generic %s | gdn-opt | FileCheck %s

// CHECK-LABEL: func.func @last(
//       CHECK:   gdn.accepted_slots %{{.+}}[%{{.+}}] : tensor<3x5xi64>, tensor<?xi32> -> tensor<3xi64>
func.func @last(%table: tensor<3x5xi64>, %accepted: tensor<?xi32>) -> tensor<3xi64> {
  %slots = gdn.accepted_slots %table[%accepted] : tensor<3x5xi64>, tensor<?xi32> -> tensor<3xi64>
  return %slots : tensor<3xi64>
}

// CHECK-LABEL: func.func @of_short_rows(
//       CHECK:   gdn.accepted_slots %{{.+}}[%{{.+}}] sequences(%{{.+}}) max_tokens(8) : tensor<3x5xi64>, tensor<?xi32>, tensor<4xi32> -> tensor<3xi64>
func.func @of_short_rows(%table: tensor<3x5xi64>, %accepted: tensor<?xi32>, %cu: tensor<4xi32>) -> tensor<3xi64> {
  %slots = gdn.accepted_slots %table[%accepted] sequences(%cu) max_tokens(8) : tensor<3x5xi64>, tensor<?xi32>, tensor<4xi32> -> tensor<3xi64>
  return %slots : tensor<3xi64>
}
