// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A replay reads the state where it is, and writes it there if it commits. Of
// pending tokens only those that are there are read, from their pools.
//
// RUN: gdn-tile-opt %s -convert-tile-to-cpu=lanes=8 -canonicalize -cse | FileCheck %s

// CHECK-LABEL: func.func @step(
//       CHECK:   %[[STATE:.+]] = memref.subview {{.+}} : memref<?x64x32xf32> to
//       CHECK:   %[[KEYS:.+]] = memref.subview {{.+}} : memref<?x16x32xf32> to
//       CHECK:   %[[DELTAS:.+]] = memref.subview {{.+}} : memref<?x16x64xf32> to
// What is left of tokens and state: sums from the last token on.
//       CHECK:   scf.for %{{.+}} iter_args(%{{.+}} = %{{.+}}) -> (f32) {
//       CHECK:     math.exp
//       CHECK:   scf.if %[[FULL:.+]] {
// Two rows, and four vectors of each, stay in registers for all tokens.
//       CHECK:     scf.for
// CHECK-COUNT-8:       vector.load %[[STATE]]
//       CHECK:       scf.for
// CHECK-COUNT-4:         vector.load %[[KEYS]]
//       CHECK:         memref.load %[[DELTAS]]
//       CHECK:         memref.load %[[DELTAS]]
// CHECK-COUNT-8:       vector.store %{{.+}}, %[[STATE]]
//   CHECK-NOT:   } else {
//       CHECK:   arith.select %[[FULL]]
//       CHECK:   vector.load %[[KEYS]]
// The pass over the rows writes no state.
//       CHECK:   memref.prefetch %[[STATE]]
//   CHECK-NOT:   vector.store %{{.+}}, %[[STATE]]
//       CHECK:   vector.load %[[DELTAS]]
//   CHECK-NOT:   vector.store %{{.+}}, %[[STATE]]
//       CHECK:   return
func.func @step(%size: index, %pool: memref<?x64x32xf32>, %keys: memref<?x16x32xf32>, %deltas: memref<?x16x64xf32>,
    %decays: memref<?x16xf32>, %count: index, %q: memref<?x32xf32>, %k: memref<?x32xf32>,
    %v: memref<?x64xf32>, %g: memref<?xf32>, %b: memref<?xf32>, %y: memref<?x64xf32>)
    attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %n = gdn_tile.block_id 0
  %room = arith.constant 16 : index
  %full = arith.cmpi eq, %count, %room : index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %pk = gdn_tile.load %keys[%n, %c0, %c0] dims [1, 2] rows(%count) : memref<?x16x32xf32>, vector<16x32xf32>
  %pd = gdn_tile.load %deltas[%n, %c0, %c0] dims [1, 2] rows(%count) : memref<?x16x64xf32>, vector<16x64xf32>
  %pg = gdn_tile.load %decays[%n, %c0] dims [1] rows(%count) : memref<?x16xf32>, vector<16xf32>
  %qt = gdn_tile.load %q[%n, %c0] dims [0, 1] : memref<?x32xf32>, vector<1x32xf32>
  %kt = gdn_tile.load %k[%n, %c0] dims [0, 1] : memref<?x32xf32>, vector<1x32xf32>
  %vt = gdn_tile.load %v[%n, %c0] dims [0, 1] : memref<?x64xf32>, vector<1x64xf32>
  %gt = gdn_tile.load %g[%n] dims [0] : memref<?xf32>, vector<1xf32>
  %bt = gdn_tile.load %b[%n] dims [0] : memref<?xf32>, vector<1xf32>
  %m = gdn_tile.load %pool[%n, %c0, %c0] dims [1, 2] : memref<?x64x32xf32>, vector<64x32xf32>
  %m1, %o, %d = gdn_tile.delta_replay %m pending(%pk, %pd, %pg) count(%count) commit(%full)
      tokens(%qt, %kt, %vt) gates(%gt, %bt) valid(%c1)
      : vector<64x32xf32>, vector<16x32xf32>, vector<16x64xf32>, vector<1x32xf32>, vector<1x64xf32>
  scf.if %full {
    gdn_tile.store %m1, %pool[%n, %c0, %c0] dims [1, 2] : vector<64x32xf32>, memref<?x64x32xf32>
  }
  gdn_tile.store %o, %y[%n, %c0] dims [0, 1] : vector<1x64xf32>, memref<?x64xf32>
  return
}

