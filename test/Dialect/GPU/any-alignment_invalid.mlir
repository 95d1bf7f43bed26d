// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_gpu.begin_copy any_alignment: every message of its constraint (C10).
//
// RUN: gdn-gpu-opt %s -split-input-file -verify-diagnostics

func.func @c10_swizzled(%x: memref<?x128xbf16>, %t: index)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  %c0 = arith.constant 0 : index
  %buffer = gdn_gpu.alloc : !gdn_gpu.shared<64x128xbf16, swizzled>
  // expected-error@+1 {{expects a tile of rank 2 that is not swizzled, and no other way to copy, for 'any_alignment', but got '!gdn_gpu.shared<64x128xbf16, swizzled>'}}
  gdn_gpu.begin_copy any_alignment %x[%t, %c0] dims [0, 1], %buffer
      : memref<?x128xbf16>, !gdn_gpu.shared<64x128xbf16, swizzled>
  return
}

// -----

func.func @c10_rank(%x: memref<?xf32>, %t: index)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  %c0 = arith.constant 0 : index
  %buffer = gdn_gpu.alloc : !gdn_gpu.shared<64xf32>
  // expected-error@+1 {{expects a tile of rank 2 that is not swizzled, and no other way to copy, for 'any_alignment', but got '!gdn_gpu.shared<64xf32>'}}
  gdn_gpu.begin_copy any_alignment %x[%t] dims [0], %buffer
      : memref<?xf32>, !gdn_gpu.shared<64xf32>
  return
}

// -----

func.func @c10_scattered(%x: memref<?xf32>, %t: index)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  %c0 = arith.constant 0 : index
  %buffer = gdn_gpu.alloc : !gdn_gpu.shared<64xf32>
  // expected-error@+1 {{expects a tile of rank 2 that is not swizzled, and no other way to copy, for 'any_alignment', but got '!gdn_gpu.shared<64xf32>'}}
  gdn_gpu.begin_copy scattered any_alignment %x[%t] dims [0], %buffer
      : memref<?xf32>, !gdn_gpu.shared<64xf32>
  return
}
