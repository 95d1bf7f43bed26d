// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_tile.delta_scan: every message of the constraint that the verifier owns
// (C1). The generic form can say every type; the pretty form leaves some out.
//
// RUN: gdn-tile-opt %s -split-input-file -verify-diagnostics

func.func @c1_key(%state: vector<32x64xf32>, %query: vector<16x64xf32>,
    %key: vector<16x32xf32>, %value: vector<16x32xf32>,
    %log_decay: vector<16xf32>, %beta: vector<16xf32>, %n: index) {
  // expected-error@+1 {{'gdn_tile.delta_scan' op expects 'key' to be 'vector<16x64xf32>', dk set by 'state', but got 'vector<16x32xf32>'}}
  %0:2 = "gdn_tile.delta_scan"(%state, %query, %key, %value, %log_decay, %beta, %n) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 0, 1>}>
      : (vector<32x64xf32>, vector<16x64xf32>, vector<16x32xf32>, vector<16x32xf32>,
         vector<16xf32>, vector<16xf32>, index)
      -> (vector<32x64xf32>, vector<16x32xf32>)
  return
}

// -----

func.func @c1_query(%state: vector<32x64xf32>, %query: vector<8x64xf32>,
    %key: vector<16x64xf32>, %value: vector<16x32xf32>,
    %log_decay: vector<16xf32>, %beta: vector<16xf32>, %n: index) {
  // expected-error@+1 {{'gdn_tile.delta_scan' op expects 'query' to be 'vector<16x64xf32>', set by 'key', but got 'vector<8x64xf32>'}}
  %0:2 = "gdn_tile.delta_scan"(%state, %query, %key, %value, %log_decay, %beta, %n) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 0, 1>}>
      : (vector<32x64xf32>, vector<8x64xf32>, vector<16x64xf32>, vector<16x32xf32>,
         vector<16xf32>, vector<16xf32>, index)
      -> (vector<32x64xf32>, vector<16x32xf32>)
  return
}

// -----

func.func @c1_value(%state: vector<32x64xf32>, %query: vector<16x64xf32>,
    %key: vector<16x64xf32>, %value: vector<16x64xf32>,
    %log_decay: vector<16xf32>, %beta: vector<16xf32>, %n: index) {
  // expected-error@+1 {{'gdn_tile.delta_scan' op expects 'value' to be 'vector<16x32xf32>', tokens set by 'key' and dv by 'state', but got 'vector<16x64xf32>'}}
  %0:2 = "gdn_tile.delta_scan"(%state, %query, %key, %value, %log_decay, %beta, %n) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 0, 1>}>
      : (vector<32x64xf32>, vector<16x64xf32>, vector<16x64xf32>, vector<16x64xf32>,
         vector<16xf32>, vector<16xf32>, index)
      -> (vector<32x64xf32>, vector<16x32xf32>)
  return
}

// -----

func.func @c1_log_decay(%state: vector<32x64xf32>, %query: vector<16x64xf32>,
    %key: vector<16x64xf32>, %value: vector<16x32xf32>,
    %log_decay: vector<8xf32>, %beta: vector<16xf32>, %n: index) {
  // expected-error@+1 {{'gdn_tile.delta_scan' op expects 'log_decay' to be 'vector<16xf32>', tokens set by 'key' and dk by 'state', but got 'vector<8xf32>'}}
  %0:2 = "gdn_tile.delta_scan"(%state, %query, %key, %value, %log_decay, %beta, %n) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 0, 1>}>
      : (vector<32x64xf32>, vector<16x64xf32>, vector<16x64xf32>, vector<16x32xf32>,
         vector<8xf32>, vector<16xf32>, index)
      -> (vector<32x64xf32>, vector<16x32xf32>)
  return
}

// -----

