// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_tile.block_id: every message of the constraint that the verifier owns (C1).
//
// RUN: gdn-tile-opt %s -split-input-file -verify-diagnostics

func.func @c1_no_grid() -> index {
  // expected-error@+1 {{'gdn_tile.block_id' op expects a function with 'grid' of 'gdn_tile.stage' around it}}
  %n = gdn_tile.block_id 0
  return %n : index
}

// -----

func.func @c1_axis_past_the_grid() -> index
    attributes {gdn_tile.stage = {grid = ["N", "Hk"]}} {
  // expected-error@+1 {{'gdn_tile.block_id' op expects an axis below 2, the size of 'grid' of 'gdn_tile.stage', but got 2}}
  %n = gdn_tile.block_id 2
  return %n : index
}
