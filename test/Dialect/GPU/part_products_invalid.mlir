// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_gpu.share_part_products: every message of its verifier, and the barriers that
// it needs.
//
// RUN: gdn-gpu-opt %s -split-input-file -verify-diagnostics -gdn-gpu-check

#rows = #gdn_gpu.rows<warps = 1, lanes = 4, vector = 8>
func.func @share_part_products_c1_type(%s: !gdn_gpu.fragment<16x128xf32, #rows>, %x: f32)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %k = gdn_gpu.alloc : !gdn_gpu.shared<3x128xbf16>
  %to = gdn_gpu.alloc : !gdn_gpu.shared<2x16xf32>
  // expected-error@+1 {{'gdn_gpu.share_part_products' op expects 'lhs' to be a tile of rank 2 of bf16 or f16, but got '!gdn_gpu.fragment<16x128xf32}}
  gdn_gpu.share_part_products %s, %k scaled(%x), %k scaled(%x), %to
      : !gdn_gpu.fragment<16x128xf32, #rows>, !gdn_gpu.shared<3x128xbf16>, !gdn_gpu.shared<2x16xf32>
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 1, lanes = 4, vector = 4>
func.func @share_part_products_c1_layout(%s: !gdn_gpu.fragment<16x128xbf16, #rows>, %x: f32)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %k = gdn_gpu.alloc : !gdn_gpu.shared<3x128xbf16>
  %to = gdn_gpu.alloc : !gdn_gpu.shared<2x16xf32>
  // expected-error@+1 {{'gdn_gpu.share_part_products' op expects 'lhs' in a layout with lanes = 4 and a vector of 8, not tall, but got}}
  gdn_gpu.share_part_products %s, %k scaled(%x), %k scaled(%x), %to
      : !gdn_gpu.fragment<16x128xbf16, #rows>, !gdn_gpu.shared<3x128xbf16>, !gdn_gpu.shared<2x16xf32>
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 1, lanes = 4, vector = 8>
func.func @share_part_products_c1_sizes(%s: !gdn_gpu.fragment<24x128xbf16, #rows>, %x: f32)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %k = gdn_gpu.alloc : !gdn_gpu.shared<3x128xbf16>
  %to = gdn_gpu.alloc : !gdn_gpu.shared<2x24xf32>
  // expected-error@+1 {{'gdn_gpu.share_part_products' op expects a multiple of 16 rows and of 32 columns, but got '!gdn_gpu.fragment<24x128xbf16}}
  gdn_gpu.share_part_products %s, %k scaled(%x), %k scaled(%x), %to
      : !gdn_gpu.fragment<24x128xbf16, #rows>, !gdn_gpu.shared<3x128xbf16>, !gdn_gpu.shared<2x24xf32>
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 1, lanes = 4, vector = 8>
func.func @share_part_products_c2_first(%s: !gdn_gpu.fragment<16x128xbf16, #rows>, %x: f32)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %k = gdn_gpu.alloc : !gdn_gpu.shared<3x128xf16>
  %to = gdn_gpu.alloc : !gdn_gpu.shared<2x16xf32>
  // expected-error@+1 {{'gdn_gpu.share_part_products' op expects 'first' and 'second' to be 3 x 128 of 'bf16', but got '!gdn_gpu.shared<3x128xf16>'}}
  gdn_gpu.share_part_products %s, %k scaled(%x), %k scaled(%x), %to
      : !gdn_gpu.fragment<16x128xbf16, #rows>, !gdn_gpu.shared<3x128xf16>, !gdn_gpu.shared<2x16xf32>
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 1, lanes = 4, vector = 8>
func.func @share_part_products_c2_to(%s: !gdn_gpu.fragment<16x128xbf16, #rows>, %x: f32)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %k = gdn_gpu.alloc : !gdn_gpu.shared<3x128xbf16>
  %to = gdn_gpu.alloc : !gdn_gpu.shared<2x8xf32>
  // expected-error@+1 {{'gdn_gpu.share_part_products' op expects 'to' to be 2 x 16 of f32, but got '!gdn_gpu.shared<2x8xf32>'}}
  gdn_gpu.share_part_products %s, %k scaled(%x), %k scaled(%x), %to
      : !gdn_gpu.fragment<16x128xbf16, #rows>, !gdn_gpu.shared<3x128xbf16>, !gdn_gpu.shared<2x8xf32>
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 1, lanes = 4, vector = 8>
func.func @share_part_products_c3(%s: !gdn_gpu.fragment<16x128xbf16, #rows>, %x: f32)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %k = gdn_gpu.alloc : !gdn_gpu.shared<3x128xbf16>
  %to = gdn_gpu.alloc : !gdn_gpu.shared<2x16xf32>
  // expected-error@+1 {{'gdn_gpu.share_part_products' op expects a tile that has been shared on every way to it}}
  gdn_gpu.share_part_products %s, %k scaled(%x), %k scaled(%x), %to
      : !gdn_gpu.fragment<16x128xbf16, #rows>, !gdn_gpu.shared<3x128xbf16>, !gdn_gpu.shared<2x16xf32>
  return
}
