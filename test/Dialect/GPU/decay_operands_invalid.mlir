// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operands with a decay per channel that the verifier refuses.
//
// RUN: gdn-gpu-opt %s -split-input-file -verify-diagnostics

#logs = #gdn_gpu.rows<warps = 4, lanes = 8, vector = 4>
#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!tile = !gdn_gpu.shared<64x32xf16, swizzled>
!scores = !gdn_gpu.fragment<64x64xf32, #rows>
!decay = !gdn_gpu.fragment<64x32xf32, #logs>
!sums = !gdn_gpu.shared<11x32xf32>
!end = !gdn_gpu.shared<32xf32>

func.func @decay_operands_c1(%g: !gdn_gpu.fragment<48x32xf32, #logs>, %q: !tile, %s: !sums, %e: !end)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  // expected-error@+1 {{'gdn_gpu.decay_operands' op expects 'log_decay' of f32 with 16 rows per warp and a multiple of 16 columns, four side by side for a lane, but got '!gdn_gpu.fragment<48x32xf32, #gdn_gpu.rows<warps = 4, lanes = 8, vector = 4>>'}}
  %p, %l = gdn_gpu.decay_operands %g, %q, %q, %q, %s, %e : !gdn_gpu.fragment<48x32xf32, #logs>, !tile, !tile, !sums, !end -> !scores
  return
}

// -----

#logs = #gdn_gpu.rows<warps = 4, lanes = 8, vector = 4>
#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!tile = !gdn_gpu.shared<64x32xf16, swizzled>
!scores = !gdn_gpu.fragment<64x64xf32, #rows>
!decay = !gdn_gpu.fragment<64x32xf32, #rows>
!sums = !gdn_gpu.shared<11x32xf32>
!end = !gdn_gpu.shared<32xf32>

func.func @decay_operands_c1_layout(%g: !decay, %q: !tile, %s: !sums, %e: !end)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  // expected-error@+1 {{four side by side for a lane, but got '!gdn_gpu.fragment<64x32xf32, #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>>'}}
  %p, %l = gdn_gpu.decay_operands %g, %q, %q, %q, %s, %e : !decay, !tile, !tile, !sums, !end -> !scores
  return
}

// -----

#logs = #gdn_gpu.rows<warps = 4, lanes = 8, vector = 4>
#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!tile = !gdn_gpu.shared<64x32xf16, swizzled>
!scores = !gdn_gpu.fragment<64x64xf32, #rows>
!decay = !gdn_gpu.fragment<64x32xf32, #logs>
!sums = !gdn_gpu.shared<11x32xf32>
!end = !gdn_gpu.shared<32xf32>

func.func @decay_operands_c1_results(%g: !decay, %q: !tile, %s: !sums, %e: !end)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  // expected-error@+1 {{'gdn_gpu.decay_operands' op expects the results to be '!gdn_gpu.fragment<64x64xf32, #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>>', but got '!gdn_gpu.fragment<64x32xf32, #gdn_gpu.rows<warps = 4, lanes = 8, vector = 4>>'}}
  %p, %l = gdn_gpu.decay_operands %g, %q, %q, %q, %s, %e : !decay, !tile, !tile, !sums, !end -> !decay
  return
}

// -----

#logs = #gdn_gpu.rows<warps = 4, lanes = 8, vector = 4>
#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!tile = !gdn_gpu.shared<64x32xf16, swizzled>
!scores = !gdn_gpu.fragment<64x64xf32, #rows>
!decay = !gdn_gpu.fragment<64x32xf32, #logs>
!sums = !gdn_gpu.shared<11x32xf32>
!end = !gdn_gpu.shared<32xf32>

func.func @decay_operands_c2(%g: !decay, %q: !gdn_gpu.shared<64x32xf16>, %t: !tile, %s: !sums, %e: !end)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  // expected-error@+1 {{'gdn_gpu.decay_operands' op expects 'query' to be '!gdn_gpu.shared<64x32xf16, swizzled>', or of bf16, but got '!gdn_gpu.shared<64x32xf16>'}}
  %p, %l = gdn_gpu.decay_operands %g, %q, %q, %t, %s, %e : !decay, !gdn_gpu.shared<64x32xf16>, !tile, !sums, !end -> !scores
  return
}

