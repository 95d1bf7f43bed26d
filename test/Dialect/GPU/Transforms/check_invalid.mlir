// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-gpu-check: every race and every value that it refuses.
//
// RUN: gdn-gpu-opt %s -split-input-file -o /dev/null
// RUN: gdn-gpu-opt %s -split-input-file -verify-diagnostics -gdn-gpu-check

#rows = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!state = !gdn_gpu.fragment<128x128xf32, #rows>
!row = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#rows>>
!column = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#rows>>
!one = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#one>>
!buffer = !gdn_gpu.shared<128xf32>
!view = memref<?x?x128x128xf32, strided<[?, ?, ?, 1]>>

func.func @load_without_barrier(%x: f32) attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  %p = gdn_gpu.alloc : !buffer
  gdn_gpu.warps 0 for 1 {
    %s = gdn_gpu.fill %x : f32 -> !one
    // expected-note@+1 {{access before it}}
    gdn_gpu.store_shared %s, %p : !one, !buffer
  }
  // expected-error@+1 {{'gdn_gpu.load_shared' op expects a gdn_gpu.barrier between it and the access before it}}
  %t = gdn_gpu.load_shared %p : !buffer -> !row
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!state = !gdn_gpu.fragment<128x128xf32, #rows>
!row = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#rows>>
!column = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#rows>>
!one = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#one>>
!buffer = !gdn_gpu.shared<128xf32>
!view = memref<?x?x128x128xf32, strided<[?, ?, ?, 1]>>

func.func @load_without_store(%x: f32) attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  %p = gdn_gpu.alloc : !buffer
  // expected-error@+1 {{'gdn_gpu.load_shared' op expects a tile that has been shared on every way to it}}
  %t = gdn_gpu.load_shared %p : !buffer -> !row
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!row = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#rows>>
!one = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#one>>
!buffer = !gdn_gpu.shared<128xf32>

func.func @shared_under_another_condition(%x: f32, %c: i1, %d: i1) attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  %p = gdn_gpu.alloc : !buffer
  scf.if %c {
    gdn_gpu.warps 0 for 1 {
      %s = gdn_gpu.fill %x : f32 -> !one
      gdn_gpu.store_shared %s, %p : !one, !buffer
    }
  }
  gdn_gpu.barrier
  scf.if %d {
    // expected-error@+1 {{'gdn_gpu.load_shared' op expects a tile that has been shared on every way to it}}
    %t = gdn_gpu.load_shared %p : !buffer -> !row
  }
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!row = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#rows>>
!one = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#one>>
!buffer = !gdn_gpu.shared<128xf32>

// The first time around nothing was shared.
func.func @shared_later(%x: f32, %a: index, %c: i1) attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %p = gdn_gpu.alloc : !buffer
  scf.for %j = %c0 to %a step %c1 {
    scf.if %c {
      // expected-error@+1 {{'gdn_gpu.load_shared' op expects a tile that has been shared on every way to it}}
      %t = gdn_gpu.load_shared %p : !buffer -> !row
    }
    gdn_gpu.barrier
    scf.if %c {
      gdn_gpu.warps 0 for 1 {
        %s = gdn_gpu.fill %x : f32 -> !one
        gdn_gpu.store_shared %s, %p : !one, !buffer
      }
    }
    gdn_gpu.barrier
  }
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!row = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#rows>>
!one = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#one>>
!buffer = !gdn_gpu.shared<128xf32>

func.func @shared_where_not(%x: f32, %c: i1) attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  %p = gdn_gpu.alloc : !buffer
  scf.if %c {
    gdn_gpu.warps 0 for 1 {
      %s = gdn_gpu.fill %x : f32 -> !one
      gdn_gpu.store_shared %s, %p : !one, !buffer
    }
  }
  gdn_gpu.barrier
  scf.if %c {
  } else {
    // expected-error@+1 {{'gdn_gpu.load_shared' op expects a tile that has been shared on every way to it}}
    %t = gdn_gpu.load_shared %p : !buffer -> !row
  }
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!state = !gdn_gpu.fragment<128x128xf32, #rows>
!row = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#rows>>
!column = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#rows>>
!one = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#one>>
!buffer = !gdn_gpu.shared<128xf32>
!view = memref<?x?x128x128xf32, strided<[?, ?, ?, 1]>>

func.func @shared_on_one_way(%x: f32, %c: i1) attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  %p = gdn_gpu.alloc : !buffer
  scf.if %c {
    gdn_gpu.warps 0 for 1 {
      %s = gdn_gpu.fill %x : f32 -> !one
      gdn_gpu.store_shared %s, %p : !one, !buffer
    }
  }
  gdn_gpu.barrier
  // expected-error@+1 {{'gdn_gpu.load_shared' op expects a tile that has been shared on every way to it}}
  %t = gdn_gpu.load_shared %p : !buffer -> !row
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!state = !gdn_gpu.fragment<128x128xf32, #rows>
!row = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#rows>>
!column = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#rows>>
!one = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#one>>
!buffer = !gdn_gpu.shared<128xf32>
!view = memref<?x?x128x128xf32, strided<[?, ?, ?, 1]>>

