// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The scan: exp of the log decays first, then tokens over rows of the state; a
// row is multiplied, predicted from, corrected and read in registers.
//
// RUN: gdn-tile-opt %s -convert-tile-to-cpu=lanes=8 -canonicalize -cse | FileCheck %s

// CHECK-LABEL: func.func @scan
//   CHECK-DAG:   %[[C0:.+]] = arith.constant 0 : index
//   CHECK-DAG:   %[[C8:.+]] = arith.constant 8 : index
//       CHECK:   %[[N:.+]] = arith.index_cast
//       CHECK:   scf.for
//       CHECK:   %[[O:.+]] = memref.view {{.+}} to memref<4x8xf32>
//       CHECK:   %[[BETA:.+]] = memref.view {{.+}} to memref<4xf32>
//       CHECK:   %[[G:.+]] = memref.view {{.+}} to memref<4xf32>
//       CHECK:   %[[V:.+]] = memref.view {{.+}} to memref<4x8xf32>
//       CHECK:   %[[QK:.+]] = memref.view {{.+}} to memref<4x16xf32>
//       CHECK:   %[[M:.+]] = memref.view {{.+}} to memref<8x16xf32>

// The log decay is dead: its buffer receives the decay.
//       CHECK:   scf.for %[[T:.+]] = %[[C0]] to %[[N]]
//       CHECK:     %[[LOG:.+]] = memref.load %[[G]][%[[T]]]
//       CHECK:     %[[EXP:.+]] = math.exp %[[LOG]] : f32
//       CHECK:     memref.store %[[EXP]], %[[G]][%[[T]]]

//       CHECK:   scf.for %[[T:.+]] = %[[C0]] to %[[N]]
//       CHECK:     %[[K0:.+]] = vector.load %[[QK]][%[[T]], %[[C0]]] : memref<4x16xf32>, vector<8xf32>
//       CHECK:     %[[K1:.+]] = vector.load %[[QK]][%[[T]], %[[C8]]]
//       CHECK:     %[[DECAY:.+]] = memref.load %[[G]][%[[T]]]
//       CHECK:     %[[D:.+]] = vector.broadcast %[[DECAY]]
//       CHECK:     %[[B:.+]] = memref.load %[[BETA]][%[[T]]]
//       CHECK:     scf.for %[[I:.+]] = %[[C0]] to %[[C8]]
//       CHECK:       %[[OLD0:.+]] = vector.load %[[M]][%[[I]], %[[C0]]]
//       CHECK:       %[[OLD1:.+]] = vector.load %[[M]][%[[I]], %[[C8]]]
//       CHECK:       %[[M0:.+]] = arith.mulf %[[OLD0]], %[[D]]
//       CHECK:       %[[P0:.+]] = arith.mulf %[[M0]], %[[K0]]
//       CHECK:       %[[M1:.+]] = arith.mulf %[[OLD1]], %[[D]]
//       CHECK:       %[[P1:.+]] = arith.mulf %[[M1]], %[[K1]]
//       CHECK:       %[[VALUE:.+]] = memref.load %[[V]][%[[T]], %[[I]]]
//       CHECK:       %[[P:.+]] = arith.addf %[[P0]], %[[P1]]
//       CHECK:       %[[SUM:.+]] = vector.reduction <add>, %[[P]]
//       CHECK:       %[[ERROR:.+]] = arith.subf %[[VALUE]], %[[SUM]]
//       CHECK:       %[[SCALED:.+]] = arith.mulf %[[B]], %[[ERROR]]
//       CHECK:       %[[DELTA:.+]] = vector.broadcast %[[SCALED]]
//       CHECK:       %[[NEW0:.+]] = vector.fma %[[DELTA]], %[[K0]], %[[M0]]
//       CHECK:       %[[O0:.+]] = arith.mulf %[[NEW0]], %[[K0]]
//       CHECK:       vector.store %[[NEW0]], %[[M]][%[[I]], %[[C0]]]
//       CHECK:       %[[NEW1:.+]] = vector.fma %[[DELTA]], %[[K1]], %[[M1]]
//       CHECK:       vector.store %[[NEW1]], %[[M]][%[[I]], %[[C8]]]
//       CHECK:       %[[OUT:.+]] = vector.reduction <add>
//       CHECK:       memref.store %[[OUT]], %[[O]][%[[T]], %[[I]]]
func.func @scan(%n: index, %m: memref<8x16xf32>, %qk: memref<?x16xf32>,
                %v: memref<?x8xf32>, %g: memref<?xf32>)
                    attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %s = gdn_tile.load %m[%c0, %c0] dims [0, 1] : memref<8x16xf32>, vector<8x16xf32>
  %k = gdn_tile.load %qk[%c0, %c0] dims [0, 1] : memref<?x16xf32>, vector<4x16xf32>
  %x = gdn_tile.load %v[%c0, %c0] dims [0, 1] : memref<?x8xf32>, vector<4x8xf32>
  %gates = gdn_tile.load %g[%c0] dims [0] : memref<?xf32>, vector<4xf32>
  %beta = gdn_tile.load %g[%c0] dims [0] : memref<?xf32>, vector<4xf32>
  %next, %o = gdn_tile.delta_scan %s, %k, %k, %x gates(%gates, %beta) valid(%n)
      : vector<8x16xf32>, vector<4x16xf32>, vector<4x8xf32>, vector<4xf32>
  gdn_tile.store %o, %v[%c0, %c0] dims [0, 1] rows(%n) : vector<4x8xf32>, memref<?x8xf32>
  gdn_tile.store %next, %m[%c0, %c0] dims [0, 1] : vector<8x16xf32>, memref<8x16xf32>
  return
}

