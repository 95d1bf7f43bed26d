// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_gpu.fill, extract, and the ops of order: every message of their verifiers.
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

func.func @fill_c1(%x: bf16) attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  // expected-error@+1 {{'gdn_gpu.fill' op expects 'value' to have the tile's element type 'f32', but got 'bf16'}}
  %t = gdn_gpu.fill %x : bf16 -> !state
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

func.func @extract_c1_rank(%t: !gdn_gpu.fragment<4x8xf32, #one>)
    attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  // expected-error@+1 {{'gdn_gpu.extract' op expects a tile of rank 1 over one warp, but got '!gdn_gpu.fragment<4x8xf32, #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>>'}}
  %x = gdn_gpu.extract %t[0] : !gdn_gpu.fragment<4x8xf32, #one> -> f32
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

func.func @extract_c1_warps(%t: !row) attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  // expected-error@+1 {{'gdn_gpu.extract' op expects a tile of rank 1 over one warp, but got '!gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<<warps = 8, lanes = 8, vector = 4>>>'}}
  %x = gdn_gpu.extract %t[0] : !row -> f32
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

func.func @extract_c1_index(%t: !one) attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  // expected-error@+1 {{'gdn_gpu.extract' op expects an index below 128, the size of 'tile', but got 128}}
  %x = gdn_gpu.extract %t[128] : !one -> f32
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

func.func @extract_c2(%t: !one) attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  // expected-error@+1 {{'gdn_gpu.extract' op expects 'value' to have the tile's element type 'f32', but got 'f16'}}
  %x = gdn_gpu.extract %t[0] : !one -> f16
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

func.func @barrier_c1() attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  gdn_gpu.warps 0 for 1 {
    // expected-error@+1 {{'gdn_gpu.barrier' op expects to be outside gdn_gpu.warps, which only some warps enter}}
    gdn_gpu.barrier
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

func.func @await_c1() attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  gdn_gpu.warps 0 for 1 {
    // expected-error@+1 {{'gdn_gpu.await_launch' op expects to be outside gdn_gpu.warps, which only some warps enter}}
    gdn_gpu.await_launch
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

func.func @release_c1() attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  gdn_gpu.warps 0 for 1 {
    // expected-error@+1 {{'gdn_gpu.release_launch' op expects to be outside gdn_gpu.warps, which only some warps enter}}
    gdn_gpu.release_launch
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

func.func @last_reader_c1_outside(%i: index) attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  // expected-error@+1 {{'gdn_gpu.last_reader' op expects to be inside a gdn_gpu.warps of one warp}}
  %l = gdn_gpu.last_reader %i of %i
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

func.func @last_reader_c1_two_warps(%i: index) attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  gdn_gpu.warps 0 for 2 {
    // expected-error@+1 {{'gdn_gpu.last_reader' op expects to be inside a gdn_gpu.warps of one warp}}
    %l = gdn_gpu.last_reader %i of %i
  }
  return
}

// -----

func.func @take_ticket_c1(%i: index) attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  gdn_gpu.warps 0 for 2 {
    // expected-error@+1 {{'gdn_gpu.take_ticket' op expects to be inside a gdn_gpu.warps of one warp}}
    %t = gdn_gpu.take_ticket %i of %i
  }
  return
}

// -----

func.func @warp_barrier_c1() attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  gdn_gpu.warps 0 for 2 {
    // expected-error@+1 {{'gdn_gpu.warp_barrier' op expects to be inside a gdn_gpu.warps of one warp}}
    gdn_gpu.warp_barrier
  }
  return
}

// -----

func.func @is_last_c1(%i: index, %t: i32) attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  // expected-error@+1 {{'gdn_gpu.is_last' op expects to be inside a gdn_gpu.warps of one warp}}
  %l = gdn_gpu.is_last %t of %i
  return
}
