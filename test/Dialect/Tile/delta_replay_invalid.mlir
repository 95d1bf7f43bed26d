// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Constraints of gdn_tile.delta_replay.
//
// RUN: gdn-tile-opt %s -split-input-file -verify-diagnostics

func.func @c1_pending_key(%m: vector<128x64xf32>, %pk: vector<16x32xf32>, %pd: vector<16x128xf32>, %pg: vector<16xf32>,
    %n: index, %full: i1, %k: vector<4x64xf32>, %v: vector<4x128xf32>, %g: vector<4xf32>) {
  // expected-error@+1 {{'gdn_tile.delta_replay' op expects 'pending_key' to be 'vector<16x64xf32>', dk set by 'state', but got 'vector<16x32xf32>'}}
  %m1, %o, %d = gdn_tile.delta_replay %m pending(%pk, %pd, %pg) count(%n) commit(%full) tokens(%k, %k, %v) gates(%g, %g) valid(%n)
      : vector<128x64xf32>, vector<16x32xf32>, vector<16x128xf32>, vector<4x64xf32>, vector<4x128xf32>
  return
}

// -----

func.func @c1_pending_deltas(%m: vector<128x64xf32>, %pk: vector<16x64xf32>, %pd: vector<8x128xf32>, %pg: vector<16xf32>,
    %n: index, %full: i1, %k: vector<4x64xf32>, %v: vector<4x128xf32>, %g: vector<4xf32>) {
  // expected-error@+1 {{'gdn_tile.delta_replay' op expects 'pending_deltas' to be 'vector<16x128xf32>', tokens set by 'pending_key' and dv by 'state', but got 'vector<8x128xf32>'}}
  %m1, %o, %d = gdn_tile.delta_replay %m pending(%pk, %pd, %pg) count(%n) commit(%full) tokens(%k, %k, %v) gates(%g, %g) valid(%n)
      : vector<128x64xf32>, vector<16x64xf32>, vector<8x128xf32>, vector<4x64xf32>, vector<4x128xf32>
  return
}

// -----

func.func @c1_key(%m: vector<128x64xf32>, %pk: vector<16x64xf32>, %pd: vector<16x128xf32>, %pg: vector<16xf32>,
    %n: index, %full: i1, %k: vector<4x32xf32>, %v: vector<4x128xf32>, %g: vector<4xf32>) {
  // expected-error@+1 {{'gdn_tile.delta_replay' op expects 'key' to be 'vector<4x64xf32>', dk set by 'state', but got 'vector<4x32xf32>'}}
  %m1, %o, %d = gdn_tile.delta_replay %m pending(%pk, %pd, %pg) count(%n) commit(%full) tokens(%k, %k, %v) gates(%g, %g) valid(%n)
      : vector<128x64xf32>, vector<16x64xf32>, vector<16x128xf32>, vector<4x32xf32>, vector<4x128xf32>
  return
}

// -----

func.func @c1_value(%m: vector<128x64xf32>, %pk: vector<16x64xf32>, %pd: vector<16x128xf32>, %pg: vector<16xf32>,
    %n: index, %full: i1, %k: vector<4x64xf32>, %v: vector<3x128xf32>, %g: vector<4xf32>) {
  // expected-error@+1 {{'gdn_tile.delta_replay' op expects 'value' to be 'vector<4x128xf32>', tokens set by 'key' and dv by 'state', but got 'vector<3x128xf32>'}}
  %m1, %o, %d = gdn_tile.delta_replay %m pending(%pk, %pd, %pg) count(%n) commit(%full) tokens(%k, %k, %v) gates(%g, %g) valid(%n)
      : vector<128x64xf32>, vector<16x64xf32>, vector<16x128xf32>, vector<4x64xf32>, vector<3x128xf32>
  return
}

// -----

func.func @c1_seen(%m: vector<128x64xf32>, %u: vector<64x64xf32>, %pk: vector<16x64xf32>, %pd: vector<16x128xf32>, %pg: vector<16xf32>,
    %n: index, %full: i1, %k: vector<4x64xf32>, %v: vector<4x128xf32>, %g: vector<4xf32>) {
  // expected-error@+1 {{'gdn_tile.delta_replay' op expects 'seen' to be 'vector<128x64xf32>', that of 'state', but got 'vector<64x64xf32>'}}
  %m1, %o, %d = gdn_tile.delta_replay %m seen(%u : vector<64x64xf32>) pending(%pk, %pd, %pg) count(%n) commit(%full) tokens(%k, %k, %v) gates(%g, %g) valid(%n)
      : vector<128x64xf32>, vector<16x64xf32>, vector<16x128xf32>, vector<4x64xf32>, vector<4x128xf32>
  return
}

// -----

func.func @c1_log_decay(%m: vector<128x64xf32>, %pk: vector<16x64xf32>, %pd: vector<16x128xf32>, %pg: vector<16x64xf32>,
    %n: index, %full: i1, %k: vector<4x64xf32>, %v: vector<4x128xf32>, %g: vector<4xf32>) {
  // expected-error@+1 {{'gdn_tile.delta_replay' op expects 'log_decay' to be 'vector<4x64xf32>', set by 'key', one per channel as 'pending_decay', but got 'vector<4xf32>'}}
  %m1, %o, %d = "gdn_tile.delta_replay"(%m, %pk, %pd, %pg, %n, %full, %k, %k, %v, %g, %g, %n)
      : (vector<128x64xf32>, vector<16x64xf32>, vector<16x128xf32>, vector<16x64xf32>, index, i1, vector<4x64xf32>, vector<4x64xf32>, vector<4x128xf32>, vector<4xf32>, vector<4xf32>, index)
      -> (vector<128x64xf32>, vector<4x128xf32>, vector<4x128xf32>)
  return
}
