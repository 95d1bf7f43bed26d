// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which tiles need no place of their own, and which do although they look as if
// they did not.
//
// RUN: gdn-tile-opt %s -convert-tile-to-cpu=lanes=8 -canonicalize -cse | FileCheck %s

!pool = memref<?x16x8xf32, strided<[?, 8, 1], offset: ?>>

// One token: each row is read from its slot, updated, and written to the other
// slot. The state has no scratch.
// CHECK-LABEL: func.func @one_token
//  CHECK-SAME:   scratch_bytes = 320
//   CHECK-NOT:   memref.view {{.+}} to memref<16x8xf32>
//       CHECK:   %[[FROM:.+]] = memref.subview %[[POOL:.+]][%[[SLOT:.+]], 0, 0] [1, 16, 8] [1, 1, 1]
//       CHECK:   %[[INTO:.+]] = memref.subview %[[POOL]][%[[TO:.+]], 0, 0] [1, 16, 8] [1, 1, 1]
//       CHECK:   scf.for %[[I:.+]] =
//       CHECK:     vector.load %[[FROM]][%[[I]], %{{.+}}]
//       CHECK:     vector.store %{{.+}}, %[[INTO]][%[[I]], %{{.+}}]
//   CHECK-NOT:   vector.store
func.func @one_token(%n: index, %slot: index, %to: index, %pool: !pool,
    %io: memref<1x8xf32>, %gates: memref<1xf32>)
    attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %v = gdn_tile.fill %zero : f32 -> vector<1x16xf32>
  %k = gdn_tile.load %io[%c0, %c0] dims [0, 1] : memref<1x8xf32>, vector<1x8xf32>
  %g = gdn_tile.load %gates[%c0] dims [0] : memref<1xf32>, vector<1xf32>
  %m = gdn_tile.load %pool[%slot, %c0, %c0] dims [1, 2] : !pool, vector<16x8xf32>
  %next, %o = gdn_tile.delta_scan %m, %k, %k, %v gates(%g, %g) valid(%c1)
      : vector<16x8xf32>, vector<1x8xf32>, vector<1x16xf32>, vector<1xf32>
  gdn_tile.store %next, %pool[%to, %c0, %c0] dims [1, 2] : vector<16x8xf32>, !pool
  return
}

// There may be no token: the rows have to go through scratch.
// CHECK-LABEL: func.func @unknown_valid
//       CHECK:   memref.view {{.+}} to memref<16x8xf32>
func.func @unknown_valid(%n: index, %slot: index, %to: index, %pool: !pool,
    %io: memref<1x8xf32>, %gates: memref<1xf32>)
    attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %v = gdn_tile.fill %zero : f32 -> vector<1x16xf32>
  %k = gdn_tile.load %io[%c0, %c0] dims [0, 1] : memref<1x8xf32>, vector<1x8xf32>
  %g = gdn_tile.load %gates[%c0] dims [0] : memref<1xf32>, vector<1xf32>
  %m = gdn_tile.load %pool[%slot, %c0, %c0] dims [1, 2] : !pool, vector<16x8xf32>
  %next, %o = gdn_tile.delta_scan %m, %k, %k, %v gates(%g, %g) valid(%n)
      : vector<16x8xf32>, vector<1x8xf32>, vector<1x16xf32>, vector<1xf32>
  gdn_tile.store %next, %pool[%to, %c0, %c0] dims [1, 2] : vector<16x8xf32>, !pool
  return
}

// Rows that overlap the rows read, one further down.
// CHECK-LABEL: func.func @other_rows
//       CHECK:   memref.view {{.+}} to memref<16x8xf32>
func.func @other_rows(%n: index, %slot: index, %to: index, %pool: !pool,
    %io: memref<1x8xf32>, %gates: memref<1xf32>)
    attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %v = gdn_tile.fill %zero : f32 -> vector<1x16xf32>
  %k = gdn_tile.load %io[%c0, %c0] dims [0, 1] : memref<1x8xf32>, vector<1x8xf32>
  %g = gdn_tile.load %gates[%c0] dims [0] : memref<1xf32>, vector<1xf32>
  %m = gdn_tile.load %pool[%slot, %c1, %c0] dims [1, 2] : !pool, vector<16x8xf32>
  %next, %o = gdn_tile.delta_scan %m, %k, %k, %v gates(%g, %g) valid(%c1)
      : vector<16x8xf32>, vector<1x8xf32>, vector<1x16xf32>, vector<1xf32>
  gdn_tile.store %next, %pool[%to, %c0, %c0] dims [1, 2] : vector<16x8xf32>, !pool
  return
}

