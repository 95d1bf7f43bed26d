// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn.delta_rule: parse, print, and print again, in both forms.
//
// RUN: gdn-opt %s | gdn-opt | FileCheck %s
// RUN: gdn-opt -mlir-print-op-generic %s | gdn-opt | FileCheck %s

// One token per row, one decay per head; the state stays f32 under bf16 inputs.
// CHECK-LABEL: func.func @decode(
//       CHECK:   gdn.delta_rule %{{.+}}, %{{.+}}, %{{.+}} gates(%{{.+}}, %{{.+}}) pool(%{{.+}}) slots(%{{.+}}) : tensor<?x?x96xbf16>, tensor<?x?x96xbf16>, tensor<?x?x192xbf16>, tensor<?x?xf32>, tensor<?x?xf32>, !gdn.pool<?x?x192x96xf32>, tensor<?xi32> -> tensor<?x?x192xbf16>
func.func @decode(%q: tensor<?x?x96xbf16>, %k: tensor<?x?x96xbf16>, %v: tensor<?x?x192xbf16>,
    %g: tensor<?x?xf32>, %beta: tensor<?x?xf32>, %pool: !gdn.pool<?x?x192x96xf32>, %slots: tensor<?xi32>) -> tensor<?x?x192xbf16> {
  %o = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%pool) slots(%slots)
      : tensor<?x?x96xbf16>, tensor<?x?x96xbf16>, tensor<?x?x192xbf16>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x192x96xf32>, tensor<?xi32> -> tensor<?x?x192xbf16>
  return %o : tensor<?x?x192xbf16>
}

// One decay per channel, two value heads per key head, every optional operand.
// CHECK-LABEL: func.func @everything(
//       CHECK:   gdn.delta_rule %{{.+}} gates(%{{.+}}, %{{.+}}) pool(%{{.+}}) slots(%{{.+}} -> %{{.+}}) sequences(%{{.+}}) initial(%{{.+}}) {scale = 1.250000e-01 : f32}
//  CHECK-SAME:   tensor<?x4x64xf32>, tensor<?x4xf32>, !gdn.pool<?x4x64x64xbf16>, tensor<3xi64> into tensor<3xi64>, tensor<4xi64> initial tensor<3xi1> -> tensor<?x4x64xf16>
func.func @everything(%q: tensor<?x2x64xf16>, %k: tensor<?x2x64xf16>, %v: tensor<?x4x64xf16>,
    %g: tensor<?x4x64xf32>, %beta: tensor<?x4xf32>, %pool: !gdn.pool<?x4x64x64xbf16>, %slots: tensor<3xi64>,
    %into: tensor<3xi64>, %cu: tensor<4xi64>, %initial: tensor<3xi1>) -> tensor<?x4x64xf16> {
  %o = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%pool) slots(%slots -> %into) sequences(%cu) initial(%initial) {scale = 0.125 : f32}
      : tensor<?x2x64xf16>, tensor<?x2x64xf16>, tensor<?x4x64xf16>, tensor<?x4x64xf32>, tensor<?x4xf32>,
        !gdn.pool<?x4x64x64xbf16>, tensor<3xi64> into tensor<3xi64>, tensor<4xi64> initial tensor<3xi1> -> tensor<?x4x64xf16>
  return %o : tensor<?x4x64xf16>
}

// States inside rows; the same operands may serve several ops.
// CHECK-LABEL: func.func @checkpoints(
//       CHECK:   gdn.delta_rule %{{.+}} slots(%{{.+}}) sequences(%{{.+}}) checkpoints(%[[CU:.+]], %[[TOKENS:.+]], %[[TO:.+]]) :
//  CHECK-SAME:   tensor<?xi32>, tensor<?xi32> checkpoints tensor<?xi32>, tensor<7xi32>, tensor<7xi64> -> tensor<?x?x64xf32>
func.func @checkpoints(%q: tensor<?x?x64xf32>, %k: tensor<?x?x64xf32>, %v: tensor<?x?x64xf32>,
    %g: tensor<?x?xf32>, %beta: tensor<?x?xf32>, %pool: !gdn.pool<?x?x64x64xf32>, %slots: tensor<?xi32>,
    %cu: tensor<?xi32>, %cu_checkpoints: tensor<?xi32>, %tokens: tensor<7xi32>, %to: tensor<7xi64>) -> tensor<?x?x64xf32> {
  %o = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%pool) slots(%slots) sequences(%cu) checkpoints(%cu_checkpoints, %tokens, %to)
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<?xi32>, tensor<?xi32> checkpoints tensor<?xi32>, tensor<7xi32>, tensor<7xi64> -> tensor<?x?x64xf32>
  return %o : tensor<?x?x64xf32>
}

