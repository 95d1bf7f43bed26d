// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-gpu-check: views that several blocks have, and that one of them writes without being the
// last one that reads them.
//
// RUN: gdn-gpu-opt %s -split-input-file -o /dev/null
// RUN: gdn-gpu-opt %s -split-input-file -verify-diagnostics -gdn-gpu-check

#row = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!row = !gdn_gpu.fragment<1x128xf32, #row>
func.func @not_last(%pool: memref<?x128xf32>, %ratio: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {grid = ["H"], symbols = ["H"]}} {
  %c0 = arith.constant 0 : index
  %h = gdn_gpu.block_id 0
  %head = arith.divui %h, %ratio : index
  gdn_gpu.warps 0 for 1 {
    // expected-note@+1 {{read here}}
    %old = gdn_gpu.load %pool[%head, %c0] dims [0, 1] : memref<?x128xf32>, !row
    // expected-error@+1 {{'gdn_gpu.store' op expects a branch that a gdn_gpu.last_reader or gdn_gpu.is_last takes around it, since other blocks read what it writes}}
    gdn_gpu.store %old, %pool[%head, %c0] dims [0, 1] : !row, memref<?x128xf32>
  }
  return
}

// -----

// One block writes, but others may not have read.
#row = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!row = !gdn_gpu.fragment<1x128xf32, #row>
func.func @first_of_its_head(%pool: memref<?x128xf32>, %ratio: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {grid = ["H"], symbols = ["H"]}} {
  %c0 = arith.constant 0 : index
  %h = gdn_gpu.block_id 0
  %head = arith.divui %h, %ratio : index
  %rest = arith.remui %h, %ratio : index
  %first = arith.cmpi eq, %rest, %c0 : index
  gdn_gpu.warps 0 for 1 {
    // expected-note@+1 {{read here}}
    %old = gdn_gpu.load %pool[%head, %c0] dims [0, 1] : memref<?x128xf32>, !row
    scf.if %first {
      // expected-error@+1 {{'gdn_gpu.store' op expects a branch that a gdn_gpu.last_reader or gdn_gpu.is_last takes around it, since other blocks read what it writes}}
      gdn_gpu.store %old, %pool[%head, %c0] dims [0, 1] : !row, memref<?x128xf32>
    }
  }
  return
}

// -----

#row = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!row = !gdn_gpu.fragment<1x128xf32, #row>
func.func @all_write(%out: memref<?x128xf32>, %ratio: index, %v: f32)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {grid = ["H"], symbols = ["H"]}} {
  %c0 = arith.constant 0 : index
  %h = gdn_gpu.block_id 0
  // expected-note@+1 {{the same in several blocks by this division}}
  %head = arith.divui %h, %ratio : index
  gdn_gpu.warps 0 for 1 {
    %new = gdn_gpu.fill %v : f32 -> !row
    // expected-error@+1 {{'gdn_gpu.store' op expects a branch that one block takes around it, by gdn_gpu.last_reader, gdn_gpu.is_last or its coordinate, since other blocks write the same elements}}
    gdn_gpu.store %new, %out[%head, %c0] dims [0, 1] : !row, memref<?x128xf32>
  }
  return
}

// -----

#row = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!row = !gdn_gpu.fragment<1x128xf32, #row>
func.func @after_nothing(%pool: memref<?x128xf32>, %ratio: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {grid = ["H"], symbols = ["H"]}} {
  %c0 = arith.constant 0 : index
  %h = gdn_gpu.block_id 0
  %head = arith.divui %h, %ratio : index
  gdn_gpu.warps 0 for 1 {
    // expected-note@+1 {{loaded here}}
    %old = gdn_gpu.load %pool[%head, %c0] dims [0, 1] : memref<?x128xf32>, !row
    // expected-error@+1 {{'gdn_gpu.last_reader' op expects to be after what was loaded of the view that the last block writes, by 'after' or a gdn_gpu.barrier}}
    %last = gdn_gpu.last_reader %head of %ratio
    scf.if %last {
      // expected-note@+1 {{written here}}
      gdn_gpu.store %old, %pool[%head, %c0] dims [0, 1] : !row, memref<?x128xf32>
    }
  }
  return
}