// The slot is read before the store: the store may not be early.
// CHECK-LABEL: func.func @read_between
//       CHECK:   memref.view {{.+}} to memref<16x8xf32>
func.func @read_between(%n: index, %slot: index, %to: index, %pool: !pool,
    %io: memref<1x8xf32>, %gates: memref<1xf32>)
    attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %v = gdn_tile.fill %zero : f32 -> vector<1x16xf32>
  %k = gdn_tile.load %io[%c0, %c0] dims [0, 1] : memref<1x8xf32>, vector<1x8xf32>
  %g = gdn_tile.load %gates[%c0] dims [0] : memref<1xf32>, vector<1xf32>
  %m = gdn_tile.load %pool[%slot, %c0, %c0] dims [1, 2] : !pool, vector<16x8xf32>
  %next, %o = gdn_tile.delta_scan %m, %k, %k, %v gates(%g, %g) valid(%c1)
      : vector<16x8xf32>, vector<1x8xf32>, vector<1x16xf32>, vector<1xf32>
  %old = gdn_tile.load %pool[%to, %c0, %c0] dims [1, 2] : !pool, vector<1x8xf32>
  gdn_tile.store %old, %io[%c0, %c0] dims [0, 1] : vector<1x8xf32>, memref<1x8xf32>
  gdn_tile.store %next, %pool[%to, %c0, %c0] dims [1, 2] : vector<16x8xf32>, !pool
  return
}

// The slot is written before the store: the store has to be last.
// CHECK-LABEL: func.func @write_between
//       CHECK:   memref.view {{.+}} to memref<16x8xf32>
func.func @write_between(%n: index, %slot: index, %to: index, %pool: !pool,
    %io: memref<1x8xf32>, %gates: memref<1xf32>)
    attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %v = gdn_tile.fill %zero : f32 -> vector<1x16xf32>
  %k = gdn_tile.load %io[%c0, %c0] dims [0, 1] : memref<1x8xf32>, vector<1x8xf32>
  %g = gdn_tile.load %gates[%c0] dims [0] : memref<1xf32>, vector<1xf32>
  %m = gdn_tile.load %pool[%slot, %c0, %c0] dims [1, 2] : !pool, vector<16x8xf32>
  %next, %o = gdn_tile.delta_scan %m, %k, %k, %v gates(%g, %g) valid(%c1)
      : vector<16x8xf32>, vector<1x8xf32>, vector<1x16xf32>, vector<1xf32>
  gdn_tile.store %k, %pool[%to, %c0, %c0] dims [1, 2] : vector<1x8xf32>, !pool
  gdn_tile.store %next, %pool[%to, %c0, %c0] dims [1, 2] : vector<16x8xf32>, !pool
  return
}

// The view of the store is not there when the scan runs.
// CHECK-LABEL: func.func @late_view
//       CHECK:   memref.view {{.+}} to memref<16x8xf32>
func.func @late_view(%n: index, %slot: index, %to: index, %pool: !pool,
    %io: memref<1x8xf32>, %gates: memref<1xf32>)
    attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %v = gdn_tile.fill %zero : f32 -> vector<1x16xf32>
  %k = gdn_tile.load %io[%c0, %c0] dims [0, 1] : memref<1x8xf32>, vector<1x8xf32>
  %g = gdn_tile.load %gates[%c0] dims [0] : memref<1xf32>, vector<1xf32>
  %m = gdn_tile.load %pool[%slot, %c0, %c0] dims [1, 2] : !pool, vector<16x8xf32>
  %next, %o = gdn_tile.delta_scan %m, %k, %k, %v gates(%g, %g) valid(%c1)
      : vector<16x8xf32>, vector<1x8xf32>, vector<1x16xf32>, vector<1xf32>
  %part = memref.subview %pool[0, 0, 0] [%n, 16, 8] [1, 1, 1] : !pool to !pool
  gdn_tile.store %next, %part[%to, %c0, %c0] dims [1, 2] : vector<16x8xf32>, !pool
  return
}

// A tile that a loop carries keeps one buffer from the load to the store.
// CHECK-LABEL: func.func @carried
//  CHECK-SAME:   scratch_bytes = 512
//       CHECK:   %[[M:.+]] = memref.view %{{.+}} to memref<16x8xf32>
//       CHECK:   scf.for
//       CHECK:     vector.store %{{.+}}, %[[M]]
//       CHECK:   scf.for
//       CHECK:     scf.for %[[I:.+]] =
//       CHECK:       %[[ROW:.+]] = vector.load %[[M]][%[[I]]
//       CHECK:       %[[NEW:.+]] = arith.negf %[[ROW]]
//       CHECK:       vector.store %[[NEW]], %[[M]][%[[I]]
//       CHECK:   scf.for
//       CHECK:     vector.load %[[M]]
func.func @carried(%n: index, %x: memref<16x8xf32>)
    attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = gdn_tile.load %x[%c0, %c0] dims [0, 1] : memref<16x8xf32>, vector<16x8xf32>
  %last = scf.for %t = %c0 to %n step %c1 iter_args(%s = %m) -> (vector<16x8xf32>) {
    %next = gdn_tile.map_rows %s : vector<16x8xf32> -> vector<16x8xf32> {
    ^bb0(%i: index, %row: vector<8xf32>):
      %r = arith.negf %row : vector<8xf32>
      gdn_tile.yield %r : vector<8xf32>
    }
    scf.yield %next : vector<16x8xf32>
  }
  gdn_tile.store %last, %x[%c0, %c0] dims [0, 1] : vector<16x8xf32>, memref<16x8xf32>
  return
}

