// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The descriptor of a tile whose panels lie apart names the bytes from one to
// the next: 8,192, over 16, in the bits from 16 on. Products with some columns of a
// tile begin there: 64 bytes on.
//
// RUN: gdn-gpu-opt %s -convert-gdn-gpu-to-nvvm -canonicalize -cse | FileCheck %s

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!logs = !gdn_gpu.shared<32x128xf32, swizzled>
!apart = !gdn_gpu.shared<32x128xf16, swizzled, apart = 2>
!products = !gdn_gpu.shared<32x64xf16, swizzled>

// 1 << 62 | 64 << 32 | 512 << 16
// CHECK-LABEL: llvm.func @apart(
//   CHECK-DAG: %[[TILE:.+]] = arith.constant 4611686293338849280 : i64
//       CHECK: arith.ori %{{.+}}, %[[TILE]] : i64
// CHECK-COUNT-2: wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16
func.func @apart(%T: index, %in: memref<32x128xf32, strided<[128, 1]>>, %out: memref<64x128xf32, strided<[128, 1]>>)
    attributes {gdn_gpu.kernel = {threads = 128 : i64, warpgroups},
                gdn_tile.stage = {grid = ["T"], symbols = ["T"]}} {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f16
  %x = gdn_gpu.fill %one : f16 -> !gdn_gpu.fragment<64x32xf16, #rows>
  %g = gdn_gpu.alloc : !logs
  gdn_gpu.begin_copy %in[%c0, %c0] dims [0, 1], %g : memref<32x128xf32, strided<[128, 1]>>, !logs
  gdn_gpu.await_copies
  gdn_gpu.barrier
  %t = gdn_gpu.reshape %g : !logs to !apart
  %s = gdn_gpu.matmul warpgroup %x, %t : !gdn_gpu.fragment<64x32xf16, #rows>, !apart -> !gdn_gpu.fragment<64x128xf32, #rows>
  gdn_gpu.store %s, %out[%c0, %c0] dims [0, 1] : !gdn_gpu.fragment<64x128xf32, #rows>, memref<64x128xf32, strided<[128, 1]>>
  return
}

// CHECK-LABEL: llvm.func @columns(
//   CHECK-DAG: %[[FROM:.+]] = arith.constant 4 : i64
//   CHECK-DAG: %[[NEXT:.+]] = arith.constant 6 : i64
//       CHECK: arith.addi %{{.+}}, %[[FROM]] : i64
//       CHECK: wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16
//       CHECK: arith.addi %{{.+}}, %[[NEXT]] : i64
//       CHECK: wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16
//   CHECK-NOT: wgmma.mma_async
func.func @columns(%T: index, %in: memref<32x64xf16, strided<[64, 1]>>, %out: memref<64x32xf32, strided<[32, 1]>>)
    attributes {gdn_gpu.kernel = {threads = 128 : i64, warpgroups},
                gdn_tile.stage = {grid = ["T"], symbols = ["T"]}} {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f16
  %x = gdn_gpu.fill %one : f16 -> !gdn_gpu.fragment<64x32xf16, #rows>
  %p = gdn_gpu.alloc : !products
  gdn_gpu.begin_copy %in[%c0, %c0] dims [0, 1], %p : memref<32x64xf16, strided<[64, 1]>>, !products
  gdn_gpu.await_copies
  gdn_gpu.barrier
  %s = gdn_gpu.matmul warpgroup %x, transpose %p from 32 : !gdn_gpu.fragment<64x32xf16, #rows>, !products -> !gdn_gpu.fragment<64x32xf32, #rows>
  gdn_gpu.store %s, %out[%c0, %c0] dims [0, 1] : !gdn_gpu.fragment<64x32xf32, #rows>, memref<64x32xf32, strided<[32, 1]>>
  return
}