// A slot for the state after each token, and the slots to read from the same table.
// CHECK-LABEL: func.func @token_slots(
//       CHECK:   %[[SLOTS:.+]] = gdn.accepted_slots %[[TABLE:.+]][%{{.+}}] : tensor<?x5xi64>, tensor<?xi32> -> tensor<?xi64>
//       CHECK:   gdn.delta_rule %{{.+}} slots(%[[SLOTS]]) sequences(%{{.+}}) token_slots(%[[TABLE]]) :
//  CHECK-SAME:   tensor<?xi64>, tensor<?xi32> token_slots tensor<?x5xi64> -> tensor<?x?x64xf32>
func.func @token_slots(%q: tensor<?x?x64xf32>, %k: tensor<?x?x64xf32>, %v: tensor<?x?x64xf32>,
    %g: tensor<?x?xf32>, %beta: tensor<?x?xf32>, %pool: !gdn.pool<?x?x64x64xf32>, %cu: tensor<?xi32>,
    %table: tensor<?x5xi64>, %accepted: tensor<?xi32>) -> tensor<?x?x64xf32> {
  %slots = gdn.accepted_slots %table[%accepted] : tensor<?x5xi64>, tensor<?xi32> -> tensor<?xi64>
  %o = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%pool) slots(%slots) sequences(%cu) token_slots(%table)
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<?xi64>, tensor<?xi32> token_slots tensor<?x5xi64> -> tensor<?x?x64xf32>
  return %o : tensor<?x?x64xf32>
}

// A tree of tokens.
// CHECK-LABEL: func.func @parents(
//       CHECK:   gdn.delta_rule %{{.+}} slots(%{{.+}}) sequences(%{{.+}}) token_slots(%{{.+}}) parents(%{{.+}}) :
//  CHECK-SAME:   tensor<?xi64>, tensor<?xi32> token_slots tensor<?x5xi64> parents tensor<?x5xi32> -> tensor<?x?x64xf32>
func.func @parents(%q: tensor<?x?x64xf32>, %g: tensor<?x?xf32>, %pool: !gdn.pool<?x?x64x64xf32>, %cu: tensor<?xi32>,
    %slots: tensor<?xi64>, %table: tensor<?x5xi64>, %parents: tensor<?x5xi32>) -> tensor<?x?x64xf32> {
  %o = gdn.delta_rule %q, %q, %q gates(%g, %g) pool(%pool) slots(%slots) sequences(%cu) token_slots(%table) parents(%parents)
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<?xi64>, tensor<?xi32> token_slots tensor<?x5xi64> parents tensor<?x5xi32> -> tensor<?x?x64xf32>
  return %o : tensor<?x?x64xf32>
}

// CHECK-LABEL: func.func @pending(
//       CHECK:   gdn.delta_rule %{{.+}} slots(%{{.+}}) sequences(%{{.+}}) accepted(%{{.+}}) pending(%{{.+}}, %{{.+}}, %{{.+}}) :
//  CHECK-SAME:   tensor<?xi64>, tensor<?xi32> accepted tensor<?xi32> pending !gdn.pool<?x?x5x64xf32>, !gdn.pool<?x?x5x64xf32>, !gdn.pool<?x?x5xf32> -> tensor<?x?x64xf32>
func.func @pending(%q: tensor<?x?x64xf32>, %g: tensor<?x?xf32>, %pool: !gdn.pool<?x?x64x64xbf16>, %cu: tensor<?xi32>,
    %slots: tensor<?xi64>, %accepted: tensor<?xi32>, %keys: !gdn.pool<?x?x5x64xf32>, %deltas: !gdn.pool<?x?x5x64xf32>,
    %decays: !gdn.pool<?x?x5xf32>) -> tensor<?x?x64xf32> {
  %o = gdn.delta_rule %q, %q, %q gates(%g, %g) pool(%pool) slots(%slots) sequences(%cu) accepted(%accepted) pending(%keys, %deltas, %decays)
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xbf16>, tensor<?xi64>, tensor<?xi32>
        accepted tensor<?xi32> pending !gdn.pool<?x?x5x64xf32>, !gdn.pool<?x?x5x64xf32>, !gdn.pool<?x?x5xf32> -> tensor<?x?x64xf32>
  return %o : tensor<?x?x64xf32>
}

