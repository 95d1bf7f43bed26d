// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What -canonicalize and -cse may remove from gdn programs, and what must stay.
//
// RUN: gdn-opt %s -canonicalize -cse | FileCheck %s

// delta_rule gives zeros where the mask would put them.
// CHECK-LABEL: func.func @mask_of_delta_rule(
//       CHECK:   %[[O:.+]] = gdn.delta_rule
//   CHECK-NOT:   gdn.mask_sequences
//       CHECK:   return %[[O]]
func.func @mask_of_delta_rule(%q: tensor<?x?x64xf32>, %v: tensor<?x?x64xf32>, %g: tensor<?x?xf32>,
    %pool: !gdn.pool<?x?x64x64xf32>, %slots: tensor<?xi32>, %cu: tensor<?xi32>) -> tensor<?x?x64xf32> {
  %o = gdn.delta_rule %q, %q, %v gates(%g, %g) pool(%pool) slots(%slots) sequences(%cu)
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x64xf32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?x64xf32>
  %m = gdn.mask_sequences %o of(%pool) slots(%slots) sequences(%cu)
      : tensor<?x?x64xf32>, !gdn.pool<?x?x64x64xf32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?x64xf32>
  return %m : tensor<?x?x64xf32>
}

// So does conv1d, and neither l2norm nor a cast makes anything of a zero.
// CHECK-LABEL: func.func @mask_of_normalised_conv1d(
//       CHECK:   gdn.conv1d
//       CHECK:   gdn.l2norm
//       CHECK:   %[[C:.+]] = gdn.cast
//   CHECK-NOT:   gdn.mask_sequences
//       CHECK:   return %[[C]]
func.func @mask_of_normalised_conv1d(%x: tensor<?x?x64xf32>, %w: tensor<?x4xf32>,
    %pool: !gdn.pool<?x?x3xf32>, %slots: tensor<?xi32>) -> tensor<?x?x64xbf16> {
  %y = gdn.conv1d %x weight(%w) silu pool(%pool) slots(%slots)
      : (tensor<?x?x64xf32>), tensor<?x4xf32>, !gdn.pool<?x?x3xf32>, tensor<?xi32> -> tensor<?x?x64xf32>
  %n = gdn.l2norm %y : tensor<?x?x64xf32> -> tensor<?x?x64xf32>
  %c = gdn.cast %n : tensor<?x?x64xf32> -> tensor<?x?x64xbf16>
  %m = gdn.mask_sequences %c of(%pool) slots(%slots)
      : tensor<?x?x64xbf16>, !gdn.pool<?x?x3xf32>, tensor<?xi32> -> tensor<?x?x64xbf16>
  return %m : tensor<?x?x64xbf16>
}

// CHECK-LABEL: func.func @mask_of_mask(
//       CHECK:   %[[M:.+]] = gdn.mask_sequences
//   CHECK-NOT:   gdn.mask_sequences
//       CHECK:   return %[[M]]
func.func @mask_of_mask(%x: tensor<?x?xf32>, %pool: !gdn.pool<?x?x3xf32>, %slots: tensor<?xi32>) -> tensor<?x?xf32> {
  %m = gdn.mask_sequences %x of(%pool) slots(%slots) : tensor<?x?xf32>, !gdn.pool<?x?x3xf32>, tensor<?xi32> -> tensor<?x?xf32>
  %n = gdn.mask_sequences %m of(%pool) slots(%slots) : tensor<?x?xf32>, !gdn.pool<?x?x3xf32>, tensor<?xi32> -> tensor<?x?xf32>
  return %n : tensor<?x?xf32>
}

