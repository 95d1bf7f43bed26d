// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-gpu-check: accesses to the same elements of global memory that nothing orders, in a
// block, among its roles, and among blocks.
//
// RUN: gdn-gpu-opt %s -split-input-file -o /dev/null
// RUN: gdn-gpu-opt %s -split-input-file -verify-diagnostics -gdn-gpu-check

#row = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!row = !gdn_gpu.fragment<1x128xf32, #row>
func.func @overwritten_by_another_warp(%x: memref<?x128xf32>, %i: index, %new: !row)
    attributes {gdn_gpu.kernel = {threads = 64 : i64}} {
  %c0 = arith.constant 0 : index
  gdn_gpu.warps 0 for 1 {
    // expected-note@+1 {{access before it}}
    %old = gdn_gpu.load %x[%i, %c0] dims [0, 1] : memref<?x128xf32>, !row
  }
  gdn_gpu.warps 1 for 1 {
    %one = arith.constant 1.0 : f32
    %f = gdn_gpu.fill %one : f32 -> !row
    // expected-error@+1 {{'gdn_gpu.store' op expects a gdn_gpu.barrier between it and the access to the same elements before it}}
    gdn_gpu.store %f, %x[%i, %c0] dims [0, 1] : !row, memref<?x128xf32>
  }
  return
}

// -----

// In another layout, other threads have an element.
#rows = #gdn_gpu.rows<warps = 2, lanes = 8, vector = 4>
#all = #gdn_gpu.rows<warps = 2, lanes = 32, vector = 1>
func.func @read_in_another_layout(%x: memref<?x32xf32>, %i: index, %c: i1)
    attributes {gdn_gpu.kernel = {threads = 64 : i64}} {
  %c0 = arith.constant 0 : index
  %one = arith.constant 1.0 : f32
  %f = gdn_gpu.fill %one : f32 -> !gdn_gpu.fragment<8x32xf32, #rows>
  // expected-note@+1 {{access before it}}
  gdn_gpu.store %f, %x[%i, %c0] dims [0, 1] : !gdn_gpu.fragment<8x32xf32, #rows>, memref<?x32xf32>
  scf.if %c {
    gdn_gpu.barrier
  }
  // expected-error@+1 {{'gdn_gpu.load' op expects a gdn_gpu.barrier between it and the access to the same elements before it}}
  %t = gdn_gpu.load %x[%i, %c0] dims [0, 1] : memref<?x32xf32>, !gdn_gpu.fragment<8x32xf32, #all>
  return
}

// -----

// Eight rows from the first on and eight from the fifth on have four in common.
#rows = #gdn_gpu.rows<warps = 2, lanes = 8, vector = 4>
#all = #gdn_gpu.rows<warps = 2, lanes = 32, vector = 1>
func.func @rows_in_common(%x: memref<?x32xf32>)
    attributes {gdn_gpu.kernel = {threads = 64 : i64}} {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %one = arith.constant 1.0 : f32
  %f = gdn_gpu.fill %one : f32 -> !gdn_gpu.fragment<8x32xf32, #rows>
  // expected-note@+1 {{access before it}}
  %t = gdn_gpu.load %x[%c0, %c0] dims [0, 1] : memref<?x32xf32>, !gdn_gpu.fragment<8x32xf32, #all>
  // expected-error@+1 {{'gdn_gpu.store' op expects a gdn_gpu.barrier between it and the access to the same elements before it}}
  gdn_gpu.store %f, %x[%c4, %c0] dims [0, 1] : !gdn_gpu.fragment<8x32xf32, #rows>, memref<?x32xf32>
  return
}

// -----