// -----

// Asked before it was read.
#row = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!row = !gdn_gpu.fragment<1x128xf32, #row>
func.func @asked_ahead(%pool: memref<?x128xf32>, %ratio: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {grid = ["H"], symbols = ["H"]}} {
  %c0 = arith.constant 0 : index
  %h = gdn_gpu.block_id 0
  %head = arith.divui %h, %ratio : index
  gdn_gpu.warps 0 for 1 {
    // expected-error@+1 {{'gdn_gpu.last_reader' op expects to be after what was loaded of the view that the last block writes}}
    %last = gdn_gpu.last_reader %head of %ratio
    // expected-note@+1 {{loaded here}}
    %old = gdn_gpu.load %pool[%head, %c0] dims [0, 1] : memref<?x128xf32>, !row
    scf.if %last {
      // expected-note@+1 {{written here}}
      gdn_gpu.store %old, %pool[%head, %c0] dims [0, 1] : !row, memref<?x128xf32>
    }
  }
  return
}

// -----

#row = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!row = !gdn_gpu.fragment<1x128xf32, #row>
func.func @ticket_after_nothing(%pool: memref<?x128xf32>, %ratio: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {grid = ["H"], symbols = ["H"]}} {
  %c0 = arith.constant 0 : index
  %h = gdn_gpu.block_id 0
  %head = arith.divui %h, %ratio : index
  %asked:2 = gdn_gpu.warps 0 for 1 -> !row, i32 {
    // expected-note@+1 {{loaded here}}
    %old = gdn_gpu.load %pool[%head, %c0] dims [0, 1] : memref<?x128xf32>, !row
    // expected-error@+1 {{'gdn_gpu.take_ticket' op expects to be after what was loaded of the view that the last block writes, by 'after' or a gdn_gpu.barrier}}
    %ticket = gdn_gpu.take_ticket %head of %ratio
    gdn_gpu.yield %old, %ticket : !row, i32
  }
  gdn_gpu.warps 0 for 1 {
    %last = gdn_gpu.is_last %asked#1 of %ratio
    scf.if %last {
      // expected-note@+1 {{written here}}
      gdn_gpu.store %asked#0, %pool[%head, %c0] dims [0, 1] : !row, memref<?x128xf32>
    }
  }
  return
}

// -----

// One role hands the head of a unit to another, by a channel.
#row = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
#number = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 1>
!row = !gdn_gpu.fragment<1x128xf32, #row>
!number = !gdn_gpu.fragment<1xi32, #gdn_gpu.per_row<#number>>
!ring = !gdn_gpu.channel<1xi32, depth = 2>
!tile = !gdn_gpu.shared<1xi32>
func.func @head_by_a_channel(%pool: memref<?x128xf32>, %ratio: index)
    attributes {gdn_gpu.kernel = {threads = 64 : i64},
                gdn_tile.stage = {grid = ["H"], symbols = ["H"]}} {
  %c0 = arith.constant 0 : index
  %heads = gdn_gpu.channel : !ring
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      %filled = gdn_gpu.receive %heads : !ring -> !tile
      %number = gdn_gpu.load_shared_element %filled[%c0] : !tile -> i32
      gdn_gpu.release %heads : !ring
      %head = arith.index_cast %number : i32 to index
      // expected-note@+1 {{read here}}
      %old = gdn_gpu.load %pool[%head, %c0] dims [0, 1] : memref<?x128xf32>, !row
      // expected-error@+1 {{'gdn_gpu.store' op expects a branch that a gdn_gpu.last_reader or gdn_gpu.is_last takes around it, since other blocks read what it writes}}
      gdn_gpu.store %old, %pool[%head, %c0] dims [0, 1] : !row, memref<?x128xf32>
    }
    gdn_gpu.warps 1 for 1 {
      %h = gdn_gpu.block_id 0
      %key = arith.divui %h, %ratio : index
      %number = arith.index_cast %key : index to i32
      %empty = gdn_gpu.acquire %heads : !ring -> !tile
      %f = gdn_gpu.fill %number : i32 -> !number
      gdn_gpu.store_shared %f, %empty : !number, !tile
      gdn_gpu.commit %heads : !ring
    }
  }
  return
}

