// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_gpu.each_warp: every message of its verifier, and of ops inside it.
//
// RUN: gdn-gpu-opt %s -split-input-file -verify-diagnostics

#rows = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!row = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#rows>>
!one = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#one>>

func.func @c1_nested() attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  gdn_gpu.warps 0 for 2 {
    // expected-error@+1 {{'gdn_gpu.each_warp' op expects to be outside other gdn_gpu.warps}}
    gdn_gpu.each_warp 0 for 1 {
    ^bb0(%w: index):
    }
  }
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!row = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#rows>>
!one = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#one>>

func.func @c1_too_many() attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  // expected-error@+1 {{'gdn_gpu.each_warp' op expects warps below 8, set by 'threads' of 'gdn_gpu.kernel' of the function, but got warps up to 8}}
  gdn_gpu.each_warp 7 for 2 {
  ^bb0(%w: index):
  }
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!row = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#rows>>
!one = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#one>>

func.func @c2_count() attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  %r = gdn_gpu.each_warp 0 for 2 -> f32 {
  ^bb0(%w: index):
    // expected-error@+1 {{'gdn_gpu.yield' op expects 1 operands, one per result, but got 0}}
    gdn_gpu.yield
  }
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!row = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#rows>>
!one = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#one>>

func.func @c3_outside(%x: f32) attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  // expected-error@+1 {{'gdn_gpu.each_warp' op expects result 0 to be used on the same warps only}}
  %r = gdn_gpu.each_warp 0 for 2 -> f32 {
  ^bb0(%w: index):
    gdn_gpu.yield %x : f32
  }
  gdn_gpu.warps 0 for 2 {
    // expected-note@+1 {{other use}}
    %y = arith.negf %r : f32
  }
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!row = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#rows>>
!one = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#one>>

func.func @c4_layout(%x: f32) attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  gdn_gpu.each_warp 0 for 8 {
  ^bb0(%w: index):
    // expected-error@+1 {{'gdn_gpu.fill' op expects fragments laid out over 1 warps, set by the gdn_gpu.each_warp around it, but got '!gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<<warps = 8, lanes = 8, vector = 4>>>'}}
    %t = gdn_gpu.fill %x : f32 -> !row
  }
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!row = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#rows>>
!one = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#one>>

func.func @c5_argument() attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  // expected-error@+1 {{'gdn_gpu.each_warp' op expects the body to have one argument, the number of the warp, an index}}
  gdn_gpu.each_warp 0 for 8 {
  }
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!row = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#rows>>
!one = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#one>>

func.func @barrier_c1() attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  gdn_gpu.each_warp 0 for 8 {
  ^bb0(%w: index):
    // expected-error@+1 {{'gdn_gpu.barrier' op expects to be outside gdn_gpu.each_warp, where each warp goes its own way}}
    gdn_gpu.barrier
  }
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!row = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#rows>>
!one = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#one>>

func.func @store_shared_c5(%x: f32, %p: !gdn_gpu.shared<128xf32>)
    attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  gdn_gpu.each_warp 0 for 2 {
  ^bb0(%w: index):
    %t = gdn_gpu.fill %x : f32 -> !one
    // expected-error@+1 {{'gdn_gpu.store_shared' op expects a 'row' inside gdn_gpu.each_warp, so that warps write different rows}}
    gdn_gpu.store_shared %t, %p : !one, !gdn_gpu.shared<128xf32>
  }
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!row = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#rows>>
!one = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#one>>

func.func @store_shared_c1_rows(%x: f32, %p: !gdn_gpu.shared<4x128xf32>)
    attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  gdn_gpu.each_warp 0 for 2 {
  ^bb0(%w: index):
    %t = gdn_gpu.fill %x : f32 -> !gdn_gpu.fragment<5x128xf32, #one>
    // expected-error@+1 {{'gdn_gpu.store_shared' op expects a fragment of the shape and element type of '!gdn_gpu.shared<4x128xf32>', rows of 'buffer', but got '!gdn_gpu.fragment<5x128xf32, #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>>'}}
    gdn_gpu.store_shared %t, %p row(%w) : !gdn_gpu.fragment<5x128xf32, #one>, !gdn_gpu.shared<4x128xf32>
  }
  return
}
