// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_gpu.conv_columns by ldmatrix from three rows for each of two slices, pairs of tokens as they
// are, two and four tokens earlier; of the first slice, rows in front of the tile are the window's.
// Lanes of a channel have two taps each. The last rows are the next window. What is written may take
// the place of what was read: when all lanes have read.
//
// RUN: gdn-gpu-opt %s -convert-gdn-gpu-to-nvvm -canonicalize -cse | FileCheck %s

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>

// CHECK-LABEL: llvm.func @conv
// Two words of weights for each of two channels.
// CHECK-COUNT-4: nvvm.shfl.sync idx
//     CHECK-NOT: nvvm.shfl
//         CHECK: nvvm.ldmatrix {{.+}} layout = #nvvm.mma_layout<col>, num = 4
//     CHECK-NOT: nvvm.shfl
//         CHECK: nvvm.ldmatrix
//         CHECK: nvvm.ldmatrix
// CHECK-COUNT-4: nvvm.shfl.sync idx
//         CHECK: nvvm.ldmatrix
// CHECK-COUNT-4: nvvm.shfl.sync idx
//     CHECK-NOT: nvvm.shfl
// CHECK-COUNT-3: nvvm.ldmatrix
//     CHECK-NOT: nvvm.ldmatrix
//         CHECK: nvvm.bar.warp.sync
// CHECK-COUNT-2: nvvm.stmatrix {{.+}} layout = #nvvm.mma_layout<col>
//     CHECK-NOT: nvvm.stmatrix
//         CHECK: nvvm.bar.warp.sync
//         CHECK: nvvm.ldmatrix

func.func @conv(%window: memref<64x3xbf16>, %weight: memref<64x4xbf16>, %v: memref<?x64xbf16>, %t: index,
                %to: memref<64x32xf16>, %last: memref<64x3xbf16>)
    attributes {gdn_gpu.kernel = {threads = 128 : i64, warpgroups}, gdn_tile.stage = {grid = ["1"], symbols = []}} {
  %c0 = arith.constant 0 : index
  %first = gdn_gpu.load %window[%c0, %c0] dims [0, 1] : memref<64x3xbf16>, !gdn_gpu.fragment<64x3xbf16, #rows>
  %w = gdn_gpu.load %weight[%c0, %c0] dims [0, 1] : memref<64x4xbf16>, !gdn_gpu.fragment<64x4xbf16, #rows>
  %inputs = gdn_gpu.alloc : !gdn_gpu.shared<32x64xbf16, swizzled>
  gdn_gpu.begin_copy %v[%t, %c0] dims [0, 1], %inputs : memref<?x64xbf16>, !gdn_gpu.shared<32x64xbf16, swizzled>
  gdn_gpu.await_copies
  gdn_gpu.barrier
  %values = gdn_gpu.reshape %inputs : !gdn_gpu.shared<32x64xbf16, swizzled> to !gdn_gpu.shared<32x64xf16, swizzled>
  %next = gdn_gpu.conv_columns %inputs, %first, %w to %values
      : !gdn_gpu.shared<32x64xbf16, swizzled>, !gdn_gpu.fragment<64x3xbf16, #rows>,
        !gdn_gpu.fragment<64x4xbf16, #rows>, !gdn_gpu.shared<32x64xf16, swizzled> {
  ^bb0(%row: vector<32xf32>):
    %rounded = arith.truncf %row : vector<32xf32> to vector<32xf16>
    gdn_gpu.yield %rounded : vector<32xf16>
  }
  %y = gdn_gpu.load_shared transpose %values
      : !gdn_gpu.shared<32x64xf16, swizzled> -> !gdn_gpu.fragment<64x32xf16, #rows>
  gdn_gpu.store %y, %to[%c0, %c0] dims [0, 1] : !gdn_gpu.fragment<64x32xf16, #rows>, memref<64x32xf16>
  gdn_gpu.store %next, %last[%c0, %c0] dims [0, 1] : !gdn_gpu.fragment<64x3xbf16, #rows>, memref<64x3xbf16>
  return
}
