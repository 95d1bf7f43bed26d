// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-gpu-check: stages that let a launch begin too early, or read too early.
//
// RUN: gdn-gpu-opt %s -split-input-file -o /dev/null
// RUN: gdn-gpu-opt %s -split-input-file -verify-diagnostics -gdn-gpu-check

// In one of its variants it is the last one.
func.func @e__first(%y: memref<?xi32>, %i: index, %v: i32)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {stage_of = "e", variant = ["cut", "short"]}} {
  gdn_gpu.store_element %v, %y[%i] : i32, memref<?xi32>
  return
}
func.func @e__scan(%y: memref<?xi32>, %i: index, %v: i32)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {awaits_stage = 1 : i64, stage_of = "e", variant = ["cut", "short"]}} {
  // expected-error@+1 {{'gdn_gpu.release_launch' op expects a gdn_gpu.await_launch before it on every way, since in variant 'short' no stage is behind this one: the next launch may begin behind it, and waits for this one alone}}
  gdn_gpu.release_launch
  gdn_gpu.await_launch
  gdn_gpu.store_element %v, %y[%i] : i32, memref<?xi32>
  return
}
func.func @e__others(%y: memref<?xi32>, %i: index, %v: i32)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {awaits_stage = 1 : i64, stage_of = "e", variant = "cut"}} {
  gdn_gpu.await_launch
  gdn_gpu.store_element %v, %y[%i] : i32, memref<?xi32>
  return
}

// -----

// One that overlaps with the last, too.
func.func @e__maps(%y: memref<?xi32>, %i: index, %v: i32)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {overlaps = "next", stage_of = "e", variant = "a"}} {
  gdn_gpu.release_launch
  gdn_gpu.store_element %v, %y[%i] : i32, memref<?xi32>
  return
}
func.func @e__first()
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {overlaps = "last", stage_of = "e", variant = "a"}} {
  // expected-error@+1 {{'gdn_gpu.release_launch' op expects a gdn_gpu.await_launch before it on every way, since in variant 'a' no stage is behind this one}}
  gdn_gpu.release_launch
  gdn_gpu.await_launch
  return
}

// -----

// A launch without blocks is none.
func.func @e__first(%y: memref<?xi32>, %i: index, %v: i32)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {grid = ["N + 1"], stage_of = "e", variant = "a"}} {
  gdn_gpu.store_element %v, %y[%i] : i32, memref<?xi32>
  return
}
func.func @e__scan(%y: memref<?xi32>, %i: index, %v: i32)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {awaits_stage = 1 : i64, grid = ["N"], stage_of = "e", variant = "a"}} {
  // expected-error@+1 {{'gdn_gpu.release_launch' op expects a gdn_gpu.await_launch before it on every way, since in variant 'a' stage 'e__others' behind this one may have no blocks where this one has some: the next launch may begin behind it, and waits for this one alone}}
  gdn_gpu.release_launch
  gdn_gpu.await_launch
  gdn_gpu.store_element %v, %y[%i] : i32, memref<?xi32>
  return
}
func.func @e__others(%y: memref<?xi32>, %i: index, %v: i32)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {awaits_stage = 1 : i64, grid = ["T floordiv 64"], stage_of = "e", variant = "a"}} {
  gdn_gpu.await_launch
  gdn_gpu.store_element %v, %y[%i] : i32, memref<?xi32>
  return
}

// -----

// The second of two that overlap does not wait for what is ahead of both.
func.func @e__prologue(%y: memref<?xi32>, %i: index, %v: i32)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {stage_of = "e", variant = "a"}} {
  gdn_gpu.store_element %v, %y[%i] : i32, memref<?xi32>
  return
}
func.func @e__maps()
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {awaits_stage = 1 : i64, overlaps = "next", stage_of = "e", variant = "a"}} {
  // expected-error@+1 {{'gdn_gpu.release_launch' op expects a gdn_gpu.await_launch before it on every way, since in variant 'a' stage 'e__first' begins behind it, and overlaps with this one: it reads what stages ahead of both have written, and does not wait for these}}
  gdn_gpu.release_launch
  gdn_gpu.await_launch
  return
}
func.func @e__first(%y: memref<?xi32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {overlaps = "last", stage_of = "e", variant = "a"}} {
  %x = memref.load %y[%i] : memref<?xi32>
  gdn_gpu.await_launch
  return
}

// -----