// -----

#logs = #gdn_gpu.rows<warps = 4, lanes = 8, vector = 4>
#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!tile = !gdn_gpu.shared<64x32xf16, swizzled>
!scores = !gdn_gpu.fragment<64x64xf32, #rows>
!decay = !gdn_gpu.fragment<64x32xf32, #logs>
!sums = !gdn_gpu.shared<11x32xf32>
!end = !gdn_gpu.shared<32xf32>

func.func @decay_operands_c2_end(%g: !decay, %q: !tile, %t: !gdn_gpu.shared<64x32xbf16, swizzled>, %s: !sums, %e: !end)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  // expected-error@+1 {{'gdn_gpu.decay_operands' op expects 'to_end' to be '!gdn_gpu.shared<64x32xf16, swizzled>', but got '!gdn_gpu.shared<64x32xbf16, swizzled>'}}
  %p, %l = gdn_gpu.decay_operands %g, %q, %q, %t, %s, %e : !decay, !tile, !gdn_gpu.shared<64x32xbf16, swizzled>, !sums, !end -> !scores
  return
}

// -----

#logs = #gdn_gpu.rows<warps = 4, lanes = 8, vector = 4>
#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!tile = !gdn_gpu.shared<64x32xf16, swizzled>
!scores = !gdn_gpu.fragment<64x64xf32, #rows>
!decay = !gdn_gpu.fragment<64x32xf32, #logs>
!sums = !gdn_gpu.shared<11x32xf32>
!end = !gdn_gpu.shared<32xf32>

func.func @decay_operands_c3(%g: !decay, %q: !tile, %s: !gdn_gpu.shared<8x32xf32>, %e: !end)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  // expected-error@+1 {{'gdn_gpu.decay_operands' op expects 'sums' to be '!gdn_gpu.shared<11x32xf32>', but got '!gdn_gpu.shared<8x32xf32>'}}
  %p, %l = gdn_gpu.decay_operands %g, %q, %q, %q, %s, %e : !decay, !tile, !tile, !gdn_gpu.shared<8x32xf32>, !end -> !scores
  return
}

// -----

#logs = #gdn_gpu.rows<warps = 4, lanes = 8, vector = 4>
#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!tile = !gdn_gpu.shared<64x32xf16, swizzled>
!scores = !gdn_gpu.fragment<64x64xf32, #rows>
!decay = !gdn_gpu.fragment<64x32xf32, #logs>
!sums = !gdn_gpu.shared<11x32xf32>
!end = !gdn_gpu.shared<32xf32>

func.func @decay_operands_c3_end(%g: !decay, %q: !tile, %s: !sums, %e: !gdn_gpu.shared<64xf32>)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  // expected-error@+1 {{'gdn_gpu.decay_operands' op expects 'end' to be '!gdn_gpu.shared<32xf32>', but got '!gdn_gpu.shared<64xf32>'}}
  %p, %l = gdn_gpu.decay_operands %g, %q, %q, %q, %s, %e : !decay, !tile, !tile, !sums, !gdn_gpu.shared<64xf32> -> !scores
  return
}

// -----

#logs = #gdn_gpu.rows<warps = 4, lanes = 8, vector = 4>
#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!tile = !gdn_gpu.shared<64x32xf16, swizzled>
!scores = !gdn_gpu.fragment<64x64xf32, #rows>
!decay = !gdn_gpu.fragment<64x32xf32, #logs>
!sums = !gdn_gpu.shared<11x32xf32>
!end = !gdn_gpu.shared<32xf32>

func.func @decay_operands_c4(%g: !decay, %q: !tile, %s: !sums, %e: !end)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  gdn_gpu.warps 0 for 4 {
    // expected-error@+1 {{'gdn_gpu.decay_operands' op expects to be outside gdn_gpu.warps, which only some warps enter}}
    %p, %l = gdn_gpu.decay_operands %g, %q, %q, %q, %s, %e : !decay, !tile, !tile, !sums, !end -> !scores
  }
  return
}
