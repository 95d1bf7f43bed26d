// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// gdn.combine_maps and gdn.apply_maps: a block has rows of a matrix, and goes through maps. In f32 there is one product
// for a map; for tensor cores three, of operands in two parts, for each block of columns.
//
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile -canonicalize -cse | FileCheck %s
// RUN: gdn-opt %s -gdn-fuse -convert-gdn-to-tile='precision=mixed-io' -canonicalize -cse | FileCheck %s --check-prefix=PARTS

// CHECK-LABEL: func.func @combine_maps(
//  CHECK-SAME:   grid = ["N", "Hv", "2"]
// Of the first segment rows of H or of P; where there is none, zeros above ones.
//       CHECK:   gdn_tile.load %{{.+}} rows(%{{.+}})
//       CHECK:   gdn_tile.load %{{.+}} rows(%{{.+}})
//       CHECK:   gdn_tile.map_rows
//       CHECK:   scf.for
//       CHECK:     %[[H:.+]] = gdn_tile.load %{{.+}} rows(%{{.+}})
//       CHECK:     gdn_tile.matmul %{{.+}}, %{{.+}} acc(%[[H]] : vector<64x64xf32>)
//   CHECK-NOT:     gdn_tile.matmul
//       CHECK:   gdn_tile.store %{{.+}}, %{{.+}} : vector<64x64xf32>, memref<?x?x128x64xf32

// CHECK-LABEL: func.func @apply_maps(
//  CHECK-SAME:   grid = ["N", "Hv", "1"]
// Ranks ahead, this one and those behind it, segments.
//       CHECK:   %[[AHEAD:.+]] = scf.for
//       CHECK:   %[[LAST:.+]] = scf.for %{{.+}} iter_args(%{{.+}} = %[[AHEAD]])
//       CHECK:   scf.if
//       CHECK:     gdn_tile.store %[[LAST]], %{{.+}} : vector<64x64xf32>, memref<?x?x64x64xf32
//       CHECK:   scf.for %{{.+}} iter_args(%[[STATE:.+]] = %[[AHEAD]])
//       CHECK:     gdn_tile.store %[[STATE]]
//       CHECK:     gdn_tile.matmul
//       CHECK:   scf.if
//       CHECK:     gdn_tile.store

// PARTS-LABEL: func.func @combine_maps(
//       PARTS:   scf.for
// PARTS-COUNT-3: gdn_tile.matmul %{{.+}} : vector<64x64xbf16>, vector<64x64xbf16> -> vector<64x64xf32>
//   PARTS-NOT:   gdn_tile.matmul
//       PARTS:   return

func.func @combine_maps(
    %constant: tensor<?x?x64x64xf32> {gdn.name = "constant", gdn.dims = ["M", "Hv", "64", "64"]},
    %linear: tensor<?x?x64x64xf32> {gdn.name = "linear", gdn.dims = ["M", "Hv", "64", "64"]},
    %first_segments: tensor<?xi32> {gdn.name = "first_segments", gdn.dims = ["N"]},
    %num_segments: tensor<?xi32> {gdn.name = "num_segments", gdn.dims = ["N"]})
    -> (tensor<?x?x128x64xf32> {gdn.name = "maps", gdn.dims = ["N", "Hv", "128", "64"]})
    attributes {gdn.entry} {
  %maps = gdn.combine_maps segments(%constant, %linear) of(%first_segments, %num_segments)
      : tensor<?x?x64x64xf32>, tensor<?x?x64x64xf32>, tensor<?xi32>, tensor<?xi32>
  return %maps : tensor<?x?x128x64xf32>
}

func.func @apply_maps(
    %maps: tensor<?x?x?x128x64xf32> {gdn.name = "maps", gdn.dims = ["R", "N", "Hv", "128", "64"]},
    %rank: tensor<1xi32> {gdn.name = "rank", gdn.dims = ["1"]},
    %constant: tensor<?x?x64x64xf32> {gdn.name = "constant", gdn.dims = ["M", "Hv", "64", "64"]},
    %linear: tensor<?x?x64x64xf32> {gdn.name = "linear", gdn.dims = ["M", "Hv", "64", "64"]},
    %first_segments: tensor<?xi32> {gdn.name = "first_segments", gdn.dims = ["N"]},
    %num_segments: tensor<?xi32> {gdn.name = "num_segments", gdn.dims = ["N"]},
    %slots: tensor<?xi32> {gdn.name = "slots", gdn.dims = ["N"]},
    %write_slots: tensor<?xi32> {gdn.name = "write_slots", gdn.dims = ["N"]},
    %state_pool: !gdn.pool<?x?x64x64xf32> {gdn.name = "state_pool", gdn.dims = ["P", "Hv", "64", "64"]})
    -> (tensor<?x?x64x64xf32> {gdn.name = "states", gdn.dims = ["M", "Hv", "64", "64"]})
    attributes {gdn.entry} {
  %states = gdn.apply_maps %state_pool[%slots to %write_slots] ranks(%maps, %rank)
      segments(%constant, %linear) of(%first_segments, %num_segments)
      : !gdn.pool<?x?x64x64xf32>, tensor<?xi32>, tensor<?xi32>, tensor<?x?x?x128x64xf32>, tensor<1xi32>,
        tensor<?x?x64x64xf32>, tensor<?x?x64x64xf32>, tensor<?xi32>, tensor<?xi32>
  return %states : tensor<?x?x64x64xf32>
}
