// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Heads in groups that are not those of the array, and a view of groups where a tensor map wants
// the array: what gdn-schedule-tile-products relies on (grouped-heads.mlir).
//
// RUN: gdn-opt %s -split-input-file -verify-diagnostics

func.func @other_heads(%out: memref<?x8x128xbf16>, %tokens: index) {
  // expected-error@+1 {{'memref.expand_shape' op collapsed dim size (8) must equal reassociation group size (6)}}
  %outs = memref.expand_shape %out [[0], [1, 2], [3]] output_shape [%tokens, 3, 2, 128] : memref<?x8x128xbf16> into memref<?x3x2x128xbf16>
  return
}

// -----

func.func @tensor_map_of_groups(%out: memref<?x8x128xbf16>, %tokens: index, %h: index, %r: index)
    attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  %c0 = arith.constant 0 : index
  %outs = memref.expand_shape %out [[0], [1, 2], [3]] output_shape [%tokens, 4, 2, 128] : memref<?x8x128xbf16> into memref<?x4x2x128xbf16>
  %tile = gdn_gpu.alloc : !gdn_gpu.shared<64x128xbf16, swizzled>
  // expected-error@+1 {{'gdn_gpu.copy_out' op expects a swizzled tile of up to 256 rows and 64 columns for each group, of 16 bits, of an argument of the function of up to 4 dimensions whose last is a multiple of 64 up to 256, for 'tensor_map', but got '!gdn_gpu.shared<64x128xbf16, swizzled>' and 'memref<?x4x2x128xbf16>'}}
  gdn_gpu.copy_out tensor_map %tile, %outs[%c0, %h, %r, %c0] dims [0, 3] : !gdn_gpu.shared<64x128xbf16, swizzled>, memref<?x4x2x128xbf16>
  return
}
