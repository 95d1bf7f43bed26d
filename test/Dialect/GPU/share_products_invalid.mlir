// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_gpu.share_products: every message of its verifier, and the barrier that it
// needs.
//
// RUN: gdn-gpu-opt %s -split-input-file -verify-diagnostics -gdn-gpu-check

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 4>
!state = !gdn_gpu.fragment<128x128xbf16, #rows>
!with = !gdn_gpu.shared<8x128xf32>
func.func @share_products_c1_type(%s: !state, %n: index)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  %k = gdn_gpu.alloc : !with
  // expected-error@+1 {{'gdn_gpu.share_products' op expects 'lhs' to be a tile of rank 2 of f32, but got '!gdn_gpu.fragment<128x128xbf16}}
  gdn_gpu.share_products %s, %k, %k rows(%n), %k, %k : !state, !with, !with
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 4, lanes = 8, vector = 4>
!state = !gdn_gpu.fragment<128x128xf32, #rows>
!with = !gdn_gpu.shared<8x128xf32>
func.func @share_products_c1_layout(%s: !state, %n: index)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  %k = gdn_gpu.alloc : !with
  // expected-error@+1 {{'gdn_gpu.share_products' op expects 'lhs' in a layout with lanes = 4 and a vector of 4 or 8, but got '!gdn_gpu.fragment<128x128xf32, #gdn_gpu.rows<warps = 4, lanes = 8, vector = 4>>'}}
  gdn_gpu.share_products %s, %k, %k rows(%n), %k, %k : !state, !with, !with
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 4>
!state = !gdn_gpu.fragment<32x128xf32, #rows>
!with = !gdn_gpu.shared<8x128xf32>
func.func @share_products_c1_sizes(%s: !state, %n: index)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  %k = gdn_gpu.alloc : !with
  // expected-error@+1 {{'gdn_gpu.share_products' op expects a multiple of 64 rows and of 16 columns, but got}}
  gdn_gpu.share_products %s, %k, %k rows(%n), %k, %k : !state, !with, !with
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 4>
!state = !gdn_gpu.fragment<64x128xf32, #rows>
!with = !gdn_gpu.shared<6x128xf32>
!to = !gdn_gpu.shared<6x64xf32>
func.func @share_products_c2_first(%s: !state, %n: index)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  %k = gdn_gpu.alloc : !with
  %d = gdn_gpu.alloc : !to
  // expected-error@+1 {{'gdn_gpu.share_products' op expects 'first' and 'second' to have a multiple of 4 rows of 128 f32, but got '!gdn_gpu.shared<6x128xf32>'}}
  gdn_gpu.share_products %s, %k, %k rows(%n), %d, %d : !state, !with, !to
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 4>
!state = !gdn_gpu.fragment<64x128xf32, #rows>
!with = !gdn_gpu.shared<8x128xf32>
!to = !gdn_gpu.shared<8x128xf32>
func.func @share_products_c2_to(%s: !state, %n: index)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  %k = gdn_gpu.alloc : !with
  // expected-error@+1 {{'gdn_gpu.share_products' op expects 'first_to' and 'second_to' to have 8 rows of 64 f32, but got '!gdn_gpu.shared<8x128xf32>'}}
  gdn_gpu.share_products %s, %k, %k rows(%n), %k, %k : !state, !with, !to
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 4>
!state = !gdn_gpu.fragment<64x128xf32, #rows>
!with = !gdn_gpu.shared<8x128xf32>
!to = !gdn_gpu.shared<8x64xf32>
func.func @share_products_c4(%s: !state, %n: index)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  %k = gdn_gpu.alloc : !with
  %d = gdn_gpu.alloc : !to
  gdn_gpu.warps 0 for 1 {
    // expected-error@+1 {{'gdn_gpu.share_products' op expects to be outside gdn_gpu.warps, which only some warps enter}}
    gdn_gpu.share_products %s, %k, %k rows(%n), %d, %d : !state, !with, !to
  }
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 4>
#one = #gdn_gpu.rows<warps = 4, lanes = 32, vector = 4>
!state = !gdn_gpu.fragment<64x128xf32, #rows>
!keys = !gdn_gpu.fragment<8x128xf32, #one>
!with = !gdn_gpu.shared<8x128xf32>
!to = !gdn_gpu.shared<8x64xf32>
func.func @share_products_c3(%s: !state, %t: !keys, %n: index)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  %k = gdn_gpu.alloc : !with
  %q = gdn_gpu.alloc : !with
  %d = gdn_gpu.alloc : !to
  %e = gdn_gpu.alloc : !to
  gdn_gpu.store_shared %t, %k : !keys, !with
  gdn_gpu.barrier
  // expected-note@+1 {{access before it}}
  gdn_gpu.store_shared %t, %q : !keys, !with
  // expected-error@+1 {{'gdn_gpu.share_products' op expects a gdn_gpu.barrier between it and the access before it}}
  gdn_gpu.share_products %s, %k, %q rows(%n), %d, %e : !state, !with, !to
  return
}
