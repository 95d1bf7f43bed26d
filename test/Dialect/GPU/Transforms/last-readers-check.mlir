// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-gpu-check: blocks that write what others have, too, and are the last or the only ones.
//
// RUN: gdn-gpu-opt %s -gdn-gpu-check | FileCheck %s

#row = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
#flag = #gdn_gpu.rows<warps = 1, lanes = 1, vector = 1>
#number = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 1>
!row = !gdn_gpu.fragment<1x128xf32, #row>
!flag = !gdn_gpu.fragment<1xf32, #gdn_gpu.per_row<#flag>>
!number = !gdn_gpu.fragment<1xi32, #gdn_gpu.per_row<#number>>
!ring = !gdn_gpu.channel<1xi32, depth = 2>
!tile = !gdn_gpu.shared<1xi32>

// Each block has a head: quotient and rest together are the whole coordinate.
// CHECK-LABEL: func.func @own(
func.func @own(%H: index, %pool: memref<?x128xf32>, %ratio: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {grid = ["H"], symbols = ["H"]}} {
  %c0 = arith.constant 0 : index
  %h = gdn_gpu.block_id 0
  %key = arith.divui %h, %ratio : index
  %rest = arith.remui %h, %ratio : index
  %first = arith.muli %key, %ratio : index
  %head = arith.addi %first, %rest : index
  gdn_gpu.warps 0 for 1 {
    %old = gdn_gpu.load %pool[%head, %c0] dims [0, 1] : memref<?x128xf32>, !row
    // CHECK: gdn_gpu.store
    gdn_gpu.store %old, %pool[%head, %c0] dims [0, 1] : !row, memref<?x128xf32>
  }
  return
}

// One block of a key head reads and writes.
// CHECK-LABEL: func.func @first_alone(
func.func @first_alone(%H: index, %pool: memref<?x128xf32>, %ratio: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {grid = ["H"], symbols = ["H"]}} {
  %c0 = arith.constant 0 : index
  %h = gdn_gpu.block_id 0
  %key = arith.divui %h, %ratio : index
  %rest = arith.remui %h, %ratio : index
  %first = arith.cmpi eq, %rest, %c0 : index
  scf.if %first {
    gdn_gpu.warps 0 for 1 {
      %old = gdn_gpu.load %pool[%key, %c0] dims [0, 1] : memref<?x128xf32>, !row
      // CHECK: gdn_gpu.store
      gdn_gpu.store %old, %pool[%key, %c0] dims [0, 1] : !row, memref<?x128xf32>
    }
  }
  return
}

// The answer comes by way of shared memory; a barrier stands behind the load.
// CHECK-LABEL: func.func @answer_in_shared(
func.func @answer_in_shared(%H: index, %pool: memref<?x128xf32>, %ratio: index)
    attributes {gdn_gpu.kernel = {threads = 64 : i64},
                gdn_tile.stage = {grid = ["H"], symbols = ["H"]}} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %flag = gdn_gpu.alloc : !gdn_gpu.shared<1xf32>
  %h = gdn_gpu.block_id 0
  %key = arith.divui %h, %ratio : index
  %old = gdn_gpu.warps 1 for 1 -> !row {
    %t = gdn_gpu.load %pool[%key, %c0] dims [0, 1] : memref<?x128xf32>, !row
    gdn_gpu.yield %t : !row
  }
  gdn_gpu.barrier
  gdn_gpu.warps 0 for 1 {
    // CHECK: gdn_gpu.last_reader
    %last = gdn_gpu.last_reader %key of %ratio
    %number = arith.uitofp %last : i1 to f32
    %f = gdn_gpu.fill %number : f32 -> !flag
    gdn_gpu.store_shared %f, %flag : !flag, !gdn_gpu.shared<1xf32>
  }
  gdn_gpu.barrier
  %answer = gdn_gpu.load_shared_element %flag[%c0] : !gdn_gpu.shared<1xf32> -> f32
  %is_last = arith.cmpf one, %answer, %zero : f32
  scf.if %is_last {
    gdn_gpu.warps 1 for 1 {
      gdn_gpu.store %old, %pool[%key, %c0] dims [0, 1] : !row, memref<?x128xf32>
    }
  }
  return
}

