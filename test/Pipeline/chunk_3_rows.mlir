// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The chunk form step by step, 3: gdn-tile-fuse-rows. Elementwise work between
// two products is one pass over the rows of a tile.
//
// RUN: gdn-opt %S/Inputs/chunk.mlir -gdn-fuse -convert-gdn-to-tile="chunk-from=1 chunk=16" -canonicalize -cse -gdn-tile-fuse-rows -cse | FileCheck %s

// CHECK-LABEL: func.func @prefill
//       CHECK:   scf.for {{.*}} iter_args(%[[S:.+]] = %{{.+}}) -> (vector<16x16xf32>)
// T: the inverse times decays and strengths.
//       CHECK:     %[[A:.+]] = gdn_tile.tri_inverse
//  CHECK-NEXT:     gdn_tile.map_rows %[[A]], %[[E:[^ ]+]] : vector<16x16xf32>, vector<16x16xf32> -> vector<16x16xf32> {
//  CHECK-NEXT:     ^bb0(%{{.+}}: index, %[[ROW:.+]]: vector<16xf32>, %[[DECAY:.+]]: vector<16xf32>):
//  CHECK-NEXT:       %[[FADED:.+]] = arith.mulf %[[ROW]], %[[DECAY]]
//  CHECK-NEXT:       %[[SOLVE:.+]] = arith.mulf %[[FADED]], %{{.+}}
//  CHECK-NEXT:       gdn_tile.yield %[[SOLVE]]
// W: the values are cut off, their prediction decayed and taken away, all in
// one.
//       CHECK:     %[[KS:.+]] = gdn_tile.matmul %[[K:.+]], %[[S]]
//  CHECK-NEXT:     %[[W:.+]] = gdn_tile.map_rows %{{.+}}, %[[KS]], %{{.+}}
//       CHECK:       arith.cmpi ult
//       CHECK:       arith.select
//       CHECK:       math.exp
//       CHECK:       arith.subf
//       CHECK:       gdn_tile.yield
//  CHECK-NEXT:     }
//  CHECK-NEXT:     gdn_tile.matmul %{{.+}}, %[[W]]
