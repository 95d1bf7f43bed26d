// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_gpu.store_element: every message of its verifier.
//
// RUN: gdn-gpu-opt %s -split-input-file -verify-diagnostics

func.func @store_element_c1_fewer(%x: i32, %view: memref<?x4xi32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  // expected-error@+1 {{'gdn_gpu.store_element' op expects one index per dimension of 'view', which is 2, but got 1}}
  gdn_gpu.store_element %x, %view[%i] : i32, memref<?x4xi32>
  return
}

// -----

func.func @store_element_c1_more(%x: i32, %view: memref<?xi32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  // expected-error@+1 {{'gdn_gpu.store_element' op expects one index per dimension of 'view', which is 1, but got 2}}
  gdn_gpu.store_element %x, %view[%i, %i] : i32, memref<?xi32>
  return
}

// -----

func.func @store_element_c2(%x: i32, %view: memref<?xi64>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  // expected-error@+1 {{'gdn_gpu.store_element' op expects 'value' to have the element type of 'view' 'i64', but got 'i32'}}
  gdn_gpu.store_element %x, %view[%i] : i32, memref<?xi64>
  return
}

// -----

func.func @store_element_of_floats(%x: f32, %view: memref<?xf32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  // expected-error@+1 {{'gdn_gpu.store_element' op operand #0 must be 1-bit signless integer or 32-bit signless integer or 64-bit signless integer, but got 'f32'}}
  gdn_gpu.store_element %x, %view[%i] : f32, memref<?xf32>
  return
}
