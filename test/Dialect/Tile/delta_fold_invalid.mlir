// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Constraints of gdn_tile.delta_fold.
//
// RUN: gdn-tile-opt %s -split-input-file -verify-diagnostics

func.func @c1_key(%m: vector<128x64xf32>, %k: vector<8x32xf32>, %d: vector<8x128xf32>, %g: vector<8xf32>, %n: index) {
  // expected-error@+1 {{'gdn_tile.delta_fold' op expects 'key' to be 'vector<8x64xf32>', dk set by 'state', but got 'vector<8x32xf32>'}}
  %0 = gdn_tile.delta_fold %m, %k, %d decay(%g) valid(%n)
      : vector<128x64xf32>, vector<8x32xf32>, vector<8x128xf32>, vector<8xf32>
  return
}

// -----

func.func @c1_deltas(%m: vector<128x64xf32>, %k: vector<8x64xf32>, %d: vector<4x128xf32>, %g: vector<8xf32>, %n: index) {
  // expected-error@+1 {{'gdn_tile.delta_fold' op expects 'deltas' to be 'vector<8x128xf32>', tokens set by 'key' and dv by 'state', but got 'vector<4x128xf32>'}}
  %0 = gdn_tile.delta_fold %m, %k, %d decay(%g) valid(%n)
      : vector<128x64xf32>, vector<8x64xf32>, vector<4x128xf32>, vector<8xf32>
  return
}

// -----

func.func @c1_log_decay(%m: vector<128x64xf32>, %k: vector<8x64xf32>, %d: vector<8x128xf32>, %g: vector<8x128xf32>, %n: index) {
  // expected-error@+1 {{'gdn_tile.delta_fold' op expects 'log_decay' to be 'vector<8x64xf32>', tokens set by 'key' and dk by 'state', but got 'vector<8x128xf32>'}}
  %0 = gdn_tile.delta_fold %m, %k, %d decay(%g) valid(%n)
      : vector<128x64xf32>, vector<8x64xf32>, vector<8x128xf32>, vector<8x128xf32>
  return
}
