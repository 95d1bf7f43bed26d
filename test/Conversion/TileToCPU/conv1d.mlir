// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The convolution: a block of columns at a time, its weights and its window in
// registers while the tokens pass; the new window is written where the old was.
//
// RUN: gdn-tile-opt %s -convert-tile-to-cpu=lanes=8 -canonicalize -cse | FileCheck %s

// CHECK-LABEL: func.func @conv
//   CHECK-DAG:   %[[C0:.+]] = arith.constant 0 : index
//   CHECK-DAG:   %[[C1:.+]] = arith.constant 1 : index
//   CHECK-DAG:   %[[C8:.+]] = arith.constant 8 : index
//   CHECK-DAG:   %[[C16:.+]] = arith.constant 16 : index
//       CHECK:   %[[Y:.+]] = memref.view %{{.+}} to memref<4x16xf32>
//       CHECK:   %[[BIAS:.+]] = memref.view %{{.+}} to memref<16xf32>
//       CHECK:   %[[WEIGHT:.+]] = memref.view %{{.+}} to memref<3x16xf32>
//       CHECK:   %[[WINDOW:.+]] = memref.view %{{.+}} to memref<2x16xf32>
//       CHECK:   %[[X:.+]] = memref.view %{{.+}} to memref<4x16xf32>
//       CHECK:   scf.for %[[C:.+]] = %[[C0]] to %[[C16]] step %[[C8]] {
//       CHECK:     %[[W0:.+]] = vector.load %[[WEIGHT]][%[[C0]], %[[C]]]
//       CHECK:     %[[W1:.+]] = vector.load %[[WEIGHT]][%[[C1]], %[[C]]]
//       CHECK:     %[[W2:.+]] = vector.load %[[WEIGHT]]
//       CHECK:     %[[OLD0:.+]] = vector.load %[[WINDOW]][%[[C0]], %[[C]]]
//       CHECK:     %[[OLD1:.+]] = vector.load %[[WINDOW]][%[[C1]], %[[C]]]
//       CHECK:     %[[B:.+]] = vector.load %[[BIAS]][%[[C]]]
//       CHECK:     %[[LAST:.+]]:2 = scf.for %[[T:.+]] = %[[C0]] to %{{.+}} iter_args(%[[H0:.+]] = %[[OLD0]], %[[H1:.+]] = %[[OLD1]])
//       CHECK:       %[[NOW:.+]] = vector.load %[[X]][%[[T]], %[[C]]]
//       CHECK:       %[[S0:.+]] = vector.fma %[[W0]], %[[H0]], %[[B]]
//       CHECK:       %[[S1:.+]] = vector.fma %[[W1]], %[[H1]], %[[S0]]
//       CHECK:       %[[S2:.+]] = vector.fma %[[W2]], %[[NOW]], %[[S1]]
//       CHECK:       vector.store %[[S2]], %[[Y]][%[[T]], %[[C]]]
//       CHECK:       scf.yield %[[H1]], %[[NOW]]
//       CHECK:     vector.store %[[LAST]]#0, %[[WINDOW]][%[[C0]], %[[C]]]
//       CHECK:     vector.store %[[LAST]]#1, %[[WINDOW]][%[[C1]], %[[C]]]
func.func @conv(%n: index, %x: memref<4x16xf32>, %p: memref<2x16xf32>,
                %w: memref<3x16xf32>, %b: memref<16xf32>)
                    attributes {gdn_tile.stage = {grid = ["N"], symbols = ["N"]}} {
  %c0 = arith.constant 0 : index
  %t = gdn_tile.load %x[%c0, %c0] dims [0, 1] : memref<4x16xf32>, vector<4x16xf32>
  %win = gdn_tile.load %p[%c0, %c0] dims [0, 1] : memref<2x16xf32>, vector<2x16xf32>
  %wt = gdn_tile.load %w[%c0, %c0] dims [0, 1] : memref<3x16xf32>, vector<3x16xf32>
  %bias = gdn_tile.load %b[%c0] dims [0] : memref<16xf32>, vector<16xf32>
  %y, %next = gdn_tile.conv1d %t, %win, %wt bias(%bias : vector<16xf32>) valid(%n)
      : vector<4x16xf32>, vector<2x16xf32>, vector<3x16xf32>
  gdn_tile.store %y, %x[%c0, %c0] dims [0, 1] : vector<4x16xf32>, memref<4x16xf32>
  gdn_tile.store %next, %p[%c0, %c0] dims [0, 1] : vector<2x16xf32>, memref<2x16xf32>
  return
}
