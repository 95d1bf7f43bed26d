// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops on log decays: every message that a verifier owns.
//
// RUN: gdn-tile-opt %s -split-input-file -verify-diagnostics

func.func @extract_row_c1(%a: vector<16x8xf32>) {
  // expected-error@+1 {{'gdn_tile.extract_row' op expects a row of 'tile' below 16, the number of its rows, but got 16}}
  %r = gdn_tile.extract_row %a[16] : vector<16x8xf32> -> vector<8xf32>
  return
}

// -----

func.func @extract_row_c2(%a: vector<16x8xf32>) {
  // expected-error@+1 {{'gdn_tile.extract_row' op expects the result to be 'vector<8xf32>', one row of 'tile', but got 'vector<16xf32>'}}
  %r = gdn_tile.extract_row %a[3] : vector<16x8xf32> -> vector<16xf32>
  return
}

// -----

func.func @decay_scores_c2(%q: vector<16x8xf32>) {
  // expected-error@+1 {{'gdn_tile.decay_scores' op expects the results to be 'vector<16x16xf32>', set by the rows of 'key', but got 'vector<8x8xf32>'}}
  %p, %l = gdn_tile.decay_scores %q, %q decay(%q) : vector<16x8xf32> -> vector<8x8xf32>
  return
}

// -----

func.func @decay_matrix_c1(%g: vector<16xf32>) {
  // expected-error@+1 {{'gdn_tile.decay_matrix' op expects the result to be 'vector<16x16xf32>', set by 'log_decay', but got 'vector<8x16xf32>'}}
  %e = gdn_tile.decay_matrix %g : vector<16xf32> -> vector<8x16xf32>
  return
}

// -----

func.func @sum_of_pair_c1(%own: vector<64xf32>) -> vector<64xf32>
    attributes {gdn_tile.stage = {grid = ["3"], same_chunks = 3 : i64}} {
  // expected-error@+1 {{'gdn_tile.sum_of_pair' op expects a function with 'same_chunks' of 'gdn_tile.stage' of 2}}
  %all = gdn_tile.sum_of_pair %own : vector<64xf32>
  return %all : vector<64xf32>
}

// -----

func.func @decay_operands_c1(%q: vector<24x32xf16>, %g: vector<24x32xf32>) {
  // expected-error@+1 {{'gdn_tile.decay_operands' op expects 'query' to have a multiple of 16 rows and columns, but got 'vector<24x32xf16>'}}
  %p, %l, %fq, %fk, %te, %end = gdn_tile.decay_operands %q, %q decay(%g) : vector<24x32xf16> -> vector<24x24xf32>, vector<24x32xf16>, vector<32xf32>
  return
}

// -----

func.func @decay_operands_c2(%q: vector<16x32xf16>, %g: vector<16x32xf32>) {
  // expected-error@+1 {{'gdn_tile.decay_operands' op expects the scores to be 'vector<16x16xf32>', set by the rows of 'query', but got 'vector<16x32xf32>'}}
  %p, %l, %fq, %fk, %te, %end = gdn_tile.decay_operands %q, %q decay(%g) : vector<16x32xf16> -> vector<16x32xf32>, vector<16x32xf16>, vector<32xf32>
  return
}

// -----

func.func @decay_operands_c2_end(%q: vector<16x32xf16>, %g: vector<16x32xf32>) {
  // expected-error@+1 {{'gdn_tile.decay_operands' op expects 'end' to be 'vector<32xf32>', one row of 'log_decay', but got 'vector<16xf32>'}}
  %p, %l, %fq, %fk, %te, %end = gdn_tile.decay_operands %q, %q decay(%g) : vector<16x32xf16> -> vector<16x16xf32>, vector<16x32xf16>, vector<16xf32>
  return
}
