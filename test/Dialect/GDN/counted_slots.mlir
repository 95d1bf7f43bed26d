// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: gdn-opt %s | FileCheck %s
// RUN: gdn-opt %s -mlir-print-op-generic | gdn-opt | FileCheck %s

// CHECK-LABEL: func.func @rows(
//       CHECK:   gdn.counted_slots %{{.+}}[%{{.+}}] up_to(%{{.+}}) : tensor<?xi64>, tensor<?xi32>
func.func @rows(%slots: tensor<?xi64>, %accepted: tensor<?xi32>, %steps: index) -> tensor<?xi64> {
  %rows = gdn.counted_slots %slots[%accepted] up_to(%steps) : tensor<?xi64>, tensor<?xi32>
  return %rows : tensor<?xi64>
}

// With a bound for the tokens of a row.
// CHECK-LABEL: func.func @short_rows(
//       CHECK:   gdn.counted_slots %{{.+}}[%{{.+}}] up_to(%{{.+}}) sequences(%{{.+}}) max_tokens(8) : tensor<3xi64>, tensor<3xi32>, tensor<4xi32>
func.func @short_rows(%slots: tensor<3xi64>, %accepted: tensor<3xi32>, %steps: index, %cu: tensor<4xi32>) -> tensor<3xi64> {
  %rows = gdn.counted_slots %slots[%accepted] up_to(%steps) sequences(%cu) max_tokens(8) : tensor<3xi64>, tensor<3xi32>, tensor<4xi32>
  return %rows : tensor<3xi64>
}
