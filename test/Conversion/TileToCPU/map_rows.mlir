// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One loop over the rows, one over the vectors of a row. A result takes the buffer
// of an input that is dead; of a tile that the body uses whole, each vector reads
// its part.
//
// RUN: gdn-tile-opt %s -convert-tile-to-cpu=lanes=8 -canonicalize -cse | FileCheck %s

// CHECK-LABEL: func.func @takes_over
//  CHECK-SAME:   scratch_bytes = 640
//       CHECK:   %[[WEIGHT:.+]] = memref.view %{{.+}} to memref<32xf32>
//       CHECK:   %[[TILE:.+]] = memref.view %{{.+}} to memref<4x32xf32>
//       CHECK:     memref.store %{{.+}}, %[[WEIGHT]]
//       CHECK:   scf.for %[[I:.+]] = {{.+}} step %{{.+}} {
//  CHECK-NEXT:     scf.for %[[J:.+]] =
//       CHECK:       %[[ROW:.+]] = vector.load %[[TILE]][%[[I]], %[[J]]] : {{.+}}, vector<8xf32>
//       CHECK:       %[[W:.+]] = vector.load %[[WEIGHT]][%[[J]]] : {{.+}}, vector<8xf32>
//       CHECK:       %[[Y:.+]] = arith.mulf %[[ROW]], %[[W]]
//       CHECK:       vector.store %[[Y]], %[[TILE]][%[[I]], %[[J]]]
func.func @takes_over(%n: index, %x: memref<4x32xf32>, %w: memref<32xf32>)
    attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %t = gdn_tile.load %x[%c0, %c0] dims [0, 1] : memref<4x32xf32>, vector<4x32xf32>
  %weight = gdn_tile.load %w[%c0] dims [0] : memref<32xf32>, vector<32xf32>
  %y = gdn_tile.map_rows %t : vector<4x32xf32> -> vector<4x32xf32> {
  ^bb0(%i: index, %row: vector<32xf32>):
    %r = arith.mulf %row, %weight : vector<32xf32>
    gdn_tile.yield %r : vector<32xf32>
  }
  gdn_tile.store %y, %x[%c0, %c0] dims [0, 1] : vector<4x32xf32>, memref<4x32xf32>
  return
}

// The input is used again: the result gets a place of its own. Elements of a
// tile of rank 1 are scalars.
// CHECK-LABEL: func.func @own_place
//  CHECK-SAME:   scratch_bytes = 128
//       CHECK:   %[[Y:.+]] = memref.view %{{.+}} to memref<4xf32>
//       CHECK:   %[[T:.+]] = memref.view %{{.+}} to memref<4xf32>
//       CHECK:   %[[E:.+]] = memref.load %[[T]]
//       CHECK:   %[[NEG:.+]] = arith.negf %[[E]] : f32
//       CHECK:   memref.store %[[NEG]], %[[Y]]
func.func @own_place(%n: index, %x: memref<4xf32>, %z: memref<4xf32>)
    attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %t = gdn_tile.load %x[%c0] dims [0] : memref<4xf32>, vector<4xf32>
  %y = gdn_tile.map_rows %t : vector<4xf32> -> vector<4xf32> {
  ^bb0(%i: index, %e: f32):
    %r = arith.negf %e : f32
    gdn_tile.yield %r : f32
  }
  gdn_tile.store %t, %z[%c0] dims [0] : vector<4xf32>, memref<4xf32>
  gdn_tile.store %y, %x[%c0] dims [0] : vector<4xf32>, memref<4xf32>
  return
}

