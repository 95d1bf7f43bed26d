// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies as boxes: what no tensor map can bring (begin_copy_c8).
//
// RUN: gdn-gpu-opt %s -split-input-file -verify-diagnostics

!view = memref<?x128xbf16, strided<[?, 1]>>

func.func @not_acquired(%v: !view, %i: index) attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  %c0 = arith.constant 0 : index
  %buffer = gdn_gpu.alloc : !gdn_gpu.shared<64x128xbf16, swizzled>
  // expected-error@+1 {{'gdn_gpu.begin_copy' op expects 'buffer' to be acquired for 'tensor_map'}}
  gdn_gpu.begin_copy tensor_map %v[%i, %c0] dims [0, 1], %buffer : !view, !gdn_gpu.shared<64x128xbf16, swizzled>
  return
}

// -----

!view = memref<?x32xbf16, strided<[?, 1]>>

func.func @narrow(%v: !view, %i: index) attributes {gdn_gpu.kernel = {threads = 64 : i64}} {
  %c0 = arith.constant 0 : index
  %ring = gdn_gpu.channel : !gdn_gpu.channel<64x32xbf16, depth = 2, swizzled>
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      %buffer = gdn_gpu.acquire %ring : !gdn_gpu.channel<64x32xbf16, depth = 2, swizzled> -> !gdn_gpu.shared<64x32xbf16, swizzled>
      // expected-error@+1 {{'gdn_gpu.begin_copy' op expects a swizzled tile of up to 256 rows of 128 to 512 bytes, a multiple of 128, of 16 bits or f32 for 'tensor_map', but got '!gdn_gpu.shared<64x32xbf16, swizzled>'}}
      gdn_gpu.begin_copy tensor_map %v[%i, %c0] dims [0, 1], %buffer : !view, !gdn_gpu.shared<64x32xbf16, swizzled>
    }
  }
  return
}

// -----

!view = memref<?x128xbf16, strided<[?, 1]>>
!ring = !gdn_gpu.channel<64x128xbf16, depth = 2, swizzled>

func.func @no_argument(%v: !view, %i: index) attributes {gdn_gpu.kernel = {threads = 64 : i64}} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %part = memref.reinterpret_cast %v to offset: [0], sizes: [64, 128], strides: [%c64, 1] : !view to memref<64x128xbf16, strided<[?, 1]>>
  %ring = gdn_gpu.channel : !ring
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      %buffer = gdn_gpu.acquire %ring : !ring -> !gdn_gpu.shared<64x128xbf16, swizzled>
      // expected-error@+1 {{'gdn_gpu.begin_copy' op expects 'view' to be an argument of the function for 'tensor_map'}}
      gdn_gpu.begin_copy tensor_map %part[%i, %c0] dims [0, 1], %buffer : memref<64x128xbf16, strided<[?, 1]>>, !gdn_gpu.shared<64x128xbf16, swizzled>
    }
  }
  return
}

// -----

!view = memref<?x256xbf16, strided<[?, 1]>>
!ring = !gdn_gpu.channel<64x128xbf16, depth = 2, swizzled>

func.func @part_of_rows(%v: !view, %i: index) attributes {gdn_gpu.kernel = {threads = 64 : i64}} {
  %c0 = arith.constant 0 : index
  %ring = gdn_gpu.channel : !ring
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      %buffer = gdn_gpu.acquire %ring : !ring -> !gdn_gpu.shared<64x128xbf16, swizzled>
      // expected-error@+1 {{'gdn_gpu.begin_copy' op expects whole rows of a view of up to 4 dimensions for 'tensor_map', but got 'memref<?x256xbf16, strided<[?, 1]>>'}}
      gdn_gpu.begin_copy tensor_map %v[%i, %c0] dims [0, 1], %buffer : !view, !gdn_gpu.shared<64x128xbf16, swizzled>
    }
  }
  return
}

// -----

!view = memref<?x128xbf16, strided<[?, 1]>>
!ring = !gdn_gpu.channel<64x128xbf16, depth = 2, swizzled>

func.func @not_from_the_first_column(%v: !view, %i: index)
    attributes {gdn_gpu.kernel = {threads = 64 : i64}} {
  %ring = gdn_gpu.channel : !ring
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      %buffer = gdn_gpu.acquire %ring : !ring -> !gdn_gpu.shared<64x128xbf16, swizzled>
      // expected-error@+1 {{'gdn_gpu.begin_copy' op expects whole rows of a view of up to 4 dimensions for 'tensor_map', but got}}
      gdn_gpu.begin_copy tensor_map %v[%i, %i] dims [0, 1], %buffer : !view, !gdn_gpu.shared<64x128xbf16, swizzled>
    }
  }
  return
}

// -----

!view = memref<?x128xbf16, strided<[?, 1]>>

func.func @own(%v: !view, %i: index) attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  %c0 = arith.constant 0 : index
  %buffer = gdn_gpu.alloc : !gdn_gpu.shared<64x128xbf16, swizzled>
  // expected-error@+1 {{'gdn_gpu.begin_copy' op expects neither 'per_warpgroup' nor 'scattered' with 'tensor_map'}}
  gdn_gpu.begin_copy per_warpgroup tensor_map %v[%i, %c0] dims [0, 1], %buffer : !view, !gdn_gpu.shared<64x128xbf16, swizzled>
  return
}
