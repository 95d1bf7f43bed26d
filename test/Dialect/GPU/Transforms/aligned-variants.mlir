// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A variant for calls whose arrays lie well: what a thread moves several columns
// of gets strides that say so, and 16 bytes.
//
// RUN: gdn-gpu-opt %s -gdn-add-aligned-variants | FileCheck %s

#rows = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 1, vector = 1>

// The windows have their channels side by side, the weights their taps; of the
// inputs the type says it already. Gates, read one by one, promise nothing.
// CHECK-LABEL: func.func @step_aligned(
//  CHECK-SAME:   memref<?x?xbf16, strided<[?, 1], offset: ?>> {gdn_gpu.alignment = 16 : i64}
//  CHECK-SAME:   memref<?x?x3xbf16, strided<[?, 1, ?], offset: ?>> {gdn_gpu.alignment = 16 : i64}
//  CHECK-SAME:   memref<?x4xbf16, strided<[4, 1], offset: ?>> {gdn_gpu.alignment = 16 : i64}
//  CHECK-SAME:   memref<?x?xbf16, strided<[?, ?], offset: ?>>,
//  CHECK-SAME:   attributes {
//  CHECK-SAME:   promised
//  CHECK-SAME:   stage_of = "step", variant = "aligned"
//       CHECK:   gdn_gpu.load {{.*}} memref<?x?x3xbf16, strided<[?, 1, ?], offset: ?>>
// CHECK-LABEL: func.func @step(
//  CHECK-SAME:   memref<?x?x3xbf16, strided<[?, ?, ?], offset: ?>>,
//   CHECK-NOT:   aligned_variant
//   CHECK-NOT:   promised
//       CHECK:   gdn_gpu.load
func.func @step(%inputs: memref<?x?xbf16, strided<[?, 1], offset: ?>>,
                %windows: memref<?x?x3xbf16, strided<[?, ?, ?], offset: ?>>,
                %weights: memref<?x4xbf16, strided<[?, 1], offset: ?>>,
                %gates: memref<?x?xbf16, strided<[?, ?], offset: ?>>, %row: index)
    attributes {gdn_gpu.kernel = {aligned_variant, threads = 32 : i64}} {
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  // A view of part of the inputs.
  %q = memref.reinterpret_cast %inputs to offset: [%c128], sizes: [%row, 128], strides: [%c128, 1]
      : memref<?x?xbf16, strided<[?, 1], offset: ?>> to memref<?x128xbf16, strided<[?, 1], offset: ?>>
  %x = gdn_gpu.load %q[%row, %c0] dims [1]
      : memref<?x128xbf16, strided<[?, 1], offset: ?>>, <128xbf16, #gdn_gpu.per_column<#rows>>
  %w = gdn_gpu.load %windows[%row, %c0, %c0] dims [2, 1]
      : memref<?x?x3xbf16, strided<[?, ?, ?], offset: ?>>, <3x128xbf16, #rows>
  %k = gdn_gpu.load %weights[%c0, %c0] dims [1, 0]
      : memref<?x4xbf16, strided<[?, 1], offset: ?>>, <4x128xbf16, #rows>
  %g = gdn_gpu.load %gates[%row, %c0] dims [0]
      : memref<?x?xbf16, strided<[?, ?], offset: ?>>, <8xbf16, #gdn_gpu.per_row<#one>>
  gdn_gpu.store %w, %windows[%row, %c0, %c0] dims [2, 1]
      : <3x128xbf16, #rows>, memref<?x?x3xbf16, strided<[?, ?, ?], offset: ?>>
  return
}

// A variant has one of its own, with its conditions.
// CHECK-LABEL: func.func @step_persistent_aligned(
//  CHECK-SAME:   conditions = {{\[\[}}["1"], ["dependent"]]],
//  CHECK-SAME:   stage_of = "step", variant = "persistent-aligned"
// CHECK-LABEL: func.func @step_persistent(
//  CHECK-SAME:   variant = "persistent"
func.func @step_persistent(%inputs: memref<?x?xbf16, strided<[?, 1], offset: ?>>, %row: index)
    attributes {gdn_gpu.kernel = {aligned_variant, threads = 32 : i64},
                gdn_tile.stage = {stage_of = "step", variant = "persistent",
                                  conditions = [[["1"], ["dependent"]]]}} {
  %c0 = arith.constant 0 : index
  %x = gdn_gpu.load %inputs[%row, %c0] dims [1]
      : memref<?x?xbf16, strided<[?, 1], offset: ?>>, <128xbf16, #gdn_gpu.per_column<#rows>>
  return
}

// Nothing to promise that it does not ask of every call.
// CHECK-NOT:   func.func @move_aligned(
// CHECK-LABEL: func.func @move(
//   CHECK-NOT:   func.func
func.func @move(%pool: memref<?x?xf32, strided<[?, 1], offset: ?>> {gdn_gpu.alignment = 16 : i64}, %row: index)
    attributes {gdn_gpu.kernel = {aligned_variant, threads = 32 : i64}} {
  %c0 = arith.constant 0 : index
  %x = gdn_gpu.load %pool[%row, %c0] dims [1] aligned 16
      : memref<?x?xf32, strided<[?, 1], offset: ?>>, <128xf32, #gdn_gpu.per_column<#rows>>
  return
}
