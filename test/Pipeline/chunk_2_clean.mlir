// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The chunk form step by step, 2: after canonicalisation and CSE nothing that
// is known before a chunk is made in it, and nothing is made twice.
//
// RUN: gdn-opt %S/Inputs/chunk.mlir -gdn-fuse -convert-gdn-to-tile="chunk-from=1 chunk=16" -canonicalize -cse | FileCheck %s

// CHECK-LABEL: func.func @prefill
//       CHECK:   scf.for {{.*}} iter_args({{.*}} -> (vector<16x16xf32>)
//   CHECK-NOT:     arith.constant
//   CHECK-NOT:     memref.dim
//   CHECK-NOT:     gdn_tile.fill
// Both scores use one transpose of the keys.
//       CHECK:     %[[KT:.+]] = gdn_tile.transpose %[[K:.+]] :
//   CHECK-NOT:     gdn_tile.transpose
//   CHECK-NOT:     arith.constant
//       CHECK:     gdn_tile.matmul %[[K]], %[[KT]]
//   CHECK-NOT:     gdn_tile.transpose
//   CHECK-NOT:     arith.constant
//       CHECK:     gdn_tile.matmul %{{.+}}, %[[KT]]
//   CHECK-NOT:     gdn_tile.transpose
//   CHECK-NOT:     arith.constant
//       CHECK:     gdn_tile.matmul transpose %[[K]]
//       CHECK:     scf.yield
