// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The chunk form step by step, 1: convert-gdn-to-tile writes down the formulas,
// one op for each product.
//
// RUN: gdn-opt %S/Inputs/chunk.mlir -gdn-fuse -convert-gdn-to-tile="chunk-from=1 chunk=16" | FileCheck %s

// The state goes from chunk to chunk as a tile, keys by rows.
// CHECK-LABEL: func.func @prefill
//       CHECK:   %[[M:.+]] = gdn_tile.load {{.*}} : memref<?x?x16x16xf32
//       CHECK:   %[[S0:.+]] = gdn_tile.transpose %[[M]]
//       CHECK:   %[[LAST:.+]] = scf.for {{.*}} iter_args(%[[S:.+]] = %[[S0]]) -> (vector<16x16xf32>)
// Tokens past the end of the row are read by no load and counted by none.
//       CHECK:     %[[VALID:.+]] = arith.minui
// CHECK-COUNT-5:   gdn_tile.load {{.*}} rows(%[[VALID]])
// Decay: from the start of the chunk, between tokens, and to the end.
//   CHECK-DAG:     gdn_tile.prefix_sum %[[G:.+]] : vector<16xf32>
//   CHECK-DAG:     gdn_tile.decay_matrix %[[G]] : vector<16xf32> -> vector<16x16xf32>
// L and its inverse, P.
//       CHECK:     %[[KK:.+]] = gdn_tile.matmul %[[K:.+]], %[[KT:[^ ]+]]
//       CHECK:     gdn_tile.tri_inverse
//       CHECK:     gdn_tile.matmul %{{.+}}, %[[KT]]
// W, X, O.
//       CHECK:     gdn_tile.matmul %[[K]], %[[S]]
//       CHECK:     %[[X:.+]] = gdn_tile.matmul
//       CHECK:     gdn_tile.matmul %{{.+}}, %[[S]]
//       CHECK:     gdn_tile.matmul %{{.+}}, %[[X]] acc(
// S'.
//       CHECK:     gdn_tile.suffix_sum %[[G]]
//       CHECK:     %[[NEXT:.+]] = gdn_tile.matmul transpose %[[K]], {{.*}} acc(
//   CHECK-NOT:     gdn_tile.matmul
//       CHECK:     scf.yield %[[NEXT]]
//       CHECK:   %[[MT:.+]] = gdn_tile.transpose %[[LAST]]
//       CHECK:   gdn_tile.store %[[MT]], {{.*}} memref<?x?x16x16xf32