// Another pool has another null slot and size; other slots are other rows; and
// a gated norm of zeros is not zero where the gate is NaN.
// CHECK-LABEL: func.func @masks_that_stay(
// CHECK-COUNT-4: gdn.mask_sequences
//   CHECK-NOT:   gdn.mask_sequences
func.func @masks_that_stay(%x: tensor<?x?x8xf32>, %w: tensor<8xf32>, %p: !gdn.pool<?x?x3xf32>, %r: !gdn.pool<?x?x3xf32>,
    %slots: tensor<?xi32>, %others: tensor<?xi32>) -> (tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x?x8xf32>) {
  %m = gdn.mask_sequences %x of(%p) slots(%slots) : tensor<?x?x8xf32>, !gdn.pool<?x?x3xf32>, tensor<?xi32> -> tensor<?x?x8xf32>
  %a = gdn.mask_sequences %m of(%r) slots(%slots) : tensor<?x?x8xf32>, !gdn.pool<?x?x3xf32>, tensor<?xi32> -> tensor<?x?x8xf32>
  %b = gdn.mask_sequences %m of(%p) slots(%others) : tensor<?x?x8xf32>, !gdn.pool<?x?x3xf32>, tensor<?xi32> -> tensor<?x?x8xf32>
  %n = gdn.gated_rms_norm %m, %x, %w silu : tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<8xf32> -> tensor<?x?x8xf32>
  %c = gdn.mask_sequences %n of(%p) slots(%slots) : tensor<?x?x8xf32>, !gdn.pool<?x?x3xf32>, tensor<?xi32> -> tensor<?x?x8xf32>
  return %a, %b, %c : tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x?x8xf32>
}

// Widening is exact, so bf16 -> f32 -> bf16 is nothing and -> f16 one rounding.
// CHECK-LABEL: func.func @casts_of_widening(
//  CHECK-SAME:   %[[X:.+]]: tensor<?x?xbf16>
//       CHECK:   %[[H:.+]] = gdn.cast %[[X]] : tensor<?x?xbf16> -> tensor<?x?xf16>
//       CHECK:   return %[[X]], %[[H]]
func.func @casts_of_widening(%x: tensor<?x?xbf16>) -> (tensor<?x?xbf16>, tensor<?x?xf16>) {
  %w = gdn.cast %x : tensor<?x?xbf16> -> tensor<?x?xf32>
  %a = gdn.cast %w : tensor<?x?xf32> -> tensor<?x?xbf16>
  %b = gdn.cast %w : tensor<?x?xf32> -> tensor<?x?xf16>
  return %a, %b : tensor<?x?xbf16>, tensor<?x?xf16>
}

// Narrowing rounds: both casts stay.
// CHECK-LABEL: func.func @casts_of_narrowing(
// CHECK-COUNT-2: gdn.cast
func.func @casts_of_narrowing(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %n = gdn.cast %x : tensor<?x?xf32> -> tensor<?x?xbf16>
  %w = gdn.cast %n : tensor<?x?xbf16> -> tensor<?x?xf32>
  return %w : tensor<?x?xf32>
}

// Nobody uses a result: what only computes goes, a pool that is only read too.
// CHECK-LABEL: func.func @dead(
//  CHECK-NEXT:   return
func.func @dead(%x: tensor<?x?xf32>, %hk: index, %pool: !gdn.pool<?x?x3xf32>, %slots: tensor<?xi32>) {
  %q = gdn.unpack "q" flat %x heads(%hk, %hk) : tensor<?x?xf32> -> tensor<?x?x8xf32>
  %n = gdn.l2norm %q : tensor<?x?x8xf32> -> tensor<?x?x8xf32>
  %m = gdn.mask_sequences %n of(%pool) slots(%slots) : tensor<?x?x8xf32>, !gdn.pool<?x?x3xf32>, tensor<?xi32> -> tensor<?x?x8xf32>
  %s = gdn.pool_read %pool[%slots] : !gdn.pool<?x?x3xf32>, tensor<?xi32> -> tensor<?x?x3xf32>
  gdn.kernel "unused" {
    %y = gdn.l2norm %m : tensor<?x?x8xf32> -> tensor<?x?x8xf32>
  }
  return
}

