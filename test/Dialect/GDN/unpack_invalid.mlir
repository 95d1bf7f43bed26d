// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn.unpack: one case per constraint that the verifier owns (C1 to C5).
//
// RUN: gdn-opt %s -split-input-file -verify-diagnostics

func.func @c1_unknown_part(%x: tensor<?x?xf32>, %hk: index, %hv: index) {
  // expected-error @+1 {{'gdn.unpack' op expects 'parts' to hold letters of q k v z a b, but got 'x'}}
  %r:2 = gdn.unpack "qx" flat %x heads(%hk, %hv)
      : tensor<?x?xf32> -> tensor<?x?x64xf32>, tensor<?x?x64xf32>
  return
}

// -----

func.func @c1_repeated_part(%x: tensor<?x?xf32>, %hk: index, %hv: index) {
  // expected-error @+1 {{'gdn.unpack' op expects 'parts' to hold each letter once, but got 'q' twice}}
  %r:3 = gdn.unpack "qkq" flat %x heads(%hk, %hv)
      : tensor<?x?xf32> -> tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>
  return
}

// -----

func.func @c1_no_part(%x: tensor<?x?xf32>, %hk: index, %hv: index) {
  // expected-error @+1 {{'gdn.unpack' op expects 'parts' to name at least one part}}
  "gdn.unpack"(%x, %hk, %hv) <{layout = 0 : i32, parts = ""}> : (tensor<?x?xf32>, index, index) -> ()
  return
}

// -----

func.func @c2_number_of_results(%x: tensor<?x?xf32>, %hk: index, %hv: index) {
  // expected-error @+1 {{'gdn.unpack' op expects one result per part of "qk", which is 2, but got 3}}
  %r:3 = gdn.unpack "qk" flat %x heads(%hk, %hv)
      : tensor<?x?xf32> -> tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>
  return
}

// -----

func.func @c2_rank_of_heads(%x: tensor<?x?xf32>, %hk: index, %hv: index) {
  // expected-error @+1 {{'gdn.unpack' op expects 'q' to have rank 3, T x Hk x dk, but got rank 2}}
  %r:1 = gdn.unpack "q" flat %x heads(%hk, %hv)
      : tensor<?x?xf32> -> tensor<?x?xf32>
  return
}

// -----

func.func @c2_rank_of_gates(%x: tensor<?x?xf32>, %hk: index, %hv: index) {
  // expected-error @+1 {{'gdn.unpack' op expects 'a' to have rank 2, T x Hv, but got rank 3}}
  %r:2 = gdn.unpack "qa" flat %x heads(%hk, %hv)
      : tensor<?x?xf32> -> tensor<?x?x64xf32>, tensor<?x?x64xf32>
  return
}

// -----

func.func @c2_element_type(%x: tensor<?x?xf32>, %hk: index, %hv: index) {
  // expected-error @+1 {{'gdn.unpack' op expects 'k' to have the element type of 'packed', 'f32', but got 'bf16'}}
  %r:2 = gdn.unpack "qk" flat %x heads(%hk, %hv)
      : tensor<?x?xf32> -> tensor<?x?x64xf32>, tensor<?x?x64xbf16>
  return
}

// -----

func.func @c2_tokens(%x: tensor<5x?xf32>, %hk: index, %hv: index) {
  // expected-error @+1 {{'gdn.unpack' op expects dim 0 of 'q' to be T = 5, set by dim 0 of 'packed', but got 4}}
  %r:1 = gdn.unpack "q" flat %x heads(%hk, %hv)
      : tensor<5x?xf32> -> tensor<4x?x64xf32>
  return
}

// -----

func.func @c2_heads(%x: tensor<?x?xf32>, %hk: index, %hv: index) {
  // expected-error @+1 {{'gdn.unpack' op expects dim 1 of 'z' to be Hv = 4, set by dim 1 of 'v', but got 8}}
  %r:2 = gdn.unpack "vz" flat %x heads(%hk, %hv)
      : tensor<?x?xf32> -> tensor<?x4x64xf32>, tensor<?x8x64xf32>
  return
}

// -----

func.func @c3_dynamic(%x: tensor<?x?xf32>, %hk: index, %hv: index) {
  // expected-error @+1 {{'gdn.unpack' op expects dim 2 of 'v', dv, to be static, but got a dynamic size}}
  %r:1 = gdn.unpack "v" flat %x heads(%hk, %hv)
      : tensor<?x?xf32> -> tensor<?x?x?xf32>
  return
}

// -----

func.func @c3_agree(%x: tensor<?x?xf32>, %hk: index, %hv: index) {
  // expected-error @+1 {{'gdn.unpack' op expects dim 2 of 'k' to be dk = 64, set by dim 2 of 'q', but got 32}}
  %r:2 = gdn.unpack "qk" flat %x heads(%hk, %hv)
      : tensor<?x?xf32> -> tensor<?x?x64xf32>, tensor<?x?x32xf32>
  return
}

// -----

func.func @c3_multiple_of_8(%x: tensor<?x?xf32>, %hk: index, %hv: index) {
  // expected-error @+1 {{'gdn.unpack' op expects dk, set by dim 2 of 'q', to be a multiple of 8 from 8 to 256, but got 60}}
  %r:1 = gdn.unpack "q" flat %x heads(%hk, %hv)
      : tensor<?x?xf32> -> tensor<?x?x60xf32>
  return
}

// -----

func.func @c3_too_wide(%x: tensor<?x?xf32>, %hk: index, %hv: index) {
  // expected-error @+1 {{'gdn.unpack' op expects dv, set by dim 2 of 'v', to be a multiple of 8 from 8 to 256, but got 264}}
  %r:1 = gdn.unpack "v" flat %x heads(%hk, %hv)
      : tensor<?x?xf32> -> tensor<?x?x264xf32>
  return
}

// -----

func.func @c4_columns(%x: tensor<?x500xf32>, %hk: index, %hv: index) {
  // expected-error @+1 {{'gdn.unpack' op expects the columns of the parts to add up to 500, set by dim 1 of 'packed', but got 512}}
  %r:3 = gdn.unpack "qkv" flat %x heads(%hk, %hv)
      : tensor<?x500xf32> -> tensor<?x2x64xf32>, tensor<?x2x64xf32>, tensor<?x4x64xf32>
  return
}

// -----

func.func @c4_columns_overflow(%x: tensor<?x500xf32>, %hk: index, %hv: index) {
  // expected-error @+1 {{'gdn.unpack' op expects the columns of the parts to add up to 500, set by dim 1 of 'packed', but got more than 64 bits hold}}
  %r:1 = gdn.unpack "q" flat %x heads(%hk, %hv)
      : tensor<?x500xf32> -> tensor<?x4611686018427387904x64xf32>
  return
}

// -----

func.func @c5_heads_do_not_divide(%x: tensor<?x?xf32>, %hk: index, %hv: index) {
  // expected-error @+1 {{'gdn.unpack' op expects Hv to be a multiple of Hk, but got Hv = 6, set by dim 1 of 'v', and Hk = 4, set by dim 1 of 'q'}}
  %r:2 = gdn.unpack "qv" flat %x heads(%hk, %hv)
      : tensor<?x?xf32> -> tensor<?x4x64xf32>, tensor<?x6x64xf32>
  return
}
