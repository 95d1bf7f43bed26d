// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What gdn-schedule-resident-recurrence refuses, and programs that it leaves
// alone.
//
// RUN: gdn-opt %s -split-input-file -gdn-schedule-resident-recurrence -verify-diagnostics
// RUN: not gdn-opt %s -split-input-file -gdn-schedule-resident-recurrence=threads=100 -o /dev/null 2>&1 | FileCheck %s

// CHECK: error: expects the option 'threads' to be a multiple of 32 from 160 to 1024, but got 100

// Passes take the rows from memory and back there.
func.func @made(%q: vector<1x256xf32>, %k: vector<1x256xf32>,
                %v: vector<1x256xf32>, %g: vector<1xf32>, %beta: vector<1xf32>,
                %out: memref<?x256xf32>, %n: index)
    attributes {gdn_tile.stage = {grid = ["N"]}} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %m = gdn_tile.fill %zero : f32 -> vector<256x256xf32>
  // expected-error@+1 {{'gdn_tile.delta_scan' op expects a state of more than one pass to be loaded and stored whole and as it is}}
  %m1, %o = gdn_tile.delta_scan %m, %q, %k, %v gates(%g, %beta) valid(%n)
      : vector<256x256xf32>, vector<1x256xf32>, vector<1x256xf32>, vector<1xf32>
  gdn_tile.store %o, %out[%n, %c0] dims [0, 1] : vector<1x256xf32>, memref<?x256xf32>
  return
}

// -----

func.func @no_role(%pool: memref<?x64x32xf32>, %out: memref<?x64xf32>, %x: memref<?x64xf32>,
                   %q: vector<1x32xf32>, %k: vector<1x32xf32>, %v: vector<1x64xf32>,
                   %g: vector<1xf32>, %beta: vector<1xf32>, %n: index)
    attributes {gdn_tile.stage = {grid = ["N"]}} {
  %c0 = arith.constant 0 : index
  %m = gdn_tile.load %pool[%n, %c0, %c0] dims [1, 2] : memref<?x64x32xf32>, vector<64x32xf32>
  %m1, %o = gdn_tile.delta_scan %m, %q, %k, %v gates(%g, %beta) valid(%n)
      : vector<64x32xf32>, vector<1x32xf32>, vector<1x64xf32>, vector<1xf32>
  gdn_tile.store %m1, %pool[%n, %c0, %c0] dims [1, 2] : vector<64x32xf32>, memref<?x64x32xf32>
  %t = gdn_tile.load %x[%n, %c0] dims [1] : memref<?x64xf32>, vector<64xf32>
  // expected-error@+1 {{'gdn_tile.store' op expects to store the state, what follows from the output, or what an operand of the scan is made from}}
  gdn_tile.store %t, %out[%n, %c0] dims [1] : vector<64xf32>, memref<?x64xf32>
  return
}

// -----

// What different warps have is not stored in one branch.
func.func @two_roles(%pool: memref<?x64x32xf32>, %keys: memref<?x32xf32>,
                     %q: vector<1x32xf32>, %v: vector<1x64xf32>,
                     %g: vector<1xf32>, %beta: vector<1xf32>, %n: index, %on: i1)
    attributes {gdn_tile.stage = {grid = ["N"]}} {
  %c0 = arith.constant 0 : index
  %m = gdn_tile.load %pool[%n, %c0, %c0] dims [1, 2] : memref<?x64x32xf32>, vector<64x32xf32>
  %k = gdn_tile.load %keys[%n, %c0] dims [0, 1] : memref<?x32xf32>, vector<1x32xf32>
  %m1, %o = gdn_tile.delta_scan %m, %q, %k, %v gates(%g, %beta) valid(%n)
      : vector<64x32xf32>, vector<1x32xf32>, vector<1x64xf32>, vector<1xf32>
  // expected-error@+1 {{'scf.if' op expects to store the state alone, but also stores another tile}}
  scf.if %on {
    gdn_tile.store %k, %keys[%n, %c0] dims [0, 1] : vector<1x32xf32>, memref<?x32xf32>
    gdn_tile.store %m1, %pool[%n, %c0, %c0] dims [1, 2] : vector<64x32xf32>, memref<?x64x32xf32>
  }
  return
}

// -----

// Several tokens: not this schedule's.
func.func @several(%m: vector<64x32xf32>, %q: vector<4x32xf32>, %k: vector<4x32xf32>,
                   %v: vector<4x64xf32>, %g: vector<4xf32>, %beta: vector<4xf32>, %n: index)
    -> vector<4x64xf32> attributes {gdn_tile.stage = {grid = ["N"]}} {
  %m1, %o = gdn_tile.delta_scan %m, %q, %k, %v gates(%g, %beta) valid(%n)
      : vector<64x32xf32>, vector<4x32xf32>, vector<4x64xf32>, vector<4xf32>
  return %o : vector<4x64xf32>
}

// -----

