// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_tile.fill: the constraint that the verifier owns (C1).
//
// RUN: gdn-tile-opt %s -split-input-file -verify-diagnostics

func.func @c1_element_types(%x: f32) -> vector<16x128xbf16> {
  // expected-error@+1 {{'gdn_tile.fill' op expects 'value' to have the tile's element type 'bf16', but got 'f32'}}
  %0 = gdn_tile.fill %x : f32 -> vector<16x128xbf16>
  return %0 : vector<16x128xbf16>
}
