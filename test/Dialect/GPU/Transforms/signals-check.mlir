// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-gpu-check: of an entry, the stages that write what another one reads add up to what it
// awaits, in counters that a stage ahead of them clears.
//
// RUN: gdn-gpu-opt %s -gdn-gpu-check | FileCheck %s

#row = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 1>
!one = !gdn_gpu.fragment<1xf32, #gdn_gpu.per_row<#row>>

// Of each chunk one role says it: in the loop of those five turns before, behind it of the last.
// CHECK-LABEL: func.func @e__rule(
//       CHECK:   gdn_gpu.signal 32, %{{.+}} last(
//       CHECK:   scf.for
//       CHECK:     gdn_gpu.signal 32, %{{.+}} last(
// CHECK-LABEL: func.func @e__norm(
//       CHECK:   gdn_gpu.await_signals 128,
func.func @e__clear(%N: index, %out: memref<?xi32> {gdn.name = "out"}, %region: memref<?xi32>,
                   %counters: memref<?xf32>, %i: index, %zero: !one)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {stage_of = "e", variant = ["roles", "other"]}} {
  gdn_gpu.store %zero, %counters[%i] dims [0] : !one, memref<?xf32>
  return
}
func.func @e__rule(%N: index, %out: memref<?xi32> {gdn.name = "out"}, %region: memref<?xi32>,
                   %counters: memref<?xf32>, %n: index, %i: index, %x: i32, %c: i1)
    attributes {gdn_gpu.kernel = {threads = 128 : i64},
                gdn_tile.stage = {grid = ["N", "2"], symbols = ["N"], same_chunks = 2 : i64, stage_of = "e", variant = "roles"}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %c64 = arith.constant 64 : index
  %c320 = arith.constant 320 : index
  gdn_gpu.store_element %x, %out[%i] : i32, memref<?xi32>
  gdn_gpu.warps 0 for 2 {
    %least = arith.minsi %n, %c5 : index
    gdn_gpu.signal 32, %counters[%n] last(%least) : memref<?xf32>
  }
  gdn_gpu.warps 2 for 2 {
    scf.for %t = %c0 to %n step %c64 {
      %before = arith.subi %t, %c320 : index
      %count = arith.select %c, %c1, %c0 : index
      gdn_gpu.signal 32, %counters[%before] last(%count) : memref<?xf32>
    }
  }
  return
}
func.func @e__norm(%N: index, %out: memref<?xi32> {gdn.name = "out"}, %region: memref<?xi32>,
                   %counters: memref<?xf32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {follows = 1 : i64, stage_of = "e", variant = "roles"}} {
  gdn_gpu.each_warp 0 for 1 {
  ^bb0(%w: index):
    gdn_gpu.await_signals 128, %counters[%i] : memref<?xf32>
    %a = memref.load %out[%i] : memref<?xi32>
  }
  return
}

// One that says it of all turns, and a stage behind it that signals, too.
// CHECK-LABEL: func.func @f__norm(
func.func @f__clear(%N: index, %out: memref<?xi32> {gdn.name = "out"}, %region: memref<?xi32>,
                   %counters: memref<?xf32>, %i: index, %zero: !one)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {stage_of = "f", variant = ["roles", "other"]}} {
  gdn_gpu.store %zero, %counters[%i] dims [0] : !one, memref<?xf32>
  return
}
func.func @f__rule(%N: index, %out: memref<?xi32> {gdn.name = "out"}, %region: memref<?xi32>,
                   %counters: memref<?xf32>, %n: index, %i: index, %x: i32, %c: i1)
    attributes {gdn_gpu.kernel = {threads = 128 : i64},
                gdn_tile.stage = {stage_of = "f", variant = "roles"}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %c64 = arith.constant 64 : index
  %c320 = arith.constant 320 : index
  gdn_gpu.store_element %x, %out[%i] : i32, memref<?xi32>
  gdn_gpu.warps 2 for 2 {
    scf.for %t = %c0 to %n step %c64 {
      gdn_gpu.signal 64, %counters[%t] : memref<?xf32>
    }
  }
  return
}
func.func @f__others(%N: index, %out: memref<?xi32> {gdn.name = "out"}, %region: memref<?xi32>,
                   %counters: memref<?xf32>, %n: index, %i: index, %x: i32, %c: i1)
    attributes {gdn_gpu.kernel = {threads = 128 : i64},
                gdn_tile.stage = {stage_of = "f", variant = "roles"}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %c64 = arith.constant 64 : index
  %c320 = arith.constant 320 : index
  gdn_gpu.store_element %x, %out[%i] : i32, memref<?xi32>
  gdn_gpu.warps 0 for 2 {
    gdn_gpu.signal 64, %counters[%n] : memref<?xf32>
  }
  return
}
func.func @f__norm(%N: index, %out: memref<?xi32> {gdn.name = "out"}, %region: memref<?xi32>,
                   %counters: memref<?xf32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {follows = 1 : i64, stage_of = "f", variant = "roles"}} {
  gdn_gpu.each_warp 0 for 1 {
  ^bb0(%w: index):
    gdn_gpu.await_signals 128, %counters[%i] : memref<?xf32>
    %a = memref.load %out[%i] : memref<?xi32>
  }
  return
}

