// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_gpu.conv1d: every message of its verifier.
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

func.func @c1_rank(%x: !one, %win: !gdn_gpu.fragment<3x128xf32, #one>, %w: !gdn_gpu.fragment<4x128xf32, #one>, %n: index) {
  // expected-error@+1 {{'gdn_gpu.conv1d' op expects 'input' to have rank 2, but got '!gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<<warps = 1, lanes = 32, vector = 4>>>'}}
  %y, %z = gdn_gpu.conv1d %x, %win, %w valid(%n) : !one, !gdn_gpu.fragment<3x128xf32, #one>, !gdn_gpu.fragment<4x128xf32, #one> -> !one, !gdn_gpu.fragment<3x128xf32, #one>
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

func.func @c1_width(%x: !gdn_gpu.fragment<1x128xf32, #one>, %win: !gdn_gpu.fragment<3x128xf32, #one>, %w: !gdn_gpu.fragment<1x128xf32, #one>, %n: index) {
  // expected-error@+1 {{'gdn_gpu.conv1d' op expects 'weight' to have at least 2 rows, but got 1}}
  %y, %z = gdn_gpu.conv1d %x, %win, %w valid(%n) : !gdn_gpu.fragment<1x128xf32, #one>, !gdn_gpu.fragment<3x128xf32, #one>, !gdn_gpu.fragment<1x128xf32, #one> -> !gdn_gpu.fragment<1x128xf32, #one>, !gdn_gpu.fragment<3x128xf32, #one>
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

func.func @c1_channels(%x: !gdn_gpu.fragment<1x128xf32, #one>, %win: !gdn_gpu.fragment<3x128xf32, #one>, %w: !gdn_gpu.fragment<4x64xf32, #one>, %n: index) {
  // expected-error@+1 {{'gdn_gpu.conv1d' op expects 'weight' to be a tile 'vector<4x128xf32>', channels set by 'input', but got 'vector<4x64xf32>'}}
  %y, %z = gdn_gpu.conv1d %x, %win, %w valid(%n) : !gdn_gpu.fragment<1x128xf32, #one>, !gdn_gpu.fragment<3x128xf32, #one>, !gdn_gpu.fragment<4x64xf32, #one> -> !gdn_gpu.fragment<1x128xf32, #one>, !gdn_gpu.fragment<3x128xf32, #one>
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

func.func @c1_window(%x: !gdn_gpu.fragment<1x128xf32, #one>, %win: !gdn_gpu.fragment<4x128xf32, #one>, %w: !gdn_gpu.fragment<4x128xf32, #one>, %n: index) {
  // expected-error@+1 {{'gdn_gpu.conv1d' op expects 'window' to be a tile 'vector<3x128xf32>', one row fewer than 'weight', but got 'vector<4x128xf32>'}}
  %y, %z = gdn_gpu.conv1d %x, %win, %w valid(%n) : !gdn_gpu.fragment<1x128xf32, #one>, !gdn_gpu.fragment<4x128xf32, #one>, !gdn_gpu.fragment<4x128xf32, #one> -> !gdn_gpu.fragment<1x128xf32, #one>, !gdn_gpu.fragment<4x128xf32, #one>
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

func.func @c1_result(%x: !gdn_gpu.fragment<1x128xf32, #one>, %win: !gdn_gpu.fragment<3x128xf32, #one>, %w: !gdn_gpu.fragment<4x128xf32, #one>, %n: index) {
  // expected-error@+1 {{'gdn_gpu.conv1d' op expects 'result' to be a tile 'vector<1x128xf32>', set by 'input', but got 'vector<3x128xf32>'}}
  %y, %z = gdn_gpu.conv1d %x, %win, %w valid(%n) : !gdn_gpu.fragment<1x128xf32, #one>, !gdn_gpu.fragment<3x128xf32, #one>, !gdn_gpu.fragment<4x128xf32, #one> -> !gdn_gpu.fragment<3x128xf32, #one>, !gdn_gpu.fragment<3x128xf32, #one>
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

func.func @c1_new_window(%x: !gdn_gpu.fragment<1x128xf32, #one>, %win: !gdn_gpu.fragment<3x128xf32, #one>, %w: !gdn_gpu.fragment<4x128xf32, #one>, %n: index) {
  // expected-error@+1 {{'gdn_gpu.conv1d' op expects 'new_window' to be a tile 'vector<3x128xf32>', set by 'window', but got 'vector<1x128xf32>'}}
  %y, %z = gdn_gpu.conv1d %x, %win, %w valid(%n) : !gdn_gpu.fragment<1x128xf32, #one>, !gdn_gpu.fragment<3x128xf32, #one>, !gdn_gpu.fragment<4x128xf32, #one> -> !gdn_gpu.fragment<1x128xf32, #one>, !gdn_gpu.fragment<1x128xf32, #one>
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

func.func @c1_bias(%x: !gdn_gpu.fragment<1x128xf32, #one>, %win: !gdn_gpu.fragment<3x128xf32, #one>, %w: !gdn_gpu.fragment<4x128xf32, #one>, %n: index, %b: !gdn_gpu.fragment<64xf32, #gdn_gpu.per_column<#one>>) {
  // expected-error@+1 {{'gdn_gpu.conv1d' op expects 'bias' to be a tile 'vector<128xf32>', channels set by 'input', but got 'vector<64xf32>'}}
  %y, %z = gdn_gpu.conv1d %x, %win, %w bias(%b : !gdn_gpu.fragment<64xf32, #gdn_gpu.per_column<#one>>) valid(%n) : !gdn_gpu.fragment<1x128xf32, #one>, !gdn_gpu.fragment<3x128xf32, #one>, !gdn_gpu.fragment<4x128xf32, #one> -> !gdn_gpu.fragment<1x128xf32, #one>, !gdn_gpu.fragment<3x128xf32, #one>
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

func.func @c1_type(%x: !gdn_gpu.fragment<1x128xbf16, #one>, %win: !gdn_gpu.fragment<3x128xf32, #one>, %w: !gdn_gpu.fragment<4x128xf32, #one>, %n: index) {
  // expected-error@+1 {{'gdn_gpu.conv1d' op expects 'input' to have elements of f32, but got 'bf16'}}
  %y, %z = gdn_gpu.conv1d %x, %win, %w valid(%n) : !gdn_gpu.fragment<1x128xbf16, #one>, !gdn_gpu.fragment<3x128xf32, #one>, !gdn_gpu.fragment<4x128xf32, #one> -> !gdn_gpu.fragment<1x128xbf16, #one>, !gdn_gpu.fragment<3x128xf32, #one>
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

func.func @c2_layout(%x: !gdn_gpu.fragment<1x128xf32, #rows>, %win: !gdn_gpu.fragment<3x128xf32, #one>, %w: !gdn_gpu.fragment<4x128xf32, #one>, %n: index) {
  // expected-error@+1 {{'gdn_gpu.conv1d' op expects a layout of one warp and 32 lanes, but got #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>}}
  %y, %z = gdn_gpu.conv1d %x, %win, %w valid(%n) : !gdn_gpu.fragment<1x128xf32, #rows>, !gdn_gpu.fragment<3x128xf32, #one>, !gdn_gpu.fragment<4x128xf32, #one> -> !gdn_gpu.fragment<1x128xf32, #rows>, !gdn_gpu.fragment<3x128xf32, #one>
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

func.func @c2_two_layouts(%x: !gdn_gpu.fragment<1x128xf32, #one>, %win: !gdn_gpu.fragment<3x128xf32, #one>, %w: !gdn_gpu.fragment<4x128xf32, #rows>, %n: index) {
  // expected-error@+1 {{'gdn_gpu.conv1d' op expects every layout to belong to #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>, the layout of 'input', but got #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>}}
  %y, %z = gdn_gpu.conv1d %x, %win, %w valid(%n) : !gdn_gpu.fragment<1x128xf32, #one>, !gdn_gpu.fragment<3x128xf32, #one>, !gdn_gpu.fragment<4x128xf32, #rows> -> !gdn_gpu.fragment<1x128xf32, #one>, !gdn_gpu.fragment<3x128xf32, #one>
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

func.func @c2_bias_per_row(%x: !gdn_gpu.fragment<1x128xf32, #one>, %win: !gdn_gpu.fragment<3x128xf32, #one>, %w: !gdn_gpu.fragment<4x128xf32, #one>, %n: index, %b: !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#one>>) {
  // expected-error@+1 {{'gdn_gpu.conv1d' op expects 'bias' to be 'per_column', but got #gdn_gpu.per_row<<warps = 1, lanes = 32, vector = 4>>}}
  %y, %z = gdn_gpu.conv1d %x, %win, %w bias(%b : !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#one>>) valid(%n) : !gdn_gpu.fragment<1x128xf32, #one>, !gdn_gpu.fragment<3x128xf32, #one>, !gdn_gpu.fragment<4x128xf32, #one> -> !gdn_gpu.fragment<1x128xf32, #one>, !gdn_gpu.fragment<3x128xf32, #one>
  return
}
