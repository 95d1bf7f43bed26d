// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tiles whose panels lie apart, and products with some columns of a tile.
//
// RUN: gdn-gpu-opt %s -split-input-file -verify-diagnostics

// expected-error@+1 {{expects 'apart' to be 1, or more in a swizzled tile with rows of a multiple of 128 bytes, but got 0 and 128 bytes}}
func.func private @none_apart(!gdn_gpu.shared<64x64xf16, swizzled, apart = 0>)

// -----

// expected-error@+1 {{expects 'apart' to be 1, or more in a swizzled tile with rows of a multiple of 128 bytes, but got 2 and 96 bytes}}
func.func private @rows_apart(!gdn_gpu.shared<64x48xf16, swizzled, apart = 2>)

// -----

func.func @reshape_c1_apart(%p: !gdn_gpu.shared<32x64xf32, swizzled>)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  // expected-error@+1 {{'gdn_gpu.reshape' op expects 'result' to have no more elements than 'buffer', 2048 of 32 bits, but got '!gdn_gpu.shared<32x128xf16, swizzled, apart = 2>'}}
  %r = gdn_gpu.reshape %p : !gdn_gpu.shared<32x64xf32, swizzled> to !gdn_gpu.shared<32x128xf16, swizzled, apart = 2>
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 1, lanes = 4, vector = 2>

func.func @matmul_c7(%x: !gdn_gpu.fragment<16x32xf16, #rows>, %p: !gdn_gpu.shared<32x64xf16, swizzled>)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  // expected-error@+1 {{'gdn_gpu.matmul' op expects 'from' to be a multiple of 16, with 32 columns of a transposed 'rhs' from there on and a fragment as 'lhs', but got 48 and '!gdn_gpu.shared<32x64xf16, swizzled>'}}
  %o = gdn_gpu.matmul %x, transpose %p from 48
      : !gdn_gpu.fragment<16x32xf16, #rows>, !gdn_gpu.shared<32x64xf16, swizzled> -> !gdn_gpu.fragment<16x32xf32, #rows>
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 1, lanes = 4, vector = 2>

func.func @matmul_c7_transposed(%x: !gdn_gpu.fragment<16x32xf16, #rows>, %p: !gdn_gpu.shared<64x32xf16, swizzled>)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  // expected-error@+1 {{'gdn_gpu.matmul' op expects 'from' to be a multiple of 16, with 32 columns of a transposed 'rhs' from there on and a fragment as 'lhs', but got 32}}
  %o = gdn_gpu.matmul %x, %p from 32
      : !gdn_gpu.fragment<16x32xf16, #rows>, !gdn_gpu.shared<64x32xf16, swizzled> -> !gdn_gpu.fragment<16x32xf32, #rows>
  return
}