// A counter of the call before may still have what is awaited.
#row = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 1>
!one = !gdn_gpu.fragment<1xf32, #gdn_gpu.per_row<#row>>
func.func @e__clear(%y: memref<?xi32>, %counters: memref<?xf32>, %i: index, %zero: !one)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {stage_of = "e", variant = "a"}} {
  gdn_gpu.store %zero, %counters[%i] dims [0] : !one, memref<?xf32>
  return
}
func.func @e__rule(%y: memref<?xi32>, %counters: memref<?xf32>, %i: index, %v: i32)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {awaits_stage = 1 : i64, stage_of = "e", variant = "a"}} {
  // expected-error@+1 {{'gdn_gpu.release_launch' op expects a gdn_gpu.await_launch before it on every way, since in variant 'a' stage 'e__norm' begins behind it, and awaits signals: stages ahead of both may not have cleared its counters yet}}
  gdn_gpu.release_launch
  gdn_gpu.await_launch
  gdn_gpu.store_element %v, %y[%i] : i32, memref<?xi32>
  gdn_gpu.warps 0 for 1 {
    gdn_gpu.signal 64, %counters[%i] : memref<?xf32>
  }
  return
}
func.func @e__norm(%N: index, %y: memref<?xi32>, %counters: memref<?xf32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {follows = 1 : i64, grid = ["N"], stage_of = "e", symbols = ["N"], variant = "a"}} {
  %c0 = arith.constant 0 : index
  gdn_gpu.each_warp 0 for 1 {
  ^bb0(%w: index):
    gdn_gpu.await_signals 64, %counters[%i] : memref<?xf32>
  }
  %n = gdn_gpu.block_id 0
  %first = arith.cmpi eq, %n, %c0 : index
  scf.if %first {
    gdn_gpu.await_launch
  }
  return
}

// -----

// A pool that a stage writes, two ahead.
#row = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!row = !gdn_gpu.fragment<1x128xf32, #row>
func.func @e__first(%pool: memref<?x128xf32> {gdn.name = "pool"}, %y: memref<?xi32>, %i: index, %x: !row)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {stage_of = "e", variant = "a"}} {
  %c0 = arith.constant 0 : index
  // expected-note@+1 {{written here}}
  gdn_gpu.store %x, %pool[%i, %c0] dims [0, 1] : !row, memref<?x128xf32>
  return
}
func.func @e__scan(%pool: memref<?x128xf32> {gdn.name = "pool"}, %y: memref<?xi32>, %i: index, %v: i32)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {awaits_stage = 1 : i64, stage_of = "e", variant = "a"}} {
  gdn_gpu.release_launch
  gdn_gpu.await_launch
  gdn_gpu.store_element %v, %y[%i] : i32, memref<?xi32>
  return
}
func.func @e__others(%pool: memref<?x128xf32> {gdn.name = "pool"},
                     %none: index {gdn.name = "pool_null_slot"}, %y: memref<?xi32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {awaits_stage = 1 : i64, stage_of = "e", variant = "a"}} {
  %c0 = arith.constant 0 : index
  // expected-error@+1 {{'gdn_gpu.load' op expects a gdn_gpu.await_launch before it on every way, since in variant 'a' stage 'e__first' is ahead of this one, may still run, and writes 'pool'}}
  %a = gdn_gpu.load %pool[%i, %c0] dims [0, 1] : memref<?x128xf32>, !row
  gdn_gpu.await_launch
  return
}

// -----

// What the stage writes, too, and another one ahead of it; a region of the workspace.
#row = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!row = !gdn_gpu.fragment<1x128xf32, #row>
func.func @e__first(%x: memref<?xi32>, %states: memref<?x128xf32>, %i: index, %new: !row)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {stage_of = "e", variant = "a"}} {
  %c0 = arith.constant 0 : index
  // expected-note@+1 {{written here}}
  gdn_gpu.store %new, %states[%i, %c0] dims [0, 1] : !row, memref<?x128xf32>
  return
}
func.func @e__scan(%x: memref<?xi32>, %states: memref<?x128xf32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {stage_of = "e", variant = "a"}} {
  %c0 = arith.constant 0 : index
  // expected-error@+1 {{since in variant 'a' stage 'e__first' is ahead of this one, may still run, and writes region 1 of the workspace}}
  %a = gdn_gpu.load %states[%i, %c0] dims [0, 1] : memref<?x128xf32>, !row
  gdn_gpu.await_launch
  gdn_gpu.store %a, %states[%i, %c0] dims [0, 1] : !row, memref<?x128xf32>
  return
}

// -----

// An integer that is none of the call.
func.func @e__order(%order: memref<?xi32>, %i: index, %v: i32)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {stage_of = "e", variant = "a"}} {
  // expected-note@+1 {{written here}}
  gdn_gpu.store_element %v, %order[%i] : i32, memref<?xi32>
  return
}
func.func @e__rule(%order: memref<?xi32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {awaits_stage = 1 : i64, stage_of = "e", variant = "a"}} {
  // expected-error@+1 {{'memref.load' op expects a gdn_gpu.await_launch before it on every way, since in variant 'a' stage 'e__order' is ahead of this one, may still run, and writes region 0 of the workspace}}
  %n = memref.load %order[%i] : memref<?xi32>
  gdn_gpu.await_launch
  return
}

// -----

// Nothing of this call is ahead of its first stage.
// expected-error@+1 {{'func.func' op expects a stage ahead of it in variant 'b', since its gdn_tile.stage has awaits_stage, but is the first one}}
func.func @e__second()
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {awaits_stage = 1 : i64, stage_of = "e", variant = "b"}} {
  gdn_gpu.await_launch
  return
}
func.func @e__third()
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {awaits_stage = 1 : i64, stage_of = "e", variant = "b"}} {
  gdn_gpu.await_launch
  return
}
