// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-gpu-check: accesses to global memory that are in order, or apart.
//
// RUN: gdn-gpu-opt %s -gdn-gpu-check | FileCheck %s

#rows = #gdn_gpu.rows<warps = 2, lanes = 8, vector = 4>
#all = #gdn_gpu.rows<warps = 2, lanes = 32, vector = 1>
#row = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
#four = #gdn_gpu.rows<warps = 1, lanes = 4, vector = 4>
!rows = !gdn_gpu.fragment<8x32xf32, #rows>
!all = !gdn_gpu.fragment<8x32xf32, #all>
!tile = !gdn_gpu.shared<8x32xf32>

// By the same threads; behind a barrier; behind the end of a copy and a barrier.
// CHECK-LABEL: func.func @in_order(
func.func @in_order(%x: memref<?x32xf32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 64 : i64}} {
  %c0 = arith.constant 0 : index
  %p = gdn_gpu.alloc : !tile
  %a = gdn_gpu.load %x[%i, %c0] dims [0, 1] : memref<?x32xf32>, !rows
  gdn_gpu.store %a, %x[%i, %c0] dims [0, 1] : !rows, memref<?x32xf32>
  gdn_gpu.barrier
  %b = gdn_gpu.load %x[%i, %c0] dims [0, 1] : memref<?x32xf32>, !all
  gdn_gpu.begin_copy %x[%i, %c0] dims [0, 1], %p : memref<?x32xf32>, !tile
  gdn_gpu.await_copies
  gdn_gpu.barrier
  // CHECK: gdn_gpu.store
  gdn_gpu.store %a, %x[%i, %c0] dims [0, 1] : !rows, memref<?x32xf32>
  return
}

// Constants show that tiles are apart; a turn of a loop has a row of its own.
// CHECK-LABEL: func.func @apart(
func.func @apart(%x: memref<?x32xf32>, %n: index)
    attributes {gdn_gpu.kernel = {threads = 64 : i64}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %a = gdn_gpu.load %x[%c0, %c0] dims [0, 1] : memref<?x32xf32>, !all
  %one = arith.constant 1.0 : f32
  %f = gdn_gpu.fill %one : f32 -> !rows
  gdn_gpu.store %f, %x[%c8, %c0] dims [0, 1] : !rows, memref<?x32xf32>
  gdn_gpu.barrier
  // CHECK: scf.for
  scf.for %i = %c0 to %n step %c8 {
    gdn_gpu.store %f, %x[%i, %c0] dims [0, 1] : !rows, memref<?x32xf32>
    gdn_gpu.barrier
    %b = gdn_gpu.load %x[%i, %c0] dims [0, 1] : memref<?x32xf32>, !all
  }
  return
}

// The lanes of a warp have met; a lane has all rows of its columns.
// CHECK-LABEL: func.func @in_a_warp(
func.func @in_a_warp(%x: memref<?x64xf32>, %y: memref<?x128xf32>, %from: index, %to: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %c0 = arith.constant 0 : index
  gdn_gpu.warps 0 for 1 {
    %old = gdn_gpu.load %x[%from, %c0] dims [0, 1] : memref<?x64xf32>, !gdn_gpu.fragment<1x64xf32, #row>
    // CHECK: gdn_gpu.warp_barrier
    gdn_gpu.warp_barrier
    gdn_gpu.store %old, %x[%to, %c0] dims [0, 1] : !gdn_gpu.fragment<1x64xf32, #row>, memref<?x64xf32>
    %all = gdn_gpu.load %y[%from, %c0] dims [0, 1] : memref<?x128xf32>, !gdn_gpu.fragment<3x128xf32, #row>
    gdn_gpu.store %all, %y[%to, %c0] dims [0, 1] : !gdn_gpu.fragment<3x128xf32, #row>, memref<?x128xf32>
  }
  return
}

// What the last reader asks comes from all lanes.
// CHECK-LABEL: func.func @asked(
func.func @asked(%x: memref<?x64xf32>, %from: index, %to: index, %n: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %c0 = arith.constant 0 : index
  gdn_gpu.warps 0 for 1 {
    %old = gdn_gpu.load %x[%from, %c0] dims [0, 1] : memref<?x64xf32>, !gdn_gpu.fragment<1x64xf32, #row>
    %last = gdn_gpu.last_reader %c0 of %n after %old : !gdn_gpu.fragment<1x64xf32, #row>
    scf.if %last {
      // CHECK: gdn_gpu.store
      gdn_gpu.store %old, %x[%to, %c0] dims [0, 1] : !gdn_gpu.fragment<1x64xf32, #row>, memref<?x64xf32>
    }
  }
  return
}

