// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_tile.tokens: where it may not stand, what it may not be, and loops that are none over tokens.
//
// RUN: gdn-tile-opt %s -split-input-file -verify-diagnostics

// expected-error@+1 {{'func.func' op expects 'gdn_tile.tokens' on loops (scf.for) only}}
func.func private @of_a_function() attributes {gdn_tile.tokens}

// -----

func.func @no_number(%begin: index, %end: index) {
  %c1 = arith.constant 1 : index
  // expected-error@+1 {{'scf.for' op expects 'gdn_tile.tokens' to be a unit attribute or an i64 of at least 1, but got "8"}}
  scf.for %t = %begin to %end step %c1 {
  } {gdn_tile.tokens = "8"}
  return
}

// -----

func.func @none(%begin: index, %end: index) {
  %c1 = arith.constant 1 : index
  // expected-error@+1 {{'scf.for' op expects 'gdn_tile.tokens' to be a unit attribute or an i64 of at least 1, but got 0 : i64}}
  scf.for %t = %begin to %end step %c1 {
  } {gdn_tile.tokens = 0 : i64}
  return
}

// -----

func.func @step_of_no_constant(%begin: index, %end: index) {
  // expected-error@+1 {{'scf.for' op expects a constant step, the tokens of a turn, of a loop with 'gdn_tile.tokens'}}
  scf.for %t = %begin to %end step %end {
  } {gdn_tile.tokens}
  return
}

// -----

func.func @used_behind(%m: vector<16x16xf32>, %begin: index, %end: index) -> vector<16x16xf32> {
  %c1 = arith.constant 1 : index
  // expected-error@+1 {{'scf.for' op expects nothing behind a loop with 'gdn_tile.tokens' to use its results}}
  %last = scf.for %t = %begin to %end step %c1 iter_args(%s = %m) -> (vector<16x16xf32>) {
    scf.yield %s : vector<16x16xf32>
  } {gdn_tile.tokens}
  return %last : vector<16x16xf32>
}

// -----

func.func @scan_of_other_tokens(%m: vector<16x16xf32>, %k: vector<8x16xf32>, %g: vector<8xf32>,
                                %begin: index, %end: index) {
  %c4 = arith.constant 4 : index
  // expected-error@+1 {{'scf.for' op expects scans of 4 tokens, the step of a loop with 'gdn_tile.tokens', but got 8}}
  scf.for %t = %begin to %end step %c4 {
    %new, %o = gdn_tile.delta_scan %m, %k, %k, %k gates(%g, %g) valid(%c4)
        : vector<16x16xf32>, vector<8x16xf32>, vector<8x16xf32>, vector<8xf32>
  } {gdn_tile.tokens}
  return
}

// -----

func.func @states_between(%m: vector<16x16xf32>, %k: vector<8x16xf32>, %g: vector<8xf32>,
                          %begin: index, %end: index) {
  %c8 = arith.constant 8 : index
  // expected-error@+1 {{'scf.for' op expects scans with deltas in a loop with 'gdn_tile.tokens' and the step 8}}
  scf.for %t = %begin to %end step %c8 {
    %new, %o = gdn_tile.delta_scan %m, %k, %k, %k gates(%g, %g) valid(%c8)
        : vector<16x16xf32>, vector<8x16xf32>, vector<8x16xf32>, vector<8xf32>
  } {gdn_tile.tokens}
  return
}

// -----

func.func @more_than_said(%begin: index, %end: index) {
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %bound = arith.addi %begin, %c8 : index
  %to = arith.minsi %end, %bound : index
  // expected-error@+1 {{'scf.for' op expects a loop over at most 4 tokens, as 'gdn_tile.tokens' says, but its bounds allow 8}}
  scf.for %t = %begin to %to step %c1 {
  } {gdn_tile.tokens = 4 : i64}
  return
}

// -----

func.func @more_than_said_in_constants() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  // expected-error@+1 {{'scf.for' op expects a loop over at most 4 tokens, as 'gdn_tile.tokens' says, but its bounds allow 5}}
  scf.for %t = %c0 to %c5 step %c1 {
  } {gdn_tile.tokens = 4 : i64}
  return
}

// -----

// What the loop asks of a scan does not rest on segments that nobody has verified.
func.func @scan_of_other_segments(%m: vector<16x16xf32>, %k: vector<1x16xf32>, %g: vector<1xf32>,
                                  %begin: index, %end: index) {
  %c1 = arith.constant 1 : index
  scf.for %t = %begin to %end step %c1 {
    // expected-error@+1 {{'gdn_tile.delta_scan' op operand count (7) does not match with the total size (24) specified in attribute 'operandSegmentSizes'}}
    %0:2 = "gdn_tile.delta_scan"(%m, %k, %k, %k, %g, %g, %c1) <{operandSegmentSizes = array<i32: 9, 9, 1, 1, 1, 1, 1, 1>}>
        : (vector<16x16xf32>, vector<1x16xf32>, vector<1x16xf32>, vector<1x16xf32>, vector<1xf32>, vector<1xf32>, index)
        -> (vector<16x16xf32>, vector<1x16xf32>)
  } {gdn_tile.tokens}
  return
}