func.func @store_behind_load(%x: f32) attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  %p = gdn_gpu.alloc : !buffer
  gdn_gpu.warps 0 for 1 {
    %s = gdn_gpu.fill %x : f32 -> !one
    gdn_gpu.store_shared %s, %p : !one, !buffer
  }
  gdn_gpu.barrier
  // expected-note@+1 {{access before it}}
  %t = gdn_gpu.load_shared %p : !buffer -> !row
  gdn_gpu.warps 0 for 1 {
    %s = gdn_gpu.fill %x : f32 -> !one
    // expected-error@+1 {{'gdn_gpu.store_shared' op expects a gdn_gpu.barrier between it and the access before it}}
    gdn_gpu.store_shared %s, %p : !one, !buffer
  }
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!state = !gdn_gpu.fragment<128x128xf32, #rows>
!row = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#rows>>
!column = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#rows>>
!one = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#one>>
!buffer = !gdn_gpu.shared<128xf32>
!view = memref<?x?x128x128xf32, strided<[?, ?, ?, 1]>>

func.func @share_behind_share(%x: f32) attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  %p = gdn_gpu.alloc : !buffer
  gdn_gpu.warps 0 for 1 {
    %s = gdn_gpu.fill %x : f32 -> !one
    // expected-note@+1 {{access before it}}
    gdn_gpu.store_shared %s, %p : !one, !buffer
  }
  gdn_gpu.warps 0 for 1 {
    %s = gdn_gpu.fill %x : f32 -> !one
    // expected-error@+1 {{'gdn_gpu.store_shared' op expects a gdn_gpu.barrier between it and the access before it}}
    gdn_gpu.store_shared %s, %p : !one, !buffer
  }
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!state = !gdn_gpu.fragment<128x128xf32, #rows>
!row = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#rows>>
!column = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#rows>>
!one = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#one>>
!buffer = !gdn_gpu.shared<128xf32>
!view = memref<?x?x128x128xf32, strided<[?, ?, ?, 1]>>

func.func @round_a_loop(%x: f32, %a: index, %b: index, %c: index)
    attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  %p = gdn_gpu.alloc : !buffer
  scf.for %j = %a to %b step %c {
    gdn_gpu.warps 0 for 1 {
      %s = gdn_gpu.fill %x : f32 -> !one
      // expected-error@+1 {{'gdn_gpu.store_shared' op expects a gdn_gpu.barrier between it and the access before it}}
      gdn_gpu.store_shared %s, %p : !one, !buffer
    }
    gdn_gpu.barrier
    // expected-note@+1 {{access before it}}
    %t = gdn_gpu.load_shared %p : !buffer -> !row
  }
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!state = !gdn_gpu.fragment<128x128xf32, #rows>
!row = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#rows>>
!column = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#rows>>
!one = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#one>>
!buffer = !gdn_gpu.shared<128xf32>
!view = memref<?x?x128x128xf32, strided<[?, ?, ?, 1]>>

func.func @barrier_on_one_way(%x: f32, %c: i1) attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  %p = gdn_gpu.alloc : !buffer
  gdn_gpu.warps 0 for 1 {
    %s = gdn_gpu.fill %x : f32 -> !one
    // expected-note@+1 {{access before it}}
    gdn_gpu.store_shared %s, %p : !one, !buffer
  }
  scf.if %c {
    gdn_gpu.barrier
  }
  // expected-error@+1 {{'gdn_gpu.load_shared' op expects a gdn_gpu.barrier between it and the access before it}}
  %t = gdn_gpu.load_shared %p : !buffer -> !row
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!state = !gdn_gpu.fragment<128x128xf32, #rows>
!row = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#rows>>
!column = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#rows>>
!one = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#one>>
!buffer = !gdn_gpu.shared<128xf32>
!view = memref<?x?x128x128xf32, strided<[?, ?, ?, 1]>>

func.func @element_without_barrier(%x: f32, %j: index)
    attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  %p = gdn_gpu.alloc : !buffer
  gdn_gpu.warps 0 for 1 {
    %s = gdn_gpu.fill %x : f32 -> !one
    // expected-note@+1 {{access before it}}
    gdn_gpu.store_shared %s, %p : !one, !buffer
  }
  // expected-error@+1 {{'gdn_gpu.load_shared_element' op expects a gdn_gpu.barrier between it and the access before it}}
  %t = gdn_gpu.load_shared_element %p[%j] : !buffer -> f32
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!state = !gdn_gpu.fragment<128x128xf32, #rows>
!row = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#rows>>
!column = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#rows>>
!one = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#one>>
!buffer = !gdn_gpu.shared<128xf32>
!view = memref<?x?x128x128xf32, strided<[?, ?, ?, 1]>>

