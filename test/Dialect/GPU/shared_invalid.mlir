// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shared tiles: every message of the verifiers of their ops.
//
// RUN: gdn-gpu-opt %s -split-input-file -verify-diagnostics

#rows = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!state = !gdn_gpu.fragment<128x128xf32, #rows>
!row = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#rows>>
!column = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#rows>>
!one = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#one>>
!buffer = !gdn_gpu.shared<128xf32>
!view = memref<?x?x128x128xf32, strided<[?, ?, ?, 1]>>

func.func @alloc_c1(%c: i1) attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  scf.if %c {
    // expected-error@+1 {{'gdn_gpu.alloc' op expects to be directly in the function, but is in 'scf.if'}}
    %p = gdn_gpu.alloc : !buffer
  }
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!state = !gdn_gpu.fragment<128x128xf32, #rows>
!row = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#rows>>
!column = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#rows>>
!one = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#one>>
!buffer = !gdn_gpu.shared<128xf32>
!view = memref<?x?x128x128xf32, strided<[?, ?, ?, 1]>>

func.func @store_shared_c1_shape(%t: !row, %p: !gdn_gpu.shared<64xf32>)
    attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  // expected-error@+1 {{'gdn_gpu.store_shared' op expects a fragment of the shape and element type of '!gdn_gpu.shared<64xf32>', the type of 'buffer', but got '!gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<<warps = 8, lanes = 8, vector = 4>>>'}}
  gdn_gpu.store_shared %t, %p : !row, !gdn_gpu.shared<64xf32>
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!state = !gdn_gpu.fragment<128x128xf32, #rows>
!row = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#rows>>
!column = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#rows>>
!one = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#one>>
!buffer = !gdn_gpu.shared<128xf32>
!view = memref<?x?x128x128xf32, strided<[?, ?, ?, 1]>>

func.func @store_shared_c1_row_of_rank_1(%t: !row, %p: !buffer, %i: index)
    attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  // expected-error@+1 {{'gdn_gpu.store_shared' op expects 'buffer' to have rank 2, of which 'row' is a row, but got '!gdn_gpu.shared<128xf32>'}}
  gdn_gpu.store_shared %t, %p row(%i) : !row, !buffer
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!state = !gdn_gpu.fragment<128x128xf32, #rows>
!row = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#rows>>
!column = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#rows>>
!one = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#one>>
!buffer = !gdn_gpu.shared<128xf32>
!view = memref<?x?x128x128xf32, strided<[?, ?, ?, 1]>>

func.func @load_shared_c1_element(%p: !gdn_gpu.shared<128xbf16>)
    attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  // expected-error@+1 {{'gdn_gpu.load_shared' op expects a fragment of the shape and element type of '!gdn_gpu.shared<128xbf16>', the type of 'buffer', but got '!gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<<warps = 8, lanes = 8, vector = 4>>>'}}
  %t = gdn_gpu.load_shared %p : !gdn_gpu.shared<128xbf16> -> !row
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!state = !gdn_gpu.fragment<128x128xf32, #rows>
!row = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#rows>>
!column = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#rows>>
!one = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#one>>
!buffer = !gdn_gpu.shared<128xf32>
!view = memref<?x?x128x128xf32, strided<[?, ?, ?, 1]>>

func.func @load_shared_c1_row(%p: !gdn_gpu.shared<4x64xf32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  // expected-error@+1 {{'gdn_gpu.load_shared' op expects a fragment of the shape and element type of '!gdn_gpu.shared<64xf32>', a row of 'buffer', but got '!gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<<warps = 8, lanes = 8, vector = 4>>>'}}
  %t = gdn_gpu.load_shared %p row(%i) : !gdn_gpu.shared<4x64xf32> -> !row
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!state = !gdn_gpu.fragment<128x128xf32, #rows>
!row = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#rows>>
!column = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#rows>>
!one = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#one>>
!buffer = !gdn_gpu.shared<128xf32>
!view = memref<?x?x128x128xf32, strided<[?, ?, ?, 1]>>

func.func @load_shared_element_c1_rank(%p: !gdn_gpu.shared<4x64xf32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  // expected-error@+1 {{'gdn_gpu.load_shared_element' op expects 'buffer' to have rank 1, but got '!gdn_gpu.shared<4x64xf32>'}}
  %t = gdn_gpu.load_shared_element %p[%i] : !gdn_gpu.shared<4x64xf32> -> f32
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!state = !gdn_gpu.fragment<128x128xf32, #rows>
!row = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#rows>>
!column = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#rows>>
!one = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#one>>
!buffer = !gdn_gpu.shared<128xf32>
!view = memref<?x?x128x128xf32, strided<[?, ?, ?, 1]>>

func.func @load_shared_element_c1_type(%p: !buffer, %i: index)
    attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  // expected-error@+1 {{'gdn_gpu.load_shared_element' op expects 'value' to have the element type of 'buffer' 'f32', but got 'bf16'}}
  %t = gdn_gpu.load_shared_element %p[%i] : !buffer -> bf16
  return
}

// -----

func.func @reshape_c1_elements(%p: !gdn_gpu.shared<1x256xf32>)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  // expected-error@+1 {{'gdn_gpu.reshape' op expects 'result' to have no more elements than 'buffer', 256 of 32 bits, but got '!gdn_gpu.shared<2x256xf32>'}}
  %r = gdn_gpu.reshape %p : !gdn_gpu.shared<1x256xf32> to !gdn_gpu.shared<2x256xf32>
  return
}

// -----

func.func @reshape_c1_type(%p: !gdn_gpu.shared<1x256xf32>)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  // expected-error@+1 {{'gdn_gpu.reshape' op expects 'result' to have no more elements than 'buffer', 256 of 32 bits, but got '!gdn_gpu.shared<2x128xbf16>'}}
  %r = gdn_gpu.reshape %p : !gdn_gpu.shared<1x256xf32> to !gdn_gpu.shared<2x128xbf16>
  return
}
