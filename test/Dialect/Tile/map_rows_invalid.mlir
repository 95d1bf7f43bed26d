// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_tile.map_rows: every message of the constraints that the verifier owns
// (C1 to C3).
//
// RUN: gdn-tile-opt %s -split-input-file -verify-diagnostics

func.func @c1_no_result(%x: vector<4x8xf32>) {
  // expected-error@+1 {{'gdn_tile.map_rows' op expects at least one result}}
  "gdn_tile.map_rows"(%x) ({
  ^bb0(%i: index, %row: vector<8xf32>):
    "gdn_tile.yield"() : () -> ()
  }) : (vector<4x8xf32>) -> ()
  return
}

// -----

func.func @c1_rows_differ(%x: vector<4x8xf32>) {
  // expected-error@+1 {{'gdn_tile.map_rows' op expects every input and result to have 5 rows, set by the first result, but got 4}}
  %y = gdn_tile.map_rows %x : vector<4x8xf32> -> vector<5x8xf32> {
  ^bb0(%i: index, %row: vector<8xf32>):
    gdn_tile.yield %row : vector<8xf32>
  }
  return
}

// -----

func.func @c2_too_few_arguments(%x: vector<4x8xf32>, %row: vector<8xf32>) {
  // expected-error@+1 {{'gdn_tile.map_rows' op expects the body to have 2 arguments, the row number and one per input, but got 1}}
  %y = gdn_tile.map_rows %x : vector<4x8xf32> -> vector<4x8xf32> {
  ^bb0(%i: index):
    gdn_tile.yield %row : vector<8xf32>
  }
  return
}

// -----

func.func @c2_row_number(%x: vector<4x8xf32>) {
  // expected-error@+1 {{'gdn_tile.map_rows' op expects the first argument of the body to be the row number, an index, but got 'i64'}}
  %y = gdn_tile.map_rows %x : vector<4x8xf32> -> vector<4x8xf32> {
  ^bb0(%i: i64, %row: vector<8xf32>):
    gdn_tile.yield %row : vector<8xf32>
  }
  return
}

// -----

func.func @c2_row_of_an_input(%x: vector<4x8xf32>) {
  // expected-error@+1 {{'gdn_tile.map_rows' op expects argument 1 of the body to be 'vector<8xf32>', the row of its input, but got 'f32'}}
  %y = gdn_tile.map_rows %x : vector<4x8xf32> -> vector<4xf32> {
  ^bb0(%i: index, %row: f32):
    gdn_tile.yield %row : f32
  }
  return
}

// -----

func.func @c3_too_few_operands(%x: vector<4x8xf32>) {
  %y:2 = gdn_tile.map_rows %x : vector<4x8xf32> -> vector<4x8xf32>, vector<4xf32> {
  ^bb0(%i: index, %row: vector<8xf32>):
    // expected-error@+1 {{'gdn_tile.yield' op expects 2 operands, one per result, but got 1}}
    gdn_tile.yield %row : vector<8xf32>
  }
  return
}

// -----

func.func @c3_row_of_a_result(%x: vector<4x8xf32>) {
  %y = gdn_tile.map_rows %x : vector<4x8xf32> -> vector<4xf32> {
  ^bb0(%i: index, %row: vector<8xf32>):
    // expected-error@+1 {{'gdn_tile.yield' op expects operand 0 to be 'f32', the row of its result, but got 'vector<8xf32>'}}
    gdn_tile.yield %row : vector<8xf32>
  }
  return
}
