// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_tile.each: every message of its verifier.
//
// RUN: gdn-tile-opt %s -split-input-file -verify-diagnostics

func.func @c1_operands(%a: vector<8xf32>) {
  // expected-error@+1 {{'gdn_tile.each' op expects a multiple of 2 operands, one per time, but got 1}}
  gdn_tile.each 2 of %a : vector<8xf32> {
  ^bb0(%i: index, %x: vector<8xf32>):
  }
  return
}

// -----

func.func @c1_types(%a: vector<8xf32>, %b: vector<4xf32>) {
  // expected-error@+1 {{'gdn_tile.each' op expects operand 1 to be 'vector<8xf32>', as for the first time, but got 'vector<4xf32>'}}
  gdn_tile.each 2 of %a, %b : vector<8xf32>, vector<4xf32> {
  ^bb0(%i: index, %x: vector<8xf32>):
  }
  return
}

// -----

func.func @c2_arguments(%a: vector<8xf32>, %b: vector<8xf32>) {
  // expected-error@+1 {{'gdn_tile.each' op expects the body to have 2 arguments, the number of the time and one per 2 operands, but got 1}}
  gdn_tile.each 2 of %a, %b : vector<8xf32>, vector<8xf32> {
  ^bb0(%i: index):
  }
  return
}

// -----

func.func @c2_number() {
  // expected-error@+1 {{'gdn_tile.each' op expects the first argument of the body to be the number of the time, an index, but got 'i32'}}
  gdn_tile.each 2 {
  ^bb0(%i: i32):
  }
  return
}

// -----

func.func @c2_type(%a: vector<8xf32>, %b: vector<8xf32>) {
  // expected-error@+1 {{'gdn_tile.each' op expects argument 1 of the body to be 'vector<8xf32>', the type of its operands, but got 'vector<4xf32>'}}
  gdn_tile.each 2 of %a, %b : vector<8xf32>, vector<8xf32> {
  ^bb0(%i: index, %x: vector<4xf32>):
  }
  return
}

// -----

func.func @c3_results(%a: vector<8xf32>, %b: vector<8xf32>) {
  // expected-error@+1 {{'gdn_tile.each' op expects a multiple of 2 results, one per time, but got 1}}
  %r = gdn_tile.each 2 of %a, %b : vector<8xf32>, vector<8xf32> -> vector<8xf32> {
  ^bb0(%i: index, %x: vector<8xf32>):
    gdn_tile.yield %x : vector<8xf32>
  }
  return
}

// -----

func.func @c3_number(%a: vector<8xf32>, %b: vector<8xf32>) {
  %r:2 = gdn_tile.each 2 of %a, %b : vector<8xf32>, vector<8xf32> -> vector<8xf32>, vector<8xf32> {
  ^bb0(%i: index, %x: vector<8xf32>):
    // expected-error@+1 {{'gdn_tile.yield' op expects 1 operands, one per 2 results, but got 2}}
    gdn_tile.yield %x, %x : vector<8xf32>, vector<8xf32>
  }
  return
}

// -----

func.func @c3_type(%a: vector<8xf32>, %b: vector<8xf32>) {
  %r:2 = gdn_tile.each 2 of %a, %b : vector<8xf32>, vector<8xf32> -> vector<4xf32>, vector<4xf32> {
  ^bb0(%i: index, %x: vector<8xf32>):
    // expected-error@+1 {{'gdn_tile.yield' op expects operand 0 to be 'vector<4xf32>', the type of its results, but got 'vector<8xf32>'}}
    gdn_tile.yield %x : vector<8xf32>
  }
  return
}
