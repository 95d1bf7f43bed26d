// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The chunk form: which rows take it, and its products in order.
//
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile="chunk-from=100 chunk=32" -canonicalize -cse | FileCheck %s
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile="chunk-from=1 chunk=32" | FileCheck %s --check-prefix=ALWAYS
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile | FileCheck %s --check-prefix=NEVER

// Long rows go in chunks, others token by token.
// CHECK-LABEL: func.func @prefill
//       CHECK:   %[[LENGTH:.+]] = arith.subi
//       CHECK:   %[[LONG:.+]] = arith.cmpi uge, %[[LENGTH]], %c100
//       CHECK:   scf.if %[[LONG]]
// The state is kept transposed while the chunks pass.
//       CHECK:     %[[STATE:.+]] = gdn_tile.load {{.*}}vector<64x16xf32>
//       CHECK:     %[[S0:.+]] = gdn_tile.transpose %[[STATE]] : vector<64x16xf32> -> vector<16x64xf32>
//       CHECK:     scf.for {{.*}} iter_args(%[[S:.+]] = %[[S0]])
//       CHECK:       gdn_tile.prefix_sum %[[STEP:.+]] : vector<32xf32>
//       CHECK:       %[[KT:.+]] = gdn_tile.transpose %[[K:.+]] : vector<32x16xf32> -> vector<16x32xf32>
//       CHECK:       gdn_tile.decay_matrix %[[STEP]]
//       CHECK:       %[[KK:.+]] = gdn_tile.matmul %[[K]], %[[KT]]
//       CHECK:       gdn_tile.tri_inverse
//       CHECK:       gdn_tile.matmul %[[Q:.+]], %[[KT]]
//       CHECK:       gdn_tile.matmul %[[K]], %[[S]]
//       CHECK:       %[[X:.+]] = gdn_tile.matmul {{.*}} : vector<32x32xf32>, vector<32x64xf32>
//       CHECK:       gdn_tile.matmul %[[Q]], %[[S]]
//       CHECK:       gdn_tile.matmul {{.*}}, %[[X]] acc(
//       CHECK:       gdn_tile.suffix_sum %[[STEP]]
//       CHECK:       %[[NEXT:.+]] = gdn_tile.matmul transpose %[[K]], {{.*}} acc(
//       CHECK:       scf.yield %[[NEXT]]
//   CHECK-NOT:     gdn_tile.delta_scan
//       CHECK:   } else {
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
  %o = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%pool) slots(%slots) rows(%cu)
      : tensor<?x?x16xf32>, tensor<?x?x16xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>,
        tensor<?x?xf32>, !gdn.pool<?x?x64x16xf32>, tensor<?xi32>, tensor<?xi32>
        -> tensor<?x?x64xf32>
  return %o : tensor<?x?x64xf32>
}