func.func @always(%pool: memref<?x64x32xf32>, %keys: memref<?x8x32xf32>, %deltas: memref<?x8x64xf32>,
                  %decays: memref<?x8xf32>, %out: memref<?x64xf32>, %count: index, %full: i1,
                  %q: vector<1x32xf32>, %k: vector<1x32xf32>, %v: vector<1x64xf32>,
                  %g: vector<1xf32>, %beta: vector<1xf32>, %n: index)
    attributes {gdn_tile.stage = {grid = ["N"]}} {
  %c0 = arith.constant 0 : index
  %m = gdn_tile.load %pool[%n, %c0, %c0] dims [1, 2] : memref<?x64x32xf32>, vector<64x32xf32>
  %pk = gdn_tile.load %keys[%n, %c0, %c0] dims [1, 2] rows(%count) : memref<?x8x32xf32>, vector<8x32xf32>
  %pd = gdn_tile.load %deltas[%n, %c0, %c0] dims [1, 2] rows(%count) : memref<?x8x64xf32>, vector<8x64xf32>
  %pg = gdn_tile.load %decays[%n, %c0] dims [1] rows(%count) : memref<?x8xf32>, vector<8xf32>
  // expected-error@+1 {{'gdn_tile.delta_replay' op expects stores of the state where it receives pending tokens}}
  %m1, %o, %d = gdn_tile.delta_replay %m pending(%pk, %pd, %pg) count(%count) commit(%full)
      tokens(%q, %k, %v) gates(%g, %beta) valid(%n)
      : vector<64x32xf32>, vector<8x32xf32>, vector<8x64xf32>, vector<1x32xf32>, vector<1x64xf32>
  gdn_tile.store %m1, %pool[%n, %c0, %c0] dims [1, 2] : vector<64x32xf32>, memref<?x64x32xf32>
  gdn_tile.store %o, %out[%n, %c0] dims [0, 1] : vector<1x64xf32>, memref<?x64xf32>
  return
}

// -----

// Rows that are made in any other way than by widening what is loaded.
func.func @made(%pool: memref<?x64x32xf32>, %keys: memref<?x8x32xf32>, %deltas: memref<?x8x64xf32>,
                %decays: memref<?x8xf32>, %out: memref<?x64xf32>, %count: index, %full: i1,
                %q: vector<1x32xf32>, %k: vector<1x32xf32>, %v: vector<1x64xf32>,
                %g: vector<1xf32>, %beta: vector<1xf32>, %n: index)
    attributes {gdn_tile.stage = {grid = ["N"]}} {
  %c0 = arith.constant 0 : index
  %m = gdn_tile.load %pool[%n, %c0, %c0] dims [1, 2] : memref<?x64x32xf32>, vector<64x32xf32>
  %pk = gdn_tile.load %keys[%n, %c0, %c0] dims [1, 2] rows(%count) : memref<?x8x32xf32>, vector<8x32xf32>
  %pd = gdn_tile.load %deltas[%n, %c0, %c0] dims [1, 2] rows(%count) : memref<?x8x64xf32>, vector<8x64xf32>
  %pg = gdn_tile.load %decays[%n, %c0] dims [1] rows(%count) : memref<?x8xf32>, vector<8xf32>
  %twice = gdn_tile.map_rows %pd : vector<8x64xf32> -> vector<8x64xf32> {
  ^bb0(%row: index, %x: vector<64xf32>):
    %y = arith.addf %x, %x : vector<64xf32>
    gdn_tile.yield %y : vector<64xf32>
  }
  // expected-error@+1 {{'gdn_tile.delta_replay' op expects pending tokens as they are loaded}}
  %m1, %o, %d = gdn_tile.delta_replay %m pending(%pk, %twice, %pg) count(%count) commit(%full)
      tokens(%q, %k, %v) gates(%g, %beta) valid(%n)
      : vector<64x32xf32>, vector<8x32xf32>, vector<8x64xf32>, vector<1x32xf32>, vector<1x64xf32>
  gdn_tile.store %o, %out[%n, %c0] dims [0, 1] : vector<1x64xf32>, memref<?x64xf32>
  return
}

// -----

func.func @erase(%pool: memref<?x64x32xf32>, %out: memref<?x64xf32>, %k: vector<1x32xf32>, %v: vector<1x64xf32>,
                 %g: vector<1xf32>, %n: index)
    attributes {gdn_tile.stage = {grid = ["N"]}} {
  %c0 = arith.constant 0 : index
  %m = gdn_tile.load %pool[%n, %c0, %c0] dims [1, 2] : memref<?x64x32xf32>, vector<64x32xf32>
  // expected-error@+1 {{'gdn_tile.delta_scan' op expects no 'erase': GPUs have no form for it}}
  %m1, %o = gdn_tile.delta_scan %m, %k, %k, %v gates(%g, %g) erase(%k) valid(%n)
      : vector<64x32xf32>, vector<1x32xf32>, vector<1x64xf32>, vector<1xf32>
  gdn_tile.store %m1, %pool[%n, %c0, %c0] dims [1, 2] : vector<64x32xf32>, memref<?x64x32xf32>
  gdn_tile.store %o, %out[%n, %c0] dims [0, 1] : vector<1x64xf32>, memref<?x64xf32>
  return
}
