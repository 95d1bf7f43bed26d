// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Programs that a chip cannot hold are left alone, with the figures: a state of 256
// keys in the registers of 16 warps, and tiles in shared memory.
//
// RUN: gdn-opt %s -gdn-schedule-tile-products=shared-bytes=20000 -verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @large_state(
//       CHECK:   gdn_tile.matmul
// expected-remark@+1 {{'large_state' would take about 158 registers, of which a thread of 16 warps has 128}}
func.func @large_state(%T: index, %k: memref<?x64x256xf16>, %w: memref<?x256x64xf16>)
    attributes {gdn_tile.stage = {grid = ["T"], symbols = ["T"]}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %start = gdn_tile.fill %zero : f32 -> vector<256x256xf32>
  %end = scf.for %t = %c0 to %T step %c1 iter_args(%m = %start) -> (vector<256x256xf32>) {
    %keys = gdn_tile.load %k[%t, %c0, %c0] dims [1, 2] : memref<?x64x256xf16>, vector<64x256xf16>
    %writes = gdn_tile.load %w[%t, %c0, %c0] dims [1, 2] : memref<?x256x64xf16>, vector<256x64xf16>
    %next = gdn_tile.matmul %writes, %keys acc(%m : vector<256x256xf32>) : vector<256x64xf16>, vector<64x256xf16> -> vector<256x256xf32>
    scf.yield %next : vector<256x256xf32>
  }
  return
}

// CHECK-LABEL: func.func @large_tiles(
//       CHECK:   gdn_tile.matmul
// expected-remark@+1 {{'large_tiles' would take 24576 bytes of shared memory, of which a block has 20000}}
func.func @large_tiles(%T: index, %k: memref<?x64x128xf16>, %a: memref<?x64x64xf16>, %out: memref<?x64x128xf32>)
    attributes {gdn_tile.stage = {grid = ["T"], symbols = ["T"]}} {
  %c0 = arith.constant 0 : index
  %t = gdn_tile.block_id 0
  %keys = gdn_tile.load %k[%t, %c0, %c0] dims [1, 2] : memref<?x64x128xf16>, vector<64x128xf16>
  %left = gdn_tile.load %a[%t, %c0, %c0] dims [1, 2] : memref<?x64x64xf16>, vector<64x64xf16>
  %p = gdn_tile.matmul %left, %keys : vector<64x64xf16>, vector<64x128xf16> -> vector<64x128xf32>
  gdn_tile.store %p, %out[%t, %c0, %c0] dims [1, 2] : vector<64x128xf32>, memref<?x64x128xf32>
  return
}

// Tokens take registers beside the state: 307 of these are for the state of 256 x 128.
// CHECK-LABEL: func.func @many_tokens(
//       CHECK:   gdn_tile.matmul
// expected-remark@+1 {{'many_tokens' would take about 447 registers, of which a thread of 8 warps has 255}}
func.func @many_tokens(%T: index, %q: memref<?x128x128xf16>, %k: memref<?x128x128xf16>,
    %w: memref<?x256x128xf16>, %out: memref<?x128x128xf32>)
    attributes {gdn_tile.stage = {grid = ["T"], symbols = ["T"]}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %start = gdn_tile.fill %zero : f32 -> vector<256x128xf32>
  %end = scf.for %t = %c0 to %T step %c1 iter_args(%m = %start) -> (vector<256x128xf32>) {
    %queries = gdn_tile.load %q[%t, %c0, %c0] dims [1, 2] : memref<?x128x128xf16>, vector<128x128xf16>
    %keys = gdn_tile.load %k[%t, %c0, %c0] dims [1, 2] : memref<?x128x128xf16>, vector<128x128xf16>
    %writes = gdn_tile.load %w[%t, %c0, %c0] dims [1, 2] : memref<?x256x128xf16>, vector<256x128xf16>
    %scores = gdn_tile.matmul %queries, %keys : vector<128x128xf16>, vector<128x128xf16> -> vector<128x128xf32>
    gdn_tile.store %scores, %out[%t, %c0, %c0] dims [1, 2] : vector<128x128xf32>, memref<?x128x128xf32>
    %next = gdn_tile.matmul %writes, %keys acc(%m : vector<256x128xf32>) : vector<256x128xf16>, vector<128x128xf16> -> vector<256x128xf32>
    scf.yield %next : vector<256x128xf32>
  }
  return
}
