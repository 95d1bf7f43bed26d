// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies by the columns of each warp, and products whose left side is shared: every
// message of their verifiers.
//
// RUN: gdn-gpu-opt %s -split-input-file -verify-diagnostics

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!view = memref<?x128xbf16, strided<[?, 1]>>

func.func @begin_copy_c7(%v: !view, %p: !gdn_gpu.shared<64x128xbf16>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  // expected-error@+1 {{'gdn_gpu.begin_copy' op expects a swizzled tile with as many pieces of 16 bytes in its rows for each of 4 warps, but got '!gdn_gpu.shared<64x128xbf16>'}}
  gdn_gpu.begin_copy per_warpgroup %v[%i, %i] dims [0, 1], %p : !view, !gdn_gpu.shared<64x128xbf16>
  return
}

// -----

!view = memref<?x128xbf16, strided<[?, 1]>>
!keys = !gdn_gpu.shared<64x128xbf16, swizzled>

func.func @copy_out_c1(%v: !view, %p: !keys, %i: index)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  // expected-error@+1 {{'gdn_gpu.copy_out' op expects one index per dimension of 'view', which is 2, but got 1}}
  gdn_gpu.copy_out %p, %v[%i] dims [0, 1] : !keys, !view
  return
}

// -----

!view = memref<?x128xf16, strided<[?, 1]>>
!keys = !gdn_gpu.shared<64x128xbf16, swizzled>

func.func @copy_out_c2_element(%v: !view, %p: !keys, %i: index)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  // expected-error@+1 {{'gdn_gpu.copy_out' op expects 'buffer' to have the view's element type 'f16', but got 'bf16'}}
  gdn_gpu.copy_out %p, %v[%i, %i] dims [0, 1] : !keys, !view
  return
}

// -----

!view = memref<?x128xbf16, strided<[?, 1]>>
!keys = !gdn_gpu.shared<64x128xbf16, swizzled>

func.func @copy_out_c4(%v: !view, %p: !keys, %i: index)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  gdn_gpu.warps 0 for 1 {
    // expected-error@+1 {{'gdn_gpu.copy_out' op expects to be outside gdn_gpu.warps, which only some warps enter}}
    gdn_gpu.copy_out %p, %v[%i, %i] dims [0, 1] : !keys, !view
  }
  return
}

// -----

// One group has all columns.
!view = memref<?x128xbf16, strided<[?, 1]>>
!keys = !gdn_gpu.shared<64x128xbf16, swizzled>

func.func @copy_out_c5_columns(%v: !view, %p: !keys, %i: index)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  // expected-error@+1 {{'gdn_gpu.copy_out' op expects a swizzled tile of up to 256 rows and 64 columns for each group, of 16 bits, of an argument of the function of up to 4 dimensions whose last is a multiple of 64 up to 256, for 'tensor_map', but got '!gdn_gpu.shared<64x128xbf16, swizzled>' and 'memref<?x128xbf16, strided<[?, 1]>>'}}
  gdn_gpu.copy_out tensor_map %p, %v[%i, %i] dims [0, 1] : !keys, !view
  return
}

// -----

!view = memref<?x?x128xbf16, strided<[?, ?, 1]>>
!half = !gdn_gpu.shared<64x64xbf16, swizzled>

func.func @copy_out_c5_argument(%v: !view, %p: !half, %i: index)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  %c0 = arith.constant 0 : index
  %part = memref.subview %v[%i, 0, 0] [64, 1, 128] [1, 1, 1] : !view to memref<64x1x128xbf16, strided<[?, ?, 1], offset: ?>>
  // expected-error@+1 {{'gdn_gpu.copy_out' op expects a swizzled tile of up to 256 rows and 64 columns for each group, of 16 bits, of an argument of the function of up to 4 dimensions whose last is a multiple of 64 up to 256, for 'tensor_map', but got '!gdn_gpu.shared<64x64xbf16, swizzled>' and 'memref<64x1x128xbf16, strided<[?, ?, 1], offset: ?>>'}}
  gdn_gpu.copy_out tensor_map %p, %part[%c0, %c0, %c0] dims [0, 2] : !half, memref<64x1x128xbf16, strided<[?, ?, 1], offset: ?>>
  return
}

// -----

!view = memref<?x96xbf16, strided<[?, 1]>>
!half = !gdn_gpu.shared<64x64xbf16, swizzled>

func.func @copy_out_c5_view(%v: !view, %p: !half, %i: index)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  // expected-error@+1 {{'gdn_gpu.copy_out' op expects a swizzled tile of up to 256 rows and 64 columns for each group, of 16 bits, of an argument of the function of up to 4 dimensions whose last is a multiple of 64 up to 256, for 'tensor_map', but got '!gdn_gpu.shared<64x64xbf16, swizzled>' and 'memref<?x96xbf16, strided<[?, 1]>>'}}
  gdn_gpu.copy_out tensor_map %p, %v[%i, %i] dims [0, 1] : !half, !view
  return
}

// -----

!view = memref<?x128xbf16, strided<[?, 1]>>
!half = !gdn_gpu.shared<64x64xbf16, swizzled>

func.func @copy_out_c5_dims(%v: !view, %p: !half, %i: index)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  // expected-error@+1 {{'gdn_gpu.copy_out' op expects a swizzled tile of up to 256 rows and 64 columns for each group, of 16 bits, of an argument of the function of up to 4 dimensions whose last is a multiple of 64 up to 256, for 'tensor_map', but got }}
  gdn_gpu.copy_out tensor_map %p, %v[%i, %i] dims [1, 0] : !half, !view
  return
}

// -----

// More columns than the view has.
!view = memref<?x64xbf16, strided<[?, 1]>>
!keys = !gdn_gpu.shared<64x128xbf16, swizzled>

