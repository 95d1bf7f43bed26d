// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-gpu-check: rows that two stores share, tiles of a ring that the role that fills it reads
// as well, and reads that a box may overtake.
//
// RUN: gdn-gpu-opt %s -split-input-file -o /dev/null
// RUN: gdn-gpu-opt %s -split-input-file -verify-diagnostics -gdn-gpu-check

#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!rows = !gdn_gpu.shared<8x128xf32>
func.func @rows_in_common(%x: f32) attributes {gdn_gpu.kernel = {threads = 64 : i64}} {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %p = gdn_gpu.alloc : !rows
  gdn_gpu.warps 0 for 1 {
    %s = gdn_gpu.fill %x : f32 -> !gdn_gpu.fragment<3x128xf32, #one>
    // expected-note@+1 {{access before it}}
    gdn_gpu.store_shared %s, %p row(%c0) : !gdn_gpu.fragment<3x128xf32, #one>, !rows
  }
  gdn_gpu.warps 1 for 1 {
    %s = gdn_gpu.fill %x : f32 -> !gdn_gpu.fragment<1x128xf32, #one>
    gdn_gpu.store_shared %s, %p row(%c4) : !gdn_gpu.fragment<1x128xf32, #one>, !rows
    // expected-error@+1 {{'gdn_gpu.store_shared' op expects a gdn_gpu.barrier between it and the access before it}}
    gdn_gpu.store_shared %s, %p row(%c2) : !gdn_gpu.fragment<1x128xf32, #one>, !rows
  }
  return
}

// -----

#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!rows = !gdn_gpu.shared<8x128xf32>
func.func @the_same_row(%x: f32, %i: index) attributes {gdn_gpu.kernel = {threads = 64 : i64}} {
  %p = gdn_gpu.alloc : !rows
  gdn_gpu.warps 0 for 1 {
    %s = gdn_gpu.fill %x : f32 -> !gdn_gpu.fragment<1x128xf32, #one>
    // expected-note@+1 {{access before it}}
    gdn_gpu.store_shared %s, %p row(%i) : !gdn_gpu.fragment<1x128xf32, #one>, !rows
  }
  gdn_gpu.warps 1 for 1 {
    %s = gdn_gpu.fill %x : f32 -> !gdn_gpu.fragment<1x128xf32, #one>
    // expected-error@+1 {{'gdn_gpu.store_shared' op expects a gdn_gpu.barrier between it and the access before it}}
    gdn_gpu.store_shared %s, %p row(%i) : !gdn_gpu.fragment<1x128xf32, #one>, !rows
  }
  return
}

// -----

// The ring comes round to what some warp may still read.
#two = #gdn_gpu.rows<warps = 2, lanes = 8, vector = 4>
!two = !gdn_gpu.fragment<8x32xf32, #two>
!chan = !gdn_gpu.channel<8x32xf32, depth = 2>
!tile = !gdn_gpu.shared<8x32xf32>
func.func @comes_round(%x: f32, %n: index) attributes {gdn_gpu.kernel = {threads = 96 : i64}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c = gdn_gpu.channel : !chan
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 2 {
      %s = gdn_gpu.fill %x : f32 -> !two
      %a = gdn_gpu.acquire %c : !chan -> !tile
      gdn_gpu.store_shared %s, %a : !two, !tile
      %own = gdn_gpu.commit %c : !chan -> !tile
      gdn_gpu.barrier
      // expected-note@+1 {{read here}}
      %f = gdn_gpu.load_shared %own : !tile -> !two
      %b = gdn_gpu.acquire %c : !chan -> !tile
      gdn_gpu.store_shared %s, %b : !two, !tile
      gdn_gpu.commit %c : !chan
      // expected-error@+1 {{'gdn_gpu.acquire' op expects a gdn_gpu.barrier between it and what this role read of the tile that it committed before}}
      %d = gdn_gpu.acquire %c : !chan -> !tile
      gdn_gpu.store_shared %s, %d : !two, !tile
      gdn_gpu.commit %c : !chan
    }
    gdn_gpu.warps 2 for 1 {
      scf.for %j = %c0 to %n step %c1 {
        %t = gdn_gpu.receive %c : !chan -> !tile
        gdn_gpu.release %c : !chan
      }
    }
  }
  return
}

// -----

// A box does not wait for a read that is under way.
#four = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!four = !gdn_gpu.fragment<64x64xbf16, #four>
!panel = !gdn_gpu.channel<64x64xbf16, depth = 2, swizzled>
!tile = !gdn_gpu.shared<64x64xbf16, swizzled>
!view = memref<?x64xbf16, strided<[?, 1]>>
func.func @box_overtakes(%x: !view, %y: memref<?x64xbf16>)
    attributes {gdn_gpu.kernel = {threads = 256 : i64, warpgroups}} {
  %c0 = arith.constant 0 : index
  %c = gdn_gpu.channel : !panel
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 4 {
      %t = gdn_gpu.receive %c : !panel -> !tile
      // expected-note@+1 {{loaded here}}
      %f = gdn_gpu.load_shared %t : !tile -> !four
      // expected-error@+1 {{'gdn_gpu.release' op expects what was loaded to be used before, since gdn_gpu.begin_copy tensor_map fills the channel}}
      gdn_gpu.release %c : !panel
      gdn_gpu.store %f, %y[%c0, %c0] dims [0, 1] : !four, memref<?x64xbf16>
    }
    gdn_gpu.warps 4 for 4 {
      %t = gdn_gpu.acquire %c : !panel -> !tile
      gdn_gpu.begin_copy tensor_map %x[%c0, %c0] dims [0, 1], %t : !view, !tile
      gdn_gpu.await_copies
      gdn_gpu.commit %c : !panel
    }
  }
  return
}