// A ticket that was taken after the load, in one branch.
// CHECK-LABEL: func.func @ticket(
func.func @ticket(%H: index, %pool: memref<?x128xf32>, %ratio: index, %c: i1)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {grid = ["H"], symbols = ["H"]}} {
  %c0 = arith.constant 0 : index
  %h = gdn_gpu.block_id 0
  %key = arith.divui %h, %ratio : index
  %asked:2 = gdn_gpu.warps 0 for 1 -> !row, i32 {
    %old = gdn_gpu.load %pool[%key, %c0] dims [0, 1] : memref<?x128xf32>, !row
    %ticket = scf.if %c -> i32 {
      // CHECK: gdn_gpu.take_ticket
      %t = gdn_gpu.take_ticket %key of %ratio after %old : !row
      scf.yield %t : i32
    } else {
      %none = arith.constant 0 : i32
      scf.yield %none : i32
    }
    gdn_gpu.yield %old, %ticket : !row, i32
  }
  gdn_gpu.warps 0 for 1 {
    %last = gdn_gpu.is_last %asked#1 of %ratio
    scf.if %last {
      gdn_gpu.store %asked#0, %pool[%key, %c0] dims [0, 1] : !row, memref<?x128xf32>
    }
  }
  return
}

// The first block of a key head writes another slot than the one that all of them read.
// CHECK-LABEL: func.func @to_another_slot(
func.func @to_another_slot(%H: index, %pool: memref<?x?x128xf32>, %ratio: index, %from: index, %to: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {grid = ["H"], symbols = ["H"]}} {
  %c0 = arith.constant 0 : index
  %h = gdn_gpu.block_id 0
  %key = arith.divui %h, %ratio : index
  %rest = arith.remui %h, %ratio : index
  %first = arith.cmpi eq, %rest, %c0 : index
  gdn_gpu.warps 0 for 1 {
    %old = gdn_gpu.load %pool[%from, %key, %c0] dims [1, 2] : memref<?x?x128xf32>, !row
    scf.if %first {
      // CHECK: gdn_gpu.store
      gdn_gpu.store %old, %pool[%to, %key, %c0] dims [1, 2] : !row, memref<?x?x128xf32>
    }
  }
  return
}

// One role hands the coordinates of a unit to another, by channels: of a key head the last
// block writes, of a head its only one.
// CHECK-LABEL: func.func @by_channels(
func.func @by_channels(%H: index, %pool: memref<?x128xf32>, %out: memref<?x128xf32>, %ratio: index)
    attributes {gdn_gpu.kernel = {threads = 64 : i64},
                gdn_tile.stage = {grid = ["H"], symbols = ["H"]}} {
  %c0 = arith.constant 0 : index
  %keys = gdn_gpu.channel : !ring
  %rests = gdn_gpu.channel : !ring with %keys : !ring
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      %filled = gdn_gpu.receive %keys : !ring -> !tile
      %filled_rest = gdn_gpu.receive %rests : !ring -> !tile
      %number = gdn_gpu.load_shared_element %filled[%c0] : !tile -> i32
      %number_rest = gdn_gpu.load_shared_element %filled_rest[%c0] : !tile -> i32
      gdn_gpu.release %rests : !ring
      gdn_gpu.release %keys : !ring
      %key = arith.index_cast %number : i32 to index
      %rest = arith.index_cast %number_rest : i32 to index
      %first = arith.muli %key, %ratio : index
      %head = arith.addi %first, %rest : index
      %old = gdn_gpu.load %pool[%key, %c0] dims [0, 1] : memref<?x128xf32>, !row
      // CHECK: gdn_gpu.store %{{.+}}, %arg2
      gdn_gpu.store %old, %out[%head, %c0] dims [0, 1] : !row, memref<?x128xf32>
      // CHECK: gdn_gpu.last_reader
      %last = gdn_gpu.last_reader %key of %ratio after %old : !row
      scf.if %last {
        gdn_gpu.store %old, %pool[%key, %c0] dims [0, 1] : !row, memref<?x128xf32>
      }
    }
    gdn_gpu.warps 1 for 1 {
      %h = gdn_gpu.block_id 0
      %key = arith.divui %h, %ratio : index
      %rest = arith.remui %h, %ratio : index
      %number = arith.index_cast %key : index to i32
      %number_rest = arith.index_cast %rest : index to i32
      %empty = gdn_gpu.acquire %keys : !ring -> !tile
      %empty_rest = gdn_gpu.acquire %rests : !ring -> !tile
      %f = gdn_gpu.fill %number : i32 -> !number
      gdn_gpu.store_shared %f, %empty : !number, !tile
      %r = gdn_gpu.fill %number_rest : i32 -> !number
      gdn_gpu.store_shared %r, %empty_rest : !number, !tile
      gdn_gpu.commit %rests : !ring
      gdn_gpu.commit %keys : !ring
    }
  }
  return
}
