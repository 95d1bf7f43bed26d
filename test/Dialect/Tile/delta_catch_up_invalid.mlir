// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Constraints of gdn_tile.delta_catch_up.
//
// RUN: gdn-tile-opt %s -split-input-file -verify-diagnostics

func.func @c1_pending_key(%m: vector<128x64xf32>, %pk: vector<16x32xf32>, %pd: vector<16x128xf32>, %pg: vector<16xf32>,
    %n: index, %full: i1) {
  // expected-error@+1 {{'gdn_tile.delta_catch_up' op expects 'pending_key' to be 'vector<16x64xf32>', dk set by 'state', but got 'vector<16x32xf32>'}}
  %m1, %whole = gdn_tile.delta_catch_up %m pending(%pk, %pd, %pg) count(%n) commit(%full)
      : vector<128x64xf32>, vector<16x32xf32>, vector<16x128xf32>
  return
}

// -----

func.func @c1_pending_deltas(%m: vector<128x64xf32>, %pk: vector<16x64xf32>, %pd: vector<8x128xf32>, %pg: vector<16xf32>,
    %n: index, %full: i1) {
  // expected-error@+1 {{'gdn_tile.delta_catch_up' op expects 'pending_deltas' to be 'vector<16x128xf32>', tokens set by 'pending_key' and dv by 'state', but got 'vector<8x128xf32>'}}
  %m1, %whole = gdn_tile.delta_catch_up %m pending(%pk, %pd, %pg) count(%n) commit(%full)
      : vector<128x64xf32>, vector<16x64xf32>, vector<8x128xf32>
  return
}

// -----

func.func @c1_whole(%m: vector<128x64xbf16>, %pk: vector<16x64xf32>, %pd: vector<16x128xf32>, %pg: vector<16xf32>,
    %n: index, %full: i1) {
  // expected-error@+1 {{'gdn_tile.delta_catch_up' op failed to verify that the state in f32}}
  %m1, %whole = "gdn_tile.delta_catch_up"(%m, %pk, %pd, %pg, %n, %full)
      : (vector<128x64xbf16>, vector<16x64xf32>, vector<16x128xf32>, vector<16xf32>, index, i1)
      -> (vector<128x64xbf16>, vector<64x64xf32>)
  return
}

// -----

func.func @c1_pending_decay(%m: vector<128x64xf32>, %pk: vector<16x64xf32>, %pd: vector<16x128xf32>, %pg: vector<16x32xf32>,
    %n: index, %full: i1) {
  // expected-error@+1 {{'gdn_tile.delta_catch_up' op expects 'pending_decay' to be 'vector<16x64xf32>', tokens set by 'pending_key' and dk by 'state', but got 'vector<16x32xf32>'}}
  %m1, %whole = "gdn_tile.delta_catch_up"(%m, %pk, %pd, %pg, %n, %full)
      : (vector<128x64xf32>, vector<16x64xf32>, vector<16x128xf32>, vector<16x32xf32>, index, i1)
      -> (vector<128x64xf32>, vector<128x64xf32>)
  return
}
