// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a variant promises of its arrays: LLVM is told that addresses and strides
// are multiples, a launch learns what they have to be, and loads stay on their
// side of the copies that the branches by ways held apart.
//
// RUN: gdn-gpu-opt %s -convert-gdn-gpu-to-nvvm -canonicalize -cse | FileCheck %s

#rows = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>

// CHECK-LABEL: llvm.func @promised(
//   CHECK-NOT:   gdn_gpu.alignments
//  CHECK-SAME:   gdn_gpu.layouts = [array<i64: 16, 0, 1>, array<i64: 16, 4, 1>, array<i64: 0>]
//       CHECK:   %[[ADDRESS:.+]] = llvm.load
//       CHECK:   %[[PAST:.+]] = arith.andi %[[ADDRESS]], %c15_i64
//       CHECK:   %[[NONE:.+]] = arith.cmpi eq, %[[PAST]], %c0_i64
//       CHECK:   llvm.intr.assume %[[NONE]]
// A stride is in elements.
//       CHECK:   arith.andi %{{.+}}, %c7_i64
//       CHECK:   llvm.intr.assume
// The strides of the weights are known.
//       CHECK:   arith.andi %{{.+}}, %c15_i64
//       CHECK:   llvm.intr.assume
//   CHECK-NOT:   llvm.intr.assume
//       CHECK:   nvvm.cp.async.shared.global
//       CHECK:   nvvm.cp.async.commit.group
//       CHECK:   nvvm.bar.warp.sync
//       CHECK:   llvm.load
//       CHECK:   nvvm.bar.warp.sync
//       CHECK:   nvvm.cp.async.wait.group 0
func.func @promised(%x: memref<?x?xbf16, strided<[?, 1]>> {gdn_gpu.alignment = 16 : i64},
                    %weights: memref<?x4xbf16, strided<[4, 1]>> {gdn_gpu.alignment = 16 : i64},
                    %out: memref<?xbf16, strided<[?]>>)
    attributes {gdn_gpu.kernel = {threads = 32 : i64, promised},
                gdn_tile.stage = {grid = ["1"], symbols = []}} {
  %c0 = arith.constant 0 : index
  %buffer = gdn_gpu.alloc : !gdn_gpu.shared<512xbf16>
  gdn_gpu.begin_load %weights[%c0, %c0] dims [1, 0], %buffer
      : memref<?x4xbf16, strided<[4, 1]>>, !gdn_gpu.fragment<4x128xbf16, #rows>, !gdn_gpu.shared<512xbf16>
  %a = gdn_gpu.load %x[%c0, %c0] dims [1]
      : memref<?x?xbf16, strided<[?, 1]>>, !gdn_gpu.fragment<128xbf16, #gdn_gpu.per_column<#rows>>
  %w = gdn_gpu.load %weights[%c0, %c0] dims [1, 0] begun(%buffer : !gdn_gpu.shared<512xbf16>)
      : memref<?x4xbf16, strided<[4, 1]>>, !gdn_gpu.fragment<4x128xbf16, #rows>
  gdn_gpu.store %a, %out[%c0] dims [0]
      : !gdn_gpu.fragment<128xbf16, #gdn_gpu.per_column<#rows>>, memref<?xbf16, strided<[?]>>
  gdn_gpu.store %w, %x[%c0, %c0] dims [0, 1]
      : !gdn_gpu.fragment<4x128xbf16, #rows>, memref<?x?xbf16, strided<[?, 1]>>
  return
}
