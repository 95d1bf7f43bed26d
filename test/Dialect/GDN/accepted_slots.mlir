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
