// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-gpu-check: what may stand ahead of gdn_gpu.await_launch, and who waits to the end.
//
// RUN: gdn-gpu-opt %s -gdn-gpu-check | FileCheck %s

#row = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!row = !gdn_gpu.fragment<1x128xf32, #row>

// Numbers of a call, pools, and what is read ahead of them; on both ways the launch is awaited.
// CHECK-LABEL: func.func @ahead(
func.func @ahead(%slots: memref<?xi32>, %pool: memref<?x128xf32> {gdn.name = "pool"},
                 %none: index {gdn.name = "pool_null_slot"}, %weights: memref<?x128xf32>,
                 %out: memref<?x128xf32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %c0 = arith.constant 0 : index
  %slot = memref.load %slots[%i] : memref<?xi32>
  %s = arith.index_cast %slot : i32 to index
  %has = arith.cmpi ne, %s, %none : index
  gdn_gpu.prefetch %weights[%i, %c0] dims [0, 1] : memref<?x128xf32>, !row
  scf.if %has {
    %state = gdn_gpu.load %pool[%s, %c0] dims [0, 1] : memref<?x128xf32>, !row
    // CHECK: gdn_gpu.await_launch
    gdn_gpu.await_launch
    gdn_gpu.release_launch
    gdn_gpu.store %state, %out[%i, %c0] dims [0, 1] : !row, memref<?x128xf32>
  } else {
    gdn_gpu.await_launch
    gdn_gpu.release_launch
    %x = arith.constant 0.0 : f32
    %zeros = gdn_gpu.fill %x : f32 -> !row
    gdn_gpu.store %zeros, %out[%i, %c0] dims [0, 1] : !row, memref<?x128xf32>
  }
  return
}

// What the program keeps in place is read ahead, too.
// CHECK-LABEL: func.func @in_place(
func.func @in_place(%state: memref<?x128xf32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %c0 = arith.constant 0 : index
  %old = gdn_gpu.load %state[%i, %c0] dims [0, 1] : memref<?x128xf32>, !row
  gdn_gpu.await_launch
  // CHECK: gdn_gpu.store
  gdn_gpu.store %old, %state[%i, %c0] dims [0, 1] : !row, memref<?x128xf32>
  return
}

// A stage behind others reads arguments of the call that no stage writes.
// CHECK-LABEL: func.func @stage(
func.func @stage(%x: memref<?x128xf32> {gdn.name = "x"}, %region: memref<?x128xf32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {awaits_stage = 1 : i64, stage_of = "e", variant = "a"}} {
  %c0 = arith.constant 0 : index
  %new = gdn_gpu.load %x[%i, %c0] dims [0, 1] : memref<?x128xf32>, !row
  gdn_gpu.await_launch
  // CHECK: gdn_gpu.store
  gdn_gpu.store %new, %region[%i, %c0] dims [0, 1] : !row, memref<?x128xf32>
  return
}

// A program that awaits no launch begins behind those ahead of it.
// CHECK-LABEL: func.func @behind(
func.func @behind(%x: memref<?xi32>, %i: index, %v: i32)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  gdn_gpu.release_launch
  // CHECK: gdn_gpu.store_element
  gdn_gpu.store_element %v, %x[%i] : i32, memref<?xi32>
  return
}

// So does a stage that runs at the same time as the last, with what is its own.
// CHECK-LABEL: func.func @beside(
func.func @beside(%N: index, %x: memref<?xi32>, %n: index, %v: i32)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {grid = ["N"], overlaps = "last", symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %i = gdn_gpu.block_id 0
  gdn_gpu.store_element %v, %x[%i] : i32, memref<?xi32>
  %first = arith.cmpi eq, %i, %c0 : index
  scf.if %first {
    // CHECK: gdn_gpu.await_launch
    gdn_gpu.await_launch
  }
  return
}

// One role waits on every way, so the launch ends behind those ahead of it.
// CHECK-LABEL: func.func @one_role(
func.func @one_role(%x: memref<?xi32>, %i: index, %v: i32, %c: i1)
    attributes {gdn_gpu.kernel = {threads = 64 : i64}} {
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      scf.if %c {
        gdn_gpu.await_launch
        gdn_gpu.store_element %v, %x[%i] : i32, memref<?xi32>
      }
    }
    gdn_gpu.warps 1 for 1 {
      scf.if %c {
        gdn_gpu.await_launch
      } else {
        // CHECK: gdn_gpu.await_launch
        gdn_gpu.await_launch
      }
    }
  }
  return
}

// Or none does, and the first block waits at its end.
// CHECK-LABEL: func.func @first_block(
func.func @first_block(%N: index, %x: memref<?xi32>, %i: index, %v: i32, %c: i1)
    attributes {gdn_gpu.kernel = {threads = 64 : i64},
                gdn_tile.stage = {grid = ["N", "2"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      scf.if %c {
        gdn_gpu.await_launch
        gdn_gpu.store_element %v, %x[%i] : i32, memref<?xi32>
      }
    }
  }
  %b0 = gdn_gpu.block_id 0
  %b1 = gdn_gpu.block_id 1
  %first0 = arith.cmpi eq, %b0, %c0 : index
  %first1 = arith.cmpi eq, %c0, %b1 : index
  %first = arith.andi %first0, %first1 : i1
  scf.if %first {
    // CHECK: gdn_gpu.await_launch
    gdn_gpu.await_launch
  }
  return
}

// A load that was begun ahead, and a ticket with its answer.
// CHECK-LABEL: func.func @pairs(
func.func @pairs(%pool: memref<?x128xf32>, %i: index, %n: index)
    attributes {gdn_gpu.kernel = {threads = 64 : i64}} {
  %c0 = arith.constant 0 : index
  %buffer = gdn_gpu.alloc : !gdn_gpu.shared<128xf32>
  gdn_gpu.warps 1 for 1 {
    gdn_gpu.begin_load %pool[%i, %c0] dims [0, 1], %buffer
        : memref<?x128xf32>, !row, !gdn_gpu.shared<128xf32>
  }
  gdn_gpu.arrive for 0
  %ticket = gdn_gpu.warps 1 for 1 -> i32 {
    %old = gdn_gpu.load %pool[%i, %c0] dims [0, 1] begun(%buffer : !gdn_gpu.shared<128xf32>)
        : memref<?x128xf32>, !row
    %asked = gdn_gpu.take_ticket %i of %n after %old : !row
    gdn_gpu.yield %asked : i32
  }
  gdn_gpu.warps 0 for 1 {
    gdn_gpu.await_arrivals
  }
  gdn_gpu.warps 1 for 1 {
    // CHECK: gdn_gpu.is_last
    %last = gdn_gpu.is_last %ticket of %n
  }
  return
}