// -----

// The last reader asks for nothing that it has read.
#row = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
#number = #gdn_gpu.rows<warps = 1, lanes = 1, vector = 1>
!row = !gdn_gpu.fragment<1x128xf32, #row>
!number = !gdn_gpu.fragment<1xi32, #gdn_gpu.per_row<#number>>
!tile = !gdn_gpu.shared<1xi32>
func.func @head_in_shared(%pool: memref<?x128xf32>, %ratio: index)
    attributes {gdn_gpu.kernel = {threads = 64 : i64},
                gdn_tile.stage = {grid = ["H"], symbols = ["H"]}} {
  %c0 = arith.constant 0 : index
  %heads = gdn_gpu.alloc : !tile
  gdn_gpu.warps 0 for 1 {
    %h = gdn_gpu.block_id 0
    %key = arith.divui %h, %ratio : index
    %number = arith.index_cast %key : index to i32
    %f = gdn_gpu.fill %number : i32 -> !number
    gdn_gpu.store_shared %f, %heads : !number, !tile
  }
  gdn_gpu.barrier
  gdn_gpu.warps 1 for 1 {
    %number = gdn_gpu.load_shared_element %heads[%c0] : !tile -> i32
    %head = arith.index_cast %number : i32 to index
    // expected-note@+1 {{loaded here}}
    %old = gdn_gpu.load %pool[%head, %c0] dims [0, 1] : memref<?x128xf32>, !row
    // expected-error@+1 {{'gdn_gpu.last_reader' op expects to be after what was loaded of the view that the last block writes, by 'after' or a gdn_gpu.barrier}}
    %last = gdn_gpu.last_reader %head of %ratio
    scf.if %last {
      // expected-note@+1 {{written here}}
      gdn_gpu.store %old, %pool[%head, %c0] dims [0, 1] : !row, memref<?x128xf32>
    }
  }
  return
}

// -----

#row = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
#number = #gdn_gpu.rows<warps = 1, lanes = 1, vector = 1>
!row = !gdn_gpu.fragment<1x128xf32, #row>
!number = !gdn_gpu.fragment<1xi32, #gdn_gpu.per_row<#number>>
!tile = !gdn_gpu.shared<1xi32>
func.func @all_write_by_shared(%out: memref<?x128xf32>, %ratio: index, %v: f32)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {grid = ["H"], symbols = ["H"]}} {
  %c0 = arith.constant 0 : index
  %heads = gdn_gpu.alloc : !tile
  gdn_gpu.warps 0 for 1 {
    %h = gdn_gpu.block_id 0
    // expected-note@+1 {{the same in several blocks by this division}}
    %key = arith.divui %h, %ratio : index
    %number = arith.index_cast %key : index to i32
    %f = gdn_gpu.fill %number : i32 -> !number
    gdn_gpu.store_shared %f, %heads : !number, !tile
  }
  gdn_gpu.barrier
  gdn_gpu.warps 0 for 1 {
    %number = gdn_gpu.load_shared_element %heads[%c0] : !tile -> i32
    %head = arith.index_cast %number : i32 to index
    %new = gdn_gpu.fill %v : f32 -> !row
    // expected-error@+1 {{'gdn_gpu.store' op expects a branch that one block takes around it, by gdn_gpu.last_reader, gdn_gpu.is_last or its coordinate, since other blocks write the same elements}}
    gdn_gpu.store %new, %out[%head, %c0] dims [0, 1] : !row, memref<?x128xf32>
  }
  return
}
