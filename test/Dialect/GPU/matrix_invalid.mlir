// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The ops for tensor cores: every message of their verifiers.
//
// RUN: gdn-gpu-opt %s -split-input-file -verify-diagnostics

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
#wide = #gdn_gpu.rows<warps = 4, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 1, vector = 1>
!keys = !gdn_gpu.shared<64x128xbf16, swizzled>
!square = !gdn_gpu.shared<64x64xf16, swizzled>
!left = !gdn_gpu.fragment<64x128xbf16, #rows>
!sums = !gdn_gpu.fragment<64x64xf32, #rows>
!matrix = !gdn_gpu.fragment<64x64xf16, #rows>
!view = memref<?x?x128xbf16, strided<[?, ?, 1]>>

func.func @begin_copy_c1_indices(%v: !view, %p: !keys, %i: index)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  // expected-error@+1 {{'gdn_gpu.begin_copy' op expects one index per dimension of 'view', which is 3, but got 2}}
  gdn_gpu.begin_copy %v[%i, %i] dims [0, 2], %p : !view, !keys
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
#wide = #gdn_gpu.rows<warps = 4, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 1, vector = 1>
!keys = !gdn_gpu.shared<64x128xbf16, swizzled>
!square = !gdn_gpu.shared<64x64xf16, swizzled>
!left = !gdn_gpu.fragment<64x128xbf16, #rows>
!sums = !gdn_gpu.fragment<64x64xf32, #rows>
!matrix = !gdn_gpu.fragment<64x64xf16, #rows>
!view = memref<?x?x128xbf16, strided<[?, ?, 1]>>

func.func @begin_copy_c1_count(%v: !view, %p: !keys, %i: index)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  // expected-error@+1 {{'gdn_gpu.begin_copy' op expects one entry of 'dims' per dimension of 'buffer', which is 2, but got 1}}
  gdn_gpu.begin_copy %v[%i, %i, %i] dims [2], %p : !view, !keys
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
#wide = #gdn_gpu.rows<warps = 4, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 1, vector = 1>
!keys = !gdn_gpu.shared<64x128xbf16, swizzled>
!square = !gdn_gpu.shared<64x64xf16, swizzled>
!left = !gdn_gpu.fragment<64x128xbf16, #rows>
!sums = !gdn_gpu.fragment<64x64xf32, #rows>
!matrix = !gdn_gpu.fragment<64x64xf16, #rows>
!view = memref<?x?x128xbf16, strided<[?, ?, 1]>>

func.func @begin_copy_c1_dims(%v: !view, %p: !keys, %i: index)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  // expected-error@+1 {{'gdn_gpu.begin_copy' op expects 'dims' to name distinct dimensions of 'view' below 3, but got 2}}
  gdn_gpu.begin_copy %v[%i, %i, %i] dims [2, 2], %p : !view, !keys
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
#wide = #gdn_gpu.rows<warps = 4, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 1, vector = 1>
!keys = !gdn_gpu.shared<64x128xbf16, swizzled>
!square = !gdn_gpu.shared<64x64xf16, swizzled>
!left = !gdn_gpu.fragment<64x128xbf16, #rows>
!sums = !gdn_gpu.fragment<64x64xf32, #rows>
!matrix = !gdn_gpu.fragment<64x64xf16, #rows>
!view = memref<?x?x128xbf16, strided<[?, ?, 1]>>

