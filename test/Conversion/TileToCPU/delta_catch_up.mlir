// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A state with its pending tokens: where it receives them its rows go to the
// pool, rounded, and come back wide; else the sum goes to scratch alone.
//
// RUN: gdn-tile-opt %s -convert-tile-to-cpu=lanes=8 -canonicalize -cse | FileCheck %s

// CHECK-LABEL: func.func @catch_up(
//       CHECK:   %[[STATE:.+]] = memref.subview {{.+}} : memref<?x64x32xbf16> to
//       CHECK:   %[[KEYS:.+]] = memref.subview {{.+}} : memref<?x16x32xf32> to
//       CHECK:   %[[DELTAS:.+]] = memref.subview {{.+}} : memref<?x16x64xf32> to
//       CHECK:   math.exp
//       CHECK:   scf.if %{{.+}} {
//       CHECK:     vector.load %[[STATE]]
//       CHECK:     vector.load %[[KEYS]]
//       CHECK:     memref.load %[[DELTAS]]
//       CHECK:     arith.truncf {{.*}} to vector<8xbf16>
//       CHECK:     vector.store %{{.+}}, %[[STATE]]
//       CHECK:     vector.load %[[STATE]]
//       CHECK:     arith.extf {{.*}} to vector<8xf32>
//       CHECK:   } else {
//       CHECK:     vector.load %[[STATE]]
//       CHECK:     vector.load %[[KEYS]]
//   CHECK-NOT:     vector.store %{{.+}}, %[[STATE]]
//       CHECK:   return
func.func @catch_up(%size: index, %pool: memref<?x64x32xbf16>, %keys: memref<?x16x32xf32>, %deltas: memref<?x16x64xf32>,
    %decays: memref<?x16xf32>, %count: index, %y: memref<?x64x32xf32>)
    attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %n = gdn_tile.block_id 0
  %room = arith.constant 16 : index
  %full = arith.cmpi eq, %count, %room : index
  %c0 = arith.constant 0 : index
  %pk = gdn_tile.load %keys[%n, %c0, %c0] dims [1, 2] rows(%count) : memref<?x16x32xf32>, vector<16x32xf32>
  %pd = gdn_tile.load %deltas[%n, %c0, %c0] dims [1, 2] rows(%count) : memref<?x16x64xf32>, vector<16x64xf32>
  %pg = gdn_tile.load %decays[%n, %c0] dims [1] rows(%count) : memref<?x16xf32>, vector<16xf32>
  %m = gdn_tile.load %pool[%n, %c0, %c0] dims [1, 2] : memref<?x64x32xbf16>, vector<64x32xbf16>
  %m1, %whole = gdn_tile.delta_catch_up %m pending(%pk, %pd, %pg) count(%count) commit(%full)
      : vector<64x32xbf16>, vector<16x32xf32>, vector<16x64xf32>
  scf.if %full {
    gdn_tile.store %m1, %pool[%n, %c0, %c0] dims [1, 2] : vector<64x32xbf16>, memref<?x64x32xbf16>
  }
  gdn_tile.store %whole, %y[%n, %c0, %c0] dims [1, 2] : vector<64x32xf32>, memref<?x64x32xf32>
  return
}
