// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The chunk form step by step, 4: convert-tile-to-cpu. Tiles are memory, the
// carried state keeps its place, and a product is a loop that keeps a block of
// its result in registers.
//
// RUN: gdn-opt %S/Inputs/chunk.mlir -gdn-fuse -convert-gdn-to-tile="chunk-from=1 chunk=16" -canonicalize -cse -gdn-tile-fuse-rows -cse -convert-tile-to-cpu="lanes=16" -canonicalize -cse | FileCheck %s
// RUN: gdn-opt %S/Inputs/chunk.mlir -gdn-fuse -convert-gdn-to-tile="chunk-from=1 chunk=16" -canonicalize -cse -gdn-tile-fuse-rows -cse -convert-tile-to-cpu="lanes=16" | FileCheck %s --check-prefix=GONE

//    GONE-NOT: gdn_tile.{{[a-z_]+}} %
//    GONE-NOT: vector<16x16xf32>

// CHECK-LABEL: func.func @prefill
//  CHECK-SAME:   scratch_bytes
//   CHECK-DAG:   %[[ZERO:.+]] = arith.constant dense<0.000000e+00> : vector<16xf32>
//   CHECK-DAG:   %[[ONE:.+]] = arith.constant dense<1.000000e+00> : vector<16xf32>
// The loop over the chunks carries nothing: its tiles have places.
//       CHECK:   scf.for %[[T:[^ ]+]] = %{{.+}} to %{{.+}} step %c16 {
// The decay matrix: the row before, decayed, and a one. No exp in the loop.
//       CHECK:     scf.for {{.*}} iter_args(%[[BEFORE:.+]] = %[[ZERO]]) -> (vector<16xf32>)
//       CHECK:       %[[FADED:.+]] = arith.mulf %[[BEFORE]]
//       CHECK:       %[[NEXT:.+]] = arith.select %{{.+}}, %[[ONE]], %[[FADED]]
//       CHECK:       scf.yield %[[NEXT]]
// A product: rows of the right operand times elements of the left one.
//       CHECK:     scf.for {{.*}} iter_args({{.*}} -> (vector<16xf32>, vector<16xf32>,
//       CHECK:       %[[RIGHT:.+]] = vector.load
//       CHECK:       %[[LEFT:.+]] = vector.broadcast %{{.+}} : f32 to vector<16xf32>
//       CHECK:       vector.fma %[[LEFT]], %[[RIGHT]], %{{.+}} : vector<16xf32>
//       CHECK:       scf.yield
