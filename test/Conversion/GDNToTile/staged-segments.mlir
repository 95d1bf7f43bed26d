// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A variant of "staged" whose sequences are cut: what each segment does to the state,
// then all segments from their own states at the same time.
//
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile="precision=mixed-io chunk-stages=staged variants=staged-segments-8:v-split=2;segments=8;when=8712*sequences*sequences*heads*heads*heads<=workers*workers*tokens&sequences<=2&32*chunk<=tokens,staged:" -canonicalize -cse -gdn-tile-fuse-rows -cse | FileCheck %s

// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile="precision=mixed-io chunk-stages=staged variants=staged-segments-8:segments=8;v-split=2,staged-segments-2:segments=2;v-split=2,staged:" -canonicalize -cse | FileCheck %s --check-prefix=ORDER

// The first stage does not know of segments.
// CHECK-LABEL: func.func @prefill__intra_chunk(
//  CHECK-SAME:   variant = ["staged-segments-8", "staged"]
//   CHECK-NOT:   "N + 8"

// Two blocks have 32 rows of H each, one has the 32 rows of P. Without sequences several blocks would
// store the zeros of padding.
// CHECK-LABEL: func.func @prefill__maps_segments_8(
//  CHECK-SAME:   %[[POOL:[a-z0-9]+]]: memref<?x?x64x32xf32, {{.*}}> {gdn.name = "state_pool"}
//  CHECK-SAME:   %[[STATES:[a-z0-9]+]]: memref<?x?x64x32xf32>, %[[MAPS:[a-z0-9]+]]: memref<?x?x32x32xf16>)
//  CHECK-SAME:   bits = "staged-segments-8"
//  CHECK-SAME:   conditions = {{\[\[}}["8712", "N", "N", "Hv", "Hv", "Hv"], ["workers", "workers", "T"]], {{\[}}["N"], ["2"]], {{\[}}["2048"], ["T"]], {{\[}}["1"], ["N"]]]
//  CHECK-SAME:   grid = ["N + 8", "Hv", "3"]
//  CHECK-SAME:   variant = "staged-segments-8"
//  CHECK-SAME:   ["N + 8", "Hv", "64", "32", "4"], ["N + 8", "Hv", "32", "32", "2"]]
//       CHECK:   %[[IS_MAP:.+]] = arith.cmpi uge, %{{.+}}, %c2
// The sequence's state in its first segment, or the identity.
//       CHECK:   gdn_tile.load %[[POOL]]{{.*}} rows(%{{.+}})
//       CHECK:   gdn_tile.map_rows
//       CHECK:     arith.cmpi eq, {{.*}} : vector<32xindex>
//       CHECK:   gdn_tile.store %{{.+}}, %[[STATES]]
// No values in rows of P; no queries.
//       CHECK:   scf.for
//       CHECK:     %[[COUNT:.+]] = arith.select %[[IS_MAP]], %c0, %c64
//       CHECK:     gdn_tile.load {{.*}} rows(%[[COUNT]])
// CHECK-COUNT-2:   gdn_tile.matmul
//   CHECK-NOT:     gdn_tile.matmul
//       CHECK:   scf.if
//       CHECK:   scf.if %[[IS_MAP]]
//       CHECK:     gdn_tile.store %{{.+}}, %[[MAPS]]{{.*}} vector<32x32xf16>
//       CHECK:   } else {
//       CHECK:     gdn_tile.store %{{.+}}, %[[STATES]]{{.*}} vector<32x32xf32>

// CHECK-LABEL: func.func @prefill__scan_segments_8(
//  CHECK-SAME:   %[[STATES:[a-z0-9]+]]: memref<?x?x64x32xf32>, %[[MAPS:[a-z0-9]+]]: memref<?x?x32x32xf16>)
//  CHECK-SAME:   grid = ["N", "Hv", "4"]
// The states of segments ahead, one after another.
//       CHECK:   scf.for {{.*}} iter_args(%[[M:.+]] = %{{.+}}) -> (vector<16x32xf32>)
//       CHECK:     %[[NARROW:.+]] = gdn_tile.map_rows %[[M]]
//       CHECK:     %[[P:.+]] = gdn_tile.load %[[MAPS]]
//       CHECK:     %[[H:.+]] = gdn_tile.load %[[STATES]]
//       CHECK:     %[[NEXT:.+]] = gdn_tile.matmul %[[NARROW]], %[[P]] acc(%[[H]] : vector<16x32xf32>)
//       CHECK:     gdn_tile.store %[[NEXT]], %[[STATES]]

// All states are in the workspace.
// CHECK-LABEL: func.func @prefill__inter_chunk_segments_8(
//  CHECK-SAME:   %[[STATES:[a-z0-9]+]]: memref<?x?x64x32xf32>, %[[MAPS:[a-z0-9]+]]: memref<?x?x32x32xf16>)
//  CHECK-SAME:   grid = ["N + 9", "Hv", "2"]
//       CHECK:   %[[START:.+]] = gdn_tile.load %[[STATES]]
//       CHECK:   scf.for {{.*}} iter_args(%{{.+}} = %[[START]])
//       CHECK:     gdn_tile.matmul

// CHECK-LABEL: func.func @prefill__inter_chunk(
//  CHECK-SAME:   bits = "staged"
//  CHECK-SAME:   variant = "staged"

// Most segments first, each number once.
// ORDER: variant = ["staged-segments-8", "staged-segments-2", "staged"]
func.func @prefill(
    %q: tensor<?x?x32xbf16> {gdn.name = "q", gdn.dims = ["T", "Hk", "32"]},
    %k: tensor<?x?x32xbf16> {gdn.name = "k", gdn.dims = ["T", "Hk", "32"]},
    %v: tensor<?x?x64xbf16> {gdn.name = "v", gdn.dims = ["T", "Hv", "64"]},
    %g: tensor<?x?xf32> {gdn.name = "log_decay", gdn.dims = ["T", "Hv"]},
    %beta: tensor<?x?xf32> {gdn.name = "beta", gdn.dims = ["T", "Hv"]},
    %cu: tensor<?xi32> {gdn.name = "cu_seqlens", gdn.dims = ["N + 1"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %pool: !gdn.pool<?x?x64x32xf32> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "64", "32"]})
    -> (tensor<?x?x64xbf16> {gdn.name = "core", gdn.dims = ["T", "Hv", "64"]})
    attributes {gdn.entry} {
  %o = gdn.delta_rule %q, %k, %v gates(%g, %beta) pool(%pool) slots(%slots) sequences(%cu)
      : tensor<?x?x32xbf16>, tensor<?x?x32xbf16>, tensor<?x?x64xbf16>, tensor<?x?xf32>,
        tensor<?x?xf32>, !gdn.pool<?x?x64x32xf32>, tensor<?xi32>, tensor<?xi32>
        -> tensor<?x?x64xbf16>
  return %o : tensor<?x?x64xbf16>
}
