// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Chains of map_rows become one, and what must stay apart does.
//
// RUN: gdn-tile-opt %s -gdn-tile-fuse-rows | FileCheck %s

// Three steps, one of them with a second input.
// CHECK-LABEL: func.func @chain
//  CHECK-SAME:   %[[X:[a-z0-9]+]]: vector<4x8xbf16>, %[[S:[a-z0-9]+]]: vector<4xf32>
//       CHECK:   %[[Y:.+]] = gdn_tile.map_rows %[[X]], %[[S]] : vector<4x8xbf16>, vector<4xf32> -> vector<4x8xbf16> {
//       CHECK:   ^bb0(%{{.+}}: index, %[[ROW:.+]]: vector<8xbf16>, %[[FACTOR:.+]]: f32):
//       CHECK:     %[[WIDE:.+]] = arith.extf %[[ROW]]
//       CHECK:     %[[SPLAT:.+]] = vector.broadcast %[[FACTOR]]
//       CHECK:     %[[SCALED:.+]] = arith.mulf %[[WIDE]], %[[SPLAT]]
//       CHECK:     %[[ROUNDED:.+]] = arith.truncf %[[SCALED]]
//       CHECK:     gdn_tile.yield %[[ROUNDED]]
//   CHECK-NOT:   gdn_tile.map_rows
//       CHECK:   return %[[Y]]
func.func @chain(%x: vector<4x8xbf16>, %s: vector<4xf32>) -> vector<4x8xbf16> {
  %0 = gdn_tile.map_rows %x : vector<4x8xbf16> -> vector<4x8xf32> {
  ^bb0(%i: index, %row: vector<8xbf16>):
    %r = arith.extf %row : vector<8xbf16> to vector<8xf32>
    gdn_tile.yield %r : vector<8xf32>
  }
  %1 = gdn_tile.map_rows %0, %s : vector<4x8xf32>, vector<4xf32> -> vector<4x8xf32> {
  ^bb0(%i: index, %row: vector<8xf32>, %factor: f32):
    %f = vector.broadcast %factor : f32 to vector<8xf32>
    %r = arith.mulf %row, %f : vector<8xf32>
    gdn_tile.yield %r : vector<8xf32>
  }
  %2 = gdn_tile.map_rows %1 : vector<4x8xf32> -> vector<4x8xbf16> {
  ^bb0(%i: index, %row: vector<8xf32>):
    %r = arith.truncf %row : vector<8xf32> to vector<8xbf16>
    gdn_tile.yield %r : vector<8xbf16>
  }
  return %2 : vector<4x8xbf16>
}

// A second user, a use of the whole tile, and a read that would pass a write.
// CHECK-LABEL: func.func @stay_apart
// CHECK-COUNT-6: gdn_tile.map_rows
func.func @stay_apart(%x: vector<4xf32>, %m: memref<4xf32>)
    -> (vector<4xf32>, vector<4xf32>, vector<4xf32>, vector<4xf32>) {
  %c0 = arith.constant 0 : index
  %shared = gdn_tile.map_rows %x : vector<4xf32> -> vector<4xf32> {
  ^bb0(%i: index, %e: f32):
    %r = arith.negf %e : f32
    gdn_tile.yield %r : f32
  }
  %0 = gdn_tile.map_rows %shared : vector<4xf32> -> vector<4xf32> {
  ^bb0(%i: index, %e: f32):
    %r = arith.addf %e, %e : f32
    gdn_tile.yield %r : f32
  }
  %whole = gdn_tile.map_rows %x : vector<4xf32> -> vector<4xf32> {
  ^bb0(%i: index, %e: f32):
    %r = arith.mulf %e, %e : f32
    gdn_tile.yield %r : f32
  }
  %1 = gdn_tile.map_rows %x : vector<4xf32> -> vector<4xf32> {
  ^bb0(%i: index, %e: f32):
    %r = vector.reduction <add>, %whole : vector<4xf32> into f32
    gdn_tile.yield %r : f32
  }
  %reads = gdn_tile.map_rows -> vector<4xf32> {
  ^bb0(%i: index):
    %r = memref.load %m[%i] : memref<4xf32>
    gdn_tile.yield %r : f32
  }
  gdn_tile.store %x, %m[%c0] dims [0] : vector<4xf32>, memref<4xf32>
  %2 = gdn_tile.map_rows %reads : vector<4xf32> -> vector<4xf32> {
  ^bb0(%i: index, %e: f32):
    %r = arith.negf %e : f32
    gdn_tile.yield %r : f32
  }
  return %shared, %0, %1, %2 : vector<4xf32>, vector<4xf32>, vector<4xf32>, vector<4xf32>
}

// One token takes its state as it is stored.
// CHECK-LABEL: func.func @state_casts(
//  CHECK-SAME:     %[[STATE:.+]]: vector<32x64xbf16>
//       CHECK:   %[[NEXT:.+]], %{{.+}} = gdn_tile.delta_scan %[[STATE]],
//       CHECK:   return %[[NEXT]] : vector<32x64xbf16>
func.func @state_casts(%m: vector<32x64xbf16>, %k: vector<1x64xf32>,
    %v: vector<1x32xf32>, %g: vector<1xf32>, %n: index) -> vector<32x64xbf16> {
  %wide = gdn_tile.map_rows %m : vector<32x64xbf16> -> vector<32x64xf32> {
  ^bb0(%i: index, %row: vector<64xbf16>):
    %r = arith.extf %row : vector<64xbf16> to vector<64xf32>
    gdn_tile.yield %r : vector<64xf32>
  }
  %next, %o = gdn_tile.delta_scan %wide, %k, %k, %v gates(%g, %g) valid(%n)
      : vector<32x64xf32>, vector<1x64xf32>, vector<1x32xf32>, vector<1xf32>
  %narrow = gdn_tile.map_rows %next : vector<32x64xf32> -> vector<32x64xbf16> {
  ^bb0(%i: index, %row: vector<64xf32>):
    %r = arith.truncf %row : vector<64xf32> to vector<64xbf16>
    gdn_tile.yield %r : vector<64xbf16>
  }
  return %narrow : vector<32x64xbf16>
}
