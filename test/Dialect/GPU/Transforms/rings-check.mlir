// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-gpu-check: rows that are apart, tiles of a ring that are read back in time, and boxes
// whose tile has been read.
//
// RUN: gdn-gpu-opt %s -gdn-gpu-check | FileCheck %s

#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
#two = #gdn_gpu.rows<warps = 2, lanes = 8, vector = 4>
#four = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!rows = !gdn_gpu.shared<8x128xf32>
!two = !gdn_gpu.fragment<8x32xf32, #two>
!chan = !gdn_gpu.channel<8x32xf32, depth = 2>
!tile = !gdn_gpu.shared<8x32xf32>
!four = !gdn_gpu.fragment<64x64xbf16, #four>
!panel = !gdn_gpu.channel<64x64xbf16, depth = 2, swizzled>
!box = !gdn_gpu.shared<64x64xbf16, swizzled>
!view = memref<?x64xbf16, strided<[?, 1]>>

// CHECK-LABEL: func.func @rows_apart(
func.func @rows_apart(%x: f32) attributes {gdn_gpu.kernel = {threads = 64 : i64}} {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %p = gdn_gpu.alloc : !rows
  gdn_gpu.warps 0 for 1 {
    %s = gdn_gpu.fill %x : f32 -> !gdn_gpu.fragment<3x128xf32, #one>
    gdn_gpu.store_shared %s, %p row(%c0) : !gdn_gpu.fragment<3x128xf32, #one>, !rows
  }
  gdn_gpu.warps 1 for 1 {
    %s = gdn_gpu.fill %x : f32 -> !gdn_gpu.fragment<1x128xf32, #one>
    gdn_gpu.store_shared %s, %p row(%c3) : !gdn_gpu.fragment<1x128xf32, #one>, !rows
  }
  gdn_gpu.barrier
  gdn_gpu.warps 1 for 1 {
    %s = gdn_gpu.fill %x : f32 -> !gdn_gpu.fragment<1x128xf32, #one>
    // CHECK: gdn_gpu.store_shared %{{.+}}, %{{.+}} row(%c0)
    gdn_gpu.store_shared %s, %p row(%c0) : !gdn_gpu.fragment<1x128xf32, #one>, !rows
  }
  return
}

// A barrier in each turn, before the ring comes round.
// CHECK-LABEL: func.func @read_back(
func.func @read_back(%x: f32, %n: index) attributes {gdn_gpu.kernel = {threads = 96 : i64}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c = gdn_gpu.channel : !chan
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 2 {
      %s = gdn_gpu.fill %x : f32 -> !two
      scf.for %j = %c0 to %n step %c1 {
        %a = gdn_gpu.acquire %c : !chan -> !tile
        gdn_gpu.store_shared %s, %a : !two, !tile
        %own = gdn_gpu.commit %c : !chan -> !tile
        gdn_gpu.barrier
        // CHECK: gdn_gpu.load_shared
        %f = gdn_gpu.load_shared %own : !tile -> !two
      }
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

// CHECK-LABEL: func.func @box(
func.func @box(%x: !view, %y: memref<?x64xbf16>)
    attributes {gdn_gpu.kernel = {threads = 256 : i64, warpgroups}} {
  %c0 = arith.constant 0 : index
  %c = gdn_gpu.channel : !panel
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 4 {
      %t = gdn_gpu.receive %c : !panel -> !box
      %f = gdn_gpu.load_shared %t : !box -> !four
      gdn_gpu.store %f, %y[%c0, %c0] dims [0, 1] : !four, memref<?x64xbf16>
      // CHECK: gdn_gpu.release
      gdn_gpu.release %c : !panel
    }
    gdn_gpu.warps 4 for 4 {
      %t = gdn_gpu.acquire %c : !panel -> !box
      gdn_gpu.begin_copy tensor_map %x[%c0, %c0] dims [0, 1], %t : !view, !box
      gdn_gpu.await_copies
      gdn_gpu.commit %c : !panel
    }
  }
  return
}
