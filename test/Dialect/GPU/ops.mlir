// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The ops of gdn_gpu: parse, print, and print again, in both forms.
//
// RUN: gdn-gpu-opt %s | gdn-gpu-opt | FileCheck %s
// RUN: gdn-gpu-opt -mlir-print-op-generic %s | gdn-gpu-opt | FileCheck %s

#rows = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!state = !gdn_gpu.fragment<128x128xf32, #rows>
!row = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#rows>>
!column = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#rows>>
!one = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#one>>
!buffer = !gdn_gpu.shared<128xf32>
!view = memref<?x?x128x128xf32, strided<[?, ?, ?, 1]>>

// Memory to registers and back, with all that the ops may say.
// CHECK-LABEL: func.func @access
//       CHECK:   %[[H:.+]] = gdn_gpu.block_id 1
//       CHECK:   gdn_gpu.load %{{.+}}[%{{.+}}, %[[H]], %{{.+}}, %{{.+}}] dims [2, 3] rows(%[[N:.+]]) whole aligned 16 : memref<{{.+}}>, {{(!gdn_gpu.fragment)?}}<128x128xf32, #{{.+}}>
//       CHECK:   gdn_gpu.store %{{.+}}, %{{.+}}[%{{.+}}] dims [2, 3] rows(%[[N]]) aligned 16 : {{(!gdn_gpu.fragment)?}}<128x128xf32, #{{.+}}>, memref<{{.+}}>
//       CHECK:   gdn_gpu.load %{{.+}} dims [3] : memref<{{.+}}>, {{(!gdn_gpu.fragment)?}}<128xf32, #gdn_gpu.per_column<#{{.+}}>>
func.func @access(%pool: !view, %slot: index, %n: index)
    attributes {gdn_gpu.kernel = {threads = 256 : i64}, gdn_tile.stage = {grid = ["N", "Hv"]}} {
  %c0 = arith.constant 0 : index
  %h = gdn_gpu.block_id 1
  %m = gdn_gpu.load %pool[%slot, %h, %c0, %c0] dims [2, 3] rows(%n) whole aligned 16 : !view, !state
  gdn_gpu.store %m, %pool[%slot, %h, %c0, %c0] dims [2, 3] rows(%n) aligned 16 : !state, !view
  %k = gdn_gpu.load %pool[%slot, %h, %c0, %c0] dims [3] : !view, !column
  return
}

// Roles, shared tiles and order.
// CHECK-LABEL: func.func @roles
//       CHECK:   %[[PLACE:.+]] = gdn_gpu.alloc : {{(!gdn_gpu.shared)?}}<128xf32>
//       CHECK:   %[[GRID:.+]] = gdn_gpu.alloc : {{(!gdn_gpu.shared)?}}<4x128xf32>
//       CHECK:   gdn_gpu.reshape %[[GRID]] : {{(!gdn_gpu.shared)?}}<4x128xf32> to {{(!gdn_gpu.shared)?}}<512xf32>
//       CHECK:   gdn_gpu.await_launch
//       CHECK:   gdn_gpu.release_launch
//       CHECK:   %[[R:.+]]:2 = gdn_gpu.warps 3 for 1 -> {{(!gdn_gpu.fragment)?}}<128xf32, {{.+}}>, f32 {
//       CHECK:     gdn_gpu.store_shared %{{.+}}, %[[PLACE]] : {{(!gdn_gpu.fragment)?}}<128xf32, {{.+}}>, {{(!gdn_gpu.shared)?}}<128xf32>
//       CHECK:     gdn_gpu.store_shared %{{.+}}, %[[GRID]] row(%{{.+}}) : {{(!gdn_gpu.fragment)?}}<128xf32, {{.+}}>, {{(!gdn_gpu.shared)?}}<4x128xf32>
//       CHECK:     %[[E:.+]] = gdn_gpu.extract %{{.+}}[127] : {{(!gdn_gpu.fragment)?}}<128xf32, {{.+}}> -> f32
//       CHECK:     gdn_gpu.last_reader %{{.+}} of %{{.+}} after %{{.+}}, %{{.+}} : {{(!gdn_gpu.fragment)?}}<128xf32, {{.+}}>, {{(!gdn_gpu.fragment)?}}<128xf32, {{.+}}>
//       CHECK:     %[[TICKET:.+]] = gdn_gpu.take_ticket %{{.+}} of %{{.+}} after %{{.+}} : {{(!gdn_gpu.fragment)?}}<128xf32, {{.+}}>
//       CHECK:     gdn_gpu.is_last %[[TICKET]] of %{{.+}}
//       CHECK:     gdn_gpu.yield %{{.+}}, %[[E]] : {{(!gdn_gpu.fragment)?}}<128xf32, {{.+}}>, f32
//       CHECK:   gdn_gpu.barrier
//       CHECK:   gdn_gpu.load_shared %[[PLACE]] : {{(!gdn_gpu.shared)?}}<128xf32> -> {{(!gdn_gpu.fragment)?}}<128xf32, #gdn_gpu.per_row<#{{.+}}>>
//       CHECK:   gdn_gpu.load_shared %[[GRID]] row(%{{.+}}) : {{(!gdn_gpu.shared)?}}<4x128xf32> -> {{(!gdn_gpu.fragment)?}}<128xf32, #gdn_gpu.per_column<#{{.+}}>>
//       CHECK:   gdn_gpu.load_shared_element %[[PLACE]][%{{.+}}] : {{(!gdn_gpu.shared)?}}<128xf32> -> f32
//       CHECK:   gdn_gpu.warps 3 for 1 {
//       CHECK:     arith.negf %[[R]]#1
func.func @roles(%i: index, %x: f32) attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  %buffer = gdn_gpu.alloc : !buffer
  %grid = gdn_gpu.alloc : !gdn_gpu.shared<4x128xf32>
  %row = gdn_gpu.reshape %grid : !gdn_gpu.shared<4x128xf32> to !gdn_gpu.shared<512xf32>
  gdn_gpu.await_launch
  gdn_gpu.release_launch
  %r, %y = gdn_gpu.warps 3 for 1 -> !one, f32 {
    %t = gdn_gpu.fill %x : f32 -> !one
    gdn_gpu.store_shared %t, %buffer : !one, !buffer
    gdn_gpu.store_shared %t, %grid row(%i) : !one, !gdn_gpu.shared<4x128xf32>
    %e = gdn_gpu.extract %t[127] : !one -> f32
    %last = gdn_gpu.last_reader %i of %i after %t, %t : !one, !one
    %ticket = gdn_gpu.take_ticket %i of %i after %t : !one
    %is_last = gdn_gpu.is_last %ticket of %i
    gdn_gpu.yield %t, %e : !one, f32
  }
  gdn_gpu.barrier
  %v = gdn_gpu.load_shared %buffer : !buffer -> !row
  %k = gdn_gpu.load_shared %grid row(%i) : !gdn_gpu.shared<4x128xf32> -> !column
  %s = gdn_gpu.load_shared_element %buffer[%i] : !buffer -> f32
  gdn_gpu.warps 3 for 1 {
    %z = arith.negf %y : f32
  }
  return
}