// Tokens that are pending over several steps; decode, and verify.
// CHECK-LABEL: func.func @counts(
//       CHECK:   gdn.delta_rule %{{.+}} slots(%{{.+}}) pending(%{{.+}}, %{{.+}}, %{{.+}}) counts(%{{.+}}) :
//  CHECK-SAME:   tensor<?xi64> pending !gdn.pool<?x?x32x64xf32>, !gdn.pool<?x?x32x64xf32>, !gdn.pool<?x?x32xf32> counts !gdn.pool<?x?xi32> -> tensor<?x?x64xf32>
//       CHECK:   gdn.delta_rule %{{.+}} sequences(%{{.+}}) accepted(%{{.+}}) pending(%{{.+}}, %{{.+}}, %{{.+}}) counts(%{{.+}}) :
//       CHECK:   gdn.commit_delta_rule %{{.+}}[%{{.+}}] pending(%{{.+}}, %{{.+}}, %{{.+}}) counts(%{{.+}}) :
func.func @counts(%q: tensor<?x?x64xf32>, %g: tensor<?x?xf32>, %pool: !gdn.pool<?x?x64x64xbf16>, %cu: tensor<?xi32>,
    %slots: tensor<?xi64>, %accepted: tensor<?xi32>, %keys: !gdn.pool<?x?x32x64xf32>, %decays: !gdn.pool<?x?x32xf32>,
    %counts: !gdn.pool<?x?xi32>) -> (tensor<?x?x64xf32>, tensor<?x?x64xf32>) {
  %o = gdn.delta_rule %q, %q, %q gates(%g, %g) pool(%pool) slots(%slots) pending(%keys, %keys, %decays) counts(%counts)
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xbf16>, tensor<?xi64>
        pending !gdn.pool<?x?x32x64xf32>, !gdn.pool<?x?x32x64xf32>, !gdn.pool<?x?x32xf32> counts !gdn.pool<?x?xi32> -> tensor<?x?x64xf32>
  %p = gdn.delta_rule %q, %q, %q gates(%g, %g) pool(%pool) slots(%slots) sequences(%cu) accepted(%accepted) pending(%keys, %keys, %decays) counts(%counts)
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xbf16>, tensor<?xi64>, tensor<?xi32> accepted tensor<?xi32>
        pending !gdn.pool<?x?x32x64xf32>, !gdn.pool<?x?x32x64xf32>, !gdn.pool<?x?x32xf32> counts !gdn.pool<?x?xi32> -> tensor<?x?x64xf32>
  gdn.commit_delta_rule %pool[%slots] pending(%keys, %keys, %decays) counts(%counts)
      : !gdn.pool<?x?x64x64xbf16>, tensor<?xi64> pending !gdn.pool<?x?x32x64xf32>, !gdn.pool<?x?x32x64xf32>, !gdn.pool<?x?x32xf32> counts !gdn.pool<?x?xi32>
  return %o, %p : tensor<?x?x64xf32>, tensor<?x?x64xf32>
}

