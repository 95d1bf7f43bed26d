// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn.gates: parse, print, and print again, in both forms.
//
// RUN: gdn-opt %s | gdn-opt | FileCheck %s
// RUN: gdn-opt -mlir-print-op-generic %s | gdn-opt | FileCheck %s

// CHECK-LABEL: func.func @per_head(
//       CHECK:   gdn.gates %{{.+}}, %{{.+}}, %{{.+}}, %{{.+}} : tensor<?x?xbf16>, tensor<?x?xbf16>, tensor<?xf32>, tensor<?xbf16> -> tensor<?x?xf32>, tensor<?x?xf32>
func.func @per_head(%a: tensor<?x?xbf16>, %b: tensor<?x?xbf16>, %a_log: tensor<?xf32>, %dt_bias: tensor<?xbf16>) -> tensor<?x?xf32> {
  %g, %beta = gdn.gates %a, %b, %a_log, %dt_bias
      : tensor<?x?xbf16>, tensor<?x?xbf16>, tensor<?xf32>, tensor<?xbf16> -> tensor<?x?xf32>, tensor<?x?xf32>
  return %g : tensor<?x?xf32>
}

// The decay has a value per channel of the key; both attributes are given.
// CHECK-LABEL: func.func @per_channel(
//       CHECK:   gdn.gates %{{.+}} {double_beta, softplus_threshold = 1.000000e+01 : f32}
//  CHECK-SAME:   -> tensor<?x4x64xf32>, tensor<?x4xf32>
func.func @per_channel(%a: tensor<?x4x64xf32>, %b: tensor<?x4xf32>, %a_log: tensor<4xf32>, %dt_bias: tensor<4x64xf32>) -> tensor<?x4x64xf32> {
  %g, %beta = gdn.gates %a, %b, %a_log, %dt_bias {double_beta, softplus_threshold = 10.0 : f32}
      : tensor<?x4x64xf32>, tensor<?x4xf32>, tensor<4xf32>, tensor<4x64xf32> -> tensor<?x4x64xf32>, tensor<?x4xf32>
  return %g : tensor<?x4x64xf32>
}

// Bounded, per channel and per head; without the rate the argument is u alone.
// CHECK-LABEL: func.func @bounded(
//       CHECK:   gdn.gates %{{.+}}, %{{.+}}, %[[RATE:.+]], %{{.+}} {lower_bound = -5.000000e+00 : f32} : tensor<?x?x128xbf16>, tensor<?x?xbf16>, tensor<?xf32>, tensor<?x128xf32> -> tensor<?x?x128xf32>, tensor<?x?xf32>
func.func @bounded(%a: tensor<?x?x128xbf16>, %b: tensor<?x?xbf16>, %a_log: tensor<?xf32>, %dt_bias: tensor<?x128xf32>) -> tensor<?x?x128xf32> {
  %g, %beta = gdn.gates %a, %b, %a_log, %dt_bias {lower_bound = -5.0 : f32}
      : tensor<?x?x128xbf16>, tensor<?x?xbf16>, tensor<?xf32>, tensor<?x128xf32> -> tensor<?x?x128xf32>, tensor<?x?xf32>
  return %g : tensor<?x?x128xf32>
}

// CHECK-LABEL: func.func @bounded_without_rate(
//  CHECK-SAME:   %[[A:.+]]: tensor<?x4xbf16>, %[[B:.+]]: tensor<?x4xbf16>, %[[BIAS:.+]]: tensor<4xf32>
//       CHECK:   gdn.gates %[[A]], %[[B]], %[[BIAS]] {lower_bound = -2.500000e-01 : f32} : tensor<?x4xbf16>, tensor<?x4xbf16>, tensor<4xf32> -> tensor<?x4xf32>, tensor<?x4xf32>
func.func @bounded_without_rate(%a: tensor<?x4xbf16>, %b: tensor<?x4xbf16>, %dt_bias: tensor<4xf32>) -> tensor<?x4xf32> {
  %g, %beta = gdn.gates %a, %b, %dt_bias {lower_bound = -0.25 : f32}
      : tensor<?x4xbf16>, tensor<?x4xbf16>, tensor<4xf32> -> tensor<?x4xf32>, tensor<?x4xf32>
  return %g : tensor<?x4xf32>
}
