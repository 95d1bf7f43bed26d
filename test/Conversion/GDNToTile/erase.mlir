// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A key to erase along is a row of each key head, beside the key. No form in chunks has it: tokens
// go one by one, whatever is asked for, and there are no stages.
//
// RUN: gdn-opt %gdn_data/entries/erase_rule.mlir -gdn-fuse -convert-gdn-to-tile="chunk-from=1 chunk=32 precision=mixed segments=3 segment-maps" -canonicalize -cse | FileCheck %s --implicit-check-not=gdn_tile.matmul --implicit-check-not=stage_of
// RUN: gdn-opt %gdn_data/entries/erase_rule.mlir -gdn-fuse -convert-gdn-to-tile="value-heads token-by-token precision=mixed chunk-stages=staged" -canonicalize -cse | FileCheck %s --check-prefix=GPU --implicit-check-not=gdn_tile.matmul --implicit-check-not=stage_of

// CHECK-LABEL: func.func @prefill(
//  CHECK-SAME:   facts = {chunk_from = "never"}
//       CHECK:   scf.for {{.+}} step %c16
//       CHECK:     %[[E:.+]] = gdn_tile.load %{{.+}}[%[[T:.+]], %[[H:.+]], %c0] dims [0, 2] rows(%{{.+}}) : memref<?x?x64xbf16, {{.+}}>, vector<16x64xbf16>
//       CHECK:     %[[WIDE:.+]] = gdn_tile.map_rows %[[E]]
//       CHECK:     gdn_tile.delta_scan %{{.+}}, %{{.+}}, %[[K:.+]], %{{.+}} gates(%{{.+}}, %{{.+}}) erase(%[[WIDE]]) valid(

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