// Work on rows: what a row has of each layout.
// CHECK-LABEL: func.func @rows
//       CHECK:   gdn_gpu.map_rows %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, %{{[a-z0-9]+}} : !gdn_gpu.fragment<128x128xf32, #{{[a-z0-9]+}}>, !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#{{[a-z0-9]+}}>>, !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#{{[a-z0-9]+}}>>
//  CHECK-SAME:     -> !gdn_gpu.fragment<128x128xf32, {{.+}}>, !gdn_gpu.fragment<128xf32, {{.+}}> {
//       CHECK:   ^bb0(%{{.+}}: index, %{{.+}}: vector<128xf32>, %{{.+}}: f32, %{{.+}}: vector<128xf32>):
//       CHECK:     gdn_gpu.yield %{{.+}}, %{{.+}} : vector<128xf32>, f32
//       CHECK:   gdn_gpu.map_rows -> {{(!gdn_gpu.fragment)?}}<128xf32, {{.+}}> {
func.func @rows(%m: !state, %v: !row, %k: !column)
    attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  %new, %o = gdn_gpu.map_rows %m, %v, %k : !state, !row, !column -> !state, !row {
  ^bb0(%i: index, %row: vector<128xf32>, %value: f32, %key: vector<128xf32>):
    %product = arith.mulf %row, %key : vector<128xf32>
    %sum = vector.reduction <add>, %product : vector<128xf32> into f32
    %d = arith.subf %value, %sum : f32
    %all = vector.broadcast %d : f32 to vector<128xf32>
    %next = arith.addf %row, %all : vector<128xf32>
    gdn_gpu.yield %next, %d : vector<128xf32>, f32
  }
  %n = gdn_gpu.map_rows -> !row {
  ^bb0(%i: index):
    %j = arith.index_cast %i : index to i32
    %f = arith.sitofp %j : i32 to f32
    gdn_gpu.yield %f : f32
  }
  return
}

