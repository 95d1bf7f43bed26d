// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products that four warps make together, and where a program waits for them:
// the second begins before the first is awaited, work on the state comes before
// both, each is awaited before the barrier or where it is used.
//
// RUN: gdn-gpu-opt %s -gdn-gpu-use-warpgroups | FileCheck %s --check-prefix=GROUPS
// RUN: gdn-gpu-opt %s -gdn-gpu-use-warpgroups -gdn-gpu-overlap-products -gdn-gpu-check | FileCheck %s --check-prefix=OVERLAP

#rows = #gdn_gpu.rows<warps = 8, lanes = 4, vector = 2>
#two = #gdn_gpu.rows<warps = 2, lanes = 4, vector = 2>
!state = !gdn_gpu.fragment<128x128xf32, #rows>
!left = !gdn_gpu.fragment<128x128xbf16, #rows>
!sums = !gdn_gpu.fragment<128x64xf32, #rows>
!keys = !gdn_gpu.shared<64x128xbf16, swizzled>
!view = memref<?x64x128xbf16>

// GROUPS-LABEL: func.func @recurrence(
//  GROUPS-SAME:   warpgroups
// GROUPS-COUNT-2: gdn_gpu.matmul warpgroup

// OVERLAP-LABEL: func.func @recurrence(
//       OVERLAP:   gdn_gpu.barrier
//       OVERLAP:   %[[NEXT:.+]] = gdn_gpu.map_rows %{{.+}} : !gdn_gpu.fragment<128x128xf32
//       OVERLAP:   %[[U:.+]] = gdn_gpu.start_matmul %{{.+}}, transpose
//  OVERLAP-NEXT:   %[[O:.+]] = gdn_gpu.start_matmul %{{.+}}, transpose
//  OVERLAP-NEXT:   %[[USED:.+]] = gdn_gpu.await_matmul %[[U]] :
//  OVERLAP-NEXT:   gdn_gpu.map_rows %[[USED]] :
//       OVERLAP:   gdn_gpu.await_matmul %[[O]] :
//  OVERLAP-NEXT:   gdn_gpu.barrier
func.func @recurrence(%k: !view, %q: !view, %s: !state, %l: !left, %i: index)
    -> (!sums, !sums, !state) attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  %c0 = arith.constant 0 : index
  %keys = gdn_gpu.alloc : !keys
  %queries = gdn_gpu.alloc : !keys
  gdn_gpu.begin_copy %k[%i, %c0, %c0] dims [1, 2], %keys : !view, !keys
  gdn_gpu.begin_copy %q[%i, %c0, %c0] dims [1, 2], %queries : !view, !keys
  gdn_gpu.await_copies
  gdn_gpu.barrier
  %u = gdn_gpu.matmul %l, transpose %keys : !left, !keys -> !sums
  %o = gdn_gpu.matmul %l, transpose %queries : !left, !keys -> !sums
  %next = gdn_gpu.map_rows %s : !state -> !state {
  ^bb0(%row: index, %x: vector<128xf32>):
    %y = arith.addf %x, %x : vector<128xf32>
    gdn_gpu.yield %y : vector<128xf32>
  }
  %w = gdn_gpu.map_rows %u : !sums -> !sums {
  ^bb0(%row: index, %x: vector<64xf32>):
    %y = arith.addf %x, %x : vector<64xf32>
    gdn_gpu.yield %y : vector<64xf32>
  }
  gdn_gpu.barrier
  gdn_gpu.begin_copy %k[%i, %c0, %c0] dims [1, 2], %keys : !view, !keys
  gdn_gpu.await_copies
  return %w, %o, %next : !sums, !sums, !state
}