// With a decay per channel what is left is a row: of the state behind those of
// the tokens. Keys are multiplied with it ahead of their products.
//
// CHECK-LABEL: func.func @per_channel(
//       CHECK:   %[[LEFT:.+]] = memref.view {{.+}} : memref<{{.+}}> to memref<17x32xf32>
//       CHECK:   scf.for %{{.+}} iter_args({{.+}}) -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>) {
// CHECK-COUNT-4:     vector.store %{{.+}}, %[[LEFT]]
// CHECK-COUNT-4:   vector.store %{{.+}}, %[[LEFT]][%c16,
//       CHECK:   scf.if
//       CHECK:       vector.load %[[LEFT]][%c16,
//       CHECK:         vector.load %[[LEFT]]
//       CHECK:   arith.select %{{.+}} : vector<8xf32>
//   CHECK-NOT:   math.exp %{{.+}} : f32
func.func @per_channel(%size: index, %pool: memref<?x64x32xf32>, %keys: memref<?x16x32xf32>, %deltas: memref<?x16x64xf32>,
    %decays: memref<?x16x32xf32>, %count: index, %q: memref<?x32xf32>, %k: memref<?x32xf32>,
    %v: memref<?x64xf32>, %g: memref<?x32xf32>, %b: memref<?xf32>, %y: memref<?x64xf32>)
    attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %n = gdn_tile.block_id 0
  %room = arith.constant 16 : index
  %full = arith.cmpi eq, %count, %room : index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %pk = gdn_tile.load %keys[%n, %c0, %c0] dims [1, 2] rows(%count) : memref<?x16x32xf32>, vector<16x32xf32>
  %pd = gdn_tile.load %deltas[%n, %c0, %c0] dims [1, 2] rows(%count) : memref<?x16x64xf32>, vector<16x64xf32>
  %pg = gdn_tile.load %decays[%n, %c0, %c0] dims [1, 2] rows(%count) : memref<?x16x32xf32>, vector<16x32xf32>
  %qt = gdn_tile.load %q[%n, %c0] dims [0, 1] : memref<?x32xf32>, vector<1x32xf32>
  %kt = gdn_tile.load %k[%n, %c0] dims [0, 1] : memref<?x32xf32>, vector<1x32xf32>
  %vt = gdn_tile.load %v[%n, %c0] dims [0, 1] : memref<?x64xf32>, vector<1x64xf32>
  %gt = gdn_tile.load %g[%n, %c0] dims [0, 1] : memref<?x32xf32>, vector<1x32xf32>
  %bt = gdn_tile.load %b[%n] dims [0] : memref<?xf32>, vector<1xf32>
  %m = gdn_tile.load %pool[%n, %c0, %c0] dims [1, 2] : memref<?x64x32xf32>, vector<64x32xf32>
  %m1, %o, %d = gdn_tile.delta_replay %m pending(%pk, %pd, %pg) count(%count) commit(%full)
      tokens(%qt, %kt, %vt) gates(%gt, %bt) valid(%c1)
      : vector<64x32xf32>, vector<16x32xf32>, vector<16x64xf32>, vector<1x32xf32>, vector<1x64xf32>, per_channel
  scf.if %full {
    gdn_tile.store %m1, %pool[%n, %c0, %c0] dims [1, 2] : vector<64x32xf32>, memref<?x64x32xf32>
  }
  gdn_tile.store %o, %y[%n, %c0] dims [0, 1] : vector<1x64xf32>, memref<?x64xf32>
  return
}