func.func @layout_outside_warps(%x: f32) attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  // expected-error@+1 {{'gdn_gpu.fill' op expects fragments laid out over 8 warps, all of the block, outside gdn_gpu.warps, but got '!gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<<warps = 1, lanes = 32, vector = 4>>>'}}
  %t = gdn_gpu.fill %x : f32 -> !one
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!tile = !gdn_gpu.fragment<64x64xf16, #rows>
!buffer = !gdn_gpu.shared<64x64xf16, swizzled>
!view = memref<?x64x64xf16, strided<[4096, 64, 1]>>

func.func @copy_not_awaited(%v: !view, %t: !tile)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  %c0 = arith.constant 0 : index
  %p = gdn_gpu.alloc : !buffer
  // expected-note@+1 {{copy}}
  gdn_gpu.begin_copy %v[%c0, %c0, %c0] dims [1, 2], %p : !view, !buffer
  gdn_gpu.barrier
  // expected-error@+1 {{'gdn_gpu.load_shared' op expects a gdn_gpu.await_copies between it and the copy before it}}
  %a = gdn_gpu.load_shared %p : !buffer -> !tile
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!tile = !gdn_gpu.fragment<64x64xf16, #rows>
!buffer = !gdn_gpu.shared<64x64xf16, swizzled>
!view = memref<?x64x64xf16, strided<[4096, 64, 1]>>

func.func @awaited_behind_the_barrier(%v: !view, %t: !tile)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  %c0 = arith.constant 0 : index
  %p = gdn_gpu.alloc : !buffer
  // expected-note@+1 {{access before it}}
  gdn_gpu.begin_copy %v[%c0, %c0, %c0] dims [1, 2], %p : !view, !buffer
  gdn_gpu.barrier
  gdn_gpu.await_copies
  // expected-error@+1 {{'gdn_gpu.load_shared' op expects a gdn_gpu.barrier between it and the access before it}}
  %a = gdn_gpu.load_shared %p : !buffer -> !tile
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!tile = !gdn_gpu.fragment<64x64xf16, #rows>
!buffer = !gdn_gpu.shared<64x64xf16, swizzled>
!view = memref<?x64x64xf16, strided<[4096, 64, 1]>>

func.func @copied_over(%v: !view, %t: !tile) attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  %c0 = arith.constant 0 : index
  %p = gdn_gpu.alloc : !buffer
  gdn_gpu.store_shared %t, %p : !tile, !buffer
  gdn_gpu.barrier
  // expected-note@+1 {{access before it}}
  %a = gdn_gpu.load_shared %p : !buffer -> !tile
  // expected-error@+1 {{'gdn_gpu.begin_copy' op expects a gdn_gpu.barrier between it and the access before it}}
  gdn_gpu.begin_copy %v[%c0, %c0, %c0] dims [1, 2], %p : !view, !buffer
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!tile = !gdn_gpu.fragment<64x64xf16, #rows>
!buffer = !gdn_gpu.shared<64x64xf16, swizzled>
!view = memref<?x64x64xf16, strided<[4096, 64, 1]>>

func.func @product_without_barrier(%v: !view, %t: !tile)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  %c0 = arith.constant 0 : index
  %p = gdn_gpu.alloc : !buffer
  // expected-note@+1 {{access before it}}
  gdn_gpu.store_shared %t, %p : !tile, !buffer
  // expected-error@+1 {{'gdn_gpu.matmul' op expects a gdn_gpu.barrier between it and the access before it}}
  %a = gdn_gpu.matmul %t, %p : !tile, !buffer -> !gdn_gpu.fragment<64x64xf32, #rows>
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!tile = !gdn_gpu.fragment<64x64xf16, #rows>
!buffer = !gdn_gpu.shared<64x64xf16, swizzled>
!view = memref<?x64x64xf16, strided<[4096, 64, 1]>>

func.func @scratch_is_taken(%v: !view, %t: !tile)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  %c0 = arith.constant 0 : index
  %p = gdn_gpu.alloc : !buffer
  gdn_gpu.store_shared %t, %p : !tile, !buffer
  gdn_gpu.barrier
  // expected-note@+1 {{access before it}}
  %a = gdn_gpu.load_shared %p : !buffer -> !tile
  // expected-error@+1 {{'gdn_gpu.tri_inverse' op expects a gdn_gpu.barrier between it and the access before it}}
  %i = gdn_gpu.tri_inverse %t in %p : (!tile, !buffer) -> !tile
  return
}

// -----