func.func @c1_log_decay_per_channel(%state: vector<32x64xf32>, %query: vector<16x64xf32>,
    %key: vector<16x64xf32>, %value: vector<16x32xf32>,
    %log_decay: vector<16x32xf32>, %beta: vector<16xf32>, %n: index) {
  // expected-error@+1 {{'gdn_tile.delta_scan' op expects 'log_decay' to be 'vector<16x64xf32>', tokens set by 'key' and dk by 'state', but got 'vector<16x32xf32>'}}
  %0:2 = "gdn_tile.delta_scan"(%state, %query, %key, %value, %log_decay, %beta, %n) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 0, 1>}>
      : (vector<32x64xf32>, vector<16x64xf32>, vector<16x64xf32>, vector<16x32xf32>,
         vector<16x32xf32>, vector<16xf32>, index)
      -> (vector<32x64xf32>, vector<16x32xf32>)
  return
}

// -----

func.func @c1_beta(%state: vector<32x64xf32>, %query: vector<16x64xf32>,
    %key: vector<16x64xf32>, %value: vector<16x32xf32>,
    %log_decay: vector<16xf32>, %beta: vector<8xf32>, %n: index) {
  // expected-error@+1 {{'gdn_tile.delta_scan' op expects 'beta' to be 'vector<16xf32>', tokens set by 'key', but got 'vector<8xf32>'}}
  %0:2 = "gdn_tile.delta_scan"(%state, %query, %key, %value, %log_decay, %beta, %n) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 0, 1>}>
      : (vector<32x64xf32>, vector<16x64xf32>, vector<16x64xf32>, vector<16x32xf32>,
         vector<16xf32>, vector<8xf32>, index)
      -> (vector<32x64xf32>, vector<16x32xf32>)
  return
}

// -----

func.func @c1_new_state(%state: vector<32x64xf32>, %query: vector<16x64xf32>,
    %key: vector<16x64xf32>, %value: vector<16x32xf32>,
    %log_decay: vector<16xf32>, %beta: vector<16xf32>, %n: index) {
  // expected-error@+1 {{'gdn_tile.delta_scan' op expects 'new_state' to be 'vector<32x64xf32>', set by 'state', but got 'vector<64x32xf32>'}}
  %0:2 = "gdn_tile.delta_scan"(%state, %query, %key, %value, %log_decay, %beta, %n) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 0, 1>}>
      : (vector<32x64xf32>, vector<16x64xf32>, vector<16x64xf32>, vector<16x32xf32>,
         vector<16xf32>, vector<16xf32>, index)
      -> (vector<64x32xf32>, vector<16x32xf32>)
  return
}

// -----

func.func @c1_output(%state: vector<32x64xf32>, %query: vector<16x64xf32>,
    %key: vector<16x64xf32>, %value: vector<16x32xf32>,
    %log_decay: vector<16xf32>, %beta: vector<16xf32>, %n: index) {
  // expected-error@+1 {{'gdn_tile.delta_scan' op expects 'output' to be 'vector<16x32xf32>', set by 'value', but got 'vector<16x64xf32>'}}
  %0:2 = "gdn_tile.delta_scan"(%state, %query, %key, %value, %log_decay, %beta, %n) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 0, 1>}>
      : (vector<32x64xf32>, vector<16x64xf32>, vector<16x64xf32>, vector<16x32xf32>,
         vector<16xf32>, vector<16xf32>, index)
      -> (vector<32x64xf32>, vector<16x64xf32>)
  return
}

// -----

func.func @pretty_form_needs_a_vector(%m: vector<32x64xf32>,
    %k: vector<16x64xf32>, %v: vector<16x32xf32>, %g: f32, %n: index) {
  %0:2 = gdn_tile.delta_scan %m, %k, %k, %v gates(%g, %g) valid(%n)
      // expected-error@+2 {{custom op 'gdn_tile.delta_scan' expects the log decay to be a vector}}
      : vector<32x64xf32>, vector<16x64xf32>, vector<16x32xf32>,
        f32
  return
}

// -----

