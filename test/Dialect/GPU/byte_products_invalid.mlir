// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_gpu.share_byte_products, share_column_parts and add_part_products: every
// message of their verifiers, and the barriers that they need.
//
// RUN: gdn-gpu-opt %s -split-input-file -verify-diagnostics -gdn-gpu-check

#rows = #gdn_gpu.rows<warps = 1, lanes = 4, vector = 16>
!bytes = !gdn_gpu.fragment<8x128xi8, #rows>
!numbers = !gdn_gpu.fragment<8xf32, #gdn_gpu.per_row<#rows>>
!row = !gdn_gpu.shared<3x128xi8>
!sums = !gdn_gpu.shared<4x8xf32>
func.func @share_byte_products_c1_counts(%u: !bytes, %s: !numbers, %x: f32)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %k = gdn_gpu.alloc : !row
  %to = gdn_gpu.alloc : !sums
  // expected-error@+1 {{'gdn_gpu.share_byte_products' op expects one or two fragments of 'upper', of 'low' none or as many, and of 'scales' as many, but got 1, 0 and 2}}
  gdn_gpu.share_byte_products %u low() scales(%s, %s), %k scaled(%x) to(%c0), %k scaled(%x) to(%c1), %to : !bytes, !numbers, !row, !sums
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 1, lanes = 4, vector = 16>
!bytes = !gdn_gpu.fragment<8x128xf32, #rows>
!numbers = !gdn_gpu.fragment<8xf32, #gdn_gpu.per_row<#rows>>
!row = !gdn_gpu.shared<3x128xi8>
!sums = !gdn_gpu.shared<4x8xf32>
func.func @share_byte_products_c1_type(%u: !bytes, %s: !numbers, %x: f32)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %k = gdn_gpu.alloc : !row
  %to = gdn_gpu.alloc : !sums
  // expected-error@+1 {{'gdn_gpu.share_byte_products' op expects 'upper' to be a tile of rank 2 of i8, but got '!gdn_gpu.fragment<8x128xf32}}
  gdn_gpu.share_byte_products %u low() scales(%s), %k scaled(%x) to(%c0), %k scaled(%x) to(%c1), %to : !bytes, !numbers, !row, !sums
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 1, lanes = 8, vector = 16>
!bytes = !gdn_gpu.fragment<8x128xi8, #rows>
!numbers = !gdn_gpu.fragment<8xf32, #gdn_gpu.per_row<#rows>>
!row = !gdn_gpu.shared<3x128xi8>
!sums = !gdn_gpu.shared<4x8xf32>
func.func @share_byte_products_c1_layout(%u: !bytes, %s: !numbers, %x: f32)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %k = gdn_gpu.alloc : !row
  %to = gdn_gpu.alloc : !sums
  // expected-error@+1 {{'gdn_gpu.share_byte_products' op expects 'upper' in a layout with lanes = 4 and a vector of 16, not tall, but got}}
  gdn_gpu.share_byte_products %u low() scales(%s), %k scaled(%x) to(%c0), %k scaled(%x) to(%c1), %to : !bytes, !numbers, !row, !sums
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 1, lanes = 4, vector = 16>
!bytes = !gdn_gpu.fragment<12x128xi8, #rows>
!numbers = !gdn_gpu.fragment<12xf32, #gdn_gpu.per_row<#rows>>
!row = !gdn_gpu.shared<3x128xi8>
!sums = !gdn_gpu.shared<4x12xf32>
func.func @share_byte_products_c1_sizes(%u: !bytes, %s: !numbers, %x: f32)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %k = gdn_gpu.alloc : !row
  %to = gdn_gpu.alloc : !sums
  // expected-error@+1 {{'gdn_gpu.share_byte_products' op expects a multiple of 8 rows and of 64 columns, but got}}
  gdn_gpu.share_byte_products %u low() scales(%s), %k scaled(%x) to(%c0), %k scaled(%x) to(%c1), %to : !bytes, !numbers, !row, !sums
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 1, lanes = 4, vector = 16>
!bytes = !gdn_gpu.fragment<8x128xi8, #rows>
!numbers = !gdn_gpu.fragment<8xf32, #gdn_gpu.per_row<#rows>>
!row = !gdn_gpu.shared<3x128xi8>
!sums = !gdn_gpu.shared<4x8xf32>
func.func @share_byte_products_c1_one_type(%u: !bytes, %l: !gdn_gpu.fragment<16x128xi8, #rows>, %s: !numbers, %x: f32)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %c0 = arith.constant 0 : index
  %k = gdn_gpu.alloc : !row
  %to = gdn_gpu.alloc : !sums
  // expected-error@+1 {{'gdn_gpu.share_byte_products' op expects fragments of one type, '!gdn_gpu.fragment<8x128xi8, #gdn_gpu.rows<warps = 1, lanes = 4, vector = 16>>', but got '!gdn_gpu.fragment<16x128xi8}}
  "gdn_gpu.share_byte_products"(%u, %l, %s, %k, %x, %c0, %k, %x, %c0, %to) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 1, 1, 1>}>
      : (!bytes, !gdn_gpu.fragment<16x128xi8, #rows>, !numbers, !row, f32, index, !row, f32, index, !sums) -> ()
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 1, lanes = 4, vector = 16>
!bytes = !gdn_gpu.fragment<8x128xi8, #rows>
!numbers = !gdn_gpu.fragment<16xf32, #gdn_gpu.per_row<#rows>>
!row = !gdn_gpu.shared<3x128xi8>
!sums = !gdn_gpu.shared<4x8xf32>
func.func @share_byte_products_c1_scales(%u: !bytes, %s: !numbers, %x: f32)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %k = gdn_gpu.alloc : !row
  %to = gdn_gpu.alloc : !sums
  // expected-error@+1 {{'gdn_gpu.share_byte_products' op expects 'scales' to be '!gdn_gpu.fragment<8xf32, #gdn_gpu.per_row<<warps = 1, lanes = 4, vector = 16>>>', but got '!gdn_gpu.fragment<16xf32}}
  gdn_gpu.share_byte_products %u low() scales(%s), %k scaled(%x) to(%c0), %k scaled(%x) to(%c1), %to : !bytes, !numbers, !row, !sums
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 1, lanes = 4, vector = 16>
!bytes = !gdn_gpu.fragment<8x128xi8, #rows>
!numbers = !gdn_gpu.fragment<8xf32, #gdn_gpu.per_row<#rows>>
!row = !gdn_gpu.shared<2x128xi8>
!sums = !gdn_gpu.shared<4x8xf32>
func.func @share_byte_products_c2_first(%u: !bytes, %s: !numbers, %x: f32)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %k = gdn_gpu.alloc : !row
  %to = gdn_gpu.alloc : !sums
  // expected-error@+1 {{'gdn_gpu.share_byte_products' op expects 'first' and 'second' to be of 3 rows of 128 i8, but got '!gdn_gpu.shared<2x128xi8>'}}
  gdn_gpu.share_byte_products %u low() scales(%s), %k scaled(%x) to(%c0), %k scaled(%x) to(%c1), %to : !bytes, !numbers, !row, !sums
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 1, lanes = 4, vector = 16>
!bytes = !gdn_gpu.fragment<8x128xi8, #rows>
!numbers = !gdn_gpu.fragment<8xf32, #gdn_gpu.per_row<#rows>>
!row = !gdn_gpu.shared<3x128xi8>
!sums = !gdn_gpu.shared<4x16xf32>
func.func @share_byte_products_c2_to(%u: !bytes, %s: !numbers, %x: f32)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %k = gdn_gpu.alloc : !row
  %to = gdn_gpu.alloc : !sums
  // expected-error@+1 {{'gdn_gpu.share_byte_products' op expects 'to' to have rows of 8 f32, but got '!gdn_gpu.shared<4x16xf32>'}}
  gdn_gpu.share_byte_products %u low() scales(%s), %k scaled(%x) to(%c0), %k scaled(%x) to(%c1), %to : !bytes, !numbers, !row, !sums
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 1, lanes = 4, vector = 16>
!bytes = !gdn_gpu.fragment<8x128xi8, #rows>
!numbers = !gdn_gpu.fragment<8xf32, #gdn_gpu.per_row<#rows>>
!row = !gdn_gpu.shared<3x128xi8>
!sums = !gdn_gpu.shared<4x8xf32>
func.func @share_byte_products_c3(%u: !bytes, %s: !numbers, %x: f32)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %k = gdn_gpu.alloc : !row
  %to = gdn_gpu.alloc : !sums
  // expected-error@+1 {{'gdn_gpu.share_byte_products' op expects a tile that has been shared on every way to it}}
  gdn_gpu.share_byte_products %u low() scales(%s), %k scaled(%x) to(%c0), %k scaled(%x) to(%c1), %to : !bytes, !numbers, !row, !sums
  return
}

