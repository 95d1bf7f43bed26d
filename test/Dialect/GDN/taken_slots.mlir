// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: gdn-opt %s | FileCheck %s
// RUN: gdn-opt %s -mlir-print-op-generic | gdn-opt | FileCheck %s

// CHECK-LABEL: func.func @of_prefill(
//       CHECK:   gdn.taken_slots %{{.+}} where(%{{.+}}) : tensor<?xi64>, tensor<?xi1>
func.func @of_prefill(%slots: tensor<?xi64>, %flags: tensor<?xi1>) -> tensor<?xi64> {
  %own = gdn.taken_slots %slots where(%flags) : tensor<?xi64>, tensor<?xi1>
  return %own : tensor<?xi64>
}

// CHECK-LABEL: func.func @of_verify(
//       CHECK:   gdn.taken_slots %{{.+}} where_not(%{{.+}}) : tensor<3xi32>, tensor<3xi1>
func.func @of_verify(%slots: tensor<3xi32>, %flags: tensor<3xi1>) -> tensor<3xi32> {
  %own = gdn.taken_slots %slots where_not(%flags) : tensor<3xi32>, tensor<3xi1>
  return %own : tensor<3xi32>
}