// Reads before the last use do not matter: the map takes over the place of the
// tile that the loop carries, and nothing is copied at the end of the body.
// CHECK-LABEL: func.func @last_use
//  CHECK-SAME:   scratch_bytes = 512
//       CHECK:   %[[T:.+]] = memref.view %{{.+}}[%c0]{{.*}} to memref<8x8xf32>
//       CHECK:   arith.addf
//  CHECK-NEXT:   vector.store %{{.+}}, %[[T]]
//  CHECK-NEXT:   }
//  CHECK-NEXT:   }
func.func @last_use(%n: index, %x: memref<8x8xf32>, %y: memref<8x8xf32>)
    attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = gdn_tile.load %x[%c0, %c0] dims [0, 1] : memref<8x8xf32>, vector<8x8xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %t) -> vector<8x8xf32> {
    %transposed = gdn_tile.transpose %a : vector<8x8xf32> -> vector<8x8xf32>
    gdn_tile.store %transposed, %y[%c0, %c0] dims [0, 1] : vector<8x8xf32>, memref<8x8xf32>
    %next = gdn_tile.map_rows %a : vector<8x8xf32> -> vector<8x8xf32> {
    ^bb0(%j: index, %row: vector<8xf32>):
      %twice = arith.addf %row, %row : vector<8xf32>
      gdn_tile.yield %twice : vector<8xf32>
    }
    scf.yield %next : vector<8x8xf32>
  }
  gdn_tile.store %r, %x[%c0, %c0] dims [0, 1] : vector<8x8xf32>, memref<8x8xf32>
  return
}

// What is read later keeps its buffer.
// CHECK-LABEL: func.func @read_later
//       CHECK:   %[[T:.+]] = memref.view %{{.+}}[%c0]{{.*}} to memref<8x8xf32>
//       CHECK:   arith.addf
//   CHECK-NOT:   vector.store %{{.+}}, %[[T]]
//       CHECK:   return
func.func @read_later(%n: index, %x: memref<8x8xf32>, %y: memref<8x8xf32>)
    attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %t = gdn_tile.load %x[%c0, %c0] dims [0, 1] : memref<8x8xf32>, vector<8x8xf32>
  %next = gdn_tile.map_rows %t : vector<8x8xf32> -> vector<8x8xf32> {
  ^bb0(%j: index, %row: vector<8xf32>):
    %twice = arith.addf %row, %row : vector<8xf32>
    gdn_tile.yield %twice : vector<8xf32>
  }
  %transposed = gdn_tile.transpose %t : vector<8x8xf32> -> vector<8x8xf32>
  gdn_tile.store %transposed, %y[%c0, %c0] dims [0, 1] : vector<8x8xf32>, memref<8x8xf32>
  gdn_tile.store %next, %x[%c0, %c0] dims [0, 1] : vector<8x8xf32>, memref<8x8xf32>
  return
}

// A transpose cannot work in place, but its result goes to the buffer that the
// loop carries, because the body has done with what was there.
// CHECK-LABEL: func.func @carried_place
//  CHECK-SAME:   scratch_bytes = 512
//       CHECK:   scf.for
//       CHECK:     vector.load %[[A:[a-z_0-9]+]][%c7, %c0]
//       CHECK:     vector.store %{{.+}}, %[[B:[a-z_0-9]+]][%c7, %c0]
//       CHECK:     vector.load %[[B]][%c7, %c0]
//       CHECK:     vector.store %{{.+}}, %[[A]][%c7, %c0]
//  CHECK-NEXT:   }
func.func @carried_place(%n: index, %x: memref<8x8xf32>)
    attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = gdn_tile.load %x[%c0, %c0] dims [0, 1] : memref<8x8xf32>, vector<8x8xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %t) -> vector<8x8xf32> {
    %transposed = gdn_tile.transpose %a : vector<8x8xf32> -> vector<8x8xf32>
    %back = gdn_tile.transpose %transposed : vector<8x8xf32> -> vector<8x8xf32>
    scf.yield %back : vector<8x8xf32>
  }
  gdn_tile.store %r, %x[%c0, %c0] dims [0, 1] : vector<8x8xf32>, memref<8x8xf32>
  return
}
