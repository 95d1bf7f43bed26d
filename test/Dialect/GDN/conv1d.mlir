// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn.conv1d: parse, print, and print again, in both forms.
//
// RUN: gdn-opt %s | gdn-opt | FileCheck %s
// RUN: gdn-opt -mlir-print-op-generic %s | gdn-opt | FileCheck %s

// One section of all channels, a token per row, nothing optional.
// CHECK-LABEL: func.func @update(
//       CHECK:   gdn.conv1d %{{.+}} weight(%{{.+}}) identity pool(%{{.+}}) slots(%{{.+}}) : (tensor<?x?xbf16>), tensor<?x4xbf16>, !gdn.pool<?x?x3xbf16>, tensor<?xi32> -> tensor<?x?xf32>
func.func @update(%x: tensor<?x?xbf16>, %w: tensor<?x4xbf16>, %pool: !gdn.pool<?x?x3xbf16>, %slots: tensor<?xi32>) -> tensor<?x?xf32> {
  %y = gdn.conv1d %x weight(%w) identity pool(%pool) slots(%slots)
      : (tensor<?x?xbf16>), tensor<?x4xbf16>, !gdn.pool<?x?x3xbf16>, tensor<?xi32> -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}

// Three sections with static channels, 2*8 + 2*8 + 4*16 = 96, and every
// optional operand.
// CHECK-LABEL: func.func @everything(
//       CHECK:   gdn.conv1d %{{.+}}, %{{.+}}, %{{.+}} weight(%{{.+}}) bias(%{{.+}}) silu
//  CHECK-SAME:   pool(%{{.+}}) slots(%{{.+}} -> %{{.+}}) sequences(%{{.+}}) initial(%{{.+}}) : (tensor<?x2x8xf32>, tensor<?x2x8xf32>, tensor<?x4x16xf32>), tensor<96x3xf32> bias tensor<96xf32>, !gdn.pool<?x96x2xf32>, tensor<4xi64> into tensor<4xi64>, tensor<5xi32> initial tensor<4xi1> -> tensor<?x2x8xf32>, tensor<?x2x8xf32>, tensor<?x4x16xf32>
func.func @everything(%q: tensor<?x2x8xf32>, %k: tensor<?x2x8xf32>, %v: tensor<?x4x16xf32>,
    %w: tensor<96x3xf32>, %bias: tensor<96xf32>, %pool: !gdn.pool<?x96x2xf32>, %slots: tensor<4xi64>,
    %into: tensor<4xi64>, %cu: tensor<5xi32>, %initial: tensor<4xi1>) -> tensor<?x4x16xf32> {
  %qc, %kc, %vc = gdn.conv1d %q, %k, %v weight(%w) bias(%bias) silu
      pool(%pool) slots(%slots -> %into) sequences(%cu) initial(%initial)
      : (tensor<?x2x8xf32>, tensor<?x2x8xf32>, tensor<?x4x16xf32>), tensor<96x3xf32> bias tensor<96xf32>,
        !gdn.pool<?x96x2xf32>, tensor<4xi64> into tensor<4xi64>, tensor<5xi32> initial tensor<4xi1>
        -> tensor<?x2x8xf32>, tensor<?x2x8xf32>, tensor<?x4x16xf32>
  return %vc : tensor<?x4x16xf32>
}

// Windows inside rows.
// CHECK-LABEL: func.func @checkpoints(
//       CHECK:   gdn.conv1d %{{.+}} slots(%{{.+}}) sequences(%{{.+}}) initial(%{{.+}}) checkpoints(%{{.+}}, %{{.+}}, %{{.+}}) :
//  CHECK-SAME:   initial tensor<2xi1> checkpoints tensor<3xi32>, tensor<?xi64>, tensor<?xi32> -> tensor<?x64xf32>
func.func @checkpoints(%x: tensor<?x64xf32>, %w: tensor<64x4xf32>, %pool: !gdn.pool<?x64x3xf32>, %slots: tensor<2xi32>,
    %cu: tensor<3xi32>, %initial: tensor<2xi1>, %cu_checkpoints: tensor<3xi32>, %tokens: tensor<?xi64>, %to: tensor<?xi32>) -> tensor<?x64xf32> {
  %y = gdn.conv1d %x weight(%w) silu pool(%pool) slots(%slots) sequences(%cu) initial(%initial) checkpoints(%cu_checkpoints, %tokens, %to)
      : (tensor<?x64xf32>), tensor<64x4xf32>, !gdn.pool<?x64x3xf32>, tensor<2xi32>, tensor<3xi32>
        initial tensor<2xi1> checkpoints tensor<3xi32>, tensor<?xi64>, tensor<?xi32> -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// CHECK-LABEL: func.func @token_slots(
//       CHECK:   gdn.conv1d %{{.+}} slots(%{{.+}}) sequences(%{{.+}}) token_slots(%{{.+}}) : {{.*}} token_slots tensor<?x8xi32> -> tensor<?x64xf32>
func.func @token_slots(%x: tensor<?x64xf32>, %w: tensor<64x4xf32>, %pool: !gdn.pool<?x64x3xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>,
    %table: tensor<?x8xi32>) -> tensor<?x64xf32> {
  %y = gdn.conv1d %x weight(%w) silu pool(%pool) slots(%slots) sequences(%cu) token_slots(%table)
      : (tensor<?x64xf32>), tensor<64x4xf32>, !gdn.pool<?x64x3xf32>, tensor<?xi32>, tensor<?xi32>
        token_slots tensor<?x8xi32> -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// CHECK-LABEL: func.func @pending(
//       CHECK:   gdn.conv1d %{{.+}} slots(%{{.+}}) sequences(%{{.+}}) pending(%{{.+}}) : {{.*}} !gdn.pool<?x64x7xf32>, {{.*}} pending tensor<?xi32> -> tensor<?x64xf32>
func.func @pending(%x: tensor<?x64xf32>, %w: tensor<64x4xf32>, %pool: !gdn.pool<?x64x7xf32>, %slots: tensor<?xi64>, %cu: tensor<?xi32>,
    %accepted: tensor<?xi32>) -> tensor<?x64xf32> {
  %y = gdn.conv1d %x weight(%w) silu pool(%pool) slots(%slots) sequences(%cu) pending(%accepted)
      : (tensor<?x64xf32>), tensor<64x4xf32>, !gdn.pool<?x64x7xf32>, tensor<?xi64>, tensor<?xi32>
        pending tensor<?xi32> -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}