func.func @begin_copy_c2_type(%v: !view, %p: !gdn_gpu.shared<64x128xf16, swizzled>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  // expected-error@+1 {{'gdn_gpu.begin_copy' op expects 'buffer' to have the view's element type 'bf16', but got 'f16'}}
  gdn_gpu.begin_copy %v[%i, %i, %i] dims [0, 2], %p : !view, !gdn_gpu.shared<64x128xf16, swizzled>
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
#wide = #gdn_gpu.rows<warps = 4, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 1, vector = 1>
!keys = !gdn_gpu.shared<64x128xbf16, swizzled>
!square = !gdn_gpu.shared<64x64xf16, swizzled>
!left = !gdn_gpu.fragment<64x128xbf16, #rows>
!sums = !gdn_gpu.fragment<64x64xf32, #rows>
!matrix = !gdn_gpu.fragment<64x64xf16, #rows>
!view = memref<?x?x128xbf16, strided<[?, ?, 1]>>

func.func @begin_copy_c2_bytes(%v: !view, %p: !gdn_gpu.shared<64x12xbf16>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  // expected-error@+1 {{'gdn_gpu.begin_copy' op expects rows of a multiple of 16 bytes, but got '!gdn_gpu.shared<64x12xbf16>'}}
  gdn_gpu.begin_copy %v[%i, %i, %i] dims [0, 2], %p : !view, !gdn_gpu.shared<64x12xbf16>
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
#wide = #gdn_gpu.rows<warps = 4, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 1, vector = 1>
!keys = !gdn_gpu.shared<64x128xbf16, swizzled>
!square = !gdn_gpu.shared<64x64xf16, swizzled>
!left = !gdn_gpu.fragment<64x128xbf16, #rows>
!sums = !gdn_gpu.fragment<64x64xf32, #rows>
!matrix = !gdn_gpu.fragment<64x64xf16, #rows>
!view = memref<?x?x128xbf16, strided<[?, ?, 1]>>

func.func @begin_copy_c4(%v: !view, %p: !keys, %i: index)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  gdn_gpu.warps 0 for 1 {
    // expected-error@+1 {{'gdn_gpu.begin_copy' op expects to be outside gdn_gpu.warps, which only some warps enter}}
    gdn_gpu.begin_copy per_warpgroup %v[%i, %i, %i] dims [0, 2], %p : !view, !keys
  }
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
#wide = #gdn_gpu.rows<warps = 4, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 1, vector = 1>
!keys = !gdn_gpu.shared<64x128xbf16, swizzled>
!square = !gdn_gpu.shared<64x64xf16, swizzled>
!left = !gdn_gpu.fragment<64x128xbf16, #rows>
!sums = !gdn_gpu.fragment<64x64xf32, #rows>
!matrix = !gdn_gpu.fragment<64x64xf16, #rows>
!view = memref<?x?x128xbf16, strided<[?, ?, 1]>>

func.func @await_copies_c1() attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  gdn_gpu.warps 0 for 1 {
    // expected-error@+1 {{'gdn_gpu.await_copies' op expects to be outside gdn_gpu.warps, which only some warps enter}}
    gdn_gpu.await_copies
  }
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
#wide = #gdn_gpu.rows<warps = 4, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 1, vector = 1>
!keys = !gdn_gpu.shared<64x128xbf16, swizzled>
!square = !gdn_gpu.shared<64x64xf16, swizzled>
!left = !gdn_gpu.fragment<64x128xbf16, #rows>
!sums = !gdn_gpu.fragment<64x64xf32, #rows>
!matrix = !gdn_gpu.fragment<64x64xf16, #rows>
!view = memref<?x?x128xbf16, strided<[?, ?, 1]>>

func.func @matmul_c3(%a: !gdn_gpu.fragment<64x128xbf16, #wide>, %p: !keys)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  // expected-error@+1 {{'gdn_gpu.matmul' op expects 'lhs' in a layout of matrix instructions, with lanes = 4 and vector = 2, but got '!gdn_gpu.fragment<64x128xbf16, #gdn_gpu.rows<warps = 4, lanes = 8, vector = 4>>'}}
  %r = gdn_gpu.matmul %a, transpose %p : !gdn_gpu.fragment<64x128xbf16, #wide>, !keys -> !gdn_gpu.fragment<64x64xf32, #wide>
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
#wide = #gdn_gpu.rows<warps = 4, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 1, vector = 1>
!keys = !gdn_gpu.shared<64x128xbf16, swizzled>
!square = !gdn_gpu.shared<64x64xf16, swizzled>
!left = !gdn_gpu.fragment<64x128xbf16, #rows>
!sums = !gdn_gpu.fragment<64x64xf32, #rows>
!matrix = !gdn_gpu.fragment<64x64xf16, #rows>
!view = memref<?x?x128xbf16, strided<[?, ?, 1]>>

func.func @matmul_c1_rank(%a: !left, %p: !gdn_gpu.shared<128xbf16>)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  // expected-error@+1 {{'gdn_gpu.matmul' op expects 'rhs' to have rank 2, but got '!gdn_gpu.shared<128xbf16>'}}
  %r = gdn_gpu.matmul %a, %p : !left, !gdn_gpu.shared<128xbf16> -> !sums
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
#wide = #gdn_gpu.rows<warps = 4, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 1, vector = 1>
!keys = !gdn_gpu.shared<64x128xbf16, swizzled>
!square = !gdn_gpu.shared<64x64xf16, swizzled>
!left = !gdn_gpu.fragment<64x128xbf16, #rows>
!sums = !gdn_gpu.fragment<64x64xf32, #rows>
!matrix = !gdn_gpu.fragment<64x64xf16, #rows>
!view = memref<?x?x128xbf16, strided<[?, ?, 1]>>

func.func @matmul_c1_inner(%a: !left, %p: !keys)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  // expected-error@+1 {{'gdn_gpu.matmul' op expects 'rhs' to have an inner size of 128, set by 'lhs', but got 64}}
  %r = gdn_gpu.matmul %a, %p : !left, !keys -> !sums
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
#wide = #gdn_gpu.rows<warps = 4, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 1, vector = 1>
!keys = !gdn_gpu.shared<64x128xbf16, swizzled>
!square = !gdn_gpu.shared<64x64xf16, swizzled>
!left = !gdn_gpu.fragment<64x128xbf16, #rows>
!sums = !gdn_gpu.fragment<64x64xf32, #rows>
!matrix = !gdn_gpu.fragment<64x64xf16, #rows>
!view = memref<?x?x128xbf16, strided<[?, ?, 1]>>

func.func @matmul_c1_result(%a: !left, %p: !keys)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  // expected-error@+1 {{'gdn_gpu.matmul' op expects 'acc' and the result to be '!gdn_gpu.fragment<64x64xf32, #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>>', but got '!gdn_gpu.fragment<64x64xf16, #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>>'}}
  %r = gdn_gpu.matmul %a, transpose %p : !left, !keys -> !matrix
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
#wide = #gdn_gpu.rows<warps = 4, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 1, vector = 1>
!keys = !gdn_gpu.shared<64x128xbf16, swizzled>
!square = !gdn_gpu.shared<64x64xf16, swizzled>
!left = !gdn_gpu.fragment<64x128xbf16, #rows>
!sums = !gdn_gpu.fragment<64x64xf32, #rows>
!matrix = !gdn_gpu.fragment<64x64xf16, #rows>
!view = memref<?x?x128xbf16, strided<[?, ?, 1]>>

func.func @matmul_c1_sizes(%a: !left, %p: !gdn_gpu.shared<24x128xbf16, swizzled>)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  // expected-error@+1 {{'gdn_gpu.matmul' op expects sizes in multiples of 64 rows, 16 inner and 16 columns, but got 64 x 128 x 24}}
  %r = gdn_gpu.matmul %a, transpose %p : !left, !gdn_gpu.shared<24x128xbf16, swizzled> -> !gdn_gpu.fragment<64x24xf32, #rows>
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
#wide = #gdn_gpu.rows<warps = 4, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 1, vector = 1>
!keys = !gdn_gpu.shared<64x128xbf16, swizzled>
!square = !gdn_gpu.shared<64x64xf16, swizzled>
!left = !gdn_gpu.fragment<64x128xbf16, #rows>
!sums = !gdn_gpu.fragment<64x64xf32, #rows>
!matrix = !gdn_gpu.fragment<64x64xf16, #rows>
!view = memref<?x?x128xbf16, strided<[?, ?, 1]>>

func.func @matmul_c2(%a: !left, %p: !gdn_gpu.shared<64x128xf16, swizzled>)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  // expected-error@+1 {{'gdn_gpu.matmul' op expects 'lhs' and 'rhs' to be both bf16 or both f16, but got 'bf16' and 'f16'}}
  %r = gdn_gpu.matmul %a, transpose %p : !left, !gdn_gpu.shared<64x128xf16, swizzled> -> !sums
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
#wide = #gdn_gpu.rows<warps = 4, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 1, vector = 1>
!keys = !gdn_gpu.shared<64x128xbf16, swizzled>
!square = !gdn_gpu.shared<64x64xf16, swizzled>
!left = !gdn_gpu.fragment<64x128xbf16, #rows>
!sums = !gdn_gpu.fragment<64x64xf32, #rows>
!matrix = !gdn_gpu.fragment<64x64xf16, #rows>
!view = memref<?x?x128xbf16, strided<[?, ?, 1]>>

func.func @matmul_c4(%a: !left, %p: !gdn_gpu.shared<64x128xbf16>)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  // expected-error@+1 {{'gdn_gpu.matmul' op expects 'rhs' to be swizzled, but got '!gdn_gpu.shared<64x128xbf16>'}}
  %r = gdn_gpu.matmul %a, transpose %p : !left, !gdn_gpu.shared<64x128xbf16> -> !sums
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
#wide = #gdn_gpu.rows<warps = 4, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 1, vector = 1>
!keys = !gdn_gpu.shared<64x128xbf16, swizzled>
!square = !gdn_gpu.shared<64x64xf16, swizzled>
!left = !gdn_gpu.fragment<64x128xbf16, #rows>
!sums = !gdn_gpu.fragment<64x64xf32, #rows>
!matrix = !gdn_gpu.fragment<64x64xf16, #rows>
!view = memref<?x?x128xbf16, strided<[?, ?, 1]>>

func.func @running_sum_c1(%a: !gdn_gpu.fragment<64xf32, #gdn_gpu.per_row<#rows>>)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  // expected-error@+1 {{'gdn_gpu.running_sum' op expects f32 'per_row' with one warp and one lane to a row, but got '!gdn_gpu.fragment<64xf32, #gdn_gpu.per_row<<warps = 4, lanes = 4, vector = 2>>>'}}
  %r = gdn_gpu.running_sum %a : !gdn_gpu.fragment<64xf32, #gdn_gpu.per_row<#rows>>
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
#wide = #gdn_gpu.rows<warps = 4, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 1, vector = 1>
!keys = !gdn_gpu.shared<64x128xbf16, swizzled>
!square = !gdn_gpu.shared<64x64xf16, swizzled>
!left = !gdn_gpu.fragment<64x128xbf16, #rows>
!sums = !gdn_gpu.fragment<64x64xf32, #rows>
!matrix = !gdn_gpu.fragment<64x64xf16, #rows>
!view = memref<?x?x128xbf16, strided<[?, ?, 1]>>

func.func @load_shared_c1_transpose(%p: !keys) attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  // expected-error@+1 {{'gdn_gpu.load_shared' op expects a fragment of the shape and element type of '!gdn_gpu.shared<128x64xbf16>', the transpose of 'buffer', but got '!gdn_gpu.fragment<64x128xbf16, #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>>'}}
  %r = gdn_gpu.load_shared transpose %p : !keys -> !left
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
#wide = #gdn_gpu.rows<warps = 4, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 1, vector = 1>
!keys = !gdn_gpu.shared<64x128xbf16, swizzled>
!square = !gdn_gpu.shared<64x64xf16, swizzled>
!left = !gdn_gpu.fragment<64x128xbf16, #rows>
!sums = !gdn_gpu.fragment<64x64xf32, #rows>
!matrix = !gdn_gpu.fragment<64x64xf16, #rows>
!view = memref<?x?x128xbf16, strided<[?, ?, 1]>>

func.func @load_shared_c1_rank(%p: !gdn_gpu.shared<64xbf16>)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  // expected-error@+1 {{'gdn_gpu.load_shared' op expects 'buffer' to have rank 2, of which it takes the transpose, but got '!gdn_gpu.shared<64xbf16>'}}
  %r = gdn_gpu.load_shared transpose %p : !gdn_gpu.shared<64xbf16> -> !left
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
#wide = #gdn_gpu.rows<warps = 4, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 1, vector = 1>
!keys = !gdn_gpu.shared<64x128xbf16, swizzled>
!square = !gdn_gpu.shared<64x64xf16, swizzled>
!left = !gdn_gpu.fragment<64x128xbf16, #rows>
!sums = !gdn_gpu.fragment<64x64xf32, #rows>
!matrix = !gdn_gpu.fragment<64x64xf16, #rows>
!view = memref<?x?x128xbf16, strided<[?, ?, 1]>>

func.func @load_shared_c4(%p: !keys) attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  // expected-error@+1 {{'gdn_gpu.load_shared' op expects all of a tile of 16-bit elements in a layout of matrix instructions, or pieces of up to 16 bytes, since 'buffer' is transposed, but got '!gdn_gpu.fragment<128x64xbf16, #gdn_gpu.rows<warps = 4, lanes = 8, vector = 4>>'}}
  %r = gdn_gpu.load_shared transpose %p : !keys -> !gdn_gpu.fragment<128x64xbf16, #wide>
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
#wide = #gdn_gpu.rows<warps = 4, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 1, vector = 1>
!keys = !gdn_gpu.shared<64x128xbf16, swizzled>
!square = !gdn_gpu.shared<64x64xf16, swizzled>
!left = !gdn_gpu.fragment<64x128xbf16, #rows>
!sums = !gdn_gpu.fragment<64x64xf32, #rows>
!matrix = !gdn_gpu.fragment<64x64xf16, #rows>
!view = memref<?x?x128xbf16, strided<[?, ?, 1]>>

func.func @store_shared_c4(%t: !gdn_gpu.fragment<128xbf16, #gdn_gpu.per_row<#rows>>, %p: !keys, %i: index)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  // expected-error@+1 {{'gdn_gpu.store_shared' op expects all of a tile of 16-bit elements in a layout of matrix instructions, or pieces of up to 16 bytes, since 'buffer' is swizzled, but got '!gdn_gpu.fragment<128xbf16, #gdn_gpu.per_row<<warps = 4, lanes = 4, vector = 2>>>'}}
  gdn_gpu.store_shared %t, %p row(%i) : !gdn_gpu.fragment<128xbf16, #gdn_gpu.per_row<#rows>>, !keys
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!sums = !gdn_gpu.fragment<64x64xf32, #rows>
!columns = !gdn_gpu.fragment<64xf32, #gdn_gpu.per_column<#rows>>
!scratch = !gdn_gpu.shared<4x64xf32>

func.func @column_sum_c1_rows(%t: !gdn_gpu.fragment<48x64xf32, #rows>, %s: !scratch)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  // expected-error@+1 {{'gdn_gpu.column_sum' op expects 'tile' to have rank 2, elements of f32, a multiple of 32 rows and a multiple of 8 columns, but got '!gdn_gpu.fragment<48x64xf32, #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>>'}}
  %r = gdn_gpu.column_sum %t, %s : !gdn_gpu.fragment<48x64xf32, #rows>, !scratch -> !columns
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!sums = !gdn_gpu.fragment<64x64xf32, #rows>
!columns = !gdn_gpu.fragment<64xf32, #gdn_gpu.per_column<#rows>>
!scratch = !gdn_gpu.shared<4x64xf32>

func.func @column_sum_c1_result(%t: !sums, %s: !scratch)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  // expected-error@+1 {{'gdn_gpu.column_sum' op expects the result to be '!gdn_gpu.fragment<64xf32, #gdn_gpu.per_column<<warps = 4, lanes = 4, vector = 2>>>', but got '!gdn_gpu.fragment<32xf32, #gdn_gpu.per_column<<warps = 4, lanes = 4, vector = 2>>>'}}
  %r = gdn_gpu.column_sum %t, %s : !sums, !scratch -> !gdn_gpu.fragment<32xf32, #gdn_gpu.per_column<#rows>>
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!sums = !gdn_gpu.fragment<64x64xf32, #rows>
!columns = !gdn_gpu.fragment<64xf32, #gdn_gpu.per_column<#rows>>
!scratch = !gdn_gpu.shared<4x64xf32>

func.func @column_sum_c2(%t: !sums, %s: !gdn_gpu.shared<64xf32>)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  // expected-error@+1 {{'gdn_gpu.column_sum' op expects 'scratch' to be '!gdn_gpu.shared<4x64xf32>', but got '!gdn_gpu.shared<64xf32>'}}
  %r = gdn_gpu.column_sum %t, %s : !sums, !gdn_gpu.shared<64xf32> -> !columns
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!sums = !gdn_gpu.fragment<64x64xf32, #rows>
!columns = !gdn_gpu.fragment<64xf32, #gdn_gpu.per_column<#rows>>
!scratch = !gdn_gpu.shared<4x64xf32>

func.func @column_sum_c3(%t: !sums, %s: !scratch)
    attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  gdn_gpu.warps 0 for 4 {
    // expected-error@+1 {{'gdn_gpu.column_sum' op expects to be outside}}
    %r = gdn_gpu.column_sum %t, %s : !sums, !scratch -> !columns
  }
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
#two = #gdn_gpu.rows<warps = 2, lanes = 4, vector = 2>
!tile = !gdn_gpu.fragment<64x64xf16, #rows>
!sums = !gdn_gpu.fragment<64x64xf32, #rows>
!async_token = !gdn_gpu.async_token<64x64xf32, #rows>
!buffer = !gdn_gpu.shared<64x64xf16, swizzled>

func.func @matmul_c6_warps(%t: !gdn_gpu.fragment<32x64xf16, #two>, %p: !buffer)
    attributes {gdn_gpu.kernel = {threads = 64 : i64, warpgroups}} {
  // expected-error@+1 {{'gdn_gpu.matmul' op expects a product of warpgroups with warps in multiples of 4, rows of 'rhs' of a multiple of 128 bytes and at most 256 columns, but got 2 warps, '!gdn_gpu.shared<64x64xf16, swizzled>' and 64 columns}}
  %s = gdn_gpu.matmul warpgroup %t, %p : !gdn_gpu.fragment<32x64xf16, #two>, !buffer -> !gdn_gpu.fragment<32x64xf32, #two>
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
#two = #gdn_gpu.rows<warps = 2, lanes = 4, vector = 2>
!tile = !gdn_gpu.fragment<64x64xf16, #rows>
!sums = !gdn_gpu.fragment<64x64xf32, #rows>
!async_token = !gdn_gpu.async_token<64x64xf32, #rows>
!buffer = !gdn_gpu.shared<64x64xf16, swizzled>

func.func @matmul_c6_function(%t: !tile, %p: !buffer)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  // expected-error@+1 {{'gdn_gpu.matmul' op expects a product of warpgroups in a function with 'warpgroups' of 'gdn_gpu.kernel', but 'matmul_c6_function' has none}}
  %s = gdn_gpu.matmul warpgroup %t, %p : !tile, !buffer -> !sums
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
#two = #gdn_gpu.rows<warps = 2, lanes = 4, vector = 2>
!tile = !gdn_gpu.fragment<64x64xf16, #rows>
!sums = !gdn_gpu.fragment<64x64xf32, #rows>
!async_token = !gdn_gpu.async_token<64x64xf32, #rows>
!buffer = !gdn_gpu.shared<64x64xf16, swizzled>

func.func @start_matmul_c1(%t: !tile, %p: !gdn_gpu.shared<64x32xf16, swizzled>)
    attributes {gdn_gpu.kernel = {threads = 128 : i64, warpgroups}} {
  // expected-error@+1 {{'gdn_gpu.start_matmul' op expects a product of warpgroups with warps in multiples of 4, rows of 'rhs' of a multiple of 128 bytes and at most 256 columns, but got 4 warps, '!gdn_gpu.shared<64x32xf16, swizzled>' and 32 columns}}
  %s = gdn_gpu.start_matmul %t, %p : !tile, !gdn_gpu.shared<64x32xf16, swizzled> -> !gdn_gpu.async_token<64x32xf32, #rows>
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
#two = #gdn_gpu.rows<warps = 2, lanes = 4, vector = 2>
!tile = !gdn_gpu.fragment<64x64xf16, #rows>
!sums = !gdn_gpu.fragment<64x64xf32, #rows>
!async_token = !gdn_gpu.async_token<64x64xf32, #rows>
!buffer = !gdn_gpu.shared<64x64xf16, swizzled>

func.func @start_matmul_c2_unused(%t: !tile, %p: !buffer)
    attributes {gdn_gpu.kernel = {threads = 128 : i64, warpgroups}} {
  // expected-error@+1 {{'gdn_gpu.start_matmul' op expects one gdn_gpu.await_matmul of its result, in the same block}}
  %s = gdn_gpu.start_matmul %t, %p : !tile, !buffer -> !async_token
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
#two = #gdn_gpu.rows<warps = 2, lanes = 4, vector = 2>
!tile = !gdn_gpu.fragment<64x64xf16, #rows>
!sums = !gdn_gpu.fragment<64x64xf32, #rows>
!async_token = !gdn_gpu.async_token<64x64xf32, #rows>
!buffer = !gdn_gpu.shared<64x64xf16, swizzled>

func.func @start_matmul_c2_region(%t: !tile, %p: !buffer, %c: i1)
    attributes {gdn_gpu.kernel = {threads = 128 : i64, warpgroups}} {
  // expected-error@+1 {{'gdn_gpu.start_matmul' op expects its gdn_gpu.await_matmul before scf.if}}
  %s = gdn_gpu.start_matmul %t, %p : !tile, !buffer -> !async_token
  scf.if %c {
    gdn_gpu.barrier
  }
  %a = gdn_gpu.await_matmul %s : !async_token
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
#two = #gdn_gpu.rows<warps = 2, lanes = 4, vector = 2>
!tile = !gdn_gpu.fragment<64x64xf16, #rows>
!sums = !gdn_gpu.fragment<64x64xf32, #rows>
!async_token = !gdn_gpu.async_token<64x64xf32, #rows>
!buffer = !gdn_gpu.shared<64x64xf16, swizzled>

func.func @await_matmul_c1(%s: !async_token) {
  // expected-error@+1 {{failed to verify that result is the fragment under way}}
  %a = "gdn_gpu.await_matmul"(%s) : (!async_token) -> !gdn_gpu.fragment<64x32xf32, #rows>
  return
}

// -----

#pieces = #gdn_gpu.rows<warps = 2, lanes = 8, vector = 8>

func.func @load_shared_c3(%p: !gdn_gpu.shared<64x64xbf16, swizzled>)
    attributes {gdn_gpu.kernel = {threads = 64 : i64}} {
  %c4 = arith.constant 4 : index
  // expected-error@+1 {{'gdn_gpu.load_shared' op expects a 'row' that is a multiple of 8, since 'buffer' is swizzled, but got 4}}
  %f = gdn_gpu.load_shared %p row(%c4) : !gdn_gpu.shared<64x64xbf16, swizzled>
      -> !gdn_gpu.fragment<8x64xbf16, #pieces>
  return
}