// A sum ends the pass over the row. What was computed before it and is wanted
// after it stays in the row of the result.
// CHECK-LABEL: func.func @sum
//       CHECK:   %[[TILE:.+]] = memref.view %{{.+}} to memref<4x32xf32>
//       CHECK:     vector.store %{{.+}}, %[[TILE]]
//       CHECK:   scf.for %[[I:.+]] = {{.+}} step %{{.+}} {
//  CHECK-NEXT:     %[[TOTAL:.+]] = scf.for %[[J:.+]] = {{.+}} iter_args(%[[ACC:.+]] =
//       CHECK:       %[[X:.+]] = vector.load %[[TILE]][%[[I]], %[[J]]]
//       CHECK:       %[[E:.+]] = math.exp %[[X]]
//       CHECK:       %[[D:.+]] = arith.divf %[[X]], %[[E]]
//       CHECK:       %[[NEXT:.+]] = arith.addf %[[ACC]], %[[D]]
//       CHECK:       vector.store %[[D]], %[[TILE]][%[[I]], %[[J]]]
//       CHECK:       scf.yield %[[NEXT]]
//       CHECK:     %[[SUM:.+]] = vector.reduction <add>, %[[TOTAL]]
//       CHECK:     scf.for %[[J:.+]] =
//   CHECK-NOT:       math.exp
//       CHECK:       %[[KEPT:.+]] = vector.load %[[TILE]][%[[I]], %[[J]]]
//       CHECK:       %[[S:.+]] = vector.broadcast %[[SUM]]
//       CHECK:       %[[Y:.+]] = arith.mulf %[[KEPT]], %[[S]]
//       CHECK:       vector.store %[[Y]], %[[TILE]][%[[I]], %[[J]]]
func.func @sum(%n: index, %x: memref<4x32xf32>)
    attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %t = gdn_tile.load %x[%c0, %c0] dims [0, 1] : memref<4x32xf32>, vector<4x32xf32>
  %y = gdn_tile.map_rows %t : vector<4x32xf32> -> vector<4x32xf32> {
  ^bb0(%i: index, %row: vector<32xf32>):
    %e = math.exp %row : vector<32xf32>
    %d = arith.divf %row, %e : vector<32xf32>
    %total = vector.reduction <add>, %d fastmath<reassoc> : vector<32xf32> into f32
    %s = vector.broadcast %total : f32 to vector<32xf32>
    %r = arith.mulf %d, %s : vector<32xf32>
    gdn_tile.yield %r : vector<32xf32>
  }
  gdn_tile.store %y, %x[%c0, %c0] dims [0, 1] : vector<4x32xf32>, memref<4x32xf32>
  return
}

// A row of another type has no place for it: it is computed again.
// CHECK-LABEL: func.func @narrow_sum
//       CHECK:     %[[SUM:.+]] = vector.reduction <add>
//       CHECK:     scf.for
//       CHECK:       math.exp
//       CHECK:       arith.truncf %{{.+}} : vector<8xf32> to vector<8xf16>
func.func @narrow_sum(%n: index, %x: memref<4x32xf32>, %z: memref<4x32xf16>)
    attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %t = gdn_tile.load %x[%c0, %c0] dims [0, 1] : memref<4x32xf32>, vector<4x32xf32>
  %y = gdn_tile.map_rows %t : vector<4x32xf32> -> vector<4x32xf16> {
  ^bb0(%i: index, %row: vector<32xf32>):
    %e = math.exp %row : vector<32xf32>
    %d = arith.divf %row, %e : vector<32xf32>
    %total = vector.reduction <add>, %d fastmath<reassoc> : vector<32xf32> into f32
    %s = vector.broadcast %total : f32 to vector<32xf32>
    %r = arith.mulf %d, %s : vector<32xf32>
    %h = arith.truncf %r : vector<32xf32> to vector<32xf16>
    gdn_tile.yield %h : vector<32xf16>
  }
  gdn_tile.store %y, %z[%c0, %c0] dims [0, 1] : vector<4x32xf16>, memref<4x32xf16>
  return
}

// Column numbers: a step is the vector's first column and the lanes after it.
// CHECK-LABEL: func.func @columns
//       CHECK:     vector.store
//       CHECK:   scf.for %[[I:.+]] = {{.+}} step %{{.+}} {
//  CHECK-NEXT:     scf.for %[[J:.+]] =
//       CHECK:       %[[FIRST:.+]] = vector.broadcast %[[J]] : index to vector<8xindex>
//       CHECK:       %[[LANES:.+]] = vector.step : vector<8xindex>
//       CHECK:       %[[COLUMN:.+]] = arith.addi %[[FIRST]], %[[LANES]] : vector<8xindex>
//       CHECK:       arith.cmpi ule, %[[COLUMN]], %{{.+}} : vector<8xindex>
func.func @columns(%n: index, %x: memref<32x32xf32>)
    attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : vector<32xf32>
  %t = gdn_tile.load %x[%c0, %c0] dims [0, 1] : memref<32x32xf32>, vector<32x32xf32>
  %y = gdn_tile.map_rows %t : vector<32x32xf32> -> vector<32x32xf32> {
  ^bb0(%i: index, %row: vector<32xf32>):
    %column = vector.step : vector<32xindex>
    %own = vector.broadcast %i : index to vector<32xindex>
    %below = arith.cmpi ule, %column, %own : vector<32xindex>
    %kept = arith.select %below, %row, %zero : vector<32xi1>, vector<32xf32>
    gdn_tile.yield %kept : vector<32xf32>
  }
  gdn_tile.store %y, %x[%c0, %c0] dims [0, 1] : vector<32x32xf32>, memref<32x32xf32>
  return
}