// CHECK-LABEL: func.func @token_pool(
//       CHECK:   gdn.delta_rule %{{.+}} token_slots(%{{.+}}) token_pool(%{{.+}}) : {{.*}} token_slots tensor<?x5xi64> token_pool !gdn.pool<?x?x64x64xf32> -> tensor<?x?x64xf32>
func.func @token_pool(%q: tensor<?x?x64xf32>, %g: tensor<?x?xf32>, %pool: !gdn.pool<?x?x64x64xf32>, %cu: tensor<?xi32>,
    %slots: tensor<?xi64>, %table: tensor<?x5xi64>, %buffer: !gdn.pool<?x?x64x64xf32>) -> tensor<?x?x64xf32> {
  %o = gdn.delta_rule %q, %q, %q gates(%g, %g) pool(%pool) slots(%slots) sequences(%cu) token_slots(%table) token_pool(%buffer)
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<?xi64>, tensor<?xi32> token_slots tensor<?x5xi64> token_pool !gdn.pool<?x?x64x64xf32> -> tensor<?x?x64xf32>
  return %o : tensor<?x?x64xf32>
}

// Keys and deltas of pending tokens in f16, with a scale for each delta.
// CHECK-LABEL: func.func @narrow_pending(
//       CHECK:   gdn.delta_rule %{{.+}} pending(%{{.+}}, %{{.+}}, %{{.+}}) counts(%{{.+}}) delta_scales(%{{.+}}) :
//  CHECK-SAME:   pending !gdn.pool<?x?x32x64xf16>, !gdn.pool<?x?x32x64xf16>, !gdn.pool<?x?x32xf32> counts !gdn.pool<?x?xi32> delta_scales !gdn.pool<?x?x32xf32> -> tensor<?x?x64xf32>
//       CHECK:   gdn.commit_delta_rule %{{.+}}[%{{.+}}] pending(%{{.+}}, %{{.+}}, %{{.+}}) counts(%{{.+}}) delta_scales(%{{.+}}) :
func.func @narrow_pending(%q: tensor<?x?x64xf32>, %g: tensor<?x?xf32>, %pool: !gdn.pool<?x?x64x64xbf16>,
    %slots: tensor<?xi64>, %keys: !gdn.pool<?x?x32x64xf16>, %decays: !gdn.pool<?x?x32xf32>,
    %counts: !gdn.pool<?x?xi32>) -> tensor<?x?x64xf32> {
  %o = gdn.delta_rule %q, %q, %q gates(%g, %g) pool(%pool) slots(%slots) pending(%keys, %keys, %decays) counts(%counts) delta_scales(%decays)
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xbf16>, tensor<?xi64>
        pending !gdn.pool<?x?x32x64xf16>, !gdn.pool<?x?x32x64xf16>, !gdn.pool<?x?x32xf32> counts !gdn.pool<?x?xi32>
        delta_scales !gdn.pool<?x?x32xf32> -> tensor<?x?x64xf32>
  gdn.commit_delta_rule %pool[%slots] pending(%keys, %keys, %decays) counts(%counts) delta_scales(%decays)
      : !gdn.pool<?x?x64x64xbf16>, tensor<?xi64> pending !gdn.pool<?x?x32x64xf16>, !gdn.pool<?x?x32x64xf16>, !gdn.pool<?x?x32xf32>
        counts !gdn.pool<?x?xi32> delta_scales !gdn.pool<?x?x32xf32>
  return %o : tensor<?x?x64xf32>
}

// A key to erase along, of its own type, with a decay per channel.
// CHECK-LABEL: func.func @erase(
//       CHECK:   gdn.delta_rule %{{.+}}, %{{.+}}, %{{.+}} gates(%{{.+}}, %{{.+}}) erase(%{{.+}}) pool(%{{.+}}) slots(%{{.+}}) :
//  CHECK-SAME:   tensor<?x?x64xf32>, tensor<?x?xf32> erase tensor<?x?x64xbf16>, !gdn.pool<?x?x64x64xf32>, tensor<?xi32> -> tensor<?x?x64xf32>
func.func @erase(%q: tensor<?x?x64xf32>, %g: tensor<?x?x64xf32>, %beta: tensor<?x?xf32>, %e: tensor<?x?x64xbf16>,
    %pool: !gdn.pool<?x?x64x64xf32>, %slots: tensor<?xi32>) -> tensor<?x?x64xf32> {
  %o = gdn.delta_rule %q, %q, %q gates(%g, %beta) erase(%e) pool(%pool) slots(%slots)
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32> erase tensor<?x?x64xbf16>,
        !gdn.pool<?x?x64x64xf32>, tensor<?xi32> -> tensor<?x?x64xf32>
  return %o : tensor<?x?x64xf32>
}