// Tiles are wider than they are high: columns 16 to 31 are in both.
#rows = #gdn_gpu.rows<warps = 2, lanes = 8, vector = 4>
#all = #gdn_gpu.rows<warps = 2, lanes = 32, vector = 1>
func.func @columns_in_common(%x: memref<?x64xf32>)
    attributes {gdn_gpu.kernel = {threads = 64 : i64}} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %one = arith.constant 1.0 : f32
  %f = gdn_gpu.fill %one : f32 -> !gdn_gpu.fragment<8x32xf32, #rows>
  // expected-note@+1 {{access before it}}
  %t = gdn_gpu.load %x[%c0, %c0] dims [0, 1] : memref<?x64xf32>, !gdn_gpu.fragment<8x32xf32, #all>
  // expected-error@+1 {{'gdn_gpu.store' op expects a gdn_gpu.barrier between it and the access to the same elements before it}}
  gdn_gpu.store %f, %x[%c0, %c16] dims [0, 1] : !gdn_gpu.fragment<8x32xf32, #rows>, memref<?x64xf32>
  return
}

// -----

// What one turn of a loop reads at its end and the next one writes.
#rows = #gdn_gpu.rows<warps = 2, lanes = 8, vector = 4>
#all = #gdn_gpu.rows<warps = 2, lanes = 32, vector = 1>
func.func @from_turn_to_turn(%x: memref<?x32xf32>, %i: index, %n: index)
    attributes {gdn_gpu.kernel = {threads = 64 : i64}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : f32
  %f = gdn_gpu.fill %one : f32 -> !gdn_gpu.fragment<8x32xf32, #rows>
  scf.for %j = %c0 to %n step %c1 {
    // expected-error@+1 {{'gdn_gpu.store' op expects a gdn_gpu.barrier between it and the access to the same elements before it}}
    gdn_gpu.store %f, %x[%i, %c0] dims [0, 1] : !gdn_gpu.fragment<8x32xf32, #rows>, memref<?x32xf32>
    gdn_gpu.barrier
    // expected-note@+1 {{access before it}}
    %t = gdn_gpu.load %x[%i, %c0] dims [0, 1] : memref<?x32xf32>, !gdn_gpu.fragment<8x32xf32, #all>
  }
  return
}

// -----

// Rows are moved; a row of 64 columns is in half of the lanes.
#row = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!row = !gdn_gpu.fragment<1x64xf32, #row>
func.func @moved(%x: memref<?x64xf32>, %from: index, %to: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  %c0 = arith.constant 0 : index
  gdn_gpu.warps 0 for 1 {
    // expected-note@+1 {{access before it}}
    %old = gdn_gpu.load %x[%from, %c0] dims [0, 1] : memref<?x64xf32>, !row
    // expected-error@+1 {{'gdn_gpu.store' op expects a gdn_gpu.warp_barrier between it and the access before it, since other lanes may have what it writes}}
    gdn_gpu.store %old, %x[%to, %c0] dims [0, 1] : !row, memref<?x64xf32>
  }
  return
}

// -----

// Each of four lanes has the values; one stores them, and each loads.
#row = #gdn_gpu.rows<warps = 1, lanes = 4, vector = 4>
!gate = !gdn_gpu.fragment<8xf32, #gdn_gpu.per_row<#row>>
func.func @replicated(%x: memref<?xf32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  gdn_gpu.warps 0 for 1 {
    %one = arith.constant 1.0 : f32
    %f = gdn_gpu.fill %one : f32 -> !gate
    // expected-note@+1 {{access before it}}
    gdn_gpu.store %f, %x[%i] dims [0] : !gate, memref<?xf32>
    // expected-error@+1 {{'gdn_gpu.load' op expects a gdn_gpu.warp_barrier between it and the access before it, since other lanes may have what it reads}}
    %t = gdn_gpu.load %x[%i] dims [0] : memref<?xf32>, !gate
  }
  return
}

// -----

