// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-gpu-check: programs whose order is right pass as they are.
//
// RUN: gdn-gpu-opt %s -gdn-gpu-check | FileCheck %s

#rows = #gdn_gpu.rows<warps = 8, lanes = 8, vector = 4>
#one = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!state = !gdn_gpu.fragment<128x128xf32, #rows>
!row = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_row<#rows>>
!column = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#rows>>
!one = !gdn_gpu.fragment<128xf32, #gdn_gpu.per_column<#one>>
!buffer = !gdn_gpu.shared<128xf32>
!view = memref<?x?x128x128xf32, strided<[?, ?, ?, 1]>>

func.func @loop(%x: f32, %a: index, %b: index, %c: index)
    attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  %p = gdn_gpu.alloc : !buffer
  // CHECK: scf.for
  scf.for %j = %a to %b step %c {
    gdn_gpu.warps 0 for 1 {
      %s = gdn_gpu.fill %x : f32 -> !one
      gdn_gpu.store_shared %s, %p : !one, !buffer
    }
    gdn_gpu.barrier
    %t = gdn_gpu.load_shared %p : !buffer -> !row
    gdn_gpu.barrier
  }
  return
}

// Rows of a tile are apart, and a value from each way is a value.
func.func @rows(%x: f32, %i: index, %j: index, %c: i1)
    attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  %p = gdn_gpu.alloc : !buffer
  %g = gdn_gpu.alloc : !gdn_gpu.shared<4x128xf32>
  scf.if %c {
    gdn_gpu.warps 0 for 1 {
      %s = gdn_gpu.fill %x : f32 -> !one
      gdn_gpu.store_shared %s, %p : !one, !buffer
      gdn_gpu.store_shared %s, %g row(%i) : !one, !gdn_gpu.shared<4x128xf32>
      gdn_gpu.store_shared %s, %g row(%j) : !one, !gdn_gpu.shared<4x128xf32>
    }
  } else {
    gdn_gpu.warps 1 for 1 {
      %s = gdn_gpu.fill %x : f32 -> !one
      gdn_gpu.store_shared %s, %p : !one, !buffer
    }
  }
  gdn_gpu.barrier
  // CHECK: gdn_gpu.load_shared
  %t = gdn_gpu.load_shared %p : !buffer -> !row
  return
}

// Where the same condition is asked again, what was shared under it has a value.
func.func @same_condition(%x: f32, %c: i1)
    attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  %p = gdn_gpu.alloc : !buffer
  scf.if %c {
    gdn_gpu.warps 0 for 1 {
      %s = gdn_gpu.fill %x : f32 -> !one
      gdn_gpu.store_shared %s, %p : !one, !buffer
    }
  }
  gdn_gpu.barrier
  scf.if %c {
    // CHECK: gdn_gpu.load_shared
    %t = gdn_gpu.load_shared %p : !buffer -> !row
  }
  return
}

// Which rows have a value is not followed: a loop may share all of them.
func.func @rows_in_a_loop(%x: f32, %a: index, %b: index, %c: index)
    attributes {gdn_gpu.kernel = {threads = 256 : i64}} {
  %g = gdn_gpu.alloc : !gdn_gpu.shared<4x128xf32>
  gdn_gpu.each_warp 0 for 2 {
  ^bb0(%w: index):
    scf.for %i = %w to %b step %c {
      %s = gdn_gpu.fill %x : f32 -> !one
      gdn_gpu.store_shared %s, %g row(%i) : !one, !gdn_gpu.shared<4x128xf32>
    }
  }
  gdn_gpu.barrier
  // CHECK: gdn_gpu.load_shared
  %t = gdn_gpu.load_shared %g row(%a) : !gdn_gpu.shared<4x128xf32> -> !row
  return
}