// Roles that read one tile, each its own elements; all threads meet before the first role.
// CHECK-LABEL: func.func @roles(
func.func @roles(%x: memref<?x128xf32>, %i: index, %j: index, %v: f32)
    attributes {gdn_gpu.kernel = {threads = 64 : i64}} {
  %c0 = arith.constant 0 : index
  %p = gdn_gpu.alloc : !gdn_gpu.shared<1x128xf32>
  gdn_gpu.warps 0 for 1 {
    %s = gdn_gpu.fill %v : f32 -> !gdn_gpu.fragment<1x128xf32, #row>
    gdn_gpu.store_shared %s, %p : !gdn_gpu.fragment<1x128xf32, #row>, !gdn_gpu.shared<1x128xf32>
  }
  gdn_gpu.barrier
  // CHECK: gdn_gpu.roles
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      %a = gdn_gpu.load_shared %p : !gdn_gpu.shared<1x128xf32> -> !gdn_gpu.fragment<1x128xf32, #row>
      gdn_gpu.store %a, %x[%i, %c0] dims [0, 1] : !gdn_gpu.fragment<1x128xf32, #row>, memref<?x128xf32>
    }
    gdn_gpu.warps 1 for 1 {
      %a = gdn_gpu.load_shared %p : !gdn_gpu.shared<1x128xf32> -> !gdn_gpu.fragment<1x128xf32, #row>
      gdn_gpu.store %a, %x[%j, %c0] dims [0, 1] : !gdn_gpu.fragment<1x128xf32, #row>, memref<?x128xf32>
    }
  }
  return
}

// From slot to slot each lane moves what it has, whether the slots are others or not.
// CHECK-LABEL: func.func @from_slot_to_slot(
func.func @from_slot_to_slot(%x: memref<?x?x64xf32>, %from: index, %to: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %c0 = arith.constant 0 : index
  gdn_gpu.warps 0 for 1 {
    %old = gdn_gpu.load %x[%from, %c0, %c0] dims [1, 2] : memref<?x?x64xf32>, !gdn_gpu.fragment<3x64xf32, #row>
    // CHECK: gdn_gpu.store
    gdn_gpu.store %old, %x[%to, %c0, %c0] dims [1, 2] : !gdn_gpu.fragment<3x64xf32, #row>, memref<?x?x64xf32>
  }
  return
}

// Of columns that do not fill the lanes one lane of several writes, the same in both stores.
// CHECK-LABEL: func.func @stores_of_few_columns(
func.func @stores_of_few_columns(%x: memref<?x16xf32>, %i: index, %j: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %c0 = arith.constant 0 : index
  %v = arith.constant 0.0 : f32
  gdn_gpu.warps 0 for 1 {
    %a = gdn_gpu.fill %v : f32 -> !gdn_gpu.fragment<2x16xf32, #row>
    gdn_gpu.store %a, %x[%i, %c0] dims [0, 1] : !gdn_gpu.fragment<2x16xf32, #row>, memref<?x16xf32>
    // CHECK: gdn_gpu.store
    gdn_gpu.store %a, %x[%j, %c0] dims [0, 1] : !gdn_gpu.fragment<2x16xf32, #row>, memref<?x16xf32>
  }
  return
}

// The lanes of a row compare its elements, and so have read its scale, when one of them
// writes it.
// CHECK-LABEL: func.func @rounded_rows(
#part = #gdn_gpu.rows<warps = 2, lanes = 4, vector = 8>
func.func @rounded_rows(%x: memref<?x32xf32>, %scales: memref<?xf32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 64 : i64}} {
  %c0 = arith.constant 0 : index
  %a = gdn_gpu.load %x[%i, %c0] dims [0, 1] : memref<?x32xf32>, !gdn_gpu.fragment<16x32xf32, #part>
  %s = gdn_gpu.load %scales[%i] dims [0] : memref<?xf32>, !gdn_gpu.fragment<16xf32, #gdn_gpu.per_row<#part>>
  %most = gdn_gpu.map_rows %a, %s : !gdn_gpu.fragment<16x32xf32, #part>, !gdn_gpu.fragment<16xf32, #gdn_gpu.per_row<#part>> -> !gdn_gpu.fragment<16xf32, #gdn_gpu.per_row<#part>> {
  ^bb0(%row: index, %elements: vector<32xf32>, %scale: f32):
    %0 = vector.reduction <maximumf>, %elements : vector<32xf32> into f32
    %1 = arith.mulf %0, %scale : f32
    gdn_gpu.yield %1 : f32
  }
  // CHECK: gdn_gpu.store
  gdn_gpu.store %most, %scales[%i] dims [0] : !gdn_gpu.fragment<16xf32, #gdn_gpu.per_row<#part>>, memref<?xf32>
  return
}
