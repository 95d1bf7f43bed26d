// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where gdn-gpu-place-barriers puts barriers: before an access, before the role
// that an access is in, once for a loop, and behind a copy that is awaited. What
// is in order gets none. What comes out passes gdn-gpu-check.
//
// RUN: gdn-gpu-opt %s -gdn-gpu-place-barriers -gdn-gpu-check | FileCheck %s

#rows = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
#one = #gdn_gpu.rows<warps = 1, lanes = 1, vector = 1>
!tile = !gdn_gpu.fragment<64x64xf16, #rows>
!buffer = !gdn_gpu.shared<64x64xf16, swizzled>
!view = memref<?x64x64xf16, strided<[4096, 64, 1]>>

// CHECK-LABEL: func.func @share_and_fetch(
//       CHECK: gdn_gpu.store_shared
//  CHECK-NEXT: gdn_gpu.barrier
//  CHECK-NEXT: gdn_gpu.load_shared
//  CHECK-NEXT: gdn_gpu.load_shared transpose
//  CHECK-NEXT: gdn_gpu.barrier
//  CHECK-NEXT: gdn_gpu.store_shared
//  CHECK-NEXT: return
func.func @share_and_fetch(%t: !tile) attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  %p = gdn_gpu.alloc : !buffer
  gdn_gpu.store_shared %t, %p : !tile, !buffer
  %a = gdn_gpu.load_shared %p : !buffer -> !tile
  %b = gdn_gpu.load_shared transpose %p : !buffer -> !tile
  gdn_gpu.store_shared %t, %p : !tile, !buffer
  return
}

// CHECK-LABEL: func.func @role(
//       CHECK: gdn_gpu.warps 0 for 1
//       CHECK:   gdn_gpu.store_shared
//       CHECK: gdn_gpu.barrier
//  CHECK-NEXT: gdn_gpu.warps 1 for 1
//  CHECK-NEXT:   gdn_gpu.load_shared
//       CHECK: return
func.func @role(%g: !gdn_gpu.fragment<64xf32, #gdn_gpu.per_row<#one>>)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  %p = gdn_gpu.alloc : !gdn_gpu.shared<64xf32>
  %x = arith.constant 1.0 : f32
  gdn_gpu.warps 0 for 1 {
    %f = gdn_gpu.fill %x : f32 -> !gdn_gpu.fragment<64xf32, #gdn_gpu.per_row<#one>>
    gdn_gpu.store_shared %f, %p : !gdn_gpu.fragment<64xf32, #gdn_gpu.per_row<#one>>, !gdn_gpu.shared<64xf32>
  }
  gdn_gpu.warps 1 for 1 {
    %f = gdn_gpu.load_shared %p : !gdn_gpu.shared<64xf32> -> !gdn_gpu.fragment<64xf32, #gdn_gpu.per_row<#one>>
  }
  return
}

// From the end of a turn to the beginning of the next.
// CHECK-LABEL: func.func @loop(
//       CHECK: scf.for
//  CHECK-NEXT:   gdn_gpu.barrier
//  CHECK-NEXT:   gdn_gpu.store_shared
//  CHECK-NEXT:   gdn_gpu.barrier
//  CHECK-NEXT:   gdn_gpu.load_shared
//  CHECK-NEXT: }
func.func @loop(%t: !tile, %n: index) attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %p = gdn_gpu.alloc : !buffer
  scf.for %i = %c0 to %n step %c1 {
    gdn_gpu.store_shared %t, %p : !tile, !buffer
    %a = gdn_gpu.load_shared %p : !buffer -> !tile
  }
  return
}

// The other copy goes on.
// CHECK-LABEL: func.func @copies(
//       CHECK: gdn_gpu.begin_copy
//  CHECK-NEXT: gdn_gpu.store_shared
//  CHECK-NEXT: gdn_gpu.barrier
//  CHECK-NEXT: gdn_gpu.load_shared
//  CHECK-NEXT: gdn_gpu.await_copies
//  CHECK-NEXT: gdn_gpu.barrier
//  CHECK-NEXT: gdn_gpu.load_shared
func.func @copies(%v: !view, %t: !tile) attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  %c0 = arith.constant 0 : index
  %p = gdn_gpu.alloc : !buffer
  %q = gdn_gpu.alloc : !buffer
  gdn_gpu.begin_copy %v[%c0, %c0, %c0] dims [1, 2], %p : !view, !buffer
  gdn_gpu.store_shared %t, %q : !tile, !buffer
  %a = gdn_gpu.load_shared %q : !buffer -> !tile
  %b = gdn_gpu.load_shared %p : !buffer -> !tile
  return
}

// Two stores of one row; another row goes between them as it is.
// CHECK-LABEL: func.func @rows(
//       CHECK: gdn_gpu.store_shared %{{.+}}, %{{.+}} row(%c0)
//  CHECK-NEXT: gdn_gpu.store_shared %{{.+}}, %{{.+}} row(%c1)
//  CHECK-NEXT: gdn_gpu.barrier
//  CHECK-NEXT: gdn_gpu.store_shared %{{.+}}, %{{.+}} row(%c0)
#flat = #gdn_gpu.rows<warps = 4, lanes = 8, vector = 4>
!flat = !gdn_gpu.fragment<1x32xf32, #flat>
func.func @rows(%t: !flat) attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %p = gdn_gpu.alloc : !gdn_gpu.shared<2x32xf32>
  gdn_gpu.store_shared %t, %p row(%c0) : !flat, !gdn_gpu.shared<2x32xf32>
  gdn_gpu.store_shared %t, %p row(%c1) : !flat, !gdn_gpu.shared<2x32xf32>
  gdn_gpu.store_shared %t, %p row(%c0) : !flat, !gdn_gpu.shared<2x32xf32>
  return
}

// What the role that fills a ring of one tile reads back, before it fills it again.
// CHECK-LABEL: func.func @read_back(
//       CHECK: scf.for
//  CHECK-NEXT:   gdn_gpu.barrier
//  CHECK-NEXT:   gdn_gpu.acquire
//  CHECK-NEXT:   gdn_gpu.store_shared
//  CHECK-NEXT:   gdn_gpu.commit
//  CHECK-NEXT:   gdn_gpu.barrier
//  CHECK-NEXT:   gdn_gpu.load_shared
//  CHECK-NEXT: }
!ring = !gdn_gpu.channel<64x64xf16, depth = 1, swizzled>
func.func @read_back(%x: f16, %n: index) attributes {gdn_gpu.kernel = {threads = 160 : i64}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c = gdn_gpu.channel : !ring
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 4 {
      %t = gdn_gpu.fill %x : f16 -> !tile
      scf.for %i = %c0 to %n step %c1 {
        %a = gdn_gpu.acquire %c : !ring -> !buffer
        gdn_gpu.store_shared %t, %a : !tile, !buffer
        %own = gdn_gpu.commit %c : !ring -> !buffer
        %b = gdn_gpu.load_shared %own : !buffer -> !tile
      }
    }
    gdn_gpu.warps 4 for 1 {
      scf.for %i = %c0 to %n step %c1 {
        %a = gdn_gpu.receive %c : !ring -> !buffer
        gdn_gpu.release %c : !ring
      }
    }
  }
  return
}