// Two stores to one place by other lanes.
#row = #gdn_gpu.rows<warps = 1, lanes = 4, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 1, vector = 1>
func.func @stored_twice(%x: memref<?xf32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}} {
  gdn_gpu.warps 0 for 1 {
    %v = arith.constant 1.0 : f32
    %f = gdn_gpu.fill %v : f32 -> !gdn_gpu.fragment<8xf32, #gdn_gpu.per_row<#row>>
    %g = gdn_gpu.fill %v : f32 -> !gdn_gpu.fragment<8xf32, #gdn_gpu.per_row<#one>>
    // expected-note@+1 {{access before it}}
    gdn_gpu.store %f, %x[%i] dims [0] : !gdn_gpu.fragment<8xf32, #gdn_gpu.per_row<#row>>, memref<?xf32>
    // expected-error@+1 {{'gdn_gpu.store' op expects a gdn_gpu.warp_barrier between it and the access before it, since other lanes may have what it writes}}
    gdn_gpu.store %g, %x[%i] dims [0] : !gdn_gpu.fragment<8xf32, #gdn_gpu.per_row<#one>>, memref<?xf32>
  }
  return
}

// -----

#rows = #gdn_gpu.rows<warps = 4, lanes = 8, vector = 4>
!tile = !gdn_gpu.shared<16x32xf32>
func.func @copy_under_way(%x: memref<?x32xf32>, %i: index, %f: !gdn_gpu.fragment<16x32xf32, #rows>)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  %c0 = arith.constant 0 : index
  %p = gdn_gpu.alloc : !tile
  // expected-note@+1 {{copy}}
  gdn_gpu.begin_copy %x[%i, %c0] dims [0, 1], %p : memref<?x32xf32>, !tile
  gdn_gpu.barrier
  // expected-error@+1 {{'gdn_gpu.store' op expects a gdn_gpu.await_copies between it and the copy of what it writes}}
  gdn_gpu.store %f, %x[%i, %c0] dims [0, 1] : !gdn_gpu.fragment<16x32xf32, #rows>, memref<?x32xf32>
  return
}

// -----

// Other threads have copied some of it.
#rows = #gdn_gpu.rows<warps = 4, lanes = 8, vector = 4>
!tile = !gdn_gpu.shared<16x32xf32>
func.func @copy_of_others(%x: memref<?x32xf32>, %i: index, %f: !gdn_gpu.fragment<16x32xf32, #rows>)
    attributes {gdn_gpu.kernel = {threads = 128 : i64}} {
  %c0 = arith.constant 0 : index
  %p = gdn_gpu.alloc : !tile
  // expected-note@+1 {{access before it}}
  gdn_gpu.begin_copy %x[%i, %c0] dims [0, 1], %p : memref<?x32xf32>, !tile
  gdn_gpu.await_copies
  // expected-error@+1 {{'gdn_gpu.store' op expects a gdn_gpu.barrier between it and the access to the same elements before it}}
  gdn_gpu.store %f, %x[%i, %c0] dims [0, 1] : !gdn_gpu.fragment<16x32xf32, #rows>, memref<?x32xf32>
  return
}

// -----

// Every thread reads the number, one writes it.
func.func @number(%x: memref<?xi32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 64 : i64}} {
  // expected-note@+1 {{access before it}}
  %old = memref.load %x[%i] : memref<?xi32>
  %new = arith.addi %old, %old : i32
  // expected-error@+1 {{'gdn_gpu.store_element' op expects a gdn_gpu.barrier between it and the access to the same elements before it}}
  gdn_gpu.store_element %new, %x[%i] : i32, memref<?xi32>
  return
}

// -----

#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!one = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#one>>
!buffer = !gdn_gpu.shared<128xf32>
func.func @tile_of_two_roles(%x: f32) attributes {gdn_gpu.kernel = {threads = 64 : i64}} {
  %p = gdn_gpu.alloc : !buffer
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      %s = gdn_gpu.fill %x : f32 -> !one
      // expected-note@+1 {{use in the other role}}
      gdn_gpu.store_shared %s, %p : !one, !buffer
      gdn_gpu.barrier
    }
    gdn_gpu.warps 1 for 1 {
      gdn_gpu.barrier
      // expected-error@+1 {{'gdn_gpu.load_shared' op expects a gdn_gpu.channel between its role and the other one that uses the shared tile, of which one writes it}}
      %t = gdn_gpu.load_shared %p : !buffer -> !one
    }
  }
  return
}