// Another shape of a tile is the same tile.
#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
func.func @reshaped(%t: f32) attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %c0 = arith.constant 0 : index
  %p = gdn_gpu.alloc : !gdn_gpu.shared<1x256xf32>
  %halves = gdn_gpu.reshape %p : !gdn_gpu.shared<1x256xf32> to !gdn_gpu.shared<2x128xf32>
  %a = gdn_gpu.fill %t : f32 -> !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#one>>
  // expected-note@+1 {{access before it}}
  gdn_gpu.store_shared %a, %halves row(%c0)
      : !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#one>>, !gdn_gpu.shared<2x128xf32>
  // expected-error@+1 {{'gdn_gpu.load_shared' op expects a gdn_gpu.barrier between it and the access before it}}
  %x = gdn_gpu.load_shared %p : !gdn_gpu.shared<1x256xf32> -> !gdn_gpu.fragment<1x256xf32, #one>
  return
}

// -----

// A product reads its tile until it is awaited, whatever barriers come.
#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!tile = !gdn_gpu.fragment<64x64xf16, #rows>
!sums = !gdn_gpu.fragment<64x64xf32, #rows>
!buffer = !gdn_gpu.shared<64x64xf16, swizzled>

func.func @start_matmul_c3(%t: !tile) -> !sums
    attributes {gdn_gpu.kernel = {threads = 128 : i64, warpgroups}} {
  %p = gdn_gpu.alloc : !buffer
  gdn_gpu.store_shared %t, %p : !tile, !buffer
  gdn_gpu.barrier
  // expected-note@+1 {{product}}
  %s = gdn_gpu.start_matmul %t, %p : !tile, !buffer -> !gdn_gpu.async_token<64x64xf32, #rows>
  gdn_gpu.barrier
  // expected-error@+1 {{'gdn_gpu.store_shared' op expects the gdn_gpu.await_matmul of the product before it to be before it too}}
  gdn_gpu.store_shared %t, %p : !tile, !buffer
  %a = gdn_gpu.await_matmul %s : !gdn_gpu.async_token<64x64xf32, #rows>
  return %a : !sums
}

// -----

// Other warps may be at the product still.
#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!tile = !gdn_gpu.fragment<64x64xf16, #rows>
!sums = !gdn_gpu.fragment<64x64xf32, #rows>
!buffer = !gdn_gpu.shared<64x64xf16, swizzled>

func.func @start_matmul_c3_barrier(%t: !tile) -> !sums
    attributes {gdn_gpu.kernel = {threads = 128 : i64, warpgroups}} {
  %p = gdn_gpu.alloc : !buffer
  gdn_gpu.store_shared %t, %p : !tile, !buffer
  gdn_gpu.barrier
  %s = gdn_gpu.start_matmul %t, %p : !tile, !buffer -> !gdn_gpu.async_token<64x64xf32, #rows>
  gdn_gpu.barrier
  // expected-note@+1 {{access before it}}
  %a = gdn_gpu.await_matmul %s : !gdn_gpu.async_token<64x64xf32, #rows>
  // expected-error@+1 {{'gdn_gpu.store_shared' op expects a gdn_gpu.barrier between it and the access before it}}
  gdn_gpu.store_shared %t, %p : !tile, !buffer
  return %a : !sums
}

// -----

// What the others shared before they arrived is there for the warp that waits,
// and for no other.
#rows = #gdn_gpu.rows<warps = 4, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!row = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#rows>>
!one = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#one>>
!buffer = !gdn_gpu.shared<128xf32>

func.func @arrived_for_another(%t: !row) attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  %p = gdn_gpu.alloc : !buffer
  // expected-note@+1 {{access before it}}
  gdn_gpu.store_shared %t, %p : !row, !buffer
  gdn_gpu.arrive for 3
  gdn_gpu.warps 3 for 1 {
    gdn_gpu.await_arrivals
    %a = gdn_gpu.load_shared %p : !buffer -> !one
  }
  gdn_gpu.warps 2 for 1 {
    // expected-error@+1 {{'gdn_gpu.load_shared' op expects a gdn_gpu.barrier between it and the access before it}}
    %b = gdn_gpu.load_shared %p : !buffer -> !one
  }
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 4, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!row = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#rows>>
!one = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#one>>
!buffer = !gdn_gpu.shared<128xf32>

func.func @shared_after_arrival(%t: !row) attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  %p = gdn_gpu.alloc : !buffer
  gdn_gpu.arrive for 3
  // expected-note@+1 {{access before it}}
  gdn_gpu.store_shared %t, %p : !row, !buffer
  gdn_gpu.warps 3 for 1 {
    gdn_gpu.await_arrivals
    // expected-error@+1 {{'gdn_gpu.load_shared' op expects a gdn_gpu.barrier between it and the access before it}}
    %a = gdn_gpu.load_shared %p : !buffer -> !one
  }
  return
}
