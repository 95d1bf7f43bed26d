// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn-gpu-check: what a stage may do ahead of its wait for those ahead of it.
//
// RUN: gdn-gpu-opt %s -gdn-gpu-check | FileCheck %s

#row = #gdn_gpu.rows<warps = 1, lanes = 32, vector = 4>
!row = !gdn_gpu.fragment<1x128xf32, #row>

// A scan whose first block waits, and lets the last stage begin ahead of that; the last one reads an
// input ahead of its wait, and lets the next launch begin behind it.
// CHECK-LABEL: func.func @e__first(
func.func @e__first(%x: memref<?x128xf32> {gdn.name = "x"}, %out: memref<?x128xf32> {gdn.name = "out"},
                    %states: memref<?x128xf32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {grid = ["N + 1", "H"], stage_of = "e", variant = ["cut", "short"]}} {
  %c0 = arith.constant 0 : index
  gdn_gpu.release_launch
  %a = gdn_gpu.load %x[%i, %c0] dims [0, 1] : memref<?x128xf32>, !row
  gdn_gpu.store %a, %states[%i, %c0] dims [0, 1] : !row, memref<?x128xf32>
  return
}

// CHECK-LABEL: func.func @e__scan(
//       CHECK:   gdn_gpu.release_launch
//       CHECK:   gdn_gpu.await_launch
func.func @e__scan(%N: index, %H: index, %x: memref<?x128xf32> {gdn.name = "x"},
                   %out: memref<?x128xf32> {gdn.name = "out"}, %states: memref<?x128xf32>)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {awaits_stage = 1 : i64, grid = ["N", "H"], stage_of = "e", symbols = ["N", "H"],
                                  variant = "cut"}} {
  %c0 = arith.constant 0 : index
  %n = gdn_gpu.block_id 0
  %h = gdn_gpu.block_id 1
  gdn_gpu.release_launch
  %isFirst = arith.cmpi eq, %n, %c0 : index
  %isFirstHead = arith.cmpi eq, %h, %c0 : index
  %both = arith.andi %isFirst, %isFirstHead : i1
  scf.if %both {
    gdn_gpu.await_launch
    %a = gdn_gpu.load %states[%n, %c0] dims [0, 1] : memref<?x128xf32>, !row
    gdn_gpu.store %a, %states[%n, %c0] dims [0, 1] : !row, memref<?x128xf32>
  }
  return
}

// It is the last one of both variants.
// CHECK-LABEL: func.func @e__others(
func.func @e__others(%x: memref<?x128xf32> {gdn.name = "x"}, %out: memref<?x128xf32> {gdn.name = "out"},
                     %states: memref<?x128xf32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {awaits_stage = 1 : i64, grid = ["2", "H"], stage_of = "e",
                                  variant = ["cut", "short"]}} {
  %c0 = arith.constant 0 : index
  %a = gdn_gpu.load %x[%i, %c0] dims [0, 1] : memref<?x128xf32>, !row
  // CHECK: gdn_gpu.await_launch
  gdn_gpu.await_launch
  gdn_gpu.release_launch
  %b = gdn_gpu.load %states[%i, %c0] dims [0, 1] : memref<?x128xf32>, !row
  gdn_gpu.store %b, %out[%i, %c0] dims [0, 1] : !row, memref<?x128xf32>
  return
}

// Two that overlap begin behind the stage ahead of both, of which the second reads, and wait where
// they end; the stage behind them waits for both.
// CHECK-LABEL: func.func @o__ahead(
func.func @o__ahead(%x: memref<?x128xf32> {gdn.name = "x"}, %y: memref<?x128xf32>, %z: memref<?x128xf32>,
                    %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64}, gdn_tile.stage = {stage_of = "o", variant = "a"}} {
  %c0 = arith.constant 0 : index
  %a = gdn_gpu.load %x[%i, %c0] dims [0, 1] : memref<?x128xf32>, !row
  gdn_gpu.store %a, %y[%i, %c0] dims [0, 1] : !row, memref<?x128xf32>
  return
}

// CHECK-LABEL: func.func @o__maps(
func.func @o__maps(%x: memref<?x128xf32> {gdn.name = "x"}, %y: memref<?x128xf32>, %z: memref<?x128xf32>,
                   %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {overlaps = "next", stage_of = "o", variant = "a"}} {
  %c0 = arith.constant 0 : index
  gdn_gpu.release_launch
  %a = gdn_gpu.load %y[%i, %c0] dims [0, 1] : memref<?x128xf32>, !row
  gdn_gpu.store %a, %z[%i, %c0] dims [0, 1] : !row, memref<?x128xf32>
  return
}

// CHECK-LABEL: func.func @o__first(
func.func @o__first(%x: memref<?x128xf32> {gdn.name = "x"}, %y: memref<?x128xf32>, %z: memref<?x128xf32>,
                    %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {overlaps = "last", stage_of = "o", variant = "a"}} {
  %c0 = arith.constant 0 : index
  gdn_gpu.release_launch
  %a = gdn_gpu.load %y[%i, %c0] dims [0, 1] : memref<?x128xf32>, !row
  // CHECK: gdn_gpu.await_launch
  gdn_gpu.await_launch
  return
}

// CHECK-LABEL: func.func @o__scan(
func.func @o__scan(%x: memref<?x128xf32> {gdn.name = "x"}, %y: memref<?x128xf32>, %z: memref<?x128xf32>,
                   %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {awaits_stage = 1 : i64, stage_of = "o", variant = "a"}} {
  %c0 = arith.constant 0 : index
  // CHECK: gdn_gpu.await_launch
  gdn_gpu.await_launch
  %a = gdn_gpu.load %z[%i, %c0] dims [0, 1] : memref<?x128xf32>, !row
  gdn_gpu.store %a, %y[%i, %c0] dims [0, 1] : !row, memref<?x128xf32>
  return
}

// A function that is alone is a part of an entry.
// CHECK-LABEL: func.func @part(
func.func @part(%x: memref<?x128xf32> {gdn.name = "x"}, %y: memref<?x128xf32>, %i: index)
    attributes {gdn_gpu.kernel = {threads = 32 : i64},
                gdn_tile.stage = {awaits_stage = 1 : i64, stage_of = "p", variant = "a"}} {
  %c0 = arith.constant 0 : index
  gdn_gpu.release_launch
  %a = gdn_gpu.load %x[%i, %c0] dims [0, 1] : memref<?x128xf32>, !row
  // CHECK: gdn_gpu.await_launch
  gdn_gpu.await_launch
  gdn_gpu.store %a, %y[%i, %c0] dims [0, 1] : !row, memref<?x128xf32>
  return
}