func.func @copy_out_c5_wide(%v: !view, %p: !keys, %i: index)
    attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  // expected-error@+1 {{'gdn_gpu.copy_out' op expects a swizzled tile of up to 256 rows and 64 columns for each group, of 16 bits, of an argument of the function of up to 4 dimensions whose last is a multiple of 64 up to 256, for 'tensor_map', but got '!gdn_gpu.shared<64x128xbf16, swizzled>' and 'memref<?x64xbf16, strided<[?, 1]>>'}}
  gdn_gpu.copy_out tensor_map %p, %v[%i, %i] dims [0, 1] : !keys, !view
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!tile = !gdn_gpu.fragment<64x64xf16, #rows>
!buffer = !gdn_gpu.shared<64x64xf16, swizzled>
!async_token = !gdn_gpu.async_token<64x64xf32, #rows>

func.func @start_matmul_c4_transposed(%t: !tile, %p: !buffer)
    attributes {gdn_gpu.kernel = {threads = 128 : i64, warpgroups}} {
  // expected-error@+1 {{'gdn_gpu.start_matmul' op expects a shared 'lhs' where it is 'transposed'}}
  %s = gdn_gpu.start_matmul transposed %t, %p : !tile, !buffer -> !async_token
  %a = gdn_gpu.await_matmul %s : !async_token
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 8, lanes = 4, vector = 2>
!left = !gdn_gpu.shared<128x64xf16, swizzled>
!buffer = !gdn_gpu.shared<64x64xf16, swizzled>
!async_token = !gdn_gpu.async_token<128x64xf32, #rows>

func.func @start_matmul_c4_rows(%t: !left, %p: !buffer)
    attributes {gdn_gpu.kernel = {threads = 256 : i64, warpgroups}} {
  // expected-error@+1 {{'gdn_gpu.start_matmul' op expects a shared 'lhs' of 64 rows for four warps, swizzled, with rows of a multiple of 128 bytes, but got '!gdn_gpu.shared<128x64xf16, swizzled>' for '!gdn_gpu.fragment<128x64xf32, #gdn_gpu.rows<warps = 8, lanes = 4, vector = 2>>'}}
  %s = gdn_gpu.start_matmul %t, %p : !left, !buffer -> !async_token
  %a = gdn_gpu.await_matmul %s : !async_token
  return
}

// -----

func.func @copy_out_c7_without_rows(%v: memref<?x128xbf16, strided<[?, 1]>>,
    %p: !gdn_gpu.shared<64x128xbf16, swizzled>, %n: index)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  scf.for %t = %c0 to %n step %c64 {
    // expected-error@+1 {{'gdn_gpu.copy_out' op expects 'rows' where it is full until the last turn of a loop}}
    gdn_gpu.copy_out %p, %v[%n, %n] dims [0, 1] full_until_last : !gdn_gpu.shared<64x128xbf16, swizzled>, memref<?x128xbf16, strided<[?, 1]>>
  }
  return
}

// -----

func.func @copy_out_c7_outside_of_a_loop(%v: memref<?x128xbf16, strided<[?, 1]>>,
    %p: !gdn_gpu.shared<64x128xbf16, swizzled>, %n: index)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  // expected-error@+1 {{'gdn_gpu.copy_out' op expects to stand in the body of an scf.for where it is full until the last turn}}
  gdn_gpu.copy_out %p, %v[%n, %n] dims [0, 1] rows(%n) full_until_last : !gdn_gpu.shared<64x128xbf16, swizzled>, memref<?x128xbf16, strided<[?, 1]>>
  return
}

// -----

func.func @copy_out_c7_in_a_branch(%v: memref<?x128xbf16, strided<[?, 1]>>,
    %p: !gdn_gpu.shared<64x128xbf16, swizzled>, %n: index, %is: i1)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  scf.for %t = %c0 to %n step %c64 {
    scf.if %is {
      // expected-error@+1 {{'gdn_gpu.copy_out' op expects to stand in the body of an scf.for where it is full until the last turn}}
      gdn_gpu.copy_out %p, %v[%n, %n] dims [0, 1] rows(%n) full_until_last : !gdn_gpu.shared<64x128xbf16, swizzled>, memref<?x128xbf16, strided<[?, 1]>>
    }
  }
  return
}

// -----

func.func @copy_out_c7_step_of_fewer_rows(%v: memref<?x128xbf16, strided<[?, 1]>>,
    %p: !gdn_gpu.shared<64x128xbf16, swizzled>, %n: index)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  scf.for %t = %c0 to %n step %c32 {
    // expected-error@+1 {{'gdn_gpu.copy_out' op expects the loop around to have the step 64, the rows of the tile, but got 32}}
    gdn_gpu.copy_out %p, %v[%n, %n] dims [0, 1] rows(%n) full_until_last : !gdn_gpu.shared<64x128xbf16, swizzled>, memref<?x128xbf16, strided<[?, 1]>>
  }
  return
}

// -----

func.func @copy_out_c7_step_of_no_constant(%v: memref<?x128xbf16, strided<[?, 1]>>,
    %p: !gdn_gpu.shared<64x128xbf16, swizzled>, %n: index)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  %c0 = arith.constant 0 : index
  scf.for %t = %c0 to %n step %n {
    // expected-error@+1 {{'gdn_gpu.copy_out' op expects the loop around to have the step 64, the rows of the tile, but got one that is no constant}}
    gdn_gpu.copy_out %p, %v[%n, %n] dims [0, 1] rows(%n) full_until_last : !gdn_gpu.shared<64x128xbf16, swizzled>, memref<?x128xbf16, strided<[?, 1]>>
  }
  return
}