// CHECK-LABEL: func.func @conv
//       CHECK:   gdn_gpu.conv1d %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, %{{[a-z0-9]+}} bias(%{{[a-z0-9]+}} : !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#{{[a-z0-9]+}}>>) valid(%{{[a-z0-9]+}})
//  CHECK-SAME:     : {{(!gdn_gpu.fragment)?}}<2x128xf32, #{{[a-z0-9]+}}>, {{(!gdn_gpu.fragment)?}}<3x128xf32, #{{[a-z0-9]+}}>, {{(!gdn_gpu.fragment)?}}<4x128xf32, #{{[a-z0-9]+}}>
//  CHECK-SAME:     -> {{(!gdn_gpu.fragment)?}}<2x128xf32, #{{[a-z0-9]+}}>, {{(!gdn_gpu.fragment)?}}<3x128xf32, #{{[a-z0-9]+}}>
func.func @conv(%x: !gdn_gpu.fragment<2x128xf32, #one>, %win: !gdn_gpu.fragment<3x128xf32, #one>,
                %w: !gdn_gpu.fragment<4x128xf32, #one>, %b: !one, %n: index) {
  %y, %next = gdn_gpu.conv1d %x, %win, %w bias(%b : !one) valid(%n)
      : !gdn_gpu.fragment<2x128xf32, #one>, !gdn_gpu.fragment<3x128xf32, #one>, !gdn_gpu.fragment<4x128xf32, #one>
      -> !gdn_gpu.fragment<2x128xf32, #one>, !gdn_gpu.fragment<3x128xf32, #one>
  return
}

// CHECK-LABEL: func.func @begin_load
//       CHECK:   gdn_gpu.begin_load %{{.+}}[%{{.+}}, %{{.+}}] dims [1, 0], %[[P:.+]] : memref<?x4xbf16>, !gdn_gpu.fragment<4x128xbf16, #{{.+}}>, <512xbf16>
//       CHECK:   gdn_gpu.arrive for 0
//       CHECK:     gdn_gpu.await_arrivals
//       CHECK:     gdn_gpu.load %{{.+}}[%{{.+}}, %{{.+}}] dims [1, 0] begun(%[[P]] : !gdn_gpu.shared<512xbf16>) : memref<?x4xbf16>,
func.func @begin_load(%weights: memref<?x4xbf16>, %c: index, %p: !gdn_gpu.shared<512xbf16>)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  gdn_gpu.begin_load %weights[%c, %c] dims [1, 0], %p : memref<?x4xbf16>, !gdn_gpu.fragment<4x128xbf16, #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>>, !gdn_gpu.shared<512xbf16>
  gdn_gpu.arrive for 0
  gdn_gpu.warps 0 for 1 {
    gdn_gpu.await_arrivals
    %w = gdn_gpu.load %weights[%c, %c] dims [1, 0] begun(%p : !gdn_gpu.shared<512xbf16>) : memref<?x4xbf16>, !gdn_gpu.fragment<4x128xbf16, #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>>
  }
  return
}

// CHECK-LABEL: func.func @prefetch
//       CHECK:   gdn_gpu.prefetch %{{.+}}[%{{.+}}, %{{.+}}] dims [1, 0] : memref<?x4xbf16>, !gdn_gpu.fragment<4x128xbf16, #{{.+}}>
func.func @prefetch(%weights: memref<?x4xbf16>, %c: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  gdn_gpu.prefetch %weights[%c, %c] dims [1, 0] : memref<?x4xbf16>, !gdn_gpu.fragment<4x128xbf16, #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>>
  return
}

// Each warp by itself, with rows of a shared tile.
// CHECK-LABEL: func.func @each_warp
//       CHECK:   %[[T:.+]] = gdn_gpu.each_warp 2 for 4 -> {{.+}} {
//       CHECK:   ^bb0(%[[W:.+]]: index):
//       CHECK:     gdn_gpu.store_shared %{{.+}}, %[[P:.+]] row(%[[W]]) : {{.*}}<2x128xf32, #{{.+}}>, {{.*}}<8x128xf32>
//       CHECK:   gdn_gpu.each_warp 2 for 4 {
//       CHECK:     gdn_gpu.load_shared %[[P]] row(%{{.+}}) : {{.*}}<8x128xf32> -> {{.*}}<3x128xf32, #{{.+}}>
func.func @each_warp(%x: f32, %p: !gdn_gpu.shared<8x128xf32>)
    attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  %t = gdn_gpu.each_warp 2 for 4 -> !gdn_gpu.fragment<2x128xf32, #one> {
  ^bb0(%w: index):
    %s = gdn_gpu.fill %x : f32 -> !gdn_gpu.fragment<2x128xf32, #one>
    gdn_gpu.store_shared %s, %p row(%w) : !gdn_gpu.fragment<2x128xf32, #one>, !gdn_gpu.shared<8x128xf32>
    gdn_gpu.yield %s : !gdn_gpu.fragment<2x128xf32, #one>
  }
  gdn_gpu.barrier
  gdn_gpu.each_warp 2 for 4 {
  ^bb0(%w: index):
    %s = gdn_gpu.load_shared %p row(%w) : !gdn_gpu.shared<8x128xf32> -> !gdn_gpu.fragment<3x128xf32, #one>
  }
  return
}