// Nobody uses a result, but a pool is written. A part of an unpack that nobody
// uses keeps its column.
// CHECK-LABEL: func.func @dead_but_written(
//       CHECK:   gdn.unpack "qz"
//       CHECK:   gdn.conv1d
//       CHECK:   gdn.kernel "writes" {
//       CHECK:     gdn.pool_write
func.func @dead_but_written(%x: tensor<?x?xf32>, %hk: index, %w: tensor<?x4xf32>, %s: tensor<?x?x3xf32>,
    %pool: !gdn.pool<?x?x3xf32>, %slots: tensor<?xi32>) {
  %q, %z = gdn.unpack "qz" flat %x heads(%hk, %hk) : tensor<?x?xf32> -> tensor<?x?x8xf32>, tensor<?x?x8xf32>
  %y = gdn.conv1d %q weight(%w) silu pool(%pool) slots(%slots)
      : (tensor<?x?x8xf32>), tensor<?x4xf32>, !gdn.pool<?x?x3xf32>, tensor<?xi32> -> tensor<?x?x8xf32>
  gdn.kernel "writes" {
    gdn.pool_write %s, %pool[%slots] : tensor<?x?x3xf32>, !gdn.pool<?x?x3xf32>, tensor<?xi32>
  }
  return
}

// Two reads are one unless the pool is written between them.
// CHECK-LABEL: func.func @reads(
//       CHECK:   %[[A:.+]] = gdn.pool_read
//   CHECK-NOT:   gdn.pool_read
//       CHECK:   gdn.pool_write
//       CHECK:   %[[C:.+]] = gdn.pool_read
//       CHECK:   return %[[A]], %[[A]], %[[C]]
func.func @reads(%s: tensor<?x?x3xf32>, %pool: !gdn.pool<?x?x3xf32>, %slots: tensor<?xi32>)
    -> (tensor<?x?x3xf32>, tensor<?x?x3xf32>, tensor<?x?x3xf32>) {
  %a = gdn.pool_read %pool[%slots] : !gdn.pool<?x?x3xf32>, tensor<?xi32> -> tensor<?x?x3xf32>
  %b = gdn.pool_read %pool[%slots] : !gdn.pool<?x?x3xf32>, tensor<?xi32> -> tensor<?x?x3xf32>
  gdn.pool_write %s, %pool[%slots] : tensor<?x?x3xf32>, !gdn.pool<?x?x3xf32>, tensor<?xi32>
  %c = gdn.pool_read %pool[%slots] : !gdn.pool<?x?x3xf32>, tensor<?xi32> -> tensor<?x?x3xf32>
  return %a, %b, %c : tensor<?x?x3xf32>, tensor<?x?x3xf32>, tensor<?x?x3xf32>
}

// Of five results one is computed and used: the others are unused, repeat it,
// or come from outside. What only an unused result needed goes with it.
// CHECK-LABEL: func.func @kernel_results(
//  CHECK-SAME:   %[[X:.+]]: tensor<?x?x8xf32>
//       CHECK:   %[[R:.+]] = gdn.kernel "k"
//  CHECK-NEXT:     %[[A:.+]] = gdn.l2norm %[[X]] :
//  CHECK-NEXT:     gdn.yield %[[A]] : tensor<?x?x8xf32>
//  CHECK-NEXT:   } : tensor<?x?x8xf32>
//       CHECK:   return %[[R]], %[[R]], %[[X]]
func.func @kernel_results(%x: tensor<?x?x8xf32>) -> (tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x?x8xf32>) {
  %0:5 = gdn.kernel "k" {
    %a = gdn.l2norm %x : tensor<?x?x8xf32> -> tensor<?x?x8xf32>
    %b = gdn.l2norm %x {eps = 0.5 : f32} : tensor<?x?x8xf32> -> tensor<?x?x8xf32>
    gdn.yield %b, %a, %a, %x, %x : tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x?x8xf32>
  } : tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x?x8xf32>
  return %0#1, %0#2, %0#3 : tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x?x8xf32>
}

// CHECK-LABEL: func.func @empty_kernel(
//  CHECK-SAME:   %[[X:.+]]: tensor<?x?x8xf32>
//  CHECK-NEXT:   return %[[X]]
func.func @empty_kernel(%x: tensor<?x?x8xf32>) -> tensor<?x?x8xf32> {
  %0 = gdn.kernel "k" {
    gdn.yield %x : tensor<?x?x8xf32>
  } : tensor<?x?x8xf32>
  return %0 : tensor<?x?x8xf32>
}
