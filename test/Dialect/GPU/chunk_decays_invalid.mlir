// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ops of a chunk with a decay per channel that verifiers refuse.
//
// RUN: gdn-gpu-opt %s -split-input-file -verify-diagnostics

!logs = !gdn_gpu.shared<32x128xf32, swizzled>
!first = !gdn_gpu.shared<16x128xf16, swizzled>
!decays = !gdn_gpu.shared<2x128xf32>
!products = !gdn_gpu.shared<32x64xf16, swizzled>

func.func @decay_within_c1(%q: !products, %g: !logs, %f: !first, %d: !decays)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  // expected-error@+1 {{'gdn_gpu.decay_within' op expects 'query' to be '!gdn_gpu.shared<32x128xf16, swizzled>', or of bf16, but got '!gdn_gpu.shared<32x64xf16, swizzled>'}}
  gdn_gpu.decay_within %q, %q, %g, %f, %d : !products, !logs, !first, !decays
  return
}

// -----

!tile = !gdn_gpu.shared<32x128xf16, swizzled>
!first = !gdn_gpu.shared<16x128xf16, swizzled>
!decays = !gdn_gpu.shared<2x128xf32>

func.func @decay_within_c1_logs(%q: !tile, %g: !tile, %f: !first, %d: !decays)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  // expected-error@+1 {{'gdn_gpu.decay_within' op expects 'log_decay' to be '!gdn_gpu.shared<32x128xf32, swizzled>' or '!gdn_gpu.shared<32x128xf16, swizzled, apart = 2>', but got '!gdn_gpu.shared<32x128xf16, swizzled>'}}
  gdn_gpu.decay_within %q, %q, %g, %f, %d : !tile, !tile, !first, !decays
  return
}

// -----

!tile = !gdn_gpu.shared<32x128xf16, swizzled>
!logs = !gdn_gpu.shared<32x128xf32, swizzled>
!decays = !gdn_gpu.shared<2x128xf32>

func.func @decay_within_c1_first_keys(%q: !tile, %g: !logs, %f: !tile, %d: !decays)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  // expected-error@+1 {{'gdn_gpu.decay_within' op expects 'first_keys' to be '!gdn_gpu.shared<16x128xf16, swizzled>', but got '!gdn_gpu.shared<32x128xf16, swizzled>'}}
  gdn_gpu.decay_within %q, %q, %g, %f, %d : !tile, !logs, !tile, !decays
  return
}

// -----

!tile = !gdn_gpu.shared<32x128xf16, swizzled>
!logs = !gdn_gpu.shared<32x128xf32, swizzled>
!first = !gdn_gpu.shared<16x128xf16, swizzled>
!end = !gdn_gpu.shared<128xf32>

func.func @decay_within_c2(%q: !tile, %g: !logs, %f: !first, %d: !end)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  // expected-error@+1 {{'gdn_gpu.decay_within' op expects 'decays' to be '!gdn_gpu.shared<2x128xf32>', but got '!gdn_gpu.shared<128xf32>'}}
  gdn_gpu.decay_within %q, %q, %g, %f, %d : !tile, !logs, !first, !end
  return
}

// -----

!tile = !gdn_gpu.shared<32x128xf16, swizzled>
!logs = !gdn_gpu.shared<32x128xf32, swizzled>
!first = !gdn_gpu.shared<16x128xf16, swizzled>
!decays = !gdn_gpu.shared<2x128xf32>

func.func @decay_within_c2_norms(%q: !tile, %g: !logs, %f: !first, %d: !decays)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  // expected-error@+1 {{'gdn_gpu.decay_within' op expects 'norms' to be '!gdn_gpu.shared<2x32xf32>', but got '!gdn_gpu.shared<2x128xf32>'}}
  gdn_gpu.decay_within %q, %q, %g, %f, %d norms(%d) : !tile, !logs, !first, !decays, !decays
  return
}

// -----

!tile = !gdn_gpu.shared<32x128xf16, swizzled>
!logs = !gdn_gpu.shared<32x128xf32, swizzled>
!first = !gdn_gpu.shared<16x128xf16, swizzled>
!decays = !gdn_gpu.shared<2x128xf32>