// -----

func.func @share_column_parts_c1_from() attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %from = gdn_gpu.alloc : !gdn_gpu.shared<16x128xbf16>
  %to = gdn_gpu.alloc : !gdn_gpu.shared<128x32xbf16>
  // expected-error@+1 {{'gdn_gpu.share_column_parts' op expects 'from' to be a tile of rank 2 of f32 or f16, but got '!gdn_gpu.shared<16x128xbf16>'}}
  gdn_gpu.share_column_parts %from, %to : !gdn_gpu.shared<16x128xbf16>, !gdn_gpu.shared<128x32xbf16>
  return
}

// -----

func.func @share_column_parts_c1_to() attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %from = gdn_gpu.alloc : !gdn_gpu.shared<20x128xf32>
  %to = gdn_gpu.alloc : !gdn_gpu.shared<128x32xbf16>
  // expected-error@+1 {{'gdn_gpu.share_column_parts' op expects 'to' to be 128 x 64 of bf16, but got '!gdn_gpu.shared<128x32xbf16>'}}
  gdn_gpu.share_column_parts %from, %to : !gdn_gpu.shared<20x128xf32>, !gdn_gpu.shared<128x32xbf16>
  return
}

// -----

func.func @share_column_parts_c2() attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %from = gdn_gpu.alloc : !gdn_gpu.shared<16x128xf32>
  %to = gdn_gpu.alloc : !gdn_gpu.shared<128x32xbf16>
  // expected-error@+1 {{'gdn_gpu.share_column_parts' op expects a tile that has been shared on every way to it}}
  gdn_gpu.share_column_parts %from, %to : !gdn_gpu.shared<16x128xf32>, !gdn_gpu.shared<128x32xbf16>
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 1, lanes = 4, vector = 16>
func.func @add_part_products_c1_type(%state: !gdn_gpu.fragment<8x128xbf16, #rows>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %deltas = gdn_gpu.alloc : !gdn_gpu.shared<16x8xf32>
  %weights = gdn_gpu.alloc : !gdn_gpu.shared<16xf32>
  %parts = gdn_gpu.alloc : !gdn_gpu.shared<128x32xbf16>
  // expected-error@+1 {{'gdn_gpu.add_part_products' op expects 'sum' to be a tile of rank 2 of f32, but got '!gdn_gpu.fragment<8x128xbf16}}
  %new = gdn_gpu.add_part_products %state, %deltas[%i], %weights, %parts
      : !gdn_gpu.fragment<8x128xbf16, #rows>, !gdn_gpu.shared<16x8xf32>, !gdn_gpu.shared<16xf32>, !gdn_gpu.shared<128x32xbf16>
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 1, lanes = 4, vector = 4>
func.func @add_part_products_c1_layout(%state: !gdn_gpu.fragment<8x128xf32, #rows>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %deltas = gdn_gpu.alloc : !gdn_gpu.shared<16x8xf32>
  %weights = gdn_gpu.alloc : !gdn_gpu.shared<16xf32>
  %parts = gdn_gpu.alloc : !gdn_gpu.shared<128x32xbf16>
  // expected-error@+1 {{'gdn_gpu.add_part_products' op expects 'sum' in a layout with lanes = 4 and a vector of 8 or 16, not tall, but got}}
  %new = gdn_gpu.add_part_products %state, %deltas[%i], %weights, %parts
      : !gdn_gpu.fragment<8x128xf32, #rows>, !gdn_gpu.shared<16x8xf32>, !gdn_gpu.shared<16xf32>, !gdn_gpu.shared<128x32xbf16>
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 1, lanes = 4, vector = 16>
func.func @add_part_products_c1_sizes(%state: !gdn_gpu.fragment<8x96xf32, #rows>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %deltas = gdn_gpu.alloc : !gdn_gpu.shared<16x8xf32>
  %weights = gdn_gpu.alloc : !gdn_gpu.shared<16xf32>
  %parts = gdn_gpu.alloc : !gdn_gpu.shared<128x32xbf16>
  // expected-error@+1 {{'gdn_gpu.add_part_products' op expects a multiple of 8 rows and of 64 columns, but got '!gdn_gpu.fragment<8x96xf32}}
  %new = gdn_gpu.add_part_products %state, %deltas[%i], %weights, %parts
      : !gdn_gpu.fragment<8x96xf32, #rows>, !gdn_gpu.shared<16x8xf32>, !gdn_gpu.shared<16xf32>, !gdn_gpu.shared<128x32xbf16>
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 1, lanes = 4, vector = 16>
func.func @add_part_products_c2_weights(%state: !gdn_gpu.fragment<8x128xf32, #rows>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %deltas = gdn_gpu.alloc : !gdn_gpu.shared<16x8xf32>
  %weights = gdn_gpu.alloc : !gdn_gpu.shared<18xf32>
  %parts = gdn_gpu.alloc : !gdn_gpu.shared<128x32xbf16>
  // expected-error@+1 {{'gdn_gpu.add_part_products' op expects 'weights' to be a multiple of 4 of f32, but got '!gdn_gpu.shared<18xf32>'}}
  %new = gdn_gpu.add_part_products %state, %deltas[%i], %weights, %parts
      : !gdn_gpu.fragment<8x128xf32, #rows>, !gdn_gpu.shared<16x8xf32>, !gdn_gpu.shared<18xf32>, !gdn_gpu.shared<128x32xbf16>
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 1, lanes = 4, vector = 16>
func.func @add_part_products_c2_deltas(%state: !gdn_gpu.fragment<8x128xf32, #rows>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %deltas = gdn_gpu.alloc : !gdn_gpu.shared<24x8xf32>
  %weights = gdn_gpu.alloc : !gdn_gpu.shared<16xf32>
  %parts = gdn_gpu.alloc : !gdn_gpu.shared<128x32xbf16>
  // expected-error@+1 {{'gdn_gpu.add_part_products' op expects 'deltas' to be a multiple of 16 rows of 8 f32 or f16, but got '!gdn_gpu.shared<24x8xf32>'}}
  %new = gdn_gpu.add_part_products %state, %deltas[%i], %weights, %parts
      : !gdn_gpu.fragment<8x128xf32, #rows>, !gdn_gpu.shared<24x8xf32>, !gdn_gpu.shared<16xf32>, !gdn_gpu.shared<128x32xbf16>
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 1, lanes = 4, vector = 16>
func.func @add_part_products_c2_parts(%state: !gdn_gpu.fragment<8x128xf32, #rows>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %deltas = gdn_gpu.alloc : !gdn_gpu.shared<16x8xf32>
  %weights = gdn_gpu.alloc : !gdn_gpu.shared<16xf32>
  %parts = gdn_gpu.alloc : !gdn_gpu.shared<128x16xbf16>
  // expected-error@+1 {{'gdn_gpu.add_part_products' op expects 'parts' to be 128 x 32 of bf16, but got '!gdn_gpu.shared<128x16xbf16>'}}
  %new = gdn_gpu.add_part_products %state, %deltas[%i], %weights, %parts
      : !gdn_gpu.fragment<8x128xf32, #rows>, !gdn_gpu.shared<16x8xf32>, !gdn_gpu.shared<16xf32>, !gdn_gpu.shared<128x16xbf16>
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 1, lanes = 4, vector = 16>
func.func @add_part_products_c3(%state: !gdn_gpu.fragment<8x128xf32, #rows>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %deltas = gdn_gpu.alloc : !gdn_gpu.shared<16x8xf32>
  %weights = gdn_gpu.alloc : !gdn_gpu.shared<16xf32>
  %parts = gdn_gpu.alloc : !gdn_gpu.shared<128x32xbf16>
  // expected-error@+1 {{'gdn_gpu.add_part_products' op expects a tile that has been shared on every way to it}}
  %new = gdn_gpu.add_part_products %state, %deltas[%i], %weights, %parts
      : !gdn_gpu.fragment<8x128xf32, #rows>, !gdn_gpu.shared<16x8xf32>, !gdn_gpu.shared<16xf32>, !gdn_gpu.shared<128x32xbf16>
  return
}