// Two warps are no group, and a row of 64 bytes is no panel.
// GROUPS-LABEL: func.func @narrow(
//   GROUPS-NOT:   warpgroups
//   GROUPS-NOT:   warpgroup
//       GROUPS:   return
// OVERLAP-LABEL: func.func @narrow(
//   OVERLAP-NOT:   start_matmul
func.func @narrow(%l: !gdn_gpu.fragment<32x32xf16, #two>)
    -> !gdn_gpu.fragment<32x32xf32, #two> attributes {gdn_gpu.kernel = {threads = 64 : i64}} {
  %p = gdn_gpu.alloc : !gdn_gpu.shared<32x32xf16, swizzled>
  gdn_gpu.store_shared %l, %p : !gdn_gpu.fragment<32x32xf16, #two>, !gdn_gpu.shared<32x32xf16, swizzled>
  gdn_gpu.barrier
  %s = gdn_gpu.matmul %l, %p : !gdn_gpu.fragment<32x32xf16, #two>, !gdn_gpu.shared<32x32xf16, swizzled>
      -> !gdn_gpu.fragment<32x32xf32, #two>
  return %s : !gdn_gpu.fragment<32x32xf32, #two>
}

// A left side that lies in shared memory is read there, transposed or as it is.
// OVERLAP-LABEL: func.func @shared_lhs(
//       OVERLAP:   %[[P:.+]] = gdn_gpu.alloc
//   OVERLAP-NOT:   gdn_gpu.load_shared
//       OVERLAP:   gdn_gpu.start_matmul %[[P]], transpose %[[P]] : !gdn_gpu.shared<64x64xf16, swizzled>,
//       OVERLAP:   gdn_gpu.start_matmul transposed %[[P]], %[[P]] : !gdn_gpu.shared<64x64xf16, swizzled>,
#group = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!square = !gdn_gpu.fragment<64x64xf16, #group>
!buffer = !gdn_gpu.shared<64x64xf16, swizzled>
!product = !gdn_gpu.fragment<64x64xf32, #group>
func.func @shared_lhs(%t: !square) -> (!product, !product)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  %p = gdn_gpu.alloc : !buffer
  gdn_gpu.store_shared %t, %p : !square, !buffer
  gdn_gpu.barrier
  %a = gdn_gpu.load_shared %p : !buffer -> !square
  %s = gdn_gpu.matmul %a, transpose %p : !square, !buffer -> !product
  %b = gdn_gpu.load_shared transpose %p : !buffer -> !square
  %r = gdn_gpu.matmul %b, %p : !square, !buffer -> !product
  return %s, %r : !product, !product
}

// A row from shared memory is loaded ahead of a product with the work on the
// state that is all that needs it.
// OVERLAP-LABEL: func.func @row_ahead(
//       OVERLAP:   %[[ROW:.+]] = gdn_gpu.load_shared %{{.+}} : <128xf32>
//       OVERLAP:   %[[NEXT:.+]] = gdn_gpu.map_rows %{{.+}}, %[[ROW]] :
//       OVERLAP:   gdn_gpu.start_matmul
#state = #gdn_gpu.rows<warps = 4, lanes = 4, vector = 2>
!held = !gdn_gpu.fragment<64x128xf16, #state>
!whole = !gdn_gpu.fragment<64x128xf32, #state>
!known = !gdn_gpu.fragment<64x64xf32, #state>
!chunk = !gdn_gpu.shared<64x128xf16, swizzled>
!row = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#state>>
func.func @row_ahead(%h: !held, %s: !whole, %f: !row) -> (!known, !whole)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  %keys = gdn_gpu.alloc : !chunk
  %decay = gdn_gpu.alloc : !gdn_gpu.shared<128xf32>
  gdn_gpu.store_shared %f, %decay : !row, !gdn_gpu.shared<128xf32>
  gdn_gpu.store_shared %h, %keys : !held, !chunk
  gdn_gpu.barrier
  %u = gdn_gpu.matmul %h, transpose %keys : !held, !chunk -> !known
  %row = gdn_gpu.load_shared %decay : !gdn_gpu.shared<128xf32> -> !row
  %next = gdn_gpu.map_rows %s, %row : !whole, !row -> !whole {
  ^bb0(%i: index, %x: vector<128xf32>, %y: vector<128xf32>):
    %z = arith.mulf %x, %y : vector<128xf32>
    gdn_gpu.yield %z : vector<128xf32>
  }
  return %u, %next : !known, !whole
}
