// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn_gpu.begin_load, the load behind it, arrive and await_arrivals: every
// message of their verifiers.
//
// RUN: gdn-gpu-opt %s -split-input-file -verify-diagnostics

#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
func.func @begin_load_c1(%w: memref<?x4xbf16>, %c: index, %p: !gdn_gpu.shared<512xbf16>)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  // expected-error@+1 {{'gdn_gpu.begin_load' op expects one index per dimension of 'view', which is 2, but got 1}}
  gdn_gpu.begin_load %w[%c] dims [1, 0], %p : memref<?x4xbf16>, !gdn_gpu.fragment<4x128xbf16, #one>, !gdn_gpu.shared<512xbf16>
  return
}

// -----

#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
func.func @begin_load_c2_view(%w: memref<?x4xbf16>, %c: index, %p: !gdn_gpu.shared<512xf32>)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  // expected-error@+1 {{'gdn_gpu.begin_load' op expects the tile to have the view's element type 'bf16', but got 'f32'}}
  gdn_gpu.begin_load %w[%c, %c] dims [1, 0], %p : memref<?x4xbf16>, !gdn_gpu.fragment<4x128xf32, #one>, !gdn_gpu.shared<512xf32>
  return
}

// -----

#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
func.func @begin_load_c4_holes(%w: memref<?x4xbf16>, %c: index, %p: !gdn_gpu.shared<384xbf16>)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  // expected-error@+1 {{'gdn_gpu.begin_load' op expects a tile of which each thread of one warp holds as many elements, but got}}
  gdn_gpu.begin_load %w[%c, %c] dims [1, 0], %p : memref<?x4xbf16>, !gdn_gpu.fragment<4x96xbf16, #one>, !gdn_gpu.shared<384xbf16>
  return
}

// -----

#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
func.func @begin_load_c4_place(%w: memref<?x4xbf16>, %c: index, %p: !gdn_gpu.shared<128xbf16>)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  // expected-error@+1 {{'gdn_gpu.begin_load' op expects a place of 512 elements of the tile's type, but got '!gdn_gpu.shared<128xbf16>'}}
  gdn_gpu.begin_load %w[%c, %c] dims [1, 0], %p : memref<?x4xbf16>, !gdn_gpu.fragment<4x128xbf16, #one>, !gdn_gpu.shared<128xbf16>
  return
}

// -----

#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
func.func @load_c4(%w: memref<?x4xbf16>, %c: index, %p: !gdn_gpu.shared<512xbf16>)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  // expected-error@+1 {{'gdn_gpu.load' op expects 'begun' to be the place of a gdn_gpu.begin_load of the same tile}}
  %t = gdn_gpu.load %w[%c, %c] dims [1, 0] begun(%p : !gdn_gpu.shared<512xbf16>) : memref<?x4xbf16>, !gdn_gpu.fragment<4x128xbf16, #one>
  return
}

// -----

func.func @arrive_c1() attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  gdn_gpu.warps 0 for 1 {
    // expected-error@+1 {{'gdn_gpu.arrive' op expects to be outside gdn_gpu.warps, which only some warps enter}}
    gdn_gpu.arrive for 3
  }
  return
}

// -----

func.func @arrive_c2() attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  // expected-error@+1 {{'gdn_gpu.arrive' op expects a warp below 4, but got 4}}
  gdn_gpu.arrive for 4
  return
}

// -----

func.func @await_arrivals_c1_none() attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  gdn_gpu.warps 3 for 1 {
    // expected-error@+1 {{'gdn_gpu.await_arrivals' op expects a gdn_gpu.arrive in its function}}
    gdn_gpu.await_arrivals
  }
  return
}

// -----

func.func @await_arrivals_c1_warp() attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  gdn_gpu.arrive for 3
  gdn_gpu.warps 2 for 1 {
    // expected-error@+1 {{'gdn_gpu.await_arrivals' op expects to be in the body of a gdn_gpu.warps of warp 3 alone, which the gdn_gpu.arrive names}}
    gdn_gpu.await_arrivals
  }
  return
}

// -----

func.func @await_arrivals_c1_first(%x: f32) attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  gdn_gpu.arrive for 3
  gdn_gpu.warps 3 for 1 {
    %y = arith.negf %x : f32
    // expected-error@+1 {{'gdn_gpu.await_arrivals' op expects to be the first op of its gdn_gpu.warps}}
    gdn_gpu.await_arrivals
  }
  return
}

// -----

func.func @arrive_c2_twice() attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  // expected-error@+1 {{'gdn_gpu.arrive' op expects to be the only one of its function, but there are 2}}
  gdn_gpu.arrive for 3
  gdn_gpu.arrive for 2
  return
}

// -----

#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
func.func @load_c4_elsewhere(%w: memref<?x4xbf16>, %c: index, %d: index) -> !gdn_gpu.fragment<4x128xbf16, #one>
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %p = gdn_gpu.alloc : !gdn_gpu.shared<512xbf16>
  gdn_gpu.begin_load %w[%c, %d] dims [1, 0], %p : memref<?x4xbf16>, !gdn_gpu.fragment<4x128xbf16, #one>, !gdn_gpu.shared<512xbf16>
  // expected-error@+1 {{'gdn_gpu.load' op expects 'begun' to be the place of a gdn_gpu.begin_load of the same tile}}
  %t = gdn_gpu.load %w[%d, %c] dims [1, 0] begun(%p : !gdn_gpu.shared<512xbf16>) : memref<?x4xbf16>, !gdn_gpu.fragment<4x128xbf16, #one>
  return %t : !gdn_gpu.fragment<4x128xbf16, #one>
}