func.func @decay_within_c3(%q: !tile, %g: !logs, %f: !first, %d: !decays)
    attributes {gdn_gpu.kernel = {threads = 64 : i64}} {
  // expected-error@+1 {{'gdn_gpu.decay_within' op expects to be run by 4 warps, but got 2}}
  gdn_gpu.decay_within %q, %q, %g, %f, %d : !tile, !logs, !first, !decays
  return
}

// -----

!logs = !gdn_gpu.shared<32x128xf32, swizzled>
!first = !gdn_gpu.shared<16x128xf16, swizzled>
!decays = !gdn_gpu.shared<2x128xf32>
!products = !gdn_gpu.shared<32x64xf16, swizzled>
!end = !gdn_gpu.shared<128xf32>

func.func @decay_between_c1(%q: !gdn_gpu.shared<32x128xbf16, swizzled>, %g: !logs, %f: !first, %d: !decays, %p: !products, %e: !end, %s: f32)
    attributes {gdn_gpu.kernel = {threads = 64 : i64}} {
  // expected-error@+1 {{'gdn_gpu.decay_between' op expects 'query' to be '!gdn_gpu.shared<32x128xf16, swizzled>', but got '!gdn_gpu.shared<32x128xbf16, swizzled>'}}
  gdn_gpu.decay_between %q, %q, %g, %f, %d, %p, %e scale(%s) : !gdn_gpu.shared<32x128xbf16, swizzled>, !logs, !first, !decays, !products, !end
  return
}

// -----

!tile = !gdn_gpu.shared<32x128xf16, swizzled>
!first = !gdn_gpu.shared<16x128xf16, swizzled>
!decays = !gdn_gpu.shared<2x128xf32>
!products = !gdn_gpu.shared<32x64xf16, swizzled>
!end = !gdn_gpu.shared<128xf32>

func.func @decay_between_c1_logs(%q: !tile, %g: !tile, %f: !first, %d: !decays, %p: !products, %e: !end, %s: f32)
    attributes {gdn_gpu.kernel = {threads = 64 : i64}} {
  // expected-error@+1 {{'gdn_gpu.decay_between' op expects 'log_decay' to be '!gdn_gpu.shared<32x128xf32, swizzled>', but got '!gdn_gpu.shared<32x128xf16, swizzled>'}}
  gdn_gpu.decay_between %q, %q, %g, %f, %d, %p, %e scale(%s) : !tile, !tile, !first, !decays, !products, !end
  return
}

// -----

!tile = !gdn_gpu.shared<32x128xf16, swizzled>
!logs = !gdn_gpu.shared<32x128xf32, swizzled>
!decays = !gdn_gpu.shared<2x128xf32>
!products = !gdn_gpu.shared<32x64xf16, swizzled>
!end = !gdn_gpu.shared<128xf32>

func.func @decay_between_c1_first_keys(%q: !tile, %g: !logs, %f: !tile, %d: !decays, %p: !products, %e: !end, %s: f32)
    attributes {gdn_gpu.kernel = {threads = 64 : i64}} {
  // expected-error@+1 {{'gdn_gpu.decay_between' op expects 'first_keys' to be '!gdn_gpu.shared<16x128xf16, swizzled>', but got '!gdn_gpu.shared<32x128xf16, swizzled>'}}
  gdn_gpu.decay_between %q, %q, %g, %f, %d, %p, %e scale(%s) : !tile, !logs, !tile, !decays, !products, !end
  return
}

// -----

!tile = !gdn_gpu.shared<32x128xf16, swizzled>
!logs = !gdn_gpu.shared<32x128xf32, swizzled>
!first = !gdn_gpu.shared<16x128xf16, swizzled>
!products = !gdn_gpu.shared<32x64xf16, swizzled>
!end = !gdn_gpu.shared<128xf32>