// C3: many tokens round their state once, so they carry it in f32.
func.func @c3_narrow_state_of_many_tokens(%m: vector<32x64xbf16>,
    %k: vector<16x64xf32>, %v: vector<16x32xf32>, %g: vector<16xf32>, %n: index) {
  // expected-error@+1 {{'gdn_tile.delta_scan' op expects a state of 'bf16' to pass one token, but got 16}}
  %0:2 = gdn_tile.delta_scan %m, %k, %k, %v gates(%g, %g) valid(%n)
      : vector<32x64xbf16>, vector<16x64xf32>, vector<16x32xf32>, vector<16xf32>
  return
}

// -----

func.func @c3_element_type_of_new_state(%m: vector<32x64xbf16>,
    %k: vector<1x64xf32>, %v: vector<1x32xf32>, %g: vector<1xf32>, %n: index) {
  // expected-error@+1 {{'gdn_tile.delta_scan' op expects 'new_state' to have the element type 'bf16' of 'state', but got 'f32'}}
  %0:2 = "gdn_tile.delta_scan"(%m, %k, %k, %v, %g, %g, %n) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 0, 1>}>
      : (vector<32x64xbf16>, vector<1x64xf32>, vector<1x64xf32>, vector<1x32xf32>,
         vector<1xf32>, vector<1xf32>, index)
      -> (vector<32x64xf32>, vector<1x32xf32>)
  return
}

// -----

func.func @c1_deltas(%m: vector<32x64xf32>, %k: vector<16x64xf32>,
    %v: vector<16x32xf32>, %g: vector<16xf32>, %n: index) {
  // expected-error@+1 {{'gdn_tile.delta_scan' op expects 'deltas' to be 'vector<16x32xf32>', set by 'value', but got 'vector<8x32xf32>'}}
  %0:3 = "gdn_tile.delta_scan"(%m, %k, %k, %v, %g, %g, %n) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 0, 1>}>
      : (vector<32x64xf32>, vector<16x64xf32>, vector<16x64xf32>, vector<16x32xf32>,
         vector<16xf32>, vector<16xf32>, index)
      -> (vector<32x64xf32>, vector<16x32xf32>, vector<8x32xf32>)
  return
}

// -----

func.func @deltas_by_name(%m: vector<32x64xf32>, %k: vector<16x64xf32>,
    %v: vector<16x32xf32>, %g: vector<16xf32>, %n: index) {
  %0:3 = gdn_tile.delta_scan %m, %k, %k, %v gates(%g, %g) valid(%n)
      // expected-error@+2 {{expected 'deltas'}}
      : vector<32x64xf32>, vector<16x64xf32>, vector<16x32xf32>,
        vector<16xf32>, vector<16x32xf32>
  return
}

// -----

func.func @c1_erase(%state: vector<32x64xf32>, %key: vector<16x64xf32>, %value: vector<16x32xf32>,
    %gate: vector<16xf32>, %erase: vector<16x32xf32>, %n: index) {
  // expected-error@+1 {{'gdn_tile.delta_scan' op expects 'erase' to be 'vector<16x64xf32>', set by 'key', but got 'vector<16x32xf32>'}}
  %0:2 = "gdn_tile.delta_scan"(%state, %key, %key, %value, %gate, %gate, %erase, %n) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 1>}>
      : (vector<32x64xf32>, vector<16x64xf32>, vector<16x64xf32>, vector<16x32xf32>,
         vector<16xf32>, vector<16xf32>, vector<16x32xf32>, index)
      -> (vector<32x64xf32>, vector<16x32xf32>)
  return
}

// -----

func.func @c1_erase_without_beta(%state: vector<32x64xf32>, %key: vector<16x64xf32>, %value: vector<16x32xf32>,
    %gate: vector<16xf32>, %n: index) {
  // expected-error@+1 {{'gdn_tile.delta_scan' op expects 'beta' to be given with 'erase', but got none}}
  %m, %o = gdn_tile.delta_scan %state, %key, %key, %value gates(%gate) erase(%key) valid(%n)
      : vector<32x64xf32>, vector<16x64xf32>, vector<16x32xf32>, vector<16xf32>
  return
}