// Stages of other variants say nothing, and one that writes nothing that is read.
// CHECK-LABEL: func.func @g__norm(
func.func @g__clear(%N: index, %out: memref<?xi32> {gdn.name = "out"}, %region: memref<?xi32>,
                   %counters: memref<?xf32>, %i: index, %zero: !one)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {stage_of = "g", variant = ["roles", "other"]}} {
  gdn_gpu.store %zero, %counters[%i] dims [0] : !one, memref<?xf32>
  return
}
func.func @g__quiet(%N: index, %out: memref<?xi32> {gdn.name = "out"}, %region: memref<?xi32>,
                   %counters: memref<?xf32>, %n: index, %i: index, %x: i32, %c: i1)
    attributes {gdn_gpu.kernel = {threads = 128 : i64},
                gdn_tile.stage = {grid = ["N", "2"], symbols = ["N"], same_chunks = 2 : i64, stage_of = "g", variant = "other"}} {
  gdn_gpu.store_element %x, %out[%i] : i32, memref<?xi32>
  return
}
func.func @g__maps(%N: index, %out: memref<?xi32> {gdn.name = "out"}, %region: memref<?xi32>,
                   %counters: memref<?xf32>, %n: index, %i: index, %x: i32, %c: i1)
    attributes {gdn_gpu.kernel = {threads = 128 : i64},
                gdn_tile.stage = {grid = ["N", "2"], symbols = ["N"], same_chunks = 2 : i64, stage_of = "g", variant = "roles"}} {
  gdn_gpu.store_element %x, %region[%i] : i32, memref<?xi32>
  return
}
func.func @g__rule(%N: index, %out: memref<?xi32> {gdn.name = "out"}, %region: memref<?xi32>,
                   %counters: memref<?xf32>, %n: index, %i: index, %x: i32, %c: i1)
    attributes {gdn_gpu.kernel = {threads = 128 : i64},
                gdn_tile.stage = {grid = ["N", "2"], symbols = ["N"], same_chunks = 2 : i64, stage_of = "g", variant = "roles"}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %c64 = arith.constant 64 : index
  %c320 = arith.constant 320 : index
  gdn_gpu.store_element %x, %out[%i] : i32, memref<?xi32>
  gdn_gpu.warps 0 for 2 {
    %least = arith.minsi %n, %c5 : index
    gdn_gpu.signal 32, %counters[%n] last(%least) : memref<?xf32>
  }
  gdn_gpu.warps 2 for 2 {
    scf.for %t = %c0 to %n step %c64 {
      %before = arith.subi %t, %c320 : index
      %count = arith.select %c, %c1, %c0 : index
      gdn_gpu.signal 32, %counters[%before] last(%count) : memref<?xf32>
    }
  }
  return
}
func.func @g__norm(%N: index, %out: memref<?xi32> {gdn.name = "out"}, %region: memref<?xi32>,
                   %counters: memref<?xf32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {follows = 1 : i64, stage_of = "g", variant = "roles"}} {
  gdn_gpu.each_warp 0 for 1 {
  ^bb0(%w: index):
    gdn_gpu.await_signals 128, %counters[%i] : memref<?xf32>
    %a = memref.load %out[%i] : memref<?xi32>
  }
  return
}

// A stage by itself is a part of an entry.
// CHECK-LABEL: func.func @h__norm(
func.func @h__norm(%N: index, %out: memref<?xi32> {gdn.name = "out"}, %region: memref<?xi32>,
                   %counters: memref<?xf32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {follows = 1 : i64, stage_of = "h", variant = "roles"}} {
  gdn_gpu.each_warp 0 for 1 {
  ^bb0(%w: index):
    gdn_gpu.await_signals 128, %counters[%i] : memref<?xf32>
    %a = memref.load %out[%i] : memref<?xi32>
  }
  return
}
