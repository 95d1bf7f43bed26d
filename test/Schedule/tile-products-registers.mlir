// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where warpgroups are, a state of 256 keys leaves too few registers for products of
// four warps together: the left operand and two results at once. Each warp then makes its own,
// which rounds the state piece by piece. With 128 keys there is buffer for both.
//
// RUN: gdn-opt %s -gdn-schedule-tile-products=warpgroups=true | FileCheck %s
// RUN: gdn-opt %s -gdn-schedule-tile-products=warpgroups=true -gdn-gpu-use-warpgroups | FileCheck %s --check-prefix=USED
// RUN: gdn-opt %s -gdn-schedule-tile-products | FileCheck %s --check-prefix=ALONE

// CHECK-LABEL: func.func @large(
//  CHECK-SAME:   single_warps
//       CHECK:   gdn_gpu.matmul
// USED-LABEL: func.func @large(
//   USED-NOT:   single_warps
//   USED-NOT:   warpgroup
//       USED:   gdn_gpu.matmul
// There is nothing to choose without.
// ALONE-LABEL: func.func @large(
//   ALONE-NOT:   single_warps
//       ALONE:   gdn_gpu.matmul
// USED-LABEL: func.func @good(
//  USED-SAME:   warpgroups
//       USED:   gdn_gpu.matmul warpgroup
func.func @large(%T: index, %k: memref<?x32x256xbf16>, %y: memref<?x32x256xf16>)
    attributes {gdn_tile.stage = {grid = ["T"], symbols = ["T"]}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %start = gdn_tile.fill %zero : f32 -> vector<64x256xf32>
  %end = scf.for %t = %c0 to %T step %c1 iter_args(%m = %start) -> (vector<64x256xf32>) {
    %keys = gdn_tile.load %k[%t, %c0, %c0] dims [1, 2] : memref<?x32x256xbf16>, vector<32x256xbf16>
    %to = gdn_tile.load %y[%t, %c0, %c0] dims [1, 2] : memref<?x32x256xf16>, vector<32x256xf16>
    %held = gdn_tile.map_rows %m : vector<64x256xf32> -> vector<64x256xbf16> {
    ^bb0(%row: index, %x: vector<256xf32>):
      %r = arith.truncf %x : vector<256xf32> to vector<256xbf16>
      gdn_tile.yield %r : vector<256xbf16>
    }
    %transposed = gdn_tile.transpose %keys : vector<32x256xbf16> -> vector<256x32xbf16>
    %known = gdn_tile.matmul %held, %transposed : vector<64x256xbf16>, vector<256x32xbf16> -> vector<64x32xf32>
    %w = gdn_tile.map_rows %known : vector<64x32xf32> -> vector<64x32xf16> {
    ^bb0(%row: index, %x: vector<32xf32>):
      %r = arith.truncf %x : vector<32xf32> to vector<32xf16>
      gdn_tile.yield %r : vector<32xf16>
    }
    %next = gdn_tile.matmul %w, %to acc(%m : vector<64x256xf32>) : vector<64x32xf16>, vector<32x256xf16> -> vector<64x256xf32>
    scf.yield %next : vector<64x256xf32>
  }
  return
}

// CHECK-LABEL: func.func @good(
//   CHECK-NOT:   finish_products
//   CHECK-NOT:   single_warps
//       CHECK:   gdn_gpu.matmul
// ALONE-LABEL: func.func @good(
//   ALONE-NOT:   gdn_gpu.allow
//       ALONE:   gdn_gpu.matmul
func.func @good(%T: index, %y: memref<?x64x128xf16>, %w: memref<?x64x64xf16>)
    attributes {gdn_tile.stage = {grid = ["T"], symbols = ["T"]}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %start = gdn_tile.fill %zero : f32 -> vector<64x128xf32>
  %end = scf.for %t = %c0 to %T step %c1 iter_args(%m = %start) -> (vector<64x128xf32>) {
    %left = gdn_tile.load %w[%t, %c0, %c0] dims [1, 2] : memref<?x64x64xf16>, vector<64x64xf16>
    %to = gdn_tile.load %y[%t, %c0, %c0] dims [1, 2] : memref<?x64x128xf16>, vector<64x128xf16>
    %next = gdn_tile.matmul %left, %to acc(%m : vector<64x128xf32>) : vector<64x64xf16>, vector<64x128xf16> -> vector<64x128xf32>
    scf.yield %next : vector<64x128xf32>
  }
  return
}

// Two warps make products by themselves, also where warpgroups are: these end where a barrier
// follows, or ptxas holds what they multiply beyond it.
// CHECK-LABEL: func.func @two_warps(
//  CHECK-SAME:   finish_products
//  CHECK-SAME:   threads = 64
// ALONE-LABEL: func.func @two_warps(
//  ALONE-SAME:   finish_products
func.func @two_warps(%T: index, %y: memref<?x64x64xf16>, %w: memref<?x32x64xf16>)
    attributes {gdn_tile.stage = {grid = ["T"], symbols = ["T"]}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %start = gdn_tile.fill %zero : f32 -> vector<32x64xf32>
  %end = scf.for %t = %c0 to %T step %c1 iter_args(%m = %start) -> (vector<32x64xf32>) {
    %left = gdn_tile.load %w[%t, %c0, %c0] dims [1, 2] : memref<?x32x64xf16>, vector<32x64xf16>
    %to = gdn_tile.load %y[%t, %c0, %c0] dims [1, 2] : memref<?x64x64xf16>, vector<64x64xf16>
    %next = gdn_tile.matmul %left, %to acc(%m : vector<32x64xf32>) : vector<32x64xf16>, vector<64x64xf16> -> vector<32x64xf32>
    scf.yield %next : vector<32x64xf32>
  }
  return
}

// A recurrence that stops inside of sequences may spill some scalars.
// CHECK-LABEL: func.func @states_inside(
//  CHECK-SAME:   gdn_gpu.allow = "spills up to 256 bytes: {{[^"]+}}"
// ALONE-LABEL: func.func @states_inside(
//  ALONE-SAME:   gdn_gpu.allow = "spills up to 84 bytes: {{[^"]+}}"
func.func @states_inside(%T: index, %y: memref<?x64x128xf16>, %w: memref<?x64x64xf16>, %states: memref<?x64x128xf32>)
    attributes {gdn_tile.stage = {grid = ["T"], symbols = ["T"]}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  %start = gdn_tile.fill %zero : f32 -> vector<64x128xf32>
  %end = scf.for %s = %c0 to %c4 step %c1 iter_args(%before = %start) -> (vector<64x128xf32>) {
    %after = scf.for %t = %c0 to %T step %c1 iter_args(%m = %before) -> (vector<64x128xf32>) {
      %left = gdn_tile.load %w[%t, %c0, %c0] dims [1, 2] : memref<?x64x64xf16>, vector<64x64xf16>
      %to = gdn_tile.load %y[%t, %c0, %c0] dims [1, 2] : memref<?x64x128xf16>, vector<64x128xf16>
      %next = gdn_tile.matmul %left, %to acc(%m : vector<64x128xf32>) : vector<64x64xf16>, vector<64x128xf16> -> vector<64x128xf32>
      scf.yield %next : vector<64x128xf32>
    }
    gdn_tile.store %after, %states[%s, %c0, %c0] dims [1, 2] : vector<64x128xf32>, memref<?x64x128xf32>
    scf.yield %after : vector<64x128xf32>
  }
  return
}
