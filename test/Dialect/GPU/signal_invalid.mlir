// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// RUN: gdn-gpu-opt %s -split-input-file -verify-diagnostics

func.func @signal_c1(%x: memref<?xf32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 64 : i64}} {
  // expected-error@+1 {{'gdn_gpu.signal' op expects to be inside a gdn_gpu.warps or a gdn_gpu.each_warp}}
  gdn_gpu.signal 16, %x[%i] : memref<?xf32>
  return
}

// -----

func.func @signal_c2(%x: memref<?x?xf32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 64 : i64}} {
  gdn_gpu.warps 0 for 2 {
    // expected-error@+1 {{'gdn_gpu.signal' op expects one index per dimension of 'view', which is 2, but got 1}}
    gdn_gpu.signal 16, %x[%i] : memref<?x?xf32>
  }
  return
}

// -----

func.func @await_signals_c1(%x: memref<?xf32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 64 : i64}} {
  // expected-error@+1 {{'gdn_gpu.await_signals' op expects to be inside a gdn_gpu.warps or a gdn_gpu.each_warp}}
  gdn_gpu.await_signals 16, %x[%i] : memref<?xf32>
  return
}

// -----

func.func @await_signals_c2(%x: memref<?xi32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 64 : i64}} {
  gdn_gpu.warps 0 for 2 {
    // expected-error@+1 {{'gdn_gpu.await_signals' op expects counters in a view of f32, but got 'memref<?xi32>'}}
    gdn_gpu.await_signals 16, %x[%i] : memref<?xi32>
  }
  return
}
