// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The chunk form: which tokens take it, and its products in order.
//
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile="chunk-from=20 chunk=32" -canonicalize -cse | FileCheck %s
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile="chunk-from=1 chunk=32" | FileCheck %s --check-prefix=ALWAYS
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile | FileCheck %s --check-prefix=NEVER

// Chunks go on while at least 20 tokens are left.
// CHECK-LABEL: func.func @prefill
//       CHECK:   %[[LENGTH:.+]] = arith.subi %[[END:.+]], %[[BEGIN:.+]] : index
//       CHECK:   %[[MORE:.+]] = arith.addi %[[LENGTH]], %c32
//       CHECK:   %[[ENOUGH:.+]] = arith.maxui %[[MORE]], %c20
//       CHECK:   %[[REST:.+]] = arith.subi %[[ENOUGH]], %c20
//       CHECK:   %[[CHUNKS:.+]] = arith.divui %[[REST]], %c32
//       CHECK:   %[[WHOLE:.+]] = arith.muli %[[CHUNKS]], %c32
//       CHECK:   %[[TOKENS:.+]] = arith.minui %[[WHOLE]], %[[LENGTH]]
//       CHECK:   %[[CHUNK_END:.+]] = arith.addi %[[BEGIN]], %[[TOKENS]]
//       CHECK:   %[[RUNS:.+]] = arith.minui %[[CHUNKS]], %c1
// The state is kept transposed while the chunks pass, if there are any.
//       CHECK:   %[[AFTER:.+]] = scf.for {{.*}} to %[[RUNS]] {{.*}} iter_args(%[[STATE:.+]] = %{{.+}}) -> (vector<64x16xf32>)
//       CHECK:     %[[S0:.+]] = gdn_tile.transpose %[[STATE]] : vector<64x16xf32> -> vector<16x64xf32>
//       CHECK:     %[[S1:.+]] = scf.for {{.*}} = %[[BEGIN]] to %[[CHUNK_END]] step %c32 iter_args(%[[S:.+]] = %[[S0]])
//       CHECK:       gdn_tile.prefix_sum %[[STEP:.+]] : vector<32xf32>
//       CHECK:       %[[KT:.+]] = gdn_tile.transpose %[[K:.+]] : vector<32x16xf32> -> vector<16x32xf32>
//       CHECK:       gdn_tile.decay_matrix %[[STEP]]
//       CHECK:       %[[KK:.+]] = gdn_tile.matmul %[[K]], %[[KT]] {lower_result}
//       CHECK:       gdn_tile.tri_inverse
//       CHECK:       %[[QK:.+]] = gdn_tile.matmul %[[Q:.+]], %[[KT]] {lower_result}
// What stands above the diagonal there is not even multiplied by 0.
//       CHECK:       gdn_tile.map_rows %[[QK]]
//       CHECK:         arith.mulf
//       CHECK:         arith.select
//       CHECK:       gdn_tile.matmul %[[K]], %[[S]]
//       CHECK:       %[[X:.+]] = gdn_tile.matmul {{.*}} {lower_lhs} : vector<32x32xf32>, vector<32x64xf32>
//       CHECK:       gdn_tile.matmul %[[Q]], %[[S]]
//       CHECK:       gdn_tile.matmul {{.*}}, %[[X]] acc({{.*}} {lower_lhs}
//       CHECK:       gdn_tile.suffix_sum %[[STEP]]
//       CHECK:       %[[NEXT:.+]] = gdn_tile.matmul transpose %[[K]], {{.*}} acc(
//       CHECK:       scf.yield %[[NEXT]]
//   CHECK-NOT:     gdn_tile.delta_scan
//       CHECK:     gdn_tile.transpose %[[S1]] : vector<16x64xf32> -> vector<64x16xf32>
//       CHECK:   scf.for {{.*}} = %[[CHUNK_END]] to %[[END]] step %c16 iter_args(%{{.+}} = %[[AFTER]])
//       CHECK:     gdn_tile.delta_scan

//   ALWAYS-LABEL: func.func @prefill
//     ALWAYS-NOT:   gdn_tile.delta_scan
//         ALWAYS:   gdn_tile.tri_inverse
//     ALWAYS-NOT:   gdn_tile.delta_scan

//    NEVER-LABEL: func.func @prefill
//      NEVER-NOT:   gdn_tile.tri_inverse
//          NEVER:   gdn_tile.delta_scan
//      NEVER-NOT:   gdn_tile.tri_inverse
func.func @prefill(
    %q: tensor<?x?x16xf32> {gdn.name = "q", gdn.dims = ["T", "Hk", "16"]},
    %k: tensor<?x?x16xf32> {gdn.name = "k", gdn.dims = ["T", "Hk", "16"]},
    %v: tensor<?x?x64xf32> {gdn.name = "v", gdn.dims = ["T", "Hv", "64"]},
    %g: tensor<?x?xf32> {gdn.name = "g", gdn.dims = ["T", "Hv"]},
    %beta: tensor<?x?xf32> {gdn.name = "beta", gdn.dims = ["T", "Hv"]},
    %pool: !gdn.pool<?x?x64x16xf32> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "64", "16"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %cu: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]})
    -> (tensor<?x?x64xf32> {gdn.name = "core", gdn.dims = ["T", "Hv", "64"]})
    attributes {gdn.entry} {
  %o = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%pool) slots(%slots) sequences(%cu)
      : tensor<?x?x16xf32>, tensor<?x?x16xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>,
        tensor<?x?xf32>, !gdn.pool<?x?x64x16xf32>, tensor<?xi32>, tensor<?xi32>
        -> tensor<?x?x64xf32>
  return %o : tensor<?x?x64xf32>
}
