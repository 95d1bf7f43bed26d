// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: gdn-tile-opt %s -split-input-file -verify-diagnostics

func.func @signal_c1(%x: memref<?x?xf32>, %i: index) {
  // expected-error@+1 {{'gdn_tile.signal' op expects one index per dimension of 'view', which is 2, but got 1}}
  gdn_tile.signal 64, %x[%i] : memref<?x?xf32>
  return
}

// -----

func.func @await_signals_c1(%x: memref<?xi32>, %i: index) {
  // expected-error@+1 {{'gdn_tile.await_signals' op expects counters in a view of f32, but got 'memref<?xi32>'}}
  gdn_tile.await_signals 128, %x[%i] : memref<?xi32>
  return
}
