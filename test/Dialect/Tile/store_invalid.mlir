// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_tile.store: every message of the constraints that the verifier owns (C1, C2, C4).
//
// RUN: gdn-tile-opt %s -split-input-file -verify-diagnostics

func.func @c1_too_few_indices(%x: memref<?x?xf32>, %i: index, %tile: vector<8x8xf32>) {
  // expected-error@+1 {{'gdn_tile.store' op expects one index per dimension of 'view', which is 2, but got 1}}
  gdn_tile.store %tile, %x[%i] dims [0, 1] : vector<8x8xf32>, memref<?x?xf32>
  return
}

// -----

func.func @c1_too_few_dims(%x: memref<?x?xf32>, %i: index, %tile: vector<8x8xf32>) {
  // expected-error@+1 {{'gdn_tile.store' op expects one entry of 'dims' per dimension of the tile, which is 2, but got 1}}
  gdn_tile.store %tile, %x[%i, %i] dims [0] : vector<8x8xf32>, memref<?x?xf32>
  return
}

// -----

func.func @c1_dim_past_the_view(%x: memref<?x?xf32>, %i: index, %tile: vector<8x8xf32>) {
  // expected-error@+1 {{'gdn_tile.store' op expects 'dims' to name distinct dimensions of 'view' below 2, but got 2}}
  gdn_tile.store %tile, %x[%i, %i] dims [0, 2] : vector<8x8xf32>, memref<?x?xf32>
  return
}

// -----

func.func @c1_negative_dim(%x: memref<?x?xf32>, %i: index, %tile: vector<8x8xf32>) {
  // expected-error@+1 {{'gdn_tile.store' op expects 'dims' to name distinct dimensions of 'view' below 2, but got -1}}
  gdn_tile.store %tile, %x[%i, %i] dims [-1, 0] : vector<8x8xf32>, memref<?x?xf32>
  return
}

// -----

func.func @c1_dim_twice(%x: memref<?x?xf32>, %i: index, %tile: vector<8x8xf32>) {
  // expected-error@+1 {{'gdn_tile.store' op expects 'dims' to name distinct dimensions of 'view' below 2, but got 1}}
  gdn_tile.store %tile, %x[%i, %i] dims [1, 1] : vector<8x8xf32>, memref<?x?xf32>
  return
}

// -----

func.func @c2_element_types(%x: memref<?x?xbf16>, %i: index, %tile: vector<8x8xf32>) {
  // expected-error@+1 {{'gdn_tile.store' op expects the tile to have the view's element type 'bf16', but got 'f32'}}
  gdn_tile.store %tile, %x[%i, %i] dims [0, 1] : vector<8x8xf32>, memref<?x?xbf16>
  return
}

// -----

func.func @c4_without_rows(%x: memref<?xf32>, %n: index, %tile: vector<64xf32>) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  scf.for %t = %c0 to %n step %c64 {
    // expected-error@+1 {{'gdn_tile.store' op expects 'rows' where it is full until the last turn of a loop}}
    gdn_tile.store %tile, %x[%n] dims [0] full_until_last : vector<64xf32>, memref<?xf32>
  }
  return
}

// -----

func.func @c4_outside_of_a_loop(%x: memref<?xf32>, %n: index, %tile: vector<64xf32>) {
  // expected-error@+1 {{'gdn_tile.store' op expects to stand in the body of an scf.for where it is full until the last turn}}
  gdn_tile.store %tile, %x[%n] dims [0] rows(%n) full_until_last : vector<64xf32>, memref<?xf32>
  return
}

// -----

func.func @c4_in_a_branch(%x: memref<?xf32>, %n: index, %tile: vector<64xf32>, %is: i1) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  scf.for %t = %c0 to %n step %c64 {
    scf.if %is {
      // expected-error@+1 {{'gdn_tile.store' op expects to stand in the body of an scf.for where it is full until the last turn}}
      gdn_tile.store %tile, %x[%n] dims [0] rows(%n) full_until_last : vector<64xf32>, memref<?xf32>
    }
  }
  return
}

// -----

func.func @c4_step_of_fewer_rows(%x: memref<?xf32>, %n: index, %tile: vector<64xf32>) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  scf.for %t = %c0 to %n step %c32 {
    // expected-error@+1 {{'gdn_tile.store' op expects the loop around to have the step 64, the rows of the tile, but got 32}}
    gdn_tile.store %tile, %x[%n] dims [0] rows(%n) full_until_last : vector<64xf32>, memref<?xf32>
  }
  return
}

// -----

func.func @c4_step_of_no_constant(%x: memref<?xf32>, %n: index, %tile: vector<64xf32>) {
  %c0 = arith.constant 0 : index
  scf.for %t = %c0 to %n step %n {
    // expected-error@+1 {{'gdn_tile.store' op expects the loop around to have the step 64, the rows of the tile, but got one that is no constant}}
    gdn_tile.store %tile, %x[%n] dims [0] rows(%n) full_until_last : vector<64xf32>, memref<?xf32>
  }
  return
}
