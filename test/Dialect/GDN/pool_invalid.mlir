// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// !gdn.pool: one case per constraint that the verifier owns (C1 to C4).
//
// RUN: gdn-opt %s -split-input-file -verify-diagnostics

// expected-error @+1 {{expects a pool to have rank 2 or more, but got rank 1}}
func.func private @c1_rank(!gdn.pool<?xf32>)

// -----

// expected-error @+1 {{expects dim 0 of a pool, its slots, to be dynamic, but got 16}}
func.func private @c2_static_slots(!gdn.pool<16x?xf32>)

// -----

// expected-error @+1 {{expects dim 2 of a pool to be positive or dynamic, but got 0}}
func.func private @c3_zero(!gdn.pool<?x?x0xf32>)

// -----

// expected-error @+1 {{expects the elements of a pool to be f32, bf16, f16, i32 or i8, but got 'i16'}}
func.func private @c4_element(!gdn.pool<?x?xi16>)
