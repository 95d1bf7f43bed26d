// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Inverses of triangles that the verifier refuses.
//
// RUN: gdn-gpu-opt %s -split-input-file -verify-diagnostics

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!square = !gdn_gpu.shared<64x64xf16, swizzled>

func.func @tri_inverse_c1(%a: !gdn_gpu.fragment<64x64xbf16, #rows>, %p: !square)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  // expected-error@+1 {{'gdn_gpu.tri_inverse' op expects a square 'matrix' of f16 with 16 rows per warp in a layout of matrix instructions, but got '!gdn_gpu.fragment<64x64xbf16, #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>>'}}
  %r = gdn_gpu.tri_inverse %a in %p : (!gdn_gpu.fragment<64x64xbf16, #rows>, !square) -> !gdn_gpu.fragment<64x64xbf16, #rows>
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!matrix = !gdn_gpu.fragment<64x64xf16, #rows>

func.func @tri_inverse_c2(%a: !matrix, %p: !gdn_gpu.shared<64x64xf16>)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  // expected-error@+1 {{'gdn_gpu.tri_inverse' op expects 'scratch' to be '!gdn_gpu.shared<64x64xf16, swizzled>', but got '!gdn_gpu.shared<64x64xf16>'}}
  %r = gdn_gpu.tri_inverse %a in %p : (!matrix, !gdn_gpu.shared<64x64xf16>) -> !matrix
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!square = !gdn_gpu.shared<64x64xf16, swizzled>
!matrix = !gdn_gpu.fragment<64x64xf16, #rows>

func.func @tri_inverse_c3(%a: !matrix, %p: !square)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  gdn_gpu.warps 0 for 4 {
    // expected-error@+1 {{'gdn_gpu.tri_inverse' op expects to be outside gdn_gpu.warps, which only some warps enter}}
    %r = gdn_gpu.tri_inverse %a in %p : (!matrix, !square) -> !matrix
  }
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!square = !gdn_gpu.shared<64x64xf16, swizzled>
!matrix = !gdn_gpu.fragment<64x64xf16, #rows>

func.func @tri_inverse_c1_count(%a: !matrix, %p: !square)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  // expected-error@+1 {{'gdn_gpu.tri_inverse' op expects one matrix or two, but got 3}}
  %r:3 = gdn_gpu.tri_inverse transposed %a, %a, %a in %p : (!matrix, !matrix, !matrix, !square) -> (!matrix, !matrix, !matrix)
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!square = !gdn_gpu.shared<64x64xf16, swizzled>
!matrix = !gdn_gpu.fragment<64x64xf16, #rows>

func.func @tri_inverse_c1_results(%a: !matrix, %p: !square)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  // expected-error@+1 {{'gdn_gpu.tri_inverse' op expects as many results as matrices, 2, but got 1}}
  %r = gdn_gpu.tri_inverse transposed %a, %a in %p : (!matrix, !matrix, !square) -> !matrix
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!square = !gdn_gpu.shared<64x64xf16, swizzled>
!sums = !gdn_gpu.fragment<64x64xf32, #rows>
!matrix = !gdn_gpu.fragment<64x64xf16, #rows>

func.func @tri_inverse_c1_types(%a: !matrix, %b: !sums, %p: !square)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  // expected-error@+1 {{'gdn_gpu.tri_inverse' op expects matrices and results of one type, '!gdn_gpu.fragment<64x64xf16, #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>>', but got '!gdn_gpu.fragment<64x64xf32, #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>>'}}
  %r:2 = gdn_gpu.tri_inverse transposed %a, %b in %p : (!matrix, !sums, !square) -> (!matrix, !matrix)
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!square = !gdn_gpu.shared<64x64xf16, swizzled>
!matrix = !gdn_gpu.fragment<64x64xf16, #rows>

func.func @tri_inverse_c1_plain(%a: !matrix, %p: !square)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  // expected-error@+1 {{'gdn_gpu.tri_inverse' op expects two matrices to have four warps and 'transposed'}}
  %r:2 = gdn_gpu.tri_inverse %a, %a in %p : (!matrix, !matrix, !square) -> (!matrix, !matrix)
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!square = !gdn_gpu.shared<64x64xf16, swizzled>
!matrix = !gdn_gpu.fragment<64x64xf16, #rows>

func.func @tri_inverse_c2_two(%a: !matrix, %p: !square)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  // expected-error@+1 {{'gdn_gpu.tri_inverse' op expects 'scratch' to be '!gdn_gpu.shared<80x64xf16, swizzled>', but got '!gdn_gpu.shared<64x64xf16, swizzled>'}}
  %r:2 = gdn_gpu.tri_inverse transposed %a, %a in %p : (!matrix, !matrix, !square) -> (!matrix, !matrix)
  return
}
