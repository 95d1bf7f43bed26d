// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_gpu.share_key_columns, token_unit and fold_planes: every message of their
// verifiers, and the barriers that they need.
//
// RUN: gdn-gpu-opt %s -split-input-file -verify-diagnostics -gdn-gpu-check

func.func @share_key_columns_c1_from() attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %from = gdn_gpu.alloc : !gdn_gpu.shared<16x64xf16>
  %to = gdn_gpu.alloc : !gdn_gpu.shared<4x264xf16>
  // expected-error@+1 {{'gdn_gpu.share_key_columns' op expects 'from' to be a multiple of 4 rows of a multiple of 128 f16, but got '!gdn_gpu.shared<16x64xf16>'}}
  gdn_gpu.share_key_columns %from, %to : !gdn_gpu.shared<16x64xf16>, !gdn_gpu.shared<4x264xf16>
  return
}

// -----

func.func @share_key_columns_c1_to() attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %from = gdn_gpu.alloc : !gdn_gpu.shared<16x128xf16>
  %to = gdn_gpu.alloc : !gdn_gpu.shared<4x264xf16>
  // expected-error@+1 {{'gdn_gpu.share_key_columns' op expects 'to' to be 8 x 264 of f16, but got '!gdn_gpu.shared<4x264xf16>'}}
  gdn_gpu.share_key_columns %from, %to : !gdn_gpu.shared<16x128xf16>, !gdn_gpu.shared<4x264xf16>
  return
}

// -----

func.func @share_key_columns_c2() attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %from = gdn_gpu.alloc : !gdn_gpu.shared<16x128xf16>
  %to = gdn_gpu.alloc : !gdn_gpu.shared<8x264xf16>
  // expected-error@+1 {{'gdn_gpu.share_key_columns' op expects a tile that has been shared on every way to it}}
  gdn_gpu.share_key_columns %from, %to : !gdn_gpu.shared<16x128xf16>, !gdn_gpu.shared<8x264xf16>
  return
}

// -----

func.func @token_unit_c1() attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %weights = gdn_gpu.alloc : !gdn_gpu.shared<18xf32>
  // expected-error@+1 {{'gdn_gpu.token_unit' op expects 'weights' to be a multiple of 4 of f32, but got '!gdn_gpu.shared<18xf32>'}}
  %unit = gdn_gpu.token_unit %weights : !gdn_gpu.shared<18xf32>
  return
}

// -----

