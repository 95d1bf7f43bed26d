// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_tile.conv1d: every message of the constraint that the verifier owns (C1).
//
// RUN: gdn-tile-opt %s -split-input-file -verify-diagnostics

func.func @c1_weight(%x: vector<16x64xf32>, %win: vector<3x64xf32>,
                     %w: vector<4x32xf32>, %n: index) {
  // expected-error@+1 {{'gdn_tile.conv1d' op expects 'weight' to be 'vector<4x64xf32>', channels set by 'input', but got 'vector<4x32xf32>'}}
  %y, %next = gdn_tile.conv1d %x, %win, %w valid(%n)
      : vector<16x64xf32>, vector<3x64xf32>, vector<4x32xf32>
  return
}

// -----

func.func @c1_one_tap(%x: vector<16x64xf32>, %win: vector<1x64xf32>,
                      %w: vector<1x64xf32>, %n: index) {
  // expected-error@+1 {{'gdn_tile.conv1d' op expects 'weight' to have at least 2 rows, but got 1}}
  %y, %next = gdn_tile.conv1d %x, %win, %w valid(%n)
      : vector<16x64xf32>, vector<1x64xf32>, vector<1x64xf32>
  return
}

// -----

func.func @c1_window(%x: vector<16x64xf32>, %win: vector<4x64xf32>,
                     %w: vector<4x64xf32>, %n: index) {
  // expected-error@+1 {{'gdn_tile.conv1d' op expects 'window' to be 'vector<3x64xf32>', one row fewer than 'weight', but got 'vector<4x64xf32>'}}
  %y, %next = gdn_tile.conv1d %x, %win, %w valid(%n)
      : vector<16x64xf32>, vector<4x64xf32>, vector<4x64xf32>
  return
}

// -----

func.func @c1_bias(%x: vector<16x64xf32>, %win: vector<3x64xf32>,
                   %w: vector<4x64xf32>, %bias: vector<4xf32>, %n: index) {
  // expected-error@+1 {{'gdn_tile.conv1d' op expects 'bias' to be 'vector<64xf32>', channels set by 'input', but got 'vector<4xf32>'}}
  %y, %next = gdn_tile.conv1d %x, %win, %w bias(%bias : vector<4xf32>) valid(%n)
      : vector<16x64xf32>, vector<3x64xf32>, vector<4x64xf32>
  return
}

// -----

// The pretty form cannot say the types of the results.
func.func @c1_result(%x: vector<16x64xf32>, %win: vector<3x64xf32>,
                     %w: vector<4x64xf32>, %n: index) {
  // expected-error@+1 {{'gdn_tile.conv1d' op expects 'result' to be 'vector<16x64xf32>', set by 'input', but got 'vector<8x64xf32>'}}
  %y, %next = "gdn_tile.conv1d"(%x, %win, %w, %n)
      : (vector<16x64xf32>, vector<3x64xf32>, vector<4x64xf32>, index)
      -> (vector<8x64xf32>, vector<3x64xf32>)
  return
}

// -----

func.func @c1_new_window(%x: vector<16x64xf32>, %win: vector<3x64xf32>,
                         %w: vector<4x64xf32>, %n: index) {
  // expected-error@+1 {{'gdn_tile.conv1d' op expects 'new_window' to be 'vector<3x64xf32>', set by 'window', but got 'vector<4x64xf32>'}}
  %y, %next = "gdn_tile.conv1d"(%x, %win, %w, %n)
      : (vector<16x64xf32>, vector<3x64xf32>, vector<4x64xf32>, index)
      -> (vector<16x64xf32>, vector<4x64xf32>)
  return
}
