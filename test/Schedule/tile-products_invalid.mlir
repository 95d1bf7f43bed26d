// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What gdn-schedule-tile-products has no buffer for.
//
// RUN: gdn-opt %s -gdn-schedule-tile-products -split-input-file -verify-diagnostics

func.func @branch(%T: index, %v: memref<?x64x64xf16>, %c: i1)
    attributes {gdn_tile.stage = {grid = ["T"], symbols = ["T"]}} {
  %c0 = arith.constant 0 : index
  %t = gdn_tile.block_id 0
  %a = gdn_tile.load %v[%t, %c0, %c0] dims [1, 2] : memref<?x64x64xf16>, vector<64x64xf16>
  // expected-error@+1 {{'scf.if' op is not for a schedule of products: it gives tiles}}
  %b = scf.if %c -> (vector<64x64xf32>) {
    %p = gdn_tile.matmul %a, %a : vector<64x64xf16>, vector<64x64xf16> -> vector<64x64xf32>
    scf.yield %p : vector<64x64xf32>
  } else {
    %p = gdn_tile.matmul transpose %a, %a : vector<64x64xf16>, vector<64x64xf16> -> vector<64x64xf32>
    scf.yield %p : vector<64x64xf32>
  }
  return
}
