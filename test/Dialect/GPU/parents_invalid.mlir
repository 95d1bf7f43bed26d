// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops that ask what is around them, where nothing is.
//
// RUN: gdn-gpu-opt %s -split-input-file -verify-diagnostics

// expected-error@+1 {{'gdn_gpu.arrive' op expects a function around it}}
gdn_gpu.arrive for 0

// -----

// expected-error@+1 {{'gdn_gpu.await_arrivals' op expects a function around it}}
gdn_gpu.await_arrivals

// -----

// expected-error@+1 {{'gdn_gpu.alloc' op expects to be directly in the function, but is in 'builtin.module'}}
%buffer = gdn_gpu.alloc : !gdn_gpu.shared<4x4xf32>
