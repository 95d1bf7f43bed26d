// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gated linear attention: the scan has no write strength, and the chunk form no
// triangle to solve; what is written depends on nothing that the state holds.
//
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile="chunk-from=1 chunk=32" -canonicalize -cse | FileCheck %s
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile="chunk-from=-1" -canonicalize -cse | FileCheck %s --check-prefix=TOKENS
// RUN: sed 's/tensor<?x?xf32>/tensor<?x?x16xf32>/g; s/"T", "Hv"\]/"T", "Hv", "16"]/' %s | gdn-opt -gdn-fuse -convert-gdn-to-tile="chunk-from=1 chunk=32" -canonicalize -cse | FileCheck %s --check-prefix=CHANNELS
//
// By the rule of a CPU: decays per head go in chunks, those per channel do not.
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile="chunk=64 lanes=16 form-costs=3.9,0.77,1.1,12,1.18,0.00648,0.92,1.16,1.1,0.34" | FileCheck %s --check-prefix=RULE
// RUN: sed 's/tensor<?x?xf32>/tensor<?x?x16xf32>/g; s/"T", "Hv"\]/"T", "Hv", "16"]/' %s | gdn-opt -gdn-fuse -convert-gdn-to-tile="chunk=64 lanes=16 form-costs=3.9,0.77,1.1,12,1.18,0.00648,0.92,1.16,1.1,0.34" | FileCheck %s --check-prefix=NEVER
// RULE: chunk_from = "{{[0-9]+}}"
// NEVER: chunk_from = "never"

// CHECK-LABEL: func.func @prefill
//   CHECK-NOT:   gdn_tile.tri_inverse
//       CHECK:   scf.for {{.*}} iter_args(%[[S:.+]] = %{{.+}}) -> (vector<16x64xf32>)
//       CHECK:     %[[G:.+]] = gdn_tile.prefix_sum %[[STEP:.+]] : vector<32xf32>
//       CHECK:     %[[E:.+]] = gdn_tile.decay_matrix %[[STEP]]
//       CHECK:     %[[KT:.+]] = gdn_tile.transpose %[[K:.+]] : vector<32x16xf32>
//       CHECK:     %[[QK:.+]] = gdn_tile.matmul %[[Q:.+]], %[[KT]] {lower_result}
//       CHECK:     %[[P:.+]] = gdn_tile.map_rows %[[QK]], %[[E]]
//       CHECK:     %[[OLD:.+]] = gdn_tile.matmul %[[Q]], %[[S]]
//       CHECK:     %[[FADED:.+]] = gdn_tile.map_rows %[[OLD]], %[[G]]
//       CHECK:     gdn_tile.matmul %[[P]], %[[V:.+]] acc(%[[FADED]] : vector<32x64xf32>) {lower_lhs}
//       CHECK:     %[[REST:.+]] = gdn_tile.suffix_sum %[[STEP]] : vector<32xf32>
//       CHECK:     %[[TO_END:.+]] = gdn_tile.map_rows %[[V]], %[[REST]]
//       CHECK:     %[[KEPT:.+]] = gdn_tile.map_rows %[[S]] : vector<16x64xf32>
//       CHECK:     %[[NEXT:.+]] = gdn_tile.matmul transpose %[[K]], %[[TO_END]] acc(%[[KEPT]] : vector<16x64xf32>)
//       CHECK:     scf.yield %[[NEXT]]
//   CHECK-NOT:   gdn_tile.tri_inverse
//       CHECK:   return

// CHANNELS-LABEL: func.func @prefill
//       CHANNELS:   scf.for {{.*}} iter_args(%[[S:.+]] = %{{.+}}) -> (vector<16x64xf32>)
//       CHANNELS:     %[[G:.+]] = gdn_tile.prefix_sum %[[STEP:.+]] : vector<32x16xf32>
//       CHANNELS:     %[[REST:.+]] = gdn_tile.suffix_sum %[[STEP]] : vector<32x16xf32>
//       CHANNELS:     %[[P:.+]], %{{.+}} = gdn_tile.decay_scores %[[Q:.+]], %[[K:.+]] decay(%[[STEP]])
//       CHANNELS:     %[[FADED:.+]] = gdn_tile.map_rows %[[Q]], %[[G]]
//       CHANNELS:     %[[OLD:.+]] = gdn_tile.matmul %[[FADED]], %[[S]]
//       CHANNELS:     gdn_tile.matmul %[[P]], %[[V:.+]] acc(%[[OLD]] : vector<32x64xf32>) {lower_lhs}
//       CHANNELS:     %[[LAST:.+]] = gdn_tile.extract_row %[[G]][31]
//       CHANNELS:     %[[TO_END:.+]] = gdn_tile.map_rows %[[K]], %[[REST]]
//       CHANNELS:     %[[KEPT:.+]] = gdn_tile.map_rows %[[S]], %[[LAST]]
//       CHANNELS:     %[[NEXT:.+]] = gdn_tile.matmul transpose %[[TO_END]], %[[V]] acc(%[[KEPT]] : vector<16x64xf32>)
//       CHANNELS:     scf.yield %[[NEXT]]

// TOKENS-LABEL: func.func @prefill
//       TOKENS:   %{{.+}}, %{{.+}} = gdn_tile.delta_scan %{{.+}}, %{{.+}}, %{{.+}}, %{{.+}} gates(%{{[^,]+}}) valid(
func.func @prefill(
    %q: tensor<?x?x16xf32> {gdn.name = "q", gdn.dims = ["T", "Hk", "16"]},
    %k: tensor<?x?x16xf32> {gdn.name = "k", gdn.dims = ["T", "Hk", "16"]},
    %v: tensor<?x?x64xf32> {gdn.name = "v", gdn.dims = ["T", "Hv", "64"]},
    %g: tensor<?x?xf32> {gdn.name = "log_decay", gdn.dims = ["T", "Hv"]},
    %pool: !gdn.pool<?x?x64x16xf32> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "64", "16"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %cu: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]})
    -> (tensor<?x?x64xf32> {gdn.name = "core", gdn.dims = ["T", "Hv", "64"]})
    attributes {gdn.entry} {
  %o = gdn.gated_linear_attention %q, %k, %v decay(%g) pool(%pool) slots(%slots) sequences(%cu)
      : tensor<?x?x16xf32>, tensor<?x?x16xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>,
        !gdn.pool<?x?x64x16xf32>, tensor<?xi32>, tensor<?xi32> -> tensor<?x?x64xf32>
  return %o : tensor<?x?x64xf32>
}
