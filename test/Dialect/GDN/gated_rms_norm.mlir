// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn.gated_rms_norm: parse, print, and print again, in both forms.
//
// RUN: gdn-opt %s | gdn-opt | FileCheck %s
// RUN: gdn-opt -mlir-print-op-generic %s | gdn-opt | FileCheck %s

// CHECK-LABEL: func.func @silu_before(
//       CHECK:   gdn.gated_rms_norm %{{.+}}, %{{.+}}, %{{.+}} silu : tensor<?x?x128xf32>, tensor<?x?x128xbf16>, tensor<128xf32> -> tensor<?x?x128xbf16>
func.func @silu_before(%x: tensor<?x?x128xf32>, %z: tensor<?x?x128xbf16>, %w: tensor<128xf32>) -> tensor<?x?x128xbf16> {
  %y = gdn.gated_rms_norm %x, %z, %w silu
      : tensor<?x?x128xf32>, tensor<?x?x128xbf16>, tensor<128xf32> -> tensor<?x?x128xbf16>
  return %y : tensor<?x?x128xbf16>
}

// Epsilon and gate in memory.
// CHECK-LABEL: func.func @constants(
//       CHECK:   gdn.gated_rms_norm %{{.+}}, %{{.+}}, %{{.+}} constants(%{{.+}} : tensor<2xf32>) : tensor<?x?x128xf32>, tensor<?x?x128xbf16>, tensor<128xf32> -> tensor<?x?x128xbf16>
func.func @constants(%x: tensor<?x?x128xf32>, %z: tensor<?x?x128xbf16>, %w: tensor<128xf32>, %c: tensor<2xf32>) -> tensor<?x?x128xbf16> {
  %y = gdn.gated_rms_norm %x, %z, %w constants(%c : tensor<2xf32>)
      : tensor<?x?x128xf32>, tensor<?x?x128xbf16>, tensor<128xf32> -> tensor<?x?x128xbf16>
  return %y : tensor<?x?x128xbf16>
}

// The other activation, the other order, and another eps.
// CHECK-LABEL: func.func @sigmoid_after(
//       CHECK:   gdn.gated_rms_norm %{{.+}}, %{{.+}}, %{{.+}} sigmoid {eps = 9.99999974E-6 : f32, norm_after_gate}
func.func @sigmoid_after(%x: tensor<?x?x128xf32>, %z: tensor<?x?x128xf32>, %w: tensor<128xf16>) -> tensor<?x?x128xf32> {
  %y = gdn.gated_rms_norm %x, %z, %w sigmoid {eps = 1.0e-5 : f32, norm_after_gate}
      : tensor<?x?x128xf32>, tensor<?x?x128xf32>, tensor<128xf16> -> tensor<?x?x128xf32>
  return %y : tensor<?x?x128xf32>
}