func.func @token_unit_c2() attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %weights = gdn_gpu.alloc : !gdn_gpu.shared<16xf32>
  // expected-error@+1 {{'gdn_gpu.token_unit' op expects a tile that has been shared on every way to it}}
  %unit = gdn_gpu.token_unit %weights : !gdn_gpu.shared<16xf32>
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 1, lanes = 8, vector = 16, crossed = true>
func.func @fold_planes_c1_type(%upper: !gdn_gpu.fragment<8x128xf32, #rows>, %scales: !gdn_gpu.fragment<8xf32, #gdn_gpu.per_row<#rows>>, %x: f32, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %deltas = gdn_gpu.alloc : !gdn_gpu.shared<16x8xf16>
  %weights = gdn_gpu.alloc : !gdn_gpu.shared<16xf32>
  %keys = gdn_gpu.alloc : !gdn_gpu.shared<8x264xf16>
  // expected-error@+1 {{'gdn_gpu.fold_planes' op expects 'upper' to be a tile of rank 2 of i8, but got '!gdn_gpu.fragment<8x128xf32}}
  %new:2 = gdn_gpu.fold_planes %upper low() scales(%scales) kept(%x), %deltas[%i], %weights unit(%x), %keys
      : !gdn_gpu.fragment<8x128xf32, #rows>, !gdn_gpu.fragment<8xf32, #gdn_gpu.per_row<#rows>>, !gdn_gpu.shared<16x8xf16>, !gdn_gpu.shared<16xf32>, !gdn_gpu.shared<8x264xf16>
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 1, lanes = 8, vector = 16>
func.func @fold_planes_c1_layout(%upper: !gdn_gpu.fragment<8x128xi8, #rows>, %scales: !gdn_gpu.fragment<8xf32, #gdn_gpu.per_row<#rows>>, %x: f32, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %deltas = gdn_gpu.alloc : !gdn_gpu.shared<16x8xf16>
  %weights = gdn_gpu.alloc : !gdn_gpu.shared<16xf32>
  %keys = gdn_gpu.alloc : !gdn_gpu.shared<8x264xf16>
  // expected-error@+1 {{'gdn_gpu.fold_planes' op expects 'upper' in a layout with a vector of 16, crossed with lanes = 8 or with lanes = 4, but got}}
  %new:2 = gdn_gpu.fold_planes %upper low() scales(%scales) kept(%x), %deltas[%i], %weights unit(%x), %keys
      : !gdn_gpu.fragment<8x128xi8, #rows>, !gdn_gpu.fragment<8xf32, #gdn_gpu.per_row<#rows>>, !gdn_gpu.shared<16x8xf16>, !gdn_gpu.shared<16xf32>, !gdn_gpu.shared<8x264xf16>
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 1, lanes = 4, vector = 16>
func.func @fold_planes_c1_rows(%upper: !gdn_gpu.fragment<8x128xi8, #rows>, %scales: !gdn_gpu.fragment<8xf32, #gdn_gpu.per_row<#rows>>, %x: f32, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %deltas = gdn_gpu.alloc : !gdn_gpu.shared<16x8xf16>
  %weights = gdn_gpu.alloc : !gdn_gpu.shared<16xf32>
  %keys = gdn_gpu.alloc : !gdn_gpu.shared<8x264xf16>
  // expected-error@+1 {{'gdn_gpu.fold_planes' op expects a multiple of 16 rows and of 128 columns, but got}}
  %new:2 = gdn_gpu.fold_planes %upper low() scales(%scales) kept(%x), %deltas[%i], %weights unit(%x), %keys
      : !gdn_gpu.fragment<8x128xi8, #rows>, !gdn_gpu.fragment<8xf32, #gdn_gpu.per_row<#rows>>, !gdn_gpu.shared<16x8xf16>, !gdn_gpu.shared<16xf32>, !gdn_gpu.shared<8x264xf16>
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 1, lanes = 8, vector = 16, crossed = true>
func.func @fold_planes_c1_low(%upper: !gdn_gpu.fragment<8x128xi8, #rows>, %low: !gdn_gpu.fragment<8x256xi8, #rows>, %scales: !gdn_gpu.fragment<8xf32, #gdn_gpu.per_row<#rows>>, %x: f32, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %deltas = gdn_gpu.alloc : !gdn_gpu.shared<16x8xf16>
  %weights = gdn_gpu.alloc : !gdn_gpu.shared<16xf32>
  %keys = gdn_gpu.alloc : !gdn_gpu.shared<8x264xf16>
  // expected-error@+1 {{'gdn_gpu.fold_planes' op expects 'low' to be '!gdn_gpu.fragment<8x128xi8}}
  %new:3 = gdn_gpu.fold_planes %upper low(%low : !gdn_gpu.fragment<8x256xi8, #rows>) scales(%scales) kept(%x), %deltas[%i], %weights unit(%x), %keys
      : !gdn_gpu.fragment<8x128xi8, #rows>, !gdn_gpu.fragment<8xf32, #gdn_gpu.per_row<#rows>>, !gdn_gpu.shared<16x8xf16>, !gdn_gpu.shared<16xf32>, !gdn_gpu.shared<8x264xf16>
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 1, lanes = 8, vector = 16, crossed = true>
func.func @fold_planes_c1_scales(%upper: !gdn_gpu.fragment<8x128xi8, #rows>, %scales: !gdn_gpu.fragment<16xf32, #gdn_gpu.per_row<#rows>>, %x: f32, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %deltas = gdn_gpu.alloc : !gdn_gpu.shared<16x8xf16>
  %weights = gdn_gpu.alloc : !gdn_gpu.shared<16xf32>
  %keys = gdn_gpu.alloc : !gdn_gpu.shared<8x264xf16>
  // expected-error@+1 {{'gdn_gpu.fold_planes' op expects 'scales' to be '!gdn_gpu.fragment<8xf32}}
  %new:2 = gdn_gpu.fold_planes %upper low() scales(%scales) kept(%x), %deltas[%i], %weights unit(%x), %keys
      : !gdn_gpu.fragment<8x128xi8, #rows>, !gdn_gpu.fragment<16xf32, #gdn_gpu.per_row<#rows>>, !gdn_gpu.shared<16x8xf16>, !gdn_gpu.shared<16xf32>, !gdn_gpu.shared<8x264xf16>
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 1, lanes = 8, vector = 16, crossed = true>
func.func @fold_planes_c2_weights(%upper: !gdn_gpu.fragment<8x128xi8, #rows>, %scales: !gdn_gpu.fragment<8xf32, #gdn_gpu.per_row<#rows>>, %x: f32, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %deltas = gdn_gpu.alloc : !gdn_gpu.shared<16x8xf16>
  %weights = gdn_gpu.alloc : !gdn_gpu.shared<18xf32>
  %keys = gdn_gpu.alloc : !gdn_gpu.shared<8x264xf16>
  // expected-error@+1 {{'gdn_gpu.fold_planes' op expects 'weights' to be a multiple of 4 of f32, but got '!gdn_gpu.shared<18xf32>'}}
  %new:2 = gdn_gpu.fold_planes %upper low() scales(%scales) kept(%x), %deltas[%i], %weights unit(%x), %keys
      : !gdn_gpu.fragment<8x128xi8, #rows>, !gdn_gpu.fragment<8xf32, #gdn_gpu.per_row<#rows>>, !gdn_gpu.shared<16x8xf16>, !gdn_gpu.shared<18xf32>, !gdn_gpu.shared<8x264xf16>
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 1, lanes = 8, vector = 16, crossed = true>
func.func @fold_planes_c2_deltas(%upper: !gdn_gpu.fragment<8x128xi8, #rows>, %scales: !gdn_gpu.fragment<8xf32, #gdn_gpu.per_row<#rows>>, %x: f32, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %deltas = gdn_gpu.alloc : !gdn_gpu.shared<16x8xf32>
  %weights = gdn_gpu.alloc : !gdn_gpu.shared<16xf32>
  %keys = gdn_gpu.alloc : !gdn_gpu.shared<8x264xf16>
  // expected-error@+1 {{'gdn_gpu.fold_planes' op expects 'deltas' to be a multiple of 16 rows of 8 f16, but got '!gdn_gpu.shared<16x8xf32>'}}
  %new:2 = gdn_gpu.fold_planes %upper low() scales(%scales) kept(%x), %deltas[%i], %weights unit(%x), %keys
      : !gdn_gpu.fragment<8x128xi8, #rows>, !gdn_gpu.fragment<8xf32, #gdn_gpu.per_row<#rows>>, !gdn_gpu.shared<16x8xf32>, !gdn_gpu.shared<16xf32>, !gdn_gpu.shared<8x264xf16>
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 1, lanes = 8, vector = 16, crossed = true>
func.func @fold_planes_c2_keys(%upper: !gdn_gpu.fragment<8x128xi8, #rows>, %scales: !gdn_gpu.fragment<8xf32, #gdn_gpu.per_row<#rows>>, %x: f32, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %deltas = gdn_gpu.alloc : !gdn_gpu.shared<16x8xf16>
  %weights = gdn_gpu.alloc : !gdn_gpu.shared<16xf32>
  %keys = gdn_gpu.alloc : !gdn_gpu.shared<4x264xf16>
  // expected-error@+1 {{'gdn_gpu.fold_planes' op expects 'keys' to be 8 x 264 of f16, but got '!gdn_gpu.shared<4x264xf16>'}}
  %new:2 = gdn_gpu.fold_planes %upper low() scales(%scales) kept(%x), %deltas[%i], %weights unit(%x), %keys
      : !gdn_gpu.fragment<8x128xi8, #rows>, !gdn_gpu.fragment<8xf32, #gdn_gpu.per_row<#rows>>, !gdn_gpu.shared<16x8xf16>, !gdn_gpu.shared<16xf32>, !gdn_gpu.shared<4x264xf16>
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 1, lanes = 8, vector = 16, crossed = true>
func.func @fold_planes_c3(%upper: !gdn_gpu.fragment<8x128xi8, #rows>, %scales: !gdn_gpu.fragment<8xf32, #gdn_gpu.per_row<#rows>>, %x: f32, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %deltas = gdn_gpu.alloc : !gdn_gpu.shared<16x8xf16>
  %weights = gdn_gpu.alloc : !gdn_gpu.shared<16xf32>
  %keys = gdn_gpu.alloc : !gdn_gpu.shared<8x264xf16>
  // expected-error@+1 {{'gdn_gpu.fold_planes' op expects a tile that has been shared on every way to it}}
  %new:2 = gdn_gpu.fold_planes %upper low() scales(%scales) kept(%x), %deltas[%i], %weights unit(%x), %keys
      : !gdn_gpu.fragment<8x128xi8, #rows>, !gdn_gpu.fragment<8xf32, #gdn_gpu.per_row<#rows>>, !gdn_gpu.shared<16x8xf16>, !gdn_gpu.shared<16xf32>, !gdn_gpu.shared<8x264xf16>
  return
}
