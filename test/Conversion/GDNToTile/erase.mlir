// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A key to erase along is a row of each key head, beside the key. No form in chunks has it: tokens
// go one by one, whatever is asked for, and there are no stages.
//
// RUN: gdn-opt %gdn_data/entries/erase_rule.mlir -gdn-fuse -convert-gdn-to-tile="chunk-from=1 chunk=32 precision=mixed segments=3 segment-maps" -canonicalize -cse | FileCheck %s --implicit-check-not=gdn_tile.matmul --implicit-check-not=stage_of
// RUN: gdn-opt %gdn_data/entries/erase_rule.mlir -gdn-fuse -convert-gdn-to-tile="value-heads token-by-token precision=mixed chunk-stages=staged" -canonicalize -cse | FileCheck %s --check-prefix=GPU --implicit-check-not=gdn_tile.matmul --implicit-check-not=stage_of
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile -canonicalize -cse | FileCheck %s --check-prefix=FUSED

// CHECK-LABEL: func.func @prefill(
//  CHECK-SAME:   %[[ERASE:[a-z0-9]+]]: memref<?x?x64xbf16, strided<[?, ?, 1], offset: ?>> {gdn.name = "erase"}
//  CHECK-SAME:   facts = {chunk_from = "never"}
//       CHECK:   scf.for {{.+}} step %c16
//       CHECK:     %[[E:.+]] = gdn_tile.load %[[ERASE]][%{{.+}}, %{{.+}}, %c0] dims [0, 2] rows(%{{.+}}) : memref<?x?x64xbf16, {{.+}}>, vector<16x64xbf16>
//       CHECK:     %[[WIDE:.+]] = gdn_tile.map_rows %[[E]]
//       CHECK:     gdn_tile.delta_scan %{{.+}}, %{{.+}}, %{{.+}}, %{{.+}} gates(%{{.+}}, %{{.+}}) erase(%[[WIDE]]) valid(

// CHECK-LABEL: func.func @decode(
//       CHECK:   gdn_tile.delta_scan {{.+}} erase(%{{.+}}) valid(%c1)

// The key is kept, and what the erase key gave is in the delta.
// CHECK-LABEL: func.func @verify(
//       CHECK:   gdn_tile.delta_fold
//       CHECK:   %{{.+}}, %{{.+}}, %[[D:.+]] = gdn_tile.delta_scan %{{.+}}, %{{.+}}, %[[K:.+]], %{{.+}} gates({{.+}}) erase(%{{.+}}) valid({{.+}}, deltas
//   CHECK-DAG:   gdn_tile.store %[[D]], %{{.+}} : vector<8x64xf32>, memref<?x?x?x64xf32
//   CHECK-DAG:   gdn_tile.store %[[K]], %{{.+}} : vector<8x64xf32>, memref<?x?x?x64xf32

// GPU-LABEL: func.func @prefill(
//       GPU:   scf.for {{.+}} step %c1
//       GPU:     gdn_tile.delta_scan {{.+}} erase(%{{.+}}) valid({{.+}} : vector<64x64xf32>, vector<1x64xf32>,

// What is computed of it is in the rule's kernel, and has the heads of keys.
// FUSED-LABEL: func.func @normalised(
//  FUSED-SAME:   %[[ERASE:[a-z0-9]+]]: memref<?x?x64xf32, strided<[?, ?, 1], offset: ?>> {gdn.name = "erase"}
//       FUSED:   %[[E:.+]] = gdn_tile.load %[[ERASE]][%{{.+}}, %{{.+}}, %c0] dims [0, 2]
//       FUSED:   %[[UNIT:.+]] = gdn_tile.map_rows %[[E]]
//       FUSED:     math.rsqrt
//       FUSED:   gdn_tile.delta_scan {{.+}} erase(%[[UNIT]]) valid(%c1)
func.func @normalised(
    %k: tensor<?x?x64xf32> {gdn.name = "k", gdn.dims = ["N", "Hk", "64"]},
    %erase: tensor<?x?x64xf32> {gdn.name = "erase", gdn.dims = ["N", "Hk", "64"]},
    %v: tensor<?x?x64xf32> {gdn.name = "v", gdn.dims = ["N", "Hv", "64"]},
    %g: tensor<?x?xf32> {gdn.name = "log_decay", gdn.dims = ["N", "Hv"]},
    %beta: tensor<?x?xf32> {gdn.name = "beta", gdn.dims = ["N", "Hv"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %pool: !gdn.pool<?x?x64x64xf32> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "64", "64"]})
    -> (tensor<?x?x64xf32> {gdn.name = "core", gdn.dims = ["N", "Hv", "64"]})
    attributes {gdn.entry} {
  %e = gdn.l2norm %erase : tensor<?x?x64xf32> -> tensor<?x?x64xf32>
  %o = gdn.delta_rule %k, %k, %v gates(%g, %beta) erase(%e) pool(%pool) slots(%slots)
      : tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?x64xf32>, tensor<?x?xf32>, tensor<?x?xf32>
        erase tensor<?x?x64xf32>, !gdn.pool<?x?x64x64xf32>, tensor<?xi32> -> tensor<?x?x64xf32>
  return %o : tensor<?x?x64xf32>
}