// Without a write strength nothing is predicted: the value is what is written.
// CHECK-LABEL: func.func @attend
//       CHECK:   math.exp
//       CHECK:   scf.for %[[T:.+]] = %{{.+}} to %{{.+}} step
//       CHECK:     %[[K:.+]] = vector.load %{{.+}}[%[[T]],
//       CHECK:     scf.for %[[I:.+]] = %{{.+}} to %{{.+}} step
//  CHECK-NEXT:       %[[OLD:.+]] = vector.load %[[M:.+]][%[[I]],
//  CHECK-NEXT:       %[[KEPT:.+]] = arith.mulf %[[OLD]], %{{.+}}
//  CHECK-NEXT:       %[[VALUE:.+]] = memref.load %{{.+}}[%{{.+}}, %[[I]]]
//  CHECK-NEXT:       %[[D:.+]] = vector.broadcast %[[VALUE]]
//  CHECK-NEXT:       %[[NEW:.+]] = vector.fma %[[D]], %[[K]], %[[KEPT]]
//  CHECK-NEXT:       %[[SEEN:.+]] = arith.mulf %[[NEW]], %[[K]]
//  CHECK-NEXT:       vector.store %[[NEW]], %[[M]][%[[I]]
//  CHECK-NEXT:       vector.reduction <add>, %[[SEEN]]
//   CHECK-NOT:       vector.reduction
//       CHECK:   return
func.func @attend(%n: index, %m: memref<8x8xf32>, %qk: memref<?x8xf32>,
                  %v: memref<?x8xf32>, %g: memref<?xf32>)
                      attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %s = gdn_tile.load %m[%c0, %c0] dims [0, 1] : memref<8x8xf32>, vector<8x8xf32>
  %k = gdn_tile.load %qk[%c0, %c0] dims [0, 1] : memref<?x8xf32>, vector<4x8xf32>
  %x = gdn_tile.load %v[%c0, %c0] dims [0, 1] : memref<?x8xf32>, vector<4x8xf32>
  %gates = gdn_tile.load %g[%c0] dims [0] : memref<?xf32>, vector<4xf32>
  %next, %o = gdn_tile.delta_scan %s, %k, %k, %x gates(%gates) valid(%n)
      : vector<8x8xf32>, vector<4x8xf32>, vector<4x8xf32>, vector<4xf32>
  gdn_tile.store %o, %v[%c0, %c0] dims [0, 1] rows(%n) : vector<4x8xf32>, memref<?x8xf32>
  gdn_tile.store %next, %m[%c0, %c0] dims [0, 1] : vector<8x8xf32>, memref<8x8xf32>
  return
}

// With a key to erase along, its row is read beside the key's and multiplies the state; what is
// added lies along the key.
// CHECK-LABEL: func.func @erase
//       CHECK:     %[[K:.+]] = vector.load %[[KEYS:.+]][%[[T:.+]], %c0{{.*}}] : memref<4x8xf32>, vector<8xf32>
//       CHECK:     %[[E:.+]] = vector.load %[[ERASE:.+]][%[[T]], %c0{{.*}}] : memref<4x8xf32>, vector<8xf32>
//       CHECK:     scf.for
//       CHECK:       %[[KEPT:.+]] = arith.mulf
//       CHECK:       %[[P:.+]] = arith.mulf %[[KEPT]], %[[E]]
//       CHECK:       vector.reduction <add>, %[[P]]
//       CHECK:       %[[D:.+]] = vector.broadcast
//       CHECK:       vector.fma %[[D]], %[[K]], %[[KEPT]]
func.func @erase(%n: index, %m: memref<8x8xf32>, %qk: memref<?x8xf32>, %e: memref<?x8xf32>,
                 %v: memref<?x8xf32>, %g: memref<?xf32>)
                     attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %s = gdn_tile.load %m[%c0, %c0] dims [0, 1] : memref<8x8xf32>, vector<8x8xf32>
  %k = gdn_tile.load %qk[%c0, %c0] dims [0, 1] : memref<?x8xf32>, vector<4x8xf32>
  %erase = gdn_tile.load %e[%c0, %c0] dims [0, 1] : memref<?x8xf32>, vector<4x8xf32>
  %x = gdn_tile.load %v[%c0, %c0] dims [0, 1] : memref<?x8xf32>, vector<4x8xf32>
  %gates = gdn_tile.load %g[%c0] dims [0] : memref<?xf32>, vector<4xf32>
  %next, %o = gdn_tile.delta_scan %s, %k, %k, %x gates(%gates, %gates) erase(%erase) valid(%n)
      : vector<8x8xf32>, vector<4x8xf32>, vector<4x8xf32>, vector<4xf32>
  gdn_tile.store %o, %v[%c0, %c0] dims [0, 1] rows(%n) : vector<4x8xf32>, memref<?x8xf32>
  gdn_tile.store %next, %m[%c0, %c0] dims [0, 1] : vector<8x8xf32>, memref<8x8xf32>
  return
}
