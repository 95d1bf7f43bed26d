// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops on whole matrices: every message that a verifier owns.
//
// RUN: gdn-tile-opt %s -split-input-file -verify-diagnostics

func.func @matmul_c1_inner(%a: vector<16x8xf32>, %b: vector<4x16xf32>) {
  // expected-error@+1 {{'gdn_tile.matmul' op expects 'rhs' to have 8 rows, set by 'lhs', but got 4}}
  %c = gdn_tile.matmul %a, %b : vector<16x8xf32>, vector<4x16xf32> -> vector<16x16xf32>
  return
}

// -----

func.func @matmul_c1_result(%a: vector<16x8xf32>, %b: vector<8x4xf32>) {
  // expected-error@+1 {{'gdn_tile.matmul' op expects the result to be 'vector<16x4xf32>', set by the operands, but got 'vector<4x16xf32>'}}
  %c = gdn_tile.matmul %a, %b : vector<16x8xf32>, vector<8x4xf32> -> vector<4x16xf32>
  return
}

// -----

func.func @matmul_c1_acc(%a: vector<16x8xf32>, %b: vector<8x4xf32>, %c: vector<4x4xf32>) {
  // expected-error@+1 {{'gdn_tile.matmul' op expects 'acc' to be 'vector<16x4xf32>', the type of the result, but got 'vector<4x4xf32>'}}
  %d = gdn_tile.matmul %a, %b acc(%c : vector<4x4xf32>)
      : vector<16x8xf32>, vector<8x4xf32> -> vector<16x4xf32>
  return
}

// -----

func.func @matmul_c2(%a: vector<16x8xf32>, %b: vector<8x4xbf16>) {
  // expected-error@+1 {{'gdn_tile.matmul' op expects 'rhs' to have the element type of 'lhs', 'f32', but got 'bf16'}}
  %c = gdn_tile.matmul %a, %b : vector<16x8xf32>, vector<8x4xbf16> -> vector<16x4xf32>
  return
}

// -----

func.func @transpose_c1(%a: vector<16x8xf32>) {
  // expected-error@+1 {{'gdn_tile.transpose' op expects the result to be 'vector<8x16xf32>', set by 'tile', but got 'vector<16x8xf32>'}}
  %t = gdn_tile.transpose %a : vector<16x8xf32> -> vector<16x8xf32>
  return
}

// -----

func.func @tri_inverse_c1(%a: vector<16x8xf32>) {
  // expected-error@+1 {{'gdn_tile.tri_inverse' op expects 'matrix' to be square, but got 'vector<16x8xf32>'}}
  %t = gdn_tile.tri_inverse %a : vector<16x8xf32>
  return
}

// -----

func.func @tri_inverse_c2(%a: vector<24x24xf16>) {
  // expected-error@+1 {{'gdn_tile.tri_inverse' op expects 'matrix' in f16 to have a multiple of 16 rows, but got 24}}
  %t = gdn_tile.tri_inverse %a : vector<24x24xf16>
  return
}
