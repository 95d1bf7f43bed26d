// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_gpu.block_id, load, store and prefetch: every message of their verifiers.
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

func.func @block_id_c1_no_grid() attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  // expected-error@+1 {{'gdn_gpu.block_id' op expects a function with 'grid' of 'gdn_tile.stage' around it}}
  %n = gdn_gpu.block_id 0
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

func.func @block_id_c1_axis()
    attributes {gdn_gpu.kernel = {threads = 256 : i64}, gdn_tile.stage = {grid = ["N"]}} {
  // expected-error@+1 {{'gdn_gpu.block_id' op expects an axis below 1, the size of 'grid' of 'gdn_tile.stage', but got 1}}
  %n = gdn_gpu.block_id 1
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

func.func @load_c1_indices(%x: memref<?x?xf32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  // expected-error@+1 {{'gdn_gpu.load' op expects one index per dimension of 'view', which is 2, but got 1}}
  %t = gdn_gpu.load %x[%i] dims [0, 1] : memref<?x?xf32>, !state
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

func.func @load_c1_dims(%x: memref<?x?xf32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  // expected-error@+1 {{'gdn_gpu.load' op expects one entry of 'dims' per dimension of the tile, which is 2, but got 1}}
  %t = gdn_gpu.load %x[%i, %i] dims [0] : memref<?x?xf32>, !state
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

func.func @load_c1_dim_past_the_view(%x: memref<?x?xf32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  // expected-error@+1 {{'gdn_gpu.load' op expects 'dims' to name distinct dimensions of 'view' below 2, but got 2}}
  %t = gdn_gpu.load %x[%i, %i] dims [0, 2] : memref<?x?xf32>, !state
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

func.func @load_c1_dim_twice(%x: memref<?x?xf32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  // expected-error@+1 {{'gdn_gpu.load' op expects 'dims' to name distinct dimensions of 'view' below 2, but got 1}}
  %t = gdn_gpu.load %x[%i, %i] dims [1, 1] : memref<?x?xf32>, !state
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

func.func @load_c2(%x: memref<?x?xbf16>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  // expected-error@+1 {{'gdn_gpu.load' op expects the tile to have the view's element type 'bf16', but got 'f32'}}
  %t = gdn_gpu.load %x[%i, %i] dims [0, 1] : memref<?x?xbf16>, !state
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

func.func @load_c5(%x: memref<?x?xf32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  // expected-error@+1 {{'gdn_gpu.load' op expects 'rows' where it has 'whole'}}
  %t = gdn_gpu.load %x[%i, %i] dims [0, 1] whole : memref<?x?xf32>, !state
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

func.func @store_c1_indices(%x: memref<?x?xf32>, %i: index, %t: !state)
    attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  // expected-error@+1 {{'gdn_gpu.store' op expects one index per dimension of 'view', which is 2, but got 1}}
  gdn_gpu.store %t, %x[%i] dims [0, 1] : !state, memref<?x?xf32>
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

func.func @store_c2(%x: memref<?x?xf16>, %i: index, %t: !state)
    attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  // expected-error@+1 {{'gdn_gpu.store' op expects the tile to have the view's element type 'f16', but got 'f32'}}
  gdn_gpu.store %t, %x[%i, %i] dims [0, 1] : !state, memref<?x?xf16>
  return
}

// -----

func.func @prefetch_c1_indices(%weights: memref<?x4xbf16>, %c: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  // expected-error@+1 {{'gdn_gpu.prefetch' op expects one index per dimension of 'view', which is 2, but got 1}}
  gdn_gpu.prefetch %weights[%c] dims [1, 0] : memref<?x4xbf16>, !gdn_gpu.fragment<4x128xbf16, #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>>
  return
}

// -----

func.func @prefetch_c2_type(%weights: memref<?x4xbf16>, %c: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  // expected-error@+1 {{'gdn_gpu.prefetch' op expects the tile to have the view's element type 'bf16', but got 'f32'}}
  gdn_gpu.prefetch %weights[%c, %c] dims [1, 0] : memref<?x4xbf16>, !gdn_gpu.fragment<4x128xf32, #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>>
  return
}
