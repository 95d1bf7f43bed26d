// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_tile.extract_rows: every message of the constraint that the verifier owns (C1).
//
// RUN: gdn-tile-opt %s -split-input-file -verify-diagnostics

func.func @c1_rank(%tile: vector<8xf32>, %t: index) {
  // expected-error@+1 {{'gdn_tile.extract_rows' op expects the result to be rows of 'tile', 'vector<8xf32>', but got 'vector<8xf32>'}}
  %rows = gdn_tile.extract_rows %tile[%t] : vector<8xf32> -> vector<8xf32>
  return
}

// -----

func.func @c1_rows(%tile: vector<8x4xf32>, %t: index) {
  // expected-error@+1 {{'gdn_tile.extract_rows' op expects the result to be rows of 'tile', 'vector<8x4xf32>', but got 'vector<9x4xf32>'}}
  %rows = gdn_tile.extract_rows %tile[%t] : vector<8x4xf32> -> vector<9x4xf32>
  return
}

// -----

func.func @c1_columns(%tile: vector<8x4xf32>, %t: index) {
  // expected-error@+1 {{'gdn_tile.extract_rows' op expects the result to be rows of 'tile', 'vector<8x4xf32>', but got 'vector<2x8xf32>'}}
  %rows = gdn_tile.extract_rows %tile[%t] : vector<8x4xf32> -> vector<2x8xf32>
  return
}

// -----

func.func @c1_type(%tile: vector<8x4xf32>, %t: index) {
  // expected-error@+1 {{'gdn_tile.extract_rows' op expects the result to be rows of 'tile', 'vector<8x4xf32>', but got 'vector<2x4xbf16>'}}
  %rows = gdn_tile.extract_rows %tile[%t] : vector<8x4xf32> -> vector<2x4xbf16>
  return
}
