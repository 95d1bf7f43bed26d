// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A convolution without a bias begins with a product; a copy of few elements
// brings as many bytes as are left, and none behind them.
//
// RUN: gdn-gpu-opt %s -convert-gdn-gpu-to-nvvm -canonicalize -cse | FileCheck %s

#row = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>

// CHECK-LABEL: llvm.func @conv(
//       CHECK:   %[[FIRST:.+]] = arith.mulf %{{.+}}, %{{.+}} :
//  CHECK-NEXT:   %[[SECOND:.+]] = math.fma %{{.+}}, %{{.+}}, %[[FIRST]] :
//  CHECK-NEXT:   %[[THIRD:.+]] = math.fma %{{.+}}, %{{.+}}, %[[SECOND]] :
//  CHECK-NEXT:   math.fma %{{.+}}, %{{.+}}, %[[THIRD]] :
func.func @conv(%T: index, %x: memref<?x128xf32>, %w: memref<4x128xf32>, %y: memref<?x128xf32>)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {grid = ["T"], symbols = ["T"]}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = gdn_gpu.block_id 0
  %token = gdn_gpu.load %x[%t, %c0] dims [0, 1] : memref<?x128xf32>, !gdn_gpu.fragment<1x128xf32, #row>
  %window = gdn_gpu.load %x[%t, %c0] dims [0, 1] : memref<?x128xf32>, !gdn_gpu.fragment<3x128xf32, #row>
  %weight = gdn_gpu.load %w[%c0, %c0] dims [0, 1] : memref<4x128xf32>, !gdn_gpu.fragment<4x128xf32, #row>
  %sum, %next = gdn_gpu.conv1d %token, %window, %weight valid(%c1)
      : !gdn_gpu.fragment<1x128xf32, #row>, !gdn_gpu.fragment<3x128xf32, #row>,
        !gdn_gpu.fragment<4x128xf32, #row>
      -> !gdn_gpu.fragment<1x128xf32, #row>, !gdn_gpu.fragment<3x128xf32, #row>
  gdn_gpu.store %sum, %y[%t, %c0] dims [0, 1] : !gdn_gpu.fragment<1x128xf32, #row>, memref<?x128xf32>
  return
}

// CHECK-LABEL: llvm.func @tail(
//       CHECK:   %[[LEFT:.+]] = arith.subi
//  CHECK-NEXT:   %[[NONE_LESS:.+]] = arith.maxsi %[[LEFT]], %c0_i32
//  CHECK-NEXT:   arith.minsi %[[NONE_LESS]], %c16_i32
func.func @tail(%n: index, %x: memref<?xf32>, %y: memref<?x128xf32>)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {grid = ["n"], symbols = ["n"]}} {
  %c0 = arith.constant 0 : index
  %numbers = gdn_gpu.alloc : !gdn_gpu.shared<128xf32>
  gdn_gpu.begin_copy %x[%c0] dims [0] rows(%n), %numbers : memref<?xf32>, !gdn_gpu.shared<128xf32>
  gdn_gpu.await_copies
  gdn_gpu.barrier
  return
}

// A block of one warp meets before it copies over what its threads have read.
// CHECK-LABEL: llvm.func @own(
//       CHECK:   nvvm.bar.warp.sync
//       CHECK:   nvvm.cp.async.shared.global
func.func @own(%n: index, %x: memref<?x64xbf16> {gdn_gpu.alignment = 16 : i64})
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {grid = ["n"], symbols = ["n"]}} {
  %c0 = arith.constant 0 : index
  %p = gdn_gpu.alloc : !gdn_gpu.shared<16x64xbf16, swizzled>
  gdn_gpu.begin_copy per_warpgroup %x[%c0, %c0] dims [0, 1], %p : memref<?x64xbf16>, !gdn_gpu.shared<16x64xbf16, swizzled>
  gdn_gpu.await_copies
  return
}