// -----

#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!one = !gdn_gpu.fragment<1x128xf32, #one>
func.func @elements_of_two_roles(%x: memref<?x128xf32>, %i: index, %v: f32)
    attributes {gdn_gpu.kernel = {threads = 64 : i64}} {
  %c0 = arith.constant 0 : index
  gdn_gpu.roles {
    gdn_gpu.warps 0 for 1 {
      %s = gdn_gpu.fill %v : f32 -> !one
      // expected-note@+1 {{use in the other role}}
      gdn_gpu.store %s, %x[%i, %c0] dims [0, 1] : !one, memref<?x128xf32>
    }
    gdn_gpu.warps 1 for 1 {
      // expected-error@+1 {{'gdn_gpu.load' op expects a gdn_gpu.channel between its role and the other one that uses the elements, of which one writes it}}
      %t = gdn_gpu.load %x[%i, %c0] dims [0, 1] : memref<?x128xf32>, !one
    }
  }
  return
}

// -----

// No element of a row passes its lanes: others may not have read the scale yet.
#part = #gdn_gpu.rows<warps = 2, lanes = 4, vector = 8>
func.func @rows_apart(%scales: memref<?xf32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 64 : i64}} {
  // expected-note@+1 {{access before it}}
  %s = gdn_gpu.load %scales[%i] dims [0] : memref<?xf32>, !gdn_gpu.fragment<16xf32, #gdn_gpu.per_row<#part>>
  %twice = gdn_gpu.map_rows %s : !gdn_gpu.fragment<16xf32, #gdn_gpu.per_row<#part>> -> !gdn_gpu.fragment<16xf32, #gdn_gpu.per_row<#part>> {
  ^bb0(%row: index, %scale: f32):
    %0 = arith.addf %scale, %scale : f32
    gdn_gpu.yield %0 : f32
  }
  // expected-error@+1 {{'gdn_gpu.store' op expects a gdn_gpu.barrier between it and the access to the same elements before it}}
  gdn_gpu.store %twice, %scales[%i] dims [0] : !gdn_gpu.fragment<16xf32, #gdn_gpu.per_row<#part>>, memref<?xf32>
  return
}

// -----

// Rows that lie in other lanes are compared.
#part = #gdn_gpu.rows<warps = 2, lanes = 4, vector = 8>
#other = #gdn_gpu.rows<warps = 2, lanes = 8, vector = 4>
func.func @other_rows(%x: memref<?x32xf32>, %scales: memref<?xf32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 64 : i64}} {
  %c0 = arith.constant 0 : index
  %a = gdn_gpu.load %x[%i, %c0] dims [0, 1] : memref<?x32xf32>, !gdn_gpu.fragment<16x32xf32, #other>
  // expected-note@+1 {{access before it}}
  %s = gdn_gpu.load %scales[%i] dims [0] : memref<?xf32>, !gdn_gpu.fragment<16xf32, #gdn_gpu.per_row<#part>>
  %most = gdn_gpu.map_rows %a : !gdn_gpu.fragment<16x32xf32, #other> -> !gdn_gpu.fragment<16xf32, #gdn_gpu.per_row<#other>> {
  ^bb0(%row: index, %elements: vector<32xf32>):
    %0 = vector.reduction <maximumf>, %elements : vector<32xf32> into f32
    gdn_gpu.yield %0 : f32
  }
  // expected-error@+1 {{'gdn_gpu.store' op expects a gdn_gpu.barrier between it and the access to the same elements before it}}
  gdn_gpu.store %s, %scales[%i] dims [0] : !gdn_gpu.fragment<16xf32, #gdn_gpu.per_row<#part>>, memref<?xf32>
  return
}
