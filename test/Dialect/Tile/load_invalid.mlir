// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_tile.load: every message of the constraints that the verifier owns (C1, C2, C4).
//
// RUN: gdn-tile-opt %s -split-input-file -verify-diagnostics

func.func @c1_too_few_indices(%x: memref<?x?xf32>, %i: index) {
  // expected-error@+1 {{'gdn_tile.load' op expects one index per dimension of 'view', which is 2, but got 1}}
  %tile = gdn_tile.load %x[%i] dims [0, 1] : memref<?x?xf32>, vector<8x8xf32>
  return
}

// -----

func.func @c1_too_few_dims(%x: memref<?x?xf32>, %i: index) {
  // expected-error@+1 {{'gdn_tile.load' op expects one entry of 'dims' per dimension of the tile, which is 2, but got 1}}
  %tile = gdn_tile.load %x[%i, %i] dims [0] : memref<?x?xf32>, vector<8x8xf32>
  return
}

// -----

func.func @c1_dim_past_the_view(%x: memref<?x?xf32>, %i: index) {
  // expected-error@+1 {{'gdn_tile.load' op expects 'dims' to name distinct dimensions of 'view' below 2, but got 2}}
  %tile = gdn_tile.load %x[%i, %i] dims [0, 2] : memref<?x?xf32>, vector<8x8xf32>
  return
}

// -----

func.func @c1_negative_dim(%x: memref<?x?xf32>, %i: index) {
  // expected-error@+1 {{'gdn_tile.load' op expects 'dims' to name distinct dimensions of 'view' below 2, but got -1}}
  %tile = gdn_tile.load %x[%i, %i] dims [-1, 0] : memref<?x?xf32>, vector<8x8xf32>
  return
}

// -----

func.func @c1_dim_twice(%x: memref<?x?xf32>, %i: index) {
  // expected-error@+1 {{'gdn_tile.load' op expects 'dims' to name distinct dimensions of 'view' below 2, but got 1}}
  %tile = gdn_tile.load %x[%i, %i] dims [1, 1] : memref<?x?xf32>, vector<8x8xf32>
  return
}

// -----

func.func @c2_element_types(%x: memref<?x?xbf16>, %i: index) {
  // expected-error@+1 {{'gdn_tile.load' op expects the tile to have the view's element type 'bf16', but got 'f32'}}
  %tile = gdn_tile.load %x[%i, %i] dims [0, 1] : memref<?x?xbf16>, vector<8x8xf32>
  return
}

// -----

func.func @c4_whole_without_rows(%x: memref<?x?xf32>, %i: index) {
  // expected-error@+1 {{'gdn_tile.load' op expects 'rows' where it has 'whole'}}
  %tile = gdn_tile.load %x[%i, %i] dims [0, 1] whole : memref<?x?xf32>, vector<8x8xf32>
  return
}