func.func @decay_between_c2(%q: !tile, %g: !logs, %f: !first, %d: !end, %p: !products, %e: !end, %s: f32)
    attributes {gdn_gpu.kernel = {threads = 64 : i64}} {
  // expected-error@+1 {{'gdn_gpu.decay_between' op expects 'decays' to be '!gdn_gpu.shared<2x128xf32>', but got '!gdn_gpu.shared<128xf32>'}}
  gdn_gpu.decay_between %q, %q, %g, %f, %d, %p, %e scale(%s) : !tile, !logs, !first, !end, !products, !end
  return
}

// -----

!tile = !gdn_gpu.shared<32x128xf16, swizzled>
!logs = !gdn_gpu.shared<32x128xf32, swizzled>
!first = !gdn_gpu.shared<16x128xf16, swizzled>
!decays = !gdn_gpu.shared<2x128xf32>
!end = !gdn_gpu.shared<128xf32>

func.func @decay_between_c2_products(%q: !tile, %g: !logs, %f: !first, %d: !decays, %p: !tile, %e: !end, %s: f32)
    attributes {gdn_gpu.kernel = {threads = 64 : i64}} {
  // expected-error@+1 {{'gdn_gpu.decay_between' op expects 'products' to be '!gdn_gpu.shared<32x64xf16, swizzled>', but got '!gdn_gpu.shared<32x128xf16, swizzled>'}}
  gdn_gpu.decay_between %q, %q, %g, %f, %d, %p, %e scale(%s) : !tile, !logs, !first, !decays, !tile, !end
  return
}

// -----

!tile = !gdn_gpu.shared<32x128xf16, swizzled>
!logs = !gdn_gpu.shared<32x128xf32, swizzled>
!first = !gdn_gpu.shared<16x128xf16, swizzled>
!decays = !gdn_gpu.shared<2x128xf32>
!products = !gdn_gpu.shared<32x64xf16, swizzled>

func.func @decay_between_c2_end(%q: !tile, %g: !logs, %f: !first, %d: !decays, %p: !products, %e: !decays, %s: f32)
    attributes {gdn_gpu.kernel = {threads = 64 : i64}} {
  // expected-error@+1 {{'gdn_gpu.decay_between' op expects 'end' to be '!gdn_gpu.shared<128xf32>', but got '!gdn_gpu.shared<2x128xf32>'}}
  gdn_gpu.decay_between %q, %q, %g, %f, %d, %p, %e scale(%s) : !tile, !logs, !first, !decays, !products, !decays
  return
}

// -----

!tile = !gdn_gpu.shared<32x128xf16, swizzled>
!logs = !gdn_gpu.shared<32x128xf32, swizzled>
!first = !gdn_gpu.shared<16x128xf16, swizzled>
!decays = !gdn_gpu.shared<2x128xf32>
!products = !gdn_gpu.shared<32x64xf16, swizzled>
!end = !gdn_gpu.shared<128xf32>

func.func @decay_between_c3(%q: !tile, %g: !logs, %f: !first, %d: !decays, %p: !products, %e: !end, %s: f32)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  // expected-error@+1 {{'gdn_gpu.decay_between' op expects to be run by 2 warps, but got 1}}
  gdn_gpu.decay_between %q, %q, %g, %f, %d, %p, %e scale(%s) : !tile, !logs, !first, !decays, !products, !end
  return
}

// -----

#one = #gdn_gpu.rows<warps = 1, lanes = 1, vector = 1>
!products = !gdn_gpu.shared<32x64xf16, swizzled>
!beta = !gdn_gpu.fragment<32xf32, #gdn_gpu.per_row<#one>>

func.func @block_inverses_c1(%g: !products, %p: !products, %b: !beta, %s: f32)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  // expected-error@+1 {{'gdn_gpu.block_inverses' op expects 'log_decay' to be '!gdn_gpu.shared<32x128xf32, swizzled>', but got '!gdn_gpu.shared<32x64xf16, swizzled>'}}
  gdn_gpu.block_inverses %g, %p, %b scale(%s) : !products, !products, !beta
  return
}

// -----

#one = #gdn_gpu.rows<warps = 1, lanes = 1, vector = 1>
!logs = !gdn_gpu.shared<32x128xf32, swizzled>
!first = !gdn_gpu.shared<16x128xf16, swizzled>
!beta = !gdn_gpu.fragment<32xf32, #gdn_gpu.per_row<#one>>

func.func @block_inverses_c1_products(%g: !logs, %p: !first, %b: !beta, %s: f32)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  // expected-error@+1 {{'gdn_gpu.block_inverses' op expects 'products' to be '!gdn_gpu.shared<32x64xf16, swizzled>', but got '!gdn_gpu.shared<16x128xf16, swizzled>'}}
  gdn_gpu.block_inverses %g, %p, %b scale(%s) : !logs, !first, !beta
  return
}

// -----

!logs = !gdn_gpu.shared<32x128xf32, swizzled>
!products = !gdn_gpu.shared<32x64xf16, swizzled>

func.func @block_inverses_c2(%g: !logs, %p: !products, %b: !gdn_gpu.fragment<32xf32, #gdn_gpu.per_row<#gdn_gpu.rows<warps = 1, lanes = 4, vector = 2>>>, %s: f32)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  // expected-error@+1 {{'gdn_gpu.block_inverses' op expects 'beta' to be '!gdn_gpu.fragment<32xf32, #gdn_gpu.per_row<<warps = 1, lanes = 1, vector = 1>>>', but got '!gdn_gpu.fragment<32xf32, #gdn_gpu.per_row<<warps = 1, lanes = 4, vector = 2>>>'}}
  gdn_gpu.block_inverses %g, %p, %b scale(%s) : !logs, !products, !gdn_gpu.fragment<32xf32, #gdn_gpu.per_row<#gdn_gpu.rows<warps = 1, lanes = 4, vector = 2>>>
  return
}

// -----

#one = #gdn_gpu.rows<warps = 1, lanes = 1, vector = 1>
!logs = !gdn_gpu.shared<32x128xf32, swizzled>
!products = !gdn_gpu.shared<32x64xf16, swizzled>
!beta = !gdn_gpu.fragment<32xf32, #gdn_gpu.per_row<#one>>

func.func @block_inverses_c3(%g: !logs, %p: !products, %b: !beta, %s: f32)
    attributes {gdn_gpu.kernel = {threads = 64 : i64}} {
  // expected-error@+1 {{'gdn_gpu.block_inverses' op expects to be run by 1 warp, but got 2}}
  gdn_gpu.block_inverses %g, %p, %b scale(%s) : !logs, !products, !beta
  return
}

// -----

!logs = !gdn_gpu.shared<32x128xf32, swizzled>
!first = !gdn_gpu.shared<16x128xf16, swizzled>

func.func @join_inverses_c1(%g: !logs, %p: !first)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  // expected-error@+1 {{'gdn_gpu.join_inverses' op expects 'products' to be '!gdn_gpu.shared<32x64xf16, swizzled>', but got '!gdn_gpu.shared<16x128xf16, swizzled>'}}
  gdn_gpu.join_inverses %g, %p : !logs, !first
  return
}

// -----

!logs = !gdn_gpu.shared<32x128xf32, swizzled>
!products = !gdn_gpu.shared<32x64xf16, swizzled>

func.func @join_inverses_c2(%g: !logs, %p: !products)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  // expected-error@+1 {{'gdn_gpu.join_inverses' op expects to be run by 1 warp, but got 4}}
  gdn_gpu.join_inverses %g, %p : !logs, !products
  return
}

// -----

!logs = !gdn_gpu.shared<32x128xf32, swizzled>
!products = !gdn_gpu.shared<32x64xf16, swizzled>

func.func @join_inverses_c2_each_warp(%g: !logs, %p: !products)
    attributes {gdn_gpu.kernel = {threads = 64 : i64}} {
  gdn_gpu.each_warp 0 for 1 {
  ^bb0(%warp: index):
    // expected-error@+1 {{'gdn_gpu.join_inverses' op expects to be outside gdn_gpu.each_warp, where each warp goes its own way}}
    gdn_gpu.join_inverses %g, %p : !logs, !products
  }
  return
}
